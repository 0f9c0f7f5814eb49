//! The catalog of one endpoint: tools of one API or of several, under the names by which clients call them.

use std::sync::Arc;

use rmcp::model::ServerConfig;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::meta_tools::{InnerCall, MetaTools, describe_operations, read_inner_call, search_operations};
use super::rights::{ALL_RIGHTS, CallerRights, Rights};
use super::visible::{CatalogApi, Suggestion, View, VisibleApi, VisibleApis};
use crate::annotate::meta_tool_names::MetaToolKind;
use crate::api::{Api, Caller, OfferedTool, OnMissingCredential, ToolIndex};
use crate::json::JsonObject;
use crate::observe::record::CalledOperation;
use crate::proxy::caller::client_grant::{ClientGrant, Permission};
use crate::proxy::caller::wait_place::WaitPlace;
use crate::proxy::waiting::handle::WaitState;
use crate::proxy::{CheckedArguments, NoteKind, Request, ToolResult};

/// The tools of an endpoint, and how its server introduces itself. It never changes: a changed document makes another one.
pub(crate) struct Catalog {
    apis: Vec<CatalogApi>,
    view: View,
    /// The prefixes of tool names of the APIs that are still loading.
    awaited: Vec<String>,
    config: ServerConfig,
    /// The meta-tools: those of search mode, and the one that waits.
    meta_tools: Option<MetaTools>,
}

/// Target of a message.
pub(crate) enum Resolution {
    /// A call of an operation.
    Call(ResolvedCall),
    /// A search among the operations, or their description: nothing is sent.
    Lookup(Lookup),
    /// A handle with which the call of an operation goes on.
    Wait(WaitRequest),
    /// A refusal: the result with its reason, and the operation that was meant, for metrics, traces and the audit log.
    Refused(Box<ToolResult>, Option<Box<ResolvedCall>>),
}

/// A search among the operations, or their description.
pub(crate) struct Lookup {
    catalog: Arc<Catalog>,
    meta_tool: MetaToolKind,
    arguments: Option<JsonObject>,
    rights: CallerRights,
}

/// A handle with which the call of an operation goes on, once it is opened for its caller.
pub(crate) struct WaitRequest {
    pub(super) catalog: Arc<Catalog>,
    /// The name of the meta-tool as it is listed.
    pub(super) name: String,
    pub(super) arguments: Option<JsonObject>,
}

/// State of a call that goes on.
#[derive(Debug, Clone)]
pub(crate) struct OpenedWait {
    pub(super) state: WaitState,
    /// True if the status is asked for once.
    pub(super) is_look: bool,
}

/// A call of one operation. The tool's name and the arguments of a message are read once, into this value; the scope check, the
/// confirmation, the limits and the request all use it, so that no two of them can judge different calls.
#[derive(Clone)]
pub(crate) struct ResolvedCall {
    of: CatalogApi,
    /// View of the endpoint that received the call.
    view: View,
    /// Rights of the caller at the API; `None` if it may do everything.
    rights: Option<Arc<Rights>>,
    tool: ToolIndex,
    arguments: Option<JsonObject>,
    /// The meta-tool that calls the operation, and its name as it is listed.
    meta_tool: Option<(MetaToolKind, String)>,
    /// The prefix of the meta-tools, if the endpoint has some.
    meta_tool_prefix: Option<String>,
    /// Remarks about values that were read differently from how they were written.
    remarks: Vec<String>,
    /// The name of the meta-tool that waits, if the endpoint has it.
    wait_tool: Option<String>,
    /// State of the call, if it goes on.
    wait: Option<Box<OpenedWait>>,
}

impl Catalog {
    /// The tools of these APIs, as the endpoint shows them.
    pub(crate) fn new(apis: Vec<CatalogApi>, view: View, awaited: Vec<String>, config: ServerConfig) -> Self {
        Self {
            apis,
            view,
            awaited,
            config,
            meta_tools: None,
        }
    }

    /// Puts the tools behind meta-tools.
    pub(crate) fn with_meta_tools(self, meta_tools: Option<MetaTools>) -> Self {
        Self { meta_tools, ..self }
    }

