//! An upstream made from the document itself: what `--mock` calls instead of the real API.
//!
//! A real HTTP server on a loopback port, so that a mocked call takes exactly the path of a real
//! one. It answers with the document's examples, else with a value that fits the schema. An
//! operation that declares 202 is done at the second request for its status.

mod answer;
mod generate;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use tokio::task::AbortHandle;
use url::Url;

use self::answer::{done_answer, first_answer};
use crate::spec::operation::template::TemplatePart;
use crate::spec::{Document, Operation, PathTemplate, operations};

/// A route of the mock.
struct Route {
    operation: Box<Operation>,
    /// Number of its literal segments: `/pets/mine` takes precedence over `/pets/{id}`.
    literals: usize,
}

struct Mock {
    document: Arc<Document>,
    routes: Vec<Route>,
}

/// A mock that answers for as long as this value lives.
pub(crate) struct Running {
    /// Its base URL.
    pub(crate) url: Url,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts the mock on a free loopback port.
///
/// # Errors
/// An error if no port is free.
pub(crate) async fn start_mock(document: Arc<Document>) -> std::io::Result<Running> {
    let (operations, _) = operations(&document);
    let mut routes: Vec<Route> = operations
        .into_iter()
        .map(|operation| Route {
            literals: literals(&operation.template),
            operation,
        })
        .collect();
    routes.sort_by_key(|route| std::cmp::Reverse(route.literals));
    let listener =
        tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let address = listener.local_addr()?;
    let app = Router::new()
        .fallback(handle)
        .with_state(Arc::new(Mock { document, routes }));
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    let url = Url::parse(&format!("http://{address}/")).map_err(std::io::Error::other)?;
    let serving = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!("the mock stopped: {error}");
        }
    });
    Ok(Running {
        url,
        task: serving.abort_handle(),
    })
}

/// The path below which the mock has the status of operations that are done later: the number of a
/// route, and that of the request.
const STATUS_PATH: &str = "/openapi-mcp-mock/";
/// Number of requests for a status until its operation is done.
const STATUS_REQUESTS: usize = 2;

async fn handle(State(mock): State<Arc<Mock>>, request: Request) -> Response {
    let path = request.uri().path();
    if let Some(status) = path.strip_prefix(STATUS_PATH) {
        return answer_status(&mock, status).unwrap_or_else(not_found);
    }
    let found = mock.routes.iter().position(|route| {
        route.operation.method == *request.method() && matches(&route.operation.template, path)
    });
    let Some((place, route)) = found.and_then(|place| Some((place, mock.routes.get(place)?)))
    else {
        return not_found();
    };
    match first_answer(&mock.document, &route.operation) {
        (answer, true) => running(answer, place, 1),
        (answer, false) => answer,
    }
}

/// Answers a request for the status of an operation.
fn answer_status(mock: &Mock, status: &str) -> Option<Response> {
    let (place, request) = status.split_once('/')?;
    let (place, request): (usize, usize) = (place.parse().ok()?, request.parse().ok()?);
    let operation = &mock.routes.get(place)?.operation;
    if request >= STATUS_REQUESTS {
        return Some(done_answer(&mock.document, operation));
    }
    Some(running(StatusCode::ACCEPTED, place, request + 1))
}

/// An answer of an operation that runs, with the URL of its status.
fn running(answer: impl IntoResponse, place: usize, request: usize) -> Response {
    let status = format!("{STATUS_PATH}{place}/{request}");
    let headers = [
        (header::LOCATION, status.as_str()),
        (header::RETRY_AFTER, "1"),
    ];
    (headers, answer).into_response()
}

fn not_found() -> Response {
    (
        StatusCode::NOT_FOUND,
        [(header::CONTENT_TYPE, "application/problem+json")],
        r#"{"title":"Not Found","detail":"the mock knows no such operation"}"#,
    )
        .into_response()
}

fn literals(template: &PathTemplate) -> usize {
    let segments = template.segments.iter();
    segments
        .filter(|parts| {
            parts
                .iter()
                .all(|part| matches!(part, TemplatePart::Literal(_)))
        })
        .count()
}

fn matches(template: &PathTemplate, path: &str) -> bool {
    let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    segments.len() == template.segments.len()
        && segments
            .iter()
            .zip(&template.segments)
            .all(|(segment, parts)| segment_matches(parts, segment))
}

/// Returns true if a segment contains the literals in order, at its ends if they are at the
/// template's, with text for each variable between.
fn segment_matches(parts: &[TemplatePart], segment: &str) -> bool {
    match parts.split_first() {
        None => segment.is_empty(),
        Some((TemplatePart::Literal(literal), rest)) => {
            let (literal, segment) = (percent_decoded(literal), percent_decoded(segment));
            segment
                .strip_prefix(literal.as_str())
                .is_some_and(|tail| segment_matches(rest, tail))
        }
        Some((TemplatePart::Variable(_), [])) => !segment.is_empty(),
        Some((TemplatePart::Variable(_), rest)) => segment
            .char_indices()
            .skip(1)
            .filter_map(|(index, _)| segment.get(index..))
            .any(|tail| segment_matches(rest, tail)),
    }
}

fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_their_templates() {
        for (template, path, expected) in [
            ("/pets/{id}", "/pets/7", true),
            ("/pets/{id}", "/pets/", false),
            ("/pets/{id}", "/pets/7/photos", false),
            ("/a b/{x}.{y}", "/a%20b/c.d", true),
            ("/a/{x}:go", "/a/b:go", true),
            ("/a/{x}:go", "/a/b", false),
            ("/", "/", true),
        ] {
            assert_eq!(
                matches(&PathTemplate::parse(template).unwrap(), path),
                expected,
                "{template} {path}"
            );
        }
    }
}
