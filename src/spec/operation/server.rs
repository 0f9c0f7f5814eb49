//! Servers: which URL an operation's path is appended to.

use std::collections::BTreeMap;

use url::Url;

use super::server_template::{ServerError, ServerTemplate};
use super::swagger2;
use crate::spec::document::{Document, Version};
use crate::spec::node::Node;

/// The operator's choice of a server and of the values of its variables.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The chosen one of the document's own servers; the first if none is chosen.
    pub pick: Option<Pick>,
    /// Values of the variables in a server's URL, stronger than their defaults.
    pub variables: BTreeMap<String, String>,
}

/// A server of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// Position in the list, from 1.
    Number(usize),
    /// URL as the document writes it, with its variables.
    Url(String),
}

/// The base URL of the document's own servers: the one that the operator chose, else the first.
///
/// # Errors
/// [`ServerError`], each with what to do about it.
pub(crate) fn root_url(
    servers: &[ServerTemplate],
    document_url: Option<&Url>,
    choice: &Choice,
) -> Result<Url, ServerError> {
    let (picked, asked) = match &choice.pick {
        None => return resolve_base_url(servers, document_url, choice),
        Some(Pick::Number(number)) => {
            let picked = servers.get(number.saturating_sub(1));
            (picked, format!("number {number}"))
        }
        Some(Pick::Url(url)) => {
            let mut named = servers.iter();
            let picked = named.find(|server| server.url.is_some() && server.shown() == url);
            (picked, format!("`{url}`"))
        }
    };
    let Some(picked) = picked else {
        let known = servers.iter().map(|server| format!("`{}`", server.shown()));
        let known = match known.collect::<Vec<_>>() {
            none if none.is_empty() => "none".into(),
            known => known.join(", "),
        };
        return Err(ServerError::new(format!(
            "the document has no server {asked}; it has {known}"
        )));
    };
    resolve_base_url(std::slice::from_ref(picked), document_url, choice)
}

/// Returns the base URL of the first of the given `servers` (OAS 3 Server Object) that is reached
/// by HTTP, or of the document's own location (`/`) if the list is empty and the document came by
/// HTTP.
///
/// # Errors
/// [`ServerError`], each with what to do about it.
pub(crate) fn resolve_base_url(
    servers: &[ServerTemplate],
    document_url: Option<&Url>,
    choice: &Choice,
) -> Result<Url, ServerError> {
    let text = match servers
        .iter()
        .find(|server| !has_other_scheme(server, choice))
        .or(servers.first())
    {
        None => String::new(),
        Some(server) if server.url.is_none() => return Err(no_server()),
        Some(server) => server.expand(&choice.variables)?,
    };
    let own = document_url.filter(|url| is_of_http(url));
    if text.trim().is_empty() {
        // The origin that the document came from. OAS: a server that is not named is `/`, relative
        // to the document (RFC 3986 section 5.2); an empty reference means the same here, because
        // the document itself is not what requests go to.
        let origin = own.and_then(|url| url.join("/").ok());
        return origin.ok_or_else(no_server).and_then(usable);
    }
    let parsed = match (Url::parse(&text), own) {
        (Err(url::ParseError::RelativeUrlWithoutBase), Some(own)) => own.join(&text),
        (Err(url::ParseError::RelativeUrlWithoutBase), None) => {
            return Err(ServerError::new(format!(
                "the server `{text}` is relative and the document came from no URL; add --base-url https://…"
            )));
        }
        (parsed, _) => parsed,
    };
    let parsed = parsed.map_err(|error| {
        // What does not parse may still hold a password before an `@`.
        let shown = text.rsplit_once('@').map_or(&*text, |(_, host)| host);
        ServerError::unusable(shown, &error.to_string())
    });
    parsed.and_then(usable)
}

fn no_server() -> ServerError {
    ServerError::new("the document names no usable server; add --base-url https://…".into())
}

