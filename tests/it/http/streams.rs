//! Answers that become streams, and what ends them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::http_server::http_request;
use crate::support::{
    HttpServer, SpecFile, TIMEOUT, Upstream, listener, petstore, reply, stateless_meta,
};

const SLOW_CALL: &str = r#"{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"list_pets","arguments":{},"_meta":{"progressToken":"t"}}}"#;

/// The head of a response, and the stream behind it.
fn begin(
    server: &HttpServer,
    method: &str,
    headers: &[&str],
    body: &str,
) -> (String, BufReader<TcpStream>) {
    let mut stream = server.connect();
    let headers = [headers, &["Connection: close"]].concat();
    stream
        .write_all(http_request(&server.address, method, &headers, body).as_bytes())
        .unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    (head.to_lowercase(), stream)
}

fn next_event(stream: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[test]
fn an_answer_is_json_until_something_is_sent_before_it() {
    let upstream = Upstream::start(Box::new(|_| {
        reply(200, &["Content-Type: application/json"], b"[]")
    }));
    let server = HttpServer::start(&["--spec", &petstore(), "--base-url", &upstream.url]);
    let plain = SLOW_CALL.replace(r#","_meta":{"progressToken":"t"}"#, "");
    let (status, answer) = server.send("POST", &[], &plain);
    assert!(
        status == 200 && answer.contains("content-type: application/json"),
        "{answer}"
    );
    let (head, mut stream) = begin(&server, "POST", &[], SLOW_CALL);
    for line in [
        "200 ok",
        "content-type: text/event-stream",
        "cache-control: no-cache",
        "x-accel-buffering: no",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
    let progress = next_event(&mut stream);
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(progress["params"]["progressToken"], "t", "{progress}");
    let answer =
        std::iter::repeat_with(|| next_event(&mut stream)).find(|message| message["id"] == "slow");
    assert_eq!(answer.unwrap()["result"]["isError"], false);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(
        !rest.contains("data:"),
        "the answer is the last message: {rest}"
    );
}

#[test]
fn p24_closing_the_connection_of_a_post_ends_its_call_in_a_session_too() {
    let (upstream, url) = listener();
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--base-url",
        &url,
        "--confirm",
        "destructive",
    ]);
    let session = server.begin_session(&[]);
    let mut client = server.connect();
    client
        .write_all(http_request(&server.address, "POST", &[&session], SLOW_CALL).as_bytes())
        .unwrap();
    let (mut call, _) = upstream.accept().unwrap();
    call.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert!(
        call.read(&mut [0; 4096]).unwrap() > 0,
        "the request is there"
    );
    drop(client);
    while call
        .read(&mut [0; 4096])
        .expect("the request upstream is still open")
        > 0
    {}
}

#[test]
fn p24_a_call_of_a_session_that_is_cancelled_gets_no_answer() {
    let (upstream, url) = listener();
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--base-url",
        &url,
        "--confirm",
        "destructive",
    ]);
    let session = server.begin_session(&[]);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| server.send("POST", &[&session], SLOW_CALL));
        let (mut asked, _) = upstream.accept().unwrap();
        asked.set_read_timeout(Some(TIMEOUT)).unwrap();
        assert!(
            asked.read(&mut [0; 4096]).unwrap() > 0,
            "the request is there"
        );
        let cancelled =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}"#;
        assert_eq!(server.send("POST", &[&session], cancelled).0, 202);
        while asked
            .read(&mut [0; 4096])
            .expect("the request upstream is still open")
            > 0
        {}
        let (status, answer) = call.join().unwrap();
        assert!(
            status == 200 && !answer.contains("\"id\":\"slow\""),
            "{answer}"
        );
    });
}

