//! The MCP side: tools listed and called over stdio and streamable HTTP, in both protocol eras. Knows only the API.

mod auth;
mod confirm;
mod guard;
pub mod http;
mod keys;
mod limits;
mod lines;
mod message;
mod oauth;
mod patient;
mod sessions;
mod splice;
pub mod stdio;
mod tls;
mod token;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorData, Implementation, ListToolsResult,
    MetaObject, PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, model::ErrorCode};
use serde_json::json;
use tokio::sync::SetOnce;
use tokio_util::task::TaskTracker;

use crate::api::{Api, Caller, Confirm, Offered, must_confirm};
use crate::proxy::Progress;
use crate::spec::text;
use confirm::Confirmation;

/// Clients may keep the list for five minutes: it only changes when the server is started anew.
const LIST_TTL_MS: u64 = 300_000;
/// A client that does not take a notification for this long gets no more of them: after the end of stdin nobody drains
/// the queue, and an unbounded wait would lose the answer itself.
const NOTIFY_PATIENCE: Duration = Duration::from_millis(100);

/// The handler of one client, or of one request where there are no sessions: a cheap clone.
///
/// The API may still be on its way when the first client arrives: the handshake is answered at once, and what needs the
/// tools waits for them.
#[derive(Clone)]
pub struct McpServer {
    served: Arc<SetOnce<Result<Served, String>>>,
    /// What `tools/list` answers; see [`splice`].
    list: splice::List,
    calls: TaskTracker,
    /// Where a person is asked about calls first.
    confirmation: Option<Arc<Confirmation>>,
}

/// What is served, once it is there.
struct Served {
    api: Arc<Api>,
    config: ServerConfig,
}

impl McpServer {
    /// A server that waits for its API.
    #[must_use]
    pub fn pending() -> Self {
        Self {
            served: Arc::new(SetOnce::new()),
            list: splice::List::default(),
            calls: TaskTracker::new(),
            confirmation: None,
        }
    }

    /// The same, but it asks a person before calls are made.
    #[must_use]
    pub fn with_confirm(mut self, confirm: Confirm) -> Self {
        self.confirmation = (confirm != Confirm::None).then(|| Arc::new(Confirmation::new(confirm)));
        self
    }

    /// A server for the tools of `api`.
    #[must_use]
    pub fn new(api: Arc<Api>) -> Self {
        let server = Self::pending();
        server.ready(api);
        server
    }

    /// Gives a pending server its API; only the first one counts.
    pub fn ready(&self, api: Arc<Api>) {
        let config = config(Some(&api));
        let _ = self.list.set(Arc::clone(&api));
        let _ = self.served.set(Ok(Served { api, config }));
    }

    /// Tells a pending server that its API will never come: what waits for it, and what comes yet, is answered with `why`,
    /// a sentence for a model.
    pub fn fail(&self, why: &str) {
        let _ = self.served.set(Err(why.to_owned()));
    }

    /// Whether the API is there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.served.get(), Some(Ok(_)))
    }

    /// The calls in flight; waiting for it to empty is a clean end.
    #[must_use]
    pub fn calls(&self) -> &TaskTracker {
        &self.calls
    }

    async fn api(&self) -> Result<&Arc<Api>, ErrorData> {
        match self.served.wait().await {
            Ok(served) => Ok(&served.api),
            Err(why) => Err(ErrorData::internal_error(why.clone(), None)),
        }
    }

    /// Asks the person behind the client about a call; `None` is a yes, and anything else the answer to the call.
    async fn confirmed(
        &self,
        confirmation: &Confirmation,
        offered: Offered<'_>,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        // Nobody is asked about a call that could not be made.
        let line = match self.api().await?.prepare(&request.name, request.arguments.clone()) {
            Some(Ok(prepared)) => {
                let query = prepared.url.query().map(|query| format!("?{query}")).unwrap_or_default();
                format!("{} {}{query}", prepared.method, prepared.url.path())
            }
            Some(Err(wrong)) => return Ok(Some((*wrong).into())),
            None => return Ok(None),
        };
        Ok(match confirm::ask(confirmation, offered, &line, request, context).await {
            confirm::Verdict::Yes => None,
            confirm::Verdict::Ask(question) => Some((*question).into()),
            confirm::Verdict::No(mut refusal) => {
                refusal.meta = meta(context);
                Some((*refusal).into())
            }
        })
    }
}