    /// Returns the rights of a caller.
    pub(crate) fn rights(&self, granted: &ClientGrant) -> CallerRights {
        if !self.depends_on_caller() {
            return CallerRights::default();
        }
        CallerRights::new(self.apis.iter().map(|api| api.access.as_deref()), granted)
    }

    /// Returns the APIs and tools that a caller with these rights may list.
    pub(crate) fn visible<'c>(&'c self, rights: &'c CallerRights) -> VisibleApis<'c> {
        visible(&self.apis, &self.view, rights)
    }

    /// Returns the API at that index.
    pub(crate) fn api(&self, place: usize) -> Option<&Arc<Api>> {
        self.apis.get(place).map(|of| &of.api)
    }

    /// Returns the meta-tools, in search mode.
    pub(crate) fn meta_tools(&self) -> Option<&MetaTools> {
        self.meta_tools.as_ref().filter(|meta_tools| meta_tools.searches())
    }

    /// Returns the meta-tool of that name, if the endpoint has it.
    pub(super) fn meta_tool(&self, name: &str) -> Option<MetaToolKind> {
        self.meta_tools.as_ref()?.kind_of(name)
    }

    /// Returns the name of the meta-tool that waits, if the endpoint has it.
    pub(crate) fn wait_tool(&self) -> Option<String> {
        self.meta_tools.as_ref().and_then(MetaTools::wait_tool)
    }

    /// Returns the meta-tools that are listed beside all tools, for a client with these rights.
    pub(crate) fn texts_beside(&self, rights: &CallerRights) -> Vec<Box<str>> {
        let beside = self.meta_tools.as_ref().filter(|meta_tools| !meta_tools.searches());
        beside
            .map(|meta_tools| meta_tools.texts_for(&self.visible(rights)))
            .unwrap_or_default()
    }

    /// Checks the arguments of a meta-tool.
    ///
    /// # Errors
    /// The result that says what is wrong with them.
    pub(super) fn check_meta_tool(&self, kind: MetaToolKind, arguments: Option<JsonObject>) -> Result<CheckedArguments, Box<ToolResult>> {
        match &self.meta_tools {
            Some(meta_tools) => meta_tools.check(kind, arguments),
            None => Ok(CheckedArguments::unchecked(arguments.unwrap_or_default())),
        }
    }

