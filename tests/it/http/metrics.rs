//! `--metrics-bind`: what Prometheus reads, and who may.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::http_server::answer_header;
use crate::support::{
    CALL, HttpServer, Session, SpecFile, TIMEOUT, Upstream, call_message, listener, petstore,
    project, reply, stateless_meta, wait_until, within,
};

/// Every metric, and the labels that it has.
const METRICS: [(&str, &[&str]); 19] = [
    (
        "mcp_server_operation_duration_seconds",
        &[
            "mcp_method_name",
            "gen_ai_tool_name",
            "error_type",
            "network_transport",
            "mcp_protocol_version",
        ],
    ),
    (
        "http_client_request_duration_seconds",
        &[
            "http_request_method",
            "http_response_status_code",
            "error_type",
            "server_address",
            "server_port",
        ],
    ),
    ("openapi_mcp_inflight", &["server_address"]),
    ("openapi_mcp_queue_depth", &["server_address"]),
    ("openapi_mcp_breaker_open", &["server_address"]),
    ("openapi_mcp_retries_total", &[]),
    ("openapi_mcp_results_cut_total", &[]),
    ("openapi_mcp_masked_total", &["kind"]),
    ("openapi_mcp_rejected_total", &["reason"]),
    ("openapi_mcp_spec_reload_total", &["outcome"]),
    ("openapi_mcp_oauth_refresh_total", &["outcome"]),
    ("openapi_mcp_approvals_total", &["outcome"]),
    ("openapi_mcp_exchanges_total", &["outcome"]),
    ("openapi_mcp_exchange_duration_seconds", &[]),
    ("openapi_mcp_audit_lost_total", &[]),
    ("openapi_mcp_spans_dropped_total", &[]),
    ("openapi_mcp_shared_state_errors_total", &["what"]),
    ("openapi_mcp_tools", &["effect"]),
    ("openapi_mcp_build_info", &["version"]),
];

/// Returns the address of a server's metrics, by its log.
fn metrics_address(log: &str) -> String {
    let (_, rest) = log.split_once("metrics at http://").expect("the address");
    rest.split('/').next().unwrap().to_owned()
}

