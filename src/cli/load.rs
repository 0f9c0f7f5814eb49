//! Loading of an API by its settings, for all commands.

use std::sync::{Arc, LazyLock};

use tokio::sync::Semaphore;

use crate::annotate::options::ListExtent;
use crate::api::{Api, ApiOptions, BuildError};
use crate::config::ApiConfig;
use crate::error::Failure;
use crate::mcp::api_slot::ListMode;
use crate::mock;
use crate::outbound::{self, Clients, HttpClient, OutboundOptions};
use crate::proxy::Destination;
use crate::spec::document::source::{FetchedSource, redacted};
use crate::spec::document::web_page::is_web_page;
use crate::spec::document::{discovery, external, overlay};
use crate::spec::{Diagnostic, Document, ReadError, Revision, Severity, SourceReader};
use crate::text::counted;

/// More findings than this are counted, not shown.
pub(crate) const MAX_LOGGED_LINES: usize = 50;

/// The span of what concerns one API, so that each line of the log about one of several names it.
pub(crate) fn span_of(config: &ApiConfig) -> tracing::Span {
    match &config.options.name {
        // A field called `name` would be a second key of that name in the JSON of the log.
        Some(name) => tracing::info_span!("document", api = %name),
        None => tracing::Span::none(),
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Server(error) => Self::Server(error),
            BuildError::Patterns(problems) | BuildError::CredentialSettings(problems) => {
                Self::Settings(problems.into())
            }
        }
    }
}

/// Purpose for which an API is loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadPurpose {
    Serve {
        /// True if clients have a list of all tools, which stays one when the document changes.
        lists_all: bool,
    },
    Inspect,
}

impl LoadPurpose {
    /// To serve the API for the first time.
    pub(crate) const SERVE: Self = Self::Serve { lists_all: false };
}

/// An API, and what it depends on.
pub(crate) struct Loaded {
    pub(crate) api: Arc<Api>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Mock that its calls go to under `--mock`; it must live as long as calls are made.
    pub(crate) mock: Option<mock::Running>,
    /// Revisions of all that was read, if it will be watched for changes.
    pub(crate) seen: Vec<Revision>,
}

/// Warns if the certificate of an API is not checked, which puts every call at risk.
pub(crate) fn warn_about_insecure_upstream(config: &ApiConfig) {
    if config.outbound.insecure && !config.mock {
        tracing::warn!(
            "--insecure-upstream: the API's certificate is NOT CHECKED; an attacker on the network can read and change every call, credentials included"
        );
    }
}

/// Reads the document and builds the API.
pub(crate) async fn load_api(config: &ApiConfig, purpose: LoadPurpose) -> Result<Loaded, Failure> {
    let outbound = outbound_options(config, purpose);
    let client = outbound::http_client(&outbound.for_others())?;
    let DocumentRead {
        document,
        unread,
        seen,
    } = read_document(config, &client).await?;
    let mock = if purpose != LoadPurpose::Inspect && config.mock {
        let running = mock::start_mock(Arc::clone(&document)).await;
        Some(running.map_err(|error| Failure::Io("the mock cannot be started".into(), error))?)
    } else {
        None
    };
    let options = api_options(config, purpose, mock.as_ref());
    let clients = api_clients(client, config, purpose, &outbound)?;
    let built = run_long(|| Api::build(document, options, clients)).await;
    let (api, mut diagnostics) = built?;
    diagnostics.extend(unread);
    diagnostics.extend(api.document().remarks());
    report(api.document(), &diagnostics);
    if config.strict && purpose != LoadPurpose::Inspect {
        refuse_findings(config, &diagnostics)?;
    }
    Ok(Loaded {
        api: Arc::new(api),
        diagnostics,
        mock,
        seen,
    })
}

/// Runs what takes long without awaiting anything, such as the work on a large document: everything
/// else goes on meanwhile. At most as many documents are worked on as there are processors; more
/// would take more memory, and none would be ready earlier.
async fn run_long<T>(work: impl FnOnce() -> T) -> T {
    static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Semaphore::new(processors)
    });
    // The semaphore is never closed.
    let _place = PLACES.acquire().await.ok();
    tokio::task::block_in_place(work)
}

/// Returns the options of connections, without TLS if a local file is only inspected, because no
/// connection is made.
fn outbound_options(config: &ApiConfig, purpose: LoadPurpose) -> OutboundOptions {
    let is_local = purpose == LoadPurpose::Inspect && !config.document.may_connect(|_| true);
    OutboundOptions {
        tls: config.outbound.tls && !is_local,
        ..config.outbound.clone()
    }
}

