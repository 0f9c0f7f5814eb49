//! Which file each client reads, by operating system and scope, and in which form.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::config::settings::ClientName;

/// Whose configuration is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallScope {
    /// The user's own, for all projects
    User,
    /// The one of the current folder, which a team shares
    Project,
}

/// The operating systems that differ in where clients keep their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperatingSystem {
    Linux,
    Mac,
    Windows,
}

impl OperatingSystem {
    /// The one that this program was built for.
    pub(crate) fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::Mac
        } else {
            Self::Linux
        }
    }
}

/// How a client's file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// A client's file, and where in it the servers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientPlace {
    pub(crate) file: PathBuf,
    /// The client's own folder; without it the client is not there.
    pub(crate) folder: PathBuf,
    pub(crate) format: FileFormat,
    /// The keys that lead to the servers.
    pub(crate) keys: &'static [&'static str],
    /// Another file that a version of the client reads.
    pub(crate) alternative: Option<PathBuf>,
    /// The distribution of WSL from which a client on Windows starts the server.
    pub(crate) distribution: Option<String>,
}

/// What the place of a file depends on.
pub(crate) struct Surroundings<'s> {
    pub(crate) system: OperatingSystem,
    /// The variables of the environment.
    pub(crate) variable: &'s dyn Fn(&str) -> Option<String>,
    /// The current folder.
    pub(crate) project: &'s Path,
}

/// The clients that can be installed into.
pub(crate) const INSTALLABLE: [ClientName; 11] = [
    ClientName::ClaudeDesktop,
    ClientName::ClaudeCode,
    ClientName::Vscode,
    ClientName::Cursor,
    ClientName::Windsurf,
    ClientName::Gemini,
    ClientName::Codex,
    ClientName::Zed,
    ClientName::Goose,
    ClientName::Continue,
    ClientName::Opencode,
];

impl Surroundings<'_> {
    fn folder(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    pub(crate) fn home(&self) -> Result<PathBuf, String> {
        let name = if self.system == OperatingSystem::Windows {
            "USERPROFILE"
        } else {
            "HOME"
        };
        self.folder(name)
            .ok_or_else(|| format!("the variable `{name}` does not say where your files are; --config-path FILE names the client's file"))
    }

    /// Where programs keep their settings.
    fn settings(&self) -> Result<PathBuf, String> {
        Ok(match self.system {
            OperatingSystem::Linux => self.xdg_config()?,
            OperatingSystem::Mac => self.home()?.join("Library/Application Support"),
            OperatingSystem::Windows => self.roaming()?,
        })
    }

    fn xdg_config(&self) -> Result<PathBuf, String> {
        let given = self.folder("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
        given.map_or_else(|| Ok(self.home()?.join(".config")), Ok)
    }

    fn roaming(&self) -> Result<PathBuf, String> {
        self.folder("APPDATA").map_or_else(|| Ok(self.home()?.join("AppData/Roaming")), Ok)
    }

    /// The folder of the build of Claude Desktop that the Microsoft Store installs; that build does not read `%APPDATA%`.
    fn claude_of_the_store(&self) -> Option<PathBuf> {
        let packages = self.folder("LOCALAPPDATA")?.join("Packages");
        let mut found: Vec<PathBuf> = std::fs::read_dir(packages)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("Claude_")))
            .map(|path| path.join("LocalCache/Roaming/Claude"))
            .filter(|path| path.is_dir())
            .collect();
        found.sort();
        found.into_iter().next()
    }
}

/// The file of a client.
///
/// # Errors
/// A sentence: the client has no such scope, or nothing says where the file is.
pub(crate) fn place_of(client: ClientName, scope: InstallScope, at: &Surroundings<'_>) -> Result<ClientPlace, String> {
    match scope {
        InstallScope::User => user_place(client, at),
        InstallScope::Project => project_place(client, at),
    }
}

