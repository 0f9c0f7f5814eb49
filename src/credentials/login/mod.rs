//! Logins: a person agrees once, and the refresh token that this gives is kept in the token store.
//!
//! Who the person is is decided by the authorization server alone. The token is bound to the
//! scheme, the endpoint, the client and the origin of the API: another document or base URL under
//! the same names does not get it.

pub(crate) mod authorization;
mod find;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

use self::authorization::{
    AuthorizationRequest, DeviceAuthorization, OFFLINE_ACCESS, next_interval,
};
use super::tokens::access_token::{Grant, Granted, TokenRequest, seconds};
use super::tokens::issuer_metadata::IssuerMetadata;
use super::tokens::oauth_client::exposed;
use super::tokens::stored_token::{LoginFacts, StoredToken, TokenOwner};
use super::tokens::token_endpoint::{TokenEndpoint, TokenRefusal};
use super::tokens::token_keeper::TokenKeeper;
use super::tokens::token_source::TokenSource;
use super::tokens::token_store::TokenStore;
use crate::text::one_line;

/// Scope of `OpenID` Connect requests (`OpenID` Connect Core 1.0 section 3.1.2.1).
const OPENID: &str = "openid";

/// Login by which the tokens of one security scheme are had.
pub(crate) struct Login {
    endpoint: TokenEndpoint,
    /// The issuer, whose metadata name the other endpoints that are missing.
    issuer: Option<Url>,
    /// The authorization endpoint.
    authorization: Option<Url>,
    /// The device authorization endpoint.
    device: Option<Url>,
    scopes: Vec<String>,
    audience: Option<SecretString>,
    /// Owner of the tokens; `None` if the location of the API is not known, because nothing is
    /// called.
    owner: Option<TokenOwner>,
    pub(crate) store: TokenStore,
}

/// Outcome of the end of a login.
#[derive(PartialEq, Eq)]
pub(crate) enum LogoutOutcome {
    /// Nobody was signed in.
    NobodySignedIn,
    /// The refresh token is revoked and removed.
    Revoked,
    /// The refresh token is removed; the authorization server names no revocation endpoint.
    Removed,
    /// The refresh token is removed, and could not be revoked: the end of a sentence.
    NotRevoked(String),
}

const NO_LOCATION: &str = "the document names no server for all operations, so no token can be bound to the API; name it with --base-url";

impl Login {
    /// The security scheme.
    fn scheme(&self) -> &str {
        &self.endpoint.client.scheme
    }

    /// The tokens that are stored, if somebody is signed in.
    ///
    /// # Errors
    /// The store cannot be read; in a sentence.
    pub(crate) fn stored(&self) -> Result<Option<StoredToken>, String> {
        self.owner
            .as_ref()
            .map_or(Ok(None), |owner| self.store.find_login(owner))
    }

    fn is_stored(&self) -> bool {
        self.stored().is_ok_and(|stored| stored.is_some())
    }

    /// The source of the tokens that the login gives.
    fn into_source(self) -> TokenSource {
        let keeper = self
            .owner
            .map(|owner| TokenKeeper::of_login(owner, self.store));
        let request = TokenRequest {
            grant: None,
            // Without it, the scopes are those that were agreed to (RFC 6749 section 6).
            scopes: None,
            audience: self.audience,
        };
        TokenSource::new(self.endpoint, request, keeper)
    }

    /// Begins a login in the browser, which is sent back to `redirect`.
    ///
    /// # Errors
    /// It cannot begin; in a sentence.
    pub(crate) async fn authorization_request(
        &self,
        redirect: &str,
    ) -> Result<AuthorizationRequest, String> {
        let (metadata, scopes) = self.begin().await?;
        let metadata = metadata.as_ref();
        let endpoint = self.authorization.as_ref();
        let endpoint = endpoint.or_else(|| metadata?.authorization_endpoint.as_ref());
        let endpoint =
            endpoint.ok_or_else(|| self.lacks("authorization_url", "authorization endpoint"))?;
        let client_id = exposed(self.endpoint.client.id.as_ref()).unwrap_or_default();
        let audience = exposed(self.audience.as_ref());
        AuthorizationRequest::new(
            endpoint.clone(),
            redirect,
            client_id,
            scopes,
            audience,
            metadata,
        )
    }

