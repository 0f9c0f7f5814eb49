//! `--api`: an API of a document (`NAME=SPEC`), or one that is chosen of several (`NAME`).

use clap::Args;

use super::named::{NamedSettings, add_api};
use crate::api::about::ApiName;
use crate::config::problems::Problems;
use crate::text;

/// `--api`, of every command that reads settings.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ApiChoice {
    /// One API of several, as NAME=SPEC; all its tools begin with NAME_. tools, check, call and
    /// bundle take NAME alone, which chooses one of the configuration file (repeatable)
    #[arg(
        long = "api",
        value_delimiter = ',',
        value_name = "NAME[=FILE|URL]",
        help_heading = "Document"
    )]
    pub(crate) api: Vec<String>,
}

impl ApiChoice {
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
