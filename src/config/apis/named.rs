//! The settings of APIs that have names.

use super::scopes::ScopeSettings;
use crate::api::name::ApiName;
use crate::config::forward::ForwardSettings;
use crate::config::layer::layer;
use crate::config::settings::ApiSettings;

/// What stands under one name.
#[derive(Debug, Clone)]
pub(crate) struct NamedSettings {
    pub(crate) name: ApiName,
    pub(crate) api: ApiSettings,
    pub(crate) forward: ForwardSettings,
    pub(crate) scopes: ScopeSettings,
}

impl NamedSettings {
    /// Nothing but a name yet.
    pub(crate) fn new(name: ApiName) -> Self {
        Self {
            name,
            api: ApiSettings::default(),
            forward: ForwardSettings::default(),
            scopes: ScopeSettings::default(),
        }
    }

    /// Puts flags (and with them variables) over what the file says of this API.
    pub(crate) fn put_over(&mut self, flags: &ApiSettings) {
        let rules = std::mem::take(&mut self.api.overrides);
        self.api = layer(flags, &self.api);
        self.api.overrides = rules;
    }
}

/// Adds an API, unless another one has its name; two names that differ in `-` and `_` only are one.
pub(crate) fn add_api(apis: &mut Vec<NamedSettings>, new: NamedSettings, place: &str, problems: &mut Vec<String>) {
    match apis.iter().find(|known| known.name.is_like(&new.name)) {
        None => apis.push(new),
        Some(known) if known.name == new.name => problems.push(format!(
            "{place}: there is an API `{}` already; its credentials are for its own document, so give this one another name",
            new.name
        )),
        Some(known) => problems.push(format!(
            "{place}: the API `{}` cannot be told from `{}`, because names that differ in `-` and `_` only are one in variables",
            new.name, known.name
        )),
    }
}

/// The settings of a file, as far as they can be read.
#[derive(Debug, Default)]
pub(crate) struct FileApis {
    pub(crate) apis: Vec<NamedSettings>,
    /// Whether the key is there.
    pub(crate) given: bool,
}

/// The problems of one API among several, each with the place that they are about.
pub(crate) fn under_name(name: &ApiName, problems: Vec<String>) -> impl Iterator<Item = String> + use<> {
    let name = name.clone();
    problems.into_iter().map(move |problem| format!("`apis.{name}`: {problem}"))
}
