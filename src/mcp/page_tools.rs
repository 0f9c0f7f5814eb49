//! The tools as the page for people shows them: a ranked list, one tool in detail, and the request
//! that a call would make. The page requests them by methods that are not MCP's, so that `tools/list`
//! does not get longer for clients.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rmcp::model::{CustomResult, ErrorData};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::calls::plan::Plan;
use super::catalog::Catalog;
use super::endpoints::introduction::UNNAMED;
use super::meta_tools::{MAX_QUERY_LENGTH, has_effect_and_tag, rank_operations, tag_counts};
use super::visible::{SeenOperation, VisibleApis};
use crate::annotate::names::MetaToolKind;
use crate::annotate::{Effect, Hint};
use crate::api::BoundTool;
use crate::api::about::MAX_NAME_BYTES;
use crate::caller::Caller;
use crate::json::JsonObject;
use crate::proxy::OnMissingCredential;
use crate::spec::document::source::redacted;
use crate::spec::operation::examples::argument_examples;
use crate::text::{name_from_title, one_line};

/// The method that lists tools.
const LIST: &str = "openapi-mcp/tools";
/// The method that describes a tool.
const DETAIL: &str = "openapi-mcp/tool";
/// The method that shows the request of a call.
const PREVIEW: &str = "openapi-mcp/request";
/// The most tools of one answer. The page requests the next ones when a reader scrolls to them.
const MAX_LISTED: usize = 200;
/// The most tags that the page offers to choose from.
const MAX_TAGS: usize = 300;

/// A request of the page.
pub(super) enum PageRequest {
    /// For a part of the list.
    List(ListRequest),
    /// For one tool.
    Detail(DetailRequest),
    /// For the request of a call.
    Preview(PreviewRequest),
}

/// What a page shows of the server.
#[derive(Clone, Copy)]
pub(super) struct PageView {
    /// True if it shows the base URL and the requests to the API.
    pub(super) shows_requests: bool,
    /// True if calls are answered from the examples of the document.
    pub(super) is_mock: bool,
}

/// The tools that a reader looks for.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ListRequest {
    query: String,
    effect: Option<Effect>,
    tag: Option<String>,
    offset: usize,
}

/// A call that a reader has filled in, as clients make it.
#[derive(Deserialize)]
pub(super) struct PreviewRequest {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
}

/// The tools of an answer, in their order.
#[derive(Default)]
struct FoundTools<'s> {
    tools: Vec<&'s BoundTool>,
    /// The groups that they are in, each with its number of tools; none if they are ranked.
    groups: Vec<(String, usize)>,
    /// Number of the first tools that answer a search well.
    good: usize,
}

/// The tool that a reader has chosen.
#[derive(Deserialize)]
pub(super) struct DetailRequest {
    tool: String,
}

impl PageRequest {
    /// Reads a request; `None` if the method is another one.
    ///
    /// # Errors
    /// The parameters are not valid.
    pub(super) fn read(
        method: &str,
        parameters: Option<&Value>,
    ) -> Option<Result<Self, ErrorData>> {
        Some(match method {
            LIST => {
                let request = read_parameters(parameters);
                request.and_then(ListRequest::checked).map(Self::List)
            }
            DETAIL => read_parameters(parameters).map(Self::Detail),
            PREVIEW => read_parameters(parameters).map(Self::Preview),
            _ => return None,
        })
    }

    /// Answers with tools that the client may list, and with nothing of others.
    ///
    /// # Errors
    /// There is no such tool.
    pub(super) async fn answer(
        self,
        catalog: Arc<Catalog>,
        caller: Caller,
        view: PageView,
    ) -> Result<CustomResult, ErrorData> {
        let seen = catalog.visible(Some(caller.granted()));
        // The first search of an API builds its index, which takes long for a large one.
        let answering = tokio::task::spawn_blocking(move || match self {
            Self::List(request) => Some(request.list(&catalog, &seen, view)),
            Self::Detail(request) => request.describe(&catalog, &seen),
            Self::Preview(request) if view.shows_requests => request.preview(&catalog, &caller),
            Self::Preview(_) => None,
        });
        let failed = "the request failed because of an error inside this server";
        let unlisted = "`tool` must be the name of a tool that is listed";
        match answering.await {
            Ok(Some(answer)) => Ok(CustomResult::new(answer)),
            Ok(None) => Err(ErrorData::invalid_params(unlisted, None)),
            Err(_) => Err(ErrorData::internal_error(failed, None)),
        }
    }
}

