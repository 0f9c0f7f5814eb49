//! The file that each client reads, by operating system and scope, and its form; which file is edited,
//! by the flags and the system of this program; and the files that are never written from here.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::clients::{FileFormat, InstallableClient};
use crate::annotate::KnownClient;
use crate::cli::operating_system::OperatingSystem;
use crate::config::variables;
use crate::error::Failure;

/// The configuration that is meant.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallScope {
    /// The user's own, for all projects
    User,
    /// The one of the current folder, which a team shares
    Project,
}

/// A client, and its file.
#[derive(Clone)]
pub(crate) struct ClientPlace {
    pub(crate) client: &'static InstallableClient,
    pub(crate) file: PathBuf,
    /// The client's own folder; without it the client is not there.
    pub(crate) folder: PathBuf,
    /// Another file that a version of the client reads.
    pub(crate) alternative: Option<PathBuf>,
    /// The distribution of WSL from which a client on Windows starts the server.
    pub(crate) distribution: Option<String>,
    /// The folder of the project whose file it is.
    pub(crate) project: Option<PathBuf>,
}

/// The conditions that the place of a file depends on.
pub(crate) struct Surroundings<'s> {
    pub(crate) system: OperatingSystem,
    /// The variables of the environment.
    pub(crate) variable: &'s dyn Fn(&str) -> Option<String>,
    /// The current folder.
    pub(crate) project: &'s Path,
}

impl Surroundings<'_> {
    fn folder(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name)
            .filter(|text| !text.is_empty())
            .map(PathBuf::from)
    }

    pub(crate) fn home(&self) -> Result<PathBuf, String> {
        let name = if self.system == OperatingSystem::Win32 {
            "USERPROFILE"
        } else {
            "HOME"
        };
        self.folder(name)
            .ok_or_else(|| format!("the variable `{name}` does not say where your files are; --config-path FILE names the client's file"))
    }

    /// The folder that a variable names, else one in the home folder.
    fn folder_or_home(&self, variable: &str, name: &str) -> Result<PathBuf, String> {
        self.folder(variable)
            .map_or_else(|| Ok(self.home()?.join(name)), Ok)
    }

    /// Returns the folder of programs' settings.
    fn settings(&self) -> Result<PathBuf, String> {
        Ok(match self.system {
            OperatingSystem::Linux => self.xdg_config()?,
            OperatingSystem::Darwin => self.home()?.join("Library/Application Support"),
            OperatingSystem::Win32 => self.folder_or_home("APPDATA", "AppData/Roaming")?,
        })
    }

    fn xdg_config(&self) -> Result<PathBuf, String> {
        let given = self
            .folder("XDG_CONFIG_HOME")
            .filter(|folder| folder.is_absolute());
        given.map_or_else(|| Ok(self.home()?.join(".config")), Ok)
    }

    /// The folder of the build of Claude Desktop that the Microsoft Store installs; that build does
    /// not read `%APPDATA%`.
    fn claude_of_the_store(&self) -> Option<PathBuf> {
        let packages = self.folder("LOCALAPPDATA")?.join("Packages");
        std::fs::read_dir(packages)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("Claude_"))
            })
            .map(|path| path.join("LocalCache/Roaming/Claude"))
            .filter(|path| path.is_dir())
            .min()
    }
}

/// The file of a client.
///
/// # Errors
/// A sentence: the client has no such scope, or the location of the file is unknown.
pub(crate) fn place_of(
    client: &'static InstallableClient,
    scope: InstallScope,
    at: &Surroundings<'_>,
) -> Result<ClientPlace, String> {
    let (folder, name) = match scope {
        InstallScope::User => (user_folder(client, at)?, client.file),
        InstallScope::Project => {
            let name = client.project.ok_or_else(|| {
                format!(
                    "{} has no configuration per project; --scope user writes your own",
                    client.client
                )
            })?;
            (at.project.to_owned(), name)
        }
    };
    let mut file = folder.join(name);
    let mut alternative = None;
    match (client.client, scope) {
        // Its state is beside its folder, unless a variable names the folder.
        (KnownClient::ClaudeCode, InstallScope::User)
            if at.folder("CLAUDE_CONFIG_DIR").is_none() =>
        {
            file = at.home()?.join(name);
        }
        (KnownClient::ClaudeDesktop, _) => {
            alternative =
                Some(at.settings()?.join("Claude").join(name)).filter(|usual| *usual != file);
        }
        (KnownClient::Opencode, _) => {
            let with_comments = folder.join("opencode.jsonc");
            if with_comments.exists() {
                file = with_comments;
            }
        }
        _ => {}
    }
    Ok(ClientPlace {
        client,
        file,
        folder,
        alternative,
        distribution: None,
        project: (scope == InstallScope::Project).then(|| at.project.to_owned()),
    })
}

