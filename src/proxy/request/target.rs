//! The URL of a call: the base URL of its operation and encoded pieces, assembled and then checked.
//!
//! Path and query are set in a copy of the base URL, and compared with the pieces afterwards: every
//! byte must be what was assembled, for all contents of the arguments and the document. Scheme,
//! host and port are not compared, because nothing sets them; a test compares the whole URL.

use std::sync::Arc;

use url::{Origin, Url};

use crate::call_error::CallError;
use crate::credentials::scheme::ApiLocation;
use crate::outbound::Clients;
use crate::spec::operation::server;
use crate::spec::operation::server::Choice;
use crate::spec::operation::server_template::ServerError;
use crate::spec::operation::template::{TemplatePart, has_dot_segment};
use crate::spec::{Document, Operation, PathTemplate};

/// The base that an operation's path is appended to: scheme, host, port and base path of a server,
/// checked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    url: Url,
    /// The base path, without a slash at the end.
    path: Box<str>,
    /// True if the URL has no user, query and fragment.
    is_bare: bool,
}

/// The encoded value of one path variable, under the variable's name, and its decoded text.
#[derive(Debug)]
pub struct PathValue {
    /// The variable of the template.
    pub name: String,
    /// Text for the URL.
    pub encoded: String,
    /// The values as they were given, for the check on dot segments.
    pub plain: Vec<String>,
    /// Number of its segments; more than one only if the operator allows slashes.
    pub segments: usize,
    /// True if the value may be empty: the operator allows slashes in it and a GET reads it, such
    /// as the root of a tree of files.
    pub may_be_empty: bool,
}

impl BaseUrl {
    /// A base from a URL that [`crate::spec::operation::server::usable`] has accepted.
    #[must_use]
    pub fn new(url: Url) -> Self {
        let path = url.path().trim_end_matches('/').into();
        let has_user = !url.username().is_empty() || url.password().is_some();
        let is_bare = !has_user && url.query().is_none() && url.fragment().is_none();
        Self { url, path, is_bare }
    }

    /// The URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Fills the template, appends the query, and asserts that the result is what it must be.
    ///
    /// # Errors
    /// [`CallError::Target`]; nothing must be sent then.
    pub fn target(
        &self,
        template: &PathTemplate,
        values: &[PathValue],
        query: &[(String, String)],
    ) -> Result<Url, CallError> {
        let mut text = String::with_capacity(self.path.len() + 64);
        text.push_str(&self.path);
        let mut segments = count_slashes(&self.path) + template.segments.len();
        for segment in &template.segments {
            text.push('/');
            let start = text.len();
            for part in segment {
                match part {
                    TemplatePart::Literal(literal) => text.push_str(literal),
                    TemplatePart::Variable(name) => {
                        let value = variable(name, values)?;
                        text.push_str(&value.encoded);
                        segments += value.segments - 1;
                    }
                }
            }
            // What was harmless piece by piece may still read as a dot segment together.
            if text
                .get(start..)
                .is_some_and(|segment| segment.contains('.') || segment.contains("%2"))
                && text.get(start..).is_some_and(has_dot_segment)
            {
                return Err(dot_segment(&segment_name(segment)));
            }
        }
        let path_end = text.len();
        push_query(&mut text, template.query.as_deref(), query);
        let path = text
            .get(..path_end)
            .filter(|path| !path.is_empty())
            .unwrap_or("/");
        let query = text.get(path_end + 1..).filter(|_| text.len() > path_end);
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(query);
        let same_segments = count_slashes(url.path()) == segments;
        if self.is_bare && url.path() == path && url.query() == query && same_segments {
            Ok(url)
        } else {
            // A bug, or an input that the encoder does not cover.
            Err(CallError::Target(
                "the request was not sent because its URL would not be the one that was meant"
                    .into(),
            ))
        }
    }
}

fn count_slashes(path: &str) -> usize {
    memchr::memchr_iter(b'/', path.as_bytes()).count()
}