fn user_place(client: ClientName, at: &Surroundings<'_>) -> Result<ClientPlace, String> {
    let is_windows = at.system == OperatingSystem::Windows;
    let place = |folder: PathBuf, file: &str, format, keys| ClientPlace {
        file: folder.join(file),
        folder,
        format,
        keys,
        alternative: None,
        distribution: None,
    };
    Ok(match client {
        ClientName::ClaudeDesktop => {
            let usual = at.settings()?.join("Claude");
            let store = if is_windows { at.claude_of_the_store() } else { None };
            let alternative = store.as_ref().map(|_| usual.join("claude_desktop_config.json"));
            ClientPlace {
                alternative,
                ..place(
                    store.unwrap_or(usual),
                    "claude_desktop_config.json",
                    FileFormat::Json,
                    &["mcpServers"],
                )
            }
        }
        ClientName::ClaudeCode => {
            let own = at.folder("CLAUDE_CONFIG_DIR");
            let file = own.clone().map_or_else(|| at.home(), Ok)?.join(".claude.json");
            ClientPlace {
                file,
                ..place(
                    own.map_or_else(|| Ok(at.home()?.join(".claude")), Ok::<_, String>)?,
                    "",
                    FileFormat::Json,
                    &["mcpServers"],
                )
            }
        }
        ClientName::Vscode => place(at.settings()?.join("Code/User"), "mcp.json", FileFormat::Jsonc, &["servers"]),
        ClientName::Cursor => place(at.home()?.join(".cursor"), "mcp.json", FileFormat::Json, &["mcpServers"]),
        ClientName::Windsurf => place(
            at.home()?.join(".codeium/windsurf"),
            "mcp_config.json",
            FileFormat::Json,
            &["mcpServers"],
        ),
        ClientName::Gemini => place(
            at.home()?.join(".gemini"),
            "settings.json",
            FileFormat::JsonWithComments,
            &["mcpServers"],
        ),
        ClientName::Codex => {
            let folder = at
                .folder("CODEX_HOME")
                .map_or_else(|| Ok(at.home()?.join(".codex")), Ok::<_, String>)?;
            place(folder, "config.toml", FileFormat::Toml, &["mcp_servers"])
        }
        ClientName::Zed => {
            let folder = if is_windows { at.roaming()? } else { zed_settings(at)? };
            place(folder.join("zed"), "settings.json", FileFormat::Jsonc, &["context_servers"])
        }
        ClientName::Goose => {
            let folder = if is_windows {
                at.roaming()?.join("Block/goose/config")
            } else {
                at.xdg_config()?.join("goose")
            };
            place(folder, "config.yaml", FileFormat::Yaml, &["extensions"])
        }
        ClientName::Continue => place(at.home()?.join(".continue"), "config.yaml", FileFormat::Yaml, &["mcpServers"]),
        ClientName::Opencode => opencode_place(at.xdg_config()?.join("opencode")),
        ClientName::Claude | ClientName::Openai | ClientName::Generic => return Err(not_installable(client)),
    })
}

/// Zed keeps its settings in `~/.config/zed` on macOS, too; only Linux heeds the variable of XDG.
fn zed_settings(at: &Surroundings<'_>) -> Result<PathBuf, String> {
    match at.system {
        OperatingSystem::Linux => at.xdg_config(),
        _ => Ok(at.home()?.join(".config")),
    }
}

/// opencode reads `opencode.json` and `opencode.jsonc`.
fn opencode_place(folder: PathBuf) -> ClientPlace {
    let with_comments = folder.join("opencode.jsonc");
    let file = if with_comments.exists() {
        with_comments
    } else {
        folder.join("opencode.json")
    };
    ClientPlace {
        file,
        folder,
        format: FileFormat::Jsonc,
        keys: &["mcp"],
        alternative: None,
        distribution: None,
    }
}

fn project_place(client: ClientName, at: &Surroundings<'_>) -> Result<ClientPlace, String> {
    let place = |file: &str, format, keys| ClientPlace {
        file: at.project.join(file),
        folder: at.project.to_owned(),
        format,
        keys,
        alternative: None,
        distribution: None,
    };
    Ok(match client {
        ClientName::ClaudeCode => place(".mcp.json", FileFormat::Json, &["mcpServers"]),
        ClientName::Vscode => place(".vscode/mcp.json", FileFormat::Jsonc, &["servers"]),
        ClientName::Cursor => place(".cursor/mcp.json", FileFormat::Json, &["mcpServers"]),
        ClientName::Gemini => place(".gemini/settings.json", FileFormat::JsonWithComments, &["mcpServers"]),
        ClientName::Codex => place(".codex/config.toml", FileFormat::Toml, &["mcp_servers"]),
        ClientName::Continue => place(".continue/mcpServers/openapi-mcp.yaml", FileFormat::Yaml, &["mcpServers"]),
        ClientName::Opencode => opencode_place(at.project.to_owned()),
        ClientName::ClaudeDesktop | ClientName::Windsurf | ClientName::Zed | ClientName::Goose => {
            return Err(format!("{client} has no configuration per project; --scope user writes your own"));
        }
        ClientName::Claude | ClientName::Openai | ClientName::Generic => return Err(not_installable(client)),
    })
}

