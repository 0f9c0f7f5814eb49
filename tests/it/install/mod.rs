//! `install` and `uninstall`: the files of real clients, in a home folder of their own.

mod care;
mod entries;
mod layout;
mod links;
#[cfg(target_os = "linux")]
mod program;
mod several_apis;
mod surroundings;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::support::{command, petstore};

/// A home folder with the folders of clients in it.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// A file with the text, in the folder of its client.
    fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(args)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    fn start(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        for name in [
            "XDG_CONFIG_HOME",
            "CODEX_HOME",
            "CLAUDE_CONFIG_DIR",
            "SUDO_USER",
            "WSL_DISTRO_NAME",
            "VSCODE_IPC_HOOK_CLI",
        ] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.folder.path())
            .current_dir(self.folder.path());
        command
    }

    fn uninstall(&self, client: &str, name: &str) -> Output {
        self.run(
            &["uninstall", "--client", client, "--name", name, "--write"],
            &[],
        )
    }

    fn install(&self, client: &str, more: &[&str]) -> Output {
        let spec = petstore();
        let mut args = vec!["install", "--client", client, "--spec", &spec];
        args.extend(more);
        self.run(&args, &[])
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
