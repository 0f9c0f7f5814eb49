//! What known clients accept and understand: one profile each.

/// A client to shape the tools for. `Generic` suits all that follow the specification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum KnownClient {
    /// Any client.
    #[default]
    Generic,
    /// Claude Desktop, Claude Code.
    Claude,
    /// `ChatGPT` and the models behind it.
    OpenAi,
    /// VS Code Copilot.
    VsCode,
    /// Cursor.
    Cursor,
    /// Gemini CLI.
    Gemini,
    /// Codex.
    Codex,
    /// Windsurf.
    Windsurf,
    /// Zed.
    Zed,
    /// Goose.
    Goose,
    /// Continue.
    Continue,
    /// opencode.
    Opencode,
}

/// What a client accepts of a list of tools.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientProfile {
    /// The client's name, for people.
    pub name: &'static str,
    /// How long a tool name may be once the client has put the server's name before it.
    pub max_name_bytes: usize,
    /// The number of tools above which it hides or refuses some.
    pub max_tools: Option<usize>,
    /// Whether it understands `$ref` and `$defs`.
    pub knows_references: bool,
}

impl KnownClient {
    /// Its profile.
    #[must_use]
    pub(crate) fn profile(self) -> ClientProfile {
        // The names that clients show to models are `mcp__SERVER__TOOL` or the like, with a limit of 60 to 64 characters in
        // all; what is left for the tool assumes a server name of about ten.
        let (name, max_name_bytes, max_tools, knows_references) = match self {
            Self::Generic => ("any client", 64, None, true),
            Self::Claude => ("Claude", 48, None, true),
            Self::OpenAi => ("OpenAI", 64, Some(128), true),
            Self::VsCode => ("VS Code", 48, Some(128), true),
            Self::Cursor => ("Cursor", 48, Some(80), false),
            Self::Gemini => ("Gemini CLI", 48, None, false),
            Self::Codex => ("Codex", 48, None, true),
            Self::Windsurf => ("Windsurf", 48, Some(100), true),
            Self::Zed => ("Zed", 48, None, false),
            Self::Goose => ("Goose", 48, None, true),
            Self::Continue => ("Continue", 48, None, true),
            Self::Opencode => ("opencode", 48, None, false),
        };
        ClientProfile {
            name,
            max_name_bytes,
            max_tools,
            knows_references,
        }
    }
}
