//! The commands `tools`, `call` and `health`, help and logs.

use crate::support::{HttpServer, SpecFile, Upstream, command, petstore, run, stderr, stdout};

#[test]
fn tools_are_shown_as_a_table_and_as_json() {
    let output = run(&["tools", "--spec", &petstore()]);
    let text = stdout(&output);
    let row = text
        .lines()
        .find(|line| line.contains("delete_pet "))
        .unwrap();
    assert_eq!(
        row.split_whitespace().take(7).collect::<Vec<_>>(),
        [
            "delete_pet",
            "DELETE",
            "/pets/{petId}",
            "no",
            "yes",
            "yes",
            "yes"
        ]
    );
    let output = run(&["tools", "--spec", &petstore(), "--format", "json"]);
    let tools: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (
            tools[0]["method"].as_str(),
            tools[0]["tool"]["name"].as_str()
        ),
        (Some("GET"), Some("list_pets"))
    );
}

#[test]
fn a_demonstration_needs_nothing_and_ends_with_what_to_do_next() {
    let directory = tempfile::tempdir().unwrap();
    let output = command(&["demo"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    for expected in [
        "20 tools, 9 of them read-only",
        "\"name\": \"Biscuit\"",
        "openapi-mcp tools --spec FILE",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(
        text.lines().count() < 75 && stderr(&output).is_empty(),
        "{text}"
    );
}

#[test]
fn a_placeholder_that_a_client_did_not_fill_counts_as_not_set() {
    let upstream = Upstream::echo();
    let spec = SpecFile::new(
        r#"{"openapi":"3.1.0","info":{"title":"T","version":"1"},"components":{"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"X-Key"}}},
            "paths":{"/a":{"get":{"operationId":"open_one"}},"/b":{"get":{"operationId":"closed_one","security":[{"key":[]}]}}}}"#,
    );
    let call = |tool: &str, value: &str| {
        let mut command = command(&[
            "call",
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            tool,
        ]);
        command
            .env("OPENAPI_MCP_AUTH_KEY", value)
            .env("OPENAPI_MCP_TIMEOUT", value);
        command.output().unwrap()
    };
    for placeholder in [
        "${PETS_KEY}",
        "${env:PETS_KEY}",
        "{env:PETS_KEY}",
        "${input:pets-key}",
        "${{ secrets.KEY }}",
        "${user_config.key}",
    ] {
        let output = call("open_one", placeholder);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            stderr(&output).contains(
                "`OPENAPI_MCP_AUTH_KEY` holds a placeholder that the client did not fill"
            ),
            "{}",
            stderr(&output)
        );
        assert_eq!(upstream.take_one().header("x-key"), None);
        let output = call("closed_one", placeholder);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stdout(&output).contains("OPENAPI_MCP_AUTH_KEY"),
            "{}",
            stdout(&output)
        );
        assert!(upstream.received().is_empty());
    }
    let output = call("open_one", "");
    assert!(output.status.success(), "{}", stderr(&output));
    // A variable that a setting names is treated in the same way, and a missing one is reported at
    // start.
    let output = command(&[
        "tools",
        "--spec",
        spec.path(),
        "--header-env",
        "X-Key=PETS_KEY_FOR_TEST",
    ])
    .env("PETS_KEY_FOR_TEST", "${PETS_KEY}")
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("holds a placeholder that the client did not fill"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn tools_can_be_chosen() {
    for (args, expected) in [
        (&["--read-only"][..], "9 tools, 9 of them read-only"),
        (&["--tool-include", "tag:users"], "5 tools"),
        (
            &[
                "--tool-include",
                "path:/pets/**",
                "--tool-exclude",
                "method:DELETE",
            ],
            "8 tools",
        ),
        (&["--tool-include", "nothing_like_it"], "0 tools"),
    ] {
        let spec = petstore();
        let mut all = vec!["tools", "--spec", &spec];
        all.extend(args);
        let text = stdout(&run(&all));
        assert!(text.contains(expected), "{args:?}: {text}");
    }
}

#[test]
fn the_document_may_come_from_standard_input() {
    let mut child = command(&["tools", "--spec", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let text = std::fs::read(petstore()).unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &text).unwrap();
    assert!(stdout(&child.wait_with_output().unwrap()).contains("20 tools"));
}

#[test]
fn a_call_is_made_as_a_client_would() {
    let upstream = Upstream::echo();
    let spec = petstore();
    let call = |args: &[&str]| {
        let mut all = vec!["call", "--spec", &spec, "--base-url", &upstream.url];
        all.extend(args);
        run(&all)
    };
    let output = call(&["list_pets", "limit=2", "tags=[\"calm\",\"indoor\"]"]);
    assert_eq!(
        upstream.take_one().line,
        "GET /pets?limit=2&tags=calm,indoor HTTP/1.1",
        "{}",
        stderr(&output)
    );
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "{\n  \"ok\": true\n}\n")
    );

    let output = call(&["list_pets", "limt=2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("did you mean `limit`?") && upstream.received().is_empty());

    let output = call(&["list_pet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `list_pets`?"));

    let output = call(&["--json", "get_pet", "petId:=7"]);
    let result: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(result["structuredContent"]["ok"], true);
}

#[test]
fn p43_operator_headers_come_from_flags_and_from_the_environment() {
    let upstream = Upstream::echo();
    let output = command(&[
        "call",
        "--spec",
        &petstore(),
        "--base-url",
        &upstream.url,
        "--header",
        "X-Team: pets",
        "--header-env",
        "X-Api-Key=KEY_FOR_TEST",
        "get_pet",
        "petId=7",
    ])
    .env("KEY_FOR_TEST", "s3cret")
    .output()
    .unwrap();
    let received = upstream.take_one();
    assert_eq!(
        (received.header("x-team"), received.header("x-api-key")),
        (Some("pets"), Some("s3cret"))
    );
    assert!(!stdout(&output).contains("s3cret") && !stderr(&output).contains("s3cret"));
}

#[test]
fn settings_come_from_file_variable_and_flag_in_rising_order() {
    let config = SpecFile::new(&format!(
        "spec: {}\ntool_include: [\"tag:users\"]\n",
        petstore()
    ));
    let with = |variable: Option<&str>, args: &[&str]| {
        let mut all = vec!["tools", "--config", config.path()];
        all.extend(args);
        let mut command = command(&all);
        if let Some(value) = variable {
            command.env("OPENAPI_MCP_TOOL_INCLUDE", value);
        }
        stdout(&command.output().unwrap())
    };
    assert!(with(None, &[]).contains("5 tools"));
    assert!(with(Some("tag:store"), &[]).contains("6 tools"));
    assert!(with(Some("tag:store"), &["--tool-include", "get_pet"]).contains("1 tool"));
}

#[test]
fn p43_help_names_every_setting_and_no_secret() {
    for (name, expected) in [
        ("serve", "--allow-unauthenticated"),
        ("tools", "--format"),
        ("call", "--args"),
        ("health", "URL"),
    ] {
        let output = command(&[name, "--help"])
            .env("OPENAPI_MCP_HEADER", "Authorization: s3cret")
            .output()
            .unwrap();
        let text = stdout(&output);
        assert!(
            output.status.success() && text.contains(expected) && !text.contains("s3cret"),
            "{text}"
        );
    }
    assert!(stdout(&run(&["--version"])).starts_with("openapi-mcp "));
}

#[test]
fn health_asks_a_running_server() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    for page in ["readyz", "healthz"] {
        let well = format!("http://{}/{page}", server.address);
        assert_eq!(run(&["health", &well]).status.code(), Some(0));
    }
    assert_eq!(
        run(&["health", &format!("http://{}/nowhere", server.address)])
            .status
            .code(),
        Some(1)
    );
    assert_eq!(
        run(&["health", "http://127.0.0.1:1/healthz"]).status.code(),
        Some(1)
    );
}

#[test]
fn the_start_says_how_many_calls_a_person_is_asked_about() {
    for (level, said) in [
        ("none", "20 tools (9 read-only)"),
        (
            "destructive",
            "20 tools (9 read-only, 7 only after a person agreed)",
        ),
        (
            "write",
            "20 tools (9 read-only, 11 only after a person agreed)",
        ),
    ] {
        let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--confirm", level]);
        server.logged(said);
    }
}

#[test]
fn logs_may_be_json_lines() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--log-format", "json"]);
    let logs = server.logs();
    let line: serde_json::Value = serde_json::from_str(logs.lines().next().unwrap()).unwrap();
    assert_eq!(
        (line["level"].as_str(), line["message"].as_str()),
        (Some("INFO"), Some("Petstore: 20 tools (9 read-only)"))
    );
}

#[test]
fn a_configuration_file_names_what_lies_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    std::fs::create_dir(directory.path().join("docs")).unwrap();
    write(
        "docs/api.yaml",
        "openapi: 3.1.0\npaths: {/a: {get: {operationId: first}}}\n",
    );
    write(
        "overlay.yaml",
        "overlay: 1.0.0\ninfo: {title: O, version: '1'}\nactions: [{target: \"$.paths['/a'].get\", update: {operationId: renamed}}]\n",
    );
    write("mcp.yaml", "spec: docs/api.yaml\noverlay: [overlay.yaml]\n");
    let config = directory.path().join("mcp.yaml").display().to_string();
    let output = run(&["tools", "--config", &config]);
    assert!(stdout(&output).contains("renamed"), "{}", stderr(&output));
    // A flag is relative to where the program is started.
    let output = command(&["tools", "--config", &config, "--spec", "api.yaml"])
        .current_dir(directory.path().join("docs"))
        .output()
        .unwrap();
    assert!(stdout(&output).contains("renamed"), "{}", stderr(&output));
}