    /// The view of the endpoint.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Returns the introduction of the server.
    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Returns true if every API is loaded or has failed.
    pub(crate) fn is_decided(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Returns true if an API that is not loaded yet may have a tool of that name.
    pub(crate) fn awaits(&self, name: &str) -> bool {
        !self.awaited.is_empty() && self.apis.is_empty() || self.awaited.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// Returns true if an operation exists for the caller under that name.
    pub(crate) fn has(&self, name: &str, granted: &ClientGrant) -> bool {
        self.find(name, Some(granted)).is_some()
    }

    /// Returns the list of search mode for a client with these rights: meta-tools and pinned tools, separated by commas.
    pub(crate) fn meta_tool_list(&self, rights: &CallerRights) -> Option<String> {
        let meta_tools = self.meta_tools()?;
        let seen = self.visible(rights);
        let mut texts: Vec<String> = if seen.is_restricted() {
            meta_tools.texts_for(&seen).into_iter().map(String::from).collect()
        } else {
            meta_tools.texts().map(str::to_owned).collect()
        };
        texts.extend(pinned_texts(meta_tools, &seen).map(str::to_owned));
        Some(texts.join(","))
    }

    /// All tools that a client may list that may list all, in the order in which they are listed, as JSON.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let seen = self.visible(&ALL_RIGHTS);
        let all = seen.operations().map(|(_, _, offered)| offered.text);
        match &self.meta_tools {
            None => all.collect(),
            Some(meta_tools) if !meta_tools.searches() => all.chain(meta_tools.texts()).collect(),
            Some(meta_tools) => meta_tools.texts().chain(pinned_texts(meta_tools, &seen)).collect(),
        }
    }

    /// The names of all tools that are listed for a client that sees all.
    pub(crate) fn listed_names(&self) -> Vec<String> {
        let seen = self.visible(&ALL_RIGHTS);
        if let Some(meta_tools) = self.meta_tools() {
            return meta_tools.listed_names(&seen);
        }
        let beside = self.meta_tools.iter().flat_map(MetaTools::names);
        let names = seen.operations().map(|(api, index, _)| api.name_of(index).to_owned());
        names.chain(beside).collect()
    }

    /// Returns true if a client with these rights may list no tool.
    pub(crate) fn is_empty(&self, rights: &CallerRights) -> bool {
        self.visible(rights).operations().next().is_none()
    }

    /// Returns true if the list depends on the caller.
    pub(crate) fn depends_on_caller(&self) -> bool {
        self.apis.iter().any(|api| api.access.is_some())
    }

    /// Finds the target of a message; `None` if no tool of that name exists for the caller. Without `granted`, the operator asks. The
    /// scopes of the caller are checked later. Only tools that the caller may list are suggested to it.
    pub(crate) fn resolve(
        self: &Arc<Self>,
        name: &str,
        arguments: Option<JsonObject>,
        granted: Option<&ClientGrant>,
    ) -> Option<Resolution> {
        if let Some(meta_tools) = &self.meta_tools
            && let Some(meta_tool) = self.meta_tool(name)
        {
            let rights = granted.map(|granted| self.rights(granted)).unwrap_or_default();
            let seen = self.visible(&rights);
            if !seen.has_meta_tool(meta_tool) {
                return None;
            }
            if meta_tool == MetaToolKind::Wait {
                return Some(Resolution::Wait(WaitRequest {
                    catalog: Arc::clone(self),
                    name: meta_tools.name_of(meta_tool),
                    arguments,
                }));
            }
            let Some(effect) = meta_tool.effect() else {
                return Some(Resolution::Lookup(Lookup {
                    catalog: Arc::clone(self),
                    meta_tool,
                    arguments,
                    rights,
                }));
            };
            return Some(match read_inner_call(meta_tools, effect, arguments, &seen) {
                Ok(InnerCall {
                    api,
                    tool,
                    arguments,
                    remarks,
                }) => Resolution::Call(ResolvedCall {
                    meta_tool: Some((meta_tool, meta_tools.name_of(meta_tool))),
                    remarks,
                    ..self.resolved(api.of, rights.shared(api.place), tool, Some(arguments))
                }),
                Err(refused) => {
                    let meant = refused.operation.map(|(api, tool)| ResolvedCall {
                        meta_tool: Some((meta_tool, meta_tools.name_of(meta_tool))),
                        ..self.resolved(api.of, rights.shared(api.place), tool, Some(JsonObject::new()))
                    });
                    Resolution::Refused(refused.result, meant.map(Box::new))
                }
            });
        }
        let (api, rights, tool) = self.find(name, granted)?;
        Some(Resolution::Call(self.resolved(api, rights, tool, arguments)))
    }

    /// Finds the operation of that name, if it exists for the caller. A call looks at one API after the other, without a list of all. The
    /// rights come first, so that a name that is hidden from the caller takes as long as one that no operation has.
    fn find(&self, name: &str, granted: Option<&ClientGrant>) -> Option<(&CatalogApi, Option<Arc<Rights>>, ToolIndex)> {
        let mut apis = self.apis.iter().enumerate().filter(|(_, of)| of.may_have(name));
        apis.find_map(|(place, of)| {
            let rights = of.access.as_ref().zip(granted).and_then(|(access, granted)| access.rights(granted));
            let tool = VisibleApi::new(of, place, &self.view, rights.as_deref()).find(name)?;
            Some((of, rights, tool))
        })
    }

    /// A call of that operation by its own name.
    pub(super) fn resolved(
        &self,
        of: &CatalogApi,
        rights: Option<Arc<Rights>>,
        tool: ToolIndex,
        arguments: Option<JsonObject>,
    ) -> ResolvedCall {
        ResolvedCall {
            of: of.clone(),
            view: self.view.clone(),
            rights,
            tool,
            arguments,
            meta_tool: None,
            meta_tool_prefix: self.meta_tools().map(|meta_tools| meta_tools.prefix().to_owned()),
            remarks: Vec::new(),
            wait_tool: self.wait_tool(),
            wait: None,
        }
    }

    /// Returns a suggestion for a client with these rights, for a name that no tool has.
    pub(crate) fn suggestion<'c>(&'c self, name: &str, rights: &'c CallerRights) -> Option<Suggestion<'c>> {
        self.visible(rights).suggestion(name)
    }
}

/// Returns the APIs of an endpoint and the tools that a caller with these rights may list.
#[must_use]
pub(crate) fn visible<'c>(apis: &'c [CatalogApi], view: &View, rights: &'c CallerRights) -> VisibleApis<'c> {
    let api = |(place, of)| VisibleApi::new(of, place, view, rights.of_api(place));
    VisibleApis {
        apis: apis.iter().enumerate().map(api).collect(),
        names_apis: view.names_apis,
    }
}

/// The pinned tools that a caller may list, as JSON.
fn pinned_texts<'c>(meta_tools: &MetaTools, seen: &VisibleApis<'c>) -> impl Iterator<Item = &'c str> {
    meta_tools.pinned().iter().filter_map(|(place, index)| {
        let api = seen.apis.get(*place)?;
        api.shows(*index).then(|| api.api.offered(*index).text)
    })
}

