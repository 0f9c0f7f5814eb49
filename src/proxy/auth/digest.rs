//! HTTP digest authentication (RFC 7616): the API gives a challenge with a 401, which answers requests from then on.

use std::sync::{Mutex, PoisonError};

use http::header::{HeaderValue, WWW_AUTHENTICATE};
use http_auth::{PasswordClient, PasswordParams};
use secrecy::{ExposeSecret as _, SecretString};

use crate::proxy::auth::sensitive_header;
use crate::proxy::request::Request;
use crate::proxy::response::Response;

/// A user, and the last challenge.
#[derive(Debug)]
pub(crate) struct Digest {
    username: SecretString,
    password: SecretString,
    challenge: Mutex<Option<PasswordClient>>,
}

impl Digest {
    /// From `user:password`.
    #[must_use]
    pub(crate) fn new(pair: &str) -> Option<Self> {
        let (username, password) = pair.split_once(':')?;
        Some(Self {
            username: username.to_owned().into(),
            password: password.to_owned().into(),
            challenge: Mutex::default(),
        })
    }

    /// `Authorization` for a request; `None` before the first challenge.
    #[must_use]
    pub(crate) fn answer(&self, request: &Request) -> Option<HeaderValue> {
        let mut challenge = self.challenge.lock().unwrap_or_else(PoisonError::into_inner);
        let target = match request.url.query() {
            Some(query) => format!("{}?{query}", request.url.path()),
            None => request.url.path().to_owned(),
        };
        let parameters = PasswordParams {
            username: self.username.expose_secret(),
            password: self.password.expose_secret(),
            uri: &target,
            method: request.method.as_str(),
            // What is read while it is sent cannot be hashed before.
            body: request
                .body
                .as_ref()
                .map_or(Some(&[]), |content| content.bytes().map(AsRef::as_ref)),
        };
        let answer = challenge.as_mut()?.respond(&parameters);
        let answer = answer.map_err(|why| tracing::warn!("the API's digest challenge cannot be answered: {why}"));
        sensitive_header(answer.ok()?.as_bytes()).ok()
    }

    /// Takes the challenge of a refusal; whether there is one.
    pub(crate) fn learn(&self, response: &Response) -> bool {
        let values = response.headers.get_all(WWW_AUTHENTICATE).iter();
        let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        let Ok(client) = PasswordClient::try_from(texts.join(", ").as_str()) else {
            return false;
        };
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
        true
    }
}
