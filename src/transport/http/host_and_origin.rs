//! Admission of web pages: checks `Host` and `Origin` before anything else reads the request, and
//! lets pages that are allowed by name read the answer (Fetch standard, CORS protocol).
//!
//! A page in the operator's browser can send requests to loopback and, with DNS rebinding, read the
//! answers. It cannot choose its `Origin`, and a rebound name appears in `Host`. MCP (transports,
//! "Security Warning") requires 403.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;

use crate::mcp::connections::request_origin::sole_header;
use crate::observe;

/// The layer that applies [`guard`].
pub(super) async fn guard_routes(
    State(allowed): State<Arc<Allowed>>,
    request: Request,
    next: Next,
) -> Response {
    guard(&allowed, request, |request| next.run(request)).await
}

/// Refuses other hosts and origins, and answers a preflight request; all other requests are
/// answered by `answer`.
pub(super) async fn guard<B, F>(
    allowed: &Allowed,
    request: http::Request<B>,
    answer: impl FnOnce(http::Request<B>) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    if let Err(refusal) = refuse_foreign(allowed, request.headers(), request.uri()) {
        return *refusal;
    }
    let is_named = |origin: &&HeaderValue| {
        origin
            .to_str()
            .is_ok_and(|origin| allowed.names_origin(origin))
    };
    let origin = request.headers().get(header::ORIGIN);
    let Some(origin) = origin.filter(is_named).cloned() else {
        return answer(request).await;
    };
    let mut response = if request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        answer(request).await
    };
    allow_reading(origin, response.headers_mut());
    response
}

/// Refuses a request of another host or origin.
pub(super) fn refuse_foreign(
    allowed: &Allowed,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(), Box<Response>> {
    allowed.check(headers, uri).or_else(|why| {
        tracing::warn!("refused: {why}");
        observe::refused_request("host_or_origin");
        refused((StatusCode::FORBIDDEN, format!("Forbidden: {why}\n")))
    })
}

/// Lets pages of an origin read a response.
fn allow_reading(origin: HeaderValue, headers: &mut HeaderMap) {
    let fixed = [
        (header::VARY, "origin"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, DELETE"),
        (
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            "www-authenticate, mcp-session-id, retry-after",
        ),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, traceparent, tracestate",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
}

/// Refuses a request with a response that is ready to be sent.
pub(super) fn refused<T>(response: impl IntoResponse) -> Result<T, Box<Response>> {
    Err(Box::new(response.into_response()))
}

/// Refuses a method.
pub(super) fn refused_method<T>(allowed: &'static str) -> Result<T, Box<Response>> {
    refused((
        StatusCode::METHOD_NOT_ALLOWED,
        [(header::ALLOW, allowed)],
        "Method Not Allowed",
    ))
}

/// The host that a request names. HTTP/2 sends `:authority` in place of Host; if both are present
/// they must be equal (RFC 9113 section 8.3.1).
///
/// # Errors
/// The request names none, or two.
pub(super) fn named_host<'r>(
    headers: &'r HeaderMap,
    uri: &'r Uri,
) -> Result<&'r str, &'static str> {
    let named = sole_header(headers, header::HOST);
    let named = named.map_err(|()| "the request has two Host headers")?;
    let named = named.map(|value| value.to_str().unwrap_or_default());
    match (named, uri.authority().map(Authority::as_str)) {
        (Some(host), Some(authority)) if !host.eq_ignore_ascii_case(authority) => {
            Err("Host and :authority differ")
        }
        (Some(host), _) | (None, Some(host)) => Ok(host),
        (None, None) => Err("the request names no host"),
    }
}

/// Host names and origins that are accepted besides loopback.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// `name` for any port, or `name:port`.
    pub hosts: Vec<String>,
    /// `https://name` or `https://name:port`, as a browser writes it.
    pub origins: Vec<String>,
}

impl Allowed {
    /// Checks a request.
    ///
    /// # Errors
    /// A sentence that says what is not allowed, and how to allow it.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), String> {
        let host = named_host(headers, uri)?;
        if !self.admits_host(host) {
            return Err(format!(
                "the host `{}` is not allowed; start with --allow-host NAME to serve under that name",
                quote_host(host)
            ));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if let Some(origin) = origins.next() {
            let origin = origin.to_str().unwrap_or_default();
            if origins.next().is_some()
                || !(self.admits_origin(origin) || is_own_origin(origin, host))
            {
                return Err(format!(
                    "the origin `{}` is not allowed; list it in `allow_origin` to let that page in",
                    quote_host(origin)
                ));
            }
        }
        Ok(())
    }

    /// Returns true if the text is a host, with or without a port.
    #[must_use]
    pub fn is_host(text: &str) -> bool {
        split_host_port(text).is_some()
    }

    pub(super) fn admits_host(&self, host: &str) -> bool {
        let Some((name, port)) = split_host_port(host) else {
            return false;
        };
        is_loopback(name)
            || self.hosts.iter().any(|allowed| {
                split_host_port(allowed).is_some_and(|(other, wanted)| {
                    other.eq_ignore_ascii_case(name) && (wanted.is_none() || wanted == port)
                })
            })
    }

    /// Returns true if that origin was allowed by name, so that its pages may read answers (CORS).
    fn names_origin(&self, origin: &str) -> bool {
        self.origins
            .iter()
            .any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(origin))
    }

    fn admits_origin(&self, origin: &str) -> bool {
        if self.names_origin(origin) {
            return true;
        }
        let host = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        host.and_then(split_host_port)
            .is_some_and(|(name, _)| is_loopback(name))
    }
}

