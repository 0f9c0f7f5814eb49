//! Who a call says it is: what each operation carries of the operator's credentials.
//!
//! Everything that can be is decided at start: an operation ends up with headers, query pairs and cookies that are ready
//! to be sent, or with the sentence that says what is missing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::credential::{Credentials, Given, PREFIX, Part, user_and_password};
use super::digest::Digest;
use super::forward::Forwarding;
use super::oauth::{Endpoint, Grant, TokenSource, is_safe};
use super::request::Fixed;
use super::style::{self, Keep};
use crate::outbound::Clients;
use crate::spec::text;
use crate::spec::{Location, SecurityRequirement, SecurityScheme};

/// What a call carries of the operator's, or why it cannot be made.
#[derive(Debug, Clone)]
pub enum Access {
    /// It can be made with this.
    Granted(Arc<Credential>),
    /// It cannot: a sentence for the model.
    Missing(Arc<str>),
}

/// What a call carries of the operator's.
#[derive(Debug, Default)]
pub struct Credential {
    /// Ready to be sent.
    pub fixed: Fixed,
    /// What signs each request anew.
    pub signer: Option<Signer>,
    /// Headers that the client must send for it: the client's name of each, and the API's.
    pub of_client: Vec<(HeaderName, HeaderName)>,
    /// Whether headers of the client may go there.
    pub forwards: bool,
    /// What to say of the credential where the API refuses it.
    pub advice: Option<Advice>,
}

/// What makes `Authorization` for each request, because it does not stay the same.
#[derive(Debug, Clone)]
pub enum Signer {
    /// An access token.
    Token(Arc<TokenSource>),
    /// An answer to the API's challenge.
    Digest(Arc<Digest>),
}

/// What the model, and through it the operator, is told where the API refuses a call.
#[derive(Debug)]
pub struct Advice {
    /// Whether a credential was sent at all.
    pub sent: bool,
    /// The schemes, each with its setting.
    pub schemes: String,
    /// The scopes that the document names.
    pub scopes: Vec<String>,
}

/// What one scheme adds to a call.
#[derive(Debug, Clone)]
enum Proof {
    /// Something that is there anyway: a header of the operator's, a client certificate.
    Elsewhere,
    Header(HeaderName, HeaderValue),
    Query(String, String),
    Cookie(String),
    Signer(Signer),
    /// A header of the client's, and what the API calls it.
    Client(HeaderName, HeaderName),
}

/// Why a scheme adds nothing.
#[derive(Debug, Clone)]
struct Lack {
    /// What is to be set; for everybody.
    setting: String,
    /// The cause, where it is not simply that nothing was set; for the operator alone.
    cause: Option<String>,
}

/// Where the API is.
#[derive(Debug, Clone)]
pub struct Site {
    /// Where calls go, where that is known for the API as a whole.
    pub base: Option<Url>,
    /// Where the document came from.
    pub document: Option<Url>,
    /// Ask for tokens.
    pub clients: Clients,
}

/// Decides what each operation carries.
#[derive(Debug)]
pub struct Resolver<'a> {
    site: Site,
    schemes: &'a BTreeMap<String, SecurityScheme>,
    credentials: &'a Credentials,
    headers: &'a HeaderMap,
    forward: &'a Forwarding,
    proofs: HashMap<String, Result<Proof, Lack>>,
    known: HashMap<Vec<SecurityRequirement>, Access>,
    bare: Arc<Credential>,
    /// Operations by what they lack.
    lacking: BTreeMap<String, usize>,
}

impl<'a> Resolver<'a> {
    /// `headers` are the operator's, which every call carries; `forward` are the client's.
    #[must_use]
    pub fn new(
        schemes: &'a BTreeMap<String, SecurityScheme>,
        credentials: &'a Credentials,
        headers: &'a HeaderMap,
        forward: &'a Forwarding,
        site: Site,
    ) -> Self {
        let fixed = Fixed {
            headers: headers.clone(),
            ..Fixed::default()
        };
        Self {
            site,
            schemes,
            credentials,
            headers,
            forward,
            proofs: HashMap::new(),
            known: HashMap::new(),
            bare: Arc::new(Credential {
                fixed,
                forwards: true,
                ..Credential::default()
            }),
            lacking: BTreeMap::new(),
        }
    }

