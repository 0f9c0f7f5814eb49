//! The front of the server: endpoints of MCP are answered here, in the task of their connection;
//! everything else goes to the router.

use std::collections::HashMap;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::Either;
use http::request::Parts;
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::CancellationToken;

use super::body::{BodyMemory, receive_body};
use super::event_stream;
use super::host_and_origin::{Allowed, guard, refused, refused_method};
use super::message;
use super::message::refused_message;
use super::page::asks_for_page;
use super::sessions::{SESSION_ID_HEADER, Sessions, UsedSession};
use crate::admission::ClientAdmission;
use crate::caller::{AuthenticatedClient, Caller, Peer};
use crate::mcp::connections::connection::{Connection, Outbox};
use crate::mcp::connections::request_origin::{RequestOrigin, sole_header};
use crate::mcp::connections::subscription::report_changes;
use crate::mcp::dispatch::Answered;
use crate::mcp::protocol::answer::{McpAnswer, McpRefusal};
use crate::mcp::protocol::message::{McpRequest, Message, Method as McpMethod};
use crate::mcp::protocol::unreadable::without_mark;
use crate::mcp::{McpServer, observed};
use crate::observe;

/// Front that answers the requests of connections: the routes, and the endpoints of MCP beside them
/// with what their requests pass.
pub(super) struct Front {
    pub(super) router: TowerToHyperService<Router>,
    /// By their paths, which are compared byte for byte: a proxy in front may guard by path, and must
    /// not be got round by another spelling.
    pub(super) endpoints: HashMap<Box<str>, McpServer>,
    pub(super) allowed: Arc<Allowed>,
    pub(super) admission: Option<Arc<ClientAdmission>>,
    /// Clients of earlier versions have sessions, so that they can be asked.
    pub(super) sessions: Option<Arc<Sessions>>,
    pub(super) has_page: bool,
    pub(super) memory: BodyMemory,
    /// Ends what only waits.
    pub(super) streams: CancellationToken,
}

impl Front {
    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Result<Response, Infallible> {
        let endpoint = self.endpoints.get(request.uri().path());
        let Some(server) = endpoint.filter(|_| !(self.has_page && asks_for_page(&request))) else {
            return self.router.call(request).await;
        };
        let answer = async |request| {
            let answered = Box::pin(self.answer_allowed(server, request)).await;
            answered.unwrap_or_else(|refusal| *refusal)
        };
        // A panic is a bug of ours; over HTTP/2 it must not end the requests of the same
        // connection. On the heap at once: what is around it is moved from place to place.
        let answered = AssertUnwindSafe(Box::pin(guard(&self.allowed, request, answer)))
            .catch_unwind()
            .await;
        Ok(answered.unwrap_or_else(|_| {
            tracing::error!("a request ended in a panic; please report this");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }))
    }
}

/// An answer, or a response that is ready in its place.
type Answer = Result<Response, Box<Response>>;

impl Front {
    async fn answer_allowed(&self, server: &McpServer, request: Request<Incoming>) -> Answer {
        let mut origin = RequestOrigin {
            // An end waits for it from here on.
            in_flight: Some(server.calls().token()),
            ..RequestOrigin::default()
        };
        let (mut parts, body) = request.into_parts();
        let client = match &self.admission {
            Some(admission) => admission.admit(&mut parts).await?,
            None => None,
        };
        match (&parts.method, &self.sessions) {
            (&Method::POST, _) => {}
            (&Method::GET, Some(sessions)) => {
                return self.open_stream(sessions, parts, client);
            }
            (&Method::DELETE, Some(sessions)) => {
                // MCP 2025-11-25, transports, "Session Management".
                sessions.close(&session_of_head(sessions, parts, client)?);
                return Ok(StatusCode::NO_CONTENT.into_response());
            }
            (_, Some(_)) => return refused_method("GET, POST, DELETE"),
            (_, None) => return refused_method("POST"),
        }
        origin.http = Some(parts.version);
        origin.caller = caller_of(&mut parts, client);
        let (bytes, memory) = receive_body(&origin.caller, body, &self.memory).await?;
        origin.memory = Some(memory);
        self.answer_message(server, origin, parts.uri.path(), &bytes)
            .await
    }

