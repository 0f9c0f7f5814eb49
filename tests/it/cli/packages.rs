//! `bundle`, `packaging/registry.py`, `completions` and `man`.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{
    SpecFile, Upstream, binary, command, petstore, project, reply, run, stderr, stdout,
};

#[test]
fn a_bundle_holds_a_server_that_starts_and_the_same_input_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    // The real binary is large; what is started here is a script that shows what it was given.
    let binary = path("binary");
    std::fs::write(&binary, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
    let make = |output: &str| {
        run(&[
            "bundle",
            "--spec",
            &petstore(),
            "--read-only",
            "--binary",
            &binary,
            "--output",
            output,
            "--platform",
            "linux",
        ])
    };
    let (first, second) = (path("a.mcpb"), path("b.mcpb"));
    let output = make(&first);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), first);
    assert!(make(&second).status.success());
    assert_eq!(
        std::fs::read(&first).unwrap(),
        std::fs::read(&second).unwrap()
    );
    let unpacked = path("unpacked");
    let unzipped = Command::new("python3")
        .args(["-m", "zipfile", "-e", &first, &unpacked])
        .status();
    if !unzipped.is_ok_and(|status| status.success()) {
        eprintln!("python3 is not here, and the bundle is not unpacked");
        return;
    }
    let manifest: Value = serde_json::from_str(
        &std::fs::read_to_string(format!("{unpacked}/manifest.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(manifest["manifest_version"], "0.3");
    assert_eq!(
        manifest["compatibility"]["platforms"],
        serde_json::json!(["linux"])
    );
    assert_eq!(manifest["tools"].as_array().unwrap().len(), 9);
    let settings = std::fs::read_to_string(format!("{unpacked}/server/openapi-mcp.json")).unwrap();
    assert!(
        settings.contains("\"read_only\": true") && settings.contains("../document/api.json"),
        "{settings}"
    );
    // Python's unzip keeps no modes, as some hosts do not; the script restores them.
    let started = Command::new("/bin/sh")
        .arg(format!("{unpacked}/server/start.sh"))
        .output()
        .unwrap();
    assert!(
        stdout(&started).starts_with("serve\n--config\n"),
        "{}{}",
        stdout(&started),
        stderr(&started)
    );
    let listed = run(&[
        "tools",
        "--config",
        &format!("{unpacked}/server/openapi-mcp.json"),
    ]);
    assert!(
        stdout(&listed).contains("9 tools, 9 of them read-only"),
        "{}",
        stderr(&listed)
    );
}

#[test]
fn a_bundle_asks_for_credentials_and_holds_none() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("x.mcpb").display().to_string();
    for (more, words) in [
        (
            &["--header", "Authorization: hunter2"][..],
            "--header-env authorization=VARIABLE",
        ),
        (&["--ca-cert", "/etc/ca.pem"], "--ca-cert"),
        (&["--allow-file-args", "/tmp"], "--allow-file-args"),
    ] {
        let spec = petstore();
        let mut args = vec!["bundle", "--spec", &spec, "--output", &bundle];
        args.extend(more);
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(
            stderr(&output).contains(words) && !stderr(&output).contains("hunter2"),
            "{}",
            stderr(&output)
        );
        assert!(!std::path::Path::new(&bundle).exists());
    }
    let schemes = r#"{"key":{"type":"apiKey","in":"header","name":"X"},"login":{"type":"http","scheme":"basic"},"pets":{"type":"oauth2","flows":{}}}"#;
    let spec = SpecFile::new(&format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"S","version":"1.2.3"}},"servers":[{{"url":"https://{{region}}.h.example","variables":{{"region":{{"default":"eu"}}}}}}],
            "components":{{"securitySchemes":{schemes}}},"security":[{{"key":[],"login":[]}},{{"key":[],"pets":[]}}],"paths":{{"/a":{{"get":{{"operationId":"a"}}}}}}}}"#
    ));
    let binary = directory.path().join("binary");
    std::fs::write(&binary, b"program").unwrap();
    let output = run(&[
        "bundle",
        "--spec",
        spec.path(),
        "--output",
        &bundle,
        "--binary",
        binary.to_str().unwrap(),
        "--platform",
        "win32",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let shown = Command::new("python3")
        .args([
            "-c",
            "import sys,zipfile; print(zipfile.ZipFile(sys.argv[1]).read('manifest.json').decode())",
            &bundle,
        ])
        .output();
    let Ok(shown) = shown else { return };
    let manifest: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    let fields = &manifest["user_config"];
    assert_eq!(
        (&fields["key"]["required"], &fields["key"]["sensitive"]),
        (&true.into(), &true.into())
    );
    for optional in [
        "login_username",
        "login_password",
        "pets_client_id",
        "pets_client_secret",
        "base_url",
    ] {
        assert_eq!(
            (&fields[optional]["required"], &fields[optional]["default"]),
            (&false.into(), &"".into()),
            "{optional}"
        );
    }
    assert_eq!(fields["login_password"]["sensitive"], true);
    assert!(fields["login_username"].get("sensitive").is_none());
    assert_eq!(fields["server_region"]["default"], "eu");
    let environment = &manifest["server"]["mcp_config"]["env"];
    assert_eq!(environment["OPENAPI_MCP_AUTH_KEY"], "${user_config.key}");
    assert_eq!(
        environment["OPENAPI_MCP_SERVER_VAR"],
        "region=${user_config.server_region}"
    );
    assert_eq!(manifest["version"], "1.2.3");
    assert_eq!(
        manifest["server"]["mcp_config"]["command"],
        "${__dirname}/server/openapi-mcp.exe"
    );
}

#[test]
fn a_bundle_holds_what_limits_its_calls() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (bundle, binary, settings) = (path("x.mcpb"), path("binary"), path("settings.yaml"));
    std::fs::write(&binary, "program").unwrap();
    let spec = petstore();
    let make = |rules: &str| {
        let text = format!("spec: \"{spec}\"\nconfirm: [destructive]\n{rules}");
        std::fs::write(&settings, text).unwrap();
        let args = [
            "--binary",
            &binary,
            "--platform",
            "linux",
            "--output",
            &bundle,
        ];
        command(&[&["bundle", "--config", &settings], &args[..]].concat())
            .env("A_LANGUAGE", "de")
            .output()
            .unwrap()
    };
    let refused = make("access: [{ match: { method: DELETE }, scopes: [admin] }]");
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("`access`"),
        "{}",
        stderr(&refused)
    );
    let written = make(
        "overrides: [{ match: { method: GET }, arguments: { \"header:If-Match\": { optional: true, value: hunter2 }, \"header:X-Api-Key\": { optional: true, value: hunter2 } } }]",
    );
    assert_eq!(written.status.code(), Some(2), "{}", stderr(&written));
    assert!(
        stderr(&written).contains("`header:X-Api-Key` is a credential")
            && !stderr(&written).contains("hunter2"),
        "{}",
        stderr(&written)
    );
    let rules = "overrides: [{ match: { method: DELETE }, enabled: false }, { match: { method: GET }, arguments: { \"cookie:lang\": { value: { env: A_LANGUAGE } } } }]";
    let made = make(rules);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let Some(inner) = read_from_bundle(&bundle, "server/openapi-mcp.json") else {
        eprintln!("python3 is not here, and the bundle is not unpacked");
        return;
    };
    let inner: Value = serde_json::from_str(&inner).unwrap();
    assert_eq!(inner["overrides"][0]["enabled"], false, "{inner}");
    assert_eq!(inner["confirm"], serde_json::json!(["destructive"]));
    assert!(!inner.to_string().contains("\"de\""), "{inner}");
    let manifest = read_from_bundle(&bundle, "manifest.json").unwrap();
    assert!(!manifest.contains("\"de\"") && !manifest.contains("delete_"));
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let environment = &manifest["server"]["mcp_config"]["env"];
    assert_eq!(environment["A_LANGUAGE"], "${user_config.a_language}");
}

