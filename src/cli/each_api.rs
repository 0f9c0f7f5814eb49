//! One command for several APIs: all of them loaded at once, each for itself.

use std::sync::Arc;

use futures_util::future::try_join_all;
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::load::{self, LoadPurpose, Loaded};
use crate::api::about::About;
use crate::api::clashes::clashes_with;
use crate::api::{Api, ApiName};
use crate::config::{ApiConfig, Problems};
use crate::error::Failure;
use crate::mcp::api_slot::ApiSlot;
use crate::mcp::catalog::Catalog;
use crate::mcp::endpoints::served_apis::ServedApis;
use crate::outbound::OutboundError;
use crate::text;

/// Exit code if a document of several could not be read.
pub(crate) const UNREADABLE: u8 = 3;

/// An API with its settings.
pub(crate) type ConfiguredApi = (Arc<ApiConfig>, Loaded);

/// The APIs that could be loaded, and whether all could.
pub(crate) struct LoadedApis {
    pub(crate) apis: Vec<ConfiguredApi>,
    pub(crate) is_complete: bool,
}

/// The failure of a load that broke off.
pub(crate) fn load_broke(error: JoinError) -> Failure {
    Failure::Io("a document cannot be loaded".into(), error.into())
}

/// The failure of an API of several that costs that one alone; wrong settings are pushed to
/// `problems`.
///
/// # Errors
/// The failure of the only API.
pub(crate) fn own_failure(
    config: &ApiConfig,
    failure: Failure,
    problems: &mut Problems,
) -> Result<Option<Failure>, Failure> {
    let name = config.options.name.as_ref();
    let own = match failure {
        failure if name.is_none() => return Err(failure),
        Failure::Settings(own) => own,
        Failure::Outbound(OutboundError::Identity(_)) => {
            vec![text::error_in_a_line(&failure)].into()
        }
        failure => return Ok(Some(failure)),
    };
    problems.of_api(name, |problems| problems.extend(own));
    Ok(None)
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
    let configs: Vec<Arc<ApiConfig>> = configs.into_iter().map(Arc::new).collect();
    let begin = |config: &Arc<ApiConfig>| {
        let (span, config) = (load::span_of(config), Arc::clone(config));
        let loading = async move { load::load_api(&config, purpose).await };
        AbortOnDropHandle::new(tokio::spawn(loading.instrument(span)))
    };
    let outcomes = try_join_all(configs.iter().map(begin)).await;
    let (mut apis, mut problems, mut lost) = (Vec::new(), Problems::default(), None);
    for (config, outcome) in configs.into_iter().zip(outcomes.map_err(load_broke)?) {
        match outcome {
            Ok(loaded) => {
                let others = apis
                    .iter()
                    .map(|(_, other): &(_, Loaded)| other.api.as_ref());
                problems.extend(clashes_with(&loaded.api, others));
                apis.push((config, loaded));
            }
            Err(failure) => {
                let Some(failure) = own_failure(&config, failure, &mut problems)? else {
                    continue;
                };
                if let Some(name) = &config.options.name {
                    let why = text::error_in_a_line(&failure);
                    tracing::error!("the API `{name}` is left out: {why}");
                }
                lost = Some(failure);
            }
        }
    }
    problems.check()?;
    let is_complete = lost.is_none();
    match lost {
        Some(failure) if apis.is_empty() => Err(failure),
        _ => Ok(LoadedApis { apis, is_complete }),
    }
}

/// Makes the slot of an API: the facts that are known before its document is read.
pub(crate) fn slot_of(config: &ApiConfig) -> ApiSlot {
    ApiSlot {
        name: config.options.name.clone(),
        about: config.options.about.clone(),
        is_mock: config.mock,
        prefix: config.options.annotate.names.prefix.clone(),
        list: config.list.clone(),
        scopes: config.scopes.clone(),
        shares: Arc::clone(&config.options.annotate.shares),
        access_scopes: config
            .options
            .annotate
            .access
            .iter()
            .flat_map(|rule| rule.says.scopes.clone())
            .collect(),
    }
}

/// Makes the catalog of a server with these APIs at `/mcp`; `None` if there is no API.
///
/// # Errors
/// Names of tools clash.
pub(crate) fn catalog_of(apis: &[ConfiguredApi]) -> Result<Option<Arc<Catalog>>, Failure> {
    let served = ServedApis::new(
        apis.iter().map(|(config, _)| slot_of(config)).collect(),
        About::default(),
        None,
    );
    for (index, (_, loaded)) in apis.iter().enumerate() {
        let serving = served.serve(index, Arc::clone(&loaded.api));
        serving.map_err(Problems::from)?;
    }
    Ok(served.whole.state.served())
}

/// The names of all APIs, or the title of the only one.
pub(crate) fn title_of<'a>(mut apis: impl Iterator<Item = &'a Api> + Clone) -> String {
    let names = apis.clone().filter_map(Api::name).map(ApiName::as_str);
    match apis.next() {
        Some(api) if api.name().is_none() || apis.next().is_none() => api.title().to_owned(),
        _ => {
            let all: Vec<&str> = names.collect();
            format!("{} ({})", text::counted(all.len(), "API"), all.join(", "))
        }
    }
}
