//! The export of spans, by the variables of OpenTelemetry's specification. Clients pass their own
//! variables to servers over stdio, so no fault here ends a start: variables that cannot be used
//! cause one warning, and there are no traces.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::config::problems::Problems;
use crate::config::upstream::{read_authorities, read_identity};
use crate::config::values::{UrlForm, plain_url};
use crate::config::variables::{counts_as_unset, read_variable};
use crate::observe::traces::options::{Sampler, TraceOptions};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_SCHEDULE_DELAY: Duration = Duration::from_secs(5);
const DEFAULT_SAMPLER: &str = "parentbased_always_on";
/// The path of traces below `OTEL_EXPORTER_OTLP_ENDPOINT`.
const TRACES_PATH: &str = "v1/traces";

/// Configuration of traces.
#[derive(Clone)]
pub(crate) struct TracesConfig {
    /// Export of spans, without which none are made; or the reason for which there are no traces
    /// although variables request them.
    pub(crate) export: Result<Option<TraceOptions>, String>,
    /// True if the trace of a call is sent to the API.
    pub(crate) propagates: bool,
}

/// Reads the configuration of traces from the variables.
pub(super) fn resolve_traces(propagates: bool) -> TracesConfig {
    TracesConfig {
        export: read_options(&TraceVariables(&read_variable)),
        propagates,
    }
}

/// Reads the exporter and the sampling; `None` if no variable requests traces.
fn read_options(variables: &TraceVariables<'_>) -> Result<Option<TraceOptions>, String> {
    let is = |name: &str, wanted: &str| {
        variables
            .get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case(wanted))
    };
    if variables.of_traces("ENDPOINT").is_none()
        || is("OTEL_SDK_DISABLED", "true")
        || is("OTEL_TRACES_EXPORTER", "none")
    {
        return Ok(None);
    }
    if variables.get("OTEL_TRACES_EXPORTER").is_some() && !is("OTEL_TRACES_EXPORTER", "otlp") {
        return Err("OTEL_TRACES_EXPORTER must be otlp or none".into());
    }
    let protocol = variables.of_traces("PROTOCOL");
    if let Some((name, _)) =
        protocol.filter(|(_, value)| !value.eq_ignore_ascii_case("http/protobuf"))
    {
        return Err(format!(
            "{name} must be http/protobuf, the only protocol here"
        ));
    }
    let gzip = match variables.of_traces("COMPRESSION") {
        None => false,
        Some((_, value)) if value.eq_ignore_ascii_case("none") => false,
        Some((_, value)) if value.eq_ignore_ascii_case("gzip") => true,
        Some((name, _)) => return Err(format!("{name} must be none or gzip")),
    };
    let (authorities, identity) = read_certificates(variables)?;
    let headers = variables.of_traces("HEADERS");
    Ok(Some(TraceOptions {
        endpoint: read_endpoint(variables)?,
        headers: headers.map_or_else(
            || Ok(HeaderMap::new()),
            |(name, value)| read_headers(&name, &value),
        )?,
        timeout: read_milliseconds(variables.of_traces("TIMEOUT"), DEFAULT_TIMEOUT)?,
        gzip,
        schedule_delay: read_milliseconds(
            variables.named("OTEL_BSP_SCHEDULE_DELAY".into()),
            DEFAULT_SCHEDULE_DELAY,
        )?,
        sampler: read_sampler(variables)?,
        resource: read_resource(variables)?,
        authorities,
        identity,
    }))
}

