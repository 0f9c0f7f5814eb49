//! `search_operations`: hits for each question, or the tags where there is none.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};

use super::gate_set::{Gates, refused, unknown_keys};
use super::listing::{tag_counts, vocabulary};
use crate::annotate::Effect;
use crate::annotate::gate_names::GateKind;
use crate::api::{Api, ToolIndex};
use crate::search::{Hit, QueryAnswer, SearchAnswer, as_path, as_words};
use crate::spec::node::Node;
use crate::text::{counted, one_line, truncate};

const MAX_QUERIES: usize = 5;
/// The most hits over all queries.
const MAX_HITS: usize = 25;
/// How many sources of identifiers a hit names.
const MAX_NEEDS: usize = 2;
/// How many tags are listed where nothing is asked.
const MAX_TAGS: usize = 60;
/// How many of the nearest tags are named where nothing fits.
const NEAR_TAGS: usize = 5;

/// What is asked.
struct SearchRequest {
    queries: Vec<String>,
    tag: Option<String>,
    effect: Option<Effect>,
    limit: usize,
    offset: usize,
}

/// Answers a search: which operations of the API fit.
#[must_use]
pub(crate) fn search_operations(gates: &Gates, api: &Api, arguments: Option<JsonObject>) -> CallToolResult {
    let request = match read_request(&arguments.unwrap_or_default()) {
        Ok(request) => request,
        Err(problems) => return refused(format!("The search was not made: {}.", problems.join("; "))),
    };
    let is_admitted = |index: ToolIndex| {
        let offered = api.offered(index);
        let has_tag = |tag: &str| offered.operation.tags.iter().any(|own| own.to_lowercase() == tag.to_lowercase());
        request.effect.is_none_or(|effect| offered.enforcement.effect() == effect)
            && request
                .tag
                .as_deref()
                .is_none_or(|tag| has_tag(tag) || offered.category.is_some_and(|own| own.to_lowercase() == tag.to_lowercase()))
    };
    let asked: Vec<&String> = request.queries.iter().filter(|query| !query.trim().is_empty()).collect();
    let results = if asked.is_empty() {
        if request.tag.is_none() && request.effect.is_none() {
            return list_tags(gates, api);
        }
        vec![browse(api, &request, &is_admitted)]
    } else {
        asked.iter().map(|query| answer(api, query, &request, &is_admitted)).collect()
    };
    let answer = SearchAnswer {
        results,
        offset: request.offset,
        note: None,
    };
    render(&answer.fitted())
}

fn render(answer: &SearchAnswer) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text())]);
    result.structured_content = Some(answer.json());
    result
}

fn answer(api: &Api, query: &str, request: &SearchRequest, is_admitted: &dyn Fn(ToolIndex) -> bool) -> QueryAnswer {
    let found = api.search(query, is_admitted);
    if !found.has_words {
        return QueryAnswer {
            query: query.to_owned(),
            hits: Vec::new(),
            total: 0,
            remark: Some(format!("These words say nothing about an operation. {}", vocabulary(api))),
        };
    }
    let total = found.hits.len();
    let hits: Vec<Hit> = found
        .hits
        .iter()
        .skip(request.offset)
        .take(request.limit)
        .map(|index| hit_of(api, *index))
        .collect();
    let remark = if total > 0 {
        None
    } else if found.is_known {
        Some(format!(
            "No operation fits. Ask in other words, if this API can do it at all.{}",
            near_tags(api, query)
        ))
    } else {
        Some(format!(
            "No operation has any of these words; ask in the words and the language of the API. {}",
            vocabulary(api)
        ))
    };
    QueryAnswer {
        query: query.to_owned(),
        hits,
        total,
        remark,
    }
}

/// All operations of a tag or a class, in the order of the document.
fn browse(api: &Api, request: &SearchRequest, is_admitted: &dyn Fn(ToolIndex) -> bool) -> QueryAnswer {
    let all: Vec<ToolIndex> = api.indexes().filter(|index| is_admitted(*index)).collect();
    QueryAnswer {
        query: String::new(),
        hits: all
            .iter()
            .skip(request.offset)
            .take(request.limit)
            .map(|index| hit_of(api, *index))
            .collect(),
        total: all.len(),
        remark: all.is_empty().then(|| format!("No operation is like that. {}", vocabulary(api))),
    }
}

fn hit_of(api: &Api, index: ToolIndex) -> Hit {
    let offered = api.offered(index);
    let needs = api.needed_values(index).take(MAX_NEEDS).map(|need| {
        let source = &api.offered(need.source).tool.name;
        format!("{} <- {source}", as_words(need.argument))
    });
    Hit {
        name: offered.tool.name.to_string(),
        method: offered.operation.method.to_string(),
        path: as_path(&offered.operation.path),
        effect: offered.enforcement.effect(),
        title: as_words(offered.tool.title.as_deref().unwrap_or_default()),
        tag: offered
            .operation
            .tags
            .first()
            .map(|tag| as_words(tag))
            .filter(|tag| !tag.is_empty()),
        needs: needs.collect(),
    }
}