#[test]
fn an_unknown_variable_is_reported_and_an_empty_one_is_not_set() {
    let output = command(&["tools"])
        .env("OPENAPI_MCP_SPEC", petstore())
        .env("OPENAPI_MCP_BASE_URL", "")
        .env("OPENAPI_MCP_TIMEOUT", "")
        .env("OPENAPI_MCP_MOCK", "")
        .env("OPENAPI_MCP_BASEURL", "https://user:s3cret@h.example")
        .env("OPENAPI_MCP_AUTH_GITHUB", "s3cret")
        .env("OPENAPI_MCP_SERVICE_HOST", "10.0.0.1")
        .env("OPENAPI_MCP_PORT_8080_TCP", "tcp://10.0.0.1:8080")
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("`OPENAPI_MCP_BASEURL` is not a setting and is ignored; did you mean `OPENAPI_MCP_BASE_URL`?"),
        "{said}"
    );
    assert_eq!(said.matches("is not a setting").count(), 1, "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn a_dry_run_shows_the_request_and_sends_nothing() {
    let upstream = Upstream::echo();
    let spec = petstore();
    let call = |shape: &str, tool: &str, arguments: &[&str]| {
        let mut args = vec![
            "call",
            "--spec",
            &spec,
            "--base-url",
            &upstream.url,
            "--header",
            "X-Api-Key: top-secret-key",
            "--header",
            "X-Api-Version: 2026-01-01",
            shape,
            tool,
        ];
        args.extend(arguments);
        run(&args)
    };
    let body = "body={\"name\":\"It's\",\"status\":\"available\",\"price\":1}";
    let text = stdout(&call("--dry-run", "create_pet", &[body]));
    assert!(
        text.starts_with("POST /pets HTTP/1.1\nhost: 127.0.0.1:"),
        "{text}"
    );
    for expected in [
        "x-api-key: ***",
        "x-api-version: 2026-01-01",
        "content-type: application/json",
        "\n\n{\"name\":\"It's\"",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let text = stdout(&call("--dry-run=curl", "create_pet", &[body]));
    for expected in [
        &format!("curl --request POST {}/pets", upstream.url),
        "--header 'x-api-key: ***'",
        r#"--data-raw '{"name":"It'\''s""#,
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let wrong = call("--dry-run", "delete_pet", &["petId=x"]);
    assert!(
        wrong.status.code() == Some(1) && stdout(&wrong).contains("`/petId`"),
        "{}",
        stdout(&wrong)
    );
    assert!(upstream.received().is_empty());
}

#[test]
fn a_server_of_the_document_and_its_variables_can_be_chosen() {
    let spec = SpecFile::new(
        r#"{"openapi":"3.1.0","info":{"title":"S","version":"1"},"servers":[{"url":"https://a.example"},{"url":"https://{env}.b.example/v2","variables":{"env":{"default":"prod","enum":["prod","dev"]}}},{"url":"https://{host}/v3"}],"paths":{"/a":{"get":{"operationId":"get"}}}}"#,
    );
    let line = |flags: &[&str]| {
        let mut args = vec!["call", "--spec", spec.path(), "--dry-run=curl"];
        args.extend(flags);
        args.push("get");
        let output = run(&args);
        stdout(&output)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
            + stderr(&output).trim()
    };
    assert!(line(&[]).contains(" https://a.example/a"));
    assert!(line(&["server: 2"]).contains(" https://prod.b.example/v2/a"));
    assert!(
        line(&[
            "server: https://{env}.b.example/v2",
            "--server-var",
            "env=dev"
        ])
        .contains(" https://dev.b.example/v2/a")
    );
    assert!(line(&["server: 2", "--server-var", "env=evil"]).contains("one of prod, dev"));
    assert!(line(&["server: 3"]).contains("--server-var host=VALUE"));
    assert!(
        line(&["server: 3", "--server-var", "host=c.example"]).contains(" https://c.example/v3/a")
    );
    assert!(line(&["server: 4"]).contains("no server number 4"));
}

/// Settings are put together as JSON, which holds no other path.
#[cfg(unix)]
#[test]
fn a_path_that_is_not_utf_8_is_refused_and_takes_no_other_setting_with_it() {
    use std::os::unix::ffi::OsStringExt as _;
    let odd = std::ffi::OsString::from_vec(b"/srv/caf\xe9".to_vec());
    for flag in [
        "--ca-cert",
        "--allow-file-args",
        "--auth-token-file",
        "--audit-log",
        "--state-key-file",
    ] {
        let output = command(&["serve", "--spec", &petstore(), "--read-only", flag])
            .arg(&odd)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(stderr(&output).contains("UTF-8"), "{}", stderr(&output));
    }
}