/// One request to an address; `lines` are header lines. Gives the whole answer.
fn ask(address: &str, first: &str, lines: &[&str]) -> String {
    use std::io::{Read as _, Write as _};

    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!("{first} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub fn scrape(address: &str) -> String {
    let answer = ask(address, "GET /metrics", &["Host: 127.0.0.1"]);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn call(server: &HttpServer, tool: &str) {
    let (status, answer) = server.post(
        &["MCP-Protocol-Version: 2025-11-25"],
        &call_message(tool, "{}"),
    );
    assert!(status.contains("200"), "{status} {answer}");
}

fn started(args: &[&str]) -> (HttpServer, String) {
    let server = HttpServer::start(&[&["--metrics-bind", "127.0.0.1:0"], args].concat());
    let address = metrics_address(&server.logged("metrics at http://"));
    (server, address)
}

#[test]
fn every_metric_and_label_is_exported_and_documented() {
    let spec = SpecFile::with_paths(&json!({
        "/a": {"get": {"operationId": "a"}, "delete": {"operationId": "b"}},
        "/broken": {"get": {"operationId": "broken"}},
    }));
    let upstream = Upstream::start(Box::new(|request| {
        let status = if request.line.contains("/broken") {
            500
        } else {
            200
        };
        reply(
            status,
            &["Content-Type: application/json"],
            b"{\"ok\":true}",
        )
    }));
    let rules = SpecFile::new("overrides: [{response: {mask: [email]}}]");
    let (server, address) = started(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--config",
        rules.path(),
    ]);
    ["a", "a", "broken", "no_such_tool"]
        .into_iter()
        .for_each(|tool| call(&server, tool));
    let text = scrape(&address);
    let documented = std::fs::read_to_string(project("docs/reference/metrics.md")).unwrap();
    for (name, labels) in METRICS {
        assert!(
            documented.contains(&format!("`{name}`")),
            "{name} is not documented"
        );
        for label in labels {
            assert!(
                documented.contains(&format!("`{label}`")),
                "{label} of {name} is not documented"
            );
        }
        let samples: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
        assert!(!samples.is_empty(), "{name} is missing from {text}");
        for label in labels {
            assert!(
                samples
                    .iter()
                    .all(|line| line.contains(&format!("{label}=\""))),
                "{label} of {name}: {samples:?}"
            );
        }
    }
    // What may never happen is counted from 0: an increase is seen between two values alone.
    for reason in [
        "reason=\"no_token\"",
        "reason=\"invalid_token\"",
        "reason=\"several_tokens\"",
        "reason=\"insufficient_scope\"",
        "reason=\"keys_unavailable\"",
        "reason=\"rate_limit\"",
        "reason=\"host_or_origin\"",
        "reason=\"memory\"",
        "what=\"limit\"",
        "what=\"refresh\"",
        "what=\"confirm\"",
        "openapi_mcp_spec_reload_total{outcome=\"failed\"",
        "openapi_mcp_oauth_refresh_total{outcome=\"failed\"",
    ] {
        let line = text.lines().find(|line| line.contains(reason));
        assert!(
            line.is_some_and(|line| line.ends_with("} 0")),
            "{reason}: {text}"
        );
    }
    for (name, buckets) in [
        (
            "mcp_server_operation_duration_seconds",
            "0.01 0.02 0.05 0.1 0.2 0.5 1.0 2.0 5.0 10.0 30.0 60.0 120.0 300.0 +Inf",
        ),
        (
            "http_client_request_duration_seconds",
            "0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1.0 2.5 5.0 7.5 10.0 +Inf",
        ),
    ] {
        let lines = text
            .lines()
            .filter(|line| line.starts_with(&format!("{name}_bucket")));
        let bounds: Vec<&str> = lines
            .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next())
            .take(15)
            .collect();
        assert_eq!(
            bounds.join(" "),
            buckets,
            "the conventions' buckets of {name}"
        );
    }
    let documents = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for name in documents {
        assert!(
            METRICS.iter().any(|(known, _)| *known == name),
            "{name} is not in the table of this test"
        );
    }
    let counts = |labels: &str| {
        text.lines()
            .find(|line| {
                line.starts_with("mcp_server_operation_duration_seconds_count{")
                    && line.contains(labels)
            })
            .map(str::to_owned)
    };
    let of_a = counts(
        "gen_ai_tool_name=\"a\",error_type=\"\",network_transport=\"tcp\",mcp_protocol_version=\"2025-11-25\"",
    );
    assert!(
        of_a.as_deref().is_some_and(|line| line.ends_with(" 2")),
        "{of_a:?}\n{text}"
    );
    assert!(
        counts("gen_ai_tool_name=\"broken\",error_type=\"tool_error\"").is_some(),
        "{text}"
    );
    assert!(
        counts("gen_ai_tool_name=\"_other\",error_type=\"-32602\"").is_some(),
        "{text}"
    );
    assert!(
        text.contains("openapi_mcp_tools{effect=\"read\"} 2")
            && text.contains("openapi_mcp_tools{effect=\"destructive\"} 1"),
        "{text}"
    );
    assert!(
        text.contains(
            "http_response_status_code=\"500\",error_type=\"500\",server_address=\"127.0.0.1\""
        ),
        "{text}"
    );
}

/// An escape changes nothing but the way of a call: rmcp answers it.
#[test]
fn calls_are_counted_alike_whichever_way_they_take() {
    let spec = SpecFile::with_paths(&json!({
        "/a": {"get": {"operationId": "a", "parameters": [{"name": "n", "in": "query", "schema": {"type": "integer"}}]}},
        "/broken": {"get": {"operationId": "broken"}},
    }));
    let upstream = Upstream::start(Box::new(|request| {
        let status = if request.line.contains("/broken") {
            500
        } else {
            200
        };
        reply(
            status,
            &["Content-Type: application/json"],
            b"{\"ok\":true}",
        )
    }));
    let counted = |method: &str| {
        let (server, address) = started(&["--spec", spec.path(), "--base-url", &upstream.url]);
        for (tool, arguments) in [
            ("a", json!({})),
            ("a", json!({"n": 1})),
            ("a", json!({"n": "x"})),
            ("broken", json!({})),
        ] {
            for version in [None, Some("2025-06-18"), Some("2026-07-28")] {
                let version_line =
                    version.map(|version| format!("MCP-Protocol-Version: {version}"));
                let name_line = format!("Mcp-Name: {tool}");
                let mut lines: Vec<&str> = version_line.as_deref().into_iter().collect();
                let mut parameters = json!({"name": tool, "arguments": arguments});
                if version == Some("2026-07-28") {
                    lines.extend(["Mcp-Method: tools/call", &name_line]);
                    parameters["_meta"] = stateless_meta(&json!({}));
                }
                let message = format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{parameters}}}"#
                );
                let (status, answer) = server.post(&lines, &message);
                assert!(
                    status.contains("200") && answer.contains("\"result\""),
                    "{status} {answer}"
                );
            }
        }
        counts_of_calls(&address)
    };
    let plain = counted("tools/call");
    assert!(
        plain
            .iter()
            .any(|line| line.contains("2025-03-26") && line.ends_with(" 2")),
        "{plain:?}"
    );
    assert_eq!(plain, counted(r"tools\/call"));
}

