//! The MCP side: tools listed and called over stdio and streamable HTTP, in both protocol eras. Knows only the API.

mod auth;
mod confirm;
pub(crate) mod http;
pub(crate) mod jsonrpc;
pub(crate) mod state;
pub(crate) mod stdio;
pub(crate) mod tool_list;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, MetaObject, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, model::ErrorCode};
use serde_json::json;
use tokio_util::task::TaskTracker;

use self::confirm::Confirmation;
use self::state::{Changes, ServedApi, ServerState};
use crate::api::{Api, Caller, OfferedTool, OnMissingCredential};
use crate::proxy::Progress;
use crate::text;

/// For how long clients may keep the list at the most: five minutes.
const LIST_TTL: Duration = Duration::from_mins(5);
/// A client that does not take a notification for this long gets no more of them: after the end of stdin nobody drains
/// the queue, and an unbounded wait would lose the answer itself.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(100);

/// The handler of one client, or of one request where there are no sessions: a cheap clone.
///
/// The API may still be on its way when the first client arrives: the handshake is answered at once, and what needs the
/// tools waits for them. Afterwards it may become another one.
#[derive(Clone)]
pub struct McpServer {
    live: Arc<ServerState>,
    calls: TaskTracker,
    /// Where a person is asked about calls first.
    confirmation: Option<Arc<Confirmation>>,
    /// In a session, the changes since it began, until somebody tells its client of them.
    untold: Option<Arc<Mutex<Option<Changes>>>>,
}

impl McpServer {
    /// A server that waits for its API. `reload` says how often that may become another one afterwards, if at all.
    #[must_use]
    pub fn pending(reload: Option<Duration>) -> Self {
        Self {
            live: Arc::new(ServerState::pending(reload)),
            calls: TaskTracker::new(),
            confirmation: None,
            untold: None,
        }
    }

    /// The same, but with `asks` it asks a person before calls of the tools for which its APIs require that.
    #[must_use]
    pub fn with_confirm(mut self, asks: bool) -> Self {
        self.confirmation = asks.then(|| Arc::new(Confirmation::new()));
        self
    }

    /// A server for the tools of `api`.
    #[must_use]
    pub fn new(api: Arc<Api>) -> Self {
        let server = Self::pending(None);
        server.ready(api);
        server
    }

    /// Gives the server its API, or another one; calls in flight stay with the one that they began with. Clients that can be
    /// told are told where the list of tools is another one.
    pub fn ready(&self, api: Arc<Api>) {
        let config = server_config(Some(&api), self.live.reload.is_some());
        self.live.ready(ServedApi { api, config });
    }

    /// Tells a pending server that its API will never come: what waits for it, and what comes yet, is answered with `why`,
    /// a sentence for a model.
    pub fn fail(&self, why: &str) {
        self.live.fail(why);
    }

    /// Whether the API is there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.live.served().is_some()
    }

    /// The calls in flight; waiting for it to empty is a clean end.
    #[must_use]
    pub fn calls(&self) -> &TaskTracker {
        &self.calls
    }

    /// The handler of a session: a client that stays, and can be told of changes.
    fn of_session(&self) -> Self {
        Self {
            untold: Some(Arc::new(Mutex::new(Some(self.live.changes())))),
            ..self.clone()
        }
    }

    /// Asks the person behind the client about a call; `None` is a yes, and anything else the answer to the call.
    async fn confirmed(
        api: &Api,
        confirmation: &Confirmation,
        offered: OfferedTool<'_>,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        // Nobody is asked about a call that could not be made.
        let prepared = match api.prepare(&request.name, request.arguments.clone(), OnMissingCredential::Refuse) {
            Some(Ok(prepared)) => prepared,
            Some(Err(wrong)) => return Ok(Some((*wrong).into())),
            None => return Ok(None),
        };
        Ok(match confirm::ask(confirmation, offered, &prepared, request, context).await {
            confirm::Verdict::Yes => None,
            confirm::Verdict::Ask(question) => Some((*question).into()),
            confirm::Verdict::No(mut refusal) => {
                refusal.meta = meta(context);
                Some((*refusal).into())
            }
        })
    }
}

