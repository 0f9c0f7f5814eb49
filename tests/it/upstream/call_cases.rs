//! `tests/cases/call/*.yaml`: arguments in, raw HTTP out, a reply back, a result at the end;
//! through a stdio session. `tests/cases/apis/*.yaml` are of the same form: operations of real
//! APIs, and the requests that their documentation shows.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, project, reply};

#[test]
fn every_call_case_sends_exactly_what_it_says() {
    let count = files("tests/cases/call")
        .iter()
        .map(|(name, file)| run_file(name, file))
        .sum::<usize>();
    assert!(count > 40, "only {count} cases were found");
}

#[test]
fn requests_to_real_apis_are_those_that_their_documentation_shows() {
    let files = files("tests/cases/apis");
    for (name, file) in &files {
        assert!(
            !file["source"].is_null(),
            "{name}: no address of the document"
        );
        assert!(
            !file["documentation"].is_null(),
            "{name}: no page that shows the requests"
        );
    }
    let count = files
        .iter()
        .map(|(name, file)| run_file(name, file))
        .sum::<usize>();
    assert!(count > 60, "only {count} cases were found");
}

#[test]
fn every_rule_for_arguments_and_replies_does_what_its_cases_say() {
    let files = files("tests/cases/overrides");
    let count = files
        .iter()
        .map(|(name, file)| run_file(name, file))
        .sum::<usize>();
    assert!(count > 40, "only {count} cases were found");
}

#[test]
fn every_call_case_gets_the_same_reply_through_its_meta_tool() {
    let mut compared = 0;
    for (name, file) in files("tests/cases/call") {
        let next: Arc<Mutex<Vec<u8>>> = Arc::default();
        let answer = Arc::clone(&next);
        let upstream = Upstream::start(Box::new(move |_| answer.lock().unwrap().clone()));
        let spec = SpecFile::new(&file["document"].to_string());
        let base = format!(
            "{}{}",
            upstream.url,
            file["base_path"].as_str().unwrap_or_default()
        );
        let mut args = vec![
            "serve",
            "--spec",
            spec.path(),
            "--base-url",
            base.as_str(),
            "retries: 0",
            "--tools",
            "search",
        ];
        args.extend(
            file["flags"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str),
        );
        let mut session = Session::start(&args);
        for case in file["cases"].as_array().unwrap() {
            *next.lock().unwrap() = reply_of(&case["reply"]);
            let (tool, arguments) = (
                case["tool"].as_str().unwrap(),
                case.get("arguments").cloned().unwrap_or(json!({})),
            );
            let plain = session.call(tool, &arguments);
            let sent_plainly: Vec<_> = upstream
                .received()
                .iter()
                .map(|request| (request.line.clone(), request.body.clone()))
                .collect();
            let described = session.call("describe_operations", &json!({"names": [tool]}));
            let words = described["content"][0]["text"].as_str().unwrap();
            let meta_tool = words
                .split("called through ")
                .nth(1)
                .and_then(|rest| rest.lines().next())
                .unwrap();
            let through = session.call(
                meta_tool,
                &json!({"operation": tool, "arguments": arguments}),
            );
            // A note on the next page names the tool through which the operation is called.
            let again =
                format!("call `{meta_tool}` with operation `{tool}`, the same arguments and");
            let through = through
                .to_string()
                .replace(&again, "call again with the same arguments and");
            assert_eq!(plain.to_string(), through, "{name}: {}", case["name"]);
            let sent: Vec<_> = upstream
                .received()
                .iter()
                .map(|request| (request.line.clone(), request.body.clone()))
                .collect();
            assert_eq!(
                sent[sent_plainly.len()..],
                sent_plainly[sent_plainly.len() * 2 - sent.len()..],
                "{name}: {}",
                case["name"]
            );
            compared += 1;
        }
    }
    assert!(compared > 40, "only {compared} cases were compared");
}

