//! An OAuth 2.1 resource server: verifies JWT access tokens (RFC 9068) of one issuer and publishes
//! the protected resource metadata (RFC 9728). Tokens for other audiences are refused, and no token
//! is passed on (MCP, basic/authorization).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Value, json};
use url::Url;

use super::claims::{Claims, INCOMPLETE, Refusal, check_times, invalid};
use super::introspection::{Introspection, IntrospectionOptions};
use super::jwks::Keys;
use super::limits::Stranger;
use crate::caller::client_grant::{ClientGrant, ScopeDemand, ToolScopes};
use crate::caller::{AuthenticatedClient, ClientKey, SubjectToken, client_name};
use crate::json::JsonObject;
use crate::outbound::HttpClient;
use crate::{json as spec_json, observe};

/// The well-known path of RFC 9728 section 3, inserted between the host and the path of the
/// resource.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The longest token that is read, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The operator's settings for tokens of an issuer.
#[derive(Debug, Clone)]
pub struct OauthOptions {
    /// The issuer, exactly as its tokens name it in `iss`.
    pub issuer: String,
    /// A token must have one of these audiences; empty means the URL of the resource.
    pub audiences: Vec<String>,
    /// The URL of the keys; without it, the issuer's metadata names it.
    pub jwks_url: Option<Url>,
    /// Scopes that every request needs.
    pub scopes: Vec<String>,
    /// Scopes that calls need by what their tools do.
    pub tool_scopes: ToolScopes,
    /// Introspection of tokens that are not JWTs.
    pub introspection: Option<IntrospectionOptions>,
    /// Keeps the token of a user for the time of its request, because an API is called as the user.
    pub keeps_tokens: bool,
}

/// Verifies tokens.
pub(super) struct Oauth {
    pub(super) options: OauthOptions,
    pub(super) keys: Arc<Keys>,
    introspection: Option<Arc<Introspection>>,
}

/// An endpoint as tokens and clients know it.
pub(super) struct ProtectedResource {
    /// Its URL.
    pub(super) url: Url,
    pub(super) validation: Validation,
    /// Scopes that its calls may need by what their tools do, besides those of the whole server.
    pub(super) tool_scopes: ToolScopes,
    /// Those by rules of `access`. The metadata do not list them: a client asks for all that is
    /// listed, and each user would be asked for those of an administrator.
    pub(super) rule_scopes: Vec<String>,
    pub(super) reads_only: bool,
    pub(super) serves_one_api: bool,
    /// Its name for people, and the page about it, if the operator set them. What a document has
    /// is not shown to clients without a token.
    pub(super) name: Option<String>,
    pub(super) documentation: Option<String>,
}

impl ProtectedResource {
    /// The endpoint with that URL, of which nothing else is known. A token for it names it as its
    /// audience, unless the operator set audiences of the whole server.
    pub(super) fn new(url: Url, options: &OauthOptions) -> Self {
        let mut validation = Validation::new(Algorithm::RS256);
        // [`check_times`] reads numbers with fractions as well (RFC 7519 section 2, NumericDate).
        validation.validate_exp = false;
        validation.set_issuer(&[&options.issuer]);
        if options.audiences.is_empty() {
            // RFC 8707 and MCP write the URL without a trailing slash; both forms name the same
            // resource.
            let plain = url.as_str().trim_end_matches('/');
            validation.set_audience(&[plain, &format!("{plain}/")]);
        } else {
            validation.set_audience(&options.audiences);
        }
        validation.set_required_spec_claims(&["iss", "aud"]);
        Self {
            url,
            validation,
            tool_scopes: ToolScopes::default(),
            rule_scopes: Vec::new(),
            reads_only: false,
            serves_one_api: false,
            name: None,
            documentation: None,
        }
    }

    /// The path that its metadata has.
    pub(super) fn metadata_path(&self) -> String {
        format!("{WELL_KNOWN}{}", self.url.path().trim_end_matches('/'))
    }

    /// Returns the URL of the metadata.
    pub(super) fn metadata_url(&self) -> String {
        let mut url = self.url.clone();
        url.set_path(&self.metadata_path());
        url.to_string()
    }
}

impl Oauth {
    /// The keys are asked for with `client`.
    pub(super) fn new(options: OauthOptions, client: HttpClient) -> Self {
        let introspection = options.introspection.clone();
        let (issuer, url) = (options.issuer.clone(), options.jwks_url.clone());
        Self {
            introspection: introspection.map(|options| Introspection::new(options, client.clone())),
            keys: Arc::new(Keys::new(client, issuer, url)),
            options,
        }
    }