fn read_endpoint(variables: &TraceVariables<'_>) -> Result<Url, String> {
    let (name, text) = variables.of_traces("ENDPOINT").unwrap_or_default();
    let mut url = plain_url(&text, UrlForm::Address).ok_or_else(|| {
        format!("{name} must be an http(s) URL without user and password; OTEL_EXPORTER_OTLP_HEADERS can hold a credential")
    })?;
    if !name.contains("TRACES") {
        let path = format!("{}/{TRACES_PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

fn read_milliseconds(
    variable: Option<(String, String)>,
    default: Duration,
) -> Result<Duration, String> {
    let Some((name, text)) = variable else {
        return Ok(default);
    };
    let milliseconds = text
        .trim()
        .parse()
        .ok()
        .filter(|number| (1..=3_600_000).contains(number));
    let milliseconds =
        milliseconds.ok_or_else(|| format!("{name} must be a number of milliseconds"))?;
    Ok(Duration::from_millis(milliseconds))
}

fn read_sampler(variables: &TraceVariables<'_>) -> Result<Sampler, String> {
    let name = variables.get("OTEL_TRACES_SAMPLER");
    let name = name.unwrap_or_else(|| DEFAULT_SAMPLER.into());
    let name = name.trim().to_ascii_lowercase();
    let argument = match variables
        .get("OTEL_TRACES_SAMPLER_ARG")
        .filter(|_| name.ends_with("traceidratio"))
    {
        None => None,
        Some(text) => {
            let ratio = text
                .trim()
                .parse()
                .ok()
                .filter(|ratio| (0.0..=1.0).contains(ratio));
            Some(ratio.ok_or("OTEL_TRACES_SAMPLER_ARG must be a share between 0 and 1")?)
        }
    };
    Sampler::named(&name, argument)
        .ok_or_else(|| "OTEL_TRACES_SAMPLER must be always_on, always_off or traceidratio, or one of these after `parentbased_`".to_owned())
}

/// Reads the attributes of the process: the variables take precedence over the built-in ones.
fn read_resource(variables: &TraceVariables<'_>) -> Result<Vec<(String, String)>, String> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut resource = vec![
        ("service.name".to_owned(), "openapi-mcp".to_owned()),
        ("service.version".to_owned(), version.clone()),
        ("telemetry.sdk.name".to_owned(), "openapi-mcp".to_owned()),
        ("telemetry.sdk.language".to_owned(), "rust".to_owned()),
        ("telemetry.sdk.version".to_owned(), version),
    ];
    let mut set = |name: String, value: String| {
        resource.retain(|(known, _)| *known != name);
        resource.push((name, value));
    };
    if let Some(text) = variables.get("OTEL_RESOURCE_ATTRIBUTES") {
        read_pairs("OTEL_RESOURCE_ATTRIBUTES", &text)?
            .into_iter()
            .for_each(|(name, value)| set(name, value));
    }
    if let Some(name) = variables.get("OTEL_SERVICE_NAME") {
        set("service.name".into(), name);
    }
    Ok(resource)
}

type Certificates = (
    Vec<rustls::pki_types::CertificateDer<'static>>,
    Option<std::sync::Arc<crate::outbound::Identity>>,
);

fn read_certificates(variables: &TraceVariables<'_>) -> Result<Certificates, String> {
    let mut problems = Problems::default();
    let path = |name: &str| variables.of_traces(name).map(|(_, path)| path);
    let authorities = variables.of_traces("CERTIFICATE");
    let authorities = authorities.map_or_else(Vec::new, |(name, path)| {
        read_authorities(&name, &[path], &mut problems)
    });
    let names = [
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_CLIENT_KEY",
    ];
    let identity = match (path("CLIENT_CERTIFICATE"), path("CLIENT_KEY")) {
        (Some(certificate), Some(key)) => {
            read_identity(names, certificate.as_ref(), key.as_ref(), &mut problems)
        }
        (None, None) => None,
        _ => return Err(format!("{} need each other", names.join(" and "))),
    };
    problems
        .into_iter()
        .next()
        .map_or(Ok((authorities, identity)), Err)
}

/// The variables of the environment.
struct TraceVariables<'v>(&'v dyn Fn(&str) -> Option<String>);

impl TraceVariables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !counts_as_unset(value))
    }

    /// A variable with its name, for what is said of it.
    fn named(&self, name: String) -> Option<(String, String)> {
        let value = self.get(&name)?;
        Some((name, value))
    }

    /// A variable of the exporter: that of traces alone before that of all signals.
    fn of_traces(&self, name: &str) -> Option<(String, String)> {
        let own = self.named(format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
        own.or_else(|| self.named(format!("OTEL_EXPORTER_OTLP_{name}")))
    }
}

