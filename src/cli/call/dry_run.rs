//! The request of a call as text: an HTTP message, or a `curl` command.

use clap::ValueEnum;

use crate::outbound::payload::Payload;
use crate::outbound::request::Request;
use crate::text::{counted, shell_word};

/// Format of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRunFormat {
    /// As an HTTP/1.1 message
    Http,
    /// As a command for a shell
    Curl,
}

/// The request in that shape. It holds no credential; see [`crate::api::Api::preview`].
pub(crate) fn format_request(request: &Request, shape: DryRunFormat) -> String {
    match shape {
        DryRunFormat::Http => http_text(request),
        DryRunFormat::Curl => curl(request),
    }
}

/// The headers in the order in which they are sent, but for those that the client itself writes.
fn headers(request: &Request) -> impl Iterator<Item = (&str, String)> {
    let value_text =
        |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    request
        .headers
        .iter()
        .map(move |(name, value)| (name.as_str(), value_text(value)))
}

/// A body that is text, and in memory.
fn body_text(body: &Payload) -> Option<&str> {
    std::str::from_utf8(body.bytes()?).ok()
}

fn http_text(request: &Request) -> String {
    let url = &request.url;
    let query = url
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let host = url.authority();
    let mut out = format!(
        "{} {}{query} HTTP/1.1\nhost: {host}\n",
        request.method,
        url.path()
    );
    for (name, value) in headers(request) {
        out.push_str(&format!("{name}: {value}\n"));
    }
    if let Some(body) = &request.body {
        out.push_str(&format!("content-length: {}\n\n", body.length()));
        match body_text(body) {
            Some(text) => out.push_str(text),
            None => out.push_str(&format!(
                "({} that are not text)",
                counted(usize::try_from(body.length()).unwrap_or(usize::MAX), "byte")
            )),
        }
    }
    out.trim_end().to_owned()
}

fn curl(request: &Request) -> String {
    let method = match request.method.as_str() {
        // `-X HEAD` would wait for a body that never comes.
        "HEAD" => "--head".to_owned(),
        method => format!("--request {}", shell_word(method)),
    };
    let mut out = format!("curl {method} {}", shell_word(request.url.as_str()));
    for (name, value) in headers(request) {
        out.push_str(&format!(
            " \\\n  --header {}",
            shell_word(&format!("{name}: {value}"))
        ));
    }
    if let Some(body) = &request.body {
        match body_text(body) {
            Some(text) => out.push_str(&format!(" \\\n  --data-raw {}", shell_word(text))),
            None => out.push_str(" \\\n  --data-binary @FILE"),
        }
    }
    out
}
