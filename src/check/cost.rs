//! The cost of a list of tools: a client loads all of it into the context of a model.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use crate::annotate::descriptions::returns;
use crate::annotate::output::ReplyDescriber;
use crate::annotate::{ClientProfile, KnownClient};
use crate::api::{Api, BoundTool};
use crate::text::{TYPICAL_BYTES_PER_TOKEN, one_line};

/// A longer list is worth a warning for any client.
const MAX_LIST_TOKENS: usize = 20_000;
/// Number of the largest tools that are named.
const MAX_NAMED_TOOLS: usize = 10;

/// Cost of one tool.
#[derive(Serialize)]
pub(crate) struct ToolCost {
    /// The tool's name.
    pub(crate) tool: String,
    /// Its bytes in the list.
    pub(crate) bytes: usize,
}

/// Cost of the tools of one tag.
#[derive(Serialize)]
pub(crate) struct TagCost {
    /// The tag; none for tools without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    /// The pattern for `--tool-include` that offers these tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) include: Option<String>,
    /// Number of tools that have it.
    pub(crate) tools: usize,
    /// Approximate number of their tokens in the list.
    pub(crate) tokens: usize,
}

/// Returns the number of bytes of the answer to `tools/list`.
pub(crate) fn list_bytes(api: &Api) -> usize {
    let tools = api.tools().iter();
    tools.map(|tool| tool.json().len() + 1).sum::<usize>() + 1
}

/// Returns the approximate number of tokens of the answer to `tools/list`.
pub(crate) fn list_tokens(api: &Api) -> usize {
    list_bytes(api) / TYPICAL_BYTES_PER_TOKEN
}

/// Warns about a list with too many tools or tokens for a client, in sentences.
pub(crate) fn list_warnings(tools: usize, tokens: usize, profile: &ClientProfile) -> Vec<String> {
    let client = profile.name;
    let most = profile.max_tools.filter(|most| tools > *most);
    let too_many = most.map(|most| format!(
        "{client} takes at most {most} tools, and these are {tools}; offer all of them behind a few tools with --tools search, or choose some with --tool-include"
    ));
    let too_long = (tokens > MAX_LIST_TOKENS).then(|| format!(
        "the list of tools takes about {tokens} tokens of a model's context, which is a lot for {client}; offer all of them behind a few tools with --tools search (--tools auto decides by the length of the list), or choose some with --tool-include, as `openapi-mcp check` lists them by tag"
    ));
    too_many.into_iter().chain(too_long).collect()
}

/// Effect of the list on a client, and the setting that helps.
#[derive(Serialize)]
pub(crate) struct ClientCost {
    /// Its name.
    pub(crate) client: &'static str,
    /// Number of tools that it takes, if that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_tools: Option<usize>,
    /// True if the client takes all of them.
    pub(crate) takes_all: bool,
    /// The setting for it.
    pub(crate) setting: &'static str,
}

/// Returns the effect on each client of a list that is long for any of them; none for a short one.
pub(crate) fn client_costs(tools: usize, tokens: usize) -> Vec<ClientCost> {
    let searches = "--tools all (it searches among listed tools itself)";
    let clients = [
        (KnownClient::Claude, searches),
        (KnownClient::ClaudeDesktop, searches),
        (KnownClient::Codex, searches),
        (
            KnownClient::Openai,
            "--tools all in ChatGPT, which searches itself; else --client openai",
        ),
        (KnownClient::Vscode, "--client vscode"),
        (KnownClient::Cursor, "--client cursor"),
        (KnownClient::Windsurf, "--client windsurf"),
        (KnownClient::Generic, "--tools auto"),
    ];
    let cost = |(client, setting): (KnownClient, &'static str)| {
        let profile = client.profile();
        ClientCost {
            client: profile.name,
            max_tools: profile.max_tools,
            takes_all: profile.max_tools.is_none_or(|most| tools <= most),
            setting,
        }
    };
    let costs: Vec<ClientCost> = clients.map(cost).into();
    let is_short = tokens <= MAX_LIST_TOKENS && costs.iter().all(|cost| cost.takes_all);
    if is_short { Vec::new() } else { costs }
}

/// The largest tools, the largest first.
pub(crate) fn largest_tools(api: &Api) -> Vec<ToolCost> {
    let cost = |offered: &BoundTool| ToolCost {
        tool: offered.name.to_string(),
        bytes: offered.json().len(),
    };
    let mut tools: Vec<ToolCost> = api.tools().iter().map(cost).collect();
    tools.sort_by_key(|cost| Reverse(cost.bytes));
    tools.truncate(MAX_NAMED_TOOLS);
    tools
}

/// Returns the cost of each tag, the largest first. A tool of two tags counts for both.
pub(crate) fn by_tag(api: &Api) -> Vec<TagCost> {
    let mut costs: HashMap<Option<&str>, (usize, usize)> = HashMap::new();
    for offered in api.tools() {
        let tags = offered.operation.tags.iter();
        let mut tags: BTreeSet<Option<&str>> = tags.map(|tag| Some(tag.as_str())).collect();
        if tags.is_empty() {
            tags.insert(None);
        }
        for tag in tags {
            let (tools, bytes) = costs.entry(tag).or_default();
            *tools += 1;
            *bytes += offered.json().len() + 1;
        }
    }
    let cost = |(tag, (tools, bytes)): (Option<&str>, (usize, usize))| TagCost {
        tag: tag.map(one_line),
        include: tag.map(|tag| format!("tag:{}", globset::escape(tag))),
        tools,
        tokens: bytes / TYPICAL_BYTES_PER_TOKEN,
    };
    let mut by_tag: Vec<TagCost> = costs.into_iter().map(cost).collect();
    by_tag.sort_by(|a, b| (Reverse(a.tokens), &a.tag).cmp(&(Reverse(b.tokens), &b.tag)));
    by_tag
}

/// Returns the approximate number of tokens that `describe: brief` adds to the list.
pub(crate) fn brief_tokens(api: &Api) -> usize {
    let mut replies = ReplyDescriber::new(api.document());
    let tools = api.tools().iter();
    let lines = tools.filter_map(|tool| returns(&tool.operation, &mut replies));
    let added: usize = lines.map(|line| line.len()).sum();
    added.div_ceil(TYPICAL_BYTES_PER_TOKEN)
}
