//! The clients that `install` knows, a row each: the file of a client, the form of its entries, and
//! how it shows the names of tools.

use crate::annotate::KnownClient;

/// Format of a client's file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// RFC 8259.
    Json,
    /// JSON in which the client takes comments.
    JsonWithComments,
    /// JSON in which the client takes comments and trailing commas.
    Jsonc,
    Toml,
    /// Only printed: no library keeps the layout of YAML.
    Yaml,
}

/// A client that `install` knows.
pub(crate) struct InstallableClient {
    pub(crate) client: KnownClient,
    /// The program that it is started with, if it is usually on PATH.
    pub(crate) program: Option<&'static str>,
    pub(crate) format: FileFormat,
    /// The keys that lead to the servers in its file.
    pub(crate) keys: &'static [&'static str],
    /// The user's folder of it, below `home`, `settings` (of programs), `xdg`, or the folder that a
    /// variable names, else one in the home folder.
    pub(crate) folder: &'static str,
    /// The file in that folder.
    pub(crate) file: &'static str,
    /// The file in the folder of a project.
    pub(crate) project: Option<&'static str>,
    /// The form of the variable `NAME` in an entry, or of the question `ID`.
    pub(crate) variable: Option<&'static str>,
    /// The entry of a server that it starts. A member for which there is no value is left out.
    pub(crate) command: &'static str,
    /// The entry of an address, if it takes one.
    pub(crate) address: Option<&'static str>,
    /// The number of characters around the names of server and tool, and the limit for all.
    pub(crate) name_limit: Option<(usize, usize)>,
    /// Its command that adds an address, if it has one, and the end of it with a token.
    pub(crate) add: Option<(&'static str, Option<&'static str>)>,
}