/// The error for a path value that a server could read as `.` or `..`.
fn dot_segment(name: &str) -> CallError {
    CallError::Target(format!(
        "`{name}` must not be, or contain, `.` or `..` as a path segment, however it is encoded"
    ))
}

fn variable<'v>(name: &str, values: &'v [PathValue]) -> Result<&'v PathValue, CallError> {
    let refused = |why: &str| CallError::Target(format!("`{name}` {why}: it is part of the path"));
    let value = values
        .iter()
        .find(|value| value.name == name)
        .ok_or_else(|| refused("is missing"))?;
    let is_empty = value.encoded.is_empty() || value.plain.iter().all(String::is_empty);
    // `DELETE /items/` is not `DELETE /items/{id}`.
    if is_empty && !value.may_be_empty {
        return Err(refused("must not be empty"));
    }
    // Several values are one segment together, which is judged as a whole.
    if let [plain] = &value.plain[..]
        && has_dot_segment(plain)
    {
        return Err(dot_segment(name));
    }
    let has_empty_segment = |text: &String| text.split('/').any(str::is_empty);
    if value.segments > 1
        && std::iter::once(&value.encoded)
            .chain(&value.plain)
            .any(has_empty_segment)
    {
        return Err(refused(
            "must not begin or end with a slash, or have an empty segment",
        ));
    }
    Ok(value)
}

fn segment_name(segment: &[TemplatePart]) -> String {
    let names = segment.iter().filter_map(|part| match part {
        TemplatePart::Variable(name) => Some(name.as_str()),
        TemplatePart::Literal(_) => None,
    });
    names.collect::<Vec<_>>().join("`, `")
}

fn push_query(text: &mut String, own: Option<&str>, query: &[(String, String)]) {
    let mut separator = '?';
    if let Some(own) = own {
        text.push(separator);
        text.push_str(own);
        separator = '&';
    }
    for (key, value) in query {
        text.push(separator);
        if !key.is_empty() {
            text.push_str(key);
            text.push('=');
        }
        text.push_str(value);
        separator = '&';
    }
}

/// Destination of requests.
#[derive(Debug, Clone, Default)]
pub enum Destination {
    /// The servers that the document names, as the operator chose.
    Declared(Choice),
    /// This URL, in place of the document's servers.
    Fixed(Url),
    /// No requests: the tools are only listed.
    #[default]
    Nowhere,
}

/// The base URLs of an API's operations; almost all share one.
pub(crate) struct BaseUrls<'a> {
    document: &'a Document,
    destination: &'a Destination,
    common: Result<Option<Arc<BaseUrl>>, ServerError>,
    /// Origins to which credentials may be sent; the API's own is the first.
    origins: Vec<Origin>,
}

impl<'a> BaseUrls<'a> {
    /// The base URLs; credentials may go to the origins in `more` besides the API's own.
    pub(crate) fn new(
        document: &'a Document,
        destination: &'a Destination,
        more: Vec<Origin>,
    ) -> Self {
        let common = match destination {
            Destination::Fixed(url) => Ok(Some(Arc::new(BaseUrl::new(url.clone())))),
            Destination::Nowhere => Ok(None),
            Destination::Declared(choice) => {
                let servers = server::declared_servers(document);
                server::root_url(&servers, document.url.as_ref(), choice)
                    .map(|url| Some(Arc::new(BaseUrl::new(url))))
            }
        };
        let own = common.as_ref().ok().and_then(Option::as_deref);
        Self {
            origins: own
                .map(|base| base.url().origin())
                .into_iter()
                .chain(more)
                .collect(),
            document,
            destination,
            common,
        }
    }

