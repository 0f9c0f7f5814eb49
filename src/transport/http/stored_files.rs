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
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream::try_unfold;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, Take};

use super::host_and_origin::{Allowed, refuse_foreign, refused, refused_method};
use crate::admission::ClientAdmission;
use crate::files::{FILES_PATH, FileDownload, FileStore};

/// Number of bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

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
    let response = match route.find(&parts).await {
        Ok(opened) => respond(opened, parts.method == Method::HEAD),
        Err(refusal) => *refusal,
    };
    // It is neither shown nor kept, run or embedded.
    let headers = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'",
        ),
        (CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, response).into_response()
}

impl FileRoute {
    /// The file of a request. There is one answer to all that lead to none.
    async fn find(&self, request: &Parts) -> Result<FileDownload, Box<Response>> {
        refuse_foreign(&self.allowed, &request.headers, &request.uri)?;
        if let Some(admission) = &self.admission {
            admission.count_stranger(&request.extensions).await?;
        }
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return refused_method("GET, HEAD");
        }
        let token = request.uri.path().strip_prefix(FILES_PATH);
        let token = token.unwrap_or_default().to_owned();
        let store = Arc::clone(&self.store);
        let opened = tokio::task::spawn_blocking(move || store.open(&token)).await;
        let opened = opened.ok().flatten();
        let why = "there is no such file, or its link has ended\n";
        opened.map_or_else(|| refused((StatusCode::NOT_FOUND, why)), Ok)
    }
}

fn respond(opened: FileDownload, is_head: bool) -> Response {
    let FileDownload { file, length, name } = opened;
    let body = if is_head {
        Body::empty()
    } else {
        // In pieces. A file that becomes shorter meanwhile ends the connection, because its length was
        // announced.
        let file: Take<File> = File::from_std(file).take(length);
        Body::from_stream(try_unfold(file, |mut file| async move {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let read = file.read_buf(&mut piece).await?;
            Ok::<_, std::io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
        }))
    };
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::ACCEPT_RANGES, "none"),
    ];
    let mut response = (headers, [(header::CONTENT_LENGTH, length)], body).into_response();
    if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename={name}")) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}
