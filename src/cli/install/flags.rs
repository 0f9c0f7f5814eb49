//! The settings of `serve` that an entry carries: those of the command line, with absolute paths
//! and without secrets.

use std::path::{Component, Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use url::Url;

use super::place::{ClientPlace, InstallScope};
use crate::annotate::KnownClient;
use crate::cli::operating_system::OperatingSystem;
use crate::config::settings::ApiSettings;
use crate::config::{self, Problems, change_path, variables};

/// The program of Windows that starts programs of a Linux distribution.
pub(super) const WSL: &str = "wsl.exe";

/// Rules for relative paths of an entry.
pub(crate) struct PathRules<'p> {
    pub(crate) scope: InstallScope,
    pub(crate) place: &'p ClientPlace,
    /// The current folder.
    pub(crate) folder: &'p Path,
}

/// The settings of a command that the command line gives.
pub(super) fn given_settings<'c>(
    command: &'c Command,
    matches: &'c ArgMatches,
) -> impl Iterator<Item = &'c Arg> {
    command.get_arguments().filter(|argument| {
        argument.get_env().is_some()
            && matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    })
}

/// The arguments of the command that the client starts; what must not be in it is pushed to
/// `problems`.
pub(crate) fn serve_arguments(
    command: &Command,
    matches: &ArgMatches,
    rules: &PathRules<'_>,
    problems: &mut Problems,
) -> Vec<String> {
    let mut arguments = vec!["serve".to_owned()];
    for argument in given_settings(command, matches) {
        let Some(flag) = argument.get_long() else {
            continue;
        };
        let values = matches.get_raw(argument.get_id().as_str());
        let values = values.into_iter().flatten();
        for value in values {
            let Some(value) = value.to_str() else {
                problems.push(format!(
                    "--{flag}: a path that is not valid UTF-8 cannot be written into a client's file"
                ));
                continue;
            };
            if names(argument, "BOOL") {
                let is_on = !matches!(
                    value.to_ascii_lowercase().as_str(),
                    "false" | "no" | "off" | "0" | "n" | "f"
                );
                arguments.push(if is_on {
                    format!("--{flag}")
                } else {
                    format!("--{flag}=false")
                });
                continue;
            }
            let value_names = argument.get_value_names().unwrap_or_default();
            let value = change_path(
                value_names.first().map_or("", |name| name.as_str()),
                value,
                |path| placed(flag, path, rules, problems),
            );
            // A value that begins with a hyphen would be taken for a flag.
            if value.starts_with('-') {
                arguments.push(format!("--{flag}={value}"));
            } else {
                arguments.extend([format!("--{flag}"), value]);
            }
        }
    }
    arguments
}

fn names(argument: &Arg, name: &str) -> bool {
    let names = argument.get_value_names().unwrap_or_default();
    names
        .iter()
        .any(|value| value.split('|').any(|part| part == name))
}

/// A path as the client will find it: absolute, or in the client's own word for the project.
fn placed(flag: &str, value: &str, rules: &PathRules<'_>, problems: &mut Problems) -> String {
    if value == "-" {
        problems.push(format!(
            "--{flag} -: a server that a client starts reads the client's messages from standard input; give a file or a URL"
        ));
        return value.to_owned();
    }
    if value.contains("://") {
        return value.to_owned();
    }
    let path = absolute(&rules.folder.join(value));
    if rules.scope == InstallScope::User {
        return path.display().to_string();
    }
    let Ok(inside) = path.strip_prefix(absolute(rules.folder)) else {
        problems.push(format!(
            "--{flag}: `{value}` is outside the project, and others of the team do not have it; put it into the project, or use --scope user"
        ));
        return value.to_owned();
    };
    match rules.place.client.client {
        KnownClient::Vscode | KnownClient::Cursor => {
            format!("${{workspaceFolder}}/{}", inside.display())
        }
        _ => inside.display().to_string(),
    }
}

/// The path without `.` and `..`; symbolic links stay, so that they may lead elsewhere tomorrow.
fn absolute(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            other => whole.push(other),
        }
    }
    whole
}

/// Sentences about secrets that are written out in the settings, which a client's file must not
/// hold. `query_keys` are the query parameters that the document's schemes name.
pub(crate) fn written_out_secrets(
    api: &ApiSettings,
    arguments: &[String],
    query_keys: &[String],
) -> Vec<String> {
    let mut found = config::secret_headers(&api.header, &api.document.spec_header);
    for argument in arguments {
        let text = argument
            .split_once('=')
            .filter(|(flag, _)| flag.starts_with("--"))
            .map_or(argument.as_str(), |(_, value)| value);
        let Ok(url) = Url::parse(text) else { continue };
        if !matches!(url.scheme(), "http" | "https" | "socks5") {
            continue;
        }
        if !url.username().is_empty() || url.password().is_some() {
            found.push(format!(
                "a URL of {} holds a user or a password, which would be in the client's file; give it in a variable (--spec-header-env, --header-env, `proxy_auth_env`)",
                url.host_str().unwrap_or_default()
            ));
        }
        for (name, _) in url.query_pairs() {
            let lower = name.to_ascii_lowercase();
            let says_so = [
                "token",
                "secret",
                "password",
                "signature",
                "api_key",
                "apikey",
                "api-key",
            ]
            .iter()
            .any(|word| lower.contains(word));
            if says_so || query_keys.iter().any(|key| *key == name) {
                found.push(format!(
                    "the query parameter `{}` of a URL is a credential, which would be in the client's file; send it as a header with --spec-header-env NAME=VARIABLE",
                    crate::text::one_line(&name)
                ));
            }
        }
    }
    found
}