/// A file of a bundle; nothing if there is no Python to unpack it.
pub fn read_from_bundle(bundle: &str, file: &str) -> Option<String> {
    let program =
        "import sys,zipfile; print(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode())";
    let shown = Command::new("python3")
        .args(["-c", program, bundle, file])
        .output()
        .ok()?;
    assert!(shown.status.success(), "{}", stderr(&shown));
    Some(stdout(&shown))
}

#[test]
fn a_bundle_is_for_the_system_that_is_given_and_replaces_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("binary"), "#!/bin/sh\n").unwrap();
    let spec = petstore();
    let bundle = |more: &[&str]| {
        let binary = path("binary");
        let mut args = vec!["bundle", "--spec", &spec, "--binary", &binary];
        args.extend(more);
        if !more.contains(&"--name") {
            args.extend(["--name", "pets"]);
        }
        command(&args)
            .current_dir(directory.path())
            .output()
            .unwrap()
    };
    for (system, expected) in [
        ("win32", "pets-win32.mcpb"),
        ("darwin", "pets-darwin.mcpb"),
        ("linux", "pets-linux.mcpb"),
    ] {
        let output = bundle(&["--platform", system]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output).trim(), expected);
        // The same bundle again is no other file.
        assert_eq!(bundle(&["--platform", system]).status.code(), Some(0));
    }
    for (more, words) in [
        (&[][..], "--platform <SYSTEM>"),
        (
            &["--platform", "linux", "--name", "../pets"],
            "--name takes letters",
        ),
    ] {
        let output = bundle(more);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    std::fs::write(path("thesis.txt"), "years of work").unwrap();
    let output = bundle(&["--platform", "linux", "--output", "thesis.txt"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("--force replaces it"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        std::fs::read_to_string(path("thesis.txt")).unwrap(),
        "years of work"
    );
    let output = bundle(&["--platform", "linux", "--output", "thesis.txt", "--force"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        std::fs::read(path("thesis.txt"))
            .unwrap()
            .starts_with(b"PK")
    );
}

#[test]
fn a_bundle_lists_at_most_a_hundred_tools_and_says_of_which_day_its_document_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("binary"), b"program").unwrap();
    let paths: serde_json::Map<String, Value> = (0..120)
        .map(|number| {
            let operation = serde_json::json!({"get": {"operationId": format!("get_{number}"), "summary": "A\u{202e}b\n<script>"}});
            (format!("/{number}"), operation)
        })
        .collect();
    let document = serde_json::json!({"openapi": "3.1.0", "info": {"title": "M\u{202e}any", "version": "1", "description": "Says\u{200b} this."},
        "servers": [{"url": "https://h.example"}], "paths": paths});
    let site = Upstream::start(Box::new(move |_| {
        reply(200, &[], document.to_string().as_bytes())
    }));
    let output = command(&[
        "bundle",
        "--spec",
        &format!("{}/api.json?token=hunter2", site.url),
        "--binary",
        &path("binary"),
        "--platform",
        "win32",
        "--output",
        &path("x.mcpb"),
    ])
    .env("SOURCE_DATE_EPOCH", "1785240000")
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let Some(text) = read_from_bundle(&path("x.mcpb"), "manifest.json") else {
        return;
    };
    assert!(
        !text.contains('\u{202e}') && !text.contains("hunter2"),
        "{text}"
    );
    let manifest: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["tools"].as_array().unwrap().len(), 100);
    assert_eq!(manifest["tools_generated"], true);
    let expected = format!(
        "Says this.\n\nThe document is a copy of {}/api.json?..., fetched on 28 Jul 2026.",
        site.url
    );
    assert_eq!(manifest["long_description"], expected);
}

