//! A client's file: read, edited, kept as a backup, replaced in one step. An entry in it is ours if it
//! starts this program, or has the form that `install --url` writes.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::clients::{FileFormat, InstallableClient};
use super::entry::{ClientEntry, EntryTarget};
use super::place::ClientPlace;
use super::{json_file, toml_file};
use crate::annotate::KnownClient;
use crate::error::Failure;

/// A larger file is not a configuration that a person wrote.
const MAX_FILE_BYTES: u64 = 10 << 20;

const BOM: &str = "\u{feff}";

/// A client's file as it is.
pub(super) struct ClientFile<'p> {
    pub(super) place: &'p ClientPlace,
    /// The file that symbolic links lead to.
    target: PathBuf,
    /// The text; `None` if there is no file.
    before: Option<String>,
}

impl<'p> ClientFile<'p> {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, is not UTF-8, is too large, or is a project's and lies elsewhere.
    pub(super) fn read(place: &'p ClientPlace) -> Result<Self, Failure> {
        let target = link_target(&place.file).map_err(Failure::setting)?;
        if let Some(outside) = place
            .project
            .as_deref()
            .and_then(|project| outside(project, &target))
        {
            return Err(Failure::setting(format!(
                "`{}` leads out of the project, to `{}`; remove the symbolic link, or name that file with --config-path",
                place.file.display(),
                outside.display()
            )));
        }
        let before = read_text(&target).map_err(|error| {
            Failure::setting(format!(
                "`{}` cannot be read: {error}",
                place.file.display()
            ))
        })?;
        Ok(Self {
            place,
            target,
            before,
        })
    }

    pub(super) fn is_new(&self) -> bool {
        self.before.is_none()
    }

    pub(super) fn before(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    /// The entry of that name.
    ///
    /// # Errors
    /// The file cannot be parsed; it stays untouched.
    pub(super) fn find(&self, name: &str) -> Result<Option<Value>, Failure> {
        self.find_below(self.keys(), name)
    }

    /// The names of the entries that `install` wrote.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub(super) fn own_names(&self) -> Result<Vec<String>, Failure> {
        let (last, keys) = self.keys().split_last().unwrap_or((&"", &[]));
        let Some(Value::Object(entries)) = self.find_below(keys, last)? else {
            return Ok(Vec::new());
        };
        let own = entries
            .into_iter()
            .filter(|(name, entry)| is_own_entry(self.place.client, name, entry));
        Ok(own.map(|(name, _)| name).collect())
    }

    fn find_below(&self, keys: &[&str], name: &str) -> Result<Option<Value>, Failure> {
        find_in(self.text(), self.place.client.format, keys, name)
            .map_err(|why| self.untouched(&why))
    }

    /// The text of the file with the entry, or without that of the name, if the client finds in it
    /// what was meant.
    ///
    /// # Errors
    /// As [`find`](Self::find); or the file is written in a way that cannot be edited.
    pub(super) fn set(&self, name: &str, entry: Option<&ClientEntry>) -> Result<String, Failure> {
        let (text, keys, client) = (self.text(), self.keys(), self.place.client);
        let meant = entry.map(|entry| entry.value(client));
        let inputs = entry.map_or_else(Vec::new, |entry| entry.inputs(client));
        let edited = match client.format {
            FileFormat::Toml => toml_file::set(text, keys, name, meant.as_ref()),
            format => json_file::set(text, format, keys, name, meant.as_ref(), &inputs),
        };
        let edited = edited.and_then(|text| match find_in(&text, client.format, keys, name) {
            Ok(found) if found == meant => Ok(text),
            _ => Err("its servers are written in a form that cannot be edited".to_owned()),
        });
        // With the byte order mark of the file.
        let mark = self.before().strip_suffix(text).unwrap_or_default();
        edited
            .map(|text| format!("{mark}{text}"))
            .map_err(|why| self.untouched(&why))
    }

    /// The text without a byte order mark.
    fn text(&self) -> &str {
        self.before().strip_prefix(BOM).unwrap_or(self.before())
    }

