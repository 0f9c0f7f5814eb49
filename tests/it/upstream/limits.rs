//! Limits of what goes to one API: at a time, per second, how often a request is sent again, and
//! when the API is left alone.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, TIMEOUT, Upstream, reply, run, stderr, text, wait_until};

/// One operation per method, called like it, and `gone`, a GET.
fn document() -> SpecFile {
    let methods = ["get", "head", "put", "delete", "post", "patch"];
    let mut item: serde_json::Map<String, Value> = methods
        .iter()
        .map(|method| ((*method).to_owned(), json!({"operationId": method})))
        .collect();
    item.insert("options".into(), json!({"operationId": "options"}));
    SpecFile::with_paths(&json!({"/a": item, "/gone": {"get": {"operationId": "gone"}}}))
}

fn session(upstream: &Upstream, more: &[&str]) -> Session {
    Session::serving(&document(), upstream, more)
}

const OK: &[&str] = &["Content-Type: application/json"];

#[test]
fn p14_what_is_not_idempotent_leaves_exactly_once_and_the_rest_at_most_four_times() {
    let failures = [
        (reply(503, &[], b""), true),
        (reply(429, &[], b""), true),
        (reply(502, &[], b""), true),
        (reply(504, &[], b""), true),
        (reply(500, &[], b""), false),
        (reply(501, &[], b""), false),
        // The connection ends before a reply, within its head, and within its body.
        (Vec::new(), true),
        (b"HTTP/1.1 200".to_vec(), true),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nabc".to_vec(),
            false,
        ),
        (b"no HTTP at all\r\n\r\n".to_vec(), false),
    ];
    let judge = |failure: Vec<u8>, repeated: bool| {
        let shown = String::from_utf8_lossy(&failure).into_owned();
        let upstream = Upstream::start(Box::new(move |_| failure.clone()));
        let mut session = session(&upstream, &["breaker_failures: 0", "retries: 3"]);
        for tool in ["post", "patch"] {
            assert_eq!(
                session.call(tool, &json!({}))["isError"],
                true,
                "{tool} {shown}"
            );
            upstream.take_one();
        }
        for tool in ["get", "put", "delete"] {
            assert_eq!(
                session.call(tool, &json!({}))["isError"],
                true,
                "{tool} {shown}"
            );
            let sent = upstream.take_all().len();
            assert_eq!(sent, if repeated { 4 } else { 1 }, "{tool} {shown}");
        }
    };
    std::thread::scope(|scope| {
        for (failure, repeated) in failures {
            scope.spawn(move || judge(failure, repeated));
        }
    });
}

#[test]
fn a_request_that_failed_for_a_moment_is_sent_again_and_retry_after_is_honoured() {
    let calls = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| match calls.fetch_add(1, SeqCst) {
        _ if request.line.contains("/gone") => reply(503, &["Retry-After: 3600"], b""),
        0 => Vec::new(),
        1 => reply(503, &["Retry-After: 1"], b""),
        _ => reply(200, OK, b"{\"ok\":true}"),
    }));
    let mut session = session(&upstream, &[]);
    let started = Instant::now();
    assert_eq!(
        session.call("get", &json!({}))["structuredContent"],
        json!({"ok": true})
    );
    assert!(
        started.elapsed() >= Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(upstream.take_all().len(), 3);

    let started = Instant::now();
    let result = session.call("gone", &json!({}));
    assert!(
        text(&result).contains("Retry after 3600 seconds"),
        "{result}"
    );
    assert_eq!(
        upstream.take_all().len(),
        1,
        "an hour is for the model to wait, not for us"
    );
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn p52_the_pause_before_a_retry_holds_no_place() {
    let failed = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| {
        if request.line.starts_with("GET") && failed.fetch_add(1, SeqCst) == 0 {
            return reply(503, &["Retry-After: 2"], b"");
        }
        reply(200, OK, b"{}")
    }));
    let mut session = session(&upstream, &["max_concurrency: 1"]);
    let repeated = session.post("tools/call", &json!({"name": "get", "arguments": {}}));
    wait_until("the request comes", || !upstream.received().is_empty());
    let other = session.post("tools/call", &json!({"name": "post", "arguments": {}}));
    for id in [other, repeated] {
        let answer = session.receive();
        assert_eq!(
            (&answer["id"], &answer["result"]["isError"]),
            (&json!(id), &json!(false)),
            "{answer}"
        );
    }
    assert_eq!(upstream.take_all().len(), 3);
}