    /// The parameters that the schemes of `requirements` set: they are no arguments.
    #[must_use]
    pub fn claimed(&self, requirements: &[SecurityRequirement]) -> Vec<(Location, &'a str)> {
        let names = requirements.iter().flatten().map(|(name, _)| name);
        let keys = names.filter_map(|name| match self.schemes.get(name)? {
            SecurityScheme::ApiKey { location, name } => Some((*location, name.as_str())),
            _ => None,
        });
        keys.collect()
    }

    /// What an operation with these requirements carries: the first of them whose schemes all have values. An empty one
    /// makes the others optional, wherever it stands.
    pub fn access(&mut self, requirements: &[SecurityRequirement]) -> Access {
        let known = self.known.get(requirements).cloned();
        let access = known.unwrap_or_else(|| {
            let access = self.decide(requirements);
            self.known.insert(requirements.to_vec(), access.clone());
            access
        });
        if let Access::Missing(_) = access {
            *self.lacking.entry(self.lack(requirements, true)).or_default() += 1;
        }
        access
    }

    /// What an operation carries whose server is another origin than the API's: nothing of the operator's.
    pub fn elsewhere(&mut self, requirements: &[SecurityRequirement]) -> Access {
        let demanded = !requirements.is_empty() && !requirements.iter().any(Vec::is_empty);
        if demanded && !self.credentials.optional {
            const WHY: &str = "it goes to another server than the rest of the API, and credentials are not sent there; whoever runs this server allows that with --credential-origin, or sends every call to one server with --base-url";
            *self.lacking.entry(WHY.to_owned()).or_default() += 1;
            return Access::Missing(format!("nothing was sent: {WHY}").into());
        }
        Access::Granted(Arc::new(Credential::default()))
    }