#[test]
fn a_bundle_holds_the_files_that_the_document_refers_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::create_dir_all(path("specs/parts")).unwrap();
    // One of the files has the name that a bundle gives to the document itself, and one refers back
    // to the document.
    let root = r#"{"openapi":"3.1.0","info":{"title":"F","version":"1"},"servers":[{"url":"https://h.example"}],
        "components":{"schemas":{"Name":{"type":"string","enum":["from the document"]}}},
        "paths":{"/a":{"get":{"operationId":"a","parameters":[
            {"name":"one","in":"query","schema":{"$ref":"api.json#/One"}},
            {"name":"two","in":"query","schema":{"$ref":"parts/two.yaml#/Two"}}]}}}}"#;
    std::fs::write(path("specs/root.json"), root).unwrap();
    std::fs::write(
        path("specs/api.json"),
        r#"{"One":{"type":"string","enum":["from api.json"]}}"#,
    )
    .unwrap();
    std::fs::write(
        path("specs/parts/two.yaml"),
        "{\"Two\": {\"$ref\": \"../root.json#/components/schemas/Name\"}}\n",
    )
    .unwrap();
    std::fs::write(path("binary"), "#!/bin/sh\n").unwrap();
    let (bundle, binary, unpacked) = (path("x.mcpb"), path("binary"), path("unpacked"));
    for spec in [path("specs/root.json"), "specs/root.json".to_owned()] {
        let output = command(&[
            "bundle",
            "--spec",
            &spec,
            "--output",
            &bundle,
            "--binary",
            &binary,
            "--platform",
            "linux",
        ])
        .current_dir(directory.path())
        .output()
        .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let unzipped = Command::new("python3")
            .args(["-m", "zipfile", "-e", &bundle, &unpacked])
            .status();
        if !unzipped.is_ok_and(|status| status.success()) {
            eprintln!("python3 is not here, and the bundle is not unpacked");
            return;
        }
        let shown = run(&[
            "tools",
            "--format",
            "json",
            "--config",
            &format!("{unpacked}/server/openapi-mcp.json"),
        ]);
        let text = stdout(&shown);
        assert!(
            text.contains("from api.json") && text.contains("from the document"),
            "{text}{}",
            stderr(&shown)
        );
        std::fs::remove_dir_all(&unpacked).unwrap();
    }
}