/// Pairs `name=value`, separated by commas, with values percent-encoded.
fn read_pairs(variable: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let name = name.trim();
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        (!name.is_empty()).then(|| (name.to_owned(), value.into_owned()))
    };
    pairs
        .map(read)
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{variable} must be `name=value`, separated by commas"))
}

/// Headers as [`read_pairs`] reads them, their values marked as secrets.
fn read_headers(variable: &str, text: &str) -> Result<HeaderMap, String> {
    const OF_THE_MESSAGE: [HeaderName; 4] = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in read_pairs(variable, text)? {
        let header = name
            .parse::<HeaderName>()
            .ok()
            .zip(HeaderValue::from_str(&value).ok());
        let Some((name, mut value)) = header.filter(|(name, _)| !OF_THE_MESSAGE.contains(name))
        else {
            return Err(format!("{variable} holds a header that cannot be sent"));
        };
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<TraceOptions>, String> {
        let value = |name: &str| {
            let known = variables.iter().find(|(known, _)| *known == name);
            known.map(|(_, value)| (*value).to_owned())
        };
        read_options(&TraceVariables(&value))
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/base/");

    #[test]
    fn only_an_endpoint_turns_traces_on() {
        for off in [
            &[][..],
            &[("OTEL_TRACES_EXPORTER", "otlp")],
            &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "${COLLECTOR}")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "True")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
            &[
                ENDPOINT,
                ("OTEL_TRACES_EXPORTER", "none"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ],
        ] {
            assert!(matches!(read(off), Ok(None)), "{off:?}");
        }
        let options = read(&[ENDPOINT]).unwrap().unwrap();
        assert_eq!(
            options.endpoint.as_str(),
            "http://collector:4318/base/v1/traces"
        );
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://other/spans");
        assert_eq!(
            read(&[ENDPOINT, own]).unwrap().unwrap().endpoint.as_str(),
            "https://other/spans"
        );
    }

    #[test]
    fn what_cannot_be_used_is_a_sentence_without_its_value() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_BSP_SCHEDULE_DELAY", "-1"),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2%0d%0ab"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "host=hunter2"),
            ("OTEL_RESOURCE_ATTRIBUTES", "hunter2"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "http://user:hunter2@collector:4318",
            ),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/there/is/no/such/file"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/there/is/no/such/file"),
        ] {
            let why = read(&[ENDPOINT, (name, value)]).unwrap_err();
            assert!(
                why.contains(name) && !why.contains("hunter2"),
                "{name}: {why}"
            );
        }
    }

    #[test]
    fn own_variables_of_traces_come_before_those_of_all_signals() {
        let options = read(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1000"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2000"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-of=all, x-more=1"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                "x-of=traces%20alone=yes",
            ),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_SERVICE_NAME", "pets"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=lost,deployment.environment.name=a%2Cb,service.version=9",
            ),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(options.timeout, Duration::from_secs(2));
        let headers: Vec<_> = options
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap(), value.is_sensitive()))
            .collect();
        assert_eq!(headers, [("x-of", "traces alone=yes", true)]);
        assert!(options.gzip);
        assert_eq!(
            options.sampler,
            Sampler::named("traceidratio", Some(0.25)).unwrap()
        );
        let of = |name: &str| {
            options
                .resource
                .iter()
                .filter(|(known, _)| known == name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("service.name"),
            [&("service.name".to_owned(), "pets".to_owned())]
        );
        assert_eq!(of("service.version")[0].1, "9");
        assert_eq!(of("deployment.environment.name")[0].1, "a,b");
    }
}
