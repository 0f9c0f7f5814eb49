//! Requests that are signed for AWS (Signature Version 4), and the access keys that sign them.

pub(crate) mod access_keys;
mod issued_keys;
pub(crate) mod key_endpoint;
mod key_reply;
mod request_signer;
pub(crate) mod signature_options;

use std::sync::Arc;

use url::Url;

use self::request_signer::AwsSigner;
use self::signature_options::{AccessKeyOptions, AwsSignature, SigningScope};
use super::{RequestSigner, SIGV4, Signature, SignatureKind};
use crate::outbound::Clients;
use crate::spec::{Location, SecurityScheme};

impl Signature for AwsSignature {
    fn kind(&self) -> &'static SignatureKind {
        &SIGV4
    }

    fn secrets(&self) -> Vec<&str> {
        match &self.keys {
            AccessKeyOptions::Fixed(keys) => keys.secrets().collect(),
            AccessKeyOptions::Issued(_) => Vec::new(),
        }
    }

    fn wants_tls(&self) -> bool {
        matches!(&self.keys, AccessKeyOptions::Issued(endpoint) if endpoint.url().scheme() == "https")
    }

    fn misfit(&self, scheme: &SecurityScheme) -> Option<&'static str> {
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

    fn lacks(&self, base: Option<&Url>) -> Option<String> {
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

    fn signer(
        &self,
        scheme: &str,
        base: Option<&Url>,
        clients: &Clients,
    ) -> Result<Arc<dyn RequestSigner>, String> {
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
