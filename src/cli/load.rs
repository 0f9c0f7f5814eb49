//! From settings to an API that can be called: what `serve`, `tools` and `call` have in common.

use std::path::Path;
use std::sync::Arc;

use clap::CommandFactory;
use http::HeaderMap;

use super::Cli;
use super::log::{self, LogDelivery};
use crate::api::{Api, ApiOptions, BuildError, Destination};
use crate::config::settings::{ApiSettings, LogLevel, ServerSettings};
use crate::config::{self, Config, ConfigError};
use crate::error::Failure;
use crate::mock;
use crate::outbound::{self, Clients, OutboundOptions};
use crate::spec::document::{external, overlay};
use crate::spec::{Diagnostic, Document, ExternalReferences, Revision, Severity};
use crate::text::counted;

/// Reads and checks the settings, and starts logging.
///
/// Only `serve` has settings of a server; for the other commands what a file says of them does not count.
pub(crate) fn settings(
    api: &ApiSettings,
    server: Option<&ServerSettings>,
    file: Option<&Path>,
    level: LogLevel,
) -> Result<Config, Failure> {
    let mut problems = Vec::new();
    let (api, layered) = config::layered(api, server.unwrap_or(&ServerSettings::default()), file, &mut problems);
    let is_server = server.is_some();
    let server = if is_server { layered } else { ServerSettings::default() };
    let delivery = if is_server { LogDelivery::Queued } else { LogDelivery::Direct };
    log::start_logging(config::log_options(&api), level, delivery);
    for warning in config::variables::unknown_variables(&Cli::command()) {
        tracing::warn!("{warning}");
    }
    config::resolve_config(&api, &server, problems).map_err(Failure::Settings)
}

/// More findings than this are counted, not shown.
pub(crate) const MAX_LOGGED_LINES: usize = 50;

/// Whether the API is going to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadPurpose {
    Serve,
    Inspect,
}

/// An API, and what it stands on.
pub(crate) struct Loaded {
    pub(crate) api: Api,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What its calls go to under `--mock`; it must live as long as they may come.
    pub(crate) mock: Option<mock::Running>,
    /// Everything that was read, where somebody wants to know later whether it changed.
    pub(crate) seen: Vec<Revision>,
}

/// Reads the document and builds the API, for as long as the process lives.
pub(crate) async fn api(config: &Config, purpose: LoadPurpose) -> Result<(Api, Vec<Diagnostic>), Failure> {
    if purpose == LoadPurpose::Serve {
        caution(config);
    }
    let loaded = all(config, purpose).await?;
    std::mem::forget(loaded.mock);
    Ok((loaded.api, loaded.diagnostics))
}

/// Says what an operator should have in mind for as long as calls are made.
pub(crate) fn caution(config: &Config) {
    if config.outbound.insecure && !config.mock {
        tracing::warn!(
            "--insecure-upstream: the API's certificate is NOT CHECKED; whoever is on the way can read and change every call, credentials included"
        );
    }
}

/// Reads the document and builds the API.
pub(crate) async fn all(config: &Config, purpose: LoadPurpose) -> Result<Loaded, Failure> {
    // A look at a file calls nobody.
    let local = purpose == LoadPurpose::Inspect
        && config.external_references != ExternalReferences::Any
        && config.source.url().is_none()
        && config.overlays.iter().all(|overlay| overlay.url().is_none());
    let outbound = OutboundOptions {
        tls: config.outbound.tls && !local,
        ..config.outbound.clone()
    };
    let client = outbound::http_client(&outbound.for_others()).map_err(Failure::Outbound)?;
    let found = config
        .source
        .read_from(&client, &config.source_headers)
        .await
        .map_err(Failure::Read)?;
    let mut seen = Vec::new();
    if config.reload.is_some() {
        let headers = config.source_headers.clone();
        seen.push(Revision::new(config.source.clone(), headers, &found.bytes, found.validators));
    }
    let source = found.source;
    let (bytes, mut unread) = overlaid(config, found.bytes, &client, &mut seen).await?;
    let mut document = Document::parse(bytes, source.url()).map_err(|error| Failure::Document {
        source_name: config.source.to_string(),
        error,
    })?;
    unread.extend(external::complete(&mut document, &source, config.external_references, &client, &config.source_headers).await);
    seen.extend(document.seen().iter().filter(|_| config.reload.is_some()).cloned());
    let document = Arc::new(document);
    let mut mock = None;
    if purpose == LoadPurpose::Serve && config.mock {
        let running = mock::start_mock(Arc::clone(&document)).await;
        mock = Some(running.map_err(|error| Failure::Io("the mock cannot be started".into(), error))?);
    }
    let fixed = mock.as_ref().map(mock::Running::url).or(config.base_url.as_ref());
    let destination = match (purpose, fixed) {
        (LoadPurpose::Inspect, _) => Destination::Nowhere,
        (LoadPurpose::Serve, Some(url)) => Destination::Fixed(url.clone()),
        (LoadPurpose::Serve, None) => Destination::Declared(config.server.clone()),
    };
    let options = ApiOptions {
        annotate: config.annotate.clone(),
        destination,
        headers: config.headers.clone(),
        // A mock lets everybody in.
        credentials: (!config.mock).then(|| config.credentials.clone()),
        forward: config.forward.clone(),
        secrets: config.outbound.proxy.iter().filter_map(|proxy| proxy.credential.clone()).collect(),
        call: config.call.clone(),
        sandbox: config.sandbox.clone(),
        upstream: config.upstream.clone(),
    };
    let mut clients = Clients::from(client);
    if purpose == LoadPurpose::Serve && !config.mock {
        if outbound.sets_the_api_apart() {
            clients.own = outbound::http_client(&outbound).map_err(Failure::Outbound)?;
        }
    } else if outbound.proxy.is_some() {
        // The mock is inside this process, where no proxy leads.
        let direct = OutboundOptions {
            proxy: None,
            ..outbound.for_others()
        };
        clients = outbound::http_client(&direct).map_err(Failure::Outbound)?.into();
    }
    let (api, mut diagnostics) = Api::build(document, options, clients).map_err(build_failure)?;
    diagnostics.extend(unread);
    diagnostics.extend(api.document().remarks());
    report(api.document(), &diagnostics);
    let loose = diagnostics.iter().filter(|diagnostic| diagnostic.severity > Severity::Note).count();
    if config.strict && purpose == LoadPurpose::Serve && loose > 0 {
        return Err(Failure::Strict {
            source_name: config.source.to_string(),
            findings: loose,
        });
    }
    Ok(Loaded {
        api,
        diagnostics,
        mock,
        seen,
    })
}

