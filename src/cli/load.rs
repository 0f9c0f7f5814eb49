//! From settings to an API that can be called: what `serve`, `tools` and `call` have in common.

use std::path::Path;

use super::log;
use crate::api::{Api, ApiOptions, Destination};
use crate::config::settings::{ApiSettings, LogLevel, ServerSettings};
use crate::config::{self, Config};
use crate::error::Failure;
use crate::spec::{Diagnostic, Document, Severity};
use crate::{mock, outbound};

/// Reads and checks the settings, and starts logging.
pub(super) fn settings(api: &ApiSettings, server: &ServerSettings, file: Option<&Path>, level: LogLevel) -> Result<Config, Failure> {
    let mut problems = Vec::new();
    let (api, server) = config::layered(api, server, file, &mut problems);
    log::start(config::log_options(&api), level);
    config::resolve(&api, &server, problems).map_err(Failure::Settings)
}

/// Whether the API is going to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Calls,
    Looks,
}

/// Reads the document and builds the API.
pub(super) async fn api(config: &Config, purpose: Purpose) -> Result<(Api, Vec<Diagnostic>), Failure> {
    let client = outbound::client(&config.outbound).map_err(Failure::Outbound)?;
    let bytes = config.source.read(&client).await.map_err(Failure::Read)?;
    let unreadable = |error| Failure::Document {
        source_name: config.source.to_string(),
        error,
    };
    let mocked = config.mock && purpose == Purpose::Calls;
    let twin = mocked.then(|| bytes.clone());
    let document = Document::parse(bytes, config.source.url()).map_err(unreadable)?;
    let destination = match (purpose, &config.base_url, twin) {
        (Purpose::Looks, ..) => Destination::Nowhere,
        (Purpose::Calls, _, Some(bytes)) => {
            let document = Document::parse(bytes, None).map_err(unreadable)?;
            Destination::Fixed(
                mock::start(document)
                    .await
                    .map_err(|error| Failure::Io("the mock cannot be started".into(), error))?,
            )
        }
        (Purpose::Calls, Some(url), None) => Destination::Fixed(url.clone()),
        (Purpose::Calls, None, None) => Destination::Declared,
    };
    let options = ApiOptions {
        annotate: config.annotate.clone(),
        destination,
        headers: config.headers.clone(),
        call: config.call.clone(),
    };
    let (api, diagnostics) = Api::build(document, options, client).map_err(Failure::Server)?;
    report(&diagnostics);
    Ok((api, diagnostics))
}

/// Says what was left out: each lost operation, and how many remarks there are besides.
fn report(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        match diagnostic.severity {
            Severity::Error => tracing::warn!("{diagnostic}"),
            Severity::Warning => tracing::debug!("{diagnostic}"),
        }
    }
    let remarks = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Warning)
        .count();
    if remarks > 0 {
        tracing::info!("{remarks} remarks on the document; --log-level debug shows them");
    }
}
