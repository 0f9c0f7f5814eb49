//! APIs that speak HTTP/2.

use serde_json::json;

use crate::support::certificates::Authority;
use crate::support::http2::{Http2Answer, Http2Upstream};
use crate::support::{Session, SpecFile, text};

struct Http2Session {
    upstream: Http2Upstream,
    session: Session,
}

fn session(streams: u32, more: &[&str], answer: impl Fn(usize) -> Http2Answer + Send + Sync + 'static) -> Http2Session {
    let authority = Authority::new();
    let upstream = Http2Upstream::start(&authority, streams, answer);
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "read"}, "post": {"operationId": "write"}}}));
    let ca = authority.file("ca.pem");
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url, "--ca-cert", &ca];
    let session = Session::start(&[&args[..], more].concat());
    Http2Session { upstream, session }
}

#[test]
fn an_api_that_offers_http2_is_called_over_one_connection() {
    let Http2Session { upstream, mut session } = session(100, &[], |_| Http2Answer::Ok);
    session.call("read", &json!({}));
    let calls: Vec<u64> = (0..20)
        .map(|_| session.post("tools/call", &json!({"name": "read", "arguments": {}})))
        .collect();
    for _ in calls {
        let answer = session.receive();
        assert_eq!(answer["result"]["structuredContent"]["ok"], true, "{answer}");
    }
    assert_eq!((upstream.requests(), upstream.connections()), (21, 1));
}

#[test]
fn p14_a_write_that_http2_refuses_leaves_once_and_a_read_is_tried_again() {
    for refusal in [Http2Answer::Refuse, Http2Answer::GoAway] {
        let first = move |number| if number == 1 { refusal } else { Http2Answer::Ok };
        let mut write = session(100, &[], first);
        let result = write.session.call("write", &json!({}));
        assert_eq!(result["isError"], true, "{result}");
        let logs = write.session.end();
        assert_eq!(write.upstream.requests(), 1, "{logs}");

        let mut read = session(100, &[], first);
        let result = read.session.call("read", &json!({}));
        assert_eq!(result["structuredContent"]["ok"], true, "{result}");
        assert_eq!(read.upstream.requests(), 2);
    }
}

#[test]
fn p10_waiting_for_a_free_http2_stream_counts_in_the_deadline_of_a_call() {
    let Http2Session { upstream, mut session } = session(1, &["--timeout", "2"], |_| Http2Answer::Silence);
    let calls = 3;
    for _ in 0..calls {
        session.post("tools/call", &json!({"name": "write", "arguments": {}}));
    }
    for _ in 0..calls {
        let answer = session.receive();
        assert!(text(&answer["result"]).contains("did not answer within 2 s"), "{answer}");
    }
    assert!(upstream.requests() >= 1);
}
