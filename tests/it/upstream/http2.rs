//! APIs that speak HTTP/2.

use serde_json::json;

use crate::support::certificates::Authority;
use crate::support::http2::{Http2Answer, Http2Upstream};
use crate::support::{Session, SpecFile, text};

struct Http2Session {
    upstream: Http2Upstream,
    session: Session,
}

fn session(
    streams: u32,
    more: &[&str],
    answer: impl Fn(usize) -> Http2Answer + Send + Sync + 'static,
) -> Http2Session {
    let authority = Authority::new();
    let upstream = Http2Upstream::start(&authority, streams, answer);
    let spec = SpecFile::with_paths(
        &json!({"/a": {"get": {"operationId": "read"}, "post": {"operationId": "write"}}}),
    );
    let ca = authority.file("ca.pem");
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--ca-cert",
        &ca,
    ];
    let session = Session::start(&[&args[..], more].concat());
    Http2Session { upstream, session }
}

#[test]
fn an_api_that_offers_http2_is_called_over_one_connection() {
    let Http2Session {
        upstream,
        mut session,
    } = session(100, &[], |_| Http2Answer::Ok);
    session.call("read", &json!({}));
    let calls: Vec<u64> = (0..20)
        .map(|_| session.post("tools/call", &json!({"name": "read", "arguments": {}})))
        .collect();
    for _ in calls {
        let answer = session.receive();
        assert_eq!(
            answer["result"]["structuredContent"]["ok"], true,
            "{answer}"
        );
    }
    assert_eq!((upstream.requests(), upstream.connections()), (21, 1));
}

/// RFC 9113 sections 6.8 and 8.7: what was refused, or is above the last stream of a GOAWAY, was
/// not processed.
#[test]
fn p14_what_http2_says_that_it_did_not_process_is_sent_again_and_a_write_is_processed_once() {
    for tool in ["write", "read"] {
        for refusal in [Http2Answer::Refuse, Http2Answer::GoAway] {
            let first = move |number| {
                if number == 1 {
                    refusal
                } else {
                    Http2Answer::Ok
                }
            };
            let mut refused = session(100, &[], first);
            let result = refused.session.call(tool, &json!({}));
            assert_eq!(result["structuredContent"]["ok"], true, "{tool} {result}");
            assert_eq!(refused.upstream.requests(), 2, "{tool}");
        }
    }
    let mut refused = session(100, &[], |_| Http2Answer::Refuse);
    let result = refused.session.call("write", &json!({}));
    assert_eq!(result["isError"], true, "{result}");
    assert!(
        (2..=3).contains(&refused.upstream.requests()),
        "{}",
        refused.upstream.requests()
    );
    // It may have been processed.
    let mut killed = session(100, &[], |number| {
        if number == 1 {
            Http2Answer::Kill
        } else {
            Http2Answer::Ok
        }
    });
    let result = killed.session.call("write", &json!({}));
    assert_eq!(
        (&result["isError"], killed.upstream.requests()),
        (&json!(true), 1),
        "{result}"
    );
}

/// As nginx does with `keepalive_requests`: connections end gracefully, and no write is lost.
#[test]
fn no_write_is_lost_where_http2_connections_end_after_a_few_requests() {
    let last_of_ten = |number: usize| {
        if number.is_multiple_of(10) {
            Http2Answer::Last
        } else {
            Http2Answer::Ok
        }
    };
    let Http2Session {
        upstream,
        mut session,
    } = session(100, &[], last_of_ten);
    for _ in 0..50 {
        let calls: Vec<u64> = (0..4)
            .map(|_| session.post("tools/call", &json!({"name": "write", "arguments": {}})))
            .collect();
        for _ in calls {
            let answer = session.receive();
            assert_eq!(
                answer["result"]["structuredContent"]["ok"], true,
                "{answer}"
            );
        }
    }
    assert!(upstream.connections() >= 20, "{}", upstream.connections());
}

#[test]
fn p10_waiting_for_a_free_http2_stream_counts_in_the_deadline_of_a_call() {
    let Http2Session {
        upstream,
        mut session,
    } = session(1, &["--timeout", "2"], |_| Http2Answer::Silence);
    let calls = 3;
    for _ in 0..calls {
        session.post("tools/call", &json!({"name": "write", "arguments": {}}));
    }
    for _ in 0..calls {
        let answer = session.receive();
        assert!(
            text(&answer["result"]).contains("did not answer within 2 s"),
            "{answer}"
        );
    }
    assert!(upstream.requests() >= 1);
}
