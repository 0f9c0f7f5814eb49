//! Spans as the messages of OTLP.

use std::time::{Duration, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind as WireKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, SpanFlags, Status};
use prost::Message as _;

use super::context::TraceContext;
use super::span::{AttributeValue, FinishedSpan, SpanKind};

/// The message that carries these spans, as bytes.
pub(super) fn write_request(resource: &[(String, String)], spans: Vec<FinishedSpan>) -> Vec<u8> {
    let attributes = resource.iter();
    let resource = Resource {
        attributes: attributes
            .map(|(name, value)| key_value(name, Value::StringValue(value.clone())))
            .collect(),
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "openapi-mcp".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    };
    let spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.into_iter().map(span).collect(),
        ..ScopeSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![spans],
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec()
}

/// Returns the number of spans that the collector reports as refused.
pub(super) fn refused_spans(response: &[u8]) -> usize {
    let read = ExportTraceServiceResponse::decode(response).unwrap_or_default();
    let refused = read
        .partial_success
        .map_or(0, |partial| partial.rejected_spans);
    usize::try_from(refused).unwrap_or(0)
}

fn span(span: FinishedSpan) -> Span {
    let FinishedSpan {
        place,
        kind,
        name,
        started,
        duration,
        attributes,
        has_failed,
    } = span;
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let status = has_failed.then(|| Status {
        code: StatusCode::Error.into(),
        // A text could hold what the API or the client said.
        message: String::new(),
    });
    let attributes = attributes.into_iter().map(|(name, value)| {
        let value = match value {
            AttributeValue::Text(text) => Value::StringValue(text.into_owned()),
            AttributeValue::Number(number) => Value::IntValue(number),
        };
        key_value(name, value)
    });
    Span {
        trace_id: place.trace_id.to_be_bytes().to_vec(),
        span_id: place.span_id.to_be_bytes().to_vec(),
        parent_span_id: place
            .parent
            .map(|id| id.to_be_bytes().to_vec())
            .unwrap_or_default(),
        trace_state: place.state.map(String::from).unwrap_or_default(),
        flags: flags(place.is_sampled, place.has_remote_parent),
        name,
        kind: match kind {
            SpanKind::Server => WireKind::Server,
            SpanKind::Client => WireKind::Client,
        }
        .into(),
        start_time_unix_nano: nanoseconds(started),
        end_time_unix_nano: nanoseconds(started + duration),
        attributes: attributes.collect(),
        links: place.links.into_iter().map(link).collect(),
        status,
        ..Span::default()
    }
}

fn link(context: TraceContext) -> Link {
    Link {
        trace_id: context.trace_id.to_be_bytes().to_vec(),
        span_id: context.span_id.to_be_bytes().to_vec(),
        trace_state: context.state.map(String::from).unwrap_or_default(),
        flags: flags(context.is_sampled, true),
        ..Link::default()
    }
}

/// The flags of the trace, and whether what the span hangs on is in another process.
fn flags(is_sampled: bool, is_remote: bool) -> u32 {
    let remote = if is_remote {
        SpanFlags::ContextIsRemoteMask as u32
    } else {
        0
    };
    u32::from(is_sampled) | SpanFlags::ContextHasIsRemoteMask as u32 | remote
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn key_value(name: &str, value: Value) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
