//! Check of a URL that a reply names. A reply must not lead to another host, or to what the
//! operator closed.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::proxy::request::closed_paths::{AskedPath, PathGuard};
use crate::proxy::request::path_readings::fully_decoded;
use crate::proxy::request::target::BaseUrl;
use crate::redact::secrets::MARK;
use crate::spec::PathTemplate;
use crate::spec::operation::template::has_dot_segment;

/// The longest URL, in bytes.
const MAX_BYTES: usize = 4096;
/// The longest path of one, in bytes.
const MAX_PATH_BYTES: usize = 2048;

/// URL of the API that a reply names, which was checked.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StatusUrl(Url);

/// Returns path and query of a URL.
pub(crate) fn path_and_query(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Reason for which a URL of a reply is not requested, as the end of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UrlRefusal {
    Malformed,
    TooLong,
    Elsewhere,
    BesideBase,
    Climbs,
    Closed,
    HiddenEnd,
    Redacted,
}

impl UrlRefusal {
    /// Describes it for the model, without the URL.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Malformed => {
                "it is not a plain URL: it has a user, a fragment, a backslash or a control character, or cannot be read"
            }
            Self::TooLong => "it has more than 4096 bytes, or its path more than 2048",
            Self::Elsewhere => "it leads to another scheme, host or port than the API has",
            Self::BesideBase => "it leads out of the base path of the API",
            Self::HiddenEnd => {
                "its path has an encoded question mark, number sign or control character, or a space at the end of a segment"
            }
            Self::Redacted => "it holds a secret of this server",
            Self::Climbs => "it has a dot segment",
            Self::Closed => "it is the path of an operation that is not served to you",
        }
    }
}

impl StatusUrl {
    /// Reads a URL or a relative reference (RFC 3986 section 4.2) of the reply to a request.
    /// `named` is the template of the operation that a rule names for it.
    ///
    /// # Errors
    /// [`UrlRefusal`]; nothing may be sent then.
    pub(crate) fn read(
        text: &str,
        request: &Url,
        base: &BaseUrl,
        named: Option<&PathTemplate>,
        has_own_base: bool,
        guard: Option<PathGuard<'_>>,
    ) -> Result<Self, UrlRefusal> {
        if text.len() > MAX_BYTES {
            return Err(UrlRefusal::TooLong);
        }
        // URL parsers drop white space and control characters, and read a backslash as a slash.
        let is_odd = |character: char| {
            character.is_control() || character.is_whitespace() || matches!(character, '\\' | '#')
        };
        if fully_decoded(text).contains(MARK) {
            return Err(UrlRefusal::Redacted);
        }
        if text.is_empty() || text.contains(is_odd) {
            return Err(UrlRefusal::Malformed);
        }
        if has_dot_segment(text.split('?').next().unwrap_or_default()) {
            return Err(UrlRefusal::Climbs);
        }
        let url = request.join(text).map_err(|_| UrlRefusal::Malformed)?;
        let own = base.url();
        if url.scheme() != own.scheme()
            || url.host() != own.host()
            || url.port_or_known_default() != own.port_or_known_default()
        {
            return Err(UrlRefusal::Elsewhere);
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(UrlRefusal::Malformed);
        }
        if url.as_str().len() > MAX_BYTES || url.path().len() > MAX_PATH_BYTES {
            return Err(UrlRefusal::TooLong);
        }
        if has_dot_segment(url.path()) {
            return Err(UrlRefusal::Climbs);
        }
        let root = own.path().trim_end_matches('/');
        let below = url.path().strip_prefix(root);
        below
            .filter(|below| below.starts_with('/'))
            .ok_or(UrlRefusal::BesideBase)?;
        if has_hidden_end(url.path()) {
            return Err(UrlRefusal::HiddenEnd);
        }
        let asked = AskedPath {
            full: url.path(),
            base: root.len(),
            has_own_base,
            in_value: None,
        };
        if guard.is_none_or(|guard| guard.refuses_url(&asked, named)) {
            return Err(UrlRefusal::Closed);
        }
        Ok(Self(url))
    }

    /// Returns the URL.
    pub(crate) fn into_url(self) -> Url {
        self.0
    }
}

