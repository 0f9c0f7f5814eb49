//! Tenants: each call of an API goes to the base URL that the operator gives for the client's tenant, with credentials, limits,
//! a cache and a redaction of that tenant alone. What of a client tells its tenant is compared with a table; no part of a URL is
//! ever made of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::header::HeaderName;
use url::Url;

use super::auth::resolve::OperationAccess;
use super::auth::values::Credentials;
use super::cache::ReplyCache;
use super::caller::Caller;
use super::error::CallError;
use super::redact::Redactor;
use super::request::target::BaseUrl;
use super::upstream::Upstream;
use crate::spec::operation::rules::ValueSource;

/// What an operator sets about the tenants of an API.
#[derive(Debug, Clone)]
pub struct TenantOptions {
    /// What of a client tells its tenant.
    pub source: TenantSource,
    /// The tenants by the value of it, compared byte for byte.
    pub entries: BTreeMap<String, TenantEntry>,
}

/// What of a client tells its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantSource {
    /// A header of its HTTP request, which proves nothing.
    Header(HeaderName),
    /// A claim of its verified access token.
    Claim(String),
}

/// What an operator sets about one tenant.
#[derive(Debug, Clone)]
pub struct TenantEntry {
    /// Where its calls go.
    pub base_url: Url,
    /// What they carry.
    pub credentials: Credentials,
}

impl TenantSource {
    /// In words, after "comes" and the like.
    pub(crate) fn describe(&self) -> String {
        ValueSource::from(self).describe()
    }
}

impl From<&TenantSource> for ValueSource {
    fn from(source: &TenantSource) -> Self {
        match source {
            TenantSource::Header(name) => Self::Forward(name.clone()),
            TenantSource::Claim(name) => Self::Claim(name.clone()),
        }
    }
}

/// The tenants of an API.
pub(crate) struct Tenants {
    pub(super) source: ValueSource,
    pub(super) by_value: HashMap<Box<str>, Tenant>,
}

/// A tenant: where its calls go, and what they carry.
pub(crate) struct Tenant {
    /// The value that tells it.
    pub(super) value: Box<str>,
    pub(super) base: Arc<BaseUrl>,
    pub(super) upstream: Arc<Upstream>,
    /// By the number of an operation's requirements; see [`super::binding::BoundOperation`].
    pub(super) access: Vec<OperationAccess>,
    /// Takes this tenant's secrets out of replies.
    pub(super) redactor: Redactor,
    /// Keeps replies for the next call of this tenant.
    pub(super) cache: Option<ReplyCache>,
}

impl Tenants {
    /// The tenant of a caller. There is no default.
    ///
    /// # Errors
    /// [`CallError::Setting`] where the caller does not say which one exactly once, or says one that the table lacks.
    pub(crate) fn of(&self, caller: &Caller) -> Result<&Tenant, CallError> {
        let value = self.source.client_text(Some(caller))?;
        self.by_value.get(value.as_str()).ok_or_else(|| {
            tracing::warn!("a call was refused: the value {} names no tenant", self.source.describe());
            CallError::Setting(format!(
                "nothing was sent, because the value {} names no tenant of this server",
                self.source.describe()
            ))
        })
    }
}

impl Tenant {
    /// What tells it.
    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// What calls with these requirements carry.
    pub(super) fn access(&self, requirements: usize) -> Option<&OperationAccess> {
        self.access.get(requirements)
    }
}