    /// The keys that lead to the servers. opencode 2.0 keeps them one level further down.
    fn keys(&self) -> &'static [&'static str] {
        let is_new_form = self.place.client.client == KnownClient::Opencode
            && matches!(
                find_in(self.text(), self.place.client.format, &["mcp"], "servers"),
                Ok(Some(Value::Object(_)))
            );
        if is_new_form {
            &["mcp", "servers"]
        } else {
            self.place.client.keys
        }
    }

    fn untouched(&self, why: &str) -> Failure {
        Failure::setting(format!(
            "`{}` is not changed: {why}; --print shows the entry to paste",
            self.place.file.display()
        ))
    }

    /// The file that is kept as it was before a change.
    pub(super) fn backup(&self) -> PathBuf {
        let mut name = self.target.file_name().unwrap_or_default().to_os_string();
        name.push(".openapi-mcp.bak");
        self.target.with_file_name(name)
    }

    /// Replaces the file after keeping it as a backup. Returns `false` if it is no longer the file
    /// that was read.
    ///
    /// # Errors
    /// The file or the backup cannot be written.
    pub(super) fn write(&self, after: &str) -> Result<bool, Failure> {
        let failed = |error: std::io::Error| {
            Failure::setting(format!(
                "`{}` cannot be written: {error}",
                self.place.file.display()
            ))
        };
        let folder = self.target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let _lock = lock_folder(folder);
        if read_text(&self.target).map_err(failed)? != self.before {
            return Ok(false);
        }
        if let Some(before) = &self.before {
            write_new(&self.backup(), before, None).map_err(failed)?;
        }
        write_new(&self.target, after, Some(&self.target)).map_err(failed)?;
        Ok(true)
    }
}

fn find_in(
    text: &str,
    format: FileFormat,
    keys: &[&str],
    name: &str,
) -> Result<Option<Value>, String> {
    let (whole, kind) = match format {
        FileFormat::Toml => (toml_file::read(text)?, "a table"),
        format => (json_file::read(text, format)?, "an object"),
    };
    let mut servers = &whole;
    for key in keys {
        servers = match servers.get(key) {
            None => return Ok(None),
            Some(next) if next.is_object() => next,
            Some(_) => return Err(format!("the value of `{key}` is not {kind}")),
        };
    }
    Ok(servers.get(name).cloned())
}

/// Keeps other runs of `install` from writing into the folder until it is dropped, if the system
/// locks folders. Without the lock, one of two edits at the same time could be lost.
fn lock_folder(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// The file that a path leads to through symbolic links, even if that file does not exist yet.
fn link_target(file: &Path) -> Result<PathBuf, String> {
    const MAX_LINKS: usize = 40;
    let mut target = file.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = target.parent().unwrap_or(Path::new("."));
        match fs::read_link(&target) {
            Ok(next) => target = folder.join(next),
            Err(_) if target == file || folder.is_dir() => return Ok(target),
            Err(_) => {
                return Err(format!(
                    "`{}` is a symbolic link to `{}`, whose folder is missing; make the folder, or remove the link",
                    file.display(),
                    target.display()
                ));
            }
        }
    }
    Err(format!(
        "`{}` is a symbolic link that leads to itself",
        file.display()
    ))
}

/// Returns where a file is if that is not in the folder: symbolic links may stand for the folders
/// on its path.
fn outside(folder: &Path, file: &Path) -> Option<PathBuf> {
    let real = |path: &Path| {
        let rest = |there: &Path| {
            Some(
                there
                    .canonicalize()
                    .ok()?
                    .join(path.strip_prefix(there).ok()?),
            )
        };
        path.ancestors()
            .find_map(rest)
            .unwrap_or_else(|| path.to_owned())
    };
    let file = real(file);
    (!file.starts_with(real(folder))).then_some(file)
}

fn read_text(path: &Path) -> std::io::Result<Option<String>> {
    // Opening a pipe would wait for its other end.
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        Ok(_) => {}
    }
    let file = File::open(path)?;
    let mut text = String::new();
    if file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_FILE_BYTES {
        return Err(std::io::Error::other("it has more than 10 MB"));
    }
    Ok(Some(text))
}

