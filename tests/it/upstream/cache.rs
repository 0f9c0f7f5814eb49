//! `--cache`: the rules of RFC 9111 as data, and what belongs to whom.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::http_server::scrape;
use crate::support::{
    HttpServer, Session, SpecFile, TIMEOUT, Upstream, call_message, project, reply, soak, text,
    wait_until,
};

const FRESH: &[&str] = &[
    "Content-Type: application/json",
    "Cache-Control: max-age=60",
];

fn spec() -> SpecFile {
    let parameter =
        |name: &str, place: &str| json!({"name": name, "in": place, "schema": {"type": "string"}});
    SpecFile::with_paths(&json!({
        "/things": {
            "get": {"operationId": "list", "parameters": [parameter("q", "query"), parameter("If-None-Match", "header")]},
            "post": {"operationId": "create"},
        },
        "/things/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
            "get": {"operationId": "read"},
            "put": {"operationId": "write"},
        },
        "/things/{id}/kill": {"get": {"operationId": "killThing", "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}
        ]}},
    }))
}

/// An API that counts what it is asked, and says so.
fn counting() -> Upstream {
    let count = AtomicUsize::new(0);
    Upstream::start(Box::new(move |_| {
        let number = count.fetch_add(1, SeqCst);
        reply(200, FRESH, format!("{{\"answer\":{number}}}").as_bytes())
    }))
}

#[test]
fn replies_are_used_again_as_rfc_9111_allows() {
    let file = std::fs::read_to_string(project("tests/cases/cache/rfc9111.yaml")).unwrap();
    let date = |shift: i64| {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        httpdate::fmt_http_date(
            SystemTime::UNIX_EPOCH + Duration::from_secs(now.checked_add_signed(shift).unwrap()),
        )
    };
    let file = file
        .replace("$NOW", &date(0))
        .replace("$OLDER", &date(-7200))
        .replace("$OLD", &date(-3600))
        .replace("$NEXT", &date(3600));
    let file: Value = serde_yaml::from_str(&file).unwrap();
    for case in file["cases"].as_array().unwrap() {
        run_case(case);
    }
}

fn run_case(case: &Value) {
    let next: Arc<Mutex<VecDeque<Vec<u8>>>> = Arc::default();
    let given = Arc::clone(&next);
    let upstream = Upstream::start(Box::new(move |_| {
        given
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| reply(599, &[], b"the API was not to be asked"))
    }));
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let flags = texts(&case["flags"]);
    let flags: Vec<&str> = ["--cache", "1000000", "--retries", "0"]
        .into_iter()
        .chain(flags.iter().map(String::as_str))
        .collect();
    let mut session = Session::serving(&spec(), &upstream, &flags);
    for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        let title = format!("{}, step {index}", case["name"]);
        let answers: Vec<&Value> = [&step["reply"], &step["then"]]
            .into_iter()
            .filter(|answer| answer.is_object())
            .collect();
        let replies = answers.iter().map(|answer| {
            let mut headers = texts(&answer["headers"]);
            headers.push("Content-Type: text/plain".into());
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            let status = u16::try_from(answer["status"].as_u64().unwrap_or(200)).unwrap();
            reply(
                status,
                &headers,
                answer["body"].as_str().unwrap_or_default().as_bytes(),
            )
        });
        *next.lock().unwrap() = replies.collect();
        let result = session.call("list", step.get("arguments").unwrap_or(&json!({})));
        let received = upstream.take_all();
        assert_eq!(received.len(), answers.len(), "{title}: {result}");
        for condition in texts(&step["conditions"]) {
            assert!(
                received[0].headers.contains(&condition),
                "{title}: {:?}",
                received[0].headers
            );
        }
        if let Some(expected) = step["gives"].as_str() {
            assert!(text(&result).contains(expected), "{title}: {result}");
        }
        if step["age"] == true {
            assert!(
                result["_meta"]["openapi-mcp/cacheAge"].is_u64(),
                "{title}: {result}"
            );
        }
    }
}

#[test]
fn without_the_setting_nothing_is_kept() {
    let upstream = counting();
    let mut session = Session::serving(&spec(), &upstream, &[]);
    for _ in 0..2 {
        session.call("list", &json!({}));
    }
    assert_eq!(upstream.received().len(), 2);
}