    /// The metadata of the issuer, if there is one, and the scopes that are asked for, once tokens
    /// can be kept.
    async fn begin(&self) -> Result<(Option<IssuerMetadata>, String), String> {
        self.owner.as_ref().ok_or(NO_LOCATION)?;
        self.store.prepare()?;
        let metadata = self.metadata().await?;
        let mut scopes: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        let mut listed = metadata.iter().flat_map(|metadata| &metadata.scopes);
        if listed.any(|scope| scope == OFFLINE_ACCESS) && !scopes.contains(&OFFLINE_ACCESS) {
            scopes.push(OFFLINE_ACCESS);
        }
        let scopes = scopes.join(" ");
        Ok((metadata, scopes))
    }

    /// Ends a login with the code that the browser has brought.
    ///
    /// # Errors
    /// There are no tokens, or they cannot be kept; in a sentence.
    pub(crate) async fn redeem_code(
        &self,
        request: &AuthorizationRequest,
        code: SecretString,
    ) -> Result<LoginFacts, String> {
        let started = Instant::now();
        let granted = self.endpoint.ask(&request.grant(code), &[]).await;
        let granted = granted.map_err(|refusal| refusal.describe().into_owned())?;
        self.keep(granted, &request.scopes, started).await
    }

    /// Begins a login on another device.
    ///
    /// # Errors
    /// It cannot begin; in a sentence.
    pub(crate) async fn device_authorization(&self) -> Result<DeviceAuthorization, String> {
        let (metadata, scopes) = self.begin().await?;
        let endpoint = self.device.as_ref();
        let endpoint =
            endpoint.or_else(|| metadata.as_ref()?.device_authorization_endpoint.as_ref());
        let endpoint = endpoint.ok_or_else(|| {
            self.lacks("device_authorization_url", "device authorization endpoint")
        })?;
        let mut parameters = Vec::new();
        if !scopes.is_empty() {
            parameters.push(("scope", scopes.as_str()));
        }
        parameters.extend(exposed(self.audience.as_ref()).map(|audience| ("audience", audience)));
        let reply = self.endpoint.post(endpoint, &parameters).await;
        let reply = reply.map_err(|refusal| describe_of("device authorization", &refusal))?;
        let mut device: DeviceAuthorization = serde_json::from_slice(&reply)
            .map_err(|_| "the device authorization endpoint's answer holds no code")?;
        device.scopes = scopes;
        Ok(device)
    }

    /// Waits until the person has signed in on another device.
    ///
    /// # Errors
    /// There are no tokens, or they cannot be kept; in a sentence.
    pub(crate) async fn redeem_device_code(
        &self,
        device: &DeviceAuthorization,
    ) -> Result<LoginFacts, String> {
        let grant = Grant::DeviceCode(device.device_code.clone());
        let mut interval = device.interval();
        loop {
            sleep(interval).await;
            let started = Instant::now();
            let refusal = match self.endpoint.ask(&grant, &[]).await {
                Ok(granted) => return self.keep(granted, &device.scopes, started).await,
                Err(refusal) => refusal,
            };
            interval =
                next_interval(interval, &refusal).ok_or_else(|| refusal.describe().into_owned())?;
        }
    }

    /// Ends a login: revokes the refresh token if the issuer's metadata name an endpoint for that
    /// (RFC 7009), and removes it in any case.
    ///
    /// # Errors
    /// The store cannot be read or written; in a sentence.
    pub(crate) async fn log_out(&self) -> Result<LogoutOutcome, String> {
        let (Some(owner), Some(_)) = (&self.owner, self.stored()?) else {
            return Ok(LogoutOutcome::NobodySignedIn);
        };
        let stored = {
            // While it is locked, no other process renews the token. Other logins do not wait for
            // the authorization server.
            let mut store = self.store.lock().await?;
            let Some(stored) = store.find(owner)? else {
                return Ok(LogoutOutcome::NobodySignedIn);
            };
            store.remove(owner)?;
            stored
        };
        Ok(match self.revoke(&stored.refresh_token).await {
            Ok(true) => LogoutOutcome::Revoked,
            Ok(false) => LogoutOutcome::Removed,
            Err(why) => LogoutOutcome::NotRevoked(why),
        })
    }

