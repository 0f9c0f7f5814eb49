//! Metadata of an issuer (`OpenID` Connect Discovery 1.0 section 3, RFC 8414 section 2).

use serde_json::Value;
use url::Url;

use super::access_token::items;
use crate::outbound::is_encrypted_or_local;

/// Returns the URLs of an issuer's metadata, in the order of MCP (basic/authorization,
/// "Authorization Server Metadata Discovery").
pub(crate) fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    let at = |place: String| {
        let mut url = issuer.clone();
        url.set_path(&place);
        url
    };
    places.into_iter().map(at).collect()
}

/// Members of the metadata that requests for tokens and logins need. An endpoint that is neither
/// encrypted nor on this machine counts as missing.
#[derive(Clone)]
pub(crate) struct IssuerMetadata {
    /// The issuer, to the letter.
    pub(crate) issuer: String,
    /// The token endpoint.
    pub(crate) token_endpoint: Url,
    /// The authorization endpoint.
    pub(crate) authorization_endpoint: Option<Url>,
    /// The device authorization endpoint (RFC 8628 section 4).
    pub(crate) device_authorization_endpoint: Option<Url>,
    /// The revocation endpoint (RFC 7009).
    pub(crate) revocation_endpoint: Option<Url>,
    /// The scopes that it lists.
    pub(crate) scopes: Vec<String>,
    /// True if each answer of the authorization endpoint names the issuer (RFC 9207 section 3).
    pub(crate) names_itself: bool,
}

impl IssuerMetadata {
    /// Reads the metadata that an issuer has given.
    ///
    /// # Errors
    /// It is another issuer, or names no token endpoint; the whole sentence.
    pub(crate) fn read(text: &[u8], issuer: &Url) -> Result<Self, &'static str> {
        let read: Value = serde_json::from_slice(text).unwrap_or_default();
        let member = |name: &str| read.get(name).and_then(Value::as_str);
        let (Some(own), Some(token_endpoint)) = (member("issuer"), member("token_endpoint")) else {
            return Err("the issuer names no token endpoint");
        };
        if own.trim_end_matches('/') != issuer.as_str().trim_end_matches('/') {
            return Err("what answers at the issuer's address is another issuer");
        }
        let endpoint = |text: &str| {
            let url = Url::parse(text).ok()?;
            (is_encrypted_or_local(&url) || url.origin() == issuer.origin()).then_some(url)
        };
        let endpoint_of = |name: &str| member(name).and_then(endpoint);
        let scopes = items(&read, "scopes_supported").filter_map(Value::as_str);
        Ok(Self {
            issuer: own.to_owned(),
            token_endpoint: endpoint(token_endpoint)
                .ok_or("the issuer's token endpoint is neither encrypted nor on this machine")?,
            authorization_endpoint: endpoint_of("authorization_endpoint"),
            device_authorization_endpoint: endpoint_of("device_authorization_endpoint"),
            revocation_endpoint: endpoint_of("revocation_endpoint"),
            scopes: scopes.map(str::to_owned).collect(),
            names_itself: read.get("authorization_response_iss_parameter_supported")
                == Some(&Value::Bool(true)),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_endpoint_that_is_neither_encrypted_nor_local_counts_as_missing() {
        let issuer = Url::parse("https://login.example/t").unwrap();
        let read = |more: Value| {
            let mut text = json!({"issuer": "https://login.example/t", "token_endpoint": "https://login.example/token"});
            text.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            IssuerMetadata::read(text.to_string().as_bytes(), &issuer)
        };
        let found = read(json!({"authorization_endpoint": "http://login.example/a", "device_authorization_endpoint": "javascript:alert(1)",
            "revocation_endpoint": "https://login.example/r", "scopes_supported": ["a", 7], "authorization_response_iss_parameter_supported": "yes"}))
        .unwrap();
        assert_eq!(
            (
                found.authorization_endpoint,
                found.device_authorization_endpoint
            ),
            (None, None)
        );
        assert_eq!(
            found.revocation_endpoint.unwrap().as_str(),
            "https://login.example/r"
        );
        assert_eq!(
            (found.scopes, found.names_itself),
            (vec!["a".to_owned()], false)
        );
        for wrong in [
            json!({"issuer": "https://evil.example"}),
            json!({"token_endpoint": "http://login.example/token"}),
            json!({"token_endpoint": null}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