fn is_of_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Returns true if the server is reached by another protocol than HTTP (`wss:`), in which case the
/// next one is tried.
fn has_other_scheme(server: &ServerTemplate, choice: &Choice) -> bool {
    let url = server
        .expand(&choice.variables)
        .ok()
        .and_then(|text| Url::parse(&text).ok());
    url.is_some_and(|url| !is_of_http(&url))
}

/// Reads a `servers` array. An entry without a URL is kept, so that it is reported instead of
/// skipped.
pub(crate) fn servers(node: Option<Node<'_>>) -> Vec<ServerTemplate> {
    let servers = node.and_then(Node::array).unwrap_or_default().into_iter();
    servers.map(ServerTemplate::read).collect()
}

/// The servers of the document as a whole; of 2.0, made from `schemes`, `host` and `basePath`.
pub(crate) fn declared_servers(document: &Document) -> Vec<ServerTemplate> {
    if document.version() != Version::V2_0 {
        return servers(document.member("servers"));
    }
    vec![swagger2::server(document)]
}

/// A base URL must be absolute http(s), name a host, and carry neither user, query nor fragment.
///
/// # Errors
/// A description of the fault.
pub(crate) fn usable(mut url: Url) -> Result<Url, ServerError> {
    let has_user = !url.username().is_empty() || url.password().is_some();
    // Never let a password into a message.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let reason = if !is_of_http(&url) {
        "its scheme is not http or https"
    } else if url.host_str().is_none_or(str::is_empty) {
        "it names no host"
    } else if has_user {
        "it carries a user name or password; give credentials with --header or --header-env"
    } else if url.query().is_some() || url.fragment().is_some() {
        "it carries a query or a fragment"
    } else {
        return Ok(url);
    };
    url.set_query(None);
    url.set_fragment(None);
    Err(ServerError::unusable(url.as_str(), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, document: Option<&str>) -> Result<String, String> {
        let document = document.map(|url| Url::parse(url).unwrap());
        resolve_base_url(
            &servers(Some(Node::new(json))),
            document.as_ref(),
            &Choice::default(),
        )
        .map(|url| url.to_string())
        .map_err(|error| error.to_string())
    }

    #[test]
    fn servers_become_base_urls() {
        for (servers, document, expected) in [
            (
                r#"[{"url":"https://api.example/v1"}]"#,
                None,
                "https://api.example/v1",
            ),
            (
                r#"[{"url":"/v1"}]"#,
                Some("https://h.example/docs/openapi.json"),
                "https://h.example/v1",
            ),
            (
                r#"[{"url":"v1/"}]"#,
                Some("https://h.example/docs/openapi.json"),
                "https://h.example/docs/v1/",
            ),
            (
                "[]",
                Some("https://h.example/docs/openapi.json"),
                "https://h.example/",
            ),
            (
                r#"[{"url":""}]"#,
                Some("https://h.example/docs/openapi.json"),
                "https://h.example/",
            ),
            (
                r#"[{"url":"https://h.example{stage}","variables":{"stage":{"default":""}}}]"#,
                None,
                "https://h.example/",
            ),
            (
                r#"[{"url":"{base}","variables":{"base":{"default":""}}}]"#,
                Some("https://h.example/docs/openapi.json"),
                "https://h.example/",
            ),
            (
                r#"[{"url":"wss://h.example/stream"},{"url":"https://h.example/v1"}]"#,
                None,
                "https://h.example/v1",
            ),
            (
                r#"[{"url":"https://{env}.example:{port}/","variables":{"env":{"default":"prod","enum":["prod","dev"]},"port":{"default":"8443"}}}]"#,
                None,
                "https://prod.example:8443/",
            ),
        ] {
            assert_eq!(
                read(servers, document).as_deref(),
                Ok(expected),
                "{servers}"
            );
        }
    }

    #[test]
    fn the_server_of_2_0_is_what_its_author_meant() {
        for (members, expected) in [
            (
                r#""host":"h.example","basePath":"v1""#,
                "https://h.example/v1",
            ),
            (
                r#""host":"http://h.example/","basePath":"/v1""#,
                "http://h.example/v1",
            ),
            (
                r#""host":"http://h.example","schemes":["https","http"]"#,
                "https://h.example/",
            ),
            (
                r#""host":"h.example/api","schemes":["http"]"#,
                "http://h.example/api",
            ),
            (r#""basePath":"v2""#, "https://doc.example/v2"),
        ] {
            let text = format!(
                r#"{{"swagger":"2.0",{members},"paths":{{"/a":{{"get":{{"schemes":["http"]}},"put":{{}}}}}}}}"#
            );
            let own = Url::parse("https://doc.example/x/swagger.json").unwrap();
            let document = Document::parse(
                text.into_bytes(),
                Some(own.clone()).filter(|_| !members.contains("host")),
            )
            .unwrap();
            let url = resolve_base_url(
                &declared_servers(&document),
                document.url.as_ref(),
                &Choice::default(),
            )
            .unwrap();
            assert_eq!(url.as_str(), expected, "{members}");
            let (operations, _) = crate::spec::operations(&document);
            let of = |at: usize| {
                operations[at]
                    .servers
                    .first()
                    .map(|server| server.shown().to_owned())
            };
            assert!(of(1).is_none(), "{members}");
            let differs = members.contains("host") && !url.as_str().starts_with("http:");
            assert_eq!(
                of(0).is_some_and(|url| url.starts_with("http://")),
                differs,
                "{members}"
            );
        }
    }

    #[test]
    fn the_operator_chooses_a_server_and_its_variables() {
        let json = r#"[{"url":"https://a.example"},{"url":"https://{env}.b.example","variables":{"env":{"default":"prod","enum":["prod","dev"]}}}]"#;
        let servers = servers(Some(Node::new(json)));
        let url = |pick, value: Option<&str>| {
            let variables = value
                .map(|value| ("env".to_owned(), value.to_owned()))
                .into_iter()
                .collect();
            root_url(&servers, None, &Choice { pick, variables })
                .map_or_else(|error| error.to_string(), |url| url.to_string())
        };
        assert_eq!(url(None, None), "https://a.example/");
        assert_eq!(url(Some(Pick::Number(2)), None), "https://prod.b.example/");
        assert_eq!(
            url(
                Some(Pick::Url("https://{env}.b.example".into())),
                Some("dev")
            ),
            "https://dev.b.example/"
        );
        assert!(url(Some(Pick::Number(2)), Some("evil.example/")).contains("one of prod, dev"));
        assert!(
            url(Some(Pick::Number(3)), None)
                .contains("no server number 3; it has `https://a.example`")
        );
    }

    #[test]
    fn unusable_servers_say_what_to_do_and_never_show_a_password() {
        for (servers, expected) in [
            ("[]", "--base-url"),
            (r#"[{"url":"/v1"}]"#, "relative"),
            (r#"[{"url":"https://{env}.example"}]"#, "`{env}`"),
            (r#"[{"url":"ftp://h.example"}]"#, "not http or https"),
            (
                r#"[{"url":"wss://h.example"},{"url":"ftp://h.example"}]"#,
                "`wss://h.example/`",
            ),
            (r#"[{"url":""}]"#, "--base-url"),
            ("[{}]", "--base-url"),
            (
                r#"[{"url":"https://{env}.example","variables":{"env":{}}}]"#,
                "`{env}`",
            ),
            (
                r#"[{"url":"https://{env}.example"},{"url":"https://h.example"}]"#,
                "`{env}`",
            ),
            (
                r#"[{"url":"https://user:secret@h.example"}]"#,
                "user name or password",
            ),
            (
                r#"[{"url":"https://user:secret@h.example:99999"}]"#,
                "not a usable base URL",
            ),
            (
                r#"[{"url":"https://h.example/?a=1"}]"#,
                "query or a fragment",
            ),
        ] {
            let error = read(servers, None).unwrap_err();
            assert!(
                error.contains(expected) && !error.contains("secret"),
                "{servers}: {error}"
            );
        }
    }
}