/// The user's folder of a client.
fn user_folder(client: &InstallableClient, at: &Surroundings<'_>) -> Result<PathBuf, String> {
    let place = match (client.client, at.system) {
        (KnownClient::ClaudeDesktop, OperatingSystem::Win32) => {
            if let Some(store) = at.claude_of_the_store() {
                return Ok(store);
            }
            client.folder
        }
        // Only on Linux, it heeds the variable of XDG.
        (KnownClient::Zed, OperatingSystem::Darwin) => "home/.config/zed",
        (KnownClient::Goose, OperatingSystem::Win32) => "settings/Block/goose/config",
        _ => client.folder,
    };
    let (base, name) = place.split_once('/').unwrap_or_default();
    Ok(match base {
        "home" => at.home()?.join(name),
        "settings" => at.settings()?.join(name),
        "xdg" => at.xdg_config()?.join(name),
        variable => at.folder_or_home(variable, name)?,
    })
}

/// The file that is edited, and how.
#[derive(clap::Args)]
#[command(next_help_heading = "Entry")]
pub(super) struct TargetFile {
    /// `user` or `project`
    ///
    /// Whose configuration: your own, for all projects, or that of the current folder, which a team
    /// shares.
    #[arg(long, value_enum, default_value = "user", hide_possible_values = true)]
    pub(super) scope: InstallScope,
    /// The client's file, if it is elsewhere
    #[arg(long, value_name = "PATH")]
    config_path: Option<PathBuf>,
    /// Change the file without a question
    #[arg(long)]
    pub(super) write: bool,
    /// Replace or remove what is not ours
    ///
    /// An entry of that name that another program wrote.
    #[arg(long)]
    pub(super) force: bool,
}

impl TargetFile {
    /// The client's file.
    ///
    /// # Errors
    /// A sentence: the client has no such file, or its location is unknown.
    pub(super) fn place(
        &self,
        client: &'static InstallableClient,
        folder: &Path,
    ) -> Result<ClientPlace, String> {
        let at = Surroundings {
            system: OperatingSystem::OWN,
            variable: &|name| variables::read_variable(name),
            project: folder,
        };
        let usual = place_of(client, self.scope, &at);
        let place = match &self.config_path {
            None => usual?,
            Some(given) => {
                // The form is the client's, independent of the file's location.
                let usual = usual.or_else(|_| place_of(client, InstallScope::User, &at))?;
                let file = folder.join(given);
                ClientPlace {
                    folder: file.parent().unwrap_or(folder).to_owned(),
                    file,
                    alternative: None,
                    project: None,
                    ..usual
                }
            }
        };
        let Some(distribution) =
            variables::read_variable("WSL_DISTRO_NAME").filter(|_| self.is_on_windows(&place))
        else {
            return Ok(place);
        };
        let place = match self.config_path {
            Some(_) => place,
            None => windows_place(client, folder)?,
        };
        Ok(ClientPlace {
            distribution: Some(distribution),
            ..place
        })
    }

    /// Returns `true` if a client that is asked for in WSL runs on Windows: its file is there, or
    /// it has a window and is not installed here.
    fn is_on_windows(&self, place: &ClientPlace) -> bool {
        use KnownClient::{ClaudeDesktop, Cursor, Vscode, Windsurf, Zed};
        let has_window = matches!(
            place.client.client,
            ClaudeDesktop | Cursor | Vscode | Windsurf | Zed
        );
        let is_absent =
            has_window && self.config_path.is_none() && !self.force && !place.folder.is_dir();
        place.file.starts_with("/mnt") || (self.scope == InstallScope::User && is_absent)
    }

    /// `~/.claude.json` holds the state of Claude Code, which rewrites it while it runs.
    pub(super) fn is_state_file_of_claude_code(&self, place: &ClientPlace) -> bool {
        place.client.client == KnownClient::ClaudeCode
            && self.scope == InstallScope::User
            && self.config_path.is_none()
    }

    /// Returns the reason for which a client's file is never written from here.
    pub(super) fn print_only(&self, place: &ClientPlace) -> Option<String> {
        let client = place.client.client;
        if place.distribution.is_some() {
            return Some("the client is on Windows; from WSL its files are not written".into());
        }
        if place.client.format == FileFormat::Yaml {
            return Some(format!(
                "{client} keeps its settings in YAML, which is only printed because its layout would be lost"
            ));
        }
        let is_set = |name: &str| variables::read_variable(name).is_some();
        let is_usual = self.scope == InstallScope::User && self.config_path.is_none();
        if client == KnownClient::Vscode && is_usual && is_set("VSCODE_IPC_HOOK_CLI") {
            return Some(
                "VS Code is connected to this machine from another one, where its settings are"
                    .into(),
            );
        }
        let is_sudo = is_set("SUDO_USER")
            && variables::read_variable("USER").is_some_and(|user| user == "root");
        is_sudo.then(|| {
            "sudo would write the settings of root; run this as the user whose client it is".into()
        })
    }

