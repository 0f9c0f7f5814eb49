//! The scopes that calls require of a client's token, for the whole server or for one API.

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::config::keys::text_list::one_or_several;

/// Scopes that calls require of a client's token. Of several, one is enough: a broader one may
/// imply a narrower one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct ScopeSettings {
    /// A scope that calls of read-only tools require (a list: any of them)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "SCOPE",
        help_heading = "Authentication"
    )]
    #[cfg_attr(test, schemars(with = "crate::config::overrides::Globs"))]
    #[serde(deserialize_with = "one_or_several")]
    pub oauth_read_scope: Vec<String>,

    /// A scope that calls of all other tools require (a list: any of them)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "SCOPE",
        help_heading = "Authentication"
    )]
    #[cfg_attr(test, schemars(with = "crate::config::overrides::Globs"))]
    #[serde(deserialize_with = "one_or_several")]
    pub oauth_write_scope: Vec<String>,
}
