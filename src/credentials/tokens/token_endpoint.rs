//! A token endpoint (RFC 6749 section 3.2): its location, also by the metadata of its issuer
//! (`OpenID` Connect Discovery 1.0 section 3, RFC 8414 section 2), the authentication of the client,
//! and its grants.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use url::{Url, form_urlencoded};

use super::access_token::{
    Grant, Granted, demanded_claims, error_code, refusal_reason, token_reply,
};
use super::issuer_metadata::{IssuerMetadata, metadata_urls};
use super::oauth_client::{ASSERTION_TYPE, Endpoint, OauthClient, exposed};
use crate::call_error::CallError;
use crate::credentials::sensitive_header;
use crate::observe::once_per_minute::OncePerMinute;
use crate::outbound::HttpClient;
use crate::outbound::fetch::{Fetch, Fetched};
use crate::outbound::request::{Keep, percent_encode};
use crate::redact::Redactor;
use crate::text;

/// The largest reply of a token endpoint, in bytes.
const MAX_REPLY_BYTES: usize = 256 << 10;
const TIMEOUT: Duration = Duration::from_secs(30);

/// A token endpoint, and the client that asks it.
pub(crate) struct TokenEndpoint {
    pub(crate) client: OauthClient,
    http: HttpClient,
    learned: Mutex<Learned>,
    /// Failures are logged once a minute: clients cause them, and must not be able to fill the log.
    logged: OncePerMinute,
}

/// Results of earlier requests.
#[derive(Default)]
struct Learned {
    url: Option<Url>,
    /// The client's secret goes into the body, because the endpoint did not take it from a header.
    in_body: bool,
}

/// Reason for which an endpoint gives no token.
pub(crate) enum TokenRefusal {
    /// The request was refused.
    Refused {
        status: StatusCode,
        /// RFC 6749 section 5.2, if it is a known one.
        code: Option<&'static str>,
        /// Claims that the user's next token must have.
        claims: Option<String>,
    },
    /// There was no answer: the end of a sentence.
    Unreachable(&'static str),
    /// The answer was not a valid one: the end of a sentence.
    Failed(Cow<'static, str>),
}

impl TokenRefusal {
    /// Returns true if the token, code or password that was sent is not valid, or no longer (RFC
    /// 6749 section 5.2).
    pub(crate) fn is_invalid_grant(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == Some("invalid_grant"))
    }

    /// Describes it as the end of a sentence.
    pub(crate) fn describe(&self) -> Cow<'static, str> {
        match self {
            Self::Refused { status, code, .. } => {
                let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
                if status.is_success() {
                    format!("the token endpoint's answer holds no `access_token`{code}").into()
                } else {
                    format!("the token endpoint answered {}{code}", status.as_u16()).into()
                }
            }
            Self::Unreachable(why) => Cow::Borrowed(why),
            Self::Failed(why) => why.clone(),
        }
    }
}

impl TokenEndpoint {
    /// An endpoint that was not asked yet.
    pub(crate) fn new(client: OauthClient, http: HttpClient) -> Self {
        Self {
            client,
            http,
            learned: Mutex::default(),
            logged: OncePerMinute::new(),
        }
    }

    /// The client's name and secret as they are sent in `Basic`.
    pub(crate) fn client_pair(&self) -> Option<String> {
        let (id, secret) = (self.client.id.as_ref()?, self.client.secret.as_ref()?);
        // Both are form-encoded first (RFC 6749 section 2.3.1).
        let encode = |value: &SecretString| percent_encode(value.expose_secret(), Keep::Unreserved);
        Some(STANDARD.encode(format!("{}:{}", encode(id), encode(secret))))
    }

    /// Asks for a token by a grant with further parameters, and with the client's secret in the
    /// body if the endpoint does not take it from the header. The log gets the reason of a refusal.
    pub(crate) async fn ask(
        &self,
        grant: &Grant,
        more: &[(&str, &str)],
    ) -> Result<Granted, TokenRefusal> {
        let assertion = self.assertion().await?;
        let assertion = assertion
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let mut parameters = [grant.parameters().as_slice(), more].concat();
        parameters.extend(assertion);
        let url = self.url().await?;
        let reply = self
            .ask_as_accepted(&url, &parameters, |code| grant.doubts_client(code))
            .await?;
        self.read_grant(&reply, &parameters)
    }

    /// Asks an endpoint of introspection (RFC 7662) with these parameters, with the client's
    /// credentials as the endpoint takes them. Returns its answer; `None` if it does not answer
    /// with a success, which is logged.
    pub(crate) async fn introspect(&self, parameters: &[(&str, &str)]) -> Option<Bytes> {
        let doubts_client = |code: Option<&str>| code.is_none_or(|code| code == "invalid_client");
        let url = self.url().await.ok()?;
        let reply = self.ask_as_accepted(&url, parameters, doubts_client).await;
        let reply = reply.ok()?;
        if reply.status.is_success() {
            return Some(reply.body);
        }
        if self.logged.is_due() {
            let status = reply.status.as_u16();
            tracing::warn!(
                "the introspection endpoint answered {status}; check `oauth_client_id` and its secret"
            );
        }
        None
    }