impl Lookup {
    /// The tool that is called.
    pub(crate) fn meta_tool(&self) -> MetaToolKind {
        self.meta_tool
    }

    /// The answer. The first search of an API builds its index, which takes long for a large one: not on an asynchronous thread.
    pub(crate) fn answer(self) -> ToolResult {
        let Self {
            catalog,
            meta_tool,
            arguments,
            rights,
        } = self;
        let seen = catalog.visible(&rights);
        let Some(meta_tools) = &catalog.meta_tools else {
            return ToolResult::error("There is nothing to search.");
        };
        let checked = match meta_tools.check(meta_tool, arguments) {
            Ok(checked) => checked,
            Err(refused) => return *refused,
        };
        let result = match meta_tool {
            MetaToolKind::Search => read_arguments(checked.arguments).map(|request| search_operations(meta_tools, &seen, request)),
            _ => read_arguments(checked.arguments).map(|request| describe_operations(meta_tools, &seen, &request)),
        };
        let mut result = result.unwrap_or_else(|error| ToolResult::error(format!("The arguments are not valid: {error}.")));
        if let Some(missing) = meta_tools.missing_apis().filter(|_| meta_tool == MetaToolKind::Search) {
            result.note(NoteKind::Cut, missing);
        }
        checked.repairs.into_iter().for_each(|repair| result.note(NoteKind::Repair, repair));
        result
    }
}

/// Arguments that fit the input schema, in their own type.
fn read_arguments<T: DeserializeOwned>(arguments: JsonObject) -> serde_json::Result<T> {
    serde_json::from_value(Value::Object(arguments))
}

impl ResolvedCall {
    /// Returns the meta-tool that calls the operation; `None` for a call by its own name.
    pub(crate) fn meta_tool(&self) -> Option<MetaToolKind> {
        self.meta_tool.as_ref().map(|(kind, _)| *kind)
    }