/// A document with its overlays and the other files that it refers to.
struct DocumentRead {
    document: Arc<Document>,
    /// Diagnostics about the parts that could not be read.
    unread: Vec<Diagnostic>,
    /// Revisions of all that was read, if it will be watched for changes.
    seen: Vec<Revision>,
}

async fn read_document(config: &ApiConfig, client: &HttpClient) -> Result<DocumentRead, Failure> {
    let reader = config.document.reader(client);
    let read = reader.read(&config.document.source).await;
    let found = found_document(config, &reader, read).await?;
    let mut seen = Vec::new();
    if config.reload.is_some() {
        // Reloads ask the address that was found.
        seen.push(Revision::new(found.source.clone(), reader.clone(), &found));
    }
    let source = found.source;
    let (bytes, mut unread) =
        overlaid(config, found.bytes, &reader.without_headers(), &mut seen).await?;
    let parsed = run_long(|| Document::parse(bytes, source.url())).await;
    let mut document = parsed.map_err(|error| {
        if source.url().is_some() && error.is_other_format {
            tracing::warn!(
                "give the address of the document itself, which many servers have at /openapi.json"
            );
        }
        Failure::Document {
            source_name: config.document.source.to_string(),
            error,
        }
    })?;
    let policy = config.document.external_references;
    unread.extend(external::complete_document(&mut document, &source, policy, &reader).await);
    if config.reload.is_some() {
        seen.append(&mut document.seen);
    }
    Ok(DocumentRead {
        document: Arc::new(document),
        unread,
        seen,
    })
}

/// Returns what was read. If that is a web page, or nothing at the address of a site, returns the
/// document that is found on its origin.
async fn found_document(
    config: &ApiConfig,
    reader: &SourceReader,
    read: Result<FetchedSource, ReadError>,
) -> Result<FetchedSource, ReadError> {
    let named = &config.document.source;
    let page: &FetchedSource = match &read {
        Ok(found) if named.url().is_some() && is_web_page(&found.bytes) => found,
        Err(ReadError {
            page: Some(page), ..
        }) => page,
        _ => return read,
    };
    if config.strict {
        tracing::warn!("{named} is not a document; because of `strict`, none is looked for");
        return page.redirected_page(named).map_or(read, Err);
    }
    let searched = discovery::discover(reader, page).await;
    for link in &searched.elsewhere {
        tracing::warn!(
            "the site names a document on another origin, which is not fetched: {}",
            redacted(link)
        );
    }
    let Some(found) = searched.found else {
        let tried: Vec<&str> = searched.tried.iter().map(url::Url::path).collect();
        tracing::warn!(
            "{named} is not a document, and there is none at {}",
            tried.join(", ")
        );
        return page.redirected_page(named).map_or(read, Err);
    };
    tracing::warn!(
        "{named} is not a document; the document is {}, which --spec can name",
        found.source
    );
    Ok(found)
}

fn api_options(
    config: &ApiConfig,
    purpose: LoadPurpose,
    mock: Option<&mock::Running>,
) -> ApiOptions {
    let fixed = mock.map(|mock| &mock.url).or(config.base_url.as_ref());
    let mut options = config.options.clone();
    options.annotate.extent = list_extent(config, purpose);
    if mock.is_some() || config.mock {
        options.tenants = None;
    }
    // A mock needs no credentials, and tenants have their own.
    if config.mock || options.tenants.is_some() {
        options.credentials = None;
    }
    options.destination = match (purpose, fixed) {
        (LoadPurpose::Inspect, _) => Destination::Nowhere,
        (LoadPurpose::Serve { .. }, _) if options.tenants.is_some() => Destination::Nowhere,
        (LoadPurpose::Serve { .. }, Some(url)) => Destination::Fixed(url.clone()),
        (LoadPurpose::Serve { .. }, None) => Destination::Declared(config.server.clone()),
    };
    options
}

/// Returns the tools that a server lists. Under `strict`, all parts that are read loosely must be
/// known at start.
fn list_extent(config: &ApiConfig, purpose: LoadPurpose) -> ListExtent {
    let list = &config.list;
    let needs_all = match purpose {
        LoadPurpose::Serve { lists_all } => lists_all || config.strict,
        LoadPurpose::Inspect => true,
    };
    match list.mode {
        _ if needs_all => ListExtent::All,
        ListMode::Search => ListExtent::Pinned(list.pins.clone()),
        ListMode::Unset => ListExtent::AllOrPinned(list.pins.clone()),
        ListMode::All | ListMode::Auto => ListExtent::All,
    }
}

