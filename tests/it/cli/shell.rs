//! Runs the `sh` blocks of the documentation in a real shell, in a folder that holds what they
//! name.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::{binary, project};

/// Runs the binary. A server over HTTP goes on in the background, once it listens, until the script
/// ends.
const OPENAPI_MCP: &str = r#"#!/bin/sh
for word in "$@"; do
    if [ "${before-}" = --config ]; then config=$word; fi
    before=$word
done
case " $* $(cat "${config-/dev/null}") " in
" serve "*" --transport http "*|" serve "*"transport: http"*)
    log=$FOLDER/log.$$
    : >"$log"
    "$BINARY" "$@" 2>"$log" &
    echo $! >>"$FOLDER/servers"
    until grep -q 'listening on ' "$log"; do
        kill -0 $! 2>/dev/null || { cat "$log" >&2; exit 1; }
        sleep 0.05
    done
    sed -n 's|.*listening on [a-z]*://\([^/]*\)/mcp.*|\1|p' "$log" | head -n 1 >"$FOLDER/address" ;;
" bundle "*) exec "$BINARY" "$@" --binary /bin/sh --platform linux ;;
*) exec "$BINARY" "$@" ;;
esac
"#;

/// Asks the server that was started last. If curl is not installed, no request is made.
const CURL: &str = r#"#!/bin/sh
real=$(PATH=$OUTER_PATH command -v curl) || exit 0
url=$(cat "$FOLDER/address")/${1#*/}
shift
exec "$real" --silent --show-error --fail "$url" "$@"
"#;

const KUBECTL: &str = r#"#!/bin/sh
case $1 in
get) cat "$FOLDER/apps.json.published" ;;
create) echo printed-by-the-command ;;
esac
"#;

const OPENSSL: &str =
    "#!/bin/sh\necho 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";

/// Commands whose effect other checks of CI cover: the image, the build.
const NOTHING: &str = "#!/bin/sh\nexit 0\n";

/// A folder with the documents of `tests/cases/docs/documents.yaml` and the commands that the
/// documentation uses.
pub struct Shell {
    folder: tempfile::TempDir,
}

/// The text of the fenced blocks of one language.
pub fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&fence)
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .collect()
}

impl Shell {
    pub fn new() -> Self {
        let shell = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let commands = [
            ("openapi-mcp", OPENAPI_MCP),
            ("curl", CURL),
            ("kubectl", KUBECTL),
            ("openssl", OPENSSL),
            ("docker", NOTHING),
            ("podman", NOTHING),
            ("buildah", NOTHING),
            ("cargo", NOTHING),
            ("helm", NOTHING),
        ];
        for (name, text) in commands {
            shell.write_command(&format!("bin/{name}"), text);
        }
        shell.write_command("target/debug/openapi-mcp", OPENAPI_MCP);
        std::os::unix::fs::symlink(project("examples"), shell.path().join("examples")).unwrap();
        // The folders of the clients into which the documentation installs.
        for client in [".cursor", ".codex", ".vscode"] {
            std::fs::create_dir_all(shell.path().join("home").join(client)).unwrap();
        }
        let petstore = std::fs::read_to_string(project("examples/petstore/petstore.yaml")).unwrap();
        for name in ["petstore.yaml", "api.yaml", "old.yaml", "new.yaml"] {
            shell.write(name, &petstore);
        }
        let documents =
            std::fs::read_to_string(project("tests/cases/docs/documents.yaml")).unwrap();
        let documents: BTreeMap<String, Value> = serde_yaml::from_str(&documents).unwrap();
        for (name, document) in documents {
            shell.write(&name, &document.to_string());
        }
        shell
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn write_command(&self, name: &str, text: &str) {
        self.write(name, text);
        std::fs::set_permissions(
            self.path().join(name),
            std::fs::Permissions::from_mode(0o755),
        )
        .unwrap();
    }

    /// Writes each YAML block whose first line is `# NAME.yaml` to the file of that name.
    pub fn write_files_of(&self, page: &str) {
        for block in blocks(page, "yaml") {
            if let Some(name) = block
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("# "))
                && Path::new(name)
                    .extension()
                    .is_some_and(|extension| extension == "yaml")
            {
                self.write(name, block);
            }
        }
    }

    /// Runs a script. It ends at the first command that fails, and its servers end with it.
    pub fn run(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        self.write(
            "script.sh",
            &format!("set -eu\ntrap 'test -f servers && kill $(cat servers) 2>/dev/null || true' EXIT\n{script}\n"),
        );
        let outer = std::env::var("PATH").unwrap_or_default();
        let mut command = std::process::Command::new("sh");
        command
            .arg("script.sh")
            .current_dir(self.path())
            .stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OPENAPI_MCP_")) {
            command.env_remove(name);
        }
        command
            .env(
                "PATH",
                format!("{}:{outer}", self.path().join("bin").display()),
            )
            .env("OUTER_PATH", outer)
            .env("HOME", self.path().join("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env("FOLDER", self.path())
            .env("BINARY", binary())
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }
}