    /// Checks that a home is there in which the client may be.
    ///
    /// # Errors
    /// There is nothing around the folder of the client, so that its name is probably wrong.
    pub(super) fn require_home(&self, place: &ClientPlace) -> Result<(), Failure> {
        let mut around = place.folder.ancestors().filter(|folder| folder.is_dir());
        if around.any(|folder| folder.parent().is_some()) || self.force {
            return Ok(());
        }
        Err(Failure::setting(format!(
            "the client was not found here: there is no folder `{}`, and none around it; --force makes it, --config-path FILE names another file, --print shows the entry",
            place.folder.display()
        )))
    }
}

/// The file of a client on Windows, as it is written there.
fn windows_place(client: &'static InstallableClient, folder: &Path) -> Result<ClientPlace, String> {
    let at = Surroundings {
        system: OperatingSystem::Win32,
        variable: &|name| matches!(name, "USERPROFILE" | "APPDATA").then(|| format!("%{name}%")),
        project: folder,
    };
    let place = place_of(client, InstallScope::User, &at)?;
    Ok(ClientPlace {
        file: PathBuf::from(place.file.display().to_string().replace('/', "\\")),
        ..place
    })
}

#[cfg(test)]
mod tests {
    use super::super::clients::installable;
    use super::*;

    fn place(client: KnownClient, system: OperatingSystem, variables: &[(&str, &str)]) -> String {
        user_place_with(client, system, variables)
            .file
            .display()
            .to_string()
    }

    fn user_place_with(
        client: KnownClient,
        system: OperatingSystem,
        variables: &[(&str, &str)],
    ) -> ClientPlace {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let at = Surroundings {
            system,
            variable: &variable,
            project: Path::new("/project"),
        };
        place_of(installable(client).unwrap(), InstallScope::User, &at).unwrap()
    }

    #[test]
    fn each_client_has_its_file_on_each_system() {
        use KnownClient::{
            ClaudeCode, ClaudeDesktop, Codex, Continue, Cursor, Gemini, Goose, Opencode, Vscode,
            Windsurf, Zed,
        };
        for (client, linux, mac, windows) in [
            (
                ClaudeDesktop,
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
                "/roaming/Claude/claude_desktop_config.json",
            ),
            (
                ClaudeCode,
                "/h/.claude.json",
                "/h/.claude.json",
                "/h/.claude.json",
            ),
            (
                Vscode,
                "/h/.config/Code/User/mcp.json",
                "/h/Library/Application Support/Code/User/mcp.json",
                "/roaming/Code/User/mcp.json",
            ),
            (
                Cursor,
                "/h/.cursor/mcp.json",
                "/h/.cursor/mcp.json",
                "/h/.cursor/mcp.json",
            ),
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
            (
                Codex,
                "/h/.codex/config.toml",
                "/h/.codex/config.toml",
                "/h/.codex/config.toml",
            ),
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
            assert_eq!(place(client, OperatingSystem::Darwin, &unix), mac);
            let windows_variables = [("USERPROFILE", "/h"), ("APPDATA", "/roaming")];
            assert_eq!(
                place(client, OperatingSystem::Win32, &windows_variables),
                windows
            );
        }
    }

    #[test]
    fn the_variables_of_a_client_count_as_the_client_counts_them() {
        let system = OperatingSystem::Linux;
        let home = ("HOME", "/h");
        assert_eq!(
            place(KnownClient::Codex, system, &[home, ("CODEX_HOME", "/c")]),
            "/c/config.toml"
        );
        assert_eq!(
            place(
                KnownClient::ClaudeCode,
                system,
                &[home, ("CLAUDE_CONFIG_DIR", "/c")]
            ),
            "/c/.claude.json"
        );
        assert_eq!(
            place(
                KnownClient::Vscode,
                system,
                &[home, ("XDG_CONFIG_HOME", "/x")]
            ),
            "/x/Code/User/mcp.json"
        );
        assert_eq!(
            place(
                KnownClient::Zed,
                OperatingSystem::Darwin,
                &[home, ("XDG_CONFIG_HOME", "/x")]
            ),
            "/h/.config/zed/settings.json"
        );
    }

    #[test]
    fn the_build_of_the_store_is_preferred_where_it_is_there_and_the_other_file_is_named() {
        let local = tempfile::tempdir().unwrap();
        let store = local
            .path()
            .join("Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude");
        std::fs::create_dir_all(&store).unwrap();
        let local = local.path().display().to_string();
        let variables = [
            ("USERPROFILE", "/h"),
            ("APPDATA", "/roaming"),
            ("LOCALAPPDATA", local.as_str()),
        ];
        let found = user_place_with(
            KnownClient::ClaudeDesktop,
            OperatingSystem::Win32,
            &variables,
        );
        assert_eq!(found.file, store.join("claude_desktop_config.json"));
        assert_eq!(
            found.alternative.as_deref(),
            Some(Path::new("/roaming/Claude/claude_desktop_config.json"))
        );
    }
}