#[test]
fn calls_over_stdio_are_counted_alike_whichever_way_they_take() {
    let counted = |method: &str| {
        let mut session = Session::start(&[
            "serve",
            "--spec",
            &petstore(),
            "--mock",
            "--metrics-bind",
            "127.0.0.1:0",
        ]);
        let address = metrics_address(&session.logged("metrics at"));
        for (arguments, meta) in [
            (json!({"petId": 7}), Value::Null),
            (json!({"petId": 8}), stateless_meta(&json!({}))),
            (json!({"petId": "x"}), Value::Null),
        ] {
            let mut parameters = json!({"name": "get_pet", "arguments": arguments});
            if !meta.is_null() {
                parameters["_meta"] = meta;
            }
            session.send_text(&format!(
                r#"{{"jsonrpc":"2.0","id":"call","method":"{method}","params":{parameters}}}"#
            ));
            assert!(session.receive()["result"].is_object());
        }
        counts_of_calls(&address)
    };
    let plain = counted("tools/call");
    assert_eq!(
        plain.len(),
        3,
        "one for each version and outcome: {plain:?}"
    );
    assert!(
        plain.iter().any(|line| line.contains("2025-11-25")),
        "{plain:?}"
    );
    assert_eq!(plain, counted(r"tools\/call"));
}

/// Returns the counts of calls, with their labels.
fn counts_of_calls(address: &str) -> Vec<String> {
    let text = scrape(address);
    let is_count = |line: &&str| {
        line.starts_with("mcp_server_operation_duration_seconds_count{")
            && line.contains("tools/call")
    };
    let mut counts: Vec<String> = text.lines().filter(is_count).map(str::to_owned).collect();
    counts.sort();
    counts
}

#[test]
fn every_method_of_mcp_is_measured_and_unknown_ones_are_other() {
    let (server, address) = started(&["--spec", &petstore(), "--mock"]);
    let initialize = crate::support::initialize_parameters(&json!({}));
    for (method, parameters) in [
        ("initialize", initialize),
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "file:///a"})),
        ("logging/setLevel", json!({"level": "info"})),
        ("prompts/get", json!({"name": "a"})),
        ("resources/subscribe", json!({"uri": "file:///a"})),
        ("resources/unsubscribe", json!({"uri": "file:///a"})),
        ("no/such/method", json!({})),
        ("another/of/these", json!({})),
        ("tools/call", json!({"name": 7})),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
        server.post(&["MCP-Protocol-Version: 2025-11-25"], &body.to_string());
    }
    let text = scrape(&address);
    for (method, error, count) in [
        ("initialize", "", 1),
        ("ping", "", 1),
        ("tools/list", "", 1),
        ("prompts/list", "", 1),
        ("resources/list", "", 1),
        ("resources/templates/list", "", 1),
        ("resources/read", "-32602", 1),
        ("logging/setLevel", "-32601", 1),
        ("prompts/get", "-32601", 1),
        ("resources/subscribe", "-32601", 1),
        ("resources/unsubscribe", "-32601", 1),
        ("_other", "-32601", 2),
        ("tools/call", "invalid_message", 1),
    ] {
        let labels = format!("{{mcp_method_name=\"{method}\",gen_ai_tool_name=\"");
        let line = text
            .lines()
            .find(|line| {
                line.starts_with("mcp_server_operation_duration_seconds_count")
                    && line.contains(&labels)
            })
            .unwrap_or_else(|| panic!("{method}: {text}"));
        assert!(line.contains(&format!("error_type=\"{error}\"")), "{line}");
        assert!(line.ends_with(&format!(" {count}")), "{line}");
    }
}