    /// The tool.
    pub(crate) fn offered(&self) -> OfferedTool<'_> {
        self.of.api.offered(self.tool)
    }

    /// The name of the API that its operator gave it, else the title of its document.
    pub(crate) fn api_label(&self) -> &str {
        self.of.api.label()
    }

    /// The operation as the audit log, metrics and traces name it.
    pub(crate) fn called_operation(&self) -> Arc<CalledOperation> {
        self.of.api.called_operation(self.tool)
    }

    /// The name of the tool as metrics and logs have it: without the prefix of one of several APIs.
    pub(crate) fn tool_label(&self) -> &str {
        self.of.api.tool_label(self.tool)
    }

    /// Returns the scopes that the caller lacks for the operation, besides those that the whole server asks for.
    pub(crate) fn lacking_scopes(&self, caller: &Caller) -> Vec<&str> {
        let is_lacking = self
            .rights
            .as_ref()
            .is_some_and(|rights| rights.may(self.tool) != Permission::Granted);
        let access = self.of.access.as_ref().filter(|_| is_lacking);
        access
            .map(|access| access.lacking_scopes(caller.granted(), self.tool))
            .unwrap_or_default()
    }

    /// The path of the endpoint at which the call was asked for.
    pub(crate) fn endpoint(&self) -> &str {
        &self.view.path
    }

    /// Its API as the caller sees it.
    fn visible(&self) -> VisibleApi<'_> {
        VisibleApi::new(&self.of, 0, &self.view, self.rights.as_deref())
    }

    /// The name of the tool at the endpoint at which the call was asked for.
    pub(crate) fn tool_name(&self) -> &str {
        self.visible().name_of(self.tool)
    }

    /// The arguments as the client gave them.
    pub(crate) fn arguments(&self) -> Option<&JsonObject> {
        self.arguments.as_ref()
    }

    /// The same call with other arguments.
    pub(crate) fn with_arguments(self, arguments: JsonObject) -> Self {
        Self {
            arguments: Some(arguments),
            ..self
        }
    }

    /// Returns the arguments as they are sent, after repairs; those of the client if they are not valid.
    pub(crate) fn repaired_arguments(&self) -> JsonObject {
        let given = self.arguments.clone().unwrap_or_default();
        self.of.api.repaired_arguments(self.tool, given)
    }

    /// Returns the tenant of a client, if the API has tenants and the client belongs to one.
    pub(crate) fn tenant(&self, caller: &Caller) -> Option<&str> {
        self.of.api.tenant(caller)
    }

    /// The request that the call would make, without credentials, or the result that it would end in before anything is sent.
    pub(crate) fn preview(&self, on_missing: OnMissingCredential, caller: &Caller) -> Result<Request, Box<ToolResult>> {
        self.of.api.preview_at(self.tool, self.arguments.clone(), on_missing, caller)
    }

    /// The same call as one that goes on, through the meta-tool of that name.
    pub(super) fn going_on(self, wait: OpenedWait, meta_tool: String) -> Self {
        Self {
            wait: Some(Box::new(wait)),
            meta_tool: Some((MetaToolKind::Wait, meta_tool)),
            ..self
        }
    }

    /// Returns true if the call goes on, so that it starts nothing.
    pub(crate) fn goes_on(&self) -> bool {
        self.wait.is_some()
    }

    /// Returns the place with which a later call goes on waiting; `None` if no tool of the endpoint does so.
    pub(crate) fn wait_place(&self, caller: &Caller, ending: CancellationToken) -> Option<WaitPlace> {
        let tool = self.wait_tool.as_ref()?;
        Some(WaitPlace {
            api: self.of.api.name().map(ToString::to_string),
            tenant: self.tenant(caller).map(str::to_owned),
            endpoint: Arc::clone(&self.view.path),
            how: Ok(format!("to go on waiting, call `{tool}` with this handle:")),
            ending,
            report: None,
        })
    }

    /// Makes the call. Dropping the future ends the request.
    pub(crate) async fn call(mut self, caller: Caller) -> ToolResult {
        if let Some((_, meta_tool)) = &self.meta_tool {
            tracing::debug!(tool = %self.offered().tool.name, meta_tool, "called through a meta-tool");
        }
        let (arguments, wait) = (self.arguments.take(), self.wait.take());
        let visible = self.visible();
        let shown_tool = |name: &str| {
            let offered = visible.listed(name)?;
            Some(match &self.meta_tool_prefix {
                None => name.to_owned(),
                Some(prefix) => {
                    let meta_tool = MetaToolKind::of_effect(offered.enforcement.effect()).name();
                    format!("`{prefix}{meta_tool}` with operation `{name}`")
                }
            })
        };
        let mut result = match wait {
            Some(wait) => {
                let OpenedWait { state, is_look } = *wait;
                self.of.api.resume_at(self.tool, state, is_look, caller, &shown_tool).await
            }
            None => self.of.api.call_at(self.tool, arguments, caller, &shown_tool).await,
        };
        if let Some((_, tool)) = &self.meta_tool {
            result.note_called_through(tool, visible.name_of(self.tool));
        }
        self.remarks.into_iter().for_each(|remark| result.note(NoteKind::Repair, remark));
        result
    }
}
