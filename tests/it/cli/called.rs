//! The tool that `openapi-mcp call` calls: in search mode, and if the settings leave one out.

use crate::support::{SpecFile, Upstream, petstore, reply, run, stderr, stdout};

#[test]
fn the_tools_of_search_mode_are_called_as_clients_call_them() {
    let spec = petstore();
    let call = |arguments: &[&str]| {
        let mut all = vec!["call", "--spec", &spec, "--mock", "--tools", "search"];
        all.extend(arguments);
        run(&all)
    };
    let found = call(&["search_operations", "queries:=[\"delete a pet\"]"]);
    assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
    assert!(stdout(&found).contains("delete_pet"), "{}", stdout(&found));
    let described = call(&["describe_operations", "names:=[\"get_pet\"]"]);
    assert!(
        stdout(&described).contains("petId"),
        "{}",
        stdout(&described)
    );
    for direct in [
        &["call_read", "operation=get_pet", "arguments:={\"petId\":7}"][..],
        &["get_pet", "petId=7"],
    ] {
        let read = call(direct);
        assert!(
            stdout(&read).contains("Biscuit"),
            "{direct:?}: {}{}",
            stdout(&read),
            stderr(&read)
        );
    }
    let wrong = call(&[
        "call_read",
        "operation=delete_pet",
        "arguments:={\"petId\":7}",
    ]);
    assert_eq!(wrong.status.code(), Some(1), "{}", stdout(&wrong));
    assert!(
        stdout(&wrong).contains("called through call_destructive"),
        "{}",
        stdout(&wrong)
    );
    let shown = call(&[
        "--dry-run",
        "call_destructive",
        "operation=delete_pet",
        "arguments:={\"petId\":7}",
    ]);
    assert!(
        stdout(&shown).starts_with("DELETE /"),
        "{}{}",
        stdout(&shown),
        stderr(&shown)
    );
    let listed = run(&[
        "call",
        "--spec",
        &spec,
        "--mock",
        "search_operations",
        "queries:=[\"a\"]",
    ]);
    assert_eq!(listed.status.code(), Some(2));
    assert!(
        stderr(&listed).contains("is a tool of search mode, which --tools search turns on"),
        "{}",
        stderr(&listed)
    );
}