/// Writes a file beside its place and renames it, so that no program reads half of it. It gets the
/// mode and the owner of `like`; without it, only the user can read the file.
fn write_new(path: &Path, text: &str, like: Option<&Path>) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let new = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        let mut file = options.open(&new)?;
        file.write_all(text.as_bytes())?;
        if let Some(found) = like.and_then(|like| fs::metadata(like).ok()) {
            keep_owner(&file, &found)?;
            file.set_permissions(found.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(unix)]
fn keep_owner(file: &File, found: &fs::Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (found.uid(), found.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(found.uid()), Some(found.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &fs::Metadata) -> std::io::Result<()> {
    Ok(())
}

/// Returns `true` if `install` could have written the entry of that name, so that it may be
/// replaced and removed.
pub(super) fn is_own_entry(client: &InstallableClient, name: &str, entry: &Value) -> bool {
    starts_this_program(&command_words(entry)) || is_own_url_entry(client, name, entry)
}

/// The command with its arguments. opencode has both in one array.
fn command_words(entry: &Value) -> Vec<&str> {
    let mut words = Vec::new();
    for key in ["command", "cmd", "args"] {
        match entry.get(key) {
            Some(Value::String(word)) => words.push(word.as_str()),
            Some(Value::Array(items)) => words.extend(items.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    words
}

/// Returns `true` if the words start this program: by its file, with npx or uvx from its package,
/// or one of these through `cmd` or `wsl`.
fn starts_this_program(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let file = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let lower = file.to_ascii_lowercase();
    let stem = lower
        .strip_suffix(".exe")
        .or(lower.strip_suffix(".cmd"))
        .unwrap_or(&lower);
    match (stem, rest) {
        _ if matches!(file, "openapi-mcp" | "openapi-mcp.exe") => true,
        ("cmd", [flag, rest @ ..]) if flag.eq_ignore_ascii_case("/c") => starts_this_program(rest),
        (
            "wsl",
            [
                "-d" | "--distribution",
                _,
                "--exec" | "-e" | "--",
                rest @ ..,
            ]
            | ["--exec" | "-e" | "--", rest @ ..],
        ) => starts_this_program(rest),
        ("npx", ["-y" | "--yes", package, ..] | [package, ..])
        | ("uvx", ["--from", package, ..] | [package, ..]) => is_own_package(package),
        _ => false,
    }
}

/// The package's name, alone or with a version.
fn is_own_package(text: &str) -> bool {
    let Some(version) = text.strip_prefix(env!("CARGO_PKG_NAME")) else {
        return false;
    };
    version.is_empty() || version.starts_with('@') || version.starts_with("==")
}

/// Returns `true` if `install --url` writes exactly this entry for its address and the variable of
/// its token.
fn is_own_url_entry(client: &InstallableClient, name: &str, entry: &Value) -> bool {
    let text = |pointer: &&str| entry.pointer(pointer).and_then(Value::as_str);
    let Some(url) = ["/url", "/serverUrl", "/httpUrl", "/uri"]
        .iter()
        .find_map(text)
    else {
        return false;
    };
    let header = [
        "/headers/Authorization",
        "/requestOptions/headers/Authorization",
        "/bearer_token_env_var",
    ];
    let target = EntryTarget::Url {
        url: url.to_owned(),
        token: header
            .iter()
            .find_map(text)
            .map(|header| token_variable(client.client, name, header)),
    };
    let name = name.to_owned();
    ClientEntry { name, target }.value(client) == *entry
}

/// The variable at the end of a header, such as `Bearer ${NAME}`. VS Code has the id of a question
/// there.
fn token_variable(client: KnownClient, name: &str, header: &str) -> String {
    let mut words = header.rsplit(|character: char| {
        !character.is_ascii_alphanumeric() && !matches!(character, '_' | '-')
    });
    let last = words.find(|word| !word.is_empty()).unwrap_or_default();
    match last.strip_prefix(&format!("{name}-")) {
        Some(id) if client == KnownClient::Vscode => id.to_ascii_uppercase().replace('-', "_"),
        _ => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_program_and_the_exact_package_are_ours() {
        for (words, expected) in [
            (&["openapi-mcp"][..], true),
            (&["/usr/local/bin/openapi-mcp", "serve"], true),
            (&["C:\\bin\\openapi-mcp.exe", "serve"], true),
            (&["npx", "-y", "openapi-mcp-server"], true),
            (&["npx", "-y", "openapi-mcp-server@0.1.0", "serve"], true),
            (
                &["cmd", "/c", "npx", "-y", "openapi-mcp-server@0.1.0"],
                true,
            ),
            (
                &[
                    "uvx",
                    "--from",
                    "openapi-mcp-server==0.1.0",
                    "openapi-mcp",
                    "serve",
                ],
                true,
            ),
            (&["uvx", "openapi-mcp-server@latest"], true),
            (
                &[
                    "wsl.exe",
                    "-d",
                    "Debian",
                    "--exec",
                    "/usr/bin/openapi-mcp",
                    "serve",
                ],
                true,
            ),
            (&["uvx", "awslabs.openapi-mcp-server@latest"], false),
            (
                &[
                    "uvx",
                    "--from",
                    "git+https://h.example/openapi-mcp-server",
                    "openapi-mcp",
                ],
                false,
            ),
            (&["npx", "-y", "@ivotoby/openapi-mcp-server"], false),
            (&["npx", "-y", "openapi-mcp-server-extra"], false),
            (&["node", "/home/me/openapi-mcp-tests/other.js"], false),
            (&["/opt/openapi-mcp/bin/other"], false),
            (&["cmd", "/c", "openapi-mcp-tests"], false),
            (&["python", "openapi-mcp"], false),
            (&["my-openapi-mcp"], false),
            (&[], false),
        ] {
            assert_eq!(starts_this_program(words), expected, "{words:?}");
        }
    }
}
