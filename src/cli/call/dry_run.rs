//! The request of a call as text: an HTTP message, or a `curl` command.

use clap::ValueEnum;

use crate::outbound::request::Request;

/// Format of the request.
#[derive(Clone, Copy, ValueEnum)]
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
        DryRunFormat::Curl => request.curl_text(),
    }
}
