//! `/approve/ID`: the page on which a person agrees to a call. Reading it changes nothing: hosts
//! and chat programs fetch links. An agreement is a POST of the page alone.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::timeout;
use url::Url;

use super::host_and_origin::{Allowed, refuse_foreign, refused, refused_method};
use super::page::ServedPage;
use crate::admission::ClientAdmission;
use crate::mcp::calls::by_link::{APPROVE_PATH, Links};
use crate::mcp::connections::request_origin::sole_text;
use crate::shared_state::connection::StateUnavailable;

/// Number of bytes of an answer, and the time within which it is read.
const MAX_ANSWER: (usize, Duration) = (4096, Duration::from_secs(10));
/// What is answered wherever a link leads to no open question.
const NO_QUESTION: &str = "This link leads to no call that waits for an answer: it was answered, it has expired, or it never existed.\n";

/// The page. It tells nothing of a call.
static PAGE: LazyLock<Option<ServedPage>> = LazyLock::new(|| {
    const STYLE: &str = concat!(
        include_str!("../page/style/theme.css"),
        include_str!("style.css")
    );
    ServedPage::of(include_str!("page.html"), STYLE, include_str!("script.js"))
});

/// What the route needs.
pub(super) struct ApprovalRoute {
    pub(super) links: Arc<Links>,
    /// Hosts that are allowed; without it, only that of the links.
    pub(super) allowed: Option<Arc<Allowed>>,
    /// Knows who may agree; without it, everybody on this machine may.
    pub(super) admission: Option<Arc<ClientAdmission>>,
}

/// An answer, as the page sends it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageAnswer {
    hash: String,
    agree: bool,
}

/// Makes the route. It has no layer of CORS: no page of another origin may read a question.
pub(super) fn routes(route: ApprovalRoute) -> Router {
    Router::new()
        .route(&format!("{APPROVE_PATH}{{id}}"), any(answer))
        .with_state(Arc::new(route))
}

/// Opens a listener of this machine with nothing but the page, for as long as the process lives.
pub(crate) fn open_listener(links: Arc<Links>) -> BoxFuture<'static, io::Result<Url>> {
    Box::pin(async move {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = Url::parse(&format!("http://{}/", listener.local_addr()?));
        let router = routes(ApprovalRoute {
            links,
            allowed: None,
            admission: None,
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        url.map_err(io::Error::other)
    })
}

async fn answer(State(route): State<Arc<ApprovalRoute>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answered = route.answer(&parts, body).await;
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, answered.unwrap_or_else(|refusal| *refusal)).into_response()
}

impl ApprovalRoute {
    async fn answer(&self, parts: &Parts, body: Body) -> Result<Response, Box<Response>> {
        self.check_host(parts)?;
        let id = parts.uri.path().strip_prefix(APPROVE_PATH);
        let id = id.unwrap_or_default();
        let is_json = sole_text(&parts.headers, &header::ACCEPT) == Some("application/json");
        match parts.method {
            Method::GET if is_json => {
                self.approver(parts).await?;
                match known(self.links.shown(id).await)? {
                    Some(shown) => Ok(Json(shown).into_response()),
                    None => refused((StatusCode::NOT_FOUND, NO_QUESTION)),
                }
            }
            Method::GET | Method::HEAD => Ok(PAGE.as_ref().map_or_else(
                || StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                |page| page.answer(&parts.method),
            )),
            Method::POST => {
                self.check_sender(&parts.headers)?;
                let approver = self.approver(parts).await?;
                let read = timeout(MAX_ANSWER.1, to_bytes(body, MAX_ANSWER.0)).await;
                let bytes = read.ok().and_then(Result::ok).unwrap_or_default();
                let Ok(PageAnswer { hash, agree }) = serde_json::from_slice(&bytes) else {
                    return refused((StatusCode::BAD_REQUEST, "This is no answer.\n"));
                };
                if known(self.links.answer(id, &hash, agree, &approver).await)? {
                    Ok(StatusCode::NO_CONTENT.into_response())
                } else {
                    refused((StatusCode::NOT_FOUND, NO_QUESTION))
                }
            }
            _ => refused_method("GET, HEAD, POST"),
        }
    }

    /// A rebound name could read the page.
    fn check_host(&self, parts: &Parts) -> Result<(), Box<Response>> {
        if let Some(allowed) = &self.allowed {
            return refuse_foreign(allowed, &parts.headers, &parts.uri);
        }
        let own = self.links.origin();
        let host = sole_text(&parts.headers, &header::HOST).map(|host| format!("http://{host}"));
        if host.is_some() && host == own && parts.uri.authority().is_none() {
            return Ok(());
        }
        refused((StatusCode::FORBIDDEN, "Forbidden\n"))
    }

    /// Refuses an answer that a page of another origin, a form or a link could send, also where a
    /// proxy signs the person in.
    fn check_sender(&self, headers: &HeaderMap) -> Result<(), Box<Response>> {
        const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
        let origin = sole_text(headers, &header::ORIGIN).map(str::to_owned);
        let is_own = origin.is_some() && origin == self.links.origin();
        let is_same_site = !headers.contains_key(&SEC_FETCH_SITE)
            || sole_text(headers, &SEC_FETCH_SITE) == Some("same-origin");
        if !(is_own && is_same_site) {
            let why = "Only the page of this server can answer.\n";
            return refused((StatusCode::FORBIDDEN, why));
        }
        if sole_text(headers, &header::CONTENT_TYPE) != Some("application/json") {
            let why = "An answer is JSON.\n";
            return refused((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        Ok(())
    }

    /// The name of who asks, who may agree to calls.
    async fn approver(&self, parts: &Parts) -> Result<String, Box<Response>> {
        match (&self.allowed, &self.admission) {
            (_, Some(admission)) => admission.approver(parts).await,
            (None, None) => Ok("local".into()),
            (Some(_), None) => refused((StatusCode::UNAUTHORIZED, "Nobody may agree.\n")),
        }
    }
}

/// What became of a question, or a refusal, because the state of the replicas is away.
fn known<T>(known: Result<T, StateUnavailable>) -> Result<T, Box<Response>> {
    let why = "The state that replicas share cannot be used at the moment, so that no answer is valid. Try again.\n";
    known.or_else(|StateUnavailable| refused((StatusCode::SERVICE_UNAVAILABLE, why)))
}
