//! Links that install with a click.

use base64::Engine as _;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::Home;
use crate::support::{SpecFile, binary, stderr, stdout};

/// A document that needs no credential, which no link could carry.
fn open_document() -> SpecFile {
    SpecFile::new(
        r#"{"openapi":"3.1.0","info":{"title":"Notes","version":"1"},"servers":[{"url":"https://h.example"}],"paths":{"/a":{"get":{"operationId":"a"}}}}"#,
    )
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

#[test]
fn a_link_to_an_address_is_exactly_what_the_client_takes() {
    let home = Home::new();
    for (client, expected) in [
        (
            "vscode",
            "vscode:mcp/install?%7B%22name%22%3A%22pets%22%2C%22type%22%3A%22http%22%2C%22url%22%3A%22https%3A%2F%2Fmcp%2Eexample%2Fmcp%22%7D",
        ),
        (
            "cursor",
            "cursor://anysphere.cursor-deeplink/mcp/install?name=pets&config=eyJ1cmwiOiJodHRwczovL21jcC5leGFtcGxlL21jcCJ9",
        ),
        (
            "goose",
            "goose://extension?type=streamable_http&url=https%3A%2F%2Fmcp%2Eexample%2Fmcp&id=pets&name=pets&timeout=300",
        ),
    ] {
        let url = [
            "--name",
            "pets",
            "--url",
            "https://mcp.example/mcp",
            "--link",
        ];
        let output = home.run(&[&["install", "--client", client][..], &url].concat(), &[]);
        assert_eq!(
            stdout(&output),
            format!("{expected}\n"),
            "{client}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_link_to_a_command_holds_the_entry_that_install_prints() {
    let home = Home::new();
    let spec = open_document();
    let link = |client: &str| {
        let output = home.run(
            &[
                "install",
                "--client",
                client,
                "--spec",
                spec.path(),
                "--link",
            ],
            &[],
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        stdout(&output).trim_end().to_owned()
    };
    let arguments = |client: &str| json!(["serve", "--spec", spec.path(), "--client", client]);
    let vscode = link("vscode");
    let entry: Value = serde_json::from_str(&decoded(
        vscode.strip_prefix("vscode:mcp/install?").unwrap(),
    ))
    .unwrap();
    let expected =
        json!({"name": "notes", "type": "stdio", "command": binary(), "args": arguments("vscode")});
    assert_eq!(entry, expected);
    let cursor = link("cursor");
    let config = cursor
        .strip_prefix("cursor://anysphere.cursor-deeplink/mcp/install?name=notes&config=")
        .unwrap();
    let config = base64::engine::general_purpose::STANDARD
        .decode(decoded(config))
        .unwrap();
    let entry: Value = serde_json::from_slice(&config).unwrap();
    assert_eq!(
        entry,
        json!({"command": binary(), "args": arguments("cursor")})
    );
}

#[test]
fn there_is_no_link_that_the_client_would_not_take() {
    let home = Home::new();
    let spec = open_document();
    let long = format!("X-Note: {}", "x".repeat(1500));
    for (client, more, words) in [
        (
            "claude-code",
            &[][..],
            "claude-code has no links; vscode, cursor and goose have",
        ),
        (
            "goose",
            &[],
            "goose takes links only to servers that npx or uvx starts, and to an address",
        ),
        ("cursor", &["--header", &long], "and clients take 2000"),
        (
            "cursor",
            &["--header-env", "X-Key=PETS_KEY"],
            "a link cannot carry the credential",
        ),
    ] {
        let install = [
            "install",
            "--client",
            client,
            "--spec",
            spec.path(),
            "--link",
        ];
        let output = home.run(&[&install[..], more].concat(), &[("PETS_KEY", "hunter2")]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{client}: {}",
            stdout(&output)
        );
        assert_eq!(stdout(&output), "", "{client}");
        assert!(
            stderr(&output).contains(words),
            "{client}: {}",
            stderr(&output)
        );
    }
}
