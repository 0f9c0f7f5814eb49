//! Bad input: a clear message, what to do next and the right exit code; never a panic.

use crate::support::{SpecFile, command, listener, petstore, run, stderr, stdout};

fn refused(args: &[&str], code: i32, expected: &[&str]) {
    let output = run(args);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    assert!(output.stdout.is_empty(), "{args:?}: something on stdout");
    for part in expected {
        assert!(text.contains(part), "{args:?}: `{part}` is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn p40_documents_that_cannot_be_served_end_with_3() {
    for (text, expected) in [
        ("", "empty"),
        ("{\"openapi\": \"3.0.0\", ", "not valid JSON"),
        ("a: [1", "neither JSON nor YAML"),
        ("just words", "not an OpenAPI document"),
        ("<!DOCTYPE html><html></html>", "OpenAPI"),
        (
            "{\"swagger\": \"1.2\", \"paths\": {}}",
            "OpenAPI 1.2 is not supported",
        ),
        (
            "{\"openapi\": \"9.0.0\", \"paths\": {}}",
            "OpenAPI 9.0.0 is not supported",
        ),
        ("{\"openapi\": \"3.0.0\"}", "no `paths`"),
    ] {
        let spec = SpecFile::new(text);
        refused(
            &[
                "serve",
                "--spec",
                spec.path(),
                "--base-url",
                "http://127.0.0.1:1",
            ],
            3,
            &["error: ", expected],
        );
    }
    refused(
        &["serve", "--spec", "/nonexistent/spec.yaml"],
        3,
        &["cannot be read", "No such file"],
    );
    refused(
        &["serve", "--spec", "nonexistent/spec.yaml"],
        3,
        &["No such file", "it was looked for at `/"],
    );
    refused(&["serve", "--spec", "/"], 3, &["not a regular file"]);
    refused(
        &["serve", "--spec", "http://127.0.0.1:1/spec.yaml"],
        3,
        &["cannot be fetched"],
    );
    #[cfg(unix)]
    refused(
        &["serve", "--spec", "/dev/zero"],
        3,
        &["not a regular file"],
    );
}

#[test]
fn p40_wrong_settings_end_with_2() {
    let spec =
        SpecFile::new(r#"{"openapi":"3.1.0","info":{"title":"T"},"paths":{"/a":{"get":{}}}}"#);
    let petstore = petstore();
    refused(&["serve"], 2, &["no document is given", "--spec FILE"]);
    refused(
        &["serve", "--spec", ""],
        2,
        &["no document is given", "--spec FILE"],
    );
    refused(
        &["serve", "--spec", &petstore, "--timeout", "5s"],
        2,
        &["'5s'", "must be a number of seconds, such as 5"],
    );
    refused(&["serve", "--spec", "-"], 2, &["--transport http"]);
    refused(
        &["serve", "--spec", "http://h.example:99999/x"],
        2,
        &["neither a file"],
    );
    refused(
        &[
            "serve",
            "--spec",
            &petstore,
            "--transport",
            "http",
            "--allow-host",
            "*",
        ],
        2,
        &["--allow-host", "`*`"],
    );
    let secret = SpecFile::new("header: \"Authorization: Bearer hunter2\"");
    let output = run(&["serve", "--spec", &petstore, "--config", secret.path()]);
    assert!(
        output.status.code() == Some(2) && !stderr(&output).contains("hunter2"),
        "{}",
        stderr(&output)
    );
    refused(
        &["serve", "--spec", spec.path()],
        2,
        &["no usable server", "--base-url"],
    );
    refused(
        &["serve", "--spec", &petstore, "--bse-url", "x"],
        2,
        &["--base-url"],
    );
    refused(
        &["serve", "--spec", "ftp://h.example/x"],
        2,
        &["neither a file"],
    );
    refused(
        &["serve", "--spec", &petstore, "--base-url", "h.example"],
        2,
        &["--base-url", "scheme"],
    );
    refused(
        &[
            "serve",
            "--spec",
            &petstore,
            "--base-url",
            "file:///etc/passwd",
        ],
        2,
        &["not http or https"],
    );
    refused(
        &[
            "serve",
            "--spec",
            &petstore,
            "--base-url",
            "http://h.example:99999",
        ],
        2,
        &["invalid port"],
    );
    refused(
        &[
            "serve",
            "--spec",
            &petstore,
            "--transport",
            "http",
            "--bind",
            "0.0.0.0:0",
        ],
        2,
        &["--allow-host", "--allow-unauthenticated"],
    );
    refused(
        &[
            "serve",
            "--spec",
            &petstore,
            "--transport",
            "http",
            "--bind",
            "nowhere",
        ],
        2,
        &["--bind"],
    );
    refused(
        &[
            "serve",
            "--spec",
            &petstore,
            "--header-env",
            "X-Key=NOT_SET_ANYWHERE",
        ],
        2,
        &["NOT_SET_ANYWHERE"],
    );
    refused(
        &[
            "serve",
            "--spec",
            &petstore,
            "--config",
            "/nonexistent.yaml",
        ],
        2,
        &["cannot be read"],
    );
    let config = SpecFile::new("bse_url: x\ntimeout: soon\n");
    refused(
        &["serve", "--spec", &petstore, "--config", config.path()],
        2,
        &["`bse_url`; did you mean `base_url`?", "`timeout`"],
    );
}

#[test]
fn a_setting_that_needs_http_is_refused_over_stdio() {
    let petstore = petstore();
    let http = [
        ("--oauth-issuer", "--oauth-issuer=https://login.example"),
        ("--oauth-audience", "--oauth-audience=https://mcp.example"),
        (
            "`oauth_jwks_url`",
            "oauth_jwks_url: https://login.example/keys",
        ),
        ("`oauth_scope`", "oauth_scope: [pets]"),
        ("`oauth_read_scope`", "oauth_read_scope: [read]"),
        ("`oauth_write_scope`", "oauth_write_scope: [write]"),
        ("--bind", "--bind=127.0.0.1:0"),
        ("`forward_header`", "forward_header: [X-Team]"),
    ];
    let mut args = vec![
        "serve",
        "--spec",
        &petstore,
        "--mock",
        "--allow-unauthenticated",
    ];
    args.extend(http.map(|(_, given)| given));
    let expected: Vec<String> = std::iter::once("--allow-unauthenticated")
        .chain(http.map(|(name, _)| name))
        .map(|name| format!("{name} needs --transport http"))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    refused(&args, 2, &expected);
}

#[test]
fn an_authorization_without_a_scheme_is_a_warning_that_does_not_repeat_it() {
    let spec = petstore();
    let warned = |value: &str| {
        let args = [
            "tools",
            "--spec",
            &spec,
            "--header-env",
            "Authorization=VALUE_FOR_TEST",
        ];
        let output = command(&args)
            .env("VALUE_FOR_TEST", value)
            .output()
            .unwrap();
        let told = stderr(&output);
        assert!(
            output.status.success() && !told.contains("ghp_s3cret"),
            "{told}"
        );
        told.contains("`Authorization` has no authentication scheme") && told.contains("`Bearer …`")
    };
    assert!(warned("ghp_s3cret"));
    assert!(!warned("Bearer ghp_s3cret"));
}

#[test]
fn p40_a_port_in_use_is_reported() {
    let (taken, _) = listener();
    let address = taken.local_addr().unwrap().to_string();
    refused(
        &[
            "serve",
            "--spec",
            &petstore(),
            "--mock",
            "--transport",
            "http",
            "--bind",
            &address,
        ],
        2,
        &["cannot listen", &address],
    );
}

#[test]
fn an_operation_that_cannot_be_read_is_left_out_alone() {
    let spec = SpecFile::new(
        r#"{"openapi":"3.1.0","info":{"title":"T"},"paths":{"/a":{"get":{"operationId":"good"},"post":7},"/b/../c":{"get":{}}}}"#,
    );
    let output = run(&["tools", "--spec", spec.path()]);
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(
        output.status.success() && out.contains("good") && out.contains("1 tool"),
        "{out}{err}"
    );
    assert!(
        err.contains("#/paths/~1a/post (line 1, column") && err.contains("would climb"),
        "{err}"
    );
}
