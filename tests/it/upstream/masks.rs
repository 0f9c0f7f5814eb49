//! `overrides: response: { mask }` in files, waits and collected pages, in what it counts, and in
//! what operators see of it. Replies are in `tests/cases/overrides/masks.yaml`.

use serde_json::{Value, json};

use crate::support::http_server::scrape;
use crate::support::{HttpServer, Received, Session, SpecFile, Upstream, reply, run, stdout, text};

const JSON: [&str; 1] = ["Content-Type: application/json"];

fn document() -> SpecFile {
    let accepted = json!({"202": {"description": "Accepted"}});
    let cursor = json!([{"name": "cursor", "in": "query", "schema": {"type": "string"}}]);
    SpecFile::with_paths(&json!({
        "/rows": {"get": {"operationId": "rows"}},
        "/scan": {"get": {"operationId": "scan"}},
        "/list": {"get": {"operationId": "list", "parameters": cursor}},
        "/exports": {"post": {"operationId": "export", "responses": accepted}},
    }))
}

fn rules(more: &str) -> SpecFile {
    let mask = "response: {mask: [email, card, {name: order, pattern: 'ORD-[0-9]{8}'}]}";
    SpecFile::new(&format!(
        "overrides: [{{match: {{path: '/**'}}, {mask}}}{more}]"
    ))
}

fn serve(upstream: &Upstream, more: &str, flags: &[&str]) -> Session {
    let rules = rules(more);
    Session::serving(
        &document(),
        upstream,
        &[&["--config", rules.path()], flags].concat(),
    )
}

fn notes(result: &Value) -> String {
    result["structuredContent"]["_notes"].to_string()
}

#[test]
fn p88_a_file_holds_marks_and_bytes_become_none() {
    let upstream = Upstream::start(Box::new(|request: &Received| match request.path() {
        "/rows" => reply(
            200,
            &[
                "Content-Type: text/csv; charset=utf-16le",
                "Content-Disposition: attachment; filename=\"ORD-12345678.csv\"",
            ],
            &"id,mail\n1,ann@example.org\n"
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>(),
        ),
        _ => reply(200, &["Content-Type: image/png"], &vec![0x89; 6 << 20]),
    }));
    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().join("saved").display().to_string();
    let file = ", {match: {operation: [rows, scan]}, response: {file: true}}";
    let mut session = serve(&upstream, file, &["--save-files", &root]);
    let result = session.call("rows", &json!({}));
    let path = result["structuredContent"]["file"]["path"]
        .as_str()
        .unwrap();
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        "id,mail\n1,[email]\n"
    );
    assert!(!path.contains("12345678"), "{path}");
    let result = session.call("scan", &json!({}));
    assert!(text(&result).contains("cannot be read as text"), "{result}");
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 1);
}

#[test]
fn p88_the_status_and_the_result_of_a_wait_are_masked() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request: &Received| {
        if request.path() == "/exports" {
            return reply(202, &["Location: /exports/1"], b"");
        }
        match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => reply(
                200,
                &JSON,
                br#"{"status":"failed for ann@example.org","code":4111111111111111}"#,
            ),
            _ => reply(200, &JSON, br#"{"mail":"ann@example.org"}"#),
        }
    }));
    let wait = ", {match: {operation: export}, wait: {failed: {field: /status, values: ['failed for ann@example.org']}}}";
    let mut session = serve(&upstream, wait, &[]);
    let failed = session.call("export", &json!({}));
    assert!(
        text(&failed).contains("failed for [email]") && text(&failed).contains("[card]"),
        "{failed}"
    );
    let done = session.call("export", &json!({}));
    assert_eq!(done["structuredContent"]["mail"], "[email]", "{done}");
    for result in [failed, done] {
        assert!(!result.to_string().contains("ann@"), "{result}");
    }
}

#[test]
fn p88_collected_pages_are_masked_and_so_is_the_page_that_fails() {
    // The text of an error is cut, and no part of a value remains.
    let long = format!("{}4111111111111111", "x".repeat(245));
    let upstream = Upstream::start(Box::new(move |request: &Received| match &request.line {
        line if line.contains("cursor=b") => {
            reply(500, &["Content-Type: text/plain"], long.as_bytes())
        }
        line if line.contains("cursor=") => reply(
            200,
            &JSON,
            br#"{"items":[{"mail":"bob@example.org"}],"next_cursor":"b"}"#,
        ),
        _ => reply(
            200,
            &JSON,
            br#"{"items":[{"mail":"ann@example.org"}],"next_cursor":"a"}"#,
        ),
    }));
    let mut session = serve(&upstream, "", &["collect_pages: 5"]);
    let result = session.call("list", &json!({"collect_pages": 5}));
    assert_eq!(
        result["structuredContent"]["items"],
        json!([{"mail": "[email]"}, {"mail": "[email]"}])
    );
    assert!(notes(&result).contains("[card]"), "{result}");
    assert!(!result.to_string().contains("4111"), "{result}");
}

#[test]
fn masked_values_are_counted_by_kind() {
    let upstream = Upstream::start(Box::new(|_| {
        reply(
            200,
            &JSON,
            br#"{"a":"ann@example.org bob@example.org","b":"ORD-12345678"}"#,
        )
    }));
    let (document, rules) = (document(), rules(""));
    let server = HttpServer::start(&[
        "--spec",
        document.path(),
        "--base-url",
        &upstream.url,
        "--config",
        rules.path(),
        "--metrics-bind",
        "127.0.0.1:0",
    ]);
    let log = server.logged("metrics at http://");
    let address = log.split("metrics at http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap().to_owned();
    let count = |kind: &str| {
        let metrics = scrape(&address);
        let name = format!("openapi_mcp_masked_total{{kind=\"{kind}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&*name));
        line.unwrap_or_else(|| panic!("{kind}: {metrics}"))
            .to_owned()
    };
    assert_eq!([count("email"), count("card"), count("order")], ["0"; 3]);
    server.call_stateless("rows", json!({"arguments": {}}), &json!({}));
    assert_eq!(
        [count("email"), count("card"), count("order")],
        ["2", "0", "1"]
    );
}

#[test]
fn check_and_tools_list_what_is_masked() {
    let (document, rules) = (document(), rules(""));
    let with = |command: &[&str]| {
        let settings = ["--spec", document.path(), "--config", rules.path()];
        stdout(&run(&[command, &settings].concat()))
    };
    let explained = with(&["tools", "--explain"]);
    assert!(
        explained.contains("  response · mask (card, email, order)"),
        "{explained}"
    );
    let report = with(&["check"]);
    assert!(
        report.contains("the replies of 4 tools are masked: card, email, order"),
        "{report}"
    );
}