fn server_config(api: Option<&Api>, reloads: bool) -> ServerConfig {
    // Prompts, resources and completions are declared, and empty: clients that ask anyway get a clean answer.
    let mut capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_prompts()
        .enable_resources()
        .enable_completions()
        .build();
    if let Some(tools) = capabilities.tools.as_mut().filter(|_| reloads) {
        tools.list_changed = Some(true);
    }
    let info = Implementation::new("openapi-mcp", env!("CARGO_PKG_VERSION"));
    let Some(document) = api.map(Api::document) else {
        return ServerConfig::new(capabilities).with_server_info(info);
    };
    let title = text::truncate(&text::one_line(document.title()), 200);
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
        .with_instructions(text::truncate(&instructions, text::MAX_DESCRIPTION_BYTES))
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
        match self.live.served() {
            Some(served) => served.config.clone(),
            None => server_config(None, self.live.reload.is_some()),
        }
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        // Without a session there is no way to tell a client of this era anything.
        if let Some(tools) = result.capabilities.tools.as_mut().filter(|_| self.untold.is_none()) {
            tools.list_changed = None;
        }
        Ok(result)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(untold) = self.untold.as_ref().filter(|_| self.live.reload.is_some()) else {
            return;
        };
        // Once, however often a client says it.
        if let Some(changes) = untold.lock().unwrap_or_else(PoisonError::into_inner).take() {
            tokio::spawn(Arc::clone(&self.live).tell(changes, context.peer));
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
        let tools = if self.live.api().await?.tools().is_empty() {
            Vec::new()
        } else {
            vec![tool_list::stand_in()]
        };
        let ttl = self.live.reload.map_or(LIST_TTL, |reload| reload.min(LIST_TTL));
        let mut result = ListToolsResult::with_all_items(tools)
            .with_ttl_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
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
        let parts = context.extensions.get::<::http::request::Parts>();
        let in_flight = self.calls.token();
        // One API from here to the end, and the one by which it was judged who may call: meanwhile there may be another one.
        let judged = parts.and_then(|parts| parts.extensions.get::<auth::ApiSnapshot>());
        let api = if let Some(auth::ApiSnapshot(api)) = judged {
            Arc::clone(api)
        } else {
            tokio::select! {
                () = context.ct.cancelled() => return Err(cancelled()),
                api = self.live.api() => api?,
            }
        };
        let question = self.confirmation.as_deref().and_then(|confirmation| {
            let offered = api.get(&request.name)?;
            offered.must_confirm.then_some((confirmation, offered))
        });
        let _in_flight = match question {
            None => in_flight,
            Some((confirmation, offered)) => {
                // While a person thinks, nothing is in flight that an end would have to wait for.
                drop(in_flight);
                if let Some(answer) = Self::confirmed(&api, confirmation, offered, &request, &context).await? {
                    return Ok(answer);
                }
                self.calls.token()
            }
        };
        let caller = Caller {
            progress,
            headers: parts.map(|parts| &parts.headers),
        };
        // rmcp does not end a cancelled handler by itself; dropping the call closes the request upstream.
        let result = tokio::select! {
            () = context.ct.cancelled() => return Err(cancelled()),
            result = api.call(&request.name, request.arguments, caller) => result,
        };
        let Some(mut result) = result else {
            let hint = api
                .nearest(&request.name)
                .map(|name| format!("; did you mean {name}?"))
                .unwrap_or_default();
            return Err(ErrorData::invalid_params(
                format!("Unknown tool: {}{hint}", text::truncate(&text::one_line(&request.name), 128)),
                None,
            ));
        };
        if let Some(meta) = meta(&context) {
            result.meta.get_or_insert_default().extend(meta);
        }
        Ok(result.into())
    }

    /// 2026-07-28: clients ask for the changes that they want to be told of.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.live.reload.map(|_| requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.live.listened(&context).await;
        Ok(())
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

fn cancelled() -> ErrorData {
    ErrorData::internal_error("cancelled", None)
}

/// Reports progress to the client that asked for it.
struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// Set once the client did not take a notification in time.
    silent: AtomicBool,
}

impl Reporter {
    fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self {
            peer,
            token,
            silent: AtomicBool::new(false),
        }
    }

    async fn report(&self, done: u64, total: Option<u64>) {
        if self.silent.load(Relaxed) {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "bytes of one reply stay far below 2^53")]
        let (done, total) = (done as f64, total.map(|total| total as f64));
        let mut progress = ProgressNotificationParam::new(self.token.clone(), done);
        progress.total = total;
        if tokio::time::timeout(NOTIFY_TIMEOUT, self.peer.notify_progress(progress))
            .await
            .is_err()
        {
            self.silent.store(true, Relaxed);
        }
    }
}
