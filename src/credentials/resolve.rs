//! Selects the operator's credentials for each operation.
//!
//! As much as possible is decided at start: an operation gets headers, query pairs and cookies that
//! are ready to be sent, or a sentence that says what is missing.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

use http::header::{COOKIE, HeaderName, HeaderValue};

use super::authenticator::{Authenticator, Injected};
use super::login::Login;
use super::scheme::{Applied, MissingCredential, SchemeResolver, is_api_key_header};
use crate::credentials::sensitive_header;
use crate::redact::carries_credential;
use crate::spec::{Location, Parameter, SecurityRequirement, SecurityScheme};
use crate::{redact, text};

/// The credentials of a call, or why it cannot be made: a sentence for the model.
pub(crate) type OperationAccess = Result<Arc<Credential>, Arc<str>>;

/// The operator's credentials of a call.
#[derive(Default)]
pub(crate) struct Credential {
    /// Ready to be sent.
    pub(crate) fixed: Injected,
    /// Creates headers of each request, `Authorization` among them.
    pub(crate) authenticator: Option<Authenticator>,
    /// Headers that the client must send for it: the client's name of each, and the API's.
    pub(crate) of_client: Vec<(HeaderName, HeaderName)>,
    /// True if headers of the client may be sent with it.
    pub(crate) forwards: bool,
    /// Advice for the error if the API refuses the credential.
    pub(crate) advice: Option<Advice>,
}

impl Credential {
    /// Returns the parts that it adds to a call, with `***` for each secret, to be shown.
    pub(crate) fn masked(&self) -> Injected {
        let mut masked = self.fixed.masked();
        for name in self.authenticator.iter().flat_map(Authenticator::headers) {
            masked.headers.insert(name, HeaderValue::from_static("***"));
        }
        masked
    }
}

/// Advice for the model, and through it for the operator, if the API refuses a call.
#[derive(Debug, Default)]
pub(crate) struct Advice {
    /// True if a credential was sent at all.
    pub(crate) sent: bool,
    /// The schemes, each with its setting; empty if the operation declares none.
    pub(crate) schemes: String,
    /// The scopes that the document names.
    pub(crate) scopes: Vec<String>,
}

/// Reason for which a call that needs a credential is not sent to another server.
const CROSS_ORIGIN: &str = "it goes to another server than the rest of the API, and credentials are not sent there; whoever runs this server allows that with `credential_origin`, or sends every call to one server with --base-url";

/// Decision for one list of requirements.
struct Decided {
    /// The list, which is kept alive.
    requirements: Rc<[SecurityRequirement]>,
    access: OperationAccess,
    /// Missing credentials, for the operator.
    missing: Option<String>,
    operations: usize,
}

/// Decides what each operation carries.
pub(crate) struct AccessResolver<'a> {
    given: SchemeResolver<'a>,
    applied: HashMap<String, Result<Applied, MissingCredential>>,
    /// By the allocations of lists: one that many operations share is decided once.
    known: HashMap<*const [SecurityRequirement], Decided>,
    bare: Arc<Credential>,
    /// Operations that need a credential and go elsewhere.
    cross_origin_operations: usize,
    /// Parts of requirements that are not sent although there are values for them.
    unsent: BTreeSet<String>,
}

impl<'a> AccessResolver<'a> {
    /// A resolver without decisions.
    pub(crate) fn new(given: SchemeResolver<'a>) -> Self {
        let mut headers = given.headers.clone();
        for (_, value) in headers
            .iter_mut()
            .filter(|(name, _)| is_api_key_header(given.schemes, name))
        {
            value.set_sensitive(true);
        }
        let mut carrying = headers
            .iter()
            .filter(|(name, value)| value.is_sensitive() || carries_credential(name));
        let is_bare = given.forward.headers.is_empty() && carrying.next().is_none();
        let mut bare = Credential {
            forwards: true,
            advice: is_bare.then(Advice::default),
            ..Credential::default()
        };
        bare.fixed.headers = headers;
        Self {
            given,
            applied: HashMap::new(),
            known: HashMap::new(),
            bare: Arc::new(bare),
            cross_origin_operations: 0,
            unsent: BTreeSet::new(),
        }
    }

