//! The variables of OpenTelemetry, as clients hand them to servers.

use serde_json::json;

use super::{api, document};
use crate::support::certificates::Authority;
use crate::support::{Collector, Session};

#[test]
fn a_bad_value_is_one_warning_and_no_traces() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_TRACES_EXPORTER", "zipkin,otlp"),
        ("OTEL_TRACES_SAMPLER", "hunter2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "hunter2"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file"),
    ] {
        let variables = [&collector.variables()[..], &[(name, value)]].concat();
        let mut session = Session::serving_with(&spec, &upstream, &[], &variables);
        assert_eq!(
            session.call("getThing", &json!({"id": "1"}))["isError"],
            false
        );
        let logs = session.logged(name);
        assert_eq!(logs.matches("WARN").count(), 1, "{logs}");
        assert!(
            logs.contains("there are no traces") && !logs.contains("hunter2"),
            "{logs}"
        );
        session.close_stdin();
        assert_eq!(session.wait(), Some(0));
    }
    assert!(collector.requests().is_empty());
}

#[test]
fn nothing_is_said_and_nothing_is_sent_where_traces_are_off() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    for off in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    ] {
        let variables = [&collector.variables()[..], &[off]].concat();
        let mut session = Session::serving_with(&spec, &upstream, &[], &variables);
        session.call("getThing", &json!({"id": "1"}));
        session.close_stdin();
        assert_eq!(session.wait(), Some(0));
        assert!(!session.logs().contains("traces"), "{}", session.logs());
    }
    assert!(collector.requests().is_empty());
}

/// The API's own exception from checks holds for the API alone.
#[test]
fn the_certificate_of_a_collector_is_checked() {
    let (spec, upstream) = (document(), api());
    let (authority, stranger) = (Authority::new(), Authority::new());
    let url = authority.serve();
    let ca = authority.file("ca.pem");
    let strange = stranger.file("ca.pem");
    for (flags, certificate, is_taken) in [
        (&["--ca-cert", ca.as_str()][..], "", true),
        (&[], ca.as_str(), true),
        (&[], "", false),
        (&[], &strange, false),
        (&["--insecure-upstream"], "", false),
    ] {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate),
        ];
        let mut session = Session::serving_with(&spec, &upstream, flags, &variables);
        session.call("getThing", &json!({"id": "1"}));
        let logs = session.end();
        assert!(logs.contains("traces go to https://"), "{logs}");
        assert_eq!(
            !logs.contains("spans are lost"),
            is_taken,
            "{flags:?} {certificate}: {logs}"
        );
    }
}
