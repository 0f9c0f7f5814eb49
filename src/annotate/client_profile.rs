//! Profiles of known clients: what each accepts, understands and shows.
//!
//! # Changing the list for one client
//!
//! - `ClientProfile` in `annotate/client_profile.rs` says what a client accepts.
//! - `options` and `list_options` in `config/annotate.rs` apply it at start. The server does not
//!   look at which client asks.
//! - `write` in `annotate/tool.rs` writes a tool.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A client to shape the tools for. `Generic` suits all that follow the specification.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    ValueEnum,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KnownClient {
    /// Any client that follows the specification
    #[default]
    Generic,
    /// Claude Desktop, Claude Code
    #[value(alias = "claude-ai")]
    Claude,
    /// `ChatGPT` and the models behind it
    #[value(alias = "chatgpt")]
    Openai,
    /// VS Code Copilot
    #[value(alias = "copilot")]
    Vscode,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Codex
    Codex,
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Goose
    Goose,
    /// Continue
    Continue,
    /// opencode
    Opencode,
}

/// Known limits of a client for tools, and the form in which it shows results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientProfile {
    /// The client's name, for people.
    pub(crate) name: &'static str,
    /// Longest tool name after the client has put the server's name before it.
    pub(crate) max_name_bytes: usize,
    /// The number of tools above which it hides or refuses some.
    pub(crate) max_tools: Option<usize>,
    /// True if the client supports `$ref` and `$defs`.
    pub(crate) knows_references: bool,
    /// Number of tokens up to which it takes a result whole, unless the operator sets another
    /// number; 0 is no limit.
    pub(crate) result_tokens: usize,
    /// True if it takes longer results if a tool declares so in
    /// `_meta["anthropic/maxResultSizeChars"]`.
    pub(crate) reads_max_result_size: bool,
    /// Form in which it shows a model a result with structured content, if that is known.
    pub(crate) shows: Option<&'static str>,
    /// True if it shows a model images.
    pub(crate) shows_images: Option<bool>,
    /// True if it asks its user if a server requests that (MCP, elicitation).
    pub(crate) asks: Option<bool>,
    /// Further remark for its users, as a clause.
    pub(crate) remark: &'static str,
    /// Source of these facts about results.
    pub(crate) source: &'static str,
    /// The month in which they were found.
    pub(crate) checked: &'static str,
}

/// Clients of which nothing else is known. The names that clients show to models are
/// `mcp__SERVER__TOOL` or the like, with a limit of 60 to 64 characters in all; what is left for
/// the tool assumes a server name of about ten.
const USUAL: ClientProfile = ClientProfile {
    name: "any client",
    max_name_bytes: 48,
    max_tools: None,
    knows_references: true,
    // Claude Code refuses results of more than 25,000 tokens.
    result_tokens: 20_000,
    reads_max_result_size: false,
    shows: None,
    shows_images: None,
    asks: None,
    remark: "",
    source: "",
    checked: "2026-11",
};

impl fmt::Display for KnownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().unwrap_or_default().get_name())
    }
}

