//! Tenants: each call of an API goes to the base URL that the operator gives for the client's
//! tenant, with credentials, limits and a redaction of that tenant alone. The client's value that
//! names its tenant is looked up in a table; no part of a URL is ever made of it.
//!
//! The values that rules and tenants take from the client that calls: its headers, and the claims
//! of its verified token.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::header::HeaderName;
use serde_json::Value;
use url::Url;

use super::request::target::BaseUrl;
use super::upstream::Upstream;
use crate::call_error::CallError;
use crate::caller::Caller;
use crate::credentials::resolve::OperationAccess;
use crate::credentials::values::Credentials;
use crate::json::member_at;
use crate::outbound::request::is_of_connection;
use crate::redact::Redactor;
use crate::spec::operation::rules::ValueSource;

/// The operator's settings for the tenants of an API.
#[derive(Debug, Clone)]
pub struct TenantOptions {
    /// Source of the value that names a client's tenant.
    pub source: TenantSource,
    /// The tenants by the value of it, compared byte for byte.
    pub entries: BTreeMap<String, TenantEntry>,
}

/// Source of the value that names a client's tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantSource {
    /// A header of its HTTP request, which proves nothing.
    Header(HeaderName),
    /// A claim of its verified access token.
    Claim(String),
}

/// The operator's settings for one tenant.
#[derive(Debug, Clone)]
pub struct TenantEntry {
    /// Base URL of its calls.
    pub base_url: Url,
    /// Credentials of its calls.
    pub credentials: Credentials,
}

impl TenantSource {
    /// Describes it in words that follow a verb like "comes".
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

/// A tenant: the destination of its calls, and their credentials.
pub(crate) struct Tenant {
    /// The value that names it.
    pub(crate) value: Box<str>,
    pub(super) base: Arc<BaseUrl>,
    pub(super) upstream: Arc<Upstream>,
    /// Credentials by the number of an operation's requirements; see
    /// [`super::binding::BoundOperation`].
    pub(super) access: Vec<OperationAccess>,
    /// Takes this tenant's secrets out of replies.
    pub(super) redactor: Redactor,
}

impl Tenants {
    /// Returns the tenant of a caller. There is no default.
    ///
    /// # Errors
    /// [`CallError::Setting`] if the caller does not name exactly one, or names one that the table
    /// lacks.
    pub(crate) fn of(&self, caller: &Caller) -> Result<&Tenant, CallError> {
        let value = self.source.client_text(caller)?;
        self.by_value.get(value.as_str()).ok_or_else(|| {
            let source = self.source.describe();
            tracing::warn!("a call was refused: the value {source} names no tenant");
            CallError::Setting(format!(
                "nothing was sent, because the value {source} names no tenant of this server"
            ))
        })
    }
}

/// Text that replaces a secret value in previews.
pub(crate) const MASK: &str = "***";

impl ValueSource {
    /// The text that a caller gives for it.
    ///
    /// # Errors
    /// [`CallError::Setting`] unless there is exactly one that is not empty.
    pub(crate) fn client_text(&self, caller: &Caller) -> Result<String, CallError> {
        let found = match self {
            Self::Forward(name) => {
                let mut values = caller.headers.get_all(name).iter();
                let value = values.next().filter(|_| {
                    values.next().is_none() && !is_of_connection(&caller.headers, name)
                });
                value.and_then(|value| Some(value.to_str().ok()?.to_owned()))
            }
            Self::Claim(name) => {
                let claim = caller.claims().and_then(|claims| member_at(claims, name));
                claim.and_then(|claim| match claim {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(_) | Value::Bool(_) => Some(claim.to_string()),
                    _ => None,
                })
            }
            Self::Literal(_) | Self::Secret { .. } => None,
        };
        found.filter(|text| !text.is_empty()).ok_or_else(|| {
            CallError::Setting(format!(
                "nothing was sent, because this call needs a value {}, and there is not exactly one",
                self.describe()
            ))
        })
    }
}