#[test]
fn a_write_drops_what_it_may_have_changed_however_it_ends() {
    let (count, fails) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let failing = Arc::clone(&fails);
    let upstream = Upstream::start(Box::new(move |request| {
        if failing.load(SeqCst) > 0 && !request.line.starts_with("GET") {
            return Vec::new();
        }
        reply(
            200,
            FRESH,
            format!("{{\"answer\":{}}}", count.fetch_add(1, SeqCst)).as_bytes(),
        )
    }));
    let mut session = Session::serving(&spec(), &upstream, &["--cache", "1000000"]);
    let mut asks = |tool: &str, arguments: Value| {
        session.call(tool, &arguments);
        upstream
            .take_all()
            .iter()
            .filter(|request| request.line.starts_with("GET"))
            .count()
    };
    for failure in [0, 1] {
        fails.store(failure, SeqCst);
        for (tool, arguments) in [
            ("list", json!({})),
            ("list", json!({"q": "a"})),
            ("read", json!({"id": "7"})),
            ("read", json!({"id": "8"})),
        ] {
            asks(tool, arguments);
        }
        asks("write", json!({"id": "7"}));
        assert_eq!(asks("list", json!({})), 1, "the list above");
        assert_eq!(asks("list", json!({"q": "a"})), 1, "with any query");
        assert_eq!(asks("read", json!({"id": "7"})), 1, "what was written");
        assert_eq!(asks("read", json!({"id": "8"})), 0, "another thing");
    }
    // A GET whose name says harm is not kept, and drops like a write.
    asks("read", json!({"id": "7"}));
    assert_eq!(asks("killThing", json!({"id": "7"})), 1);
    assert_eq!(asks("killThing", json!({"id": "7"})), 1);
    assert_eq!(asks("read", json!({"id": "7"})), 1);
}

#[test]
fn clients_never_see_each_others_replies() {
    let upstream = Upstream::start(Box::new(|request| {
        let who = [request.header("authorization"), request.header("x-tenant")]
            .map(|value| value.unwrap_or("nobody").to_owned());
        reply(200, FRESH, json!({"for": who}).to_string().as_bytes())
    }));
    let spec = spec();
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--cache",
        "1000000",
        "--forward-authorization",
        "--forward-header",
        "X-Tenant",
    ]);
    let clients: Vec<[String; 2]> = ["alice", "bob"]
        .iter()
        .flat_map(|who| {
            ["north", "south"].map(|tenant| [format!("Bearer {who}"), tenant.to_owned()])
        })
        .collect();
    std::thread::scope(|scope| {
        for client in &clients {
            let server = &server;
            scope.spawn(move || {
                for _ in 0..10 {
                    let headers = [
                        format!("Authorization: {}", client[0]),
                        format!("X-Tenant: {}", client[1]),
                    ];
                    let (_, answer) = server.post(
                        &[&headers[0], &headers[1], "MCP-Protocol-Version: 2025-11-25"],
                        &call_message("list", "{}"),
                    );
                    let other = if client[1] == "north" {
                        "south"
                    } else {
                        "north"
                    };
                    assert!(
                        answer.contains(&client[1]) && !answer.contains(other),
                        "{answer}"
                    );
                }
            });
        }
    });
    assert_eq!(
        upstream.received().len(),
        clients.len(),
        "each client asks once"
    );
}

#[test]
fn many_that_ask_for_the_same_at_a_time_ask_the_api_once() {
    let (release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = Upstream::start(Box::new(move |_| {
        let _ = wait.lock().unwrap().recv_timeout(TIMEOUT);
        reply(200, FRESH, b"{\"done\":true}")
    }));
    let spec = spec();
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--cache",
        "1000000",
    ]);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    server
                        .post(
                            &["MCP-Protocol-Version: 2025-11-25"],
                            &call_message("list", "{}"),
                        )
                        .1
                })
            })
            .collect();
        wait_until("the API is asked", || !upstream.received().is_empty());
        release.send(()).unwrap();
        for call in calls {
            assert!(call.join().unwrap().contains("\"done\":true"));
        }
    });
    assert_eq!(upstream.received().len(), 1);
}

