//! The command of an entry: it starts the program as its user did, by a path that stays.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Home;
use crate::support::{binary, petstore, stderr, stdout};

/// The command of the entry for Cursor, printed by the program at a path, with a folder on PATH.
fn printed_command(home: &Home, program: &Path, on_path: &Path) -> (Vec<String>, String) {
    let output = Command::new(program)
        .args([
            "install",
            "--client",
            "cursor",
            "--spec",
            &petstore(),
            "--name",
            "pets",
            "--print",
        ])
        .env_clear()
        .env("HOME", home.path(""))
        .env("PATH", on_path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let entry = &shown["mcpServers"]["pets"];
    let arguments = entry["args"].as_array().unwrap();
    let words = std::iter::once(&entry["command"]).chain(arguments);
    let words = words.map(|word| word.as_str().unwrap().to_owned());
    (
        words.take_while(|word| word != "serve").collect(),
        stderr(&output),
    )
}

#[test]
fn an_entry_starts_the_program_as_its_user_did() {
    let home = Home::new();
    // A hard link has a path of its own; it must be on the file system of the binary.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let place = |path: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::hard_link(binary(), &path).unwrap();
        path
    };
    let version = env!("CARGO_PKG_VERSION");
    let npx = place(".npm/_npx/1a2b/node_modules/openapi-mcp-server-linux-x64-gnu/openapi-mcp");
    let package = format!("openapi-mcp-server@{version}");
    assert_eq!(
        printed_command(&home, &npx, &folder).0,
        ["npx", "-y", &package]
    );
    let uvx = place(".cache/uv/archive-v0/1a2b/bin/openapi-mcp");
    let package = format!("openapi-mcp-server=={version}");
    assert_eq!(
        printed_command(&home, &uvx, &folder).0,
        ["uvx", "--from", &package, "openapi-mcp"]
    );
    // The link on PATH stays when the folder of a version goes.
    let versioned = place("Cellar/openapi-mcp/1.2.3/bin/openapi-mcp");
    let link = folder.join("bin/openapi-mcp");
    std::fs::create_dir(folder.join("bin")).unwrap();
    std::os::unix::fs::symlink(&versioned, &link).unwrap();
    for program in [&versioned, &link] {
        let (command, said) = printed_command(&home, program, &folder.join("bin"));
        assert_eq!(command, [link.display().to_string()]);
        assert!(!said.contains("warning"), "{said}");
    }
    let built = place("target/debug/openapi-mcp");
    let (command, said) = printed_command(&home, &built, &folder);
    assert_eq!(command, [built.display().to_string()]);
    assert!(
        said.contains("which the next build or cleaning may remove"),
        "{said}"
    );
}