/// The tags that are most like the words of a query.
fn near_tags(api: &Api, query: &str) -> String {
    let mut scored: Vec<(f64, &str)> = tag_counts(api)
        .into_iter()
        .map(|(tag, _)| {
            let words = query
                .split(|character: char| !character.is_alphanumeric())
                .filter(|word| word.len() > 2);
            let likeness = words.map(|word| strsim::jaro_winkler(&word.to_lowercase(), &tag.to_lowercase()));
            (likeness.fold(0.0, f64::max), tag)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<String> = scored.into_iter().take(NEAR_TAGS).map(|(_, tag)| as_words(tag)).collect();
    if near.is_empty() {
        return String::new();
    }
    format!(" The nearest tags: {}.", near.join(", "))
}

/// The answer to a search that asks for nothing: what there is.
fn list_tags(gates: &Gates, api: &Api) -> CallToolResult {
    let tags = tag_counts(api);
    let about = |tag: &str| {
        let declared = api.document().member("tags").and_then(Node::array).unwrap_or_default();
        let described = declared
            .into_iter()
            .filter_map(Node::object)
            .find(|object| object.text("name").as_deref() == Some(tag))?;
        let text = one_line(&described.text("description")?);
        let sentence = text.split_once(". ").map_or(text.as_str(), |(first, _)| first);
        Some(as_words(sentence)).filter(|text| !text.is_empty())
    };
    let mut most = MAX_TAGS;
    loop {
        let shown: Vec<(String, usize, Option<String>)> = tags
            .iter()
            .take(most)
            .map(|(tag, count)| (as_words(tag), *count, about(tag)))
            .collect();
        let mut lines = vec![format!(
            "{} in {}.",
            counted(api.tools().len(), "operation"),
            counted(tags.len(), "tag")
        )];
        for (tag, count, about) in &shown {
            let about = about.as_deref().map(|about| format!(" · {about}")).unwrap_or_default();
            lines.push(format!("{tag} ({count}){about}"));
        }
        if shown.len() < tags.len() {
            lines.push(format!("… and {} more", tags.len() - shown.len()));
        }
        if tags.is_empty() {
            lines.push(vocabulary(api));
        }
        lines.push(format!(
            "Ask {} with words of what you want to do.",
            gates.name_of(GateKind::Search)
        ));
        let json = json!({
            "results": [],
            "tags": shown.iter().map(|(tag, count, about)| json!({"tag": tag, "operations": count, "about": about})).collect::<Vec<_>>(),
        });
        let text = lines.join("\n");
        if (text.len() <= 4500 && json.to_string().len() <= 4500) || most == 0 {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(json);
            return result;
        }
        most -= most.min(5);
    }
}

/// The arguments of a search, or all that is wrong with them.
fn read_request(arguments: &JsonObject) -> Result<SearchRequest, Vec<String>> {
    let mut problems = Vec::new();
    let unknown = unknown_keys(arguments, &["queries", "tag", "effect", "limit", "offset"]);
    for key in unknown {
        problems.push(format!("`{}` is not an argument of it", truncate(&one_line(key), 60)));
    }
    let queries = match arguments.get("queries") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(query)) => vec![query.clone()],
        Some(Value::Array(items)) => {
            let texts: Vec<String> = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            if texts.len() != items.len() {
                problems.push("`queries` must be strings".into());
            }
            texts
        }
        Some(_) => {
            problems.push("`queries` must be a list of strings".into());
            Vec::new()
        }
    };
    if queries.len() > MAX_QUERIES {
        problems.push(format!(
            "`queries` has {} items, and at most {MAX_QUERIES} are answered",
            queries.len()
        ));
    }
    if queries.len() > 1 && queries.iter().any(|query| query.trim().is_empty()) {
        problems.push("one of the `queries` is empty".into());
    }
    let mut text = |key: &str| match arguments.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            problems.push(format!("`{key}` must be a string"));
            None
        }
    };
    let (tag, effect) = (text("tag"), text("effect"));
    let class = effect
        .as_deref()
        .and_then(|word| Effect::ALL.into_iter().find(|effect| effect.word() == word));
    if effect.is_some() && class.is_none() {
        problems.push("`effect` must be read, write or destructive".into());
    }
    let mut number = |key: &str, range: std::ops::RangeInclusive<usize>| match arguments.get(key) {
        None | Some(Value::Null) => None,
        Some(value) => {
            let read = value
                .as_u64()
                .or_else(|| value.as_str()?.parse().ok())
                .and_then(|number| usize::try_from(number).ok());
            let number = read.filter(|number| range.contains(number));
            if number.is_none() {
                let bound = if *range.end() == usize::MAX {
                    String::new()
                } else {
                    format!(" to {}", range.end())
                };
                problems.push(format!("`{key}` must be an integer from {}{bound}", range.start()));
            }
            number
        }
    };
    let (limit, offset) = (number("limit", 1..=MAX_HITS), number("offset", 0..=usize::MAX));
    if offset.is_some() && queries.len() > 1 {
        problems.push("`offset` goes with one query only".into());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let count = queries.len().max(1);
    let usual = match count {
        1 => 8,
        2 | 3 => 5,
        4 => 4,
        _ => 3,
    };
    Ok(SearchRequest {
        queries,
        tag,
        effect: class,
        limit: limit.unwrap_or(usual).min(MAX_HITS / count),
        offset: offset.unwrap_or(0),
    })
}
