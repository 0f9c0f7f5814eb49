//! `search_operations`: hits for each question, or the tags if there is none.

use serde::Deserialize;
use serde_json::{Value, json};

use super::listing::{tag_counts, vocabulary};
use super::meta_tool_set::{MetaTools, read_request};
use crate::annotate::Effect;
use crate::annotate::names::MetaToolKind;
use crate::api::{BoundTool, ToolIndex};
use crate::json::JsonObject;
use crate::mcp::visible::{VisibleApi, VisibleApis};
use crate::results::render::OutputContract;
use crate::results::result_notes::NoteKind;
use crate::results::tool_result::ToolResult;
use crate::search::{Hit, QueryAnswer, Ranking, SearchAnswer, as_path, as_words};
use crate::spec::node::Node;
use crate::text::{MAX_LIKENED_BYTES, counted, one_line};

/// The most hits over all queries.
const MAX_HITS: usize = 25;
/// Number of sources of identifiers that a hit names.
const MAX_NEEDS: usize = 2;
/// Number of tags that are listed without a query.
const MAX_TAGS: usize = 60;
/// Number of the most similar tags that are named if none fits.
const NEAR_TAGS: usize = 5;

/// The member of `_meta` with an answer for programs: hosts show a model the lines alone.
const META_KEY: &str = "openapi-mcp/search";

/// The arguments of a search, as its input schema has them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SearchRequest {
    queries: Vec<String>,
    api: Option<String>,
    tag: Option<String>,
    effect: Option<Effect>,
    limit: Option<usize>,
    offset: usize,
}

/// Answers a search: which operations fit. Those of an API that is missing may fit as well.
pub(crate) fn search_operations(
    meta_tools: &MetaTools,
    seen: &VisibleApis,
    arguments: JsonObject,
) -> ToolResult {
    let mut result = read_request(arguments).map_or_else(
        |invalid| *invalid,
        |request| answer_search(meta_tools, seen, request),
    );
    if let Some(missing) = &meta_tools.missing_apis {
        result.note(NoteKind::Cut, missing);
    }
    result
}

fn answer_search(
    meta_tools: &MetaTools,
    seen: &VisibleApis,
    mut request: SearchRequest,
) -> ToolResult {
    request.queries.retain(|query| !query.trim().is_empty());
    if request.offset > 0 && request.queries.len() > 1 {
        return ToolResult::error("The search was not made: `offset` goes with one query only.");
    }
    let mut seen = seen.clone();
    if let Some(wanted) = &request.api {
        seen.apis.retain(|api| api.label() == Some(wanted.as_str()));
    }
    let seen = &seen;
    if let Some(unknown) = describe_unknown_tag(seen, &request) {
        return ToolResult::error(unknown);
    }
    let answers: Vec<(&String, Option<QueryAnswer>)> = request
        .queries
        .iter()
        .map(|query| (query, answer(seen, query, &request)))
        .collect();
    // `show all` asks for nothing in particular.
    let results = if answers.iter().all(|(_, answer)| answer.is_none()) {
        if request.tag.is_none() && request.effect.is_none() {
            return list_tags(meta_tools, seen);
        }
        vec![browse(seen, &request)]
    } else {
        let with_words = |(query, answer): (&String, Option<QueryAnswer>)| {
            answer.unwrap_or_else(|| without_words(seen, query))
        };
        answers.into_iter().map(with_words).collect()
    };
    let answer = SearchAnswer {
        results,
        offset: request.offset,
        note: None,
    };
    let answer = answer.fitted();
    result_of(answer.text(), answer.json())
}

impl SearchRequest {
    /// Returns the number of hits for each query.
    fn limit(&self) -> usize {
        let count = self.queries.len().max(1);
        let usual = match count {
            1 => 8,
            2 | 3 => 5,
            4 => 4,
            _ => 3,
        };
        self.limit.unwrap_or(usual).min(MAX_HITS / count)
    }

    /// Returns true if an operation may be a hit.
    fn admits(&self, offered: &BoundTool) -> bool {
        has_effect_and_tag(offered, self.effect, self.tag.as_deref())
    }
}

/// Returns true if an operation has that effect and that tag, as far as they are given.
pub(crate) fn has_effect_and_tag(
    offered: &BoundTool,
    effect: Option<Effect>,
    tag: Option<&str>,
) -> bool {
    effect.is_none_or(|effect| offered.hints.effect() == effect)
        && tag.is_none_or(|tag| has_tag(offered, tag))
}

