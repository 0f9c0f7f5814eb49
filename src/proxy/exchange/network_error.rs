//! Description of a failed exchange: a class in words for the model, and the whole chain of causes
//! for the log.

use std::error::Error as StdError;
use std::io;

use rustls::AlertDescription;

use crate::call_error::CallError;
use crate::fd_limit::is_out_of_descriptors;
use crate::outbound::{HttpError, is_of_authority};
use crate::text;

/// The error for a request that got no head of a reply. A reply that came and is not valid HTTP is
/// another matter: there the API did act.
pub(super) fn request_error(error: &HttpError, is_https: bool, has_proxy: bool) -> CallError {
    let cause = text::error_in_a_line(error);
    if error.is_connect() {
        let sentence = describe_connection_failure(error, has_proxy);
        return CallError::NoResponse {
            sentence,
            cause,
            connected: false,
        };
    }
    let is_malformed = with_causes(error)
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_parse);
    let sentence = match (is_malformed, is_https) {
        (true, false) => {
            "the reply of the API is not valid HTTP/1.1; an API that speaks only HTTP/2 is called over https, and so is one that wants TLS on that port"
        }
        (true, true) => "the reply of the API is not valid HTTP",
        (false, _) if is_timeout(error) => "the API did not answer in time",
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
pub(super) fn body_error(error: &HttpError) -> CallError {
    // reqwest calls a body that breaks off a decoding error as well; hyper, below it, knows better.
    let is_broken = error.is_body()
        || !error.is_decode()
        || with_causes(error).any(<dyn StdError>::is::<hyper::Error>);
    let sentence = if is_timeout(error) {
        "the API did not answer in time"
    } else if is_broken {
        "the connection broke before the reply was complete"
    } else {
        "the reply of the API cannot be decompressed"
    };
    CallError::Network {
        sentence,
        cause: text::error_in_a_line(error),
    }
}

/// An error and all its causes, from the nearest to the deepest.
fn with_causes(error: &HttpError) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let error: &(dyn StdError + 'static) = error;
    std::iter::once(error).chain(text::error_causes(error))
}

/// Returns true if a limit of time was reached.
fn is_timeout(error: &HttpError) -> bool {
    with_causes(error).any(|cause| {
        let is_timed_out = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        cause.downcast_ref().is_some_and(HttpError::is_timeout)
            || cause.downcast_ref().is_some_and(hyper::Error::is_timeout)
            || cause.downcast_ref().is_some_and(is_timed_out)
    })
}

/// Describes why there is no connection, without the host or the address.
fn describe_connection_failure(error: &HttpError, has_proxy: bool) -> &'static str {
    if has_proxy && let Some(sentence) = with_causes(error).find_map(describe_proxy_failure) {
        return sentence;
    }
    for cause in with_causes(error) {
        if let Some(sentence) = cause.downcast_ref().and_then(describe_io_error) {
            return sentence;
        }
        // hyper-util gives this error no type of its own.
        if cause.to_string().starts_with("dns error") {
            return "the API cannot be reached: its name does not resolve";
        }
    }
    if is_timeout(error) {
        "the API cannot be reached: connecting took too long"
    } else {
        "the API cannot be reached: the connection failed"
    }
}

/// Describes a failure to reach a proxy. Only the proxy is connected to, and only its name is
/// resolved here.
fn describe_proxy_failure(cause: &(dyn StdError + 'static)) -> Option<&'static str> {
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
        error if is_of_authority(error) => {
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