    async fn answer_message(
        &self,
        server: &McpServer,
        mut origin: RequestOrigin,
        path: &str,
        bytes: &Bytes,
    ) -> Answer {
        let message = read_message(&origin, bytes)?;
        let checked = message::check_message(&origin.caller.headers, &message);
        origin.version_header = checked.inspect_err(|_| {
            if let Some(call) = message.call() {
                observed::observe_refused_call(&origin, Some(call));
            }
        })?;
        let is_handshake = matches!(&message, Message::Request(request) if request.method == McpMethod::Initialize);
        let session = match &self.sessions {
            Some(sessions) if message::is_of_session(origin.version_header, &message) => {
                match find_session(sessions, &origin.caller, path)? {
                    None if !is_handshake => return session_required(),
                    session => session,
                }
            }
            _ => None,
        };
        let connection = session.as_ref().map(|session| &session.0.connection);
        origin.connection = connection.cloned();
        let begins_session = self.sessions.is_some() && session.is_none() && is_handshake;
        match message {
            Message::Request(request) if begins_session => {
                self.begin_session(server, origin, path, request).await
            }
            Message::Request(request) => Ok(self
                .answer_request(server, origin, path, request, session)
                .await),
            Message::Notification(notification) => {
                if let Some(connection) = &origin.connection {
                    connection.note(&notification);
                }
                Ok(StatusCode::ACCEPTED.into_response())
            }
            Message::Answer(answer) => {
                if let Some(connection) = &origin.connection {
                    connection.take_answer(answer, server.calls().token());
                }
                Ok(StatusCode::ACCEPTED.into_response())
            }
        }
    }

    async fn begin_session(
        &self,
        server: &McpServer,
        mut origin: RequestOrigin,
        path: &str,
        request: McpRequest,
    ) -> Answer {
        let connection = Arc::new(Connection::new(
            server.state.subscribe(origin.caller.granted()),
        ));
        origin.connection = Some(Arc::clone(&connection));
        let owner = origin.caller.client.as_ref().map(|client| client.key);
        let client = origin.caller.key();
        let negotiation = message::negotiation(&request);
        let answered = server.answer(request, origin).await;
        let is_begun = answered.outcome.is_ok();
        let mut response = self.answer_json(answered, negotiation, path);
        if let Some(sessions) = self.sessions.as_ref().filter(|_| is_begun) {
            let Some(id) = sessions.open(connection, path, owner, client) else {
                let why = "too many sessions; end one, or try again later\n";
                let later = [(header::RETRY_AFTER, "30")];
                return refused((StatusCode::SERVICE_UNAVAILABLE, later, why));
            };
            if let Ok(id) = HeaderValue::from_str(&id) {
                response.headers_mut().insert(SESSION_ID_HEADER, id);
            }
        }
        Ok(response)
    }

    /// Answers with one JSON message, unless something must be sent before it.
    async fn answer_request(
        &self,
        server: &McpServer,
        mut origin: RequestOrigin,
        path: &str,
        request: McpRequest,
        session: Option<UsedSession>,
    ) -> Response {
        let negotiation = message::negotiation(&request);
        let may_stream = request.method == McpMethod::Listen
            || request.method == McpMethod::CallTool
                && (session.is_some() || request.parameters.meta.get_progress_token().is_some());
        if !may_stream {
            return self.answer_json(server.answer(request, origin).await, negotiation, path);
        }
        let (outbox, messages) = Outbox::new();
        origin.outbox = Some(outbox.clone());
        let id = request.id.clone();
        let server = server.clone();
        let connection = origin.connection.clone();
        let answering = async move { server.answer(request, origin).await };
        let answering = async move {
            let _session = session;
            match connection {
                Some(connection) => connection.run(id, answering).await,
                None => Some(answering.await),
            }
        };
        match event_stream::answer(Box::pin(answering), outbox, messages, &self.streams).await {
            Either::Left(answered) => self.answer_json(answered, negotiation, path),
            Either::Right(response) => response,
        }
    }

