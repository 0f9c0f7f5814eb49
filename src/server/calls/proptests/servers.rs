//! Servers of one API, and what can be seen of their work.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};

use crate::api::{Api, ApiOptions, Confirm, ConfirmLevel, Destination};
use crate::outbound::{OutboundOptions, http_client};
use crate::server::McpServer;
use crate::server::endpoints::api_slot::ApiSlot;
use crate::server::gates::{ListMode, ListOptions};
use crate::server::http::{self, AccessOptions, HttpOptions, StaticToken};
use crate::spec::Document;

/// What clients prove who they are with, where they are asked.
pub(super) const TOKEN: &str = "a-token-of-clients-0123456789";
/// How long anything is waited for.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);

/// Without confirmation, authentication, secrets and gates.
pub(super) const OPEN: ServerKind = ServerKind {
    is_plain: true,
    confirms: false,
    has_tokens: false,
    has_secret: false,
    searches: false,
};

const DOCUMENT: &str = r#"{"openapi":"3.1.0","info":{"title":"T","version":"1"},"paths":{
  "/items/{id}":{
    "get":{"operationId":"get_item","parameters":[
      {"name":"id","in":"path","required":true,"schema":{"type":"string"}},
      {"name":"page","in":"query","schema":{"type":"integer"}},
      {"name":"q","in":"query","schema":{"type":"array","items":{"type":"string"}}}]},
    "delete":{"operationId":"delete_item","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}]}},
  "/items":{"post":{"operationId":"add_item","requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object",
    "properties":{"n":{"type":"number"},"s":{"type":"string"}},"required":["n"]}}}}}}}}"#;

