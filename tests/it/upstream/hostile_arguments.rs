//! Hostile and odd arguments: a value fills its own place in the request, exactly, or it is refused
//! before anything is sent.

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, project};

/// Values that are odd but legal, which must not be refused.
fn odd_values() -> Vec<String> {
    let listed = std::fs::read(project("tests/cases/hostile/odd_values.json")).unwrap();
    let mut values: Vec<String> = serde_json::from_slice(&listed).unwrap();
    values.extend(["x".repeat(512), "é".repeat(256), "💥".repeat(128)]);
    values
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .unwrap()
        .into_owned()
}

/// Key and value of every pair of a query or a form (URL Standard,
/// application/x-www-form-urlencoded).
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let part = |part: &str| decoded(&part.replace('+', " "));
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            pair.split_once('=').map_or_else(
                || (part(pair), String::new()),
                |(key, value)| (part(key), part(value)),
            )
        })
        .collect()
}

pub(super) fn session(paths: &Value, upstream: &Upstream) -> (Session, SpecFile) {
    let spec = SpecFile::with_paths(paths);
    (Session::serving(&spec, upstream, &[]), spec)
}

/// Path values that an attacker, or a misled model, may try.
fn hostile_values() -> Vec<String> {
    let seeds = [
        "..",
        ".",
        "../",
        "..\\",
        "/..",
        "../../admin",
        "a/../../b",
        "//evil.example",
        "https://evil.example/",
        "\\\\evil",
        "@evil.example",
        "a@evil.example:80",
        "?x=1",
        "#x",
        "a?b#c",
        ";x=1",
        "..;/",
        "%2e%2e",
        "%2E.",
        ".%2e/",
        "%2f%2fevil",
        "%5c",
        "%00",
        "%0d%0aX: y",
        "\r\nX: y",
        "\n",
        "\t",
        ".\t.",
        "\u{0}",
        "{petId}",
        "{{7*7}}",
        "${PATH}",
        "$(id)",
        "'--",
        "\"",
        "<x>",
        " ",
        "%",
        "%%",
        "%zz",
        "a\u{202e}b",
        "日本",
        "💥",
    ];
    let mut values: Vec<String> = seeds.iter().map(|seed| (*seed).to_owned()).collect();
    for seed in seeds {
        let once = percent(seed);
        values.push(percent(&once));
        values.push(once);
        values.push(format!("a{seed}"));
        values.push(format!("{seed}b"));
    }
    values
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn p1_no_path_value_leaves_its_segment() {
    let upstream = Upstream::echo();
    let spec = SpecFile::with_paths(&json!({
        "/items/{x}": {"get": {"operationId": "one"}}, "/items/{x}/edit": {"get": {"operationId": "middle"}}, "/f/a.{x}.b": {"get": {"operationId": "part"}},
    }));
    let base = format!("{}/base/v1", upstream.url);
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &base]);
    let mut sent = 0;
    for value in hostile_values() {
        for (tool, before, after) in [
            ("one", "/base/v1/items/", ""),
            ("middle", "/base/v1/items/", "/edit"),
            ("part", "/base/v1/f/a.", ".b"),
        ] {
            let result = session.call(tool, &json!({"x": value}));
            if result["isError"] == true {
                assert!(
                    upstream.received().is_empty(),
                    "{tool} {value:?} was refused and still sent"
                );
                continue;
            }
            sent += 1;
            let received = upstream.take_one();
            let path = received.path();
            let inner = path
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
                .unwrap_or_else(|| panic!("{tool} {value:?}: {path}"));
            assert!(
                !inner.contains(['/', '?', '#', '\\', ';']) && !inner.is_empty(),
                "{tool} {value:?}: {path}"
            );
            let once = percent_encoding::percent_decode_str(inner)
                .decode_utf8()
                .unwrap();
            assert_eq!(once, value, "the value arrives as it was");
            // However often a sloppy server decodes, and whatever it takes for a slash, it finds no
            // dot segment.
            let mut read = inner.to_owned();
            for _ in 0..4 {
                let dots = read
                    .split(['/', '\\'])
                    .map(|segment| segment.split(';').next().unwrap_or_default());
                assert!(
                    !dots
                        .into_iter()
                        .any(|segment| segment == "." || segment == ".."),
                    "{tool} {value:?}: {path}"
                );
                read = percent_encoding::percent_decode_str(&read)
                    .decode_utf8_lossy()
                    .into_owned();
            }
        }
    }
    assert!(3 * hostile_values().len() >= 508);
    assert!(sent > 200, "most values are odd, but legal data: {sent}");
}