    /// Returns the base URL of an operation; `None` if no requests are sent.
    ///
    /// # Errors
    /// An error if the server of the operation is not usable.
    pub(crate) fn of(&self, operation: &Operation) -> Result<Option<Arc<BaseUrl>>, ServerError> {
        if let Destination::Declared(choice) = self.destination
            && !operation.servers.is_empty()
        {
            let document = self.document.url.as_ref();
            let url = server::resolve_base_url(&operation.servers, document, choice)?;
            return Ok(Some(Arc::new(BaseUrl::new(url))));
        }
        self.common.clone()
    }

    /// Returns the location of the API, for requests for tokens.
    pub(crate) fn site(&self, clients: Clients) -> ApiLocation {
        let common = self.common.as_ref().ok().and_then(Option::as_deref);
        ApiLocation {
            base: common.map(|base| base.url().clone()),
            document: self.document.url.clone(),
            clients,
        }
    }

    /// Returns true if the base has the API's own origin; called after
    /// [`BaseUrls::leads_elsewhere`].
    pub(crate) fn is_own(&self, base: &BaseUrl) -> bool {
        self.origins.first() == Some(&base.url().origin())
    }

    /// Returns true if credentials may not be sent to the origin of the base. If the document has
    /// no server for all operations, that of the first one is the API's own.
    pub(crate) fn leads_elsewhere(&mut self, base: Option<&BaseUrl>) -> bool {
        let Some(base) = base else { return false };
        if self.common.is_err() {
            self.common = Ok(None);
            self.origins.insert(0, base.url().origin());
        }
        !self.origins.contains(&base.url().origin())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outbound::request::{Keep, percent_encode, percent_encode_segments};

    fn target(
        base: &str,
        path: &str,
        value: &str,
        query: &[(&str, &str)],
    ) -> Result<String, String> {
        kept(base, path, value, query, Keep::Unreserved)
    }

    fn kept(
        base: &str,
        path: &str,
        value: &str,
        query: &[(&str, &str)],
        keep: Keep,
    ) -> Result<String, String> {
        let base = BaseUrl::new(Url::parse(base).unwrap());
        let template = PathTemplate::parse(path).unwrap();
        let values = [PathValue {
            name: "x".into(),
            encoded: percent_encode(value, keep),
            plain: vec![value.into()],
            segments: 1,
            may_be_empty: false,
        }];
        let query: Vec<_> = query
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        base.target(&template, &values, &query)
            .map(|url| url.to_string())
            .map_err(|error| error.to_string())
    }

    const DOT_SEGMENT: &str =
        "`x` must not be, or contain, `.` or `..` as a path segment, however it is encoded";

    #[test]
    fn base_paths_are_kept_with_and_without_a_slash_at_the_end() {
        for (base, path, expected) in [
            ("https://h.example", "/pets", "https://h.example/pets"),
            ("https://h.example/", "/", "https://h.example/"),
            (
                "https://h.example/api/v1",
                "/pets/{x}",
                "https://h.example/api/v1/pets/a%2Fb",
            ),
            (
                "https://h.example/api/v1/",
                "/pets/",
                "https://h.example/api/v1/pets/",
            ),
            (
                "http://h.example:8080/a%20b",
                "/{x}/c",
                "http://h.example:8080/a%20b/a%2Fb/c",
            ),
            (
                "https://h.example/v1",
                "/a?b=c",
                "https://h.example/v1/a?b=c",
            ),
            // What would be a host in a relative reference is a path behind a base URL.
            (
                "https://h.example",
                "//evil.example/{x}",
                "https://h.example//evil.example/a%2Fb",
            ),
            (
                "https://h.example/v1/",
                "//openapi",
                "https://h.example/v1//openapi",
            ),
        ] {
            assert_eq!(
                target(base, path, "a/b", &[]).as_deref(),
                Ok(expected),
                "{base} {path}"
            );
        }
        assert_eq!(
            target("https://h.example", "/a?b=c", "x", &[("d", "e"), ("f", "")]).unwrap(),
            "https://h.example/a?b=c&d=e&f="
        );
    }

    /// The finished URL as one text, parsed from its beginning: what [`BaseUrl::target`] must come
    /// to.
    fn parsed_whole(base: &str, path: &str, query: Option<&str>) -> Option<String> {
        let text = format!(
            "{}{path}{}",
            base.trim_end_matches('/'),
            query.map(|query| format!("?{query}")).unwrap_or_default()
        );
        let (url, base) = (Url::parse(&text).ok()?, Url::parse(base).unwrap());
        let meant = format!("{}{path}", base.path().trim_end_matches('/'));
        let is_meant = url.origin() == base.origin() && url.path() == meant && url.query() == query;
        (is_meant
            && url.username().is_empty()
            && url.password().is_none()
            && url.fragment().is_none())
        .then(|| url.into())
    }

    proptest! {
        #[test]
        fn a_url_is_the_one_that_its_whole_text_is_parsed_to(
            value in prop_oneof!["[a-z0-9~%.]{1,9}", "[a-z%2eEfF?#;:@/\\\\\t\n .\u{e9}\u{0}]{1,9}", ".{1,6}"],
            query in prop_oneof![Just(None), "[a-z=&%'\"#?\t <>é]{0,6}".prop_map(Some), ".{0,4}".prop_map(Some)],
            base in prop_oneof!["https://h\\.example(:8443)?/(a%20b/)?", "http://(127\\.0\\.0\\.1|\\[::1\\])(:80|:81)?/v1"],
        ) {
            // The text is not encoded, like one that a fault of the encoder lets through.
            let values = [PathValue { name: "x".into(), encoded: value.clone(), plain: vec!["plain".into()], segments: 1, may_be_empty: false }];
            let template = PathTemplate::parse("/items/{x}/edit").unwrap();
            let pairs: Vec<_> = query.iter().map(|query| (String::new(), query.clone())).collect();
            let made = BaseUrl::new(Url::parse(&base).unwrap()).target(&template, &values, &pairs);
            let path = format!("/items/{value}/edit");
            let expected = parsed_whole(&base, &path, query.as_deref()).filter(|_| !value.contains('/') && !has_dot_segment(&value));
            prop_assert_eq!(made.ok().map(String::from), expected);
        }
    }

    #[test]
    fn odd_but_legal_values_arrive() {
        for value in [
            "100%",
            "...",
            "a..b",
            "ü 日本",
            "a=b&c",
            "~",
            "%41",
            "a;b",
            "@",
            "x\ty",
            "%2f",
        ] {
            for keep in [Keep::Unreserved, Keep::Segment] {
                let url = kept("https://h.example/v1", "/a/{x}/b", value, &[], keep).unwrap();
                let segment = url
                    .strip_prefix("https://h.example/v1/a/")
                    .unwrap()
                    .strip_suffix("/b")
                    .unwrap();
                let decoded = |text: &str| {
                    percent_encoding::percent_decode_str(text)
                        .decode_utf8()
                        .unwrap()
                        .into_owned()
                };
                // Text that is encoded already stays if reserved characters do.
                let meant = if keep == Keep::Segment {
                    decoded(value)
                } else {
                    value.to_owned()
                };
                assert_eq!(decoded(segment), meant);
            }
        }
    }

    #[test]
    fn values_that_would_climb_or_vanish_are_refused() {
        for value in [
            "..",
            ".",
            "../admin",
            "a/../b",
            "..\\x",
            "%2e%2e",
            "%252e%252E",
            ".%2e",
            ".\t.",
            "..;a=1",
            "a/./b",
            "%2e%2e%2fadmin",
        ] {
            for keep in [Keep::Unreserved, Keep::Segment] {
                assert_eq!(
                    kept("https://h.example/v1", "/a/{x}", value, &[], keep),
                    Err(DOT_SEGMENT.to_owned()),
                    "{value}"
                );
            }
        }
        assert_eq!(
            target("https://h.example", "/a/{x}", "", &[]),
            Err("`x` must not be empty: it is part of the path".to_owned())
        );
        assert_eq!(
            target("https://h.example", "/a/{y}", "v", &[]),
            Err("`y` is missing: it is part of the path".to_owned())
        );
        assert_eq!(
            target("https://h.example", "/a/.{x}", ".", &[]),
            Err(DOT_SEGMENT.to_owned())
        );
    }

    fn spanning(path: &str, value: &str, keep: Keep) -> Result<String, String> {
        let base = BaseUrl::new(Url::parse("https://h.example:8443/base/v1").unwrap());
        let (encoded, segments) = percent_encode_segments(value, keep);
        let value = PathValue {
            name: "x".into(),
            encoded,
            plain: vec![value.into()],
            segments,
            may_be_empty: false,
        };
        let url = base.target(&PathTemplate::parse(path).unwrap(), &[value], &[]);
        let url = url.map_err(|error| error.to_string())?;
        Ok(url.path().to_owned())
    }

    #[test]
    fn a_value_may_span_segments_where_that_is_allowed_and_each_is_judged() {
        for (value, expected) in [
            ("projects/p/topics/t", "projects/p/topics/t"),
            ("one", "one"),
            ("a%2Fb/c\\d", "a%252Fb/c%5Cd"),
            ("a?b/c#d/e;f", "a%3Fb/c%23d/e%3Bf"),
        ] {
            assert_eq!(
                spanning("/n/{x}:get", value, Keep::Unreserved),
                Ok(format!("/base/v1/n/{expected}:get"))
            );
        }
        for value in [
            "a/../b",
            "a/.",
            "./a",
            "a/%2e%2e/b",
            "a/..;x/b",
            "a\\..\\b",
            "a/.\t./b",
        ] {
            let refused = spanning("/n/{x}", value, Keep::Unreserved);
            assert_eq!(refused, Err(DOT_SEGMENT.to_owned()), "{value}");
        }
        for value in ["/a", "a/", "a//b", "/", "//"] {
            let refused = spanning("/n/{x}", value, Keep::Unreserved);
            assert_eq!(
                refused,
                Err("`x` must not begin or end with a slash, or have an empty segment: it is part of the path".to_owned()),
                "{value}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_value_with_slashes_leaves_the_static_segments(
            value in prop_oneof!["[a-z./\\\\%2eEfF?#;:]{1,16}", "([a-c.]{0,3}/){0,4}[a-c.]{0,3}", ".*"], reserved: bool
        ) {
            let keep = if reserved { Keep::Segment } else { Keep::Unreserved };
            if let Ok(path) = spanning("/items/{x}/edit", &value, keep) {
                let inner = path.strip_prefix("/base/v1/items/").and_then(|rest| rest.strip_suffix("/edit"));
                let inner = inner.expect("the static segments stay");
                let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
                let meant = if reserved { decoded(&value) } else { value.as_bytes().to_vec() };
                prop_assert_eq!(decoded(inner), meant);
                prop_assert!(inner.split('/').all(|segment| !segment.is_empty()) && !has_dot_segment(inner));
                prop_assert_eq!(inner.split('/').count(), value.split('/').count());
            }
        }
    }

    proptest! {
        #[test]
        fn no_value_changes_where_a_request_goes(value in ".*", literal in "[a-z]{0,3}", reserved: bool) {
            let path = format!("/items/{literal}{{x}}/edit");
            let keep = if reserved { Keep::Segment } else { Keep::Unreserved };
            if let Ok(url) = kept("https://h.example:8443/base/v1", &path, &value, &[], keep) {
                let url = Url::parse(&url).unwrap();
                prop_assert_eq!((url.scheme(), url.host_str(), url.port()), ("https", Some("h.example"), Some(8443)));
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 5);
                prop_assert_eq!((segments[0], segments[1], segments[2], segments[4]), ("base", "v1", "items", "edit"));
                prop_assert!(url.query().is_none() && url.fragment().is_none());
            }
        }
    }
}
