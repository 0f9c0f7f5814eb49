//! `/files/…`: files that a result links to. The URL is the credential, so no other is asked for;
//! host and rate are those of `/mcp`.
//!
//! A file is what an API sent, and this origin is that of the page: nothing of it may be shown or
//! run here.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream::try_unfold;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, Take};

use super::host_and_origin::{Allowed, refuse_foreign};
use crate::admission::ClientAdmission;
use crate::files::{FILES_PATH, FileDownload, FileStore};

/// Number of bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// What the route needs.
struct FileRoute {
    store: Arc<FileStore>,
    allowed: Arc<Allowed>,
    admission: Option<Arc<ClientAdmission>>,
}

/// Makes the route. It has no layer of CORS: no page of another origin may read a file.
pub(super) fn routes(
    store: Arc<FileStore>,
    allowed: Arc<Allowed>,
    admission: Option<Arc<ClientAdmission>>,
) -> Router {
    let route = FileRoute {
        store,
        allowed,
        admission,
    };
    Router::new()
        .route(&format!("{FILES_PATH}{{token}}"), any(answer))
        .with_state(Arc::new(route))
}

async fn answer(State(route): State<Arc<FileRoute>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let mut response = match route.find(&parts).await {
        Ok(opened) => respond(opened, parts.method == Method::HEAD),
        Err(refusal) => *refusal,
    };
    protect(response.headers_mut());
    response
}

impl FileRoute {
    /// The file of a request. There is one answer to all that lead to none.
    async fn find(&self, request: &Parts) -> Result<FileDownload, Box<Response>> {
        refuse_foreign(&self.allowed, &request.headers, &request.uri)?;
        if let Some(admission) = &self.admission {
            admission.count_stranger(&request.extensions).await?;
        }
        if !matches!(request.method, Method::GET | Method::HEAD) {
            let refusal = (
                StatusCode::METHOD_NOT_ALLOWED,
                [(header::ALLOW, "GET, HEAD")],
            );
            return Err(Box::new(refusal.into_response()));
        }
        let token = request
            .uri
            .path()
            .strip_prefix(FILES_PATH)
            .unwrap_or_default()
            .to_owned();
        let store = Arc::clone(&self.store);
        let opened = tokio::task::spawn_blocking(move || store.open(&token)).await;
        let opened = opened.ok().flatten();
        opened.ok_or_else(|| {
            Box::new(
                (
                    StatusCode::NOT_FOUND,
                    "there is no such file, or its link has ended\n",
                )
                    .into_response(),
            )
        })
    }
}

fn respond(opened: FileDownload, is_head: bool) -> Response {
    let FileDownload { file, length, name } = opened;
    let body = if is_head {
        Body::empty()
    } else {
        stream(file, length)
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
    if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename={name}")) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

/// The file in pieces. One that becomes shorter meanwhile ends the connection, because its length
/// was announced.
fn stream(file: std::fs::File, length: u64) -> Body {
    let file: Take<File> = File::from_std(file).take(length);
    Body::from_stream(try_unfold(file, |mut file| async move {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = file.read_buf(&mut piece).await?;
        Ok::<_, std::io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
    }))
}

/// Sets headers that keep a file from being shown, kept, run or embedded.
fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'",
        ),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