    /// Returns the credentials of operations as they are sent, which may differ from the operator's
    /// values.
    pub(crate) fn sent(&self) -> Vec<Vec<u8>> {
        let forms = |text: &str| {
            let decoded = percent_encoding::percent_decode_str(text).collect();
            [text.as_bytes().to_vec(), decoded]
        };
        let mut sent = Vec::new();
        for applied in self.applied.values().flatten() {
            match applied {
                Applied::Header(name, value) => sent.extend(redact::secrets_of_header(name, value)),
                Applied::Query(_, value) => sent.extend(forms(value)),
                Applied::Cookie(pair) => {
                    sent.extend(forms(pair.split_once('=').map_or("", |(_, value)| value)));
                }
                Applied::Authenticator(authenticator) => sent.extend(authenticator.secrets()),
                Applied::AlreadyProvided | Applied::Client(..) => {}
            }
        }
        sent
    }

    /// Returns true if the model gives a parameter: not one that the operator, a client or a scheme
    /// of `requirements` sets.
    pub(crate) fn offers(
        &self,
        parameter: &Parameter,
        requirements: &[SecurityRequirement],
    ) -> bool {
        let set = self.given.headers.contains_key(&parameter.name)
            || self.given.forward.sets(&parameter.name);
        let is_signed = |scheme: &String| {
            let signature = self.given.credentials.signatures.get(scheme);
            signature.is_some_and(|own| own.kind().sets(parameter.location, &parameter.name))
        };
        let mut schemes = requirements.iter().flatten();
        let by_scheme = schemes.any(|(scheme, _)| {
            let key = self.given.schemes.get(scheme);
            matches!(key, Some(SecurityScheme::ApiKey { location, name }) if parameter.is(*location, name))
                || is_signed(scheme)
        });
        !(by_scheme || set && parameter.location == Location::Header)
    }

    /// Decides the credential of operations with these requirements: the first of them whose
    /// schemes all have values. An empty one at any position makes the others optional. If one of
    /// them is met as the user, no other one is used. `operations` is their number.
    pub(crate) fn access(
        &mut self,
        requirements: &Rc<[SecurityRequirement]>,
        operations: usize,
    ) -> OperationAccess {
        if let Some(known) = self.known.get_mut(&Rc::as_ptr(requirements)) {
            known.operations += operations;
            return known.access.clone();
        }
        let usable = self.usable(requirements);
        let access = self.decide(&usable);
        let missing = access.is_err().then(|| {
            let what = self.what_to_set(&usable, true);
            format!("{what}; if the API takes calls without a credential, --allow-missing-credentials sends them")
        });
        let decided = Decided {
            requirements: Rc::clone(requirements),
            access: access.clone(),
            missing,
            operations,
        };
        self.known.insert(Rc::as_ptr(requirements), decided);
        access
    }

    /// Returns the credential of an operation whose server has another origin than the API: none of
    /// the operator's.
    pub(crate) fn elsewhere(&mut self, requirements: &[SecurityRequirement]) -> OperationAccess {
        let demanded = !requirements.is_empty() && !requirements.iter().any(Vec::is_empty);
        let as_user = self.user_scheme(requirements).is_some();
        if as_user || demanded && !self.given.credentials.optional {
            self.cross_origin_operations += 1;
            return Err(format!("nothing was sent: {CROSS_ORIGIN}").into());
        }
        Ok(Arc::default())
    }

    /// Returns the logins by which the credentials of operations can be had: each scheme of OAuth,
    /// with its login or the reason for which there is none.
    pub(crate) fn logins(&self) -> Vec<(String, Result<Arc<Login>, String>)> {
        let logins = self.given.schemes.keys().filter_map(|scheme| {
            let known = self.known.values();
            let needs = known.flat_map(|known| known.requirements.iter()).flatten();
            let scopes = needs.filter(|(name, _)| name == scheme);
            let scopes = scopes.flat_map(|(_, scopes)| scopes.iter().map(String::as_str));
            let login = self.given.login(scheme, scopes.collect())?;
            Some((scheme.clone(), login.map(Arc::new)))
        });
        logins.collect()
    }