    /// Revokes a refresh token. Returns false if the issuer names no endpoint for that.
    async fn revoke(&self, token: &SecretString) -> Result<bool, String> {
        let Some(endpoint) = self
            .metadata()
            .await?
            .and_then(|metadata| metadata.revocation_endpoint)
        else {
            return Ok(false);
        };
        let parameters = [
            ("token", token.expose_secret()),
            ("token_type_hint", "refresh_token"),
        ];
        let revoked = self.endpoint.post(&endpoint, &parameters).await;
        revoked
            .map(|_| true)
            .map_err(|refusal| describe_of("revocation", &refusal))
    }

    async fn metadata(&self) -> Result<Option<IssuerMetadata>, String> {
        let Some(issuer) = &self.issuer else {
            return Ok(None);
        };
        let read = self.endpoint.metadata(issuer).await;
        read.map(Some).map_err(|refusal| match refusal {
            TokenRefusal::Unreachable(_) => {
                format!("the metadata of the issuer `{issuer}` cannot be read")
            }
            refusal => refusal.describe().into_owned(),
        })
    }

    /// Stores what was granted.
    async fn keep(
        &self,
        granted: Granted,
        asked: &str,
        started: Instant,
    ) -> Result<LoginFacts, String> {
        let owner = self.owner.clone().ok_or(NO_LOCATION)?;
        let refresh_token = granted
            .refresh_token
            .ok_or_else(|| self.explain_missing_token(asked))?;
        if HeaderValue::from_str(granted.access_token.expose_secret()).is_err() {
            return Err("the token endpoint gave an access token that no header can carry".into());
        }
        let claims = granted.id_token.as_ref().and_then(claims_of);
        let claim = |name: &str| claims.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let scopes = granted.scope.as_ref().and_then(Value::as_str);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let facts = LoginFacts {
            scopes: scopes.unwrap_or(asked).to_owned(),
            subject: claim("sub"),
            email: claim("email"),
            since: now.unwrap_or_default().as_secs(),
        };
        let lifetime = granted.expires_in.as_ref().and_then(seconds);
        let left = lifetime.map(|lifetime| lifetime.saturating_sub(started.elapsed()));
        let mut token =
            StoredToken::new(refresh_token.clone(), granted.access_token, left, lifetime);
        token.owner = owner;
        token.login = Some(facts.clone());
        let kept = match self.store.lock().await {
            Ok(mut store) => store.put_login(token),
            Err(why) => Err(why.to_owned()),
        };
        if let Err(why) = kept {
            // A token that nobody has is not left valid, if that can be helped.
            let _ = self.revoke(&refresh_token).await;
            return Err(format!(
                "the refresh token cannot be kept in `{}`: {why}; make room there, or give another file with `token_store`, and sign in again",
                self.store.path.display()
            ));
        }
        Ok(facts)
    }

    /// Explains why there is no refresh token, without which the login would end with the access
    /// token.
    fn explain_missing_token(&self, asked: &str) -> String {
        let scheme = one_line(self.scheme());
        if asked.split(' ').any(|scope| scope == OFFLINE_ACCESS) {
            format!(
                "the token endpoint gave no refresh token, although `{OFFLINE_ACCESS}` was asked for; allow the client that scope and the grant `refresh_token` at the authorization server"
            )
        } else {
            format!(
                "the token endpoint gave no refresh token, and the scope `{OFFLINE_ACCESS}` was not asked for; set `auth.{scheme}.scopes` with it, or with what the server calls it, or allow the client the grant `refresh_token` there"
            )
        }
    }

    fn lacks(&self, key: &str, what: &str) -> String {
        let scheme = one_line(self.scheme());
        if self.issuer.is_some() {
            format!(
                "the issuer names no {what} that is encrypted or on this machine; set `auth.{scheme}.{key}`"
            )
        } else {
            format!("no {what} is known; set `auth.{scheme}.{key}`, or `auth.{scheme}.issuer`")
        }
    }
}

/// Describes a refusal of an endpoint other than the token endpoint.
fn describe_of(endpoint: &str, refusal: &TokenRefusal) -> String {
    refusal
        .describe()
        .replace("the token endpoint", &format!("the {endpoint} endpoint"))
}

/// The claims of an ID token. It came from the token endpoint itself, which takes the place of its
/// signature (`OpenID` Connect Core 1.0 section 3.1.3.7); the claims are only shown.
fn claims_of(token: &Value) -> Option<Value> {
    let claims = token.as_str()?.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}