/// The case files of a folder and their names, in the order of the names.
fn files(folder: &str) -> Vec<(String, Value)> {
    let mut paths: Vec<_> = std::fs::read_dir(project(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = serde_yaml::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (
            path.file_stem().unwrap().to_string_lossy().into_owned(),
            file,
        )
    };
    paths.into_iter().map(read).collect()
}

fn run_file(name: &str, file: &Value) -> usize {
    let next: Arc<Mutex<Vec<u8>>> = Arc::default();
    let answer = Arc::clone(&next);
    let upstream = Upstream::start(Box::new(move |_| answer.lock().unwrap().clone()));
    let spec = SpecFile::new(&file["document"].to_string());
    let base = format!(
        "{}{}",
        upstream.url,
        file["base_path"].as_str().unwrap_or_default()
    );
    // One case, one request; what is sent again is another test's matter.
    let mut args = vec![
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        base.as_str(),
        "retries: 0",
    ];
    args.extend(
        file["flags"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str),
    );
    let config = file
        .get("config")
        .map(|config| SpecFile::new(&config.to_string()));
    if let Some(config) = &config {
        args.extend(["--config", config.path()]);
    }
    let variables = file["env"].as_object().into_iter().flatten();
    let variables: Vec<(&str, &str)> = variables
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect();
    let mut session = Session::start_with(&args, &variables);
    check_listed(name, file, &mut session);
    let cases = file["cases"].as_array().unwrap();
    for case in cases {
        let title = format!("{name}: {}", case["name"].as_str().unwrap());
        *next.lock().unwrap() = reply_of(&case["reply"]);
        let result = session.call(
            case["tool"].as_str().unwrap(),
            case.get("arguments").unwrap_or(&json!({})),
        );
        check_request(&title, case, &upstream, &result);
        check_result(&title, case, &result);
    }
    cases.len()
}

/// Checks the listed tools: the names of their arguments, the required ones, the schemas of some,
/// and texts that they do not contain.
fn check_listed(name: &str, file: &Value, session: &mut Session) {
    let Some(listed) = file["listed"].as_object() else {
        return;
    };
    let tools = session.tools();
    for (tool, expected) in listed {
        let found = tools
            .iter()
            .find(|found| found["name"] == *tool)
            .unwrap_or_else(|| panic!("{name}: no {tool}"));
        let schema = &found["inputSchema"];
        let keys: Vec<&String> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
            .collect();
        if let Some(properties) = expected.get("properties") {
            assert_eq!(json!(keys), *properties, "{name}: properties of {tool}");
        }
        if let Some(required) = expected.get("required") {
            assert_eq!(schema["required"], *required, "{name}: required of {tool}");
        }
        for (key, expected) in expected["schemas"].as_object().into_iter().flatten() {
            assert_eq!(
                schema["properties"][key], *expected,
                "{name}: {key} of {tool}"
            );
        }
        if let Some(output) = expected.get("output") {
            let properties = found["outputSchema"]
                .get("properties")
                .cloned()
                .unwrap_or_default();
            let keys: Vec<&String> = properties
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key)
                .collect();
            assert_eq!(json!(keys), *output, "{name}: output of {tool}");
        }
        let text = found.to_string();
        for never in expected["never"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            assert!(
                !text.contains(never),
                "{name}: {tool} shows {never}: {text}"
            );
        }
    }
}

fn reply_of(reply_case: &Value) -> Vec<u8> {
    if let Some(raw) = reply_case["raw"].as_str() {
        return raw.replace('\n', "\r\n").into_bytes();
    }
    if reply_case.is_null() {
        return reply(200, &["Content-Type: application/json"], b"{\"ok\":true}");
    }
    let headers: Vec<&str> = reply_case["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let status = reply_case["status"].as_u64().unwrap_or(200);
    reply(
        u16::try_from(status).unwrap(),
        &headers,
        reply_case["body"].as_str().unwrap_or_default().as_bytes(),
    )
}

fn check_request(title: &str, case: &Value, upstream: &Upstream, result: &Value) {
    let Some(request) = case.get("request") else {
        upstream.take_one();
        return;
    };
    if request.is_null() {
        assert!(
            upstream.received().is_empty(),
            "{title}: nothing was to be sent, but {:?}",
            upstream.received()
        );
        return;
    }
    assert!(
        !upstream.received().is_empty(),
        "{title}: nothing was sent: {result}"
    );
    let received = upstream.take_one();
    assert_eq!(
        received.line,
        format!("{} HTTP/1.1", request["line"].as_str().unwrap()),
        "{title}"
    );
    for (header, value) in request["headers"].as_object().into_iter().flatten() {
        assert_eq!(
            received.header(header),
            value.as_str(),
            "{title}: header {header}: {:?}",
            received.headers
        );
    }
    if let Some(body) = request["body"].as_str() {
        // A boundary depends on the body; cases write it as BOUNDARY.
        let boundary = received
            .header("content-type")
            .and_then(|text| text.split_once("boundary="))
            .map_or("\u{0}", |(_, boundary)| boundary);
        let text = String::from_utf8_lossy(&received.body)
            .replace(boundary, "BOUNDARY")
            .replace("\r\n", "\n");
        assert_eq!(text, body, "{title}: body");
    }
}

fn check_result(title: &str, case: &Value, result: &Value) {
    for (key, expected) in case["result"].as_object().into_iter().flatten() {
        assert_eq!(&result[key], expected, "{title}: {key} of {result:#}");
    }
    let texts = case["error"].as_array().cloned().unwrap_or_else(|| {
        case["error"]
            .as_str()
            .map(Value::from)
            .into_iter()
            .collect()
    });
    if !texts.is_empty() {
        assert_eq!(result["isError"], true, "{title}: {result:#}");
    }
    for text in texts {
        let said = result["content"][0]["text"].as_str().unwrap();
        assert!(said.contains(text.as_str().unwrap()), "{title}: {said}");
    }
    check_forms(title, result);
}

/// Both forms say the same: there is one text block, and it is the structured content or holds the
/// text of it.
fn check_forms(title: &str, result: &Value) {
    let blocks = result["content"].as_array().unwrap();
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    let [text] = texts[..] else {
        panic!("{title}: {result:#}")
    };
    if let Some(content) = result["structuredContent"].as_object() {
        let is_same = serde_json::from_str::<Value>(text)
            .is_ok_and(|json| json == result["structuredContent"]);
        let holds_text = content
            .get("result")
            .and_then(Value::as_str)
            .is_some_and(|plain| text.starts_with(plain.trim_end()));
        assert!(is_same || holds_text, "{title}: {result:#}");
    }
}