    /// Returns warnings for the operator, in sentences.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
        for known in self.known.values() {
            if let Some(what) = &known.missing {
                *missing.entry(what).or_default() += known.operations;
            }
        }
        if self.cross_origin_operations > 0 {
            missing.insert(CROSS_ORIGIN, self.cross_origin_operations);
        }
        let told = |(what, count)| {
            let operations = text::counted(count, "operation");
            format!("{operations} cannot be called: {what}")
        };
        let mut warnings: Vec<String> = missing.into_iter().map(told).collect();
        // What the operator sets is stronger than what a client sends; `forwarded` in
        // `proxy/call.rs` leaves that out.
        let own = self.applied.values().flatten().flat_map(Applied::headers);
        let own = own.chain(self.given.headers.keys());
        let own: BTreeSet<&str> = own.map(HeaderName::as_str).collect();
        let twice = own.into_iter().filter(|name| self.given.forward.sets(name));
        warnings.extend(twice.map(|name| {
            format!("the header `{name}` is forwarded from clients, and set here as well; operations that get the one set here do not get the client's")
        }));
        let sources = self.applied.values().filter_map(|applied| match applied {
            Ok(Applied::Authenticator(Authenticator::Token(source))) => Some(source),
            _ => None,
        });
        let signed_out = sources.clone().filter_map(|source| source.needs_login());
        warnings.extend(signed_out.map(|scheme| {
            let scheme = text::one_line(scheme);
            format!("nobody is signed in for `{scheme}`, and calls that need it are refused; `openapi-mcp login {scheme}` signs in")
        }));
        let at_risk = sources.filter_map(|source| source.at_risk());
        warnings.extend(self.given.credentials.common_secrets(self.given.schemes).map(|setting| {
            format!("the value of {setting} is short or a plain word; it is replaced in replies wherever it occurs, in identifiers too, so use a long random value, or none with --allow-missing-credentials")
        }));
        warnings.extend(at_risk.map(|scheme| {
            format!("if the token endpoint of `{scheme}` replaces the refresh token, the new one is lost with this process; `token_store` keeps it")
        }));
        warnings.extend(self.unsent.iter().cloned());
        let schemes = self.given.schemes;
        let unmatched = self.given.credentials.unmatched_settings(schemes);
        if !unmatched.is_empty() {
            const MAX_LISTED_SCHEMES: usize = 20;
            let names = schemes.keys().take(MAX_LISTED_SCHEMES);
            let names = names.map(|name| format!("`{}`", text::one_line(name)));
            let names = names.collect::<Vec<_>>().join(", ");
            let known = match schemes.len().saturating_sub(MAX_LISTED_SCHEMES) {
                _ if schemes.is_empty() => "it has none".to_owned(),
                0 => format!("it has {names}"),
                more => format!("it has {names} and {more} more"),
            };
            let told = |name: &String| {
                format!("{name} belongs to no security scheme of the document; {known}")
            };
            warnings.extend(unmatched.iter().map(told));
        }
        warnings
    }

    /// The first scheme of these requirements that is met as the user.
    fn user_scheme<'r>(&self, requirements: &'r [SecurityRequirement]) -> Option<&'r str> {
        let mut names = requirements.iter().flatten().map(|(name, _)| name.as_str());
        names.find(|name| self.given.credentials.exchange(name).is_some())
    }

    /// The requirements that may be used: those that are met as the user, if there are any. A user
    /// whom the token endpoint refuses must not be called as somebody else.
    fn usable<'r>(
        &mut self,
        requirements: &'r [SecurityRequirement],
    ) -> Cow<'r, [SecurityRequirement]> {
        let Some(user_scheme) = self.user_scheme(requirements).map(text::one_line) else {
            return Cow::Borrowed(requirements);
        };
        let (usable, others): (Vec<_>, Vec<_>) = requirements
            .iter()
            .partition(|requirement| self.user_scheme(slice::from_ref(requirement)).is_some());
        for name in others.into_iter().flatten().map(|(name, _)| name) {
            if matches!(self.applied(name), Ok(applied) if !matches!(applied, Applied::AlreadyProvided))
            {
                self.unsent.insert(format!(
                    "operations that allow `{user_scheme}` are called as the user and in no other way: the credential for `{}` is not sent with them",
                    text::one_line(name)
                ));
            }
        }
        Cow::Owned(usable.into_iter().cloned().collect())
    }

    fn decide(&mut self, requirements: &[SecurityRequirement]) -> OperationAccess {
        for requirement in requirements.iter().filter(|needed| !needed.is_empty()) {
            let applied = requirement.iter().map(|(name, _)| self.applied(name));
            if let Ok(applied) = applied.collect() {
                return Ok(Arc::new(self.credential(requirement, applied)));
            }
        }
        if requirements.is_empty() {
            return Ok(Arc::clone(&self.bare));
        }
        // An operation that is called as the user is never called without credentials.
        let as_user = self.user_scheme(requirements).is_some();
        let is_optional = self.given.credentials.optional || requirements.iter().any(Vec::is_empty);
        if is_optional && !as_user {
            let advice = Advice {
                schemes: self.what_to_set(requirements, false),
                ..Advice::default()
            };
            return Ok(Arc::new(Credential {
                fixed: self.bare.fixed.clone(),
                forwards: true,
                advice: Some(advice),
                ..Credential::default()
            }));
        }
        let settings = self.what_to_set(requirements, false);
        Err(
            format!("nothing was sent, because it needs a credential that this server was not given; {settings}, or --allow-missing-credentials if the API takes calls without one").into(),
        )
    }

    fn credential(
        &mut self,
        requirement: &SecurityRequirement,
        applied: Vec<Applied>,
    ) -> Credential {
        let mut fixed = self.bare.fixed.clone();
        let mut authenticator = None;
        let mut of_client = Vec::new();
        let mut senders: HashMap<HeaderName, &str> = HashMap::new();
        for ((scheme, scopes), applied) in requirement.iter().zip(applied) {
            if let Some(header) = applied.headers().first()
                && let Some(other) = senders.insert(header.clone(), scheme)
            {
                let [other, scheme] = [other, scheme].map(text::one_line);
                self.unsent.insert(format!(
                    "operations need `{other}` and `{scheme}` together, and both are sent in the header `{header}`: one of them is not sent"
                ));
            }
            match applied {
                Applied::AlreadyProvided => {}
                Applied::Header(name, value) => {
                    fixed.headers.insert(name, value);
                }
                Applied::Query(name, value) => fixed.query.push((name, value)),
                Applied::Cookie(pair) => fixed.cookies.push(pair),
                Applied::Authenticator(own) => authenticator = Some(own.for_operation(scopes)),
                Applied::Client(ours, theirs) => of_client.push((ours, theirs)),
            }
        }
        // The operator's whole Cookie header and a scheme's cookie become one header.
        if let Some(own) = self.given.headers.get(COOKIE)
            && !fixed.cookies.is_empty()
        {
            let cookies = std::mem::take(&mut fixed.cookies).join("; ");
            let joined = [own.as_bytes(), b"; ", cookies.as_bytes()].concat();
            if let Ok(joined) = sensitive_header(&joined) {
                fixed.headers.insert(COOKIE, joined);
            }
        }
        let scopes: BTreeSet<&String> = requirement.iter().flat_map(|(_, scopes)| scopes).collect();
        let schemes = requirement
            .iter()
            .map(|(name, _)| format!("`{}` ({})", text::one_line(name), self.given.setting(name)));
        let is_of_user = matches!(authenticator, Some(Authenticator::Exchange(_)));
        Credential {
            fixed,
            authenticator,
            of_client,
            forwards: true,
            // The credential that the API refuses is the user's.
            advice: (!is_of_user).then(|| Advice {
                sent: true,
                schemes: schemes.collect::<Vec<_>>().join(" and "),
                scopes: scopes
                    .into_iter()
                    .map(|scope| text::one_line(scope))
                    .collect(),
            }),
        }
    }

    /// Names the settings that would meet one of the requirements.
    fn what_to_set(&self, requirements: &[SecurityRequirement], for_operator: bool) -> String {
        let one = |requirement: &SecurityRequirement| {
            let settings = requirement.iter().filter_map(|(name, _)| {
                let MissingCredential { setting, cause } =
                    self.applied.get(name)?.as_ref().err()?;
                let cause = cause.as_ref().filter(|_| for_operator);
                let cause = cause.map(|cause| format!(", because {cause}"));
                let cause = cause.unwrap_or_default();
                let comma = if setting.contains(", ") { "," } else { "" };
                let name = text::one_line(name);
                Some(format!(
                    "{setting}{comma} for the security scheme `{name}`{cause}"
                ))
            });
            settings.collect::<Vec<_>>().join(" and ")
        };
        let mut all: Vec<String> = Vec::new();
        for requirement in requirements.iter().filter(|needed| !needed.is_empty()) {
            let settings = one(requirement);
            // Alternatives may differ in nothing but their scopes.
            if !all.contains(&settings) {
                all.push(settings);
            }
        }
        let who = if for_operator {
            "set"
        } else {
            "whoever runs this server sets"
        };
        format!("{who} {}", all.join(", or "))
    }

    fn applied(&mut self, name: &str) -> Result<Applied, MissingCredential> {
        if let Some(known) = self.applied.get(name) {
            return known.clone();
        }
        let applied = self.given.resolve(name);
        self.applied.insert(name.to_owned(), applied.clone());
        applied
    }
}
