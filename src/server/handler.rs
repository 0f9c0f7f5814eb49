//! The handler that rmcp calls for each request of a client.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, ConstString as _,
    CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    MetaObject, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SetLevelRequestMethod,
    SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use serde_json::json;

use super::auth::scope_check::AllowedCall;
use super::calls::{SERVER_INFO_KEY, caller_of, server_info};
use super::catalog::{Catalog, Resolution, ResolvedCall};
use super::confirm::{self, Confirmation};
use super::endpoints::introduction::introduce_nothing;
use super::hint_sources::{self, answer_hint_sources};
use super::progress::PeerProgress;
use super::{McpServer, auth, observed, tool_list};
use crate::annotate::gate_names::{self, GateKind};
use crate::api::{Caller, OnMissingCredential};
use crate::observe::call::{CallObservation, note, note_outcome};
use crate::observe::metrics::TOOLS_CALL;
use crate::observe::metrics::labels::OTHER;
use crate::observe::outcome::CallOutcome;
use crate::proxy::caller::scopes::Scopes;
use crate::text;

/// The longest time for which clients may cache the list.
const LIST_TTL: Duration = Duration::from_mins(5);
/// How long `initialize` waits for a document from a URL, which contains the title and the instructions. Clients time out after
/// ten seconds or more.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(5);

/// The same where there are several APIs.
const INITIALIZE_TIMEOUT_OF_SEVERAL: Duration = Duration::from_millis(500);

/// Methods of MCP that are not served, and come to the handler.
const UNSERVED_METHODS: [&str; 4] = [
    SetLevelRequestMethod::VALUE,
    GetPromptRequestMethod::VALUE,
    SubscribeRequestMethod::VALUE,
    UnsubscribeRequestMethod::VALUE,
];

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        match self.state.served() {
            Some(served) => served.config().clone(),
            None => introduce_nothing(self.state.tells_changes),
        }
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        observed::observe_method("initialize", &context, self.answer_initialize(&request, &context)).await
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        observed::observe_method("server/discover", &context, async {
            let versions = self.supported_protocol_versions().into_owned();
            Ok(DiscoverResult::from_server_info(versions, self.get_info()))
        })
        .await
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        observed::observe_method("ping", &context, async { Ok(()) }).await
    }

    // Several clients ask for these lists, which are empty.
    async fn complete(&self, _: CompleteRequestParams, context: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        observed::observe_method("completion/complete", &context, async { Ok(CompleteResult::default()) }).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        observed::observe_method("prompts/list", &context, async { Ok(ListPromptsResult::default()) }).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        observed::observe_method("resources/list", &context, async { Ok(ListResourcesResult::default()) }).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let none = async { Ok(ListResourceTemplatesResult::default()) };
        observed::observe_method("resources/templates/list", &context, none).await
    }

    // Methods that are not served are told to those who observe requests, unless rmcp refuses them by itself.
    #[expect(deprecated, reason = "clients of earlier protocol versions send it")]
    async fn set_level(&self, _: rmcp::model::SetLevelRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        observed::refuse_method::<SetLevelRequestMethod, _>(&context).await
    }

    async fn get_prompt(&self, _: GetPromptRequestParams, context: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        observed::refuse_method::<GetPromptRequestMethod, _>(&context).await
    }

    async fn subscribe(&self, _: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        observed::refuse_method::<SubscribeRequestMethod, _>(&context).await
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        observed::refuse_method::<UnsubscribeRequestMethod, _>(&context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(unreported_changes) = self.unreported_changes.as_ref().filter(|_| self.state.tells_changes) else {
            return;
        };
        // Once, even if a client sends the notification again.
        if let Some(changes) = unreported_changes.lock().unwrap_or_else(PoisonError::into_inner).take() {
            tokio::spawn(Arc::clone(&self.state).tell(changes, context.peer));
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        observed::observe_method("tools/list", &context, self.answer_list(request, &context)).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let why = "there are no resources here";
        let refusal = async { Err(ErrorData::invalid_params(why, Some(json!({ "uri": request.uri })))) };
        observed::observe_method("resources/read", &context, refusal).await
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        observed::note_handled(&context);
        let observation = CallObservation::begin(|| observed::arrival(&context));
        observation.watch(self.make_call(request, context), observed::judge).await
    }

    /// 2026-07-28: clients subscribe to the changes that they want to be notified of.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.state.tells_changes.then(|| requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.state.listened(&context).await;
        Ok(())
    }

    /// What the page asks. rmcp treats a malformed `tools/call` as an unknown method; the method is known, but its parameters are
    /// invalid.
    async fn on_custom_request(&self, request: CustomRequest, context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        if request.method == hint_sources::METHOD {
            let answer = async {
                let catalog = self.state.catalog().await?;
                let granted = auth::scopes_of(context.extensions.get());
                answer_hint_sources(&catalog, request.params.as_ref(), granted)
            };
            return observed::observe_method(OTHER, &context, answer).await;
        }
        let invalid = |method| ErrorData::invalid_params(format!("the parameters of {method} are not valid"), None);
        if request.method == TOOLS_CALL {
            observed::note_handled(&context);
            observed::observe_unreadable_call(|| observed::arrival(&context));
            return Err(invalid(TOOLS_CALL));
        }
        let known = Some("tools/list").filter(|known| *known == request.method);
        let unserved = UNSERVED_METHODS.into_iter().find(|unserved| *unserved == request.method);
        let refusal = known.map_or_else(|| ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None), invalid);
        observed::observe_method(known.or(unserved).unwrap_or(OTHER), &context, async { Err(refusal) }).await
    }
}

