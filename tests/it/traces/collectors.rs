//! Collectors that are down, slow or silent cost no call, and no end of a process.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{api, document};
use crate::support::http_server::scrape;
use crate::support::{
    Collector, HttpServer, Session, TIMEOUT, listener, reply, signal, wait_until, within,
};

fn dropped(session: &Session) -> usize {
    let logs = session.logged("metrics at http://");
    let (_, rest) = logs.split_once("metrics at http://").expect("the address");
    let address = rest.split('/').next().unwrap();
    let page = scrape(address);
    let line = page
        .lines()
        .find(|line| line.starts_with("openapi_mcp_spans_dropped_total "))
        .unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A collector whose connections are taken and never answered.
fn silent() -> Collector {
    Collector::answering(|_| {
        let (_never, wait) = std::sync::mpsc::channel::<()>();
        let _ = wait.recv_timeout(TIMEOUT);
        Vec::new()
    })
}

#[test]
fn a_collector_that_is_down_or_silent_costs_no_call_and_hardly_an_end() {
    let (taken, refusing) = listener();
    drop(taken);
    let silent = silent();
    let (spec, upstream) = (document(), api());
    for endpoint in [refusing.as_str(), silent.url()] {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("OTEL_BSP_SCHEDULE_DELAY", "1"),
        ];
        let mut session = Session::serving_with(&spec, &upstream, &[], &variables);
        let started = Instant::now();
        for number in 0..100 {
            let result = session.call("getThing", &json!({"id": number.to_string()}));
            assert_eq!(result["isError"], false);
        }
        assert!(
            started.elapsed() < within(5),
            "{endpoint}: {:?}",
            started.elapsed()
        );
        let ended = Instant::now();
        session.close_stdin();
        assert_eq!(session.wait(), Some(0));
        assert!(
            ended.elapsed() < within(5),
            "{endpoint}: {:?}",
            ended.elapsed()
        );
    }
}

#[test]
fn a_silent_collector_does_not_hold_up_the_end_by_a_signal() {
    let (spec, upstream, silent) = (document(), api(), silent());
    let mut server = HttpServer::start_with(
        &["--spec", spec.path(), "--base-url", &upstream.url],
        &silent.variables(),
    );
    server.post(
        &[],
        &crate::support::call_message("getThing", r#"{"id":"1"}"#),
    );
    wait_until("a span is sent", || !silent.requests().is_empty());
    let started = Instant::now();
    signal(server.pid(), "TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(started.elapsed() < within(5), "{:?}", started.elapsed());
}

#[test]
fn spans_beyond_the_queue_are_counted_and_told_once() {
    let (spec, upstream, silent) = (document(), api(), silent());
    let mut session = Session::serving_with(
        &spec,
        &upstream,
        &["--metrics-bind", "127.0.0.1:0"],
        &silent.variables(),
    );
    // Two spans each.
    for number in 0..1600 {
        session.call("getThing", &json!({"id": number.to_string()}));
    }
    // The queue holds 2,048, and a batch is on its way.
    wait_until("spans are dropped", || dropped(&session) > 0);
    assert!(dropped(&session) <= 3200 - 2048, "{}", dropped(&session));
    let logs = session.logged("spans are lost");
    assert_eq!(logs.matches("spans are lost").count(), 1, "{logs}");
}

#[test]
fn a_busy_collector_is_asked_again_and_one_that_refuses_is_not() {
    let (spec, upstream) = (document(), api());
    let count = AtomicUsize::new(0);
    let busy = Collector::answering(move |_| match count.fetch_add(1, SeqCst) {
        0 => reply(503, &["Retry-After: 1"], b""),
        _ => reply(200, &[], b""),
    });
    let mut session = Session::serving_with(
        &spec,
        &upstream,
        &["--metrics-bind", "127.0.0.1:0"],
        &busy.variables(),
    );
    session.call("getThing", &json!({"id": "1"}));
    wait_until("the batch is sent again", || busy.requests().len() >= 2);
    assert_eq!(busy.requests()[0].body, busy.requests()[1].body);
    assert_eq!(dropped(&session), 0);

    // A redirect is not followed: the credential of the collector is for no other server.
    for status in [400, 401, 307] {
        let location = format!("Location: {}/elsewhere", busy.url());
        let refusing = Collector::answering(move |_| reply(status, &[&location], b"no"));
        let mut session = Session::serving_with(
            &spec,
            &upstream,
            &["--metrics-bind", "127.0.0.1:0"],
            &refusing.variables(),
        );
        session.call("getThing", &json!({"id": "1"}));
        wait_until("the spans are lost", || dropped(&session) >= 2);
        session.logged(&format!("status {status}"));
    }
    assert!(
        busy.requests()
            .iter()
            .all(|request| !request.line.contains("elsewhere"))
    );
}

/// `rejected_spans` of `ExportTracePartialSuccess` is 1 here.
#[test]
fn spans_that_the_collector_refuses_by_number_are_counted() {
    let (spec, upstream) = (document(), api());
    let picky = Collector::answering(|_| reply(200, &[], &[0x0a, 0x02, 0x08, 0x01]));
    let mut session = Session::serving_with(
        &spec,
        &upstream,
        &["--metrics-bind", "127.0.0.1:0"],
        &picky.variables(),
    );
    session.call("getThing", &json!({"id": "1"}));
    wait_until("one is counted", || dropped(&session) >= 1);
}

#[test]
fn a_slow_collector_gets_all_spans() {
    let (spec, upstream) = (document(), api());
    let slow = Collector::answering(|_| {
        std::thread::park_timeout(Duration::from_millis(200));
        reply(200, &[], b"")
    });
    let mut session = Session::serving_with(&spec, &upstream, &[], &slow.variables());
    for number in 0..200 {
        session.call("getThing", &json!({"id": number.to_string()}));
    }
    assert_eq!(slow.calls(200).len(), 200);
}