/// Returns true if an operation has a tag or category; case does not count.
fn has_tag(offered: &BoundTool, tag: &str) -> bool {
    let tags = offered
        .operation
        .tags
        .iter()
        .map(String::as_str)
        .chain(offered.category.as_deref());
    tags.map(str::to_lowercase)
        .any(|own| own == tag.to_lowercase())
}

/// Describes a tag that no operation has; `None` if one has it.
fn describe_unknown_tag(seen: &VisibleApis, request: &SearchRequest) -> Option<String> {
    let tag = request.tag.as_deref()?;
    let is_known = seen
        .operations()
        .any(|(_, _, offered)| has_tag(offered, tag));
    (!is_known).then(|| {
        format!(
            "The search was not made: no operation has the tag `{}`.{}",
            as_words(tag),
            near_tags(seen, tag)
        )
    })
}

fn result_of(text: String, json: Value) -> ToolResult {
    let mut result = ToolResult::of_text(text, OutputContract::None.text_form());
    result.insert_meta(META_KEY, json);
    result
}

/// Answers a query that consists of stop words, beside others that do not.
fn without_words(seen: &VisibleApis, query: &str) -> QueryAnswer {
    QueryAnswer {
        query: query.to_owned(),
        hits: Vec::new(),
        total: 0,
        remark: Some(format!(
            "These words say nothing about an operation. {}",
            vocabulary(seen)
        )),
    }
}

/// The operations that answer a query.
pub(crate) struct RankedOperations<'s> {
    /// Best first, each with its API.
    pub(crate) hits: Vec<(&'s VisibleApi, ToolIndex)>,
    /// Number of the first of them that answer about as well as the best one of their API.
    pub(crate) good: usize,
    /// True if any word of the query occurs in any operation.
    is_known: bool,
    /// True if the query has words to search for.
    has_words: bool,
}

/// Ranks the operations that a client may list and `admits` accepts: the hits of all APIs in one
/// order, by their rank in their API, and by how far the best hit of that API fits.
pub(crate) fn rank_operations<'s>(
    seen: &'s VisibleApis,
    query: &str,
    admits: &dyn Fn(&BoundTool) -> bool,
) -> RankedOperations<'s> {
    const RANKS: u16 = 5;
    let mut weighed: Vec<(f32, (&VisibleApi, ToolIndex), bool)> = Vec::new();
    let (mut is_known, mut has_words) = (false, false);
    for api in &seen.apis {
        let found = search_one(api, query, admits);
        is_known |= found.is_known;
        has_words |= found.has_words;
        for ((at, hit), rank) in found.hits.into_iter().enumerate().zip(RANKS..u16::MAX) {
            let weight = found.fit / f32::from(rank);
            weighed.push((weight, (api, hit), at < found.good));
        }
    }
    if seen.apis.len() > 1 {
        weighed.sort_by(|a, b| b.0.total_cmp(&a.0));
    }
    RankedOperations {
        good: weighed.iter().take_while(|(.., is_good)| *is_good).count(),
        hits: weighed.into_iter().map(|(_, hit, _)| hit).collect(),
        is_known,
        has_words,
    }
}

/// Answers a query; `None` if it consists of stop words.
fn answer(seen: &VisibleApis, query: &str, request: &SearchRequest) -> Option<QueryAnswer> {
    let ranked = rank_operations(seen, query, &|offered| request.admits(offered));
    if !ranked.has_words {
        return None;
    }
    let total = ranked.hits.len();
    let hits = shown_hits(seen, request, ranked.hits.into_iter());
    let remark = if total > 0 {
        hits.is_empty().then(|| past_the_end(total, request.offset))
    } else if ranked.is_known {
        Some(format!(
            "No operation fits. Ask in other words, if this API can do it at all.{}",
            near_tags(seen, query)
        ))
    } else {
        Some(format!(
            "No operation has any of these words; ask in the words and the language of the API. {}",
            vocabulary(seen)
        ))
    };
    Some(QueryAnswer {
        query: query.to_owned(),
        hits,
        total,
        remark,
    })
}

fn search_one(
    api: &VisibleApi,
    query: &str,
    admits: &dyn Fn(&BoundTool) -> bool,
) -> Ranking<ToolIndex> {
    let shows = |index| api.shows(index);
    // A caller must not learn that an operation exists that it may not list.
    let listed = api.rights.is_some().then_some(&shows as _);
    api.api.search(query, listed, &|index| {
        api.shows(index) && admits(api.api.tool(index))
    })
}

