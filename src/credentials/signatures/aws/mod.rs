//! Requests that are signed for AWS (Signature Version 4), and the access keys that sign them.

pub(crate) mod access_keys;
mod issued_keys;
pub(crate) mod key_endpoint;
mod key_reply;
pub(crate) mod request_signer;
pub(crate) mod signature_options;

use std::sync::Arc;

use url::Url;

use self::request_signer::AwsSigner;
use self::signature_options::{AccessKeyOptions, AwsSignature, SigningScope};
use crate::outbound::Clients;
use crate::spec::{Location, SecurityScheme};

impl AwsSignature {
    /// Returns the secrets that never change.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        match &self.keys {
            AccessKeyOptions::Fixed(keys) => keys.secrets().collect(),
            AccessKeyOptions::Issued(_) => Vec::new(),
        }
    }

    /// Returns true if something is requested over TLS to sign.
    pub(crate) fn wants_tls(&self) -> bool {
        matches!(&self.keys, AccessKeyOptions::Issued(endpoint) if endpoint.url().scheme() == "https")
    }

    /// Returns the end of a sentence if it cannot be what a security scheme of a document asks for.
    pub(crate) fn misfit(scheme: &SecurityScheme) -> Option<&'static str> {
        match scheme {
            SecurityScheme::AwsSignature | SecurityScheme::Http(_) => None,
            SecurityScheme::ApiKey { location, name }
                if *location == Location::Header && name.eq_ignore_ascii_case("authorization") =>
            {
                None
            }
            _ => Some(
                "a signature is sent in `Authorization`, and the document's security scheme of this name is sent elsewhere",
            ),
        }
    }

    /// Returns the end of a sentence if it lacks something to sign requests to `base`.
    pub(crate) fn lacks(&self, base: Option<&Url>) -> Option<String> {
        let lacking = match (self.scope(base), &self.region, &self.service) {
            (Some(_), ..) => return None,
            (None, None, None) => "`region` and `service`",
            (None, None, Some(_)) => "`region`",
            (None, Some(_), _) => "`service`",
        };
        Some(format!(
            "it needs {lacking}: only hosts like ID.execute-api.REGION.amazonaws.com and SERVICE.REGION.amazonaws.com say them"
        ))
    }

    /// Makes the signer of requests to `base`; without one, nothing is sent.
    ///
    /// # Errors
    /// The end of a sentence if requests cannot be signed.
    pub(crate) fn signer(
        &self,
        scheme: &str,
        base: Option<&Url>,
        clients: &Clients,
    ) -> Result<Arc<AwsSigner>, String> {
        // Without a destination nothing is signed, and the scope does not matter.
        let unused = || base.is_none().then(SigningScope::default);
        let scope = self
            .scope(base)
            .or_else(unused)
            .ok_or("it has no region or no service")?;
        let signer = AwsSigner::new(scheme, scope, &self.keys, clients)
            .map_err(|error| error.to_string())?;
        Ok(Arc::new(signer))
    }
}