/// What the API answers, by the last part of the path.
fn reply(path: &str) -> (&'static str, &'static str, String) {
    let json = "Content-Type: application/json\r\n";
    let id = path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let long = || format!("[{}0]", "{\"a\":\"bcdefgh\"},".repeat(9000));
    match id {
        "pretty" => ("200 OK", json, "{\n  \"a\" : [ 1.50, 2 ],\n  \"b\": \"x\\ny\"\n}\n".into()),
        "twice" => ("200 OK", json, r#"{"a":1,"b":{"c":1,"c":2},"a":3}"#.into()),
        "escapes" => ("200 OK", json, r#"{"\u0061":"\u00e9\/\ud83d\ude00","b":"é\u001f"}"#.into()),
        "half" => ("200 OK", json, r#"{"a":"\ud800"}"#.into()),
        "secret" => ("200 OK", json, r#"{"a":"a-s3cret-value","b":["x a-s3cret\u002dvalue"]}"#.into()),
        "list" => ("200 OK", json, "[1,2,{\"a\":null}]".into()),
        "number" => ("200 OK", json, "1E400".into()),
        "broken" => ("200 OK", json, "{\"a\":".into()),
        "reserved" => ("200 OK", json, r#"{"$serde_json::private::Number":"1"}"#.into()),
        "more" => (
            "200 OK",
            "Content-Type: application/json\r\nLink: </items/more?page=2>; rel=\"next\"\r\nETag: \"e\"\r\n",
            "{\"next_page\":2}".into(),
        ),
        "long" => ("200 OK", json, long()),
        "deep" => ("200 OK", json, format!("{}{}", "[".repeat(150), "]".repeat(150))),
        "text" => ("200 OK", "Content-Type: text/plain\r\n", "plain\ntext".into()),
        "image" => ("200 OK", "Content-Type: image/png\r\n", "\u{1}PNG".into()),
        "none" => ("204 No Content", "X-A: b\r\n", String::new()),
        "missing" => ("404 Not Found", json, "{\"error\":\"no\"}".into()),
        "bad" => ("400 Bad Request", json, "{\"error\":\"bad\"}".into()),
        "redirect" => ("302 Found", "Location: /elsewhere\r\n", String::new()),
        _ => (
            "200 OK",
            json,
            format!("{{\"id\":\"{}\",\"tags\":[{{\"a\":1}}]}}", id.replace(['"', '\\'], "")),
        ),
    }
}

/// Waits until something is so, or for too long.
pub(super) fn wait_for(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() && begun.elapsed() < DEADLINE {
        thread::sleep(Duration::from_millis(1));
    }
}

type SharedLines = Arc<Mutex<Vec<String>>>;

/// An API that notes what it is asked, without what differs between two servers.
fn upstream() -> (SocketAddr, SharedLines) {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = SharedLines::default();
    let noted = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, noted) = (stream.unwrap(), Arc::clone(&noted));
            thread::spawn(move || {
                while let Some((head, body)) = read_http(&mut stream) {
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    let (status, headers, answer) = reply(&path);
                    let request = head.replace(&address.to_string(), "HOST");
                    noted
                        .lock()
                        .unwrap()
                        .push(format!("{request}\r\n\r\n{}", String::from_utf8_lossy(&body)));
                    if let Some((_, name)) = path.split_once("/wait-") {
                        let released = format!("/release-{name} ");
                        wait_for(|| noted.lock().unwrap().iter().any(|request| request.contains(&released)));
                    }
                    let length = if status.starts_with("204") {
                        String::new()
                    } else {
                        format!("Content-Length: {}\r\n", answer.len())
                    };
                    if write!(stream, "HTTP/1.1 {status}\r\n{headers}{length}\r\n{answer}").is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, seen)
}

/// The head and the body of the next message; `None` at the end.
pub(super) fn read_http(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap().trim_end().to_owned();
    let value = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        lines
            .into_iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    };
    let mut body = Vec::new();
    if value("transfer-encoding").is_some() {
        while !body.ends_with(b"0\r\n\r\n") {
            if stream.read(&mut byte).ok()? == 0 {
                break;
            }
            body.push(byte[0]);
        }
    } else {
        body.resize(value("content-length").map_or(0, |length| length.parse().unwrap()), 0);
        stream.read_exact(&mut body).ok()?;
    }
    Some((head, body))
}

/// Keeps the events of this crate, without how long something took.
struct EventLog(SharedLines);

impl tracing::Subscriber for EventLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        // When a connection is seen to have ended says nothing about the calls on it.
        let target = metadata.target();
        target.starts_with("openapi_mcp") && !target.ends_with("::connection") && metadata.is_event()
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct EventText(String);
        impl Visit for EventText {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if !["ms", "port"].contains(&field.name()) {
                    let _ = write!(self.0, " {}={value:?}", field.name());
                }
            }
        }
        let mut text = EventText(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// One of the two servers, and what can be seen of its work.
pub(super) struct Seen {
    asked: SharedLines,
    logged: SharedLines,
    pub(super) server: McpServer,
}

impl Seen {
    pub(super) fn plain_calls(&self) -> usize {
        self.server.plain_calls.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Whether the API was asked for an item.
    pub(super) fn was_asked_for(&self, id: &str) -> bool {
        let path = format!("/items/{id} ");
        self.asked.lock().unwrap().iter().any(|request| request.contains(&path))
    }

    pub(super) fn take(&self) -> (Vec<String>, Vec<String>) {
        let take = |lines: &SharedLines| std::mem::take(&mut *lines.lock().unwrap());
        (take(&self.asked), take(&self.logged))
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a setting that is on or off")]
#[derive(Clone, Copy)]
pub(super) struct ServerKind {
    pub(super) is_plain: bool,
    pub(super) confirms: bool,
    pub(super) has_tokens: bool,
    pub(super) has_secret: bool,
    /// Whether a few tools stand for all operations.
    pub(super) searches: bool,
}

/// Runs a server in a thread of its own, whose events are kept.
pub(super) fn start<T: Send + 'static>(
    kind: ServerKind,
    run: impl FnOnce(McpServer, tokio::runtime::Runtime) -> T + Send + 'static,
) -> Seen {
    let (address, asked) = upstream();
    let logged = SharedLines::default();
    let kept = Arc::clone(&logged);
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tracing::subscriber::with_default(EventLog(logged), || {
            let plain = OutboundOptions {
                tls: false,
                ..OutboundOptions::default()
            };
            let mut options = ApiOptions {
                destination: Destination::Fixed(format!("http://{address}").parse().unwrap()),
                ..ApiOptions::default()
            };
            if kind.confirms {
                options.annotate.confirm = Confirm {
                    level: ConfirmLevel::Destructive,
                    patterns: Vec::new(),
                };
            }
            if kind.has_secret {
                options.headers.insert("authorization", "Bearer a-s3cret-value".parse().unwrap());
            }
            let document = Document::parse(DOCUMENT.as_bytes().to_vec(), None).unwrap();
            let (api, _) = Api::build(document, options, http_client(&plain).unwrap()).unwrap();
            let mode = if kind.searches { ListMode::Search } else { ListMode::All };
            let slot = ApiSlot {
                list: ListOptions {
                    mode,
                    ..ListOptions::default()
                },
                ..ApiSlot::default()
            };
            let mut server = McpServer::awaiting(vec![slot], None).with_confirm(kind.confirms);
            server.ready(Arc::new(api));
            if !kind.is_plain {
                server = server.without_plain_calls();
            }
            sender.send(server.clone()).unwrap();
            run(server, runtime);
        });
    });
    Seen {
        asked,
        logged: kept,
        server: receiver.recv_timeout(DEADLINE).unwrap(),
    }
}

pub(super) fn start_http(kind: ServerKind) -> (SocketAddr, Seen) {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let seen = start(kind, move |server, runtime| {
        let tokens = if kind.has_tokens {
            vec![StaticToken::parse(TOKEN).unwrap()]
        } else {
            Vec::new()
        };
        let options = HttpOptions {
            access: AccessOptions {
                tokens,
                ..AccessOptions::default()
            },
            ..HttpOptions::default()
        };
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            http::serve(listener, server, &options, None, CancellationToken::new())
                .await
                .unwrap();
        });
    });
    (address, seen)
}
