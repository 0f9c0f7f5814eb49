//! The settings of an API that is served: of the only one, or of one that has a name among several.

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::api::about::ApiName;
use crate::config::clients::scopes::ScopeSettings;
use crate::config::forward::ForwardSettings;
use crate::config::layer::layer;
use crate::config::problems::Problems;
use crate::config::settings::ApiSettings;

/// Settings under one name, or all of them for the only API.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NamedSettings {
    /// Name of the API; `None` for the only API.
    #[arg(skip)]
    #[serde(skip)]
    pub name: Option<ApiName>,

    #[command(flatten)]
    #[serde(flatten)]
    pub api: ApiSettings,

    #[command(flatten)]
    #[serde(flatten)]
    pub forward: ForwardSettings,

    /// Scopes besides those of the whole server.
    #[command(flatten)]
    #[serde(flatten)]
    pub scopes: ScopeSettings,
}

impl NamedSettings {
    /// Puts flags (and with them variables) over what the file says of this API.
    pub(crate) fn put_over(&mut self, flags: &ApiSettings) {
        let rules = std::mem::take(&mut self.api.rules);
        self.api = layer(flags, &self.api);
        self.api.rules = rules;
    }
}

/// Adds an API, unless another one has its name; two names that differ in `-` and `_` only are one.
pub(crate) fn add_api(
    apis: &mut Vec<NamedSettings>,
    name: ApiName,
    settings: NamedSettings,
    problems: &mut Problems,
) {
    match apis.iter().filter_map(|api| api.name.as_ref()).find(|known| known.is_like(&name)) {
        None => apis.push(NamedSettings {
            name: Some(name),
            ..settings
        }),
        Some(known) if *known == name => problems.push(format!(
            "there is an API `{name}` already; its credentials are for its own document, so give this one another name"
        )),
        Some(known) => problems.push(format!(
            "the API `{name}` cannot be distinguished from `{known}`, because names that differ in `-` and `_` only are one in variables"
        )),
    }
}
