//! What one endpoint serves: tools of one API or of several, under the names by which clients call them.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ServerConfig};

use super::auth::scopes::{Scopes, ToolScopes};
use super::gates::{Gates, InnerCall, describe_operations, read_inner_call, search_operations};
use super::visible::{VisibleApi, VisibleApis};
use crate::annotate::gate_names::GateKind;
use crate::api::{Api, Caller, OfferedTool, OnMissingCredential, ToolIndex};
use crate::observe::record::CalledOperation;
use crate::proxy::{Request, ToolResult};

/// How the JSON of a tool begins; its name follows.
const JSON_BEFORE_NAME: &str = "{\"name\":\"";

/// The tools of an endpoint, and how its server introduces itself. It never changes: a changed document makes another one.
pub(crate) struct Catalog {
    apis: Vec<CatalogApi>,
    view: View,
    /// The prefixes of tool names of the APIs that are still loading.
    awaited: Vec<String>,
    config: ServerConfig,
    /// In search mode, the tools that stand for all operations.
    gates: Option<Gates>,
    /// The list for clients that may list all tools, made for the first of them.
    whole_list: OnceLock<Bytes>,
}

/// What a message asks for.
#[derive(Clone)]
pub(crate) enum Resolution {
    /// A call of an operation.
    Call(ResolvedCall),
    /// A search among the operations, or their description: nothing is sent.
    Lookup(Lookup),
    /// Nothing that can be done: the result that says so, and the operation that was meant, for those who observe calls.
    Refused(CallToolResult, Option<Box<ResolvedCall>>),
}

/// A search among the operations, or their description.
#[derive(Clone)]
pub(crate) struct Lookup {
    catalog: Arc<Catalog>,
    is_search: bool,
    arguments: Option<JsonObject>,
    /// What the caller's token grants.
    granted: Option<Scopes>,
}

/// An API of a catalog.
#[derive(Clone)]
pub(crate) struct CatalogApi {
    pub(crate) api: Arc<Api>,
    /// Scopes that its calls need besides those of the whole server.
    pub(crate) scopes: Arc<ToolScopes>,
}

/// What an endpoint shows of its APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// The path of the endpoint.
    pub(crate) path: Arc<str>,
    /// Whether names stand without the prefix of their API.
    pub(crate) strips_prefix: bool,
    /// Whether there are only tools that read, by what is enforced of them.
    pub(crate) reads_only: bool,
}

/// A call of one operation. The tool's name and the arguments of a message are read once, into this value; the scope check, the
/// confirmation, the limits and the request all use it, so that no two of them can judge different calls.
#[derive(Clone)]
pub(crate) struct ResolvedCall {
    api: Arc<Api>,
    scopes: Arc<ToolScopes>,
    endpoint: Arc<str>,
    tool: ToolIndex,
    arguments: Option<JsonObject>,
    /// The gate through which the operation is called.
    gate: Option<GateKind>,
    /// What was read otherwise than it was written.
    remarks: Vec<String>,
}

impl Catalog {
    /// The tools of these APIs, as the endpoint shows them.
    pub(crate) fn new(apis: Vec<CatalogApi>, view: View, awaited: Vec<String>, config: ServerConfig) -> Self {
        Self {
            apis,
            view,
            awaited,
            config,
            gates: None,
            whole_list: OnceLock::new(),
        }
    }

    /// The same tools behind gates.
    pub(crate) fn with_gates(self, gates: Option<Gates>) -> Self {
        Self { gates, ..self }
    }

    /// What a caller with these scopes sees; without any, all.
    pub(crate) fn visible<'c>(&'c self, granted: Option<&'c Scopes>) -> VisibleApis<'c> {
        visible(&self.apis, &self.view, granted)
    }

    /// In search mode, the tools that stand for all operations.
    pub(crate) fn gates(&self) -> Option<&Gates> {
        self.gates.as_ref()
    }

