//! `collect_pages`: the pages of a list in one call, for every way in which APIs name the next
//! one, and for APIs that do not keep to any.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::audit::Log;
use crate::support::{
    Received, Session, SpecFile, TIMEOUT, Upstream, project, reply, run, stderr, stdout, text,
    wait_until,
};

/// A document with one list. The name of an integer ends in `#`, and `deep` is an object of style
/// `deepObject`.
fn document(case: &Value) -> SpecFile {
    let parameter = |name: &Value| match (
        name.as_str().unwrap(),
        name.as_str().unwrap().strip_suffix('#'),
    ) {
        ("deep", _) => {
            json!({"name": "page", "in": "query", "style": "deepObject", "schema": {"type": "object",
            "properties": {"number": {"type": "integer"}, "size": {"type": "integer"}}}})
        }
        (_, Some(name)) => {
            json!({"name": name, "in": "query", "schema": {"type": "integer", "maximum": 500}})
        }
        (name, None) => json!({"name": name, "in": "query", "schema": {"type": "string"}}),
    };
    let parameters: Vec<Value> = case["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(parameter)
        .collect();
    let headers = match case["declared_link"].as_bool() {
        Some(true) => json!({"Link": {"schema": {"type": "string"}}}),
        _ => json!({}),
    };
    let method = case["method"].as_str().unwrap_or("get");
    SpecFile::with_paths(
        &json!({"/list": {method: {"operationId": "list", "parameters": parameters,
        "responses": {"200": {"description": "All", "headers": headers}}}}}),
    )
}

fn page(page: &Value) -> Vec<u8> {
    let status = page["status"]
        .as_u64()
        .map_or(200, |status| u16::try_from(status).unwrap());
    let headers = page["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let headers: Vec<&str> = std::iter::once("Content-Type: application/json")
        .chain(headers)
        .collect();
    let body = page["text"]
        .as_str()
        .map_or_else(|| page["body"].to_string(), str::to_owned);
    reply(status, &headers, body.as_bytes())
}

/// An API that answers with one page after the other, and with 410 after the last.
fn upstream(pages: Vec<Vec<u8>>) -> Upstream {
    let pages = Arc::new(Mutex::new(pages.into_iter()));
    Upstream::start(Box::new(move |_| {
        pages
            .lock()
            .unwrap()
            .next()
            .unwrap_or_else(|| reply(410, &[], b""))
    }))
}

/// The pairs of the query of each request, sorted.
fn queries(upstream: &Upstream) -> Vec<String> {
    let received = upstream.take_all().into_iter();
    let query = received.map(|request| {
        let url = url::Url::parse(&format!("http://a{}", request.path())).unwrap();
        assert_eq!(url.path(), "/list");
        let mut pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        pairs.sort();
        url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish()
    });
    query.collect()
}

fn normal(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    pairs.sort();
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

fn check(case: &Value) -> Result<(), String> {
    let pages = case["pages"].as_array().unwrap();
    let (spec, upstream) = (document(case), upstream(pages.iter().map(page).collect()));
    let rules = case.get("rules").cloned().unwrap_or_else(|| json!([]));
    let config =
        json!({"collect_pages": 10, "response_filter": "jq", "retries": 0, "overrides": rules});
    let config = SpecFile::new(&config.to_string());
    let mut session = Session::serving(&spec, &upstream, &["--config", config.path()]);
    let result = session.call("list", &case["arguments"]);
    let equal = |what: &str, left: &Value, right: &Value| {
        let failure = || format!("{what}\n  is       {left}\n  expected {right}\n  in {result}");
        (left == right).then_some(()).ok_or_else(failure)
    };
    let sent: Vec<String> = pages
        .iter()
        .map(|page| normal(page["sent"].as_str().unwrap_or_default()))
        .collect();
    equal("requests", &json!(queries(&upstream)), &json!(sent))?;
    equal(
        "isError",
        &result["isError"],
        &json!(case.get("error").is_some()),
    )?;
    let is_shown = case["error"]
        .as_str()
        .is_none_or(|error| text(&result).contains(error));
    if !is_shown
        || case["text"]
            .as_str()
            .is_some_and(|begin| !text(&result).starts_with(begin))
    {
        return Err(format!("text: {}", text(&result)));
    }
    let mut content = result["structuredContent"].clone();
    let notes = content
        .as_object_mut()
        .and_then(|members| members.shift_remove("_notes"));
    if let Some(expected) = case.get("result") {
        equal("result", &content, expected)?;
    }
    if let Some(expected) = case["notes"].as_array() {
        let notes: Vec<String> =
            serde_json::from_value(notes.unwrap_or_else(|| json!([]))).unwrap();
        let is_note = |(note, expected): (&String, &Value)| {
            let expected = expected.as_str().unwrap();
            note == expected || (expected.ends_with(' ') && note.starts_with(expected))
        };
        if notes.len() != expected.len() || !notes.iter().zip(expected).all(is_note) {
            return Err(format!("notes: {notes:#?}"));
        }
    }
    Ok(())
}

#[test]
fn p9_every_case_collects_what_it_says_and_says_why_no_more() {
    let file = std::fs::read_to_string(project("tests/cases/pages.yaml")).unwrap();
    let file: Value = serde_yaml::from_str(&file).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() > 40);
    let failed = cases
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case["name"], check(case).err()?)));
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A document whose tool `list` takes a cursor, and whose API is asked without retries.
fn cursors() -> SpecFile {
    document(&json!({"parameters": ["cursor"]}))
}