    /// What the operator should know, in sentences.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let operations = |count: usize| {
            if count == 1 {
                "1 operation".to_owned()
            } else {
                format!("{count} operations")
            }
        };
        let mut warnings: Vec<String> = self
            .lacking
            .iter()
            .map(|(lack, count)| format!("{} cannot be called: {lack}", operations(*count)))
            .collect();
        // What the operator sets is stronger than what a client sends; see `Api::call`.
        let own = self.proofs.values().filter_map(|proof| match proof {
            Ok(Proof::Header(name, _)) => Some(name),
            Ok(Proof::Signer(_)) => Some(&AUTHORIZATION),
            _ => None,
        });
        let own: BTreeSet<&str> = own.chain(self.headers.keys()).map(HeaderName::as_str).collect();
        let twice = own.into_iter().filter(|name| self.forward.sets(name));
        warnings.extend(twice.map(|name| {
            format!("the header `{name}` is forwarded from clients, and set here as well; operations that get the one set here do not get the client's")
        }));
        let names: Vec<String> = self.schemes.keys().map(|name| format!("`{}`", text::one_line(name))).collect();
        let known = if names.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}", names.join(", "))
        };
        let strangers = self.credentials.strangers(self.schemes);
        warnings.extend(
            strangers
                .iter()
                .map(|name| format!("{name} belongs to no security scheme of the document; {known}")),
        );
        warnings
    }

    fn decide(&mut self, requirements: &[SecurityRequirement]) -> Access {
        for requirement in requirements.iter().filter(|requirement| !requirement.is_empty()) {
            let proofs: Result<Vec<Proof>, Lack> = requirement.iter().map(|(name, _)| self.proof(name)).collect();
            if let Ok(proofs) = proofs {
                return Access::Granted(Arc::new(self.credential(requirement, proofs)));
            }
        }
        if requirements.is_empty() {
            return Access::Granted(Arc::clone(&self.bare));
        }
        if self.credentials.optional || requirements.iter().any(Vec::is_empty) {
            let advice = Advice {
                sent: false,
                schemes: self.lack(requirements, false),
                scopes: Vec::new(),
            };
            return Access::Granted(Arc::new(Credential {
                fixed: self.bare.fixed.clone(),
                forwards: true,
                advice: Some(advice),
                ..Credential::default()
            }));
        }
        let lack = self.lack(requirements, false);
        Access::Missing(format!("nothing was sent, because it needs a credential that this server was not given; {lack}").into())
    }

    fn credential(&self, requirement: &SecurityRequirement, proofs: Vec<Proof>) -> Credential {
        let mut fixed = self.bare.fixed.clone();
        let mut signer = None;
        let mut of_client = Vec::new();
        for proof in proofs {
            match proof {
                Proof::Elsewhere => {}
                Proof::Header(name, value) => {
                    fixed.headers.insert(name, value);
                }
                Proof::Query(name, value) => fixed.query.push((name, value)),
                Proof::Cookie(pair) => fixed.cookies.push(pair),
                Proof::Signer(own) => signer = Some(own),
                Proof::Client(ours, theirs) => of_client.push((ours, theirs)),
            }
        }
        // The operator's whole Cookie header and a scheme's cookie become one header.
        if let Some(own) = self.headers.get(COOKIE).filter(|_| !fixed.cookies.is_empty()) {
            let joined = [own.as_bytes(), b"; ", std::mem::take(&mut fixed.cookies).join("; ").as_bytes()].concat();
            if let Ok(joined) = sensitive(&joined) {
                fixed.headers.insert(COOKIE, joined);
            }
        }
        let scopes: BTreeSet<&String> = requirement.iter().flat_map(|(_, scopes)| scopes).collect();
        let schemes = requirement
            .iter()
            .map(|(name, _)| format!("`{}` ({})", text::one_line(name), self.setting(name)));
        Credential {
            fixed,
            signer,
            of_client,
            forwards: true,
            advice: Some(Advice {
                sent: true,
                schemes: schemes.collect::<Vec<_>>().join(" and "),
                scopes: scopes.into_iter().map(|scope| text::one_line(scope)).collect(),
            }),
        }
    }

    /// What to set, so that one of the requirements is met.
    fn lack(&self, requirements: &[SecurityRequirement], for_operator: bool) -> String {
        let one = |requirement: &SecurityRequirement| {
            let lacks = requirement.iter().filter_map(|(name, _)| {
                let lack = self.proofs.get(name)?.as_ref().err()?;
                let cause = lack.cause.as_ref().filter(|_| for_operator);
                let cause = cause.map(|cause| format!(", because {cause}")).unwrap_or_default();
                Some(format!(
                    "{} for the security scheme `{}`{cause}",
                    lack.setting,
                    text::one_line(name)
                ))
            });
            lacks.collect::<Vec<_>>().join(" and ")
        };
        let all: Vec<String> = requirements.iter().filter(|requirement| !requirement.is_empty()).map(one).collect();
        let who = if for_operator { "set" } else { "whoever runs this server sets" };
        format!("{who} {}", all.join(", or "))
    }

    fn proof(&mut self, name: &str) -> Result<Proof, Lack> {
        if let Some(known) = self.proofs.get(name) {
            return known.clone();
        }
        let proof = self.prove(name);
        self.proofs.insert(name.to_owned(), proof.clone());
        proof
    }

    fn prove(&self, name: &str) -> Result<Proof, Lack> {
        let given = self.credentials.of(name);
        let value = given.get(&Part::Value).map(SecretString::expose_secret);
        let lack = |cause: Option<&str>| Lack {
            setting: self.setting(name),
            cause: cause.map(str::to_owned),
        };
        let Some(scheme) = self.schemes.get(name) else {
            return Err(lack(Some("the document does not define it")));
        };
        let authorization = match scheme {
            SecurityScheme::ApiKey { location, name } => {
                if let Some(value) = value {
                    return api_key(*location, name, value).ok_or_else(|| lack(Some("no header can hold its value")));
                }
                let header = HeaderName::from_bytes(name.as_bytes())
                    .ok()
                    .filter(|_| *location == Location::Header);
                return if self.has_key(*location, name) {
                    Ok(Proof::Elsewhere)
                } else {
                    header.and_then(|name| self.of_client(name)).ok_or_else(|| lack(None))
                };
            }
            SecurityScheme::MutualTls if self.credentials.client_certificate => return Ok(Proof::Elsewhere),
            SecurityScheme::MutualTls => return Err(lack(None)),
            SecurityScheme::Http(kind) if kind.eq_ignore_ascii_case("basic") => {
                user_and_password(&given).map(|pair| format!("Basic {}", STANDARD.encode(pair)))
            }
            SecurityScheme::Http(kind) if kind.eq_ignore_ascii_case("digest") => {
                if let Some(digest) = user_and_password(&given).as_deref().and_then(Digest::new) {
                    return Ok(Proof::Signer(Signer::Digest(Arc::new(digest))));
                }
                None
            }
            SecurityScheme::Http(kind) if !kind.eq_ignore_ascii_case("bearer") => value.map(|value| format!("{kind} {value}")),
            SecurityScheme::Http(_) => value.map(|value| format!("Bearer {}", bare_token(value))),
            SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect => {
                if value.is_none() && (given.contains_key(&Part::ClientId) || given.contains_key(&Part::RefreshToken)) {
                    return self.grant(name, scheme, &given).map(|grant| {
                        let own = self
                            .site
                            .base
                            .as_ref()
                            .is_some_and(|base| base.origin() == grant.endpoint.url().origin());
                        let client = if own { &self.site.clients.own } else { &self.site.clients.other };
                        Proof::Signer(Signer::Token(Arc::new(TokenSource::new(grant, client.clone()))))
                    });
                }
                value.map(|value| format!("Bearer {}", bare_token(value)))
            }
        };
        match authorization.map(|text| sensitive(text.as_bytes())) {
            Some(Ok(value)) => Ok(Proof::Header(AUTHORIZATION, value)),
            Some(Err(_)) => Err(lack(Some("no header can hold its value"))),
            None if self.headers.contains_key(AUTHORIZATION) => Ok(Proof::Elsewhere),
            None if self.forward.sets(AUTHORIZATION.as_str()) => self.of_client(AUTHORIZATION).ok_or_else(|| lack(None)),
            None if value.is_some() => Err(lack(Some("its value has no colon"))),
            None => Err(lack(None)),
        }
    }

    fn of_client(&self, name: HeaderName) -> Option<Proof> {
        let ours = self.forward.source(&name)?.clone();
        Some(Proof::Client(ours, name))
    }

    /// Whether the operator's headers hold an API key already.
    fn has_key(&self, location: Location, name: &str) -> bool {
        let has_cookie = |header: &HeaderValue| {
            let pairs = header.to_str().unwrap_or_default().split(';');
            pairs.filter_map(|pair| pair.split_once('=')).any(|(key, _)| key.trim() == name)
        };
        match location {
            Location::Header => self.headers.contains_key(name),
            Location::Cookie => self.headers.get_all(COOKIE).iter().any(has_cookie),
            _ => false,
        }
    }

    /// How tokens of a scheme are asked for. The document's token URL counts only on the API's own origin: a document must
    /// not be able to choose who gets the client's secret.
    fn grant(&self, name: &str, scheme: &SecurityScheme, given: &Given) -> Result<Grant, Lack> {
        let part = |part: Part| given.get(&part).cloned();
        let missing = |what: Part, cause: &str| Lack {
            setting: format!("{PREFIX}{}{}", Credentials::suffix(name), what.suffix()),
            cause: Some(cause.to_owned()),
        };
        if !given.contains_key(&Part::RefreshToken) && !given.contains_key(&Part::ClientSecret) {
            return Err(missing(Part::ClientSecret, "a client needs a secret to get tokens"));
        }
        let url = |part: Part| given.get(&part).and_then(|text| Url::parse(text.expose_secret()).ok());
        let endpoint = match (url(Part::TokenUrl), url(Part::Issuer), scheme) {
            (Some(url), ..) => Endpoint::Token(url),
            (None, Some(url), _) => Endpoint::Issuer(url),
            (None, None, SecurityScheme::OAuth2 { token_url: Some(text) }) => {
                let base = self.site.document.as_ref().or(self.site.base.as_ref());
                let declared = Url::options().base_url(base).parse(text).ok();
                let own = self.site.base.as_ref().map(Url::origin);
                match declared {
                    Some(url) if Some(url.origin()) == own && is_safe(&url) => Endpoint::Token(url),
                    _ => {
                        let text = text::cut(&text::one_line(text), 200);
                        let cause = format!(
                            "the document's own, `{text}`, is not on the API's origin over https, and a document does not decide who gets a client's secret"
                        );
                        return Err(missing(Part::TokenUrl, &cause));
                    }
                }
            }
            (None, None, SecurityScheme::OpenIdConnect) => {
                return Err(missing(Part::Issuer, "a document does not decide who gets a client's secret"));
            }
            _ => return Err(missing(Part::TokenUrl, "the document names no token endpoint")),
        };
        Ok(Grant {
            scheme: name.to_owned(),
            endpoint,
            client_id: part(Part::ClientId),
            client_secret: part(Part::ClientSecret),
            refresh_token: part(Part::RefreshToken),
            scopes: part(Part::Scopes),
            audience: part(Part::Audience),
        })
    }

    /// What the operator sets for a scheme.
    fn setting(&self, name: &str) -> String {
        let variable = format!("{PREFIX}{}", Credentials::suffix(name));
        match self.schemes.get(name) {
            Some(SecurityScheme::Http(kind)) if ["basic", "digest"].iter().any(|known| kind.eq_ignore_ascii_case(known)) => {
                format!("{variable} (as `user:password`)")
            }
            Some(SecurityScheme::OAuth2 { .. }) => {
                format!("{variable}_CLIENT_ID and {variable}_CLIENT_SECRET, or {variable} (an access token),")
            }
            Some(SecurityScheme::OpenIdConnect) => {
                format!("{variable}_ISSUER, {variable}_CLIENT_ID and {variable}_CLIENT_SECRET, or {variable} (an access token),")
            }
            Some(SecurityScheme::MutualTls) => "--client-cert and --client-key".into(),
            Some(_) => variable,
            None => "a header (--header-env)".into(),
        }
    }
}

/// People copy tokens with the word before them.
fn bare_token(value: &str) -> &str {
    match value.get(..7) {
        Some(word) if word.eq_ignore_ascii_case("bearer ") => value.get(7..).unwrap_or_default().trim_start(),
        _ => value,
    }
}

fn api_key(location: Location, name: &str, value: &str) -> Option<Proof> {
    Some(match location {
        Location::Query | Location::QueryString => {
            Proof::Query(style::encode(name, Keep::Unreserved), style::encode(value, Keep::Unreserved))
        }
        Location::Cookie => {
            // RFC 6265 section 4.1.1; what else a key may hold is percent-encoded.
            let octet = |byte: u8| matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e);
            let plain = value.bytes().all(octet);
            let value = if plain {
                value.to_owned()
            } else {
                style::encode(value, Keep::Unreserved)
            };
            Proof::Cookie(format!("{name}={value}"))
        }
        _ => Proof::Header(HeaderName::from_bytes(name.as_bytes()).ok()?, sensitive(value.as_bytes()).ok()?),
    })
}

/// A header value that is not shown.
pub(super) fn sensitive(bytes: &[u8]) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_bytes(bytes)?;
    value.set_sensitive(true);
    Ok(value)
}