fn build_failure(error: BuildError) -> Failure {
    match error {
        BuildError::Server(error) => Failure::Server(error),
        BuildError::Patterns(problems) => Failure::Settings(ConfigError(problems)),
    }
}

/// The document's bytes with all overlays applied; as they are where there is none.
async fn overlaid(
    config: &Config,
    bytes: Vec<u8>,
    client: &reqwest::Client,
    seen: &mut Vec<Revision>,
) -> Result<(Vec<u8>, Vec<Diagnostic>), Failure> {
    if config.overlays.is_empty() {
        return Ok((bytes, Vec::new()));
    }
    let mut overlays = Vec::with_capacity(config.overlays.len());
    for source in &config.overlays {
        let found = source.read_from(client, &HeaderMap::new()).await.map_err(Failure::Read)?;
        if config.reload.is_some() {
            seen.push(Revision::new(source.clone(), HeaderMap::new(), &found.bytes, found.validators));
        }
        overlays.push((source.to_string(), found.bytes));
    }
    overlay::apply_overlays(bytes, overlays).map_err(|(source_name, error)| Failure::Overlay { source_name, error })
}

/// An error and its causes, for a line of the log.
pub(crate) fn in_a_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string().replace('\n', "; ");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Says what was left out: each lost operation, and how many remarks there are besides.
fn report(document: &Document, diagnostics: &[Diagnostic]) {
    let shown = |diagnostics: &[&Diagnostic]| -> Vec<String> {
        let places = document.places_of(diagnostics).into_iter();
        let line = |(diagnostic, place): (&&Diagnostic, _)| match place {
            Some(("", line, column)) => format!("{} (line {line}, column {column}): {}", diagnostic.pointer, diagnostic.message),
            Some((file, line, column)) => format!(
                "{} ({file}, line {line}, column {column}): {}",
                diagnostic.pointer, diagnostic.message
            ),
            None => diagnostic.to_string(),
        };
        diagnostics.iter().zip(places).map(line).collect()
    };
    let first = |diagnostics: &[&Diagnostic]| shown(diagnostics.get(..MAX_LOGGED_LINES).unwrap_or(diagnostics));
    for note in diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Note) {
        tracing::info!("{}", note.message);
    }
    let (errors, remarks): (Vec<_>, Vec<_>) = diagnostics.iter().partition(|diagnostic| diagnostic.severity == Severity::Error);
    for line in first(&errors) {
        tracing::warn!("{line}");
    }
    if errors.len() > MAX_LOGGED_LINES {
        tracing::warn!("and {} more operations are left out", errors.len() - MAX_LOGGED_LINES);
    }
    // What the operator said is for the operator to see: it points to no place of the document.
    let (said, remarks): (Vec<_>, Vec<_>) = remarks
        .into_iter()
        .partition(|diagnostic| diagnostic.severity == Severity::Warning && diagnostic.pointer == "#");
    for diagnostic in said {
        tracing::warn!("{}", diagnostic.message);
    }
    if tracing::enabled!(tracing::Level::DEBUG) {
        for line in first(&remarks) {
            tracing::debug!("{line}");
        }
    } else if !remarks.is_empty() {
        let count = remarks.len();
        tracing::info!("{} on the document; --log-level debug shows them", counted(count, "remark"));
    }
}