/// The command that a client starts, with its first arguments.
pub(crate) struct ServerProgram {
    pub(crate) words: Vec<String>,
    /// A sentence that the user should read.
    pub(crate) warning: Option<String>,
}

impl ServerProgram {
    /// Makes it a command that starts the same in a distribution of WSL, for a client on Windows. It
    /// has no shell, and so none of its folders for programs.
    pub(crate) fn through_wsl(&mut self, distribution: &str) {
        if let Some(command) = self.words.first_mut()
            && let Some(path) = variables::on_path(command)
        {
            *command = path.display().to_string();
        }
        let start = [WSL, "-d", distribution, "--exec"].map(str::to_owned);
        self.words.splice(0..0, start);
    }
}

/// Returns the command with which a client should start this program.
///
/// # Errors
/// A sentence: the system does not report the path of this program.
pub(crate) fn program(
    scope: InstallScope,
    system: OperatingSystem,
) -> Result<ServerProgram, String> {
    let running = variables::running_program()?;
    let on_path = variables::on_path("openapi-mcp");
    Ok(program_at(&running, on_path.as_deref(), scope, system))
}

/// The same for a program that runs from a path, and the one on PATH.
fn program_at(
    running: &Path,
    on_path: Option<&Path>,
    scope: InstallScope,
    system: OperatingSystem,
) -> ServerProgram {
    let text = running.display().to_string().replace('\\', "/");
    let package = env!("CARGO_PKG_NAME");
    let version = env!("CARGO_PKG_VERSION");
    let without_warning = |words: &[&str]| ServerProgram {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        warning: None,
    };
    if text.contains("/_npx/") {
        let shell: &[&str] = if system == OperatingSystem::Win32 {
            &["cmd", "/c"]
        } else {
            &[]
        };
        let npx = ["npx", "-y", &format!("{package}@{version}")];
        return without_warning(&[shell, &npx].concat());
    }
    if ["/uv/archive-v0/", "/uv/cache/", "/.cache/uv/"]
        .iter()
        .any(|part| text.contains(part))
    {
        let package = format!("{package}=={version}");
        return without_warning(&["uvx", "--from", &package, "openapi-mcp"]);
    }
    if scope == InstallScope::Project {
        let warning = on_path.is_none().then(|| {
            "openapi-mcp is not on your PATH, where the project's entry looks for it; `cargo install --locked --path .` puts it there"
                .to_owned()
        });
        return ServerProgram {
            warning,
            ..without_warning(&["openapi-mcp"])
        };
    }
    if let Some(path) = on_path
        && let (Ok(found), Ok(own)) = (std::fs::canonicalize(path), std::fs::canonicalize(running))
        && found == own
    {
        return without_warning(&[&path.display().to_string()]);
    }
    let is_temporary = text.contains("/target/debug/")
        || text.contains("/target/release/")
        || running.starts_with(variables::temporary_folder());
    let command = running.display().to_string();
    let warning = is_temporary.then(|| {
        format!(
            "the entry starts `{command}`, which the next build or cleaning may remove; `cargo install --locked --path .` installs it for good"
        )
    });
    ServerProgram {
        words: vec![command],
        warning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_started_where_it_will_be_tomorrow() {
        use OperatingSystem::{Linux, Win32};
        let version = env!("CARGO_PKG_VERSION");
        let npx = format!("npx -y openapi-mcp-server@{version}");
        let folder = tempfile::tempdir().unwrap();
        let installed = folder.path().join("1.2.3/openapi-mcp");
        std::fs::create_dir_all(installed.parent().unwrap()).unwrap();
        std::fs::write(&installed, "").unwrap();
        for (running, on_path, scope, system, expected, warns) in [
            (
                "/h/.npm/_npx/1a2b/node_modules/x/openapi-mcp",
                None,
                InstallScope::User,
                Linux,
                npx.clone(),
                false,
            ),
            (
                "C:\\h\\_npx\\1a2b\\node_modules\\x\\openapi-mcp.exe",
                None,
                InstallScope::User,
                Win32,
                format!("cmd /c {npx}"),
                false,
            ),
            (
                "/h/.cache/uv/archive-v0/1a2b/bin/openapi-mcp",
                None,
                InstallScope::Project,
                Linux,
                format!("uvx --from openapi-mcp-server=={version} openapi-mcp"),
                false,
            ),
            (
                "/opt/openapi-mcp",
                None,
                InstallScope::User,
                Linux,
                "/opt/openapi-mcp".to_owned(),
                false,
            ),
            (
                "/opt/openapi-mcp",
                None,
                InstallScope::Project,
                Linux,
                "openapi-mcp".to_owned(),
                true,
            ),
            (
                "/h/src/target/debug/openapi-mcp",
                Some("/usr/bin/openapi-mcp"),
                InstallScope::User,
                Linux,
                "/h/src/target/debug/openapi-mcp".to_owned(),
                true,
            ),
        ] {
            let found = program_at(Path::new(running), on_path.map(Path::new), scope, system);
            assert_eq!(
                (found.words.join(" "), found.warning.is_some()),
                (expected, warns),
                "{running}"
            );
        }
        // A path with a version in it dies with the next one.
        #[cfg(unix)]
        {
            let linked = folder.path().join("openapi-mcp");
            std::os::unix::fs::symlink(&installed, &linked).unwrap();
            let found = program_at(&installed, Some(&linked), InstallScope::User, Linux);
            assert_eq!(
                (found.words, found.warning.is_some()),
                (vec![linked.display().to_string()], false)
            );
        }
    }
}