    /// How the server introduces itself.
    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Whether every API is there, or is known not to come.
    pub(crate) fn is_decided(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Whether an API that may still come may have a tool of that name.
    pub(crate) fn awaits(&self, name: &str) -> bool {
        self.view.strips_prefix && !self.awaited.is_empty() || self.awaited.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// All tools that a client with these scopes may list, as one text, separated by commas. Clients that may list all tools share it:
    /// one that reads slowly holds no list of its own.
    pub(crate) fn list(&self, scopes: Option<&Scopes>) -> Bytes {
        let scopes = scopes.filter(|_| self.depends_on_scopes());
        if scopes.is_some() {
            return self.join_texts(scopes);
        }
        if let [only] = self.apis.as_slice()
            && (!self.view.strips_prefix || only.api.prefix().is_empty())
            && !self.view.reads_only
            && self.gates.is_none()
        {
            return only.api.list().clone();
        }
        self.whole_list.get_or_init(|| self.join_texts(None)).clone()
    }

    fn join_texts(&self, scopes: Option<&Scopes>) -> Bytes {
        let mut list = Vec::new();
        let own = self
            .gates
            .as_ref()
            .filter(|_| scopes.is_some())
            .map(|gates| gates.texts_for(&self.visible(scopes)));
        let shared = self
            .gates
            .as_ref()
            .filter(|_| own.is_some())
            .map_or(0, |gates| gates.texts().count());
        let own = own.iter().flatten().map(|text| [text.as_ref(), ""]);
        for [head, tail] in own.chain(self.texts(scopes).into_iter().skip(shared)) {
            if !list.is_empty() {
                list.push(b',');
            }
            list.extend_from_slice(head.as_bytes());
            list.extend_from_slice(tail.as_bytes());
        }
        list.into()
    }

    /// All tools that a client with these scopes may list, in the order in which they are listed, each as the two pieces of its
    /// JSON; gates as a client gets them that sees all. Without scopes, a client may list all.
    pub(crate) fn texts<'c>(&'c self, scopes: Option<&'c Scopes>) -> Vec<[&'c str; 2]> {
        let seen = self.visible(scopes);
        let text_of = |api: &VisibleApi<'c>, offered: OfferedTool<'c>| match api.stripped() {
            "" => [offered.text, ""],
            prefix => {
                let rest = offered.text.get(JSON_BEFORE_NAME.len() + prefix.len()..).unwrap_or_default();
                [JSON_BEFORE_NAME, rest]
            }
        };
        let Some(gates) = &self.gates else {
            return seen.operations().map(|(api, _, offered)| text_of(api, offered)).collect();
        };
        let mut texts: Vec<[&str; 2]> = gates.texts().map(|text| [text, ""]).collect();
        for (place, index) in gates.pinned() {
            if let Some(api) = seen.apis.get(*place) {
                let offered = api.api.offered(*index);
                texts.extend(api.shows(&offered).then(|| text_of(api, offered)));
            }
        }
        texts
    }

    /// Whether a client with these scopes may list no tool.
    pub(crate) fn is_empty(&self, scopes: Option<&Scopes>) -> bool {
        self.visible(scopes).operations().next().is_none()
    }

    /// Whether the list depends on what a client's token allows.
    pub(crate) fn depends_on_scopes(&self) -> bool {
        self.apis.iter().any(|api| !api.scopes.is_empty())
    }

    /// What a message asks for; `None` where no tool has that name. Whether the caller may make a call is judged later; what it may
    /// list, by its scopes, is all that is suggested to it.
    pub(crate) fn resolve(self: &Arc<Self>, name: &str, arguments: Option<JsonObject>, scopes: Option<&Scopes>) -> Option<Resolution> {
        let seen = self.visible(scopes);
        if let Some(gates) = &self.gates
            && let Some(gate) = gates.kind_of(name)
        {
            let Some(effect) = gate.effect() else {
                return Some(Resolution::Lookup(Lookup {
                    catalog: Arc::clone(self),
                    is_search: gate == GateKind::Search,
                    arguments,
                    granted: scopes.cloned(),
                }));
            };
            return match read_inner_call(gates, effect, arguments, &seen) {
                Ok(inner) => Some(Resolution::Call(self.resolved(&seen, inner, Some(gate))?)),
                Err(refused) => {
                    let meant = refused.operation.and_then(|(api, tool)| {
                        let meant = InnerCall {
                            api,
                            tool,
                            arguments: JsonObject::new(),
                            remarks: Vec::new(),
                        };
                        self.resolved(&seen, meant, Some(gate))
                    });
                    Some(Resolution::Refused(refused.result, meant.map(Box::new)))
                }
            };
        }
        let (api, tool) = seen.find(name)?;
        let mut call = self.resolved(
            &seen,
            InnerCall {
                api,
                tool,
                arguments: JsonObject::new(),
                remarks: Vec::new(),
            },
            None,
        )?;
        call.arguments = arguments;
        Some(Resolution::Call(call))
    }

    fn resolved(&self, seen: &VisibleApis<'_>, inner: InnerCall, gate: Option<GateKind>) -> Option<ResolvedCall> {
        let api = seen.apis.get(inner.api)?;
        Some(ResolvedCall {
            api: Arc::clone(api.api),
            scopes: Arc::clone(api.needed),
            endpoint: Arc::clone(&self.view.path),
            tool: inner.tool,
            arguments: Some(inner.arguments),
            gate,
            remarks: inner.remarks,
        })
    }

    /// The name nearest to one that no tool has, among those that a client with these scopes may list.
    pub(crate) fn nearest(&self, name: &str, scopes: Option<&Scopes>) -> Option<String> {
        self.visible(scopes).nearest(name).map(str::to_owned)
    }
}

/// What a caller with these scopes sees of the APIs of an endpoint.
#[must_use]
pub(crate) fn visible<'c>(apis: &'c [CatalogApi], view: &View, granted: Option<&'c Scopes>) -> VisibleApis<'c> {
    let of = |api: &'c CatalogApi| VisibleApi::new(&api.api, &api.scopes, view.strips_prefix, view.reads_only, granted);
    VisibleApis {
        apis: apis.iter().map(of).collect(),
        names_apis: !view.strips_prefix && apis.iter().any(|api| api.api.name().is_some()),
    }
}

impl Lookup {
    /// The tool that is called.
    pub(crate) fn gate(&self) -> GateKind {
        if self.is_search { GateKind::Search } else { GateKind::Describe }
    }