#[test]
fn every_field_of_a_bundle_has_a_key_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let key = r#"{"type":"apiKey","in":"header","name":"X"}"#;
    let spec = SpecFile::new(&format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"S","version":"1"}},"servers":[{{"url":"https://{{region}}.h.example","variables":{{"region":{{"default":"eu"}}}}}}],
            "components":{{"securitySchemes":{{"a-b":{key},"a_b":{key},"base_url":{key},"server_region":{key}}}}},
            "security":[{{"a-b":[],"a_b":[],"base_url":[],"server_region":[]}}],"paths":{{"/a":{{"get":{{"operationId":"a"}}}}}}}}"#
    ));
    std::fs::write(path("binary"), b"program").unwrap();
    let (bundle, binary) = (path("x.mcpb"), path("binary"));
    let output = run(&[
        "bundle",
        "--spec",
        spec.path(),
        "--output",
        &bundle,
        "--binary",
        &binary,
        "--platform",
        "win32",
        "--server-var",
        "region=us",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let Some(text) = read_from_bundle(&bundle, "manifest.json") else {
        return;
    };
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let environment = manifest["server"]["mcp_config"]["env"].as_object().unwrap();
    let field = |variable: &str| {
        let text = environment[variable].as_str().unwrap();
        let key = text
            .rsplit("${user_config.")
            .next()
            .unwrap()
            .trim_end_matches('}');
        &manifest["user_config"][key]
    };
    for variable in [
        "OPENAPI_MCP_AUTH_A_B",
        "OPENAPI_MCP_AUTH_BASE_URL",
        "OPENAPI_MCP_AUTH_SERVER_REGION",
    ] {
        assert_eq!(
            (&field(variable)["sensitive"], &field(variable)["required"]),
            (&true.into(), &true.into()),
            "{variable}: {manifest}"
        );
    }
    assert_eq!(field("OPENAPI_MCP_BASE_URL")["title"], "Base URL");
    assert!(field("OPENAPI_MCP_BASE_URL").get("sensitive").is_none());
    assert_eq!(field("OPENAPI_MCP_SERVER_VAR")["default"], "us");
}

#[test]
fn a_field_that_was_left_blank_leaves_the_default_of_the_document() {
    let spec = SpecFile::new(
        r#"{"openapi":"3.1.0","info":{"title":"S","version":"1"},"servers":[{"url":"https://{region}.h.example","variables":{"region":{"default":"eu"}}}],
            "paths":{"/a":{"get":{"operationId":"a"}}}}"#,
    );
    for value in [
        "region=${user_config.server_region}",
        "region=",
        "region=us",
    ] {
        let output = command(&["call", "--spec", spec.path(), "a", "--dry-run"])
            .env("OPENAPI_MCP_SERVER_VAR", value)
            .output()
            .unwrap();
        let expected = if value == "region=us" {
            "us.h.example"
        } else {
            "eu.h.example"
        };
        assert!(
            stdout(&output).contains(expected),
            "{value}: {}{}",
            stdout(&output),
            stderr(&output)
        );
    }
}