    /// The answer as one JSON body.
    fn answer_json(
        &self,
        answered: Answered,
        negotiation: message::Negotiation,
        path: &str,
    ) -> Response {
        if let Some(admission) = &self.admission {
            let refusal = match &answered.outcome {
                Err(McpRefusal::MissingScopes(scopes)) => {
                    Some(admission.refuse_scopes(scopes.clone(), path))
                }
                Ok(McpAnswer::Tool(result)) => result
                    .challenge
                    .as_ref()
                    .and_then(|challenge| admission.ask_to_sign_in(challenge, path)),
                _ => None,
            };
            if let Some(refusal) = refusal {
                return refusal;
            }
        }
        let status = negotiation.status(&answered.outcome);
        let (frame, _in_flight) = answered.into_frame();
        let length = frame.length();
        let body = if frame.is_list() {
            let pieces = frame.into_pieces().map(Ok::<_, Infallible>);
            Body::from_stream(futures_util::stream::iter(pieces))
        } else {
            Body::from(frame.into_bytes())
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CONTENT_LENGTH, length.into());
        response
    }

    /// The stream on which a session is notified of changes. A newer one ends the older.
    fn open_stream(
        &self,
        sessions: &Sessions,
        parts: Parts,
        client: Option<AuthenticatedClient>,
    ) -> Answer {
        if !message::accepts(&parts.headers, &["text/event-stream"]) {
            let why = "Not Acceptable: Client must accept text/event-stream";
            return refused((StatusCode::NOT_ACCEPTABLE, why));
        }
        let granted = client.as_ref().map(|client| client.granted.clone());
        let session = session_of_head(sessions, parts, client)?;
        let (outbox, messages) = Outbox::new();
        let newest = session.begin_stream(&self.streams);
        let connection = Arc::clone(&session.0.connection);
        let reporting = report_changes(connection, granted, outbox);
        let end = newest.clone();
        let task = tokio::spawn(async move {
            let _session = session;
            newest.run_until_cancelled(reporting).await;
        });
        Ok(event_stream::respond(None, messages, Some(task), end))
    }
}

/// The session of a request without a message.
fn session_of_head(
    sessions: &Sessions,
    mut parts: Parts,
    client: Option<AuthenticatedClient>,
) -> Result<UsedSession, Box<Response>> {
    let caller = caller_of(&mut parts, client);
    let version = message::version_header(&caller.headers)?;
    if version.is_some_and(|version| !version.has_handshake()) {
        return refused_method("POST");
    }
    find_session(sessions, &caller, parts.uri.path())?.map_or_else(session_required, Ok)
}

fn session_required<T>() -> Result<T, Box<Response>> {
    refused((
        StatusCode::BAD_REQUEST,
        "Bad Request: Session ID is required",
    ))
}

/// The session that a request names, if it names one.
fn find_session(
    sessions: &Sessions,
    caller: &Caller,
    path: &str,
) -> Result<Option<UsedSession>, Box<Response>> {
    let why = "the request names two sessions\n";
    let id = sole_header(&caller.headers, SESSION_ID_HEADER);
    let Some(id) = id.or_else(|()| refused((StatusCode::BAD_REQUEST, why)))? else {
        return Ok(None);
    };
    let owner = caller.client.as_ref().map(|client| client.key);
    // The same answer as for a session that does not exist, so that others cannot find out about
    // it.
    match id.to_str().map(|id| sessions.find(id, path, owner)) {
        Ok(Some(session)) => Ok(Some(session)),
        _ => refused((StatusCode::NOT_FOUND, "Not Found: Session not found")),
    }
}

/// Returns the caller of a request, and takes its headers.
fn caller_of(parts: &mut Parts, client: Option<AuthenticatedClient>) -> Caller {
    Caller {
        client,
        address: parts.extensions.get::<Peer>().map(|Peer(address)| *address),
        headers: std::mem::take(&mut parts.headers),
        ..Caller::default()
    }
}

/// Reads the message of a POST, or refuses it.
fn read_message(origin: &RequestOrigin, bytes: &[u8]) -> Result<Message, Box<Response>> {
    let headers = &origin.caller.headers;
    let note_call = |is_call: bool| {
        if is_call {
            observed::observe_refused_call(origin, None);
        }
    };
    if let Err(refusal) = message::check_content_type(headers) {
        // Only who observes calls wants to know.
        if observe::is_on() {
            let read = Message::read(bytes);
            note_call(read.map_or_else(
                |unreadable| unreadable.is_call,
                |message| message.call().is_some(),
            ));
        }
        return Err(refusal);
    }
    let message = Message::read(without_mark(bytes)).or_else(|unreadable| {
        note_call(unreadable.is_call);
        refused_message(unreadable.into_http_answer())
    })?;
    message::check_accept(headers).inspect_err(|_| note_call(message.call().is_some()))?;
    Ok(message)
}
