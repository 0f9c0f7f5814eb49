//! The operator's settings for requests that are signed for AWS: region, service and access keys, and what of them a host of AWS says.

use std::collections::BTreeMap;

use url::Url;

use super::access_keys::AccessKeys;
use super::key_endpoint::KeyEndpoint;
use crate::outbound::{Clients, HttpClient, OutboundError, OutboundOptions, http_client};
use crate::spec::{Location, SecurityScheme};
use crate::text;

/// The operator's settings for the signatures of a security scheme.
#[derive(Debug, Clone)]
pub struct SignatureOptions {
    /// Region; `None` if the host of the API names it.
    pub region: Option<String>,
    /// Signing name of the service, such as `ses`; `None` if the host of the API names it.
    pub service: Option<String>,
    /// Source of the access keys.
    pub keys: AccessKeyOptions,
}

/// Source of the access keys that sign requests.
#[derive(Debug, Clone)]
pub enum AccessKeyOptions {
    /// Keys that never change.
    Fixed(AccessKeys),
    /// Keys of an endpoint, which end.
    Issued(KeyEndpoint),
}

impl AccessKeyOptions {
    /// The secrets that never change.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let fixed = match self {
            Self::Fixed(keys) => Some(keys),
            Self::Issued(_) => None,
        };
        fixed.into_iter().flat_map(AccessKeys::secrets)
    }

    /// Returns true if keys are requested over TLS.
    pub(crate) fn wants_tls(&self) -> bool {
        matches!(self, Self::Issued(endpoint) if endpoint.url().scheme() == "https")
    }

    /// The client that requests keys. What is not encrypted does not leave the machine, and goes through no proxy.
    ///
    /// # Errors
    /// No client can be made.
    pub(crate) fn client(&self, clients: &Clients) -> Result<HttpClient, OutboundError> {
        match self {
            Self::Issued(endpoint) if endpoint.url().scheme() != "https" => http_client(&OutboundOptions {
                tls: false,
                ..OutboundOptions::default()
            }),
            Self::Issued(_) | Self::Fixed(_) => Ok(clients.other.clone()),
        }
    }
}

/// Region and service that a signature is valid for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SigningScope {
    /// Region.
    pub(crate) region: String,
    /// Signing name of the service.
    pub(crate) service: String,
}

impl SigningScope {
    /// Reads what a host of AWS says: `ID.execute-api.REGION.amazonaws.com` and `SERVICE.REGION.amazonaws.com`, also below
    /// `amazonaws.com.cn`.
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
        // `eu-central-1`, and neither the bucket of `bucket.s3` nor `s3-eu-west-1`. `s3-fips` is signed as `s3`: the settings say so.
        (is_region(region) && !service.ends_with("-fips")).then(|| Self {
            region: region.to_owned(),
            service: service.to_owned(),
        })
    }
}

/// Returns true for the form of a region: two letters, words, and a number.
fn is_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    match parts.as_slice() {
        [country, words @ .., number] => {
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            country.len() == 2 && is_word(country) && !words.is_empty() && words.iter().all(is_word) && is_number
        }
        _ => false,
    }
}

impl SignatureOptions {
    /// Returns the scope of the signatures of an API with this base URL; `None` if neither the settings nor the host name it.
    pub(crate) fn scope(&self, base: Option<&Url>) -> Option<SigningScope> {
        let of_host = base.and_then(Url::host_str).and_then(SigningScope::of_host);
        let (region, service) = of_host.map(|scope| (scope.region, scope.service)).unzip();
        Some(SigningScope {
            region: self.region.clone().or(region)?,
            service: self.service.clone().or(service)?,
        })
    }
}

/// A sentence for each signature that cannot take effect with a document: no other credential must take its place, which `has_other`
/// reports for a scheme. `base` is where calls go if all go to one place, and `is_sent` is false if there are none.
pub(crate) fn wrong_signatures(
    signatures: &BTreeMap<String, SignatureOptions>,
    has_other: impl Fn(&str) -> bool,
    schemes: &BTreeMap<String, SecurityScheme>,
    base: Option<&Url>,
    is_sent: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, options) in signatures {
        let shown = text::one_line(name);
        let mut say = |problem: &str| wrong.push(format!("`auth.{shown}.sigv4`: {problem}"));
        match schemes.get(name) {
            None => say("the document has no security scheme of this name"),
            Some(scheme) if !sends_authorization(scheme) => {
                say("a signature is sent in `Authorization`, and the document's security scheme of this name is sent elsewhere");
            }
            Some(_) => {}
        }
        if has_other(name) {
            say("another credential is set for this scheme; a signed request has no other");
        }
        if is_sent && options.scope(base).is_none() {
            let lacking = match (&options.region, &options.service) {
                (None, None) => "`region` and `service`",
                (None, Some(_)) => "`region`",
                (Some(_), _) => "`service`",
            };
            say(&format!(
                "it needs {lacking}: only hosts like ID.execute-api.REGION.amazonaws.com and SERVICE.REGION.amazonaws.com say them"
            ));
        }
    }
    wrong
}

fn sends_authorization(scheme: &SecurityScheme) -> bool {
    match scheme {
        SecurityScheme::AwsSignature | SecurityScheme::Http(_) => true,
        SecurityScheme::ApiKey { location, name } => *location == Location::Header && name.eq_ignore_ascii_case("authorization"),
        SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect | SecurityScheme::MutualTls => false,
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
            ("execute-api.us-gov-west-1.amazonaws.com", Some(("us-gov-west-1", "execute-api"))),
            ("dynamodb.us-east-1.amazonaws.com", Some(("us-east-1", "dynamodb"))),
            ("s3.cn-northwest-1.amazonaws.com.cn", Some(("cn-northwest-1", "s3"))),
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
            let found = scope.as_ref().map(|scope| (scope.region.as_str(), scope.service.as_str()));
            assert_eq!(found, expected, "{host}");
        }
    }
}
