//! The key `tenants` of the configuration file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::auth::settings::SchemeSettings;

/// Tenants: calls go to the base URL of the client's tenant, with the credentials of that tenant
/// alone. A client that is none of them is refused.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a mapping with `claim` or `header`, and `entries`"
)]
pub(crate) struct TenantSettings {
    /// The claim of the client's verified access token that names its tenant, by its name or its
    /// JSON Pointer
    pub claim: Option<String>,
    /// The header of the client's HTTP request that names its tenant; it proves nothing, so that
    /// only one tenant may have credentials then
    pub header: Option<String>,
    /// The tenants by the value of the claim or header, compared byte for byte
    pub entries: BTreeMap<String, TenantEntrySettings>,
}

/// One tenant.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, expecting = "a mapping with `base_url`")]
pub(crate) struct TenantEntrySettings {
    /// The complete URL that its calls go to
    pub base_url: String,
    /// Its credentials by the name of the document's security scheme, each by reference; without
    /// any, none are sent
    pub auth: BTreeMap<String, SchemeSettings>,
}