#[test]
fn p2_odd_but_legal_values_arrive_byte_for_byte_in_every_place() {
    let upstream = Upstream::echo();
    let (mut session, _spec) = session(
        &json!({"/items/{x}": {"get": {"operationId": "path"}}, "/q": {"get": {"operationId": "query", "parameters": [{"name": "x", "in": "query", "schema": {"type": "string"}}]}}}),
        &upstream,
    );
    let values = odd_values();
    assert!(values.len() >= 114, "{}", values.len());
    for value in &values {
        for tool in ["path", "query"] {
            let result = session.call(tool, &json!({"x": value}));
            assert_eq!(result["isError"], false, "{tool} {value:?}: {result}");
            let received = upstream.take_one();
            let arrived = match received.path().strip_prefix("/items/") {
                Some(segment) => decoded(segment),
                None => match &pairs(received.path().strip_prefix("/q?").unwrap())[..] {
                    [(key, value)] if key == "x" => value.clone(),
                    other => panic!("{value:?}: {other:?}"),
                },
            };
            assert_eq!(&arrived, value, "{tool}: {}", received.line);
        }
    }
}

#[test]
fn p3_empty_and_mistyped_values_are_refused_before_anything_is_sent() {
    let upstream = Upstream::echo();
    let (mut session, _spec) = session(
        &json!({
            "/items/{id}": {"delete": {"operationId": "text", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}},
            "/numbers/{id}": {"delete": {"operationId": "number", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}]}},
            "/anything/{id}": {"delete": {"operationId": "anything", "parameters": [{"name": "id", "in": "path", "required": true}]}},
            "/lists/{id}": {"delete": {"operationId": "list", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "array", "items": {"type": "string"}}}]}},
        }),
        &upstream,
    );
    for tool in ["text", "number", "anything", "list"] {
        let mut refused = vec![
            json!({}),
            json!({"id": ""}),
            json!({"id": null}),
            // Another name, which no repair reads as `id`.
            json!({"key": "7"}),
            json!({"id": "7", "more": 1}),
        ];
        if tool == "list" {
            refused.extend([
                json!({"id": []}),
                json!({"id": [null]}),
                json!({"id": [""]}),
                json!({"id": {"a": "b"}}),
            ]);
        } else {
            refused.extend([
                json!({"id": []}),
                json!({"id": {}}),
                json!({"id": {"a": [1]}}),
            ]);
        }
        if tool == "number" {
            refused.extend([
                json!({"id": "x"}),
                json!({"id": 1.5}),
                json!({"id": "7/8"}),
                json!({"id": true}),
                json!({"id": [7, 8]}),
            ]);
        }
        for arguments in refused {
            let result = session.call(tool, &arguments);
            assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
            assert!(
                upstream.received().is_empty(),
                "{tool} {arguments} was refused and still sent"
            );
        }
    }
    assert_eq!(session.call("text", &json!({"id": "7"}))["isError"], false);
}