fn read_parameters<T: DeserializeOwned>(parameters: Option<&Value>) -> Result<T, ErrorData> {
    let parameters = parameters.cloned();
    serde_json::from_value(parameters.unwrap_or_else(|| json!({})))
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

impl ListRequest {
    fn checked(self) -> Result<Self, ErrorData> {
        // The work of a search grows with its words.
        if self.query.len() > MAX_QUERY_LENGTH {
            let why = format!("`query` must have at most {MAX_QUERY_LENGTH} bytes");
            return Err(ErrorData::invalid_params(why, None));
        }
        Ok(self)
    }

    fn list(&self, catalog: &Catalog, seen: &VisibleApis, view: PageView) -> Value {
        let found = self.find(seen);
        let shown = found.tools.iter().skip(self.offset).take(MAX_LISTED);
        let mut answer = json!({
            "total": found.tools.len(),
            "tools": shown.map(|offered| summarize_tool(offered)).collect::<Vec<Value>>(),
            "groups": found.groups,
            "good": found.good,
        });
        let is_whole = self.query.trim().is_empty() && self.effect.is_none() && self.tag.is_none();
        if let (true, 0, Some(members)) = (is_whole, self.offset, answer.as_object_mut()) {
            members.insert("server".into(), introduce(catalog, seen, view));
        }
        answer
    }

    /// The tools that fit: in the order of a search, and then those that have the words, or their
    /// beginnings, in name, title or path.
    fn find<'s>(&self, seen: &'s VisibleApis) -> FoundTools<'s> {
        let is_admitted =
            |offered: &BoundTool| has_effect_and_tag(offered, self.effect, self.tag.as_deref());
        let admitted = seen
            .operations()
            .filter(|(.., offered)| is_admitted(offered));
        let query = self.query.trim().to_lowercase();
        if query.is_empty() {
            let mut found = grouped(admitted);
            if self.tag.is_some() {
                found.groups.clear();
            }
            return found;
        }
        let ranking = rank_operations(seen, &self.query, &is_admitted);
        let ranked = ranking.hits.iter();
        let mut tools: Vec<_> = ranked.map(|(api, index)| api.api.tool(*index)).collect();
        let ranked: HashSet<&str> = tools.iter().map(|offered| &*offered.name).collect();
        let words: Vec<&str> = query.split_whitespace().collect();
        let others = admitted.map(|(.., offered)| offered).filter(|offered| {
            let text = search_text(offered);
            !ranked.contains(&*offered.name) && words.iter().all(|word| text.contains(word))
        });
        tools.extend(others);
        FoundTools {
            good: ranking.good,
            tools,
            groups: Vec::new(),
        }
    }
}

/// Puts tools of one tag together, in the order in which the tags appear; of several APIs, those of
/// each apart.
fn grouped<'s>(tools: impl Iterator<Item = SeenOperation<'s>>) -> FoundTools<'s> {
    let mut order: HashMap<(Option<&str>, &str), usize> = HashMap::new();
    let mut groups: Vec<(String, Vec<&BoundTool>)> = Vec::new();
    for (api, _, offered) in tools {
        let tag = offered.operation.tags.first().map_or("", String::as_str);
        let group = *order.entry((api.label(), tag)).or_insert_with(|| {
            groups.push((group_name(api.label(), tag), Vec::new()));
            groups.len() - 1
        });
        if let Some((_, members)) = groups.get_mut(group) {
            members.push(offered);
        }
    }
    let counts = groups
        .iter()
        .map(|(name, members)| (name.clone(), members.len()));
    FoundTools {
        groups: counts.filter(|_| groups.len() > 1).collect(),
        tools: groups
            .into_iter()
            .flat_map(|(_, members)| members)
            .collect(),
        good: 0,
    }
}

/// The heading of a group.
fn group_name(api: Option<&str>, tag: &str) -> String {
    match (api, one_line(tag).as_str()) {
        (api, "") => api.unwrap_or("Other").to_owned(),
        (None, tag) => tag.to_owned(),
        (Some(api), tag) => format!("{api}: {tag}"),
    }
}