fn config(api: Option<&Api>) -> ServerConfig {
    // Prompts, resources and completions are declared, and empty: clients that ask anyway get a clean answer.
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_prompts()
        .enable_resources()
        .enable_completions()
        .build();
    let info = Implementation::new("openapi-mcp", env!("CARGO_PKG_VERSION"));
    let Some(document) = api.map(Api::document) else {
        return ServerConfig::new(capabilities).with_server_info(info);
    };
    let title = text::cut(&text::one_line(document.title()), 200);
    let version = document
        .api_version()
        .map(|version| format!(" {}", text::one_line(version)))
        .unwrap_or_default();
    let about = document
        .description()
        .map(|about| format!("\n\n{}", text::clean(about)))
        .unwrap_or_default();
    let instructions = format!("Tools for {title}{version}; each makes one HTTP request to that API.{about}");
    ServerConfig::new(capabilities)
        .with_server_info(info.with_title(title))
        .with_instructions(text::cut(&instructions, text::LONGEST_DESCRIPTION))
}

/// 2026-07-28: results SHOULD name the server in `_meta`. Older clients do not know the key.
fn meta(context: &RequestContext<RoleServer>) -> Option<MetaObject> {
    let modern = context.meta.protocol_version().is_some();
    modern.then(|| {
        let mut meta = MetaObject::new();
        meta.insert(
            "io.modelcontextprotocol/serverInfo".into(),
            json!({ "name": "openapi-mcp", "version": env!("CARGO_PKG_VERSION") }),
        );
        meta
    })
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        match self.served.get() {
            Some(Ok(served)) => served.config.clone(),
            _ => config(None),
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // One page by default: several clients read only the first. A cursor can then only be made up.
        if request.and_then(|request| request.cursor).is_some() {
            return Err(ErrorData::invalid_params("unknown cursor: the list has one page", None));
        }
        let _in_flight = self.calls.token();
        let tools = if self.api().await?.tools().is_empty() {
            Vec::new()
        } else {
            vec![splice::stand_in()]
        };
        let mut result = ListToolsResult::with_all_items(tools)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public);
        result.meta = meta(&context);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Err(ErrorData::invalid_params(
            "there are no resources here",
            Some(json!({ "uri": request.uri })),
        ))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let reporter = context
            .meta
            .get_progress_token()
            .map(|token| Reporter::new(context.peer.clone(), token));
        let report = reporter
            .as_ref()
            .map(|reporter| move |done, total| reporter.report(done, total).boxed());
        let progress: Option<Progress<'_>> = report.as_ref().map(|report| report as _);
        if let Some(confirmation) = &self.confirmation
            && let Some(offered) = self.api().await?.get(&request.name)
            && must_confirm(offered.hints, confirmation.which)
            && let Some(answer) = self.confirmed(confirmation, offered, &request, &context).await?
        {
            return Ok(answer);
        }
        // While a person thinks, nothing is in flight that an end would have to wait for.
        let _in_flight = self.calls.token();
        let caller = Caller {
            progress,
            headers: context.extensions.get::<::http::request::Parts>().map(|parts| &parts.headers),
        };
        // rmcp does not end a cancelled handler by itself; dropping the call closes the request upstream.
        let result = tokio::select! {
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
            result = async { Ok(self.api().await?.call(&request.name, request.arguments, caller).await) } => result?,
        };
        let Some(mut result) = result else {
            let hint = self
                .api()
                .await?
                .nearest(&request.name)
                .map(|name| format!("; did you mean {name}?"))
                .unwrap_or_default();
            return Err(ErrorData::invalid_params(
                format!("Unknown tool: {}{hint}", text::cut(&text::one_line(&request.name), 128)),
                None,
            ));
        };
        result.meta = meta(&context);
        Ok(result.into())
    }

    /// rmcp takes a malformed `tools/call` for an unknown method; the method is known, its parameters are wrong.
    async fn on_custom_request(&self, request: CustomRequest, _context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        if matches!(request.method.as_str(), "tools/call" | "tools/list") {
            return Err(ErrorData::invalid_params(
                format!("the parameters of {} are not valid", request.method),
                None,
            ));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}

/// Reports progress to the client that asked for it.
struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// Set once the client did not take a notification in time.
    silent: std::sync::atomic::AtomicBool,
}

impl Reporter {
    fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self {
            peer,
            token,
            silent: std::sync::atomic::AtomicBool::new(false),
        }
    }

    async fn report(&self, done: u64, total: Option<u64>) {
        use std::sync::atomic::Ordering::Relaxed;
        if self.silent.load(Relaxed) {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "bytes of one reply stay far below 2^53")]
        let (done, total) = (done as f64, total.map(|total| total as f64));
        let mut progress = ProgressNotificationParam::new(self.token.clone(), done);
        progress.total = total;
        if tokio::time::timeout(NOTIFY_PATIENCE, self.peer.notify_progress(progress))
            .await
            .is_err()
        {
            self.silent.store(true, Relaxed);
        }
    }
}
