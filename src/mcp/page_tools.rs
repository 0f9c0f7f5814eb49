//! The tools as the page for people shows them: a ranked list, and one tool in detail. The page
//! requests both by methods that are not MCP's, so that `tools/list` does not get longer for
//! clients.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::model::{CustomResult, ErrorData};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::catalog::Catalog;
use super::endpoints::introduction::UNNAMED;
use super::meta_tools::{MAX_QUERY_LENGTH, has_effect_and_tag, rank_operations, tag_counts};
use super::visible::VisibleApis;
use crate::annotate::meta_tool_names::MetaToolKind;
use crate::annotate::{Effect, Hint};
use crate::api::about::MAX_NAME_BYTES;
use crate::api::{BoundTool, ToolIndex};
use crate::caller::client_grant::ClientGrant;
use crate::json::JsonObject;
use crate::spec::operation::examples::argument_examples;
use crate::text::{name_from_title, one_line};

/// The method that lists tools.
const LIST: &str = "openapi-mcp/tools";
/// The method that describes a tool.
const DETAIL: &str = "openapi-mcp/tool";
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
        match method {
            LIST => Some(
                read_parameters(parameters)
                    .and_then(ListRequest::checked)
                    .map(Self::List),
            ),
            DETAIL => Some(read_parameters(parameters).map(Self::Detail)),
            _ => None,
        }
    }

    /// Answers with tools that the client may list, and with nothing of others.
    ///
    /// # Errors
    /// There is no such tool.
    pub(super) async fn answer(
        self,
        catalog: Arc<Catalog>,
        granted: &ClientGrant,
    ) -> Result<CustomResult, ErrorData> {
        let rights = catalog.rights(granted);
        // The first search of an API builds its index, which takes long for a large one.
        let answering = tokio::task::spawn_blocking(move || {
            let seen = catalog.visible(&rights);
            match self {
                Self::List(request) => Some(request.list(&catalog, &seen)),
                Self::Detail(request) => request.describe(&catalog, &seen),
            }
        });
        let answer = answering.await.map_err(|_| {
            ErrorData::internal_error(
                "the request failed because of an error inside this server",
                None,
            )
        })?;
        let answer = answer.ok_or_else(|| {
            ErrorData::invalid_params("`tool` must be the name of a tool that is listed", None)
        })?;
        Ok(CustomResult::new(answer))
    }
}

fn read_parameters<T: DeserializeOwned>(parameters: Option<&Value>) -> Result<T, ErrorData> {
    let parameters = parameters
        .cloned()
        .unwrap_or_else(|| Value::Object(JsonObject::new()));
    serde_json::from_value(parameters)
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

impl ListRequest {
    fn checked(self) -> Result<Self, ErrorData> {
        // The work of a search grows with its words.
        if self.query.len() > MAX_QUERY_LENGTH {
            return Err(ErrorData::invalid_params(
                format!("`query` must have at most {MAX_QUERY_LENGTH} bytes"),
                None,
            ));
        }
        Ok(self)
    }

    fn list(&self, catalog: &Catalog, seen: &VisibleApis<'_>) -> Value {
        let found = self.find(seen);
        let shown = found.iter().skip(self.offset).take(MAX_LISTED);
        let shown = shown.filter_map(|(place, index)| {
            Some(summarize_tool(seen.apis.get(*place)?.api.tool(*index)))
        });
        let mut answer = json!({ "total": found.len(), "tools": shown.collect::<Vec<Value>>() });
        let is_whole = self.query.trim().is_empty() && self.effect.is_none() && self.tag.is_none();
        if let (true, 0, Some(members)) = (is_whole, self.offset, answer.as_object_mut()) {
            members.insert("server".into(), introduce(catalog, seen));
        }
        answer
    }

    /// The tools that fit: in the order of a search, and then those that have the words, or their
    /// beginnings, in name, title or path.
    fn find(&self, seen: &VisibleApis<'_>) -> Vec<(usize, ToolIndex)> {
        let is_admitted =
            |offered: &BoundTool| has_effect_and_tag(offered, self.effect, self.tag.as_deref());
        let places = seen.apis.iter().enumerate().flat_map(|(place, api)| {
            let admitted = api.operations().filter(|(_, offered)| is_admitted(offered));
            admitted.map(move |(index, offered)| ((place, index), offered))
        });
        let query = self.query.trim().to_lowercase();
        if query.is_empty() {
            return places.map(|(place, _)| place).collect();
        }
        let mut found = rank_operations(seen, &self.query, &is_admitted).places;
        let ranked: HashSet<(usize, usize)> = found
            .iter()
            .map(|(place, index)| (*place, index.place()))
            .collect();
        let words: Vec<&str> = query.split_whitespace().collect();
        let others = places.filter(|((place, index), offered)| {
            let text = search_text(offered);
            !ranked.contains(&(*place, index.place()))
                && words.iter().all(|word| text.contains(word))
        });
        found.extend(others.map(|(place, _)| place));
        found
    }
}

fn search_text(offered: &BoundTool) -> String {
    let operation = &offered.operation;
    let mut text = format!(
        "{} {} {} {}",
        offered.name, offered.title, operation.method, operation.path
    )
    .to_lowercase();
    for tag in &operation.tags {
        text.push(' ');
        text.push_str(&tag.to_lowercase());
    }
    text
}

impl DetailRequest {
    fn describe(&self, catalog: &Catalog, seen: &VisibleApis<'_>) -> Option<Value> {
        let (api, index) = seen.find(&self.tool)?;
        api.shows(index).then(|| {
            let offered = api.api.tool(index);
            let mut detail = describe_tool(offered, &api.api.tool_json(index));
            let mut examples = argument_examples(api.api.document(), &offered.operation);
            // A rule may hide an argument.
            let shown = detail.pointer("/tool/inputSchema/properties");
            examples.retain(|argument, _| shown.and_then(|shown| shown.get(argument)).is_some());
            let meta_tool = catalog.meta_tools().map(|meta_tools| {
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
fn introduce(catalog: &Catalog, seen: &VisibleApis<'_>) -> Value {
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
    let effects: JsonObject = Effect::ALL
        .into_iter()
        .map(|effect| {
            let has_effect = seen
                .operations()
                .filter(|(_, _, offered)| offered.hints.effect() == effect);
            (effect.word().to_owned(), has_effect.count().into())
        })
        .collect();
    let tags: Vec<Value> = tag_counts(seen)
        .into_iter()
        .take(MAX_TAGS)
        .map(|(tag, count)| json!([tag, count]))
        .collect();
    json!({
        "entry": entry,
        "title": info.title,
        "description": info.description,
        "website": info.website_url,
        "version": version,
        "effects": effects,
        "tags": tags,
        "isSearchMode": catalog.meta_tools().is_some(),
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
    let hints: Vec<Value> = Hint::ALL
        .into_iter()
        .map(|hint| {
            json!({
                "hint": hint.word(),
                "value": offered.hints.effective(hint),
                "because": offered.hints.because(hint, method),
            })
        })
        .collect();
    let mut detail = summarize_tool(offered);
    if let Some(members) = detail.as_object_mut() {
        members.insert("hints".into(), hints.into());
        members.insert("confirmed".into(), offered.must_confirm.into());
        members.insert("tool".into(), tool);
    }
    detail
}