impl PreviewRequest {
    /// The request without credentials, as a command, or what is wrong with the arguments.
    fn preview(self, catalog: &Arc<Catalog>, caller: &Caller) -> Option<Value> {
        let (arguments, granted) = (Some(self.arguments), Some(caller.granted()));
        let Plan::Call(call) = catalog.plan(&self.name, arguments, granted, caller)? else {
            return None;
        };
        Some(match call.preview(OnMissingCredential::Omit, caller) {
            Ok(request) => json!({ "curl": request.curl_text() }),
            Err(refused) => json!({ "problem": refused.text() }),
        })
    }
}

fn search_text(offered: &BoundTool) -> String {
    let (name, title, operation) = (&offered.name, &offered.title, &offered.operation);
    let (method, path, tags) = (&operation.method, &operation.path, operation.tags.join(" "));
    format!("{name} {title} {method} {path} {tags}").to_lowercase()
}

impl DetailRequest {
    fn describe(&self, catalog: &Catalog, seen: &VisibleApis) -> Option<Value> {
        let (api, index) = seen.find(&self.tool)?;
        api.shows(index).then(|| {
            let offered = api.api.tool(index);
            let mut detail = describe_tool(offered, &api.api.tool_json(index));
            let mut examples = argument_examples(api.api.document(), &offered.operation);
            // A rule may hide an argument.
            let shown = detail.pointer("/tool/inputSchema/properties");
            examples.retain(|argument, _| shown.and_then(|shown| shown.get(argument)).is_some());
            let meta_tool = catalog.search_tools().map(|meta_tools| {
                meta_tools.name_of(MetaToolKind::of_effect(offered.hints.effect()))
            });
            if let Some(members) = detail.as_object_mut() {
                members.insert("calledThrough".into(), meta_tool.into());
                members.insert("examples".into(), examples.into());
            }
            detail
        })
    }
}

/// The head of the page: what is served, and how much of it.
fn introduce(catalog: &Catalog, seen: &VisibleApis, view: PageView) -> Value {
    let info = &catalog.config.server_info;
    let title = info.title.as_ref();
    let entry = title.map(|title| match &*info.name {
        UNNAMED => name_from_title(title, MAX_NAME_BYTES),
        name => name.to_owned(),
    });
    let version = match seen.apis.as_slice() {
        [only] => only.api.document().api_version().map(one_line),
        _ => None,
    };
    let effects = Effect::ALL.map(|effect| {
        let operations = seen.operations();
        let all = operations.filter(|(_, _, offered)| offered.hints.effect() == effect);
        (effect.word().to_owned(), Value::from(all.count()))
    });
    let effects = JsonObject::from_iter(effects);
    let base_url = match seen.apis.as_slice() {
        [only] if view.shows_requests && !view.is_mock => {
            let first = only.operations().next();
            first.and_then(|(_, offered)| Some(redacted(offered.target.base_url()?)))
        }
        _ => None,
    };
    // What all tools have in common is said once.
    let all_reach_out = seen.operations().count() > 1
        && seen
            .operations()
            .all(|(_, _, offered)| offered.hints.effective(Hint::OpenWorld));
    let mut tags = tag_counts(seen);
    tags.truncate(MAX_TAGS);
    json!({
        "entry": entry,
        "title": info.title,
        "description": info.description,
        "website": info.website_url,
        "version": version,
        "effects": effects,
        "tags": tags,
        "isSearchMode": catalog.search_tools().is_some(),
        "isMock": view.is_mock,
        "baseUrl": base_url,
        "showsRequests": view.shows_requests,
        "allReachOut": all_reach_out,
    })
}

/// A tool as a row of the list.
pub(crate) fn summarize_tool(offered: &BoundTool) -> Value {
    let operation = &offered.operation;
    json!({
        "name": offered.name,
        "title": offered.title,
        "method": operation.method.as_str(),
        "path": one_line(&operation.path),
        "effect": offered.hints.effect().word(),
        "tags": operation.tags,
    })
}

/// A tool with all that a reader may ask: `text` is the tool as clients get it, as JSON.
pub(crate) fn describe_tool(offered: &BoundTool, text: &str) -> Value {
    let tool: Value = serde_json::from_str(text).unwrap_or_default();
    let method = &offered.operation.method;
    let hints = Hint::ALL.map(|hint| {
        json!({
            "hint": hint.word(),
            "value": offered.hints.effective(hint),
            "because": offered.hints.because(hint, method),
        })
    });
    let mut detail = summarize_tool(offered);
    if let Some(members) = detail.as_object_mut() {
        members.insert("hints".into(), json!(hints));
        members.insert("confirmed".into(), offered.must_confirm.into());
        members.insert("tool".into(), tool);
    }
    detail
}