/// All operations of a tag or a class, in the order of the document.
fn browse(seen: &VisibleApis, request: &SearchRequest) -> QueryAnswer {
    let all = seen.operations();
    let all = all.filter(|(.., offered)| request.admits(offered));
    let all: Vec<_> = all.map(|(api, index, _)| (api, index)).collect();
    let total = all.len();
    let hits = shown_hits(seen, request, all.into_iter());
    let remark = match (total, hits.len()) {
        (0, _) => Some(format!("No operation is like that. {}", vocabulary(seen))),
        (total, 0) => Some(past_the_end(total, request.offset)),
        _ => None,
    };
    QueryAnswer {
        query: String::new(),
        hits,
        total,
        remark,
    }
}

/// The hits that a request asks for, of all.
fn shown_hits<'s>(
    seen: &VisibleApis,
    request: &SearchRequest,
    all: impl Iterator<Item = (&'s VisibleApi, ToolIndex)>,
) -> Vec<Hit> {
    let shown = all.skip(request.offset).take(request.limit());
    shown.map(|(api, index)| hit_of(seen, api, index)).collect()
}

/// Describes an offset after the last hit.
fn past_the_end(total: usize, offset: usize) -> String {
    format!(
        "There are {}, none from {offset} on.",
        counted(total, "hit")
    )
}

fn hit_of(seen: &VisibleApis, api: &VisibleApi, index: ToolIndex) -> Hit {
    let offered = api.api.tool(index);
    let sources = api
        .api
        .needed_values(index)
        .filter(|need| api.shows(need.source));
    let needs = sources.take(MAX_NEEDS).map(|need| {
        let source = api.name_of(need.source);
        format!("{} <- {source}", as_words(need.argument))
    });
    Hit {
        api: api.label().filter(|_| seen.names_apis).map(str::to_owned),
        name: api.name_of(index).to_owned(),
        method: offered.operation.method.to_string(),
        path: as_path(&offered.operation.path),
        effect: offered.hints.effect(),
        title: as_words(&offered.title),
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
fn near_tags(seen: &VisibleApis, query: &str) -> String {
    let mut scored: Vec<(f64, &str)> = tag_counts(seen)
        .into_iter()
        .map(|(tag, _)| {
            let words = query
                .split(|character: char| !character.is_alphanumeric())
                .filter(|word| (3..=MAX_LIKENED_BYTES).contains(&word.len()));
            let likeness =
                words.map(|word| strsim::jaro_winkler(&word.to_lowercase(), &tag.to_lowercase()));
            (likeness.fold(0.0, f64::max), tag)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<String> = scored
        .into_iter()
        .take(NEAR_TAGS)
        .map(|(_, tag)| as_words(tag))
        .collect();
    if near.is_empty() {
        return String::new();
    }
    format!(" The nearest tags: {}.", near.join(", "))
}

/// The answer to a search that asks for nothing: what there is.
fn list_tags(meta_tools: &MetaTools, seen: &VisibleApis) -> ToolResult {
    let tags = tag_counts(seen);
    // Of several APIs, no document's words may speak about the tag of another one.
    let documents = seen
        .apis
        .iter()
        .filter(|_| !seen.names_apis)
        .map(|api| api.api.document());
    let about = |tag: &str| {
        let declared = documents
            .clone()
            .filter_map(|document| document.member("tags").and_then(Node::array));
        let declared = declared.flatten();
        let described = declared
            .filter_map(Node::object)
            .find(|object| object.text("name").as_deref() == Some(tag))?;
        let text = one_line(&described.text("description")?);
        let sentence = text
            .split_once(". ")
            .map_or(text.as_str(), |(first, _)| first);
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
            counted(seen.operations().count(), "operation"),
            counted(tags.len(), "tag")
        )];
        for (tag, count, about) in &shown {
            let about = about
                .as_deref()
                .map(|about| format!(" · {about}"))
                .unwrap_or_default();
            lines.push(format!("{tag} ({count}){about}"));
        }
        if shown.len() < tags.len() {
            lines.push(format!("… and {} more", tags.len() - shown.len()));
        }
        if tags.is_empty() {
            lines.push(vocabulary(seen));
        }
        lines.push(format!(
            "Ask {} with words of what you want to do.",
            meta_tools.name_of(MetaToolKind::Search)
        ));
        let json = json!({
            "results": [],
            "tags": shown.iter().map(|(tag, count, about)| json!({"tag": tag, "operations": count, "about": about})).collect::<Vec<_>>(),
        });
        let text = lines.join("\n");
        if (text.len() <= 4500 && json.to_string().len() <= 4500) || most == 0 {
            return result_of(text, json);
        }
        most -= most.min(5);
    }
}
