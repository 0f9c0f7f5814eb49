//! Calls in plain form are answered as rmcp answers them: two servers of the same API, of which one has only the long way, get the
//! same messages. What they answer, what they ask of the API and what they log is the same.

mod client;
mod messages;
mod servers;

use std::cell::RefCell;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use self::client::Client;
use self::messages::{any_message, any_request};
use self::servers::{DEADLINE, OPEN, Seen, ServerKind, read_http, start_http, wait_for};

/// The answer of a server, without its date.
fn exchange(address: SocketAddr, request: &str) -> (Vec<String>, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(request.replace("HOST", &address.to_string()).as_bytes()).unwrap();
    let (head, body) = read_http(&mut stream).unwrap();
    let mut head: Vec<String> = head.lines().map(str::to_owned).filter(|line| !line.starts_with("date:")).collect();
    head.sort();
    (head, String::from_utf8(body).unwrap())
}

fn compare_over_http(kind: ServerKind, cases: u32) {
    let (plain, seen_plain) = start_http(ServerKind { is_plain: true, ..kind });
    let (long, seen_long) = start_http(ServerKind { is_plain: false, ..kind });
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&any_request(), |request| {
        prop_assert_eq!(exchange(plain, &request), exchange(long, &request));
        prop_assert_eq!(seen_plain.take(), seen_long.take());
        Ok(())
    });
    result.unwrap();
    assert_ways(&seen_plain, &seen_long, cases);
}

/// Whether enough was compared: many of the messages are calls in plain form, for one of the servers.
fn assert_ways(plain: &Seen, long: &Seen, cases: u32) {
    let plain_calls = plain.plain_calls();
    assert!(plain_calls > usize::try_from(cases).unwrap() / 50, "{plain_calls} of {cases}");
    assert_eq!(long.plain_calls(), 0);
}

#[test]
fn plain_calls_over_http_answer_ask_and_log_what_rmcp_does() {
    compare_over_http(OPEN, 600);
}

#[test]
fn plain_calls_over_http_answer_what_rmcp_does_where_clients_and_the_api_ask_for_credentials() {
    let kind = ServerKind {
        has_tokens: true,
        has_secret: true,
        ..OPEN
    };
    compare_over_http(kind, 300);
}

#[test]
fn plain_calls_over_http_answer_what_rmcp_does_where_a_person_is_asked() {
    compare_over_http(ServerKind { confirms: true, ..OPEN }, 300);
}

#[test]
fn plain_calls_over_http_answer_what_rmcp_does_where_gates_stand_for_operations() {
    compare_over_http(ServerKind { searches: true, ..OPEN }, 600);
}

/// Returns how many calls were in plain form.
fn compare_over_stdio(kind: ServerKind, beginning: &[&str], cases: u32) -> usize {
    let mut clients = [true, false].map(|is_plain| Client::start(ServerKind { is_plain, ..kind }));
    for line in beginning {
        let answers = clients.each_mut().map(|client| {
            client.send(line);
            client.answers()
        });
        assert_eq!(answers[0], answers[1]);
    }
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let clients = RefCell::new(clients);
    let result = runner.run(&any_message(), |(message, _)| {
        let mut clients = clients.borrow_mut();
        let [plain, long] = clients.each_mut().map(|client| {
            client.send(&message);
            let answers = client.answers();
            (answers, client.seen.take())
        });
        prop_assert_eq!(plain, long);
        Ok(())
    });
    result.unwrap();
    let [plain, long] = clients.into_inner().map(|client| client.seen.plain_calls());
    assert_eq!(long, 0);
    plain
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[test]
fn plain_calls_over_stdio_answer_ask_and_log_what_rmcp_does_after_a_handshake() {
    assert!(compare_over_stdio(OPEN, &[INITIALIZE, INITIALIZED], 300) > 30);
}

#[test]
fn plain_calls_over_stdio_answer_what_rmcp_does_without_a_handshake() {
    assert!(compare_over_stdio(OPEN, &[], 300) > 15);
}

#[test]
fn plain_calls_over_stdio_answer_what_rmcp_does_after_two_handshakes() {
    assert_eq!(compare_over_stdio(OPEN, &[INITIALIZE, INITIALIZED, INITIALIZE], 100), 0);
}

#[test]
fn of_two_calls_with_one_id_over_stdio_only_the_first_to_end_is_answered_whichever_ways_they_go() {
    let call = |number: u32, item: &str, meta: &str| {
        let arguments = format!(r#""arguments":{{"id":"{item}"}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"get_item",{arguments}{meta}}}}}"#)
    };
    // Only rmcp reads this.
    let special = r#","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"}"#;
    for (first, second) in [("", special), (special, ""), ("", ""), (special, special)] {
        for (earlier, later) in [("a", "b"), ("b", "a")] {
            let answers = [true, false].map(|is_plain| {
                let mut client = Client::start(ServerKind { is_plain, ..OPEN });
                client.send(INITIALIZE);
                client.send(INITIALIZED);
                client.answers();
                client.send(&call(1, "wait-a", first));
                client.send(&call(1, "wait-b", second));
                wait_for(|| client.seen.was_asked_for("wait-a") && client.seen.was_asked_for("wait-b"));
                client.send(&call(2, &format!("release-{earlier}"), ""));
                let mut answers = client.next_answers(2);
                client.send(&call(3, &format!("release-{later}"), ""));
                answers.extend(client.next_answers(1));
                answers.extend(client.answers());
                answers
            });
            assert_eq!(answers[0], answers[1], "{first} {second} {earlier}");
            assert_eq!(answers[0].len(), 3, "{answers:?}");
        }
    }
}
