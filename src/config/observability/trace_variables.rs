//! The variables of OpenTelemetry, and the forms of their values.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use percent_encoding::percent_decode_str;

use crate::config::variables::{counts_as_unset, read_variable};

const EXPORTER: &str = "OTEL_EXPORTER_OTLP_";
/// The variables that count, besides those of the exporter.
const OTHERS: [&str; 7] = [
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
];
/// Suffixes of the exporter's variables; each is also valid after `TRACES_`.
const OF_EXPORTER: [&str; 8] = [
    "ENDPOINT",
    "PROTOCOL",
    "HEADERS",
    "TIMEOUT",
    "COMPRESSION",
    "CERTIFICATE",
    "CLIENT_CERTIFICATE",
    "CLIENT_KEY",
];

/// The variables that are set and not empty.
pub(super) struct TraceVariables(BTreeMap<String, String>);

impl TraceVariables {
    pub(super) fn of_environment() -> Self {
        let of_exporter = OF_EXPORTER.iter().flat_map(|name| {
            [
                format!("{EXPORTER}{name}"),
                format!("{EXPORTER}TRACES_{name}"),
            ]
        });
        let names = of_exporter.chain(OTHERS.iter().map(|name| (*name).to_owned()));
        Self::from_pairs(names.filter_map(|name| Some((name.clone(), read_variable(&name)?))))
    }

    pub(super) fn from_pairs(pairs: impl Iterator<Item = (String, String)>) -> Self {
        Self(pairs.filter(|(_, value)| !counts_as_unset(value)).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A variable with its name, for what is said of it.
    pub(super) fn named(&self, name: &str) -> Option<(String, &str)> {
        Some((name.to_owned(), self.get(name)?))
    }

    /// A variable of the exporter.
    pub(super) fn of_exporter(&self, name: &str) -> Option<&str> {
        self.get(&format!("{EXPORTER}{name}"))
    }

    /// A variable of the exporter: that of traces alone before that of all signals.
    pub(super) fn of_traces(&self, name: &str) -> Option<(String, &str)> {
        let own = self.named(&format!("{EXPORTER}TRACES_{name}"));
        own.or_else(|| self.named(&format!("{EXPORTER}{name}")))
    }
}

/// Pairs `name=value`, separated by commas, with values percent-encoded.
pub(super) fn read_pairs(variable: &str, text: &str) -> Result<Vec<(String, String)>, String> {
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
pub(super) fn read_headers(variable: &str, text: &str) -> Result<HeaderMap, String> {
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