/// The clients of an API, of which `client` is the one for all other purposes.
fn api_clients(
    client: HttpClient,
    config: &ApiConfig,
    purpose: LoadPurpose,
    outbound: &OutboundOptions,
) -> Result<Clients, Failure> {
    let is_real = purpose != LoadPurpose::Inspect && !config.mock;
    if is_real && outbound.sets_the_api_apart() {
        return Ok(Clients {
            own: outbound::http_client(outbound)?,
            ..Clients::from(client)
        });
    }
    if !is_real && outbound.proxy.is_some() {
        // The mock is inside this process; a proxy cannot reach it.
        let direct = OutboundOptions {
            proxy: None,
            ..outbound.for_others()
        };
        return Ok(outbound::http_client(&direct)?.into());
    }
    Ok(client.into())
}

/// `strict`: every finding that is more than a note is one too many.
fn refuse_findings(config: &ApiConfig, diagnostics: &[Diagnostic]) -> Result<(), Failure> {
    let findings = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity > Severity::Note)
        .count();
    if findings == 0 {
        return Ok(());
    }
    Err(Failure::Strict {
        source_name: config.document.source.to_string(),
        findings,
    })
}

/// Returns the document's bytes with all overlays applied; as they are if there is none.
async fn overlaid(
    config: &ApiConfig,
    bytes: Vec<u8>,
    reader: &SourceReader,
    seen: &mut Vec<Revision>,
) -> Result<(Vec<u8>, Vec<Diagnostic>), Failure> {
    if config.document.overlays.is_empty() {
        return Ok((bytes, Vec::new()));
    }
    let mut overlays = Vec::with_capacity(config.document.overlays.len());
    for source in &config.document.overlays {
        let found = reader.read(source).await?;
        if config.reload.is_some() {
            seen.push(Revision::new(source.clone(), reader.clone(), &found));
        }
        overlays.push((source.to_string(), found.bytes));
    }
    overlay::apply_overlays(bytes, overlays)
        .map_err(|(source_name, error)| Failure::Overlay { source_name, error })
}

/// Reports what was left out: each lost operation, and how many remarks there are besides.
fn report(document: &Document, diagnostics: &[Diagnostic]) {
    let shown = |diagnostics: &[&Diagnostic]| -> Vec<String> {
        let places = document.places_of(diagnostics).into_iter();
        let line = |(diagnostic, place): (&&Diagnostic, _)| match place {
            Some(("", line, column)) => format!(
                "{} (line {line}, column {column}): {}",
                diagnostic.pointer, diagnostic.message
            ),
            Some((file, line, column)) => format!(
                "{} ({file}, line {line}, column {column}): {}",
                diagnostic.pointer, diagnostic.message
            ),
            None => diagnostic.to_string(),
        };
        diagnostics.iter().zip(places).map(line).collect()
    };
    let first = |diagnostics: &[&Diagnostic]| {
        shown(diagnostics.get(..MAX_LOGGED_LINES).unwrap_or(diagnostics))
    };
    for note in diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Note)
    {
        tracing::info!("{}", note.message);
    }
    let (errors, remarks): (Vec<_>, Vec<_>) = diagnostics
        .iter()
        .partition(|diagnostic| diagnostic.severity == Severity::Error);
    for line in first(&errors) {
        tracing::warn!("{line}");
    }
    if errors.len() > MAX_LOGGED_LINES {
        tracing::warn!(
            "and {} more operations are left out",
            errors.len() - MAX_LOGGED_LINES
        );
    }
    // What concerns the operator's own settings has no place in the document.
    let (said, remarks): (Vec<_>, Vec<_>) = remarks.into_iter().partition(|diagnostic| {
        diagnostic.severity == Severity::Warning && diagnostic.pointer == "#"
    });
    for diagnostic in said {
        tracing::warn!("{}", diagnostic.message);
    }
    if tracing::enabled!(tracing::Level::DEBUG) {
        for line in first(&remarks) {
            tracing::debug!("{line}");
        }
    } else if !remarks.is_empty() {
        let count = remarks.len();
        tracing::info!(
            "{} on the document; --log-level debug shows them",
            counted(count, "remark")
        );
    }
}