#[test]
fn in_search_mode_the_label_is_the_operation_that_is_called() {
    let args = [
        "serve",
        "--spec",
        &petstore(),
        "--mock",
        "--tools",
        "search",
        "--metrics-bind",
        "127.0.0.1:0",
    ];
    let mut session = Session::start(&args);
    let address = metrics_address(&session.logged("metrics at"));
    session.call("search_operations", &json!({"query": "find a pet"}));
    session.call("describe_operations", &json!({"names": ["get_pet"]}));
    session.call(
        "call_read",
        &json!({"operation": "get_pet", "arguments": {"petId": 7}}),
    );
    session.call(
        "call_read",
        &json!({"operation": "no_such_operation", "arguments": {}}),
    );
    let text = scrape(&address);
    let tools = [
        "search_operations",
        "describe_operations",
        "get_pet",
        "_other",
    ];
    for tool in tools {
        let label = format!("mcp_method_name=\"tools/call\",gen_ai_tool_name=\"{tool}\"");
        assert!(text.contains(&label), "{tool}: {text}");
    }
    assert!(!text.contains("\"call_read\""), "{text}");
}

#[test]
fn both_text_formats_are_what_prometheus_reads() {
    let (server, address) = started(&["--spec", &petstore(), "--mock"]);
    server.post(&[], CALL);
    let classic = ask(&address, "GET /metrics", &["Host: 127.0.0.1"]);
    assert_eq!(
        answer_header(&classic, "content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    assert!(
        !classic.contains("# EOF") && classic.contains("# TYPE openapi_mcp_retries_total counter"),
        "{classic}"
    );
    let open = ask(
        &address,
        "GET /metrics",
        &[
            "Host: 127.0.0.1",
            "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
        ],
    );
    assert!(
        answer_header(&open, "content-type")
            .unwrap()
            .starts_with("application/openmetrics-text; version=1.0.0")
    );
    assert!(
        open.ends_with("# EOF\n") && !open.contains("_total_total"),
        "{open}"
    );

    let checker = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut checker) = checker else {
        println!("skipped: promtool is not installed (Debian package prometheus)");
        return;
    };
    std::io::Write::write_all(
        &mut checker.stdin.take().unwrap(),
        scrape(&address).as_bytes(),
    )
    .unwrap();
    let output = checker.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

#[test]
fn invented_tool_names_do_not_grow_the_set() {
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &petstore(),
        "--mock",
        "--metrics-bind",
        "127.0.0.1:0",
    ]);
    let address = metrics_address(&session.logged("metrics at"));
    let mut call_any = |number: u32| {
        let id = session.post(
            "tools/call",
            &json!({"name": format!("no_such_tool_{number}"), "arguments": {}}),
        );
        assert_eq!(session.receive()["id"], id);
    };
    call_any(0);
    let before = scrape(&address).lines().count();
    for number in 1..10_000 {
        call_any(number);
    }
    let text = scrape(&address);
    assert_eq!(text.lines().count(), before, "{text}");
    assert!(
        text.contains(
            "gen_ai_tool_name=\"_other\",error_type=\"-32602\",network_transport=\"pipe\""
        ),
        "{text}"
    );
    assert!(
        text.contains("mcp_server_operation_duration_seconds_count") && text.contains(" 10000\n"),
        "{text}"
    );
}