impl McpServer {
    async fn answer_initialize(
        &self,
        request: &InitializeRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        // Without the document, the answer lacks the title and the instructions, which no client needs.
        tokio::select! {
            () = context.ct.cancelled() => return Err(cancelled()),
            () = self.state.ending.cancelled() => {}
            _ = tokio::time::timeout(self.initialize_timeout(), self.state.settled()) => {}
        }
        let mut result = self.negotiate_initialize(request)?;
        // Without a session, a client of these protocol versions cannot be notified.
        if let Some(tools) = result.capabilities.tools.as_mut().filter(|_| self.unreported_changes.is_none()) {
            tools.list_changed = None;
        }
        Ok(result)
    }

    async fn answer_list(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // The list has one page, because several clients read only the first, so that no cursor is valid.
        if request.and_then(|request| request.cursor).is_some() {
            return Err(ErrorData::invalid_params("unknown cursor: the list has one page", None));
        }
        let _in_flight = self.calls.token();
        let catalog = self.state.catalog_to_list().await?;
        let tools = if catalog.is_empty(auth::scopes_of(context.extensions.get())) {
            Vec::new()
        } else {
            vec![tool_list::stand_in()]
        };
        let ttl = match self.state.reload {
            // What is missing may come at any time.
            _ if !catalog.is_decided() => Duration::ZERO,
            Some(reload) => reload.min(LIST_TTL),
            None => LIST_TTL,
        };
        let cache_scope = if catalog.depends_on_scopes() {
            CacheScope::Private
        } else {
            CacheScope::Public
        };
        let mut result = ListToolsResult::with_all_items(tools)
            .with_ttl_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
            .with_cache_scope(cache_scope);
        result.meta = meta(context);
        Ok(result)
    }