fn registry(args: &[&str]) -> Output {
    let script = project("packaging/registry.py");
    Command::new("python3")
        .arg("-B")
        .arg(script)
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn an_entry_of_the_registry_follows_its_rules() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: python3 is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.mcpb").display().to_string();
    std::fs::write(&file, "abc").unwrap();
    let entry = |more: &[&str]| {
        let mut args = vec![
            "--name",
            "io.github.you/pets",
            "--description",
            "Pets",
            "--server-version",
            "1.2.3",
        ];
        args.extend(more);
        registry(&args)
    };
    let output = entry(&[
        "--package",
        "mcpb:https://h.example/x.mcpb",
        "--file",
        &file,
        "--package",
        "npm:@you/pets@1.2.3",
        "--remote",
        "https://h.example/mcp",
    ]);
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        shown["packages"][0]["fileSha256"],
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        (
            &shown["packages"][1]["identifier"],
            &shown["packages"][1]["version"]
        ),
        (&"@you/pets".into(), &"1.2.3".into())
    );
    assert_eq!(shown["remotes"][0]["type"], "streamable-http");
    let schema = std::fs::read_to_string(project("tests/cases/server.schema.json")).unwrap();
    let schema = jsonschema::draft7::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    for more in [
        &[
            "--package",
            "mcpb:https://h.example/x.mcpb",
            "--file",
            &file,
        ][..],
        &[
            "--package",
            "oci:ghcr.io/you/pets:1.2.3",
            "--package",
            "pypi:pets==1.2.3",
        ],
        &["--package", "npm:pets@1.2.3"],
        &[
            "--remote",
            "https://h.example/mcp",
            "--remote",
            "https://h.example/mcp/readonly",
        ],
    ] {
        let output = entry(more);
        let shown: Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|_| panic!("{more:?}: {}", stderr(&output)));
        let wrong: Vec<String> = schema
            .iter_errors(&shown)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(wrong, [""; 0], "{more:?}: {shown}");
    }
    for (more, words) in [
        (&[][..], "--package mcpb:URL"),
        (&["--package", "mcpb:https://h.example/x.mcpb"], "--file"),
        (&["--package", "oci:ghcr.io/you/pets"], "exact tag"),
        (&["--package", "oci:ghcr.io/you/pets:latest"], "exact tag"),
        (&["--package", "npm:pets@^1"], "one exact version"),
        (&["--package", "deb:pets"], "must begin with"),
        (&["--remote", "http://h.example/mcp"], "https"),
        (
            &["--remote", "https://h.example/mcp", "--name", "pets"],
            "--name",
        ),
    ] {
        let output = if more.contains(&"--name") {
            registry(&[
                "--name",
                "pets",
                "--description",
                "Pets",
                "--server-version",
                "1.2.3",
                "--remote",
                "https://h.example/mcp",
            ])
        } else {
            entry(more)
        };
        assert_eq!(output.status.code(), Some(1), "{more:?}");
        assert!(
            stderr(&output).contains(words),
            "{more:?}: {}",
            stderr(&output)
        );
    }
    let long = "x".repeat(101);
    let output = registry(&[
        "--name",
        "a/b",
        "--description",
        &long,
        "--server-version",
        "1",
        "--remote",
        "https://h.example/mcp",
    ]);
    assert!(
        stderr(&output).contains("has 101 characters"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn completions_and_the_manual_name_every_command_and_no_value() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = command(&["completions", shell])
            .env("OPENAPI_MCP_SPEC", "hunter2")
            .output()
            .unwrap();
        let text = stdout(&output);
        assert!(
            text.contains("uninstall")
                && text.contains("tool-include")
                && !text.contains("hunter2"),
            "{shell}"
        );
    }
}

#[test]
fn every_command_has_a_manual_page_with_its_examples_files_variables_and_exit_codes() {
    let page = |args: &[&str]| {
        let output = command(&[&["man"], args].concat())
            .env("OPENAPI_MCP_HEADER", "X: hunter2")
            .env("OPENAPI_MCP_TIMEOUT", "hunter2")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(!text.contains("hunter2"), "{text}");
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "EXAMPLES",
            "ENVIRONMENT",
            "FILES",
            "\"EXIT STATUS\"",
            "\"SEE ALSO\"",
        ] {
            assert!(
                args == ["diff"] || text.contains(&format!(".SH {section}\n")),
                "{args:?}, {section}: {text}"
            );
        }
        text
    };
    let program = page(&[]);
    assert!(
        program.contains("openapi\\-mcp\\-uninstall(1)") && !program.contains("filter"),
        "{program}"
    );
    let serve = page(&["serve"]);
    assert!(
        serve.contains("\\-\\-tool\\-include") && serve.contains("openapi\\-mcp serve"),
        "{serve}"
    );
    for command in ["tools", "check", "call", "install", "diff"] {
        page(&[command]);
    }
    assert!(
        stderr(&command(&["man", "filter"]).output().unwrap())
            .contains("there is no command `filter`")
    );
}

