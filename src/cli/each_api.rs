//! One command for several APIs: all of them loaded at once, each for itself.

use std::sync::Arc;

use tracing::Instrument as _;

use super::load::{self, LoadPurpose, Loaded};
use super::start;
use crate::api::about::About;
use crate::api::clashes::clashes_with;
use crate::api::{Api, ApiName};
use crate::config::{ApiConfig, Problems};
use crate::error::Failure;
use crate::mcp::catalog::Catalog;
use crate::mcp::endpoints::paths::MCP_PATH;
use crate::mcp::endpoints::served_apis::ServedApis;
use crate::text;

/// Exit code if a document of several could not be read.
pub(crate) const UNREADABLE: u8 = 3;

/// The APIs that could be loaded, each with its settings, and whether all could.
pub(crate) struct LoadedApis {
    pub(crate) apis: Vec<(Arc<ApiConfig>, Loaded)>,
    pub(crate) is_complete: bool,
}

/// Loads all APIs at once. One of several that cannot be loaded is reported and left out.
///
/// # Errors
/// The failure of a single API; of several, wrong settings, names that clash, and that none can be
/// loaded.
pub(crate) async fn load_each(
    configs: Vec<ApiConfig>,
    purpose: LoadPurpose,
) -> Result<LoadedApis, Failure> {
    let is_single = configs.iter().any(|config| config.options.name.is_none());
    let loading: Vec<_> = configs
        .into_iter()
        .map(|config| {
            let (config, span) = (Arc::new(config), tracing::Span::none());
            let span = if is_single {
                span
            } else {
                load::span_of(&config)
            };
            let own = Arc::clone(&config);
            let load = async move { load::load_api(&own, purpose).await };
            (config, tokio::spawn(load.instrument(span)))
        })
        .collect();
    let (mut apis, mut failures, mut clashes) = (Vec::new(), Vec::new(), Vec::new());
    for (config, loading) in loading {
        let loaded = loading.await.unwrap_or_else(|error| {
            let why = std::io::Error::other(error);
            Err(Failure::Io("the document cannot be loaded".into(), why))
        });
        match loaded {
            Ok(loaded) => {
                let others = apis
                    .iter()
                    .map(|(_, other): &(_, Loaded)| other.api.as_ref());
                clashes.extend(clashes_with(&loaded.api, others));
                apis.push((config, loaded));
            }
            Err(failure) => failures.push((config, failure)),
        }
    }
    Problems::from(clashes).check()?;
    let is_complete = failures.is_empty();
    tell_failures(failures, apis.is_empty())?;
    Ok(LoadedApis { apis, is_complete })
}

/// Reports failures. Wrong settings end a command in any case; so does a failure of all.
fn tell_failures(failures: Vec<(Arc<ApiConfig>, Failure)>, is_all: bool) -> Result<(), Failure> {
    let mut problems = Problems::default();
    let mut last = None;
    for (config, failure) in failures {
        match (failure, &config.options.name) {
            (Failure::Settings(own), name @ Some(_)) => {
                problems.of_api(name.as_ref(), |problems| problems.extend(own));
            }
            (failure, None) => return Err(failure),
            (failure, Some(name)) => {
                let why = text::error_in_a_line(&failure);
                tracing::error!("the API `{name}` is left out: {why}");
                last = Some(failure);
            }
        }
    }
    problems.check()?;
    match last {
        Some(failure) if is_all => Err(failure),
        _ => Ok(()),
    }
}

/// Makes the catalog of a server with these APIs at `/mcp`; `None` if there is no API.
///
/// # Errors
/// Names of tools clash.
pub(crate) fn catalog_of(
    apis: &[(Arc<ApiConfig>, Loaded)],
) -> Result<Option<Arc<Catalog>>, Failure> {
    let served = ServedApis::new(
        apis.iter()
            .map(|(config, _)| start::slot_of(config))
            .collect(),
        About::default(),
        None,
    );
    for (index, (_, loaded)) in apis.iter().enumerate() {
        let serving = served.serve(index, Arc::clone(&loaded.api));
        serving.map_err(Problems::from)?;
    }
    Ok(served
        .endpoints
        .at(MCP_PATH)
        .and_then(|endpoint| endpoint.state.served()))
}

/// The names of all APIs, or the title of the only one.
pub(crate) fn title_of<'a>(mut apis: impl Iterator<Item = &'a Api> + Clone) -> String {
    let mut names = apis.clone().filter_map(Api::name).map(ApiName::as_str);
    match apis.next() {
        Some(api) if api.name().is_none() || apis.next().is_none() => api.title().to_owned(),
        _ => {
            let all: Vec<&str> = names.by_ref().collect();
            format!("{} ({})", text::counted(all.len(), "API"), all.join(", "))
        }
    }
}
