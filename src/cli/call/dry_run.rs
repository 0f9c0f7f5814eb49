//! The request of a call as text: an HTTP message, or a `curl` command.

use clap::ValueEnum;

use crate::outbound::request::Request;
use crate::text::shell_word;

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
        DryRunFormat::Http => request.http_text(),
        DryRunFormat::Curl => curl(request),
    }
}

fn curl(request: &Request) -> String {
    let method = match request.method.as_str() {
        // `-X HEAD` would wait for a body that never comes.
        "HEAD" => "--head".to_owned(),
        method => format!("--request {}", shell_word(method)),
    };
    let mut out = format!("curl {method} {}", shell_word(request.url.as_str()));
    for (name, value) in request.header_texts() {
        out.push_str(&format!(
            " \\\n  --header {}",
            shell_word(&format!("{name}: {value}"))
        ));
    }
    if request.body.is_some() {
        match request.body_text() {
            Some(text) => out.push_str(&format!(" \\\n  --data-raw {}", shell_word(text))),
            None => out.push_str(" \\\n  --data-binary @FILE"),
        }
    }
    out
}
