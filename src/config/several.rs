//! Several APIs: the settings of each under its name, `--api` with `--config`, and settings that would
//! apply to all. There is no inheritance: a setting of one API in any other place is an error.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::about::AboutSettings;
use super::clients::ScopeSettings;
use super::headers::ForwardSettings;
use super::problems::Problems;
use super::settings::{ApiSettings, CommonSettings, FileRules};
use super::tables::given_settings;
use crate::api::about::ApiName;
use crate::text;

/// Settings under one name, or all of them for the only API.
#[derive(Clone, Default, Args, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NamedSettings {
    /// Name of the API; `None` for the only API.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) name: Option<ApiName>,

    /// The rules.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) rules: FileRules,

    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) api: ApiSettings,

    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) forward: ForwardSettings,

    /// Scopes besides those of the whole server.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) scopes: ScopeSettings,
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

/// `--api` and `--config`, of every command that reads settings.
#[derive(Clone, Default, Args)]
pub(crate) struct ConfigFile {
    /// One API of several, as NAME=SPEC; all its tools begin with NAME_. tools, check, call, login,
    /// logout and bundle take NAME alone, which chooses one of the configuration file (repeatable)
    #[arg(
        long = "api",
        value_delimiter = ',',
        value_name = "NAME[=FILE|URL]",
        help_heading = "Document"
    )]
    pub(crate) api: Vec<String>,

    /// A YAML file with these settings; flags and variables are stronger
    #[arg(long, env = "OPENAPI_MCP_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl ConfigFile {
    /// Adds the APIs that are given with their documents, and gives the names that are chosen.
    pub(crate) fn add_to(
        &self,
        apis: &mut Vec<NamedSettings>,
        problems: &mut Problems,
    ) -> Vec<ApiName> {
        let mut chosen = Vec::new();
        for text in self.api.iter().filter(|text| !text.trim().is_empty()) {
            let (name, spec) = match text.split_once('=') {
                Some((name, spec)) => (name, Some(spec)),
                None => (text.as_str(), None),
            };
            let Some(name) = problems.ok("--api", ApiName::parse(name.trim())) else {
                continue;
            };
            match spec {
                None => chosen.push(name),
                Some(spec) => {
                    let mut new = NamedSettings::default();
                    new.api.document.spec = Some(spec.into());
                    problems.within("--api", |problems| add_api(apis, name, new, problems));
                }
            }
        }
        chosen
    }
}

/// Keeps the chosen APIs; those that do not exist are problems.
pub(crate) fn keep_chosen(
    apis: &mut Vec<NamedSettings>,
    chosen: &[ApiName],
    problems: &mut Problems,
) {
    for name in chosen {
        let known = apis.iter().filter_map(|api| api.name.as_ref());
        if !known.clone().any(|known| known == name) {
            let known = known.map(ApiName::as_str);
            let hint = match text::nearest(name.as_str(), known.clone(), 0.75) {
                Some(nearest) => format!("; did you mean `{nearest}`?"),
                None if apis.is_empty() => {
                    "; write --api NAME=SPEC, or name it under `apis` in the configuration file"
                        .into()
                }
                None => format!("; there is {}", known.collect::<Vec<_>>().join(", ")),
            };
            problems.push(format!("--api: there is no API `{name}`{hint}"));
        }
    }
    if !chosen.is_empty() {
        apis.retain(|api| api.name.as_ref().is_some_and(|name| chosen.contains(name)));
    }
}

/// Reports each setting of one API that cannot be used with several: ignoring it would surprise, and
/// without rules more could be called; applying it to all would send what is meant for one to the
/// others.
pub(crate) fn refuse_settings_of_one_api(
    api: &ApiSettings,
    rules: &FileRules,
    forward: &ForwardSettings,
    problems: &mut Problems,
) {
    let own = ApiSettings {
        common: CommonSettings::default(),
        // The introduction of the whole server.
        about: AboutSettings::default(),
        ..api.clone()
    };
    let of_rules = rules.written.keys();
    let of_rules = of_rules.map(|key| (format!("`{key}`"), key.clone()));
    for (name, key) in given_settings(&own)
        .into_iter()
        .chain(given_settings(forward))
        .chain(of_rules)
    {
        let variable = if name.starts_with("--") {
            format!(" (or OPENAPI_MCP_{})", key.to_ascii_uppercase())
        } else {
            String::new()
        };
        problems.push(format!(
            "{name}{variable} concerns one API, and there are several; put `{key}` under the API's name in `apis`"
        ));
    }
}
