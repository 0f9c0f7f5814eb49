//! Hostile and unlucky files: files that cannot be read or written stay as they are, and no entry
//! is lost.

use std::process::Child;

use super::{Home, read};
use crate::support::{petstore, stderr, stdout};

#[test]
fn a_file_that_cannot_be_read_stays_untouched() {
    let large = format!("{{ \"x\": \"{}\" }}", "y".repeat(11 << 20));
    for (content, words) in [
        (
            &b"{ \"mcpServers\": {}, \"name\": \"\xff\xfe\" }"[..],
            "did not contain valid UTF-8",
        ),
        (large.as_bytes(), "more than 10 MB"),
        (b"\0\0\0\0", "is not valid JSON"),
        (b"{ \"mcpServers\": { \"petstore\": ", "is not valid JSON"),
    ] {
        let home = Home::new();
        let path = home.write(".cursor/mcp.json", "");
        std::fs::write(&path, content).unwrap();
        for output in [
            home.install("cursor", &["--write"]),
            home.uninstall("cursor", "petstore"),
        ] {
            assert_eq!(
                output.status.code(),
                Some(2),
                "{words}: {}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains(words),
                "{words}: {}",
                stderr(&output)
            );
        }
        assert_eq!(std::fs::read(&path).unwrap(), content, "{words}");
        assert_eq!(
            std::fs::read_dir(home.path(".cursor")).unwrap().count(),
            1,
            "{words}"
        );
    }
    let home = Home::new();
    std::fs::create_dir_all(home.path(".cursor/mcp.json")).unwrap();
    let output = home.install("cursor", &["--write"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("is not a regular file"),
        "{}",
        stderr(&output)
    );
}

/// No user can make a file there, not even root.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_file_is_told() {
    let home = Home::new();
    let output = home.install("cursor", &["--config-path", "/proc/mcp.json", "--write"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("`/proc/mcp.json` cannot be written: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn deeply_nested_files_are_refused_and_not_a_crash() {
    let depth = 100_000;
    for (client, file, text) in [
        (
            "cursor",
            ".cursor/mcp.json",
            format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth)),
        ),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            format!("{{\"a\":{}{}}}", "{\"a\":".repeat(depth), "}".repeat(depth)),
        ),
        (
            "codex",
            ".codex/config.toml",
            format!("a = {}{}", "[".repeat(depth), "]".repeat(depth)),
        ),
    ] {
        let home = Home::new();
        let path = home.write(file, &text);
        let output = home.install(client, &["--write"]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{client}: {}",
            stderr(&output)
        );
        assert_eq!(read(&path), text, "{client}");
    }
}

#[test]
fn of_several_that_write_at_once_nobody_loses_an_entry() {
    for (client, file) in [
        ("cursor", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml"),
    ] {
        let home = Home::new();
        let path = home.write(file, "");
        let spec = petstore();
        let names: Vec<String> = (0..8).map(|number| format!("pets{number}")).collect();
        let running: Vec<Child> = names
            .iter()
            .map(|name| {
                home.start(&[
                    "install", "--client", client, "--spec", &spec, "--name", name, "--write",
                ])
            })
            .collect();
        let done: Vec<_> = running
            .into_iter()
            .map(|child| child.wait_with_output().unwrap())
            .collect();
        let text = read(&path);
        for (name, output) in names.iter().zip(&done) {
            match output.status.code() {
                Some(0) => assert!(
                    text.contains(name.as_str()),
                    "{client}: {name} is lost: {text}"
                ),
                _ => assert!(
                    stderr(output).contains("by another program; try again"),
                    "{}",
                    stderr(output)
                ),
            }
        }
        assert!(
            done.iter().any(|output| output.status.success()),
            "{client}"
        );
    }
}

#[test]
fn a_file_of_thousands_of_servers_is_edited_in_seconds() {
    let servers: Vec<String> = (0..2_000)
        .map(|number| format!("\"s{number}\": {{}}"))
        .collect();
    let text = format!("{{ \"mcpServers\": {{ {} }} }}", servers.join(", "));
    let home = Home::new();
    let path = home.write(".cursor/mcp.json", &text);
    let start = std::time::Instant::now();
    for output in [
        home.install("cursor", &["--write"]),
        home.uninstall("cursor", "petstore"),
    ] {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    let left: serde_json::Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(
        left,
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    );
}

/// A repository of somebody else may hold links.
#[cfg(unix)]
#[test]
fn a_project_does_not_decide_that_a_file_outside_of_it_is_changed() {
    use std::os::unix::fs::symlink;

    let home = Home::new();
    let own = home.write(".cursor/mcp.json", "{}");
    for (folder, link, target) in [
        ("file", ".cursor/mcp.json", "../../.cursor/mcp.json"),
        ("folder", ".cursor", "../.cursor"),
        ("chain", ".cursor/mcp.json", "../link/mcp.json"),
        ("new", ".cursor/mcp.json", "../../new.json"),
    ] {
        let project = home.path(folder);
        std::fs::create_dir_all(project.join(link).parent().unwrap()).unwrap();
        symlink(target, project.join(link)).unwrap();
        if folder == "chain" {
            symlink(home.path(".cursor"), project.join("link")).unwrap();
        }
        std::fs::copy(petstore(), project.join("petstore.yaml")).unwrap();
        let install = [
            "install",
            "--client",
            "cursor",
            "--scope",
            "project",
            "--spec",
            "petstore.yaml",
            "--write",
        ];
        let uninstall = [
            "uninstall",
            "--client",
            "cursor",
            "--scope",
            "project",
            "--name",
            "petstore",
            "--write",
        ];
        for args in [&install[..], &uninstall] {
            let output = home.command(args).current_dir(&project).output().unwrap();
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{folder}: {said}");
            let named = if folder == "new" {
                home.path("new.json")
            } else {
                own.clone()
            };
            let named = home
                .folder
                .path()
                .canonicalize()
                .unwrap()
                .join(named.strip_prefix(home.folder.path()).unwrap());
            assert!(
                said.contains("leads out of the project") && said.contains(named.to_str().unwrap()),
                "{folder}: {said}"
            );
        }
        assert_eq!(read(&own), "{}", "{folder}");
    }
    assert!(!home.path("new.json").exists());

    // Within the project, links are followed.
    let project = home.path("linked");
    std::fs::create_dir_all(project.join("shared")).unwrap();
    std::fs::create_dir_all(project.join(".cursor")).unwrap();
    symlink("../shared/mcp.json", project.join(".cursor/mcp.json")).unwrap();
    std::fs::copy(petstore(), project.join("petstore.yaml")).unwrap();
    let install = [
        "install",
        "--client",
        "cursor",
        "--scope",
        "project",
        "--spec",
        "petstore.yaml",
        "--write",
    ];
    let output = home
        .command(&install)
        .current_dir(&project)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(read(&project.join("shared/mcp.json")).contains("petstore"));
}
