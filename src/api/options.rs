//! The operator's settings for an API.

use http::header::HeaderMap;
use secrecy::SecretString;

use super::about::{About, ApiName};
use crate::annotate::AnnotateOptions;
use crate::credentials::forward::Forwarding;
use crate::credentials::values::Credentials;
use crate::observe::metrics::labels::ApiLabel;
use crate::proxy::{BindingOptions, CallOptions, Destination, TenantOptions, UpstreamOptions};
use crate::results::filter::Sandbox;

/// The operator's settings for an API.
#[derive(Debug, Clone, Default)]
pub struct ApiOptions {
    /// Settings for tools.
    pub annotate: AnnotateOptions,
    /// Destination of requests.
    pub destination: Destination,
    /// Headers that every request carries; no argument can replace them. Values that are marked
    /// sensitive are secrets, which are taken out of replies; so are those of `Authorization`,
    /// `Cookie` and other names that say so.
    pub headers: HeaderMap,
    /// Credentials for the document's security schemes. Without any, nothing is asked for: a mock
    /// wants none.
    pub credentials: Option<Credentials>,
    /// Headers of clients that go upstream.
    pub forward: Forwarding,
    /// Other secrets that must not appear in a reply, such as the password of a proxy.
    pub secrets: Vec<SecretString>,
    /// Limits of a call.
    pub call: CallOptions,
    /// Limits of an upstream.
    pub upstream: UpstreamOptions,
    /// Sandbox that runs filters of replies, if they are offered.
    pub sandbox: Option<Sandbox>,
    /// The introduction of the server; what it leaves out comes from the document.
    pub about: About,
    /// The name of the API, if a server has several.
    pub name: Option<ApiName>,
    /// Secrets of all APIs of a server, which must not come back in a reply of this one either.
    pub secrets_of_all: Vec<SecretString>,
    /// The tenants to which calls go; then nothing goes to [`ApiOptions::destination`], and each
    /// has credentials of its own.
    pub tenants: Option<TenantOptions>,
}

impl ApiOptions {
    /// The label in metrics.
    pub(super) fn label(&self) -> ApiLabel {
        ApiName::metrics_label(self.name.as_ref())
    }

    pub(super) fn binding(&self) -> BindingOptions {
        BindingOptions {
            destination: self.destination.clone(),
            headers: self.headers.clone(),
            credentials: self.credentials.clone(),
            forward: self.forward.clone(),
            secrets: self.secrets.clone(),
            secrets_of_all: self.secrets_of_all.clone(),
            upstream: self.upstream.clone(),
            api: self.label(),
            has_tenants: self.tenants.is_some(),
        }
    }
}