#[test]
fn a_session_has_one_stream_of_changes_and_delete_ends_it() {
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "a"}}}));
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:1",
        "--confirm",
        "destructive",
        "--reload",
        "1",
    ];
    let server = HttpServer::start(&args);
    let session = server.begin_session(&[]);
    let headers = [session.as_str(), "Accept: text/event-stream"];
    let (head, mut older) = begin(&server, "GET", &headers, "");
    assert!(head.contains("text/event-stream"), "{head}");
    let (_, mut newer) = begin(&server, "GET", &headers, "");
    let mut rest = String::new();
    older
        .read_to_string(&mut rest)
        .expect("the older stream ends");
    std::fs::write(
        spec.path(),
        json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {"/b": {"get": {"operationId": "b"}}}}).to_string(),
    )
    .unwrap();
    assert_eq!(
        next_event(&mut newer)["method"],
        "notifications/tools/list_changed"
    );
    let (status, answer) = server.send("DELETE", &[&session], "");
    assert_eq!(status, 204, "{answer}");
    newer
        .read_to_string(&mut rest)
        .expect("the stream of an ended session ends");
    assert_eq!(server.send("DELETE", &[&session], "").0, 404);
}

#[test]
fn a_stream_of_a_session_stays_open_where_nothing_changes() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--confirm", "destructive"]);
    let session = server.begin_session(&[]);
    let (_, mut stream) = begin(&server, "GET", &[&session, "Accept: text/event-stream"], "");
    stream
        .get_ref()
        .set_read_timeout(Some(std::time::Duration::from_millis(300)))
        .unwrap();
    let ended = stream.read(&mut [0; 16]);
    assert!(ended.is_err(), "the stream ended: {ended:?}");
    assert_eq!(server.send("DELETE", &[&session], "").0, 204);
}

#[test]
fn a_request_that_names_an_earlier_version_for_itself_belongs_to_its_session() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--confirm", "destructive"]);
    let session = server.begin_session(&[]);
    let mut meta = stateless_meta(&json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = "2025-11-25".into();
    let params = json!({"name": "list_pets", "arguments": {}, "_meta": meta});
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let version = "MCP-Protocol-Version: 2025-11-25";
    assert_eq!(server.send("POST", &[version, &session], &call).0, 200);
    assert_eq!(
        server.send("POST", &[version], &call).0,
        400,
        "without its session"
    );
    assert_eq!(
        server
            .send("POST", &[version, "Mcp-Session-Id: x"], &call)
            .0,
        404
    );
}

#[test]
fn a_subscription_is_acknowledged_and_ends_with_a_result() {
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "a"}}}));
    let mut server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:1",
        "--reload",
        "1",
    ]);
    let params = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}, "_meta": stateless_meta(&json!({}))});
    let listen =
        json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params})
            .to_string();
    let headers = [
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: subscriptions/listen",
    ];
    let (_, mut stream) = begin(&server, "POST", &headers, &listen);
    let acknowledged = next_event(&mut stream);
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    assert_eq!(
        acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "l"
    );
    let ended = std::thread::spawn(move || next_event(&mut stream));
    crate::support::signal(server.pid(), "TERM");
    let ended = ended.join().unwrap();
    assert_eq!(ended["id"], "l", "{ended}");
    assert_eq!(
        ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l",
        "{ended}"
    );
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_message_is_one_object_whose_members_are_there_once() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let code = |body: &str| {
        let (_, answer) = server.post(&[], body);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["error"]["code"].as_i64()
    };
    for body in [
        r#"["2.0",1,"tools/call",{"name":"list_pets"}]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_pets","arguments":{"limit":1,"limit":2}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
    ] {
        assert_eq!(code(body), Some(-32600), "{body}");
    }
    for params in [
        r#"["list_pets"]"#,
        "7",
        r#"{"name":"list_pets","arguments":[]}"#,
        r#"{"name":7}"#,
        r#"{"name":"list_pets","_meta":7}"#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        assert_eq!(code(&body), Some(-32602), "{body}");
    }
    for (id, answered) in [
        ("7.0", "7"),
        ("9007199254740993.0", "9007199254740993"),
        ("\"\\u0061\"", "\"a\""),
    ] {
        let (_, answer) = server.post(
            &[],
            &format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}"),
        );
        assert!(
            answer.contains(&format!("\"id\":{answered},")),
            "{id}: {answer}"
        );
    }
    let versions = [
        "MCP-Protocol-Version: 2025-06-18",
        "MCP-Protocol-Version: 2025-11-25",
    ];
    assert_eq!(
        server
            .send(
                "POST",
                &versions,
                r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
            )
            .0,
        400
    );
    let answer_to_nothing = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
    assert_eq!(server.send("POST", &[], answer_to_nothing).0, 202);
}