    /// Verifies the token of a client.
    pub(super) async fn verify(
        &self,
        token: &[u8],
        resource: &ProtectedResource,
        client: &mut Stranger<'_>,
    ) -> Result<AuthenticatedClient, Refusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return invalid("the token is too long");
        }
        // The library parses the parts into trees.
        let plain = |part: &[u8]| {
            URL_SAFE_NO_PAD
                .decode(part)
                .is_ok_and(|text| spec_json::is_plain(&text))
        };
        let is_plain = token.split(|byte| *byte == b'.').take(2).all(plain);
        let Some(header) = is_plain.then(|| decode_header(token).ok()).flatten() else {
            return match &self.introspection {
                Some(introspection) if !looks_like_jwt(token) => {
                    self.introspected(introspection, token, resource, client)
                        .await
                }
                Some(_) => invalid("the token is a JWT whose header cannot be read"),
                None => invalid("the token is not a JWT"),
            };
        };
        // RFC 8725 section 3.11: a JWT of another `typ` is not an access token. RFC 7515 section
        // 4.1.11: an unknown critical header parameter makes the token invalid.
        let kind = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        if !matches!(kind.trim_start_matches("application/"), "jwt" | "at+jwt")
            || header.crit.is_some()
        {
            return invalid("the token is not an access token");
        }
        let keys = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let mut problem =
            "the token is signed with an unknown key, or in a way that its key does not allow";
        for key in keys {
            let mut validation = resource.validation.clone();
            validation.algorithms = vec![header.alg];
            match decode::<Claims>(token, &key.public, &validation) {
                Ok(decoded) => return self.allowed(token, decoded.claims.0, resource),
                Err(error) => problem = explain(error.kind()),
            }
        }
        invalid(problem)
    }

    fn allowed(
        &self,
        token: &[u8],
        claims: JsonObject,
        resource: &ProtectedResource,
    ) -> Result<AuthenticatedClient, Refusal> {
        // RFC 7519 section 4.1.1: one string. The library also takes a list that holds the issuer.
        if claims.get("iss").and_then(Value::as_str) != Some(&self.options.issuer) {
            return invalid("the token is from another issuer");
        }
        let expires = check_times(&claims)?.ok_or(Refusal::InvalidToken(INCOMPLETE))?;
        self.admitted(token, &Arc::new(claims), expires, resource)
    }

    /// Asks the issuer about a token that is not a JWT. Its claims are judged like those of a JWT,
    /// but `iss` and `exp` may be missing.
    async fn introspected(
        &self,
        introspection: &Arc<Introspection>,
        token: &[u8],
        resource: &ProtectedResource,
        client: &mut Stranger<'_>,
    ) -> Result<AuthenticatedClient, Refusal> {
        // RFC 6750 section 2.1, `b64token`.
        let text = std::str::from_utf8(token).unwrap_or_default();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return invalid("the token has characters that no token has");
        }
        let claims = introspection.claims(text, client).await?;
        if names_other_kind(&claims) {
            return invalid("the token is not an access token");
        }
        let issuer = claims.get("iss");
        if issuer.is_some_and(|issuer| issuer.as_str() != Some(&self.options.issuer)) {
            return invalid("the token is from another issuer");
        }
        let ours = resource.validation.aud.as_ref();
        let is_ours = |audience: &Value| {
            let both = audience.as_str().zip(ours);
            both.is_some_and(|(audience, ours)| ours.contains(audience))
        };
        match claims.get("aud") {
            Some(Value::Array(audiences)) if audiences.iter().any(is_ours) => {}
            Some(audience) if is_ours(audience) => {}
            Some(_) => return invalid("the token is for another audience"),
            None => {
                return invalid("the issuer does not say for which audience the token is");
            }
        }
        let expires =
            check_times(&claims)?.unwrap_or_else(|| SystemTime::now() + Duration::from_mins(1));
        self.admitted(token, &claims, expires, resource)
    }

    /// Admits a client whose token was verified.
    fn admitted(
        &self,
        token: &[u8],
        claims: &Arc<JsonObject>,
        expires: SystemTime,
        resource: &ProtectedResource,
    ) -> Result<AuthenticatedClient, Refusal> {
        let granted = ClientGrant::of_claims(Arc::clone(claims));
        let mut needed = self.options.scopes.iter();
        if !needed.all(|scope| granted.scopes.names(scope)) {
            let needed = self.demand(resource).all_with(&granted.scopes, &[]);
            return Err(Refusal::Scope(needed));
        }
        // Each claim names clients of its own: a `client_id` may be the same text as the `sub` of a
        // user (RFC 9068 section 5). There is one issuer, so that the claim alone identifies a
        // client.
        let name = client_name(claims);
        let key = match name {
            Some((claim, name)) => ClientKey::named(claim, name.as_bytes()),
            None => ClientKey::named("nameless token", token),
        };
        let user = std::str::from_utf8(token).ok();
        let user = user.filter(|_| self.options.keeps_tokens);
        let subject = user.and_then(|token| SubjectToken::of_user(token, claims, expires));
        let issuer = &self.options.issuer;
        let name = observe::audit().and(name).map(|(claim, name)| match claim {
            "sub" => format!("{issuer} {name}").into(),
            _ => format!("{claim}:{issuer} {name}").into(),
        });
        Ok(AuthenticatedClient {
            subject: subject.map(Arc::new),
            ..AuthenticatedClient::new(key, name, granted)
        })
    }

    /// Returns true if no client can be admitted before the issuer's keys are read.
    pub(super) fn awaits_keys(&self) -> bool {
        self.introspection.is_none() && self.keys.current.read().is_none()
    }

    /// The scopes that calls at an endpoint need.
    pub(super) fn demand(&self, resource: &ProtectedResource) -> ScopeDemand {
        let offered = self.supported(resource);
        ScopeDemand {
            of_tools: self.options.tool_scopes.clone(),
            of_all: self.options.scopes.clone(),
            offered: without_repeats(offered.iter().chain(&resource.rule_scopes)),
        }
    }

    /// The scopes of a client's first token: those of every request, and the scope for reading.
    pub(super) fn first_scopes(&self, resource: &ProtectedResource) -> Vec<String> {
        // One of several APIs is asked for when it is needed.
        let own = resource.tool_scopes.read.first();
        let own = own.filter(|_| resource.serves_one_api);
        let read = self.options.tool_scopes.read.first().into_iter().chain(own);
        without_repeats(self.options.scopes.iter().chain(read))
    }

    fn supported(&self, resource: &ProtectedResource) -> Vec<String> {
        let of_tools = [&self.options.tool_scopes, &resource.tool_scopes];
        let read = of_tools.into_iter().flat_map(|scopes| &scopes.read);
        let write = of_tools
            .into_iter()
            .filter(|_| !resource.reads_only)
            .flat_map(|scopes| &scopes.write);
        let first = self.first_scopes(resource);
        without_repeats(first.iter().chain(read).chain(write))
    }

    /// The metadata of an endpoint (RFC 9728 section 2).
    pub(super) fn metadata(&self, resource: &ProtectedResource) -> Value {
        let mut metadata = json!({
            "resource": resource.url.as_str().trim_end_matches('/'),
            "authorization_servers": [self.options.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": self.supported(resource),
            "resource_name": resource.name,
            "resource_documentation": resource.documentation,
        });
        if let Some(members) = metadata.as_object_mut() {
            members.retain(|_, value| !value.is_null() && *value != json!([]));
        }
        metadata
    }
}

