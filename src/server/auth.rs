//! Who a client is, asked before its request is read: a bearer token, compared or verified, and its rate limit. The
//! challenges are those of RFC 6750 section 3, of RFC 9728 section 5.1, and of MCP (basic/authorization).
//!
//! The `Authorization` header ends here: nothing behind this layer can pass it on or log it (MCP forbids token passthrough).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::limits::{Client, Peer, RateLimit};
use super::token::Token;

/// How often files of tokens and certificates are looked at.
pub(super) const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// How clients prove who they are.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Tokens that were given at start.
    pub tokens: Vec<Token>,
    /// Files of tokens, which are read again when they change.
    pub token_files: Vec<(PathBuf, Vec<Token>)>,
}

impl Access {
    /// Whether nobody is asked.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty() && self.token_files.is_empty()
    }

    fn all_tokens(&self) -> Arc<[Token]> {
        let files = self.token_files.iter().flat_map(|(_, tokens)| tokens);
        self.tokens.iter().chain(files).copied().collect()
    }
}

/// Asks every client, and counts its requests.
pub(super) struct Gate {
    tokens: watch::Receiver<Arc<[Token]>>,
    is_open: bool,
    rate: Option<RateLimit>,
}

/// Why a request is not let in.
enum Refusal {
    /// It has no bearer token.
    NoToken,
    /// It has one, of no use.
    Wrong(&'static str),
    /// It has several.
    Many,
}

impl Gate {
    /// The gate, or `None` where there is nothing to ask or count.
    pub(super) fn new(access: &Access, rate: Option<f64>, stop: &CancellationToken) -> Option<Arc<Self>> {
        if access.is_open() && rate.is_none() {
            return None;
        }
        let (sender, tokens) = watch::channel(access.all_tokens());
        if !access.token_files.is_empty() {
            tokio::spawn(stop.clone().run_until_cancelled_owned(reload(access.clone(), sender)));
        }
        Some(Arc::new(Self {
            tokens,
            is_open: access.is_open(),
            rate: rate.map(RateLimit::new),
        }))
    }

    /// Who sent the request.
    fn client(&self, headers: &HeaderMap, peer: Client) -> Result<Client, Refusal> {
        if self.is_open {
            return Ok(peer);
        }
        let token = bearer(headers)?;
        let tokens = Arc::clone(&self.tokens.borrow());
        if Token::is_among(token, &tokens) {
            return Ok(Client::named("token", token));
        }
        Err(Refusal::Wrong("the token is not known here"))
    }

    fn refuse(refusal: &Refusal) -> Response {
        let (status, error, why) = match refusal {
            // RFC 6750 section 3.1: a request without credentials is told nothing but how to authenticate.
            Refusal::NoToken => (StatusCode::UNAUTHORIZED, None, "a bearer token is needed"),
            Refusal::Wrong(why) => (StatusCode::UNAUTHORIZED, Some("invalid_token"), *why),
            Refusal::Many => (
                StatusCode::BAD_REQUEST,
                Some("invalid_request"),
                "there are two Authorization headers",
            ),
        };
        tracing::debug!("a request was not let in: {why}");
        let mut response = (status, format!("{why}\n")).into_response();
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge(error, why));
        response
    }
}

fn challenge(error: Option<&str>, why: &str) -> HeaderValue {
    let mut text = r#"Bearer realm="openapi-mcp""#.to_owned();
    if let Some(error) = error {
        text += &format!(r#", error="{error}", error_description="{why}""#);
    }
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// The token of `Authorization: Bearer TOKEN`; the scheme's case does not matter (RFC 9110 section 11.1).
fn bearer(headers: &HeaderMap) -> Result<&[u8], Refusal> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(Refusal::NoToken)?.as_bytes();
    if values.next().is_some() {
        return Err(Refusal::Many);
    }
    match value.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Ok(token.trim_ascii()),
        _ => Err(Refusal::NoToken),
    }
}

/// The layer.
pub(super) async fn admit(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let peer = Client::at(
        request
            .extensions()
            .get()
            .copied()
            .unwrap_or(Peer(std::net::Ipv4Addr::UNSPECIFIED.into())),
    );
    let client = gate.client(request.headers(), peer);
    if let Some(rate) = &gate.rate
        && let Err(wait) = rate.take(*client.as_ref().unwrap_or(&peer), Instant::now())
    {
        // Whole seconds (RFC 9110 section 10.2.3), rounded up so that the next try can succeed.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let text = format!("too many requests; the next one is answered in {seconds} s\n");
        return (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds.to_string())], text).into_response();
    }
    match client {
        Ok(client) => {
            if !gate.is_open {
                request.headers_mut().remove(header::AUTHORIZATION);
            }
            request.extensions_mut().insert(client);
            next.run(request).await
        }
        Err(refusal) => Gate::refuse(&refusal),
    }
}

/// Reads the files of tokens again when they change: tokens are rotated without a restart. A file that is of no use keeps
/// the tokens it had.
async fn reload(mut access: Access, sender: watch::Sender<Arc<[Token]>>) {
    let mut told = Vec::new();
    loop {
        tokio::time::sleep(RELOAD_INTERVAL).await;
        let mut problems = Vec::new();
        for (path, tokens) in &mut access.token_files {
            match Token::in_file(path) {
                Ok(read) => *tokens = read,
                Err(wrong) => problems.extend(wrong),
            }
        }
        if problems != told {
            problems
                .iter()
                .for_each(|problem| tracing::warn!("a file of tokens keeps its last state: {problem}"));
            told = problems;
        }
        let tokens = access.all_tokens();
        let count = tokens.len();
        let changed = sender.send_if_modified(|current| {
            let changed = **current != *tokens;
            *current = tokens;
            changed
        });
        if changed {
            tracing::info!("the tokens of clients were read again; there are {count}");
        }
    }
}
