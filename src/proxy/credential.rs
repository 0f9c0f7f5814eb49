//! Credentials: what the operator gave for the security schemes of a document, and what a call therefore carries.
//!
//! Everything that can be is decided at start: an operation ends up with headers, query pairs and cookies that are ready
//! to be sent, or with the sentence that says what is missing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heck::ToShoutySnakeCase as _;
use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use url::Origin;

use super::request::Fixed;
use super::style::{self, Keep};
use crate::spec::text;
use crate::spec::{Location, SecurityRequirement, SecurityScheme};

/// How the environment variables of credentials begin.
pub const PREFIX: &str = "OPENAPI_MCP_AUTH_";

/// What the operator gave for one scheme. Values are free of control characters and not empty.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The key, the token, or `user:password`.
    pub value: Option<SecretString>,
    /// The user's name, where it is given alone.
    pub username: Option<SecretString>,
    /// The user's password, where it is given alone.
    pub password: Option<SecretString>,
}

/// What the operator gave for all schemes.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// By the name of the variable, without [`PREFIX`].
    pub variables: BTreeMap<String, SecretString>,
    /// From the configuration file, by the name of the scheme. A variable is stronger.
    pub schemes: BTreeMap<String, Given>,
    /// Origins that headers and credentials may go to besides the API's own.
    pub origins: Vec<Origin>,
    /// Whether a client certificate is shown to the API.
    pub client_certificate: bool,
    /// Whether a call is made without the credential that it asks for where none was given.
    pub optional: bool,
}

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
    /// What to say of the credential where the API refuses it.
    pub advice: Option<Advice>,
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
}

/// Why a scheme adds nothing.
#[derive(Debug, Clone)]
struct Lack {
    /// What is to be set; for everybody.
    setting: String,
    /// The cause, where it is not simply that nothing was set; for the operator alone.
    cause: Option<String>,
}

/// Decides what each operation carries.
#[derive(Debug)]
pub struct Resolver<'a> {
    schemes: &'a BTreeMap<String, SecurityScheme>,
    credentials: &'a Credentials,
    headers: &'a HeaderMap,
    proofs: HashMap<String, Result<Proof, Lack>>,
    known: HashMap<Vec<SecurityRequirement>, Access>,
    bare: Arc<Credential>,
    /// Operations by what they lack.
    lacking: BTreeMap<String, usize>,
}

impl Given {
    fn user_and_password(&self) -> Option<String> {
        if let (Some(user), Some(password)) = (&self.username, &self.password) {
            return Some(format!("{}:{}", user.expose_secret(), password.expose_secret()));
        }
        let value = self.value.as_ref()?.expose_secret();
        value.contains(':').then(|| value.to_owned())
    }
}

impl Credentials {
    /// The environment variable for a scheme, without [`PREFIX`]: its name in upper snake case.
    #[must_use]
    pub fn suffix(scheme: &str) -> String {
        let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
        scheme.to_shouty_snake_case().chars().map(plain).collect()
    }

    /// Everything that must not come back in a reply.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let given = self.schemes.values().flat_map(|given| [&given.value, &given.password]);
        // A user's name is no secret, and may stand in any reply.
        let variables = self.variables.iter().filter(|(name, _)| !name.ends_with("_USERNAME"));
        variables.map(|(_, value)| value).chain(given.flatten())
    }

    /// The same as `Basic` writes it, and the passwords of `user:password`.
    #[must_use]
    pub fn pairs(&self) -> Vec<String> {
        let mut pairs = Vec::new();
        for value in self.secrets() {
            if let Some((_, password)) = value.expose_secret().split_once(':') {
                pairs.push(STANDARD.encode(value.expose_secret()));
                pairs.push(password.to_owned());
            }
        }
        let suffixes = self.variables.keys().filter_map(|name| name.strip_suffix("_PASSWORD"));
        let of_suffix = |suffix: &str| Given {
            username: self.variables.get(&format!("{suffix}_USERNAME")).cloned(),
            password: self.variables.get(&format!("{suffix}_PASSWORD")).cloned(),
            ..Given::default()
        };
        let given = suffixes.map(of_suffix).chain(self.schemes.keys().map(|name| self.of(name)));
        pairs.extend(
            given
                .filter_map(|given| given.user_and_password())
                .map(|pair| STANDARD.encode(pair)),
        );
        pairs.retain(|pair| pair.len() >= 4);
        pairs
    }

    fn of(&self, scheme: &str) -> Given {
        let suffix = Self::suffix(scheme);
        let file = self.schemes.get(scheme).cloned().unwrap_or_default();
        let variable = |part: &str| self.variables.get(&format!("{suffix}{part}")).cloned();
        Given {
            value: variable("").or(file.value),
            username: variable("_USERNAME").or(file.username),
            password: variable("_PASSWORD").or(file.password),
        }
    }

    /// Settings that belong to no scheme of the document: most likely a name was misspelt.
    fn strangers(&self, schemes: &BTreeMap<String, SecurityScheme>) -> Vec<String> {
        const PARTS: [&str; 3] = ["", "_USERNAME", "_PASSWORD"];
        let expected: BTreeSet<String> = schemes
            .keys()
            .flat_map(|name| PARTS.iter().map(|part| format!("{}{part}", Self::suffix(name))))
            .collect();
        let variables = self.variables.keys().filter(|name| !expected.contains(*name));
        let keys = self.schemes.keys().filter(|name| !schemes.contains_key(*name));
        variables
            .map(|name| format!("the variable {PREFIX}{name}"))
            .chain(keys.map(|name| format!("the key `auth.{}`", text::one_line(name))))
            .collect()
    }
}