    /// The answer. The first search of an API builds its index, which takes long for a large one: not on an asynchronous thread.
    pub(crate) fn answer(self) -> CallToolResult {
        let Self {
            catalog,
            is_search,
            arguments,
            granted,
        } = self;
        let seen = catalog.visible(granted.as_ref());
        match &catalog.gates {
            Some(gates) if is_search => search_operations(gates, &seen, arguments),
            Some(gates) => describe_operations(gates, &seen, arguments),
            None => CallToolResult::error(Vec::new()),
        }
    }
}

impl ResolvedCall {
    /// The gate through which the operation is called; none for a call by its own name.
    pub(crate) fn gate(&self) -> Option<GateKind> {
        self.gate
    }

    /// The tool.
    pub(crate) fn offered(&self) -> OfferedTool<'_> {
        self.api.offered(self.tool)
    }

    /// The name of the API that its operator gave it, else the title of its document.
    pub(crate) fn api_label(&self) -> &str {
        self.api.label()
    }

    /// The operation as the audit log, metrics and traces name it.
    pub(crate) fn called_operation(&self) -> Arc<CalledOperation> {
        self.api.called_operation(self.tool)
    }

    /// The name of the tool as metrics and logs have it: without the prefix of one of several APIs.
    pub(crate) fn tool_label(&self) -> &str {
        self.api.tool_label(self.tool)
    }

    /// The scopes that calls of its API need besides those of the whole server.
    pub(crate) fn scopes(&self) -> &ToolScopes {
        &self.scopes
    }

    /// The path of the endpoint at which the call was asked for.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The arguments as the client gave them.
    pub(crate) fn arguments(&self) -> Option<&JsonObject> {
        self.arguments.as_ref()
    }

    /// The arguments as they are sent, after repairs; those of the client where they are not valid.
    pub(crate) fn repaired_arguments(&self) -> JsonObject {
        let given = self.arguments.clone().unwrap_or_default();
        self.api.repaired_arguments(self.tool, given)
    }

    /// What tells the tenant of a client, where the API has tenants and the client is one of them.
    pub(crate) fn tenant(&self, caller: &Caller<'_>) -> Option<&str> {
        self.api.tenant(caller)
    }

    /// The request that the call would make, without credentials, or the result that it would end in before anything is sent.
    pub(crate) fn preview(&self, on_missing: OnMissingCredential, caller: &Caller<'_>) -> Result<Request, Box<CallToolResult>> {
        self.api.preview_at(self.tool, self.arguments.clone(), on_missing, caller)
    }

    /// Makes the call. Dropping the future ends the request.
    pub(crate) async fn call(self, caller: Caller<'_>) -> ToolResult {
        if let Some(gate) = self.gate {
            tracing::debug!(tool = %self.offered().tool.name, gate = gate.name(), "called through a gate");
        }
        let result = self.api.call_at(self.tool, self.arguments, caller).await;
        if self.remarks.is_empty() {
            return result;
        }
        let mut result = CallToolResult::from(result);
        result.content.extend(self.remarks.into_iter().map(ContentBlock::text));
        ToolResult::from(result)
    }
}
