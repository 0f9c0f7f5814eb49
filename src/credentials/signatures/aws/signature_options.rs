//! The operator's settings for requests that are signed for AWS: region, service and access keys,
//! and what of them a host of AWS says.

use url::Url;

use super::access_keys::AccessKeys;
use super::key_endpoint::KeyEndpoint;

/// The operator's settings for signatures for AWS.
#[derive(Debug, Clone)]
pub struct AwsSignature {
    /// Region; `None` if the host of the API names it.
    pub(crate) region: Option<String>,
    /// Signing name of the service, such as `ses`; `None` if the host of the API names it.
    pub(crate) service: Option<String>,
    /// Source of the access keys.
    pub(crate) keys: AccessKeyOptions,
}

/// Source of the access keys that sign requests.
#[derive(Debug, Clone)]
pub(crate) enum AccessKeyOptions {
    /// Keys that never change.
    Fixed(AccessKeys),
    /// Keys of an endpoint, which end.
    Issued(KeyEndpoint),
}

/// Region and service that a signature is valid for.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct SigningScope {
    /// Region.
    pub(crate) region: String,
    /// Signing name of the service.
    pub(crate) service: String,
}

impl SigningScope {
    /// Reads what a host of AWS says: `ID.execute-api.REGION.amazonaws.com` and
    /// `SERVICE.REGION.amazonaws.com`, also below `amazonaws.com.cn`.
    fn of_host(host: &str) -> Option<Self> {
        let own = host
            .strip_suffix(".amazonaws.com")
            .or_else(|| host.strip_suffix(".amazonaws.com.cn"))?;
        let labels: Vec<&str> = own.split('.').collect();
        let (service, region) = match labels.as_slice() {
            [_, service @ "execute-api", region] => (*service, *region),
            [service, region] => (*service, *region),
            _ => return None,
        };
        // `eu-central-1`, and neither the bucket of `bucket.s3` nor `s3-eu-west-1`. `s3-fips` is
        // signed as `s3`: the settings say so.
        (is_region(region) && !service.ends_with("-fips")).then(|| Self {
            region: region.to_owned(),
            service: service.to_owned(),
        })
    }
}

/// Returns true for the form of a region: two letters, words, and a number.
fn is_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_word =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    match parts.as_slice() {
        [country, words @ .., number] => {
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            country.len() == 2
                && is_word(country)
                && !words.is_empty()
                && words.iter().all(is_word)
                && is_number
        }
        _ => false,
    }
}

impl AwsSignature {
    /// Returns the scope of the signatures of an API with this base URL; `None` if neither the
    /// settings nor the host name it.
    pub(crate) fn scope(&self, base: Option<&Url>) -> Option<SigningScope> {
        let of_host = base.and_then(Url::host_str).and_then(SigningScope::of_host);
        let (region, service) = of_host.map(|scope| (scope.region, scope.service)).unzip();
        Some(SigningScope {
            region: self.region.clone().or(region)?,
            service: self.service.clone().or(service)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_aws_name_region_and_service() {
        for (host, expected) in [
            (
                "a1b2c3.execute-api.eu-central-1.amazonaws.com",
                Some(("eu-central-1", "execute-api")),
            ),
            (
                "a1b2c3.execute-api.cn-north-1.amazonaws.com.cn",
                Some(("cn-north-1", "execute-api")),
            ),
            (
                "execute-api.us-gov-west-1.amazonaws.com",
                Some(("us-gov-west-1", "execute-api")),
            ),
            (
                "dynamodb.us-east-1.amazonaws.com",
                Some(("us-east-1", "dynamodb")),
            ),
            (
                "s3.cn-northwest-1.amazonaws.com.cn",
                Some(("cn-northwest-1", "s3")),
            ),
            // These name no region, or not the signing name.
            ("s3.amazonaws.com", None),
            ("bucket.s3.amazonaws.com", None),
            ("bucket.s3.eu-west-1.amazonaws.com", None),
            ("s3.dualstack.eu-west-1.amazonaws.com", None),
            ("a.b.execute-api.eu-central-1.amazonaws.com", None),
            ("bucket.s3-eu-west-1.amazonaws.com", None),
            ("s3-fips.us-east-1.amazonaws.com", None),
            ("iam.amazonaws.com", None),
            ("amazonaws.com", None),
            ("dynamodb.us-east-1.amazonaws.com.example", None),
            ("dynamodb.us-east-1.notamazonaws.com", None),
            ("api.example", None),
        ] {
            let scope = SigningScope::of_host(host);
            let found = scope
                .as_ref()
                .map(|scope| (scope.region.as_str(), scope.service.as_str()));
            assert_eq!(found, expected, "{host}");
        }
    }
}