fn not_installable(client: ClientName) -> String {
    let names: Vec<String> = INSTALLABLE.iter().map(ToString::to_string).collect();
    format!("--client {client} is not one program; choose one of {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(client: ClientName, system: OperatingSystem, variables: &[(&str, &str)]) -> String {
        user_place_with(client, system, variables).file.display().to_string()
    }

    fn user_place_with(client: ClientName, system: OperatingSystem, variables: &[(&str, &str)]) -> ClientPlace {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let at = Surroundings {
            system,
            variable: &variable,
            project: Path::new("/project"),
        };
        place_of(client, InstallScope::User, &at).unwrap()
    }

    #[test]
    fn each_client_has_its_file_on_each_system() {
        use ClientName::{ClaudeCode, ClaudeDesktop, Codex, Continue, Cursor, Gemini, Goose, Opencode, Vscode, Windsurf, Zed};
        for (client, linux, mac, windows) in [
            (
                ClaudeDesktop,
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
                "/roaming/Claude/claude_desktop_config.json",
            ),
            (ClaudeCode, "/h/.claude.json", "/h/.claude.json", "/h/.claude.json"),
            (
                Vscode,
                "/h/.config/Code/User/mcp.json",
                "/h/Library/Application Support/Code/User/mcp.json",
                "/roaming/Code/User/mcp.json",
            ),
            (Cursor, "/h/.cursor/mcp.json", "/h/.cursor/mcp.json", "/h/.cursor/mcp.json"),
            (
                Windsurf,
                "/h/.codeium/windsurf/mcp_config.json",
                "/h/.codeium/windsurf/mcp_config.json",
                "/h/.codeium/windsurf/mcp_config.json",
            ),
            (
                Gemini,
                "/h/.gemini/settings.json",
                "/h/.gemini/settings.json",
                "/h/.gemini/settings.json",
            ),
            (Codex, "/h/.codex/config.toml", "/h/.codex/config.toml", "/h/.codex/config.toml"),
            (
                Zed,
                "/h/.config/zed/settings.json",
                "/h/.config/zed/settings.json",
                "/roaming/zed/settings.json",
            ),
            (
                Goose,
                "/h/.config/goose/config.yaml",
                "/h/.config/goose/config.yaml",
                "/roaming/Block/goose/config/config.yaml",
            ),
            (
                Continue,
                "/h/.continue/config.yaml",
                "/h/.continue/config.yaml",
                "/h/.continue/config.yaml",
            ),
            (
                Opencode,
                "/h/.config/opencode/opencode.json",
                "/h/.config/opencode/opencode.json",
                "/h/.config/opencode/opencode.json",
            ),
        ] {
            let unix = [("HOME", "/h")];
            assert_eq!(place(client, OperatingSystem::Linux, &unix), linux);
            assert_eq!(place(client, OperatingSystem::Mac, &unix), mac);
            let windows_variables = [("USERPROFILE", "/h"), ("APPDATA", "/roaming")];
            assert_eq!(place(client, OperatingSystem::Windows, &windows_variables), windows);
        }
    }

    #[test]
    fn the_variables_of_a_client_count_as_the_client_counts_them() {
        let system = OperatingSystem::Linux;
        let home = ("HOME", "/h");
        assert_eq!(place(ClientName::Codex, system, &[home, ("CODEX_HOME", "/c")]), "/c/config.toml");
        assert_eq!(
            place(ClientName::ClaudeCode, system, &[home, ("CLAUDE_CONFIG_DIR", "/c")]),
            "/c/.claude.json"
        );
        assert_eq!(
            place(ClientName::Vscode, system, &[home, ("XDG_CONFIG_HOME", "/x")]),
            "/x/Code/User/mcp.json"
        );
        assert_eq!(
            place(ClientName::Zed, OperatingSystem::Mac, &[home, ("XDG_CONFIG_HOME", "/x")]),
            "/h/.config/zed/settings.json"
        );
    }

    #[test]
    fn the_build_of_the_store_is_preferred_where_it_is_there_and_the_other_file_is_named() {
        let local = tempfile::tempdir().unwrap();
        let store = local.path().join("Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude");
        std::fs::create_dir_all(&store).unwrap();
        let local = local.path().display().to_string();
        let variables = [("USERPROFILE", "/h"), ("APPDATA", "/roaming"), ("LOCALAPPDATA", local.as_str())];
        let found = user_place_with(ClientName::ClaudeDesktop, OperatingSystem::Windows, &variables);
        assert_eq!(found.file, store.join("claude_desktop_config.json"));
        assert_eq!(
            found.alternative.as_deref(),
            Some(Path::new("/roaming/Claude/claude_desktop_config.json"))
        );
    }
}