/// Returns true if an origin is the admitted host: the page at this address. The schemes may differ
/// behind a proxy that ends TLS.
fn is_own_origin(origin: &str, host: &str) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else {
        return false;
    };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let port = |port: Option<u16>| port.unwrap_or(default);
    match (split_host_port(rest), split_host_port(host)) {
        (Some((name, ours)), Some((other, theirs))) => {
            name.eq_ignore_ascii_case(other) && port(ours) == port(theirs)
        }
        _ => false,
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

/// Splits `name`, `name:port` or `[address]:port`; `None` for anything else.
pub(super) fn split_host_port(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(inner) => {
            let end = inner.find(']')? + 2;
            (host.get(..end)?, host.get(end..)?)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:%".contains(&byte);
    if name.is_empty() || !name.bytes().all(legal) {
        return None;
    }
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((name, None)),
        Some(port) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some((name, Some(port.parse().ok()?)))
        }
        _ => None,
    }
}

fn quote_host(text: &str) -> String {
    crate::text::truncate(&crate::text::one_line(text), 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed: &Allowed, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                name.parse::<http::HeaderName>().unwrap(),
                value.parse().unwrap(),
            );
        }
        allowed.check(&map, &Uri::from_static("/mcp")).is_ok()
    }

    #[test]
    fn only_loopback_names_are_hosts_by_default() {
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "[::1]:65535",
            "LOCALHOST",
        ] {
            assert!(check(&Allowed::default(), &[("host", host)]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[::1].evil.example",
            "127.0.0.1:99999999",
            "127.0.0.1:",
            "localhost:80:80",
            "0.0.0.0",
            "",
            "user@localhost",
            "127.0.0.2",
            "localhost ",
        ] {
            assert!(!check(&Allowed::default(), &[("host", host)]), "{host}");
        }
        assert!(!check(&Allowed::default(), &[]));
        assert!(!check(
            &Allowed::default(),
            &[("host", "localhost"), ("host", "localhost")]
        ));
    }

    #[test]
    fn the_page_at_an_admitted_host_may_call_and_no_other_page() {
        let allowed = Allowed {
            hosts: vec!["mcp.example".into()],
            origins: Vec::new(),
        };
        for (host, origin, expected) in [
            ("mcp.example", "https://mcp.example", true),
            ("mcp.example", "http://mcp.example", true),
            ("mcp.example:8443", "https://mcp.example:8443", true),
            ("mcp.example:443", "https://mcp.example", true),
            ("mcp.example:8443", "https://mcp.example", false),
            ("mcp.example", "https://mcp.example:8443", false),
            ("mcp.example", "https://evil.example", false),
            ("mcp.example", "https://mcp.example.evil.example", false),
            ("mcp.example", "null", false),
            ("mcp.example", "file://mcp.example", false),
            ("evil.example", "https://evil.example", false),
        ] {
            assert_eq!(
                check(&allowed, &[("host", host), ("origin", origin)]),
                expected,
                "{host} {origin}"
            );
        }
    }

    #[test]
    fn allowed_hosts_are_names_for_any_port_or_with_one() {
        let allowed = Allowed {
            hosts: vec!["mcp.example".into(), "other.example:8443".into()],
            origins: Vec::new(),
        };
        for (host, expected) in [
            ("mcp.example", true),
            ("MCP.example:9", true),
            ("other.example:8443", true),
            ("other.example", false),
            ("x.mcp.example", false),
        ] {
            assert_eq!(check(&allowed, &[("host", host)]), expected, "{host}");
        }
    }

    #[test]
    fn foreign_origins_are_refused() {
        let allowed = Allowed {
            hosts: Vec::new(),
            origins: vec!["https://app.example".into()],
        };
        for (origin, expected) in [
            ("http://localhost:5173", true),
            ("https://127.0.0.1", true),
            ("https://app.example", true),
            ("http://app.example", false),
            ("https://app.example:444", false),
            ("null", false),
            ("https://localhost.evil.example", false),
            ("file://localhost", false),
            ("", false),
        ] {
            assert_eq!(
                check(&allowed, &[("host", "localhost"), ("origin", origin)]),
                expected,
                "{origin}"
            );
        }
        assert!(!check(
            &allowed,
            &[
                ("host", "localhost"),
                ("origin", "http://localhost"),
                ("origin", "http://localhost")
            ]
        ));
    }
}