    /// The error of a call that gets no token.
    pub(super) fn failure(&self, why: &str) -> CallError {
        let scheme = text::one_line(&self.client.scheme);
        CallError::Credential(
            format!("no access token could be obtained for the security scheme `{scheme}`: {why}")
                .into(),
        )
    }

    async fn ask_as_accepted(
        &self,
        url: &Url,
        parameters: &[(&str, &str)],
        doubts_client: impl Fn(Option<&str>) -> bool,
    ) -> Result<Fetched, TokenRefusal> {
        let in_body = self.learned.lock().in_body;
        let request = self.token_request(url, parameters, in_body)?;
        let reply = self.send(request).await?;
        // RFC 6749 section 2.3.1: every server must accept the header, but some accept only the
        // body.
        let may_want_body = !in_body
            && self.client.secret.is_some()
            && matches!(
                reply.status,
                StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED
            )
            && doubts_client(error_code(&reply));
        if !may_want_body {
            return Ok(reply);
        }
        let request = self.token_request(url, parameters, true)?;
        let second = self.send(request).await?;
        // Another error than `invalid_client` means that the client was recognized.
        let is_recognized = second.status.is_success()
            || error_code(&second).is_some_and(|code| code != "invalid_client");
        self.learned.lock().in_body = is_recognized;
        Ok(if is_recognized { second } else { reply })
    }

    /// The URL of the endpoint, which the issuer's metadata may name.
    async fn url(&self) -> Result<Url, TokenRefusal> {
        let known = self.learned.lock().url.clone();
        match (&self.client.endpoint, known) {
            (Endpoint::Token(url), _) => Ok(url.clone()),
            (Endpoint::Issuer(_), Some(url)) => Ok(url),
            (Endpoint::Issuer(issuer), None) => {
                let url = self.metadata(issuer).await?.token_endpoint;
                self.learned.lock().url = Some(url.clone());
                Ok(url)
            }
        }
    }

    /// The parameters with which a client with a key authenticates.
    async fn assertion(&self) -> Result<Vec<(&'static str, String)>, TokenRefusal> {
        let (Some(signer), Some(id)) = (&self.client.signer, &self.client.id) else {
            return Ok(Vec::new());
        };
        let assertion = match &self.client.issuer {
            Some(issuer) => signer.assertion(id.expose_secret(), issuer),
            None => signer.assertion(id.expose_secret(), self.url().await?.as_str()),
        };
        let unsigned = TokenRefusal::Failed("the client's key cannot sign".into());
        Ok(vec![
            ("client_assertion_type", ASSERTION_TYPE.to_owned()),
            ("client_assertion", assertion.ok_or(unsigned)?),
        ])
    }

    /// Reads the token that the endpoint grants: one that can be sent as `Bearer`.
    fn read_grant(
        &self,
        reply: &Fetched,
        parameters: &[(&str, &str)],
    ) -> Result<Granted, TokenRefusal> {
        let refused = |code| {
            self.log_refusal(reply, parameters);
            let (status, claims) = (reply.status, demanded_claims(reply));
            TokenRefusal::Refused {
                status,
                code,
                claims,
            }
        };
        let code = error_code(reply);
        if !reply.status.is_success() {
            return Err(refused(code));
        }
        // GitHub refuses with 200.
        let granted =
            serde_json::from_value::<Granted>(token_reply(reply)).map_err(|_| match code {
                Some(_) => refused(code),
                None => TokenRefusal::Failed(
                    "the token endpoint's answer holds no `access_token`".into(),
                ),
            })?;
        // An empty token would be sent to the API as `Bearer `.
        if granted.access_token.expose_secret().trim().is_empty() {
            let why = "the token endpoint's answer holds an empty `access_token`";
            return Err(TokenRefusal::Failed(why.into()));
        }
        let kind = granted.token_type.as_deref().unwrap_or("bearer");
        if !kind.eq_ignore_ascii_case("bearer") {
            let why = "the token endpoint gives tokens of another type than Bearer";
            return Err(TokenRefusal::Failed(why.into()));
        }
        Ok(granted)
    }

    /// Logs why the endpoint refuses a token, without the secrets of the request. A model reads no
    /// more than the code.
    fn log_refusal(&self, reply: &Fetched, parameters: &[(&str, &str)]) {
        const MAX_REASON_BYTES: usize = 500;
        const PUBLIC: [&str; 6] = [
            "grant_type",
            "scope",
            "audience",
            "resource",
            "username",
            "client_assertion_type",
        ];
        let Some(mut reason) = refusal_reason(reply) else {
            return;
        };
        // RFC 8628 section 3.5: the person has not finished yet.
        let is_pending = matches!(
            error_code(reply),
            Some("authorization_pending" | "slow_down")
        );
        if is_pending || !self.logged.is_due() {
            return;
        }
        let sent = parameters.iter().filter(|(name, _)| !PUBLIC.contains(name));
        let pair = self.client_pair();
        let own = [exposed(self.client.secret.as_ref()), pair.as_deref()];
        let sent = sent.map(|(_, value)| *value);
        let secrets: Vec<&str> = sent.chain(own.into_iter().flatten()).collect();
        Redactor::for_tokens(secrets.iter().copied()).redact_line(&mut reason);
        let reason = without_parts(&reason, &secrets);
        let scheme = text::one_line(&self.client.scheme);
        let reason = text::truncate(&text::one_line(&reason), MAX_REASON_BYTES);
        tracing::warn!(
            "the token endpoint of `{scheme}` answered {}: {reason}",
            reply.status.as_u16()
        );
    }