#[test]
fn p4_a_value_is_never_read_as_a_template() {
    let upstream = Upstream::echo();
    let (mut session, _spec) = session(
        &json!({"/{x}/{y}/{xy}": {"get": {"operationId": "get", "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}]}}}),
        &upstream,
    );
    for value in [
        "{y}", "{xy}", "{x}", "{{y}}", "%7By%7D", "${y}", "{+y}", "{q}", "{y}{y}",
    ] {
        let arguments = json!({"x": value, "y": "secret", "xy": value, "q": value});
        assert_eq!(session.call("get", &arguments)["isError"], false, "{value}");
        let received = upstream.take_one();
        let (segments, query) = received.path().split_once('?').unwrap();
        let segments: Vec<String> = segments.split('/').skip(1).map(decoded).collect();
        assert_eq!(segments, [value, "secret", value]);
        assert_eq!(pairs(query), [("q".to_owned(), value.to_owned())]);
    }
}

/// Undeclared arguments with which other servers of this kind were made to send requests elsewhere.
const UNDECLARED: [&str; 33] = [
    "base_url",
    "baseUrl",
    "base-url",
    "url",
    "uri",
    "URL",
    "server",
    "server_url",
    "servers",
    "host",
    "Host",
    "hostname",
    "port",
    "scheme",
    "protocol",
    "origin",
    "authority",
    "endpoint",
    "path",
    "method",
    "httpMethod",
    "headers",
    "header",
    "query",
    "cookies",
    "auth",
    "authorization",
    "proxy",
    "timeout",
    "_meta",
    "__proto__",
    "options",
    "config",
];

/// Paths that would lead elsewhere if they were taken for something else.
fn templates(host: &str) -> Vec<String> {
    vec![
        format!("//{host}/x"),
        format!("///{host}/x"),
        format!("/\\\\{host}/x"),
        format!("\\\\{host}\\x"),
        format!("/@{host}/x"),
        format!("@{host}/x"),
        format!(":80@{host}/x"),
        format!("/..//{host}/x"),
        format!("/../../{host}"),
        format!("/%2e%2e//{host}"),
        format!("/%2f%2f{host}"),
        format!("/.//{host}"),
        format!("http://{host}/x"),
        format!("HTTP://{host}/x"),
        format!("http:{host}/x"),
        format!("/http://{host}/x"),
        format!("\t//{host}/x"),
        format!("/\t/{host}/x"),
        format!("/\n/{host}/x"),
        format!("/\r/{host}/x"),
        format!("?u=http://{host}"),
        format!("#@{host}"),
        format!("/a?x=1@{host}"),
        format!("/{{x}}//{host}"),
        format!("{{x}}{host}"),
        "/{x}/{y}".into(),
        "//{x}/{y}".into(),
        "/{x}:{y}@/".into(),
    ]
}

#[test]
fn p5_no_argument_and_no_template_decides_the_host() {
    let (upstream, other) = (Upstream::echo(), Upstream::echo());
    let host = other.host();
    let templates = templates(host);
    assert!(templates.len() >= 25);
    let servers =
        json!([{"url": other.url}, {"url": "//{host}", "variables": {"host": {"default": host}}}]);
    let paths: serde_json::Map<String, Value> = templates
        .iter()
        .enumerate()
        .map(|(number, path)| {
            let operation = json!({"operationId": format!("op_{number}"), "servers": servers, "parameters": [
                {"name": "Host", "in": "header"}, {"name": "X-Forwarded-Host", "in": "header"}]});
            (path.clone(), json!({"servers": servers, "get": operation}))
        })
        .collect();
    let spec =
        SpecFile::new(&json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": servers, "paths": paths}).to_string());
    let mut session =
        Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    let tools: Vec<(String, Vec<String>)> = session
        .tools()
        .iter()
        .map(|tool| {
            let keys = tool["inputSchema"]["properties"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            (tool["name"].as_str().unwrap().to_owned(), keys)
        })
        .collect();
    assert!(
        tools.len() >= 2,
        "some of these templates are legal: {tools:?}"
    );
    for (tool, keys) in &tools {
        for value in [
            host,
            &other.url,
            &format!("//{host}"),
            &format!("a@{host}"),
            &format!("\\\\{host}"),
        ] {
            let arguments: Value = keys
                .iter()
                .map(|key| (key.clone(), json!(value)))
                .collect::<serde_json::Map<_, _>>()
                .into();
            session.call(tool, &arguments);
        }
        let all: serde_json::Map<String, Value> = UNDECLARED
            .iter()
            .map(|name| ((*name).to_owned(), json!(other.url)))
            .collect();
        session.call(tool, &all.into());
        for name in UNDECLARED {
            let mut arguments: serde_json::Map<String, Value> =
                keys.iter().map(|key| (key.clone(), json!("1"))).collect();
            let known = arguments.contains_key(name);
            arguments.insert(name.into(), json!(other.url));
            let sent_before = upstream.received().len();
            let result = session.call(tool, &arguments.into());
            assert!(
                known || result["isError"] == true,
                "{tool} {name}: {result}"
            );
            assert!(
                known || upstream.received().len() == sent_before,
                "{tool} {name} was refused and still sent"
            );
        }
    }
    assert!(other.received().is_empty(), "{:?}", other.received());
    for received in upstream.received() {
        assert_eq!(received.header("host"), Some(upstream.host()));
    }
}

#[test]
fn p1_a_value_spans_segments_only_where_the_operator_allows_slashes() {
    let upstream = Upstream::echo();
    let get = |id: &str| json!({"get": {"operationId": id}});
    let spec = SpecFile::with_paths(&json!({
        "/v1/{name}": get("get_any"), "/v1/{name}:read": get("read"), "/v1/{other}/list": get("list"),
        "/v1/projects/{p}:purge": {"get": {"operationId": "purge", "x-mcp": {"slashes": ["p"]}}}, "/v2/{name}": get("encoded"),
        "/v1/rejected/x": {"get": "not an operation"},
        "/v1/with/slash/": get("with_slash"), "/v1/head/x": {"head": {"operationId": "headed"}},
        "/files/{path}": {"get": {"operationId": "list_files"}, "delete": {"operationId": "delete_files"}},
        "/all": get("all"), "/all/{path}": {"get": {"operationId": "one_of_all"}},
        "/admin/secret": {"get": {"operationId": "elsewhere", "servers": [{"url": format!("{}/base/v1", upstream.url)}]}},
    }));
    let config = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    let rules = "overrides:\n  - {match: {path: ['/v1/{name}', '/v1/{name}:read']}, slashes: [name]}\n  - {match: {path: ['/files/{path}', '/all/{path}']}, slashes: [path]}\n  - {match: {operation: purge}, enabled: false}\n";
    std::fs::write(config.path(), rules).unwrap();
    let base = format!("{}/base", upstream.url);
    let path = config.path().to_str().unwrap();
    let mut session = Session::start(&[
        "serve",
        "--config",
        path,
        "--spec",
        spec.path(),
        "--base-url",
        &base,
    ]);
    for (tool, value, expected) in [
        (
            "get_any",
            "projects/p/topics/t",
            "/base/v1/projects/p/topics/t",
        ),
        (
            "get_any",
            "projects/a%2Fb/c\\d",
            "/base/v1/projects/a%252Fb/c%5Cd",
        ),
        ("get_any", "one", "/base/v1/one"),
        ("read", "projects/p", "/base/v1/projects/p:read"),
        ("encoded", "projects/p", "/base/v2/projects%2Fp"),
    ] {
        session.call(tool, &json!({"name": value}));
        assert_eq!(upstream.take_one().path(), expected, "{tool} {value}");
    }
    session.call("list_files", &json!({"path": ""}));
    assert_eq!(upstream.take_one().path(), "/base/files/");
    for (tool, said) in [
        ("delete_files", "must not be empty"),
        ("one_of_all", "another operation"),
    ] {
        let result = session.call(tool, &json!({"path": ""}));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains(said) && upstream.received().is_empty(),
            "{tool}: {text}"
        );
    }
    for (value, said) in [
        ("projects/../p", "as a path segment"),
        ("projects/%2e%2e/p", "as a path segment"),
        ("projects//p", "empty segment"),
        ("/projects/p", "empty segment"),
        ("projects/p/", "empty segment"),
        ("projects/p:purge", "another operation"),
        ("Projects/p/q:PURGE", "another operation"),
        ("projects/list", "another operation"),
        ("projects/p:read", "another operation"),
        ("with/slash", "another operation"),
        ("rejected/x", "another operation"),
        ("head/x", "another operation"),
        ("admin/secret", "another operation"),
    ] {
        let result = session.call("get_any", &json!({"name": value}));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(said), "{value}: {text}");
        assert!(upstream.received().is_empty(), "{value} was sent");
    }
}

#[test]
fn p1_no_value_reaches_an_operation_that_is_left_out_or_confirmed() {
    let upstream = Upstream::echo();
    let get = |id: &str| json!({"get": {"operationId": id}});
    let post = |id: &str| json!({"post": {"operationId": id, "summary": "Starts a box."}});
    let spec = SpecFile::with_paths(&json!({
        "/users/{id}": get("get_user"), "/users/{id}/keys": get("get_keys"), "/users/me": get("get_me"),
        "/reports/{id}": get("get_report"), "/reports/payroll": get("get_payroll"), "/files/{path}": get("get_file"),
        "/projects/{id}": get("get_project"), "/projects/{id}/issues": get("get_issues"),
        "/boxes/{id}": post("start_box"),
        "/boxes/{id}/kill": {"post": {"operationId": "kill_box", "summary": "Kills a box."}},
        "/boxes/purge": {"post": {"operationId": "purge_boxes", "summary": "Deletes all boxes."}},
    }));
    let config = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(
        config.path(),
        "tool_exclude: [get_keys, get_payroll]\nconfirm: destructive\n",
    )
    .unwrap();
    let path = config.path().to_str().unwrap();
    let arguments = [
        "serve",
        "--config",
        path,
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
    ];
    let mut session = Session::start(&arguments);
    for (tool, values) in [
        (
            "get_user",
            &[
                "7/keys",
                "7\\keys",
                "7%2Fkeys",
                "7/keys/",
                "7/KEYS",
                "7/keys.json",
                "7/keys;a=b",
                "7;a=b/keys",
                "7//keys",
                "7/keys\0",
                "7/keys\n",
                "7/keys.geojson",
                "7/keyſ",
                "7/keys ",
                "a/b/keys",
                "7%252Fkeys",
            ][..],
        ),
        (
            "get_report",
            &[
                "payroll",
                "Payroll",
                "payroll.json",
                "payroll/",
                "payroll;x",
                "payroll.",
                "%70ayroll",
            ],
        ),
        ("start_box", &["7/kill", "purge", "7%5Ckill"]),
    ] {
        for value in values {
            let result = session.call(tool, &json!({"id": value}));
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(
                text.contains("another operation"),
                "{tool} {value:?}: {text}"
            );
            assert!(upstream.received().is_empty(), "{tool} {value:?} was sent");
        }
    }
    // Neighbours: nothing is closed there.
    for (tool, argument, value, expected) in [
        ("get_user", "id", "me", "/users/me"),
        ("get_user", "id", "7/photos", "/users/7%2Fphotos"),
        (
            "get_project",
            "id",
            "group/project",
            "/projects/group%2Fproject",
        ),
        (
            "get_project",
            "id",
            "group/issues",
            "/projects/group%2Fissues",
        ),
        ("get_file", "path", "a/keys", "/files/a%2Fkeys"),
        ("get_report", "id", "payrolls", "/reports/payrolls"),
        ("start_box", "id", "7/restart", "/boxes/7%2Frestart"),
    ] {
        session.call(tool, &json!({argument: value}));
        assert_eq!(upstream.take_one().path(), expected, "{tool} {value}");
    }
}