impl<'a> Resolver<'a> {
    /// `headers` are the operator's, which every call carries.
    #[must_use]
    pub fn new(schemes: &'a BTreeMap<String, SecurityScheme>, credentials: &'a Credentials, headers: &'a HeaderMap) -> Self {
        let fixed = Fixed {
            headers: headers.clone(),
            ..Fixed::default()
        };
        Self {
            schemes,
            credentials,
            headers,
            proofs: HashMap::new(),
            known: HashMap::new(),
            bare: Arc::new(Credential { fixed, advice: None }),
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
                advice: Some(advice),
            }));
        }
        let lack = self.lack(requirements, false);
        Access::Missing(format!("nothing was sent, because it needs a credential that this server was not given; {lack}").into())
    }

    fn credential(&self, requirement: &SecurityRequirement, proofs: Vec<Proof>) -> Credential {
        let mut fixed = self.bare.fixed.clone();
        for proof in proofs {
            match proof {
                Proof::Elsewhere => {}
                Proof::Header(name, value) => {
                    fixed.headers.insert(name, value);
                }
                Proof::Query(name, value) => fixed.query.push((name, value)),
                Proof::Cookie(pair) => fixed.cookies.push(pair),
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
        let lack = |cause: Option<&str>| Lack {
            setting: self.setting(name),
            cause: cause.map(str::to_owned),
        };
        let Some(scheme) = self.schemes.get(name) else {
            return Err(lack(Some("the document does not define it")));
        };
        match scheme {
            SecurityScheme::ApiKey { location, name } => {
                if let Some(value) = &given.value {
                    return api_key(*location, name, value.expose_secret()).ok_or_else(|| lack(Some("no header can hold its value")));
                }
                let has_cookie = |header: &HeaderValue| {
                    let pairs = header.to_str().unwrap_or_default().split(';');
                    pairs.filter_map(|pair| pair.split_once('=')).any(|(key, _)| key.trim() == name)
                };
                let elsewhere = match location {
                    Location::Header => self.headers.contains_key(name.as_str()),
                    Location::Cookie => self.headers.get_all(COOKIE).iter().any(has_cookie),
                    _ => false,
                };
                if elsewhere { Ok(Proof::Elsewhere) } else { Err(lack(None)) }
            }
            SecurityScheme::MutualTls if self.credentials.client_certificate => Ok(Proof::Elsewhere),
            SecurityScheme::MutualTls => Err(lack(None)),
            other => {
                let authorization = match other {
                    SecurityScheme::Http(kind) if kind.eq_ignore_ascii_case("basic") => {
                        given.user_and_password().map(|pair| format!("Basic {}", STANDARD.encode(pair)))
                    }
                    SecurityScheme::Http(kind) if !kind.eq_ignore_ascii_case("bearer") => {
                        given.value.as_ref().map(|value| format!("{kind} {}", value.expose_secret()))
                    }
                    _ => given
                        .value
                        .as_ref()
                        .map(|value| format!("Bearer {}", bare_token(value.expose_secret()))),
                };
                match authorization.map(|text| sensitive(text.as_bytes())) {
                    Some(Ok(value)) => Ok(Proof::Header(AUTHORIZATION, value)),
                    Some(Err(_)) => Err(lack(Some("no header can hold its value"))),
                    None if self.headers.contains_key(AUTHORIZATION) => Ok(Proof::Elsewhere),
                    None if given.value.is_some() => Err(lack(Some("its value has no colon"))),
                    None => Err(lack(None)),
                }
            }
        }
    }

    /// What the operator sets for a scheme.
    fn setting(&self, name: &str) -> String {
        let variable = format!("{PREFIX}{}", Credentials::suffix(name));
        match self.schemes.get(name) {
            Some(SecurityScheme::Http(kind)) if kind.eq_ignore_ascii_case("basic") => format!("{variable} (as `user:password`)"),
            Some(SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect) => format!("{variable} (an access token)"),
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

fn sensitive(bytes: &[u8]) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_bytes(bytes)?;
    value.set_sensitive(true);
    Ok(value)
}