    fn token_request(
        &self,
        url: &Url,
        parameters: &[(&str, &str)],
        in_body: bool,
    ) -> Result<Fetch, TokenRefusal> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(parameters);
        let mut authorization = None;
        match (self.client_pair().filter(|_| !in_body), &self.client.id) {
            (Some(pair), _) => {
                let value = sensitive_header(format!("Basic {pair}").as_bytes());
                let value = value
                    .map_err(|_| TokenRefusal::Failed("the client's name cannot be sent".into()))?;
                authorization = Some((AUTHORIZATION, value));
            }
            (None, Some(id)) => {
                form.append_pair("client_id", id.expose_secret());
                if let Some(secret) = &self.client.secret {
                    form.append_pair("client_secret", secret.expose_secret());
                }
            }
            (None, None) => {}
        }
        let mut request = Fetch::post(url.clone(), form.finish(), MAX_REPLY_BYTES, TIMEOUT);
        request.headers.extend(authorization);
        Ok(request)
    }

    /// The metadata of an issuer: the first of its documents that can be used.
    pub(crate) async fn metadata(&self, issuer: &Url) -> Result<IssuerMetadata, TokenRefusal> {
        let mut problem = None;
        for url in metadata_urls(issuer) {
            let reply = self.send(Fetch::get(url, MAX_REPLY_BYTES, TIMEOUT)).await?;
            if !reply.status.is_success() {
                let status = reply.status.as_u16();
                problem.get_or_insert_with(|| {
                    format!("the issuer answered {status} when asked for its token endpoint").into()
                });
                continue;
            }
            match IssuerMetadata::read(&reply.body, issuer) {
                Ok(metadata) => return Ok(metadata),
                Err(why) => problem = Some(why.into()),
            }
        }
        Err(TokenRefusal::Failed(problem.unwrap_or_default()))
    }

    /// Sends these parameters, with the client's credentials, to another endpoint of the same
    /// server, and returns its answer; of a refusal, status and code.
    pub(crate) async fn post(
        &self,
        url: &Url,
        parameters: &[(&str, &str)],
    ) -> Result<Bytes, TokenRefusal> {
        let assertion = self.assertion().await?;
        let assertion = assertion
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let parameters: Vec<_> = parameters.iter().copied().chain(assertion).collect();
        let doubts_client = |code: Option<&str>| code == Some("invalid_client");
        let asked = self.ask_as_accepted(url, &parameters, doubts_client);
        let reply = asked.await?;
        if reply.status.is_success() {
            return Ok(reply.body);
        }
        self.log_refusal(&reply, &parameters);
        Err(TokenRefusal::Refused {
            status: reply.status,
            code: error_code(&reply),
            claims: None,
        })
    }

    async fn send(&self, request: Fetch) -> Result<Fetched, TokenRefusal> {
        request.send(&self.http).await.map_err(|error| {
            let scheme = text::one_line(&self.client.scheme);
            if self.logged.is_due() {
                tracing::warn!("the token endpoint of `{scheme}` did not answer: {error}");
            }
            TokenRefusal::Unreachable(
                "the token endpoint cannot be reached, or did not answer as it should",
            )
        })
    }
}

/// A text without long parts of secrets: an endpoint may repeat the end of a token, or its
/// signature alone.
fn without_parts(text: &str, secrets: &[&str]) -> String {
    const MIN_PART_BYTES: usize = 12;
    let is_of_token =
        |character: char| character.is_ascii_alphanumeric() || "-_+/=".contains(character);
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(|character| !is_of_token(character)) {
        let part = piece.trim_end_matches(|character| !is_of_token(character));
        if part.len() >= MIN_PART_BYTES && secrets.iter().any(|secret| secret.contains(part)) {
            shown.push_str("[redacted]");
            shown.push_str(piece.strip_prefix(part).unwrap_or_default());
        } else {
            shown.push_str(piece);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_what_was_sent_are_not_shown() {
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJlLW9mLWl0";
        for part in [
            "c2lnbmF0dXJlLW9mLWl0",
            "hbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJlLW9mL",
        ] {
            let shown = without_parts(&format!("error: token '{part}' is bad"), &[token]);
            assert!(
                shown.starts_with("error: token '[redacted]") && shown.ends_with("' is bad"),
                "{shown}"
            );
            assert!(
                !part.split('.').any(|piece| shown.contains(piece)),
                "{shown}"
            );
        }
        assert_eq!(
            without_parts("error: invalid_request: subject_token", &[token]),
            "error: invalid_request: subject_token"
        );
    }
}