    /// The whole of a call, but for its observation.
    async fn make_call(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let token = context.meta.get_progress_token();
        let progress = token.map(|token| PeerProgress::new(context.peer.clone(), token));
        let (progress, report) = progress.unzip();
        let parts = context.extensions.get::<::http::request::Parts>();
        let caller = caller_of(parts);
        let in_flight = self.calls.token();
        // One call from here to the end, and the one of which it was judged that the client may make it: the API may be replaced
        // meanwhile.
        let allowed = parts.and_then(|parts| parts.extensions.get::<AllowedCall>());
        let resolution = if let Some(AllowedCall(resolution)) = allowed {
            resolution.as_ref().clone()
        } else {
            let catalog = tokio::select! {
                () = context.ct.cancelled() => return Err(cancelled()),
                catalog = self.state.catalog_for(&request.name, request.arguments.as_ref()) => catalog?,
            };
            let scopes = caller.scopes();
            let resolved = catalog.resolve(&request.name, request.arguments.take(), scopes);
            resolved.ok_or_else(|| unknown_tool(&catalog, &request.name, scopes))?
        };
        let call = match resolution {
            Resolution::Call(call) => call,
            Resolution::Refused(refused, meant) => {
                if let Some(meant) = &meant {
                    observed::note_operation(meant);
                } else {
                    note(|record| record.gate = gate_names::kind_of(&request.name).map(GateKind::name));
                }
                note_outcome(CallOutcome::InvalidArguments);
                return Ok(with_meta(refused, &context).into());
            }
            Resolution::Lookup(lookup) => {
                note(|record| record.lookup = Some(lookup.gate().name()));
                let answer = tokio::task::spawn_blocking(move || lookup.answer());
                return tokio::select! {
                    () = context.ct.cancelled() => Err(cancelled()),
                    answer = answer => match answer {
                        Ok(answer) => {
                            if answer.is_error == Some(true) {
                                note_outcome(CallOutcome::InvalidArguments);
                            }
                            Ok(with_meta(answer, &context).into())
                        }
                        Err(_) => Err(ErrorData::internal_error("the search failed because of an error inside this server", None)),
                    },
                };
            }
        };
        observed::note_operation(&call);
        let question = self.confirmation.as_deref().filter(|_| call.offered().must_confirm);
        let _in_flight = match question {
            None => in_flight,
            Some(confirmation) => {
                // A shutdown does not wait for an unanswered question.
                drop(in_flight);
                if let Some(answer) = Box::pin(Self::confirmed(&call, confirmation, &request, &context)).await {
                    return Ok(answer);
                }
                self.calls.token()
            }
        };
        let caller = Caller {
            progress: report,
            ..caller
        };
        // On the heap, because rmcp moves what it waits for from place to place.
        let answer = Box::pin(async {
            match progress {
                Some(progress) => progress.watch(call.call(caller)).await,
                None => call.call(caller).await,
            }
        });
        // rmcp does not stop the handler of a cancelled request; dropping the call closes the upstream request.
        tokio::select! {
            () = context.ct.cancelled() => Err(cancelled()),
            result = answer => Ok(with_meta(result.into(), &context).into()),
        }
    }

    /// How long a handshake waits. The slowest of several APIs must not hold it up: what is missing then is a line of the
    /// instructions.
    fn initialize_timeout(&self) -> Duration {
        if self.apis.is_single() {
            INITIALIZE_TIMEOUT
        } else {
            INITIALIZE_TIMEOUT_OF_SEVERAL
        }
    }

    /// Asks a person about a call; `None` means that the person agreed, anything else is the answer to the call.
    async fn confirmed(
        call: &ResolvedCall,
        confirmation: &Confirmation,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<CallToolResponse> {
        // There is no question about a call that would be refused.
        let caller = caller_of(context.extensions.get::<::http::request::Parts>());
        let prepared = match call.preview(OnMissingCredential::Refuse, &caller) {
            Ok(prepared) => prepared,
            Err(wrong) => return Some((*wrong).into()),
        };
        match confirm::ask(confirmation, call, &prepared, call.tenant(&caller), request, context).await {
            confirm::Verdict::Yes => None,
            confirm::Verdict::Ask(question) => Some((*question).into()),
            confirm::Verdict::No(mut refusal) => {
                refusal.meta = meta(context);
                Some((*refusal).into())
            }
        }
    }
}

/// The error of a call whose tool does not exist.
fn unknown_tool(catalog: &Catalog, name: &str, scopes: Option<&Scopes>) -> ErrorData {
    let hint = catalog
        .nearest(name, scopes)
        .map(|name| format!("; did you mean {name}?"))
        .unwrap_or_default();
    let name = text::truncate(&text::one_line(name), 128);
    ErrorData::invalid_params(format!("Unknown tool: {name}{hint}"), None)
}

/// 2026-07-28: results SHOULD name the server in `_meta`. Older clients do not know the key.
fn meta(context: &RequestContext<RoleServer>) -> Option<MetaObject> {
    let modern = context.meta.protocol_version().is_some();
    modern.then(|| {
        let mut meta = MetaObject::new();
        meta.insert(SERVER_INFO_KEY.into(), server_info());
        meta
    })
}

/// A result that names the server where that is usual.
fn with_meta(mut result: CallToolResult, context: &RequestContext<RoleServer>) -> CallToolResult {
    if let Some(meta) = meta(context) {
        result.meta.get_or_insert_default().extend(meta);
    }
    result
}

fn cancelled() -> ErrorData {
    note_outcome(CallOutcome::Cancelled);
    ErrorData::internal_error("cancelled", None)
}