#[test]
fn those_that_wait_for_a_call_that_fails_ask_all_at_once() {
    let (release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let (is_first, asking) = (AtomicBool::new(true), AtomicUsize::new(0));
    let upstream = Upstream::raw(move |_, stream| {
        if is_first.swap(false, SeqCst) {
            let _ = wait.lock().unwrap().recv_timeout(TIMEOUT);
            return;
        }
        asking.fetch_add(1, SeqCst);
        wait_until("two ask at a time", || asking.load(SeqCst) > 1);
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{\"done\":true}",
        );
    });
    let flags = [
        "--cache",
        "1000000",
        "--retries",
        "0",
        "--metrics-bind",
        "127.0.0.1:0",
    ];
    let mut session = Session::serving(&spec(), &upstream, &flags);
    for _ in 0..8 {
        session.post("tools/call", &json!({"name": "list", "arguments": {}}));
    }
    wait_until("the API is asked", || !upstream.received().is_empty());
    session.post("ping", &json!({}));
    assert_eq!(session.receive()["result"], json!({}));
    release.send(()).unwrap();
    let results: Vec<Value> = (0..8).map(|_| session.receive()).collect();
    let failed = results
        .iter()
        .filter(|answer| answer["result"]["isError"] == true)
        .count();
    assert_eq!(failed, 1, "{results:?}");
    let page = metrics_page(&session);
    assert!(
        page.contains("openapi_mcp_cache_misses_total 8\n"),
        "{page}"
    );
}

#[test]
fn a_hit_is_redacted_and_shortened_like_any_reply() {
    let upstream = Upstream::start(Box::new(|_| {
        reply(200, FRESH, br#"{"echo":"the-secret-of-the-operator"}"#)
    }));
    let mut session = Session::serving_with(
        &spec(),
        &upstream,
        &["--cache", "1000000", "--header-env", "X-Api-Key=KEY"],
        &[("KEY", "the-secret-of-the-operator")],
    );
    let first = session.call("list", &json!({}));
    let second = session.call("list", &json!({}));
    assert_eq!(upstream.received().len(), 1);
    assert_eq!(first["content"], second["content"]);
    assert!(!second.to_string().contains("the-secret"), "{second}");
}

#[test]
fn a_reply_that_could_never_be_used_takes_no_room() {
    let upstream = Upstream::start(Box::new(|request| {
        let validator = if request.path().contains("tagged") {
            "ETag: \"1\""
        } else {
            "X-None: 1"
        };
        reply(200, &["Content-Type: application/json", validator], b"{}")
    }));
    let spec = spec();
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--cache", "1000000", "--metrics-bind", "127.0.0.1:0"],
    );
    session.call("read", &json!({"id": "plain"}));
    assert_eq!(cached_bytes(&session), 0);
    session.call("read", &json!({"id": "tagged"}));
    assert!(cached_bytes(&session) > 0);
}

/// Returns the metrics of the cache.
fn metrics_page(session: &Session) -> String {
    let logs = session.logged("metrics at http://");
    let (_, address) = logs.split_once("metrics at http://").unwrap();
    scrape(address.split('/').next().unwrap())
}

fn cached_bytes(session: &Session) -> usize {
    let page = metrics_page(session);
    let held = page
        .lines()
        .find_map(|line| line.strip_prefix("openapi_mcp_cache_size_bytes "));
    held.and_then(|held| held.parse().ok())
        .unwrap_or_else(|| panic!("{page}"))
}

#[test]
fn many_urls_stay_within_the_bytes_of_the_cache() {
    const BOUND: usize = 1 << 20;
    let upstream = Upstream::start(Box::new(|_| {
        let body = format!("{{\"filling\":\"{}\"}}", "x".repeat(2000));
        reply(200, FRESH, body.as_bytes())
    }));
    let spec = spec();
    let bound = BOUND.to_string();
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--cache", &bound, "--metrics-bind", "127.0.0.1:0"],
    );
    let count = if soak() { 100_000 } else { 1_500 };
    for number in 0..count {
        session.call("read", &json!({"id": number.to_string()}));
    }
    let held = cached_bytes(&session);
    assert!((BOUND / 2..=BOUND).contains(&held), "{held}");
    let asked = upstream.received().len();
    session.call("read", &json!({"id": (count - 1).to_string()}));
    assert_eq!(
        upstream.received().len(),
        asked,
        "what was used last is kept"
    );
    session.call("read", &json!({"id": "0"}));
    assert_eq!(
        upstream.received().len(),
        asked + 1,
        "what was not used for longest is dropped"
    );
}

#[test]
fn p10_a_read_that_waits_for_another_one_ends_within_its_own_time_limit() {
    let upstream = Upstream::raw(|_, _| std::thread::park_timeout(2 * TIMEOUT));
    let spec = spec();
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--cache",
        "1000000",
        "--timeout",
        "4",
        "--retries",
        "0",
    ]);
    let started = std::time::Instant::now();
    let call = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "list", "arguments": {}}});
    session.send(&call(101));
    session.send(&call(102));
    for _ in 0..2 {
        let answer = session.receive();
        assert!(
            text(&answer["result"]).contains("did not answer within 4 s"),
            "{answer}"
        );
    }
    // A limit that began again after the wait would make it eight seconds.
    assert!(
        started.elapsed() < Duration::from_secs(7),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_request_that_hangs_fails_no_other_call_for_the_same_and_those_that_wait_are_in_the_queue() {
    let is_first = AtomicBool::new(true);
    let upstream = Upstream::start(Box::new(move |_| {
        if is_first.swap(false, SeqCst) {
            std::thread::park_timeout(2 * TIMEOUT);
        }
        reply(200, FRESH, b"{\"done\":true}")
    }));
    let flags = [
        "--cache",
        "1000000",
        "--timeout",
        "8",
        "--retries",
        "0",
        "--max-queue",
        "6",
    ];
    let mut session = Session::serving(&spec(), &upstream, &flags);
    session.post("tools/call", &json!({"name": "list", "arguments": {}}));
    wait_until("the API is asked", || !upstream.received().is_empty());
    let began = std::time::Instant::now();
    for _ in 0..10 {
        session.post("tools/call", &json!({"name": "list", "arguments": {}}));
    }
    let results: Vec<Value> = (0..10).map(|_| session.receive()).collect();
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "{:?}",
        began.elapsed()
    );
    let count = |words: &str| {
        results
            .iter()
            .filter(|answer| answer.to_string().contains(words))
            .count()
    };
    assert_eq!(
        (count("done"), count("too many calls are in flight")),
        (6, 4),
        "{results:?}"
    );
}
