//! The entries of clients: their forms, how they come and go, and what is refused.

use std::path::Path;

use super::{Home, read};
use crate::support::{SpecFile, binary, petstore, project, stderr, stdout};

/// A client, its file, a text that the client takes, and the text that is left after the entry came
/// and went, if it is another one.
const EDITED: [(&str, &str, &str, Option<&str>); 9] = [
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "{\n    \"mcpServers\": {\n        \"other\": { \"command\": \"x\" }\n    },\n    \"theme\": \"dark\"\n}",
        None,
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "// mine\n{\n\t\"servers\": {\n\t\t\"other\": { \"type\": \"stdio\", \"command\": \"x\" }, // keep\n\t},\n\t/* and this */\n}\n",
        Some(
            "// mine\n{\n\t\"servers\": {\n\t\t\"other\": { \"type\": \"stdio\", \"command\": \"x\" }, // keep\n\t},\n\t\"inputs\": [\n\t\t{\n\t\t\t\"type\": \"promptString\",\n\t\t\t\"id\": \"petstore-api-key\",\n\t\t\t\"description\": \"OPENAPI_MCP_AUTH_API_KEY of petstore\",\n\t\t\t\"password\": true\n\t\t}\n\t],\n\t/* and this */\n}\n",
        ),
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "{\"mcpServers\":{\"other\":{\"command\":\"x\"}}}",
        Some("{\"mcpServers\":{\n    \"other\":{\"command\":\"x\"}\n  }}"),
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{}\n",
        Some("{\n  \"mcpServers\": {}\n}\n"),
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\r\n  // Windows\r\n  \"theme\": \"x\"\r\n}\r\n",
        Some("{\r\n  // Windows\r\n  \"theme\": \"x\",\r\n  \"mcpServers\": {}\r\n}\r\n"),
    ),
    (
        "codex",
        ".codex/config.toml",
        "# mine\nmodel = \"x\" # keep\n\n[mcp_servers.other]\ncommand = 'x'\n\n[profiles.a]\nb = 1\n",
        None,
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "{\n  // fonts\n  \"buffer_font_size\": 14,\n}\n",
        Some("{\n  // fonts\n  \"buffer_font_size\": 14,\n  \"context_servers\": {},\n}\n"),
    ),
    (
        "opencode",
        ".config/opencode/opencode.jsonc",
        "{ \"mcp\": { \"other\": { \"type\": \"local\", \"command\": [\"x\"] } } }\n",
        Some("{ \"mcp\": {\n    \"other\": { \"type\": \"local\", \"command\": [\"x\"] }\n  } }\n"),
    ),
    // opencode 2.0 keeps its servers one level further down.
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\n  \"mcp\": { \"servers\": { \"other\": { \"type\": \"local\", \"command\": [\"x\"] } } }\n}\n",
        Some(
            "{\n  \"mcp\": { \"servers\": {\n      \"other\": { \"type\": \"local\", \"command\": [\"x\"] }\n    } }\n}\n",
        ),
    ),
];