#[test]
fn texts_of_the_command_line_are_read_by_the_schema_without_a_remark() {
    let spec = petstore();
    let called = run(&["call", "--spec", &spec, "--mock", "get_pet", "petId=7"]);
    assert_eq!(
        (called.status.code(), stderr(&called).as_str()),
        (Some(0), "")
    );
    let request = run(&[
        "call",
        "--spec",
        &spec,
        "--base-url",
        "http://api.example",
        "--dry-run",
        "create_pet",
        "body.name=Rex",
        "body.status=sold",
        "body.price=3.50",
    ]);
    let shown = stdout(&request);
    assert!(
        shown.contains(r#"{"name":"Rex","status":"sold","price":3.50}"#),
        "{shown}{}",
        stderr(&request)
    );
    // A name that was read as another one is a remark still.
    let respelt = run(&["call", "--spec", &spec, "--mock", "get_pet", "pet_id=7"]);
    assert!(
        stderr(&respelt).contains("`pet_id`") || stdout(&respelt).contains("`pet_id`"),
        "{}",
        stderr(&respelt)
    );
}

#[test]
fn the_list_of_tools_says_what_clients_list_in_search_mode() {
    let spec = petstore();
    let list = |more: &[&str]| {
        let mut all = vec!["tools", "--spec", &spec];
        all.extend(more);
        run(&all)
    };
    let output = list(&["--tools", "search", "pin: [get_pet]"]);
    assert!(
        stdout(&output).contains("20 tools, 9 of them read-only"),
        "{}",
        stdout(&output)
    );
    assert!(
        stderr(&output).contains(
            "clients list search_operations, describe_operations, call_read, call_write, call_destructive and 1 with `pin` in place of these"
        ),
        "{}",
        stderr(&output)
    );
    assert!(!stderr(&list(&[])).contains("search mode"));
    let reading = list(&["--tools", "search", "--read-only"]);
    assert!(
        stderr(&reading)
            .contains("clients list search_operations, describe_operations, call_read in place"),
        "{}",
        stderr(&reading)
    );
}

#[test]
fn a_tool_that_the_settings_leave_out_is_told_with_the_setting() {
    let spec = SpecFile::new(
        r#"{"openapi":"3.1.0","info":{"title":"L","version":"1"},"servers":[{"url":"https://h.example"}],"paths":{"/a":{
            "get":{"operationId":"read_it","tags":["x"]},"put":{"operationId":"replace_it"},"post":{"operationId":"add_it"},
            "delete":{"operationId":"hidden_it","x-mcp":false}}}}"#,
    );
    for (more, tool, words) in [
        (
            &["--read-only"][..],
            "replace_it",
            "the tool `replace_it` is left out by --read-only",
        ),
        (
            &["--no-destructive"],
            "replace_it",
            "is left out by --no-destructive",
        ),
        (
            &["--tool-include", "tag:x"],
            "add_it",
            "is left out by --tool-include, of which no pattern matches it",
        ),
        (
            &["--tool-exclude", "path:/a"],
            "read_it",
            "is left out by --tool-exclude path:/a",
        ),
        (
            &["--tool-prefix", "p_", "--read-only"],
            "p_add_it",
            "the tool `p_add_it` is left out by --read-only",
        ),
        (
            &[],
            "hidden_it",
            "is left out by `enabled: false` in `overrides`, or by an extension of the document",
        ),
        (
            &["--read-only"],
            "reed_it",
            "there is no tool `reed_it`; did you mean `read_it`?",
        ),
    ] {
        let mut all = vec!["call", "--spec", spec.path(), "--mock"];
        all.extend(more);
        all.push(tool);
        let output = run(&all);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{more:?} {tool}: {}",
            stdout(&output)
        );
        assert!(
            stderr(&output).contains(words),
            "{more:?} {tool}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_repeated_argument_is_a_list_and_a_file_has_its_name() {
    let file = serde_json::json!({"type": "string", "format": "binary"});
    let form = serde_json::json!({"type": "object", "properties": {"file": file, "name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}});
    let spec = SpecFile::with_paths(&serde_json::json!({
        "/upload": {"post": {"operationId": "upload", "requestBody": {"content": {"multipart/form-data": {"schema": form}}}}},
        "/list": {"get": {"operationId": "list", "parameters": [{"name": "status", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}]}},
    }));
    let folder = tempfile::tempdir().unwrap();
    let cover = folder.path().join("cover.png");
    std::fs::write(&cover, b"\x89PNG").unwrap();
    let call = |arguments: &[&str]| {
        let settings = ["--spec", spec.path(), "--base-url", "http://127.0.0.1:1"];
        let called = run(&[&["call", "--dry-run"], &settings[..], arguments].concat());
        stdout(&called) + &stderr(&called)
    };
    let listed = call(&["list", "status=a", "status=b"]);
    assert!(
        listed.starts_with("GET /list?status=a&status=b "),
        "{listed}"
    );
    let file = format!("body.file=@{}", cover.display());
    let upstream = Upstream::start(Box::new(|_| reply(200, &[], b"")));
    let sent = run(&[
        "call",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "upload",
        &file,
        "body.name=Rex",
        "body.tags=a",
        "body.tags=b",
    ]);
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    let received = upstream.take_one();
    let body = String::from_utf8_lossy(&received.body);
    assert!(
        body.contains("name=\"file\"; filename=\"cover.png\"")
            && body
                .to_ascii_lowercase()
                .contains("content-type: image/png")
            && body.contains("PNG")
            && body.contains("Rex"),
        "{body}"
    );
}
