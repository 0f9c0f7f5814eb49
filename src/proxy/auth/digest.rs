//! HTTP digest authentication (RFC 7616): the challenge of a 401 is used for that request again and
//! for later ones.

use std::sync::{Mutex, PoisonError};

use http::header::{HeaderValue, WWW_AUTHENTICATE};
use http_auth::digest::{Algorithm, Qop};
use http_auth::{DigestClient, PasswordClient, PasswordParams};
use md5::Md5;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Sha256, Sha512_256};

use crate::proxy::auth::sensitive_header;
use crate::proxy::request::Request;
use crate::proxy::response::Response;
use crate::text::hex;

/// A user, and the last challenge.
#[derive(Debug)]
pub(crate) struct Digest {
    username: SecretString,
    password: SecretString,
    challenge: Mutex<Option<DigestClient>>,
}

impl Digest {
    /// Makes it from `user:password`.
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
        let mut challenge = self
            .challenge
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let client = challenge.as_mut()?;
        let target = match request.url.query() {
            Some(query) => format!("{}?{query}", request.url.path()),
            None => request.url.path().to_owned(),
        };
        // A body that is read while it is sent cannot be hashed before.
        let body = match &request.body {
            None => Some(&[][..]),
            Some(content) => content.bytes().map(AsRef::as_ref),
        };
        let body_hash = body_hash(client, body);
        let answer = client.respond(&PasswordParams {
            username: self.username.expose_secret(),
            password: self.password.expose_secret(),
            uri: &target,
            method: request.method.as_str(),
            body: body_hash.as_deref().map(str::as_bytes),
        });
        let answer = answer
            .map_err(|why| tracing::warn!("the API's digest challenge cannot be answered: {why}"));
        sensitive_header(answer.ok()?.as_bytes()).ok()
    }

    /// Takes the challenge of a refusal; whether there is one.
    pub(crate) fn learn(&self, response: &Response) -> bool {
        let values = response.headers.get_all(WWW_AUTHENTICATE).iter();
        let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        let Ok(PasswordClient::Digest(client)) =
            PasswordClient::try_from(texts.join(", ").as_str())
        else {
            return false;
        };
        *self
            .challenge
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(client);
        true
    }
}

/// Returns the body that http-auth takes: `H(entity-body)`, because it puts its input into `A2`
/// unchanged, where RFC 7616 section 3.4.3 has the hash. `None` if the challenge offers `auth`,
/// which is preferred, or if there is nothing to hash: given a body, http-auth chooses `auth-int`.
fn body_hash(client: &DigestClient, body: Option<&[u8]>) -> Option<String> {
    if client.qop() & Qop::Auth || !(client.qop() & Qop::AuthInt) {
        return None;
    }
    let body = body?;
    Some(match client.algorithm() {
        Algorithm::Md5 => hex(&<Md5 as md5::Digest>::digest(body)),
        Algorithm::Sha256 => hex(&<Sha256 as sha2::Digest>::digest(body)),
        Algorithm::Sha512Trunc256 => hex(&<Sha512_256 as sha2::Digest>::digest(body)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7616 section 3.9.1: `qop="auth, auth-int"`, answered with `auth`.
    #[test]
    fn the_examples_of_the_rfc_come_out_and_auth_is_preferred() {
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            (
                "SHA-256",
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
        ] {
            let challenge = format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={algorithm}, \
                 nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            );
            let Ok(PasswordClient::Digest(mut client)) =
                PasswordClient::try_from(challenge.as_str())
            else {
                panic!("{challenge}");
            };
            let hash = body_hash(&client, Some(b"body"));
            let parameters = PasswordParams {
                username: "Mufasa",
                password: "Circle of Life",
                uri: "/dir/index.html",
                method: "GET",
                body: hash.as_deref().map(str::as_bytes),
            };
            let answer = client
                .respond_with_testing_cnonce(
                    &parameters,
                    "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
                )
                .unwrap();
            assert!(
                answer.contains("qop=auth,") && answer.contains(response),
                "{answer}"
            );
        }
    }
}