/// Returns true if servers may read a path as a shorter one: up to a character that ends paths or
/// texts, or without spaces.
fn has_hidden_end(path: &str) -> bool {
    let path = fully_decoded(path);
    let mut segments = path.split(['/', '\\', ';']);
    path.contains(|character: char| character.is_control() || matches!(character, '?' | '#'))
        || segments.any(|segment| segment.trim() != segment)
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::caller::client_grant::ShownTools;
    use crate::proxy::request::closed_paths::{ClosedPaths, DeclaredOperation};

    fn read(base: &str, text: &str) -> Result<String, UrlRefusal> {
        let base = BaseUrl::new(Url::parse(base).unwrap());
        let request = base.url().join("exports").unwrap();
        let template = PathTemplate::parse("/secret").unwrap();
        let secret = DeclaredOperation {
            method: Method::GET,
            template: &template,
            slashes: Vec::new(),
            has_own_base: false,
            tool: None,
        };
        let guard = PathGuard {
            reads_only: false,
            paths: &ClosedPaths::new(std::iter::once(secret)),
            shown: &ShownTools::default(),
        };
        StatusUrl::read(text, &request, &base, None, false, Some(guard))
            .map(|url| path_and_query(&url.into_url()))
    }

    #[test]
    fn a_url_of_the_api_below_its_base_path_is_taken() {
        for (base, text, expected) in [
            (
                "https://h.example/",
                "https://h.example/status/1",
                "/status/1",
            ),
            (
                "https://h.example/",
                "https://H.EXAMPLE:443/status/1?a=b#".trim_end_matches('#'),
                "/status/1?a=b",
            ),
            ("https://h.example/", "//h.example/status/1", "/status/1"),
            (
                "https://h.example/",
                "/status/1?next=../x",
                "/status/1?next=../x",
            ),
            ("https://h.example/v1/", "status/1", "/v1/status/1"),
            ("https://h.example/v1/", "?id=1", "/v1/exports?id=1"),
            (
                "http://127.0.0.1:8080/v1",
                "http://127.0.0.1:8080/v1/s",
                "/v1/s",
            ),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1/s", "/v1/s"),
        ] {
            assert_eq!(read(base, text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn p1_a_url_that_leads_elsewhere_climbs_or_is_closed_is_refused() {
        use UrlRefusal::{
            BesideBase, Climbs, Closed, Elsewhere, HiddenEnd, Malformed, Redacted, TooLong,
        };
        let long = format!("/v1/{}", "a".repeat(4096));
        for (text, expected) in [
            ("https://evil.example/v1/s", Elsewhere),
            ("//evil.example/v1/s", Elsewhere),
            ("http://h.example/v1/s", Elsewhere),
            ("https://h.example:8443/v1/s", Elsewhere),
            ("https://h.example.evil.example/v1/s", Elsewhere),
            ("https://h.example@evil.example/v1/s", Elsewhere),
            ("file:///v1/s", Elsewhere),
            ("data:text/plain,x", Elsewhere),
            ("javascript:alert(1)", Elsewhere),
            ("https://169.254.169.254/v1/s", Elsewhere),
            ("https://user@h.example/v1/s", Malformed),
            ("https://user:password@h.example/v1/s", Malformed),
            ("/v1/s#fragment", Malformed),
            ("/v1/s\\..\\x", Malformed),
            ("\\\\evil.example\\v1", Malformed),
            ("/v1/s\tx", Malformed),
            ("/v1/s\r\nHost: evil.example", Malformed),
            (" /v1/s", Malformed),
            ("", Malformed),
            ("https://", Malformed),
            ("https://[::1/v1/s", Malformed),
            ("/v1/../admin", Climbs),
            ("../admin", Climbs),
            ("/v1/%2e%2e/admin", Climbs),
            ("/v1/%252e%252e/admin", Climbs),
            ("/v1/..;x/admin", Climbs),
            ("/v1/a%2f..%2fadmin", Climbs),
            ("/v1/a%5c..%5cadmin", Climbs),
            ("/v1/./s", Climbs),
            ("/admin", BesideBase),
            ("/v1", BesideBase),
            ("/v10/s", BesideBase),
            ("/v1%2Fs", BesideBase),
            ("//h.example", BesideBase),
            ("/v1/secret", Closed),
            ("/v1/keys%00", HiddenEnd),
            ("/v1/keys%09", HiddenEnd),
            ("/v1/keys%20", HiddenEnd),
            ("/v1/keys%2520/7", HiddenEnd),
            ("/v1/keys%C2%A0", HiddenEnd),
            ("/v1/keys%20%2F7", HiddenEnd),
            ("/v1/keys%3Fx", HiddenEnd),
            ("/v1/keys%2523x", HiddenEnd),
            ("/v1/keys?token=[redacted]", Redacted),
            ("/v1/keys/%5Bredacted%255D", Redacted),
            (&long, TooLong),
        ] {
            assert_eq!(read("https://h.example/v1/", text), Err(expected), "{text}");
        }
    }
}