#[test]
fn only_addresses_and_allowed_names_may_ask_and_only_to_read() {
    let (_server, address) = started(&[
        "--spec",
        &petstore(),
        "--mock",
        "--allow-host",
        "openapi-mcp",
    ]);
    for (host, expected) in [
        ("127.0.0.1:9464", "200"),
        ("10.2.3.4", "200"),
        ("[::1]:1", "200"),
        ("localhost", "200"),
        ("openapi-mcp:9464", "200"),
        ("evil.example", "403"),
        ("127.0.0.1.evil.example", "403"),
    ] {
        let answer = ask(&address, "GET /metrics", &[&format!("Host: {host}")]);
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{host}: {answer}");
    }
    let status = |first: &str| {
        ask(&address, first, &["Host: localhost"])
            .split(' ')
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(status("POST /metrics"), "405");
    assert_eq!(status("HEAD /metrics"), "200");
    assert_eq!(status("GET /mcp"), "404");
    let ready = ask(&address, "GET /readyz", &["Host: localhost"]);
    assert!(
        ready.contains("\"status\":\"ready\"") && ready.contains("\"tools\":20"),
        "{ready}"
    );
}

#[test]
fn refused_requests_are_counted_by_reason() {
    let server = HttpServer::start_with(
        &[
            "--spec",
            &petstore(),
            "--mock",
            "--metrics-bind",
            "127.0.0.1:0",
            "--auth-token-env",
            "A_TOKEN",
        ],
        &[("A_TOKEN", "sixteen-letters-or-more")],
    );
    let address = metrics_address(&server.logged("metrics at http://"));
    server.post(&[], CALL);
    server.post(&["Authorization: Bearer another-token-of-mine"], CALL);
    server.post(&["Host: evil.example"], CALL);
    let text = scrape(&address);
    for reason in ["no_token", "invalid_token", "host_or_origin"] {
        assert!(
            text.contains(&format!(
                "openapi_mcp_rejected_total{{reason=\"{reason}\"}} 1"
            )),
            "{reason}: {text}"
        );
    }
}

#[test]
fn a_taken_address_ends_a_server_over_http_and_is_a_warning_over_stdio() {
    let (_taken, url) = listener();
    let address = url.trim_start_matches("http://");
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &petstore(),
        "--mock",
        "--metrics-bind",
        address,
    ]);
    session.logged("there are no metrics");
    assert_eq!(
        session.call("get_pet", &json!({"petId": 7}))["isError"],
        false
    );
    let output = crate::support::command(&[
        "serve",
        "--spec",
        &petstore(),
        "--mock",
        "--transport",
        "http",
        "--bind",
        "127.0.0.1:0",
        "--metrics-bind",
        address,
    ])
    .output()
    .unwrap();
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_real_prometheus_scrapes_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (server, address) = started(&["--spec", &petstore(), "--mock"]);
    server.post(&[], CALL);
    let config = folder.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: openapi-mcp, static_configs: [{{targets: ['{address}']}}]}}]\n"
    );
    std::fs::write(&config, text).unwrap();
    let (free, url) = listener();
    drop(free);
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.path().join("data").display()
        ))
        .arg(format!(
            "--web.listen-address={}",
            url.trim_start_matches("http://")
        ))
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut prometheus) = prometheus else {
        println!("skipped: prometheus is not installed (Debian package prometheus)");
        return;
    };
    let query = |query: &str| {
        std::net::TcpStream::connect(url.trim_start_matches("http://")).map_or_else(
            |_| String::new(),
            |_| {
                ask(
                    url.trim_start_matches("http://"),
                    &format!("GET /api/v1/query?query={query}"),
                    &["Host: localhost"],
                )
            },
        )
    };
    wait_until("Prometheus has the metrics", || {
        query("up").contains("\"1\"]")
            && query("mcp_server_operation_duration_seconds_count")
                .contains("gen_ai_tool_name\":\"list_pets\"")
    });
    let _ = prometheus.kill();
    let _ = prometheus.wait();
}

/// A kubelet that gets no answer ends the container.
#[test]
fn silent_connections_keep_no_probe_out() {
    let (_server, address) = started(&["--spec", &petstore(), "--mock"]);
    let connect = || {
        let stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    };
    let mut silent: Vec<TcpStream> = (0..70).map(|_| connect()).collect();
    let began = Instant::now();
    let mut answer = String::new();
    let mut probe = connect();
    probe
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        .unwrap();
    probe.read_to_string(&mut answer).unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(answer_header(&answer, "connection"), Some("close"));
    for stream in &mut silent {
        // A reset is an end as well.
        while stream.read(&mut [0; 256]).is_ok_and(|count| count > 0) {}
    }
    assert!(
        began.elapsed() < within(5),
        "silent connections are still there after {:?}",
        began.elapsed()
    );
}