#[test]
fn a_repetition_that_comes_too_late_for_the_pace_gives_the_answer_before_it() {
    let upstream = Upstream::start(Box::new(|_| reply(503, &[], b"")));
    let mut session = session(&upstream, &["rate_limit: 0.05", "--timeout", "10"]);
    let result = session.call("get", &json!({}));
    assert!(
        text(&result).starts_with("503") && !text(&result).contains("nothing was sent"),
        "{result}"
    );
    upstream.take_one();
}

#[test]
fn p10_p14_repetitions_stay_within_the_deadline_and_can_be_switched_off() {
    let upstream = Upstream::start(Box::new(|_| reply(503, &["Retry-After: 50"], b"")));
    let started = Instant::now();
    let result = session(&upstream, &["--timeout", "40"]).call("get", &json!({}));
    assert!(text(&result).starts_with("503"), "{result}");
    assert!(started.elapsed() < Duration::from_secs(30) && upstream.take_all().len() == 1);
    session(&upstream, &["retries: 0"]).call("get", &json!({}));
    upstream.take_one();
}

#[test]
fn repetitions_are_a_small_part_of_all_requests() {
    let upstream = Upstream::start(Box::new(|_| reply(503, &[], b"")));
    let mut session = session(&upstream, &["breaker_failures: 0"]);
    let started = Instant::now();
    for _ in 0..200 {
        session.post("tools/call", &json!({"name": "get", "arguments": {}}));
    }
    for _ in 0..200 {
        session.receive();
    }
    let most = 200.0 + 20.0 + 10.0 + 10.0 * started.elapsed().as_secs_f64() + 1.0;
    let sent = upstream.take_all().len();
    assert!(
        sent > 200 && f64::from(u32::try_from(sent).unwrap()) <= most,
        "{sent} of at most {most}"
    );
}

#[derive(Default)]
struct Holding {
    open: bool,
    now: usize,
    most: usize,
}

/// An upstream that holds every reply back until it is opened, and counts how many it holds at a
/// time.
struct Held {
    upstream: Upstream,
    state: Arc<(Mutex<Holding>, Condvar)>,
}

impl Held {
    fn new() -> Self {
        let state: Arc<(Mutex<Holding>, Condvar)> = Arc::default();
        let shared = Arc::clone(&state);
        let upstream = Upstream::start(Box::new(move |_| {
            let (lock, changed) = &*shared;
            let mut state = lock.lock().unwrap();
            state.now += 1;
            state.most = state.most.max(state.now);
            changed.notify_all();
            state = changed
                .wait_timeout_while(state, TIMEOUT, |state| !state.open)
                .unwrap()
                .0;
            state.now -= 1;
            reply(200, OK, b"{}")
        }));
        Self { upstream, state }
    }

    /// Waits until so many requests are held.
    fn wait(&self, held: usize) {
        let (lock, changed) = &*self.state;
        let state = lock.lock().unwrap();
        let (state, waited) = changed
            .wait_timeout_while(state, TIMEOUT, |state| state.now < held)
            .unwrap();
        assert!(!waited.timed_out(), "{} of {held} came", state.now);
    }

    fn open(&self) {
        let (lock, changed) = &*self.state;
        lock.lock().unwrap().open = true;
        changed.notify_all();
    }

    fn most(&self) -> usize {
        self.state.0.lock().unwrap().most
    }
}

