//! Description of a failed exchange: a class in words for the model, and the whole chain of causes
//! for the log.

use std::io;

use rustls::AlertDescription;

use crate::call_error::CallError;
use crate::fd_limit::is_out_of_descriptors;
use crate::outbound::{OutboundFailure, Stage};
use crate::text;

/// The error for a request that got no head of a reply. A reply that came and is not valid HTTP is
/// another matter: there the API did act.
pub(super) fn request_error(failure: &OutboundFailure, is_https: bool) -> CallError {
    let cause = text::error_in_a_line(&failure.cause);
    if failure.stage == Stage::Connect {
        let sentence = describe_connection_failure(failure);
        return CallError::NoResponse {
            sentence,
            cause,
            connected: false,
        };
    }
    let is_malformed = failure
        .causes()
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_parse);
    let sentence = match (is_malformed, is_https) {
        (true, false) => {
            "the reply of the API is not valid HTTP/1.1; an API that speaks only HTTP/2 is called over https, and so is one that wants TLS on that port"
        }
        (true, true) => "the reply of the API is not valid HTTP",
        (false, _) if failure.is_timeout() => "the API did not answer in time",
        (false, _) => {
            return CallError::NoResponse {
                sentence: "the connection to the API broke before a reply began",
                cause,
                connected: true,
            };
        }
    };
    CallError::Network { sentence, cause }
}

/// The error for a reply whose body did not arrive whole.
pub(super) fn body_error(failure: &OutboundFailure) -> CallError {
    let sentence = if failure.is_timeout() {
        "the API did not answer in time"
    } else if failure.stage == Stage::Decode {
        "the reply of the API cannot be decompressed"
    } else {
        "the connection broke before the reply was complete"
    };
    CallError::Network {
        sentence,
        cause: text::error_in_a_line(&failure.cause),
    }
}

/// Describes why there is no connection, without the host or the address.
fn describe_connection_failure(failure: &OutboundFailure) -> &'static str {
    if failure.has_proxy
        && let Some(sentence) = failure.causes().find_map(describe_proxy_failure)
    {
        return sentence;
    }
    for cause in failure.causes() {
        if let Some(sentence) = cause.downcast_ref().and_then(describe_io_error) {
            return sentence;
        }
        // hyper-util gives this error no type of its own.
        if cause.to_string().starts_with("dns error") {
            return "the API cannot be reached: its name does not resolve";
        }
    }
    if failure.is_timeout() {
        "the API cannot be reached: connecting took too long"
    } else {
        "the API cannot be reached: the connection failed"
    }
}

/// Describes a failure to reach a proxy. Only the proxy is connected to, and only its name is
/// resolved here.
fn describe_proxy_failure(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let refused = cause
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if refused {
        Some("the API cannot be reached: the proxy of this server refused the connection")
    } else if cause.to_string().starts_with("dns error") {
        Some("the API cannot be reached: the name of this server's proxy does not resolve")
    } else {
        None
    }
}

fn describe_io_error(error: &io::Error) -> Option<&'static str> {
    if is_out_of_descriptors(error) {
        return Some(
            "the API cannot be reached: this server has no file descriptor left for a connection; try again in a moment, with fewer calls at a time",
        );
    }
    // `source` of an `io::Error` passes over the error that it wraps.
    if let Some(inner) = error.get_ref() {
        let tls = inner.downcast_ref().map(describe_tls_error);
        return tls.or_else(|| inner.downcast_ref().and_then(describe_io_error));
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            Some("the API cannot be reached: it refused the connection")
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            Some("the API cannot be reached: it closed the connection before a request was sent")
        }
        io::ErrorKind::TimedOut => Some("the API cannot be reached: connecting took too long"),
        _ => None,
    }
}

fn describe_tls_error(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(error)
            if format!("{error:?}").contains("CaUsedAsEndEntity") =>
        {
            "the API cannot be reached: its certificate is that of an authority itself (CA:TRUE), which no server may show; give the server one with `basicConstraints` CA:FALSE"
        }
        rustls::Error::InvalidCertificate(_) => {
            "the API cannot be reached: its certificate is not trusted; whoever runs this server can name its authority with --ca-cert"
        }
        rustls::Error::InvalidMessage(_) => {
            "the API cannot be reached: it does not speak TLS on that port"
        }
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the API cannot be reached: it offers neither HTTP/2 nor HTTP/1.1 on that port"
        }
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::BadCertificate,
        ) => {
            "the API cannot be reached: it asks for a client certificate; whoever runs this server sets one with `client_cert` and `client_key`"
        }
        _ => "the API cannot be reached: the TLS handshake failed",
    }
}