impl KnownClient {
    /// Its profile.
    pub(crate) fn profile(self) -> ClientProfile {
        let named = |name| ClientProfile { name, ..USUAL };
        match self {
            Self::Generic => ClientProfile {
                max_name_bytes: 64,
                ..USUAL
            },
            Self::Claude | Self::ClaudeCode => ClientProfile {
                reads_max_result_size: true,
                shows: Some("structured content"),
                shows_images: Some(false),
                source: "anthropics/claude-code#79944, #55677, #59480",
                ..named("Claude Code")
            },
            Self::ClaudeDesktop => ClientProfile {
                shows: Some("both"),
                asks: Some(false),
                source: "anthropics/claude-ai-mcp#153, claude-code#55677",
                ..named("Claude Desktop")
            },
            Self::Openai => ClientProfile {
                max_name_bytes: 64,
                max_tools: Some(128),
                shows: Some("both"),
                source: "anthropics/claude-code#55677",
                ..named("ChatGPT")
            },
            Self::Vscode => ClientProfile {
                // 64 without `mcp_`, at most 13 characters of the server's title, and `_`.
                max_name_bytes: 46,
                max_tools: Some(128),
                shows: Some("structured content"),
                remark: "it asks its user to approve each result of a tool with openWorldHint, which `--hint \"* openWorld=false\"` ends for an \
                         internal API",
                source: "microsoft/vscode, mcpLanguageModelToolContribution.ts, #274453",
                ..named("VS Code")
            },
            Self::Cursor => ClientProfile {
                max_tools: Some(80),
                knows_references: false,
                ..named("Cursor")
            },
            Self::Gemini => ClientProfile {
                knows_references: false,
                shows: Some("text"),
                source: "google-gemini/gemini-cli, packages/core/src/tools/mcp-tool.ts",
                ..named("Gemini CLI")
            },
            // It cuts a longer output in the middle.
            Self::Codex => ClientProfile {
                result_tokens: 9_000,
                shows: Some("structured content"),
                source: "openai/codex#5913, #6544, #14466",
                ..named("Codex")
            },
            Self::Windsurf => ClientProfile {
                max_tools: Some(100),
                ..named("Windsurf")
            },
            Self::Zed => ClientProfile {
                knows_references: false,
                ..named("Zed")
            },
            Self::Goose => named("Goose"),
            Self::Continue => named("Continue"),
            Self::Opencode => ClientProfile {
                knows_references: false,
                shows: Some("structured content"),
                source: "anomalyco/opencode#32074",
                ..named("opencode")
            },
        }
    }
}

impl ClientProfile {
    /// Returns true if the profile is that of one client.
    pub(crate) fn is_known(&self) -> bool {
        self.name != USUAL.name
    }

    /// Returns a sentence about `--confirm` with a client that cannot ask its user.
    pub(crate) fn confirmation_warning(&self) -> Option<String> {
        let client = self.name;
        (self.asks == Some(false)).then(|| {
            format!(
                "--confirm: {client} cannot ask its user, so that each call that needs a confirmation is refused; let a person agree by a link with --confirm-by link, use --no-destructive to leave those tools out, or, without --confirm, let {client} ask for approval by the hints"
            )
        })
    }

    /// Describes the client's treatment of results, in a sentence.
    pub(crate) fn results_in_words(&self) -> String {
        let mut said = match self.result_tokens {
            0 => format!("results for {} have no limit", self.name),
            tokens => format!("results for {} have up to {tokens} tokens", self.name),
        };
        if let Some(form) = self.shows {
            said.extend(["; of a JSON result it shows the model: ", form]);
        }
        if !self.remark.is_empty() {
            said.extend(["; ", self.remark]);
        }
        if self.shows_images == Some(false) {
            said += "; it shows no images";
        }
        if self.asks == Some(false) {
            said += "; it cannot ask its user, so that --confirm refuses every such call there (--no-destructive leaves them out)";
        }
        let source = if self.source.is_empty() { "" } else { ": " };
        said.extend([" (as of ", self.checked, source, self.source, ")"]);
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [KnownClient; 13] = [
        KnownClient::Generic,
        KnownClient::Claude,
        KnownClient::ClaudeDesktop,
        KnownClient::Openai,
        KnownClient::Vscode,
        KnownClient::Cursor,
        KnownClient::Gemini,
        KnownClient::Codex,
        KnownClient::Windsurf,
        KnownClient::Zed,
        KnownClient::Goose,
        KnownClient::Continue,
        KnownClient::Opencode,
    ];

    /// Names facts that are older than a year and should be checked again, without failing.
    #[test]
    fn facts_that_are_old_are_named() {
        let year: i16 = jiff::Zoned::now().year();
        for profile in ALL.map(KnownClient::profile) {
            let checked: i16 = profile.checked.split('-').next().unwrap().parse().unwrap();
            if year - checked > 1 {
                println!(
                    "the facts about {} are of {}: check them again",
                    profile.name, profile.checked
                );
            }
        }
    }
}