/// Asks the completions of bash for the words before the cursor.
fn complete_in_bash(words: &[&str]) -> String {
    let script = r#"
        source <("$BINARY" completions bash)
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _openapi__mcp openapi-mcp "${COMP_WORDS[$COMP_CWORD]}" "${COMP_WORDS[$((COMP_CWORD - 1))]}"
        echo "${COMPREPLY[@]}"
    "#;
    let mut bash = std::process::Command::new("bash");
    let bash = bash
        .args(["-c", script, "bash", "openapi-mcp"])
        .args(words)
        .env("BINARY", binary());
    stdout(&bash.output().unwrap()).trim().to_owned()
}

#[test]
fn bash_completes_commands_their_flags_and_the_values_of_flags() {
    assert_eq!(complete_in_bash(&["ser"]), "serve");
    assert_eq!(complete_in_bash(&["fil"]), "");
    assert_eq!(complete_in_bash(&["serve", "--read"]), "--read-only");
    assert_eq!(complete_in_bash(&["install", "--client", "cur"]), "cursor");
    assert_eq!(complete_in_bash(&["man", "--he"]), "--help");
}

/// Asks the completions of fish for what may follow a line.
fn complete_in_fish(line: &str) -> Vec<String> {
    let script = "\"$BINARY\" completions fish | source; complete --do-complete \"$LINE\"";
    let mut fish = std::process::Command::new("fish");
    let fish = fish
        .args(["--no-config", "-c", script])
        .env("BINARY", binary())
        .env("LINE", line);
    let output = stdout(&fish.output().unwrap());
    let words = output.lines().filter_map(|line| line.split('\t').next());
    words.map(str::to_owned).collect()
}

/// Presses the tabulator after a line in an interactive zsh, until it shows the expected text.
const COMPLETE_IN_ZSH: &str = r#"
    zmodload zsh/zpty
    "$BINARY" completions zsh > "$FOLDER/_openapi-mcp"
    zpty z zsh -f -i
    zpty -w z "PS1=; fpath=(${(q)FOLDER} \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word; echo REA''DY"
    zpty -r z line '*READY*'
    zpty -n -w z "$LINE"$'\t'
    zpty -r z line "*$EXPECTED*"
    zpty -d z
"#;

#[test]
fn fish_and_zsh_complete_commands_flags_and_values_if_they_are_installed() {
    let is_installed = |shell: &str| {
        std::process::Command::new(shell)
            .arg("--version")
            .output()
            .is_ok()
    };
    if is_installed("fish") {
        assert!(complete_in_fish("openapi-mcp unin").contains(&"uninstall".to_owned()));
        assert_eq!(complete_in_fish("openapi-mcp fil"), [""; 0]);
        assert_eq!(
            complete_in_fish("openapi-mcp serve --transport "),
            ["http", "stdio"]
        );
    } else {
        println!("skipped: fish is not installed (Debian package fish)");
    }
    if is_installed("zsh") {
        for (line, expected) in [
            ("openapi-mcp unin", "uninstall"),
            ("openapi-mcp serve --transp", "--transport"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut zsh = std::process::Command::new("timeout");
            let zsh = zsh
                .args(["60", "zsh", "-f", "-c", COMPLETE_IN_ZSH])
                .env("BINARY", binary());
            let zsh = zsh
                .env("FOLDER", folder.path())
                .env("LINE", line)
                .env("EXPECTED", expected);
            let output = zsh.stdin(std::process::Stdio::null()).output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(0),
                "{line}: {}{}",
                stdout(&output),
                stderr(&output)
            );
        }
    } else {
        println!("skipped: zsh is not installed (Debian package zsh)");
    }
}
