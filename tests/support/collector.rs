//! A collector: real HTTP on a port of its own, which decodes the spans that it is sent.

use std::collections::BTreeMap;
use std::io::Read as _;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use super::{Received, Upstream, reply, wait_until};

/// A span as it came.
#[derive(Debug, Clone)]
pub struct ReceivedSpan {
    pub name: String,
    /// `server` or `client`.
    pub kind: &'static str,
    pub trace: String,
    pub id: String,
    /// Empty for the first span of a trace.
    pub parent: String,
    pub state: String,
    pub attributes: BTreeMap<String, String>,
    /// `traceparent` of each link, without its flags.
    pub links: Vec<String>,
    pub has_failed: bool,
    pub is_sampled: bool,
    pub has_remote_parent: bool,
    pub nanoseconds: u64,
}

pub struct Collector {
    upstream: Upstream,
}

impl Collector {
    /// One that takes everything.
    pub fn start() -> Self {
        Self::answering(|_| reply(200, &["Content-Type: application/x-protobuf"], b""))
    }

    /// Starts a collector that answers by a function.
    pub fn answering(answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self {
            upstream: Upstream::start(Box::new(answer)),
        }
    }

    pub fn url(&self) -> &str {
        &self.upstream.url
    }

    /// The variables that make a server send its spans here, soon.
    pub fn variables(&self) -> [(&str, &str); 2] {
        [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", self.url()),
            ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ]
    }

    pub fn requests(&self) -> Vec<Received> {
        self.upstream.received()
    }

    /// All that was sent so far, as one text, compressed bodies included.
    pub fn everything(&self) -> String {
        let bodies = self.requests();
        bodies
            .iter()
            .map(|request| String::from_utf8_lossy(&body(request)).into_owned())
            .collect()
    }

    /// The attributes of the process that sent the last spans.
    pub fn resource(&self) -> BTreeMap<String, String> {
        let last = self.requests().pop().expect("a request");
        let read = ExportTraceServiceRequest::decode(body(&last).as_slice()).expect("OTLP");
        attributes(
            &read.resource_spans[0]
                .resource
                .as_ref()
                .expect("a resource")
                .attributes,
        )
    }

    pub fn spans(&self) -> Vec<ReceivedSpan> {
        let requests = self.requests();
        let messages = requests.iter().map(|request| {
            ExportTraceServiceRequest::decode(body(request).as_slice()).expect("OTLP")
        });
        let scopes = messages
            .flat_map(|message| message.resource_spans)
            .flat_map(|spans| spans.scope_spans);
        scopes
            .flat_map(|scope| scope.spans)
            .map(|span| read(&span))
            .collect()
    }

    /// Waits for so many spans of calls and of requests to the API, and gives these in the order in
    /// which they ended.
    pub fn wait_for(&self, count: usize) -> Vec<ReceivedSpan> {
        let of_calls = || {
            let spans = self.spans().into_iter();
            let is_of_call =
                |span: &ReceivedSpan| span.kind == "client" || span.name.starts_with("tools/call");
            spans.filter(is_of_call).collect::<Vec<_>>()
        };
        wait_until("the spans come", || of_calls().len() >= count);
        of_calls()
    }

    /// Waits for so many spans of calls, and gives these.
    pub fn calls(&self, count: usize) -> Vec<ReceivedSpan> {
        let calls = || {
            let spans = self.spans().into_iter();
            spans
                .filter(|span| span.name.starts_with("tools/call"))
                .collect::<Vec<_>>()
        };
        wait_until("the spans of the calls come", || calls().len() >= count);
        calls()
    }
}

fn body(request: &Received) -> Vec<u8> {
    if request.header("content-encoding") != Some("gzip") {
        return request.body.clone();
    }
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(request.body.as_slice())
        .read_to_end(&mut body)
        .expect("gzip");
    body
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(given: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<Value>| match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let pairs = given.iter().map(|pair| {
        (
            pair.key.clone(),
            text(&pair.value.as_ref().expect("a value").value),
        )
    });
    let read: BTreeMap<String, String> = pairs.collect();
    assert_eq!(
        read.len(),
        given.len(),
        "an attribute is there twice: {given:?}"
    );
    read
}

fn read(span: &Span) -> ReceivedSpan {
    assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
    assert!(span.start_time_unix_nano > 0 && span.end_time_unix_nano >= span.start_time_unix_nano);
    ReceivedSpan {
        name: span.name.clone(),
        kind: match span.kind {
            2 => "server",
            3 => "client",
            other => panic!("kind {other}"),
        },
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        state: span.trace_state.clone(),
        attributes: attributes(&span.attributes),
        links: span
            .links
            .iter()
            .map(|link| format!("{}-{}", hex(&link.trace_id), hex(&link.span_id)))
            .collect(),
        has_failed: span.status.as_ref().is_some_and(|status| status.code == 2),
        is_sampled: span.flags & 1 == 1,
        has_remote_parent: span.flags & 0x200 != 0,
        nanoseconds: span.end_time_unix_nano - span.start_time_unix_nano,
    }
}