#[test]
fn an_entry_comes_and_goes_and_the_file_before_is_kept_beside_it() {
    for (client, file, before, left) in EDITED {
        let home = Home::new();
        let path = home.write(file, before);
        let output = home.install(client, &["--write"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        let after = read(&path);
        assert!(
            after.contains("petstore") && after.contains("serve"),
            "{client}: {after}"
        );
        for line in before
            .lines()
            .filter(|line| line.contains("//") || line.contains('#') || line.contains("/*"))
        {
            assert!(
                after.contains(line),
                "{client}: the comment is lost: {line}\n{after}"
            );
        }
        assert_eq!(before.contains("\r\n"), after.contains("\r\n"), "{client}");
        assert!(
            !after.replace("\r\n", "").contains('\n') || !before.contains("\r\n"),
            "{client}: {after:?}"
        );
        // Again is the same.
        let output = home.install(client, &["--write"]);
        assert!(
            stderr(&output).contains("is already in"),
            "{client}: {}",
            stderr(&output)
        );
        assert_eq!(read(&path), after);
        let backup = path.with_file_name(format!(
            "{}.openapi-mcp.bak",
            path.file_name().unwrap().display()
        ));
        assert_eq!(read(&backup), before, "{client}");
        let output = home.uninstall(client, "petstore");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        assert_eq!(read(&path), left.unwrap_or(before), "{client}");
        assert_eq!(read(&backup), after, "{client}");
        let files: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(files.len(), 2, "{client}: {files:?}");
    }
}

#[test]
fn a_file_that_install_made_stays_without_its_entry() {
    for (client, file, ..) in EDITED {
        let home = Home::new();
        let folder = home.path(file).parent().unwrap().to_owned();
        std::fs::create_dir_all(&folder).unwrap();
        let output = home.install(client, &["--write"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        assert!(
            !stderr(&output).contains("kept as it was"),
            "{client}: {}",
            stderr(&output)
        );
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{client}");
        let made = home.path(file);
        // opencode's new file is the one without comments.
        let made = if made.exists() {
            made
        } else {
            made.with_extension("json")
        };
        assert!(read(&made).contains("--client"), "{client}");
        let output = home.uninstall(client, "petstore");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        assert!(
            !read(&made).contains("--client"),
            "{client}: {}",
            read(&made)
        );
        let output = home.uninstall(client, "petstore");
        assert!(
            stderr(&output).contains("there is no entry"),
            "{client}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn what_changed_since_is_kept_when_the_entry_goes() {
    for (client, file, before) in [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.other]\ncommand = 'x'\n",
        ),
    ] {
        let home = Home::new();
        let path = home.write(file, before);
        assert!(home.install(client, &["--write"]).status.success());
        let changed = read(&path)
            .replace("\"x\"", "\"changed\"")
            .replace("'x'", "'changed'");
        std::fs::write(&path, &changed).unwrap();
        assert!(
            home.run(
                &[
                    "uninstall",
                    "--client",
                    client,
                    "--name",
                    "petstore",
                    "--write"
                ],
                &[]
            )
            .status
            .success()
        );
        let expected = before
            .replace("\"x\"", "\"changed\"")
            .replace("'x'", "'changed'");
        assert_eq!(read(&path), expected, "{client}");
    }
}

#[test]
fn a_file_that_is_not_understood_stays_untouched() {
    for (client, file, text, words) in [
        (
            "cursor",
            ".cursor/mcp.json",
            "{ \"mcpServers\": ",
            "is not valid JSON",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{ \"mcpServers\": {}, // no\n }",
            "is not valid JSON",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{ \"mcpServers\": [] }",
            "the value of `mcpServers` is not an object",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{ \"mcpServers\": {}, \"mcpServers\": {} }",
            "is there twice",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "[]",
            "does not hold an object",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "{ \"a\": 1, }",
            "is not valid JSON",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "// mine\n{ \"mcpServers\": {} }",
            "Comments are not allowed",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{ \"mcpServers\": {} /* mine */ }",
            "Comments are not allowed",
        ),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "{ \"mcpServers\": {} } // mine",
            "Comments are not allowed",
        ),
        (
            "codex",
            ".codex/config.toml",
            "a = = 1",
            "is not valid TOML",
        ),
        (
            "codex",
            ".codex/config.toml",
            "mcp_servers = 7",
            "`mcp_servers` is not a table",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{ \"mcpServers\": { \"petstore\": { \"command\": \"mine\" } } }",
            "--force replaces it",
        ),
    ] {
        let home = Home::new();
        let path = home.write(file, text);
        let output = home.install(client, &["--write"]);
        assert_eq!(output.status.code(), Some(2), "{text}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(words),
            "{text}: {}",
            stderr(&output)
        );
        assert_eq!(read(&path), text);
    }
    let home = Home::new();
    let output = home.install("cursor", &["--write"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(home.path(".cursor/mcp.json").exists(), "a folder is made");
}

#[cfg(unix)]
#[test]
fn links_modes_and_marks_of_a_file_stay_and_backups_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let target = home.write("dotfiles/cursor.json", "\u{feff}{}\n");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir(home.path(".cursor")).unwrap();
    std::os::unix::fs::symlink(&target, home.path(".cursor/mcp.json")).unwrap();
    let output = home.install("cursor", &["--write"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(home.path(".cursor/mcp.json").is_symlink());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&target), 0o640);
    assert!(read(&target).starts_with("\u{feff}{") && read(&target).contains("petstore"));
    assert_eq!(
        mode(&home.path("dotfiles/cursor.json.openapi-mcp.bak")),
        0o600
    );
}

#[test]
fn no_secret_reaches_a_file_a_link_or_an_output() {
    let keyed = SpecFile::new(
        r#"{"openapi":"3.1.0","info":{"title":"K","version":"1"},"servers":[{"url":"https://h.example"}],"components":{"securitySchemes":{"key":{"type":"apiKey","in":"query","name":"k"}}},
            "paths":{"/a":{"get":{"operationId":"a","security":[{"key":[]}]}}}}"#,
    );
    for (more, words) in [
        (
            &["--header", "Authorization: Bearer hunter2"][..],
            "--header-env authorization=VARIABLE",
        ),
        (
            &["--base-url", "https://me:hunter2@h.example"],
            "--base-url",
        ),
        (&["--proxy", "http://me:hunter2@h.example"], "--proxy"),
    ] {
        let home = Home::new();
        std::fs::create_dir(home.path(".cursor")).unwrap();
        for mode in ["--write", "--print", "--link"] {
            let mut args = vec![
                "install",
                "--client",
                "cursor",
                "--spec",
                keyed.path(),
                mode,
            ];
            args.extend(more);
            let output = home.run(&args, &[]);
            let said = stdout(&output) + &stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
            assert!(
                said.contains(words) && !said.contains("hunter2"),
                "{more:?}: {said}"
            );
        }
        assert!(!home.path(".cursor/mcp.json").exists());
    }
    let home = Home::new();
    // Values of the installing shell are not copied, neither of credentials nor of settings.
    let spec = petstore();
    let output = home.run(
        &[
            "install",
            "--client",
            "gemini",
            "--spec",
            &spec,
            "--header-env",
            "X-Team=TEAM_TOKEN",
            "--print",
        ],
        &[
            ("TEAM_TOKEN", "hunter2"),
            ("OPENAPI_MCP_AUTH_API_KEY", "hunter2"),
            ("OPENAPI_MCP_BASE_URL", "https://hunter2.example"),
        ],
    );
    let text = stdout(&output);
    assert!(
        !text.contains("hunter2") && !stderr(&output).contains("hunter2"),
        "{text}{}",
        stderr(&output)
    );
    assert!(
        text.contains("\"TEAM_TOKEN\": \"$TEAM_TOKEN\"")
            && text.contains("\"OPENAPI_MCP_AUTH_API_KEY\": \"$OPENAPI_MCP_AUTH_API_KEY\""),
        "{text}"
    );
    // A link cannot carry a credential.
    let output = home.run(
        &["install", "--client", "cursor", "--spec", &spec, "--link"],
        &[],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
}

/// Form in which each client gets a variable that holds the key.
#[test]
fn every_client_refers_to_variables_in_its_own_form() {
    let home = Home::new();
    for (client, expected) in [
        (
            "claude-code",
            r#""OPENAPI_MCP_AUTH_API_KEY": "${OPENAPI_MCP_AUTH_API_KEY}""#,
        ),
        (
            "vscode",
            r#""OPENAPI_MCP_AUTH_API_KEY": "${input:petstore-api-key}""#,
        ),
        (
            "cursor",
            r#""OPENAPI_MCP_AUTH_API_KEY": "${env:OPENAPI_MCP_AUTH_API_KEY}""#,
        ),
        (
            "windsurf",
            r#""OPENAPI_MCP_AUTH_API_KEY": "${env:OPENAPI_MCP_AUTH_API_KEY}""#,
        ),
        (
            "gemini",
            r#""OPENAPI_MCP_AUTH_API_KEY": "$OPENAPI_MCP_AUTH_API_KEY""#,
        ),
        ("codex", r#"env_vars = ["OPENAPI_MCP_AUTH_API_KEY"]"#),
        ("goose", r#"env_keys: ["OPENAPI_MCP_AUTH_API_KEY"]"#),
        (
            "continue",
            r#"{"OPENAPI_MCP_AUTH_API_KEY":"${{ secrets.OPENAPI_MCP_AUTH_API_KEY }}"}"#,
        ),
        (
            "opencode",
            r#""OPENAPI_MCP_AUTH_API_KEY": "{env:OPENAPI_MCP_AUTH_API_KEY}""#,
        ),
    ] {
        let output = home.install(client, &["--print"]);
        assert!(
            stdout(&output).contains(expected),
            "{client}: {}{}",
            stdout(&output),
            stderr(&output)
        );
    }
    for client in ["claude-desktop", "zed"] {
        let output = home.install(client, &["--print"]);
        assert!(
            !stdout(&output).contains("API_KEY") && stderr(&output).contains("openapi-mcp bundle"),
            "{client}"
        );
    }
}

#[test]
fn every_client_takes_the_address_of_a_server_in_its_own_form() {
    let home = Home::new();
    let url = "https://mcp.example/mcp";
    for (client, expected) in [
        (
            "claude-code",
            vec![
                r#""type": "http""#,
                r#""url": "https://mcp.example/mcp""#,
                r#""Authorization": "Bearer ${PETS}""#,
            ],
        ),
        (
            "vscode",
            vec![
                r#""type": "http""#,
                r#""Authorization": "Bearer ${input:pets-pets}""#,
                r#""password": true"#,
            ],
        ),
        (
            "cursor",
            vec![
                r#""url": "https://mcp.example/mcp""#,
                r#""Authorization": "Bearer ${env:PETS}""#,
            ],
        ),
        (
            "windsurf",
            vec![r#""serverUrl": "https://mcp.example/mcp""#],
        ),
        (
            "gemini",
            vec![
                r#""httpUrl": "https://mcp.example/mcp""#,
                r#""Authorization": "Bearer $PETS""#,
            ],
        ),
        (
            "codex",
            vec![
                r#"url = "https://mcp.example/mcp""#,
                r#"bearer_token_env_var = "PETS""#,
            ],
        ),
        (
            "goose",
            vec![
                r#"type: "streamable_http""#,
                r#"uri: "https://mcp.example/mcp""#,
            ],
        ),
        ("continue", vec![r#"type: "streamable-http""#]),
        (
            "opencode",
            vec![
                r#""type": "remote""#,
                r#""Authorization": "Bearer {env:PETS}""#,
            ],
        ),
    ] {
        let output = home.run(
            &[
                "install",
                "--client",
                client,
                "--name",
                "pets",
                "--url",
                url,
                "--url-token-env",
                "PETS",
                "--print",
            ],
            &[],
        );
        for words in expected {
            assert!(
                stdout(&output).contains(words),
                "{client}: {words}: {}{}",
                stdout(&output),
                stderr(&output)
            );
        }
    }
    for (args, words) in [
        (
            &["--client", "claude-desktop", "--url", url][..],
            "Connectors",
        ),
        (
            &["--client", "cursor", "--url", url, "--read-only"],
            "--read-only belongs to that server",
        ),
        (
            &[
                "--client",
                "cursor",
                "--url",
                "https://me:hunter2@h.example/mcp",
            ],
            "holds a user or a password",
        ),
        (
            &["--client", "claude", "--spec", "a.yaml"],
            "--client claude is claude-desktop or claude-code; name one",
        ),
        (
            &["--client", "claude-ai", "--spec", "a.yaml"],
            "For claude.ai, it takes the https address of a server",
        ),
        (
            &["--client", "chatgpt", "--spec", "a.yaml"],
            "docs/guides/hosted-clients.md",
        ),
    ] {
        let mut all = vec!["install"];
        all.extend(args);
        let output = home.run(&all, &[]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).contains(words) && !stderr(&output).contains("hunter2"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn an_entry_of_a_project_names_nobodys_home() {
    let home = Home::new();
    std::fs::copy(petstore(), home.path("api.yaml")).unwrap();
    for (client, file, expected) in [
        ("claude-code", ".mcp.json", "\"api.yaml\""),
        ("vscode", ".vscode/mcp.json", "${workspaceFolder}/api.yaml"),
        ("cursor", ".cursor/mcp.json", "${workspaceFolder}/api.yaml"),
        ("gemini", ".gemini/settings.json", "\"api.yaml\""),
        ("codex", ".codex/config.toml", "\"api.yaml\""),
        ("opencode", "opencode.json", "\"api.yaml\""),
    ] {
        let output = home.run(
            &[
                "install", "--client", client, "--scope", "project", "--spec", "api.yaml",
                "--write",
            ],
            &[],
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        let text = read(&home.path(file));
        assert!(text.contains(expected), "{client}: {text}");
        assert!(
            !text.contains(&home.folder.path().display().to_string()),
            "{client}: {text}"
        );
    }
    for (args, words) in [
        (
            &["--client", "windsurf", "--spec", "api.yaml"][..],
            "no configuration per project",
        ),
        (
            &["--client", "cursor", "--spec", "/elsewhere/api.yaml"],
            "outside the project",
        ),
        (&["--client", "cursor", "--spec", "-"], "standard input"),
    ] {
        let mut all = vec!["install", "--scope", "project"];
        all.extend(args);
        let output = home.run(&all, &[]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[cfg(unix)]
#[test]
fn claude_code_writes_its_own_state_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let state = home.write(".claude.json", "{\"numStartups\": 7}");
    let output = home.run(
        &[
            "install",
            "--client",
            "claude-code",
            "--spec",
            &petstore(),
            "--write",
        ],
        &[("PATH", "/nowhere")],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("claude mcp add-json --scope user petstore '{"),
        "{}",
        stderr(&output)
    );
    let program = home.write(
        "bin/claude",
        "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done > \"$HOME/called\"\n",
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = home.path("bin").display().to_string();
    let output = home.run(
        &[
            "install",
            "--client",
            "claude-code",
            "--spec",
            &petstore(),
            "--write",
        ],
        &[("PATH", path.as_str())],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let called = read(&home.path("called"));
    assert!(
        called.starts_with("<mcp><add-json><--scope><user><petstore><{\"type\":\"stdio\""),
        "{called}"
    );
    assert_eq!(read(&state), "{\"numStartups\": 7}");

    // A name that is taken is refused by `claude mcp add-json`.
    let entry = called.rsplit_once("<petstore><").unwrap().1;
    let entry = entry.strip_suffix('>').unwrap();
    let install = |more: &[&str]| {
        let _ = std::fs::remove_file(home.path("called"));
        let spec = petstore();
        let mut arguments = vec!["install", "--client", "claude-code", "--spec", &spec];
        arguments.extend_from_slice(more);
        arguments.push("--write");
        let output = home.run(&arguments, &[("PATH", path.as_str())]);
        (output.status.code(), stderr(&output))
    };
    let own_entry = format!(r#"{{"mcpServers": {{"petstore": {entry}}}}}"#);
    home.write(".claude.json", &own_entry);
    let (code, words) = install(&[]);
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("`petstore` is already in"), "{words}");
    assert!(!home.path("called").exists());
    home.write(
        "bin/claude",
        "#!/bin/sh\nprintf '%s ' \"$2\" >> \"$HOME/called\"\n",
    );
    let (code, words) = install(&["--read-only"]);
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(read(&home.path("called")), "remove add-json ");
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"petstore": {"command": "other"}}}"#,
    );
    let (code, words) = install(&[]);
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("--force replaces it"), "{words}");
    assert!(!home.path("called").exists());
    assert_eq!(install(&["--force"]).0, Some(0));
    assert_eq!(read(&home.path("called")), "remove add-json ");

    // What is there stays, if the new entry is refused.
    let words = "#!/bin/sh\nprintf '%s ' \"$2\" >> \"$HOME/called\"\ncase $* in *read-only*) exit 1;; esac\n";
    home.write("bin/claude", words);
    home.write(".claude.json", &own_entry);
    let (code, words) = install(&["--read-only"]);
    assert_eq!(code, Some(2), "{words}");
    assert!(
        words.contains("the entry `petstore` that was there is back"),
        "{words}"
    );
    assert_eq!(read(&home.path("called")), "remove add-json add-json ");
}

#[test]
fn a_name_that_the_client_would_cut_is_refused() {
    let home = Home::new();
    let long = "a".repeat(45);
    let spec = SpecFile::new(&format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"N","version":"1"}},"servers":[{{"url":"https://h.example"}}],"paths":{{"/a":{{"get":{{"operationId":"{long}"}}}}}}}}"#
    ));
    let output = home.run(
        &[
            "install",
            "--client",
            "cursor",
            "--spec",
            spec.path(),
            "--name",
            "a-rather-long-name",
            "--print",
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("`max_tool_name_length: "),
        "{}",
        stderr(&output)
    );
    let output = home.run(
        &[
            "install",
            "--client",
            "cursor",
            "--spec",
            spec.path(),
            "--name",
            "short",
            "--print",
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // In search mode, the tools that are listed have short names.
    let name = [
        "--name",
        "a-rather-long-name",
        "--print",
        "--tools",
        "search",
    ];
    let install = ["install", "--client", "cursor", "--spec", spec.path()];
    let output = home.run(&[&install[..], &name].concat(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_name_is_made_of_words_of_the_title_that_fit_with_the_longest_tool() {
    let home = Home::new();
    let spec = |title: &str, tool: usize| {
        let tool = "a".repeat(tool);
        SpecFile::new(&format!(
            r#"{{"openapi":"3.1.0","info":{{"title":"{title}","version":"1"}},"servers":[{{"url":"https://h.example"}}],"paths":{{"/a":{{"get":{{"operationId":"{tool}"}}}}}}}}"#
        ))
    };
    for (client, title, tool, name) in [
        ("claude-desktop", "GitHub v3 REST API", 40, "github-v3"),
        ("claude-desktop", "GitHub Enterprise Cloud", 48, "github"),
        (
            "cursor",
            "The official Widget API of Acme, for everybody",
            40,
            "widget-of-acme-for",
        ),
        ("gemini", "Swagger Petstore - OpenAPI 3.0", 10, "petstore"),
        ("zed", "Stripe's API", 48, "stripe"),
    ] {
        let spec = spec(title, tool);
        let output = home.run(
            &[
                "install",
                "--client",
                client,
                "--spec",
                spec.path(),
                "--print",
            ],
            &[],
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        assert!(
            stdout(&output).contains(&format!("\"{name}\"")),
            "{client}: {}",
            stdout(&output)
        );
    }
    let spec = spec("Widgets", 57);
    let install = [
        "install",
        "--client",
        "claude-desktop",
        "--spec",
        spec.path(),
        "--print",
    ];
    let output = home.run(&[&install[..], &["max_tool_name_length: 60"]].concat(), &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("`max_tool_name_length: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_only_entry_of_a_file_needs_no_name_to_be_removed() {
    let home = Home::new();
    for name in ["one", "two"] {
        assert_eq!(
            home.install("cursor", &["--name", name, "--write", "--force"])
                .status
                .code(),
            Some(0)
        );
    }
    let uninstall = ["uninstall", "--client", "cursor", "--write"];
    let output = home.run(&uninstall, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("one, two; --name says which"),
        "{}",
        stderr(&output)
    );
    assert_eq!(home.uninstall("cursor", "one").status.code(), Some(0));
    assert_eq!(home.run(&uninstall, &[]).status.code(), Some(0));
    assert!(!read(&home.path(".cursor/mcp.json")).contains("two"));
}

#[test]
fn entries_of_other_programs_whose_names_hold_ours_are_not_taken_for_ours() {
    for command in [
        r#""command": "uvx", "args": ["awslabs.openapi-mcp-server@latest"]"#,
        r#""command": "npx", "args": ["-y", "@ivotoby/openapi-mcp-server"]"#,
        r#""command": "node", "args": ["/home/me/openapi-mcp-tests/other.js"]"#,
        r#""url": "https://h.example/mcp", "headers": { "X-Team": "a" }"#,
    ] {
        let home = Home::new();
        let text = format!("{{ \"mcpServers\": {{ \"petstore\": {{ {command} }} }} }}");
        let path = home.write(".cursor/mcp.json", &text);
        let output = home.install("cursor", &["--write"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(
            stderr(&output).contains("--force replaces it"),
            "{}",
            stderr(&output)
        );
        let output = home.run(
            &[
                "uninstall",
                "--client",
                "cursor",
                "--name",
                "petstore",
                "--write",
            ],
            &[],
        );
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(
            stderr(&output).contains("--force removes it"),
            "{}",
            stderr(&output)
        );
        assert_eq!(read(&path), text);
    }
}

#[test]
fn a_file_that_install_did_not_make_stays_when_its_last_entry_goes() {
    let home = Home::new();
    let path = home.write(
        ".cursor/mcp.json",
        r#"{ "mcpServers": { "petstore": { "command": "npx", "args": ["-y", "openapi-mcp-server", "serve"] } } }"#,
    );
    let output = home.run(
        &[
            "uninstall",
            "--client",
            "cursor",
            "--name",
            "petstore",
            "--write",
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let left: serde_json::Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(left, serde_json::json!({ "mcpServers": {} }));
}

#[test]
fn several_entries_go_in_any_order() {
    let before = "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n";
    for order in [["one", "two"], ["two", "one"]] {
        let home = Home::new();
        let path = home.write(".cursor/mcp.json", before);
        for name in ["one", "two"] {
            let output = home.install("cursor", &["--name", name, "--write"]);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        }
        for name in order {
            let output = home.uninstall("cursor", name);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        }
        assert_eq!(read(&path), before, "{order:?}");
    }
}

#[test]
fn an_entry_for_an_address_is_ours_in_the_form_that_install_writes() {
    for (client, file) in [
        ("vscode", ".config/Code/User/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("gemini", ".gemini/settings.json"),
        ("codex", ".codex/config.toml"),
        ("zed", ".config/zed/settings.json"),
        ("opencode", ".config/opencode/opencode.json"),
    ] {
        for token in [None, Some("PETS_TOKEN")] {
            if client == "zed" && token.is_some() {
                continue;
            }
            let home = Home::new();
            let path = home.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            for url in ["https://mcp.example/mcp", "https://new.example/mcp"] {
                let mut args = vec![
                    "install", "--client", client, "--name", "pets", "--url", url, "--write",
                ];
                args.extend(token.iter().flat_map(|token| ["--url-token-env", token]));
                let output = home.run(&args, &[]);
                assert_eq!(
                    output.status.code(),
                    Some(0),
                    "{client} {token:?}: {}",
                    stderr(&output)
                );
                assert!(read(&path).contains(url), "{client}");
            }
            let output = home.run(
                &["uninstall", "--client", client, "--name", "pets", "--write"],
                &[],
            );
            assert_eq!(
                output.status.code(),
                Some(0),
                "{client} {token:?}: {}",
                stderr(&output)
            );
            assert!(
                !read(&path).contains("https:"),
                "{client} {token:?}: {}",
                read(&path)
            );
        }
    }
}

#[test]
fn an_entry_names_the_variables_of_the_keys_that_the_server_needs() {
    let home = Home::new();
    let spec = petstore();
    let args = [
        &[
            "install",
            "--client",
            "claude-code",
            "--spec",
            &spec,
            "--audit-log",
            "calls.jsonl",
        ][..],
        &[
            "audit_key_env: AUDIT_KEY",
            "--shared-state",
            "redis://127.0.0.1:6379",
        ],
        &[
            "--shared-state-password-env",
            "STATE_PASSWORD",
            "--state-key-env",
            "STATE_KEY",
        ],
    ]
    .concat();
    let key = "0123456789abcdef".repeat(4);
    for variables in [
        &[][..],
        &[
            ("AUDIT_KEY", key.as_str()),
            ("STATE_KEY", &key),
            ("STATE_PASSWORD", "hunter2"),
        ],
    ] {
        let output = home.run(&args, variables);
        let (entry, said) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{said}");
        for name in ["AUDIT_KEY", "STATE_KEY", "STATE_PASSWORD"] {
            assert!(
                entry.contains(&format!("\"{name}\": \"${{{name}}}\"")),
                "{name}: {entry}"
            );
        }
        assert!(
            !entry.contains(&key) && !entry.contains("hunter2"),
            "{entry}"
        );
    }
    // A value that is there is checked, as the server will.
    let output = home.run(&args, &[("AUDIT_KEY", "short")]);
    assert!(
        stderr(&output).contains("`audit_key_env`") && output.status.code() == Some(2),
        "{}",
        stderr(&output)
    );
    // A client that hands over no variables cannot start this server.
    let args: Vec<&str> = args
        .iter()
        .map(|arg| {
            if *arg == "claude-code" {
                "claude-desktop"
            } else {
                arg
            }
        })
        .collect();
    let said = stderr(&home.run(&args, &[]));
    assert!(
        said.contains("AUDIT_KEY, STATE_KEY, STATE_PASSWORD")
            && said.contains("--state-key-file")
            && said.contains("a bundle"),
        "{said}"
    );
}

#[test]
fn a_client_without_variables_gets_a_header_from_a_file() {
    let home = Home::new();
    std::fs::write(home.path("token"), "hunter2").unwrap();
    let spec = petstore();
    let install = |more: &[&str]| {
        let args = [
            &[
                "install",
                "--client",
                "claude-desktop",
                "--spec",
                &spec,
                "--print",
            ],
            more,
        ]
        .concat();
        home.run(&args, &[])
    };
    let refused = stderr(&install(&["--header-env", "Authorization=Bearer TOKEN"]));
    assert!(
        refused.contains("--header-file NAME=PATH") && refused.contains("a bundle"),
        "{refused}"
    );
    assert!(
        !refused.contains("--state-key-file") && !refused.contains("under `auth`"),
        "{refused}"
    );
    let output = install(&["--header-file", "Authorization=Bearer token"]);
    let (entry, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    let expected = format!("\"Authorization=Bearer {}\"", home.path("token").display());
    assert!(
        entry.contains("--header-file") && entry.contains(&expected),
        "{entry}"
    );
    assert!(
        !entry.contains("hunter2") && !said.contains("hunter2"),
        "{entry}{said}"
    );
}

#[test]
fn a_value_in_place_of_a_variables_name_is_refused_and_not_repeated() {
    let home = Home::new();
    std::fs::create_dir(home.path(".cursor")).unwrap();
    let spec = petstore();
    for args in [
        &["--spec", &spec, "--header-env", "X-Api-Key=sk-live-hunter2"][..],
        &[
            "--spec",
            &spec,
            "--proxy",
            "http://h.example",
            "proxy_auth_env: me:hunter2",
        ],
        &[
            "--url",
            "https://mcp.example/mcp",
            "--url-token-env",
            "eyJhunter2",
        ],
    ] {
        let mut all = vec!["install", "--client", "cursor", "--write"];
        all.extend(args);
        let output = home.run(&all, &[]);
        let said = stdout(&output) + &stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(
            said.contains("give the name of a variable") && !said.contains("hunter2"),
            "{said}"
        );
        assert!(!home.path(".cursor/mcp.json").exists());
    }
    let output = home.run(
        &[
            "bundle",
            "--spec",
            &spec,
            "--header-env",
            "X-Api-Key=sk-live-hunter2",
        ],
        &[],
    );
    let said = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("give the name of a variable") && !said.contains("hunter2"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_that_is_not_there_makes_that_file_and_a_pipe_is_refused() {
    let home = Home::new();
    std::fs::create_dir(home.path(".cursor")).unwrap();
    std::fs::create_dir(home.path("dotfiles")).unwrap();
    let link = home.path(".cursor/mcp.json");
    std::os::unix::fs::symlink("../dotfiles/cursor.json", &link).unwrap();
    let output = home.install("cursor", &["--write"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(link.is_symlink() && read(&home.path("dotfiles/cursor.json")).contains("petstore"));
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(home.path("missing/cursor.json"), &link).unwrap();
    let output = home.install("cursor", &["--write"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("whose folder is missing"),
        "{}",
        stderr(&output)
    );
    assert!(link.is_symlink());
    let pipe = home.path("pipe.json").display().to_string();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let output = home.install("cursor", &["--config-path", &pipe, "--write"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("not a regular file"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_document_without_a_usable_server_is_refused_as_serve_refuses_it() {
    let home = Home::new();
    std::fs::create_dir(home.path(".cursor")).unwrap();
    for text in [
        r#"{"openapi":"3.1.0","info":{"title":"R","version":"1"},"servers":[{"url":"/v1"}],"paths":{"/a":{"get":{"operationId":"a"}}}}"#,
        r#"{"swagger":"2.0","info":{"title":"R","version":"1"},"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"description":"x"}}}}}}"#,
    ] {
        let spec = SpecFile::new(text);
        let served = home.run(&["serve", "--spec", spec.path()], &[]);
        let wanted = stderr(&served)
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        assert!(wanted.contains("--base-url"), "{wanted}");
        let bundle = home.path("x.mcpb").display().to_string();
        for args in [
            &[
                "install",
                "--client",
                "cursor",
                "--write",
                "--spec",
                spec.path(),
            ][..],
            &["bundle", "--output", &bundle, "--spec", spec.path()],
        ] {
            let output = home.run(args, &[]);
            assert_eq!(
                output.status.code(),
                served.status.code(),
                "{args:?}: {}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains("--base-url"),
                "{args:?}: {}",
                stderr(&output)
            );
        }
        assert!(!home.path(".cursor/mcp.json").exists() && !home.path("x.mcpb").exists());
        let output = home.run(
            &[
                "install",
                "--client",
                "cursor",
                "--spec",
                spec.path(),
                "--base-url",
                "https://h.example",
                "--print",
            ],
            &[],
        );
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn settings_of_the_shell_that_are_not_copied_are_named() {
    let home = Home::new();
    let spec = petstore();
    let output = home.run(
        &["install", "--client", "cursor", "--spec", &spec, "--print"],
        &[
            ("OPENAPI_MCP_READ_ONLY", "true"),
            ("OPENAPI_MCP_TIMEOUT", ""),
            ("OPENAPI_MCP_AUTH_API_KEY", "hunter2"),
        ],
    );
    let said = stderr(&output);
    assert_eq!(
        said.matches("are not copied (OPENAPI_MCP_READ_ONLY)")
            .count(),
        1,
        "{said}"
    );
    let output = home.run(
        &["install", "--client", "cursor", "--spec", &spec, "--print"],
        &[],
    );
    assert!(
        !stderr(&output).contains("are not copied"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn questions_of_vscode_that_the_user_had_stay() {
    let own = r#"{ "type": "promptString", "id": "petstore-api-key", "description": "mine", "password": true }"#;
    let home = Home::new();
    let path = home.write(
        ".config/Code/User/mcp.json",
        &format!("{{\n  \"servers\": {{}},\n  \"inputs\": [{own}]\n}}\n"),
    );
    assert!(home.install("vscode", &["--write"]).status.success());
    let changed = read(&path).replace("\"servers\"", "\"note\": 1,\n  \"servers\"");
    std::fs::write(&path, changed).unwrap();
    let output = home.run(
        &[
            "uninstall",
            "--client",
            "vscode",
            "--name",
            "petstore",
            "--write",
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = read(&path);
    assert!(
        text.contains("\"mine\"") && text.contains("\"note\"") && !text.contains("serve\""),
        "{text}"
    );
}

#[derive(serde::Deserialize)]
struct PrintedEntry {
    client: String,
    file: String,
    command: String,
    address: Option<String>,
}

#[test]
fn the_entry_of_every_client_is_exactly_the_one_of_the_table() {
    let text = std::fs::read_to_string(project("tests/cases/install_entries.yaml")).unwrap();
    let entries: Vec<PrintedEntry> = serde_yaml::from_str(&text).unwrap();
    assert_eq!(entries.len(), 11);
    let home = Home::new();
    let placed = |text: &str| {
        text.replace("{program}", &binary().display().to_string())
            .replace("{spec}", &petstore())
    };
    for entry in entries {
        let client = entry.client.as_str();
        let output = home.install(client, &["--name", "pets", "--print"]);
        assert_eq!(
            stdout(&output),
            placed(&entry.command),
            "{client}: {}",
            stderr(&output)
        );
        let file = entry
            .file
            .replace('~', &home.path("").display().to_string())
            .replace("//", "/");
        assert!(
            !cfg!(target_os = "linux")
                || stderr(&output).contains(&format!("put this into {file}:")),
            "{client}: {}",
            stderr(&output)
        );
        let mut args = vec![
            "install",
            "--client",
            client,
            "--name",
            "pets",
            "--url",
            "https://mcp.example/mcp",
            "--print",
        ];
        if client != "zed" {
            args.extend(["--url-token-env", "PETS_TOKEN"]);
        }
        let output = home.run(&args, &[]);
        assert_eq!(
            output.status.success(),
            entry.address.is_some(),
            "{client}: {}",
            stderr(&output)
        );
        assert_eq!(
            stdout(&output),
            entry.address.unwrap_or_default(),
            "{client}"
        );
    }
}

#[test]
fn a_client_that_cannot_ask_is_named_where_calls_are_confirmed() {
    let home = Home::new();
    let said = |client: &str, flags: &[&str]| {
        let petstore = petstore();
        let args = [
            &["install", "--client", client, "--spec", &petstore, "--mock"],
            flags,
        ]
        .concat();
        let output = home.run(&args, &[]);
        format!("{}{}", stdout(&output), stderr(&output))
    };
    let warning = "warning: --confirm: Claude Desktop cannot ask its user";
    assert!(said("claude-desktop", &["--confirm", "destructive"]).contains(warning));
    assert!(!said("claude-desktop", &[]).contains(warning));
    assert!(!said("cursor", &["--confirm", "destructive"]).contains("cannot ask"));
}