/// Returns true if a token has the form of a JWT, readable or not: its first part is a JSON object
/// (RFC 7519 section 3), and there are the parts of a JWS or a JWE.
fn looks_like_jwt(token: &[u8]) -> bool {
    let header = token.split(|byte| *byte == b'.').next().unwrap_or_default();
    let beginning = header.iter().copied().take(4);
    let beginning: Vec<u8> = beginning.filter(|byte| *byte != b'=').collect();
    let beginning = URL_SAFE_NO_PAD.decode(beginning).unwrap_or_default();
    let is_object = matches!(
        beginning.as_slice(),
        [b'{', b'"' | b'}' | b' ' | b'\t' | b'\r' | b'\n', ..]
    );
    is_object && matches!(token.split(|byte| *byte == b'.').count(), 3 | 5)
}

/// Returns true if an answer is about another token than an access token. `token_type` is that of
/// RFC 7662 section 2.2; servers also name the kind in `token_use` and `typ`.
fn names_other_kind(claims: &JsonObject) -> bool {
    let kinds = ["token_type", "token_use", "typ"]
        .into_iter()
        .filter_map(|name| claims.get(name)?.as_str());
    kinds.map(str::to_ascii_lowercase).any(|kind| {
        kind.ends_with("refresh_token")
            || kind.ends_with("id_token")
            || matches!(kind.as_str(), "refresh" | "offline" | "id")
    })
}

fn without_repeats<'s>(scopes: impl Iterator<Item = &'s String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for scope in scopes {
        if !once.contains(scope) {
            once.push(scope.clone());
        }
    }
    once
}

fn explain(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidIssuer => "the token is from another issuer",
        ErrorKind::InvalidAudience => "the token is for another audience",
        ErrorKind::InvalidSignature => "the signature of the token is wrong",
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => INCOMPLETE,
        ErrorKind::Json(_) => {
            "the claims of the token are not an object of JSON in which each name is there once"
        }
        _ => "the token is not a valid JWT",
    }
}