#[test]
fn p52_a_full_queue_answers_busy_at_once_and_the_rest_take_turns() {
    let held = Held::new();
    let mut session = session(&held.upstream, &["max_concurrency: 2"]);
    let post = |session: &mut Session| {
        session.post("tools/call", &json!({"name": "post", "arguments": {}}))
    };
    for _ in 0..2 {
        post(&mut session);
    }
    held.wait(2);
    for _ in 0..15 {
        post(&mut session);
    }
    for _ in 0..7 {
        let busy = session.receive();
        assert!(
            busy["result"]["isError"] == true
                && text(&busy["result"]).contains("nothing was sent; try again in a moment"),
            "{busy}"
        );
    }
    held.open();
    for _ in 0..10 {
        let answer = session.receive();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    assert_eq!((held.most(), held.upstream.received().len()), (2, 10));
}

#[test]
fn p10_a_hung_operation_does_not_keep_others_waiting() {
    let held = Held::new();
    let mut session = session(&held.upstream, &["--timeout", "2"]);
    let started = Instant::now();
    for _ in 0..8 {
        session.post("tools/call", &json!({"name": "post", "arguments": {}}));
    }
    held.wait(8);
    for _ in 0..8 {
        let answer = session.receive();
        assert!(
            text(&answer["result"]).contains("did not answer within 2 s"),
            "{answer}"
        );
    }
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    held.open();
    assert_eq!(session.call("post", &json!({}))["isError"], false);
}

#[test]
fn p52_requests_leave_at_the_given_pace_and_what_comes_too_late_is_told() {
    let upstream = Upstream::echo();
    let mut paced = session(&upstream, &["rate_limit: 20"]);
    let started = Instant::now();
    for _ in 0..10 {
        paced.post("tools/call", &json!({"name": "post", "arguments": {}}));
    }
    (0..10).for_each(|_| assert_eq!(paced.receive()["result"]["isError"], false));
    assert!(
        started.elapsed() >= Duration::from_millis(450),
        "{:?}",
        started.elapsed()
    );

    let mut slow = session(&upstream, &["rate_limit: 0.01"]);
    assert_eq!(slow.call("post", &json!({}))["isError"], false);
    let started = Instant::now();
    let result = slow.call("post", &json!({}));
    assert!(
        text(&result).contains("nothing was sent; try again in 1"),
        "{result}"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_api_that_fails_repeatedly_is_paused_and_tried_again() {
    let well = Arc::new(Mutex::new(false));
    let state = Arc::clone(&well);
    let upstream = Upstream::start(Box::new(move |_| {
        if *state.lock().unwrap() {
            reply(200, OK, b"{}")
        } else {
            reply(503, &[], b"")
        }
    }));
    let failing = |pause: &str| {
        let mut session = session(
            &upstream,
            &["breaker_failures: 3", &format!("breaker_pause: {pause}")],
        );
        for _ in 0..3 {
            assert!(text(&session.call("post", &json!({}))).starts_with("503"));
        }
        assert_eq!(upstream.take_all().len(), 3);
        session
    };
    let refused = failing("300").call("post", &json!({}));
    assert!(
        text(&refused).contains("failed 3 times in a row")
            && text(&refused).contains("it is tried again in "),
        "{refused}"
    );
    assert!(upstream.received().is_empty());
    let mut session = failing("0.1");
    *well.lock().unwrap() = true;
    wait_until("it is not tried again", || {
        session.call("post", &json!({}))["isError"] == false
    });
    assert_eq!(upstream.take_all().len(), 1, "one probe");
    assert_eq!(session.call("post", &json!({}))["isError"], false);
    let logs = session.end();
    assert!(
        logs.contains("the API failed 3 times in a row") && logs.contains("the API answers again"),
        "{logs}"
    );
}

#[test]
fn invalid_limits_are_refused() {
    let spec = document();
    for key in [
        "max_concurrency: 0",
        "rate_limit: 0",
        "rate_limit: -1",
        "retries: 4",
        "breaker_pause: 0",
    ] {
        let output = run(&[
            "serve",
            "--spec",
            spec.path(),
            "--base-url",
            "http://127.0.0.1:1",
            key,
        ]);
        let (name, _) = key.split_once(':').unwrap();
        assert!(
            output.status.code() == Some(2)
                && stderr(&output).contains(&format!("`{name}` must be")),
            "{key}: {}",
            stderr(&output)
        );
    }
}
