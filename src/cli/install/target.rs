//! The file that is edited, by the flags and the system of this program, and the files that are
//! never written from here.

use std::path::{Path, PathBuf};

use super::place::{
    ClientPlace, FileFormat, InstallScope, OperatingSystem, Surroundings, place_of,
};
use crate::annotate::KnownClient;
use crate::config::variables;
use crate::error::Failure;

/// The file that is edited, and how.
#[derive(Debug, clap::Args)]
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
    /// An error if the client has no such file, or its location is unknown.
    pub(super) fn place(&self, client: KnownClient, folder: &Path) -> Result<ClientPlace, Failure> {
        let at = Surroundings {
            system: OperatingSystem::current(),
            variable: &|name| variables::read_variable(name),
            project: folder,
        };
        let usual = place_of(client, self.scope, &at);
        let place = match &self.config_path {
            None => usual.map_err(Failure::setting)?,
            Some(given) => {
                // The form is the client's, independent of the file's location.
                let usual = usual
                    .or_else(|_| place_of(client, InstallScope::User, &at))
                    .map_err(Failure::setting)?;
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
        let Some(distribution) = variables::read_variable("WSL_DISTRO_NAME")
            .filter(|_| self.is_on_windows(client, &place))
        else {
            return Ok(place);
        };
        let place = match self.config_path {
            Some(_) => place,
            None => windows_place(client, folder).map_err(Failure::setting)?,
        };
        Ok(ClientPlace {
            distribution: Some(distribution),
            ..place
        })
    }

    /// Returns `true` if a client that is asked for in WSL runs on Windows: its file is there, or
    /// it has a window and is not installed here.
    fn is_on_windows(&self, client: KnownClient, place: &ClientPlace) -> bool {
        use KnownClient::{ClaudeDesktop, Cursor, Vscode, Windsurf, Zed};
        let has_window = matches!(client, ClaudeDesktop | Cursor | Vscode | Windsurf | Zed);
        let is_absent =
            has_window && self.config_path.is_none() && !self.force && !place.folder.is_dir();
        place.file.starts_with("/mnt") || (self.scope == InstallScope::User && is_absent)
    }

    /// `~/.claude.json` holds the state of Claude Code, which rewrites it while it runs.
    pub(super) fn is_state_file_of_claude_code(&self, client: KnownClient) -> bool {
        client == KnownClient::ClaudeCode
            && self.scope == InstallScope::User
            && self.config_path.is_none()
    }

    /// Returns the reason for which a client's file is never written from here.
    pub(super) fn print_only(&self, client: KnownClient, place: &ClientPlace) -> Option<String> {
        if place.distribution.is_some() {
            return Some("the client is on Windows; from WSL its files are not written".into());
        }
        if place.format == FileFormat::Yaml {
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
fn windows_place(client: KnownClient, folder: &Path) -> Result<ClientPlace, String> {
    let at = Surroundings {
        system: OperatingSystem::Windows,
        variable: &|name| matches!(name, "USERPROFILE" | "APPDATA").then(|| format!("%{name}%")),
        project: folder,
    };
    let place = place_of(client, InstallScope::User, &at)?;
    Ok(ClientPlace {
        file: PathBuf::from(place.file.display().to_string().replace('/', "\\")),
        ..place
    })
}