/// The clients that can be installed into.
pub(crate) static CLIENTS: [InstallableClient; 11] = [
    InstallableClient {
        client: KnownClient::ClaudeDesktop,
        folder: "settings/Claude",
        file: "claude_desktop_config.json",
        address: None,
        name_limit: Some((7, 64)),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::ClaudeCode,
        program: Some("claude"),
        folder: "CLAUDE_CONFIG_DIR/.claude",
        file: ".claude.json",
        project: Some(".mcp.json"),
        variable: Some("${NAME}"),
        command: r#"{"type":"stdio","command":"$program","args":"$args","env":"$env"}"#,
        address: Some(
            r#"{"type":"http","url":"$url","headers":{"Authorization":"Bearer $token"}}"#,
        ),
        // mcp__SERVER__TOOL
        name_limit: Some((7, 64)),
        add: Some((
            "claude mcp add --transport http --scope user $name $url",
            Some(" --header 'Authorization: Bearer $token'"),
        )),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Vscode,
        program: Some("code"),
        format: FileFormat::Jsonc,
        keys: &["servers"],
        folder: "settings/Code/User",
        project: Some(".vscode/mcp.json"),
        variable: Some("${input:ID}"),
        command: r#"{"type":"stdio","command":"$program","args":"$args","env":"$env"}"#,
        address: Some(
            r#"{"type":"http","url":"$url","headers":{"Authorization":"Bearer $token"}}"#,
        ),
        name_limit: Some((5, 64)),
        // A question for the token is not part of an entry.
        add: Some((
            r#"code --add-mcp '{"name":"$name","type":"http","url":"$url"}'"#,
            None,
        )),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Cursor,
        program: Some("cursor"),
        folder: "home/.cursor",
        project: Some(".cursor/mcp.json"),
        variable: Some("${env:NAME}"),
        name_limit: Some((0, 60)),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Windsurf,
        program: Some("windsurf"),
        folder: "home/.codeium/windsurf",
        file: "mcp_config.json",
        variable: Some("${env:NAME}"),
        address: Some(r#"{"serverUrl":"$url","headers":{"Authorization":"Bearer $token"}}"#),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Gemini,
        program: Some("gemini"),
        format: FileFormat::JsonWithComments,
        folder: "home/.gemini",
        file: "settings.json",
        project: Some(".gemini/settings.json"),
        variable: Some("$NAME"),
        address: Some(r#"{"httpUrl":"$url","headers":{"Authorization":"Bearer $token"}}"#),
        // mcp_SERVER_TOOL
        name_limit: Some((5, 63)),
        add: Some((
            "gemini mcp add --transport http --scope user $name $url",
            Some(" --header 'Authorization: Bearer $token'"),
        )),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Codex,
        program: Some("codex"),
        format: FileFormat::Toml,
        keys: &["mcp_servers"],
        folder: "CODEX_HOME/.codex",
        file: "config.toml",
        project: Some(".codex/config.toml"),
        command: r#"{"command":"$program","args":"$args","env_vars":"$names","env":"$plain"}"#,
        address: Some(r#"{"url":"$url","bearer_token_env_var":"$variable"}"#),
        name_limit: Some((7, 64)),
        add: Some((
            "codex mcp add $name --url $url",
            Some(" --bearer-token-env-var $variable"),
        )),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Zed,
        program: Some("zed"),
        format: FileFormat::Jsonc,
        keys: &["context_servers"],
        folder: "settings/zed",
        file: "settings.json",
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Goose,
        program: Some("goose"),
        format: FileFormat::Yaml,
        keys: &["extensions"],
        folder: "xdg/goose",
        file: "config.yaml",
        variable: Some("${NAME}"),
        command: r#"{"name":"$name","type":"stdio","cmd":"$program","args":"$args","enabled":true,"timeout":300,"env_keys":"$names","envs":"$plain"}"#,
        address: Some(
            r#"{"name":"$name","type":"streamable_http","uri":"$url","enabled":true,"timeout":300,"headers":{"Authorization":"Bearer $token"},"env_keys":"$names"}"#,
        ),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Continue,
        format: FileFormat::Yaml,
        folder: "home/.continue",
        file: "config.yaml",
        project: Some(".continue/mcpServers/openapi-mcp.yaml"),
        variable: Some("${{ secrets.NAME }}"),
        command: r#"{"name":"$name","command":"$program","args":"$args","env":"$env"}"#,
        address: Some(
            r#"{"name":"$name","type":"streamable-http","url":"$url","requestOptions":{"headers":{"Authorization":"Bearer $token"}}}"#,
        ),
        ..USUAL
    },
    InstallableClient {
        client: KnownClient::Opencode,
        program: Some("opencode"),
        format: FileFormat::Jsonc,
        keys: &["mcp"],
        folder: "xdg/opencode",
        file: "opencode.json",
        project: Some("opencode.json"),
        variable: Some("{env:NAME}"),
        command: r#"{"type":"local","command":"$words","enabled":true,"environment":"$env"}"#,
        address: Some(
            r#"{"type":"remote","url":"$url","enabled":true,"headers":{"Authorization":"Bearer $token"}}"#,
        ),
        ..USUAL
    },
];

/// The form of most clients.
const USUAL: InstallableClient = InstallableClient {
    client: KnownClient::Generic,
    program: None,
    format: FileFormat::Json,
    keys: &["mcpServers"],
    folder: "",
    file: "mcp.json",
    project: None,
    variable: None,
    command: r#"{"command":"$program","args":"$args","env":"$env"}"#,
    address: Some(r#"{"url":"$url","headers":{"Authorization":"Bearer $token"}}"#),
    name_limit: None,
    add: None,
};

/// The row of a client.
///
/// # Errors
/// A sentence: it is not one that can be installed into.
pub(crate) fn installable(client: KnownClient) -> Result<&'static InstallableClient, String> {
    let address =
        "it takes the https address of a server; docs/guides/hosted-clients.md has the steps";
    let row = CLIENTS.iter().find(|row| row.client == client);
    row.ok_or_else(|| match client {
        KnownClient::Claude => format!(
            "--client claude is claude-desktop or claude-code; name one. For claude.ai, {address}"
        ),
        KnownClient::Openai => format!("ChatGPT reads no file: {address}"),
        _ => {
            let names: Vec<String> = CLIENTS.iter().map(|row| row.client.to_string()).collect();
            format!(
                "--client {client} is not one program; choose one of {}",
                names.join(", ")
            )
        }
    })
}