fn json_reply(headers: &[&str], body: &str) -> Vec<u8> {
    let headers: Vec<&str> = ["Content-Type: application/json"]
        .iter()
        .chain(headers)
        .copied()
        .collect();
    reply(200, &headers, body.as_bytes())
}

/// The number that a request has as its cursor; 0 of the first one.
fn number(request: &Received) -> usize {
    let cursor = request
        .path()
        .split_once("cursor=")
        .map_or("0", |(_, cursor)| cursor);
    cursor.parse().unwrap()
}

/// An API whose pages have `items` and never end.
fn endless(items: impl Fn(usize) -> String + Send + Sync + 'static) -> Upstream {
    Upstream::start(Box::new(move |request| {
        let number = number(request);
        json_reply(
            &[],
            &format!(
                r#"{{"items":{},"next_cursor":"{}"}}"#,
                items(number),
                number + 1
            ),
        )
    }))
}

fn notes(result: &Value) -> String {
    result["structuredContent"]["_notes"].to_string()
}

fn count(result: &Value) -> usize {
    result["structuredContent"]["items"]
        .as_array()
        .map_or(0, Vec::len)
}

#[test]
fn p12_a_cursor_that_never_ends_is_followed_as_often_as_the_call_says() {
    let (spec, upstream) = (
        cursors(),
        endless(|number| format!(r#"[{{"id":{number}}}]"#)),
    );
    let mut session = Session::serving(&spec, &upstream, &["collect_pages: 100"]);
    let result = session.call("list", &json!({"collect_pages": 100}));
    assert_eq!(
        (count(&result), upstream.take_all().len()),
        (100, 100),
        "{result}"
    );
    assert!(
        notes(&result).contains(r#"{\"cursor\":\"100\"} for the next page"#),
        "{result}"
    );
    let result = session.call("list", &json!({"cursor": "100", "collect_pages": 3}));
    assert_eq!(
        result["structuredContent"]["items"],
        json!([{"id": 100}, {"id": 101}, {"id": 102}]),
        "{result}"
    );
    assert_eq!(upstream.take_all().len(), 3);
    assert!(session.call("list", &json!({"collect_pages": 101}))["isError"] == true);
    assert_eq!(upstream.take_all().len(), 0);
}

#[test]
fn p12_all_pages_together_are_no_larger_than_a_reply() {
    let page = format!(r#"["{}"]"#, "x".repeat(9 << 20));
    let (spec, upstream) = (cursors(), endless(move |_| page.clone()));
    let mut session = Session::serving(&spec, &upstream, &["collect_pages: 5"]);
    let result = session.call("list", &json!({"collect_pages": 5}));
    assert!(
        notes(&result)
            .contains("Page 2 was left out, because all pages may have 10485760 bytes together."),
        "{}",
        notes(&result)
    );
    assert_eq!((count(&result), upstream.take_all().len()), (1, 2));

    let (spec, upstream) = (
        cursors(),
        endless(|number| format!(r#"["{}{number}"]"#, "x".repeat(400))),
    );
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["collect_pages: 5", "--max-response-bytes", "1000"],
    );
    let result = session.call("list", &json!({"collect_pages": 5}));
    assert!(
        notes(&result)
            .contains("Page 3 was left out, because all pages may have 1000 bytes together."),
        "{}",
        notes(&result)
    );
    assert_eq!(count(&result), 2);
}

/// A rule is not applied to a larger reply, which it would withhold.
#[test]
fn pages_of_a_tool_with_a_rule_are_no_larger_than_the_rule_can_be_applied_to() {
    let text = "x".repeat(5 << 20);
    let (spec, upstream) = (
        cursors(),
        endless(move |number| format!(r#"[{{"id":{number},"text":"{text}"}}]"#)),
    );
    let config =
        json!({"collect_pages": 5, "overrides": [{"response": {"fields": ["/items/*/id"]}}]});
    let config = SpecFile::new(&config.to_string());
    let mut session = Session::serving(&spec, &upstream, &["--config", config.path()]);
    let result = session.call("list", &json!({"collect_pages": 5}));
    assert_eq!(
        result["structuredContent"]["items"],
        json!([{"id": 0}]),
        "{result}"
    );
    assert!(
        notes(&result).contains("all pages may have 8388608 bytes together"),
        "{result}"
    );
}

#[test]
fn p45_pages_count_as_the_memory_of_their_client() {
    let page = format!(r#"["{}"]"#, "x".repeat(6 << 20));
    let (spec, upstream) = (
        cursors(),
        endless(move |number| page.replacen('x', &number.to_string(), 1)),
    );
    let mut session = Session::serving(
        &spec,
        &upstream,
        &[
            "collect_pages: 5",
            "--max-memory",
            "33554432",
            "--max-response-bytes",
            "16777216",
        ],
    );
    let result = session.call("list", &json!({"collect_pages": 5}));
    assert!(
        notes(&result).contains("as many replies for you as its memory allows"),
        "{}",
        notes(&result)
    );
    assert_eq!(count(&result), 1);
    // What was held is free again.
    let result = session.call("list", &json!({"collect_pages": 1}));
    assert_eq!((count(&result), &result["isError"]), (1, &json!(false)));
}

#[test]
fn p10_pages_that_do_not_come_in_time_are_left_out() {
    let (spec, upstream) = (
        cursors(),
        endless(|number| {
            if number == 2 {
                let (_never, wait) = std::sync::mpsc::channel::<()>();
                let _ = wait.recv_timeout(TIMEOUT);
            }
            format!("[{number}]")
        }),
    );
    let mut session = Session::serving(&spec, &upstream, &["collect_pages: 5", "--timeout", "2"]);
    let started = Instant::now();
    let result = session.call("list", &json!({"collect_pages": 5}));
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(
        result["structuredContent"]["items"],
        json!([0, 1]),
        "{result}"
    );
    for part in [
        "The time for the call was over before page 3 came.",
        r#"{\"cursor\":\"2\"} for the next page"#,
    ] {
        assert!(notes(&result).contains(part), "{result}");
    }
}

#[test]
fn a_connection_that_breaks_ends_with_what_has_come() {
    let upstream = Upstream::start(Box::new(|request| match number(request) {
        0 => json_reply(&[], r#"{"items":[1],"next_cursor":1}"#),
        _ => Vec::new(),
    }));
    let mut session = Session::serving(&cursors(), &upstream, &["collect_pages: 5", "retries: 0"]);
    let result = session.call("list", &json!({"collect_pages": 5}));
    assert_eq!(
        (count(&result), &result["isError"]),
        (1, &json!(false)),
        "{result}"
    );
    assert!(notes(&result).contains("Page 2 failed: "), "{result}");
}

#[test]
fn each_page_is_repeated_as_a_single_call_is() {
    let failures = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| {
        match (number(request), failures.load(SeqCst)) {
            (1, 0) | (2, 1) => {
                failures.fetch_add(1, SeqCst);
                reply(503, &["Retry-After: 0"], b"")
            }
            (number, _) => json_reply(
                &[],
                &format!(r#"{{"items":[{number}],"next_cursor":{}}}"#, number + 1),
            ),
        }
    }));
    let mut session = Session::serving(&cursors(), &upstream, &["collect_pages: 3"]);
    let result = session.call("list", &json!({"collect_pages": 3}));
    assert_eq!(
        result["structuredContent"]["items"],
        json!([0, 1, 2]),
        "{result}"
    );
    assert_eq!(upstream.take_all().len(), 5);
}

#[test]
fn a_result_that_is_cut_names_the_page_of_the_cut() {
    let row = |number: usize| format!(r#"{{"id":{number},"text":"{}"}}"#, "x".repeat(100));
    let items = move |page: usize| {
        format!(
            "[{}]",
            (0..10)
                .map(|index| row(page * 10 + index))
                .collect::<Vec<_>>()
                .join(",")
        )
    };
    let (spec, upstream) = (cursors(), endless(items));
    for (tokens, kept, page) in [("1000", 20..30, 3), ("300", 1..10, 1)] {
        let flags = ["collect_pages: 5", "--max-result-tokens", tokens];
        let mut session = Session::serving(&spec, &upstream, &flags);
        let result = session.call("list", &json!({"collect_pages": 5}));
        let shown = text(&result);
        let number = shown.matches("xxxxx\"").count();
        assert!(kept.contains(&number), "{number}: {shown}");
        let expected = match page {
            1 => "The cut is on page 1.".to_owned(),
            page => format!("The cut is on page {page}: call again with the same arguments and "),
        };
        assert!(
            shown.contains(&expected),
            "{}",
            result["structuredContent"]["_notes"]
        );
        let is_named = shown
            .replace('\\', "")
            .contains(r#"{"cursor":"2"} to go on from there."#);
        assert_eq!(is_named, page == 3, "{shown}");
        assert_eq!(upstream.take_all().len(), 5);
    }
}

#[test]
fn p41_secrets_are_taken_out_of_every_page() {
    let upstream = Upstream::start(Box::new(|request| {
        let (number, key) = (
            number(request),
            request.header("x-key").unwrap_or_default().to_owned(),
        );
        let next = if number < 2 {
            (number + 1).to_string()
        } else {
            format!("\"{key}\"")
        };
        json_reply(
            &[],
            &format!(r#"{{"items":[{{"key":"{key}","n":{number}}}],"next_cursor":{next}}}"#),
        )
    }));
    let (spec, variables) = (cursors(), [("KEY", "a-long-secret-key")]);
    let flags = ["collect_pages: 9", "--header-env", "X-Key=KEY"];
    let mut session = Session::serving_with(&spec, &upstream, &flags, &variables);
    let result = session.call("list", &json!({"collect_pages": 9}));
    assert_eq!(
        (count(&result), upstream.take_all().len()),
        (3, 3),
        "{result}"
    );
    assert!(
        !result.to_string().contains("a-long-secret-key"),
        "{result}"
    );
    assert_eq!(
        result.to_string().matches("[redacted]").count(),
        6,
        "{result}"
    );
}

#[test]
fn pages_are_one_call_in_the_audit_log() {
    let (spec, upstream) = (cursors(), endless(|number| format!("[{number}]")));
    for (flags, events) in [
        (&[][..], vec!["call"]),
        (&["audit_log_required: true"], vec!["begin", "end"]),
    ] {
        let log = Log::new();
        let mut session = Session::serving(
            &spec,
            &upstream,
            &[&["collect_pages: 3", "--audit-log", log.name()], flags].concat(),
        );
        session.call("list", &json!({"collect_pages": 3}));
        let lines = log.wait_for(events.len());
        assert_eq!(
            lines
                .iter()
                .map(|line| line["event"].as_str().unwrap())
                .collect::<Vec<_>>(),
            events
        );
        let last = lines.last().unwrap();
        assert_eq!(
            (&last["pages"], &last["attempts"], &last["outcome"]),
            (&json!(3), &json!(3), &json!("ok")),
            "{last}"
        );
        session.call("list", &json!({}));
        assert!(
            log.wait_for(events.len() * 2)
                .last()
                .unwrap()
                .get("pages")
                .is_none()
        );
    }
}

#[test]
fn the_progress_of_all_pages_only_grows() {
    // The last page is the shortest.
    let (spec, upstream) = (
        cursors(),
        endless(|number| format!(r#"["{}"]"#, "x".repeat(300_000 >> (4 * number)))),
    );
    let mut session = Session::serving(&spec, &upstream, &["collect_pages: 3"]);
    let call = json!({"name": "list", "arguments": {"collect_pages": 3}, "_meta": {"progressToken": "pages"}});
    session.post("tools/call", &call);
    let mut reported = Vec::new();
    while let message = session.receive()
        && !message["id"].is_number()
    {
        assert!(message["params"].get("total").is_none(), "{message}");
        reported.push(message["params"]["progress"].as_u64().unwrap());
    }
    assert!(
        reported.windows(2).all(|pair| pair[0] < pair[1]),
        "{reported:?}"
    );
    assert!(
        reported.last().is_some_and(|last| *last > 319_000),
        "{reported:?}"
    );
}

#[test]
fn p24_a_call_that_is_cancelled_asks_for_no_further_page() {
    let (asked, seen) = std::sync::mpsc::channel();
    let (asked, released) = (Mutex::new(asked), Arc::new(AtomicUsize::new(0)));
    let wait = Arc::clone(&released);
    let upstream = endless(move |number| {
        if number == 1 {
            let _ = asked.lock().unwrap().send(());
            wait_until("the call is cancelled", || wait.load(SeqCst) > 0);
        }
        format!("[{number}]")
    });
    let mut session = Session::serving(&cursors(), &upstream, &["collect_pages: 50"]);
    let id = session.post(
        "tools/call",
        &json!({"name": "list", "arguments": {"collect_pages": 50}}),
    );
    seen.recv_timeout(TIMEOUT).unwrap();
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // Answered after the notification was read.
    session.request("ping", &json!({}));
    released.store(1, SeqCst);
    session.call("list", &json!({"cursor": "7"}));
    let asked: Vec<usize> = upstream.take_all().iter().map(number).collect();
    assert_eq!(asked, [0, 1, 7]);
}

#[test]
fn p52_each_page_takes_a_turn_of_the_rate() {
    let (spec, upstream) = (cursors(), endless(|number| format!("[{number}]")));
    let mut session = Session::serving(&spec, &upstream, &["collect_pages: 5", "rate_limit: 10"]);
    let started = Instant::now();
    let result = session.call("list", &json!({"collect_pages": 5}));
    assert_eq!(count(&result), 5, "{result}");
    assert!(
        started.elapsed() >= Duration::from_millis(300),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_tool_of_search_mode_collects_pages_and_goes_on_through_its_meta_tool() {
    let (spec, upstream) = (cursors(), endless(|number| format!("[{number}]")));
    let mut session =
        Session::serving(&spec, &upstream, &["collect_pages: 3", "--tools", "search"]);
    let described = session
        .call(
            "describe_operations",
            &json!({"names": ["list"], "detail": "schema"}),
        )
        .to_string();
    assert!(described.contains("collect_pages"), "{described}");
    let result = session.call(
        "call_read",
        &json!({"operation": "list", "arguments": {"collect_pages": 3}}),
    );
    assert_eq!(
        result["structuredContent"]["items"],
        json!([0, 1, 2]),
        "{result}"
    );
    assert!(
        notes(&result).contains(
            r#"call `call_read` with operation `list`, the same arguments and {\"cursor\":\"3\"}"#
        ),
        "{result}"
    );
}

#[test]
fn the_list_of_several_pages_fits_the_output_schema() {
    let items = json!({"type": "array", "maxItems": 1, "items": {"type": "integer"}});
    let body = json!({"type": "object", "required": ["items"], "properties": {"items": items}});
    let cursor = json!([{"name": "cursor", "in": "query", "schema": {"type": "string"}}]);
    let responses =
        json!({"200": {"description": "All", "content": {"application/json": {"schema": body}}}});
    let spec = SpecFile::with_paths(
        &json!({"/list": {"get": {"operationId": "list", "parameters": cursor, "responses": responses}}}),
    );
    let upstream = endless(|number| format!("[{number}]"));
    for mode in ["strict", "lenient", "auto", "off"] {
        let mut session = Session::serving(
            &spec,
            &upstream,
            &["collect_pages: 3", &format!("output_schemas: {mode}")],
        );
        let tool = session.tools().remove(0);
        let result = session.call("list", &json!({"collect_pages": 3}));
        if let Some(schema) = tool.get("outputSchema") {
            assert!(
                jsonschema::is_valid(schema, &result["structuredContent"]),
                "{mode}: {schema} {result}"
            );
        }
        assert_eq!(count(&result), 3, "{mode}: {result}");
    }
}

#[test]
fn the_command_line_takes_it_as_any_argument() {
    let (spec, upstream) = (cursors(), endless(|number| format!("[{number}]")));
    let call = [
        "call",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "collect_pages: 5",
    ];
    let output = run(&[&call[..], &["list", "collect_pages=2"]].concat());
    let shown = stdout(&output) + &stderr(&output);
    assert!(shown.contains("2 pages were collected: 2 items"), "{shown}");
    let output = run(&[&call[..], &["--dry-run", "list", "collect_pages=2"]].concat());
    assert!(
        stdout(&output).starts_with("GET /list HTTP/1.1\n"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_setting_that_no_tool_has_a_use_for_is_reported() {
    let (plain, paged) = (document(&json!({"parameters": ["name"]})), cursors());
    let rule = |pages: u32| {
        SpecFile::new(
            &json!({"overrides": [{"match": {"operation": "list"}, "collect_pages": pages}]})
                .to_string(),
        )
    };
    let (on, off) = (rule(5), rule(0));
    let serve = |spec: &SpecFile, more: &[&str]| {
        let mut session = Session::serving(spec, &Upstream::echo(), more);
        session.tools();
        session.end()
    };
    for (spec, flags, name) in [
        (
            &plain,
            &["collect_pages: 5"][..],
            Some("`collect_pages` changes no tool"),
        ),
        (
            &plain,
            &["--config", on.path()],
            Some("`collect_pages` in `overrides` changes no tool"),
        ),
        (&plain, &["--config", off.path()], None),
        (&plain, &[], None),
        (&paged, &["collect_pages: 5"], None),
        (&paged, &["--config", on.path()], None),
    ] {
        let log = serve(spec, flags);
        match name {
            Some(name) => assert!(log.contains(name), "{flags:?}: {log}"),
            None => assert!(!log.contains("changes no tool"), "{flags:?}: {log}"),
        }
    }
}

/// Issues as an API gives them, with more than a model needs.
fn issue(number: usize) -> Value {
    let login = format!("user-{}", number % 37);
    json!({
        "id": 1_000_000 + number, "number": number, "title": format!("The build of part {} fails at step {}", number % 113, number % 11),
        "state": if number.is_multiple_of(3) { "closed" } else { "open" }, "url": format!("https://api.example/repos/a/b/issues/{number}"),
        "user": {"login": login, "id": number % 37, "avatar_url": format!("https://avatars.example/{login}.png"), "type": "User"},
        "labels": [{"name": "bug", "color": "f29513"}], "comments": number % 9, "created_at": "2026-04-01T13:33:48Z",
        "body": "The log ends after the line that names the step, and nothing else happens. ".repeat(14),
    })
}

#[test]
fn forty_pages_in_one_call_cost_what_the_guide_says() {
    const PAGES: usize = 40;
    let upstream = Upstream::start(Box::new(|request| {
        let page = request
            .path()
            .split_once("&page=")
            .map_or(1, |(_, page)| page.parse().unwrap());
        let issues: Vec<Value> = (page * 100 - 99..=page * 100).map(issue).collect();
        let link = format!("Link: </list?per_page=100&page={}>; rel=\"next\"", page + 1);
        let headers = if page < PAGES {
            vec![link.as_str()]
        } else {
            Vec::new()
        };
        json_reply(&headers, &Value::from(issues).to_string())
    }));
    let spec = document(&json!({"parameters": ["per_page#", "page#"]}));
    let config = json!({"collect_pages": PAGES, "max_result_tokens": 0, "response_filter": "jq",
        "overrides": [{"response": {"fields": ["number", "title", "state", "/user/login"]}}]});
    let config = SpecFile::new(&config.to_string());
    let mut session = Session::serving(&spec, &upstream, &["--config", config.path()]);
    let mut cost = |arguments: Value| {
        let result = session.call("list", &arguments);
        assert_eq!(result["isError"], false, "{result}");
        arguments.to_string().len() + text(&result).len()
    };
    let one_by_one: usize = (1..=PAGES)
        .map(|page| cost(json!({"per_page": 100, "page": page})))
        .sum();
    let collected = cost(json!({"per_page": 100, "collect_pages": PAGES}));
    let filter = "group_by(.user.login) | map({login: .[0].user.login, issues: length})";
    let filtered =
        cost(json!({"per_page": 100, "collect_pages": PAGES, "response_filter": filter}));
    assert_eq!(upstream.take_all().len(), 3 * PAGES);
    let guide = std::fs::read_to_string(project("docs/guides/pages.md")).unwrap();
    let thousands = |number: usize| {
        let digits = number.to_string();
        let groups: Vec<&str> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .map(|group| std::str::from_utf8(group).unwrap())
            .collect();
        groups.join(",")
    };
    let rows = [
        ("one call for each page", PAGES, one_by_one),
        ("`collect_pages`", 1, collected),
        ("`collect_pages` with the filter above", 1, filtered),
    ];
    let rows = rows.map(|(name, calls, bytes)| {
        format!(
            "| {name} | {calls} | {} | {} |",
            thousands(bytes),
            thousands(bytes / 4)
        )
    });
    assert!(
        guide.contains(&rows.join("\n")),
        "docs/guides/pages.md lacks\n{}",
        rows.join("\n")
    );
}
