//! The login that gives the tokens of a security scheme, made of the operator's settings and of the
//! document's flow.

use std::collections::BTreeSet;

use super::Login;
use crate::credentials::credential_part::CredentialPart;
use crate::credentials::scheme::{SchemeResolver, configured_endpoint, url_of};
use crate::credentials::tokens::oauth_client::{Endpoint, exposed};
use crate::credentials::tokens::stored_token::TokenOwner;
use crate::credentials::tokens::token_endpoint::TokenEndpoint;
use crate::credentials::tokens::token_source::TokenSource;
use crate::credentials::values::{CredentialPlace, OauthClientOptions};
use crate::outbound::is_encrypted_or_local;
use crate::spec::{ConsentUrls, OAuthFlow, SecurityScheme};
use crate::text::{one_line, truncate};

impl SchemeResolver<'_> {
    /// The login for a scheme of OAuth, for the scopes that operations ask for, or the reason for
    /// which there is none. `None` for other schemes.
    pub(crate) fn login(
        &self,
        name: &str,
        scopes: BTreeSet<&str>,
    ) -> Option<Result<Login, String>> {
        let none = ConsentUrls::default();
        match self.schemes.get(name)? {
            SecurityScheme::OAuth2 { consent, .. } => {
                Some(self.find_login(name, consent, false, scopes))
            }
            SecurityScheme::OpenIdConnect => Some(self.find_login(name, &none, true, scopes)),
            _ => None,
        }
    }

    /// The source of the tokens of a login, and true if somebody is signed in. `None` if nobody is,
    /// and the scheme is not one by which people sign in.
    pub(crate) fn source_of_login(&self, name: &str) -> Option<(TokenSource, bool)> {
        let login = self.login(name, BTreeSet::new())?.ok()?;
        let is_stored = login.is_stored();
        let options = self.credentials.clients.get(name);
        let is_configured = options.is_some_and(OauthClientOptions::logs_in);
        let is_of_people = match self.schemes.get(name)? {
            SecurityScheme::OAuth2 { flow, consent, .. } => {
                *flow == OAuthFlow::Consent || *consent != ConsentUrls::default()
            }
            _ => true,
        };
        (is_stored || is_configured || is_of_people).then(|| (login.into_source(), is_stored))
    }

    fn find_login(
        &self,
        name: &str,
        consent: &ConsentUrls,
        is_openid: bool,
        scopes: BTreeSet<&str>,
    ) -> Result<Login, String> {
        let (values, _) = self.credentials.of_document(name, self.schemes);
        if self.credentials.place() == CredentialPlace::Tenants {
            return Err(
                "tenants have credentials of their own, and a login is that of one person".into(),
            );
        }
        if self.credentials.exchange(name).is_some() {
            return Err(
                "it has a `grant`: the API is called as the user of each call, and nobody else"
                    .into(),
            );
        }
        let options = self.credentials.clients.get(name);
        let stronger = [
            (CredentialPart::Value, "an access token"),
            (CredentialPart::RefreshToken, "a refresh token"),
            (CredentialPart::Password, "a password"),
        ];
        if let Some((_, what)) = stronger.iter().find(|(part, _)| values.contains_key(part)) {
            return Err(format!(
                "{what} is set for it, which is stronger than a login; remove that first"
            ));
        }
        let Some(store) = self.credentials.login_store.clone() else {
            return Err(
                "there is no place for its tokens: over HTTP, everybody would act as the person who signs in, and if that is what you want, name a store with `token_store`"
                    .into(),
            );
        };
        let missing_client = (!values.contains_key(&CredentialPart::ClientId)).then(|| {
            let setting = self.part_setting(name, CredentialPart::ClientId);
            format!(
                "it needs the client that you registered with the authorization server: `auth.{}.client_id`, or {setting}",
                one_line(name)
            )
        });
        let issuer = url_of(&values, CredentialPart::Issuer);
        let own = |text: &Option<String>| {
            let text = text.as_deref().filter(|_| issuer.is_none())?;
            self.own_url(text)
        };
        let authorization = options.and_then(|options| options.authorization_url.clone());
        let authorization = authorization.or_else(|| own(&consent.authorization));
        let device = options.and_then(|options| options.device_authorization_url.clone());
        let device = device.or_else(|| own(&consent.device_authorization));
        let endpoint = configured_endpoint(&values);
        let endpoint = endpoint.or_else(|| own(&consent.token).map(Endpoint::Token));
        let is_complete = issuer.is_some() || authorization.is_some() || device.is_some();
        let endpoint = endpoint
            .filter(|_| is_complete)
            .ok_or_else(|| explain_endpoints(name, consent));
        let endpoint = match (missing_client, endpoint) {
            (None, endpoint) => endpoint?,
            (Some(client), Ok(_)) => return Err(client),
            (Some(client), Err(endpoints)) => return Err(format!("{client}; and {endpoints}")),
        };
        let mut urls = std::iter::once(endpoint.url()).chain(&issuer);
        if let Some(url) = urls.find(|url| !is_encrypted_or_local(url)) {
            return Err(format!(
                "`{url}` is neither https nor on this machine, and would get the tokens of a person"
            ));
        }
        let client = self.oauth_client(name, endpoint, &values);
        let base = self.site.base.as_ref();
        let owner = base.map(|base| TokenOwner::of_login(&client, &base.origin()));
        // What the API's own client may do, such as showing a certificate, counts for its origin
        // alone.
        let own = client.endpoint.url();
        let mut others = issuer.iter().chain(&device);
        let http = if others.any(|url| url.origin() != own.origin()) {
            &self.site.clients.other
        } else {
            self.client_for(own)
        };
        let http = http.clone();
        let scopes: Vec<&str> = match exposed(values.get(&CredentialPart::Scopes)) {
            Some(configured) => configured.split_whitespace().collect(),
            None => is_openid
                .then_some(super::OPENID)
                .into_iter()
                .chain(scopes)
                .collect(),
        };
        Ok(Login {
            scopes: scopes.into_iter().map(str::to_owned).collect(),
            audience: values.get(&CredentialPart::Audience).cloned(),
            endpoint: TokenEndpoint::new(client, http),
            issuer,
            authorization,
            device,
            owner,
            store,
        })
    }
}

/// Explains which endpoints a login lacks, with those of the document and the keys to copy them
/// into.
fn explain_endpoints(name: &str, consent: &ConsentUrls) -> String {
    const MAX_URL_BYTES: usize = 300;
    let name = one_line(name);
    let declared = [
        ("authorization_url", &consent.authorization),
        ("device_authorization_url", &consent.device_authorization),
        ("token_url", &consent.token),
    ];
    let declared = declared
        .iter()
        .filter_map(|(key, url)| Some((*key, url.as_deref()?)));
    let copied: Vec<String> = declared
        .map(|(key, url)| format!("{key}: {}", truncate(&one_line(url), MAX_URL_BYTES)))
        .collect();
    if copied.is_empty() {
        return format!(
            "it needs `auth.{name}.issuer`, or `auth.{name}.authorization_url` and `auth.{name}.token_url`"
        );
    }
    format!(
        "the document's own addresses are not on the API's origin over https, and a document does not decide where you sign in; if they are right, copy them into the configuration file, under `auth.{name}`: {{ {} }}",
        copied.join(", ")
    )
}
