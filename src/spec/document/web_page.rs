//! Recognition of web pages in place of documents, and their links to documents.

use http::HeaderValue;
use url::Url;

use crate::spec::links::{has_relation, link_targets};
use crate::text::is_word_of;

/// More of a page is not read.
pub(crate) const MAX_PAGE_BYTES: usize = 1 << 20;

/// The relation of a link to the description of an API (RFC 8631 section 4).
const DESCRIPTION: &str = "service-desc";

/// Returns true if bytes are a web page.
pub(crate) fn is_web_page(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    // Neither JSON nor YAML of an OpenAPI document begins with `<`; a page may begin with any
    // element or comment.
    bytes.trim_ascii_start().starts_with(b"<")
}

/// Returns true if a text that begins with `<` is HTML.
pub(crate) fn is_html(text: &str) -> bool {
    const MAX_HEAD_BYTES: usize = 1024;
    let head = text
        .get(..text.floor_char_boundary(MAX_HEAD_BYTES))
        .unwrap_or(text)
        .to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"]
        .iter()
        .any(|tag| head.contains(tag))
}

/// Returns true if an address is that of a sign-in page.
pub(crate) fn is_login_address(url: &Url) -> bool {
    const WORDS: &str =
        "login signin sso auth oauth oauth2 authorize saml saml2 accounts idp openidconnect";
    let path = url.path().split(['/', '.']).chain(url.path().split('/'));
    path.chain(url.host_str().unwrap_or_default().split('.').take(1))
        .any(|part| is_word_of(WORDS, &part.to_ascii_lowercase().replace(['-', '_'], "")))
}

/// Returns true if a page asks for a password.
pub(crate) fn asks_for_password(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    elements(&text, "<input").any(|input| attribute(input, "type").as_deref() == Some("password"))
}

/// The attributes of the elements that begin so, as text.
fn elements<'t>(text: &'t str, tag: &'t str) -> impl Iterator<Item = &'t str> {
    let after_tags = text.split(tag).skip(1);
    after_tags.filter_map(|rest| rest.split('>').next())
}

/// The targets of `<link rel="service-desc" href="…">` in a page.
pub(crate) fn page_links(bytes: &[u8], address: &Url) -> Vec<Url> {
    let text = String::from_utf8_lossy(bytes);
    let target = |link| {
        let is_description = has_relation(&attribute(link, "rel")?, DESCRIPTION);
        let href = attribute(link, "href").filter(|_| is_description)?;
        address.join(&href).ok()
    };
    elements(&text, "<link").filter_map(target).collect()
}

fn attribute(element: &str, name: &str) -> Option<String> {
    let (_, rest) = element.split_once(&format!("{name}="))?;
    let quote = rest.chars().next()?;
    let value = if quote == '"' || quote == '\'' {
        rest.get(1..)?.split(quote).next()?
    } else {
        rest.split_whitespace().next()?
    };
    Some(value.replace("&amp;", "&"))
}

/// The targets of `Link` headers with the relation `service-desc`.
pub(crate) fn header_links(values: &[HeaderValue], address: &Url) -> Vec<Url> {
    let targets = link_targets(values.iter(), DESCRIPTION);
    targets
        .filter_map(|target| address.join(target).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_descriptions_are_read_as_rfc_8288_writes_them() {
        let address = Url::parse("https://h.example/docs/").unwrap();
        for (value, expected) in [
            ("</a>; rel=service-desc", vec!["https://h.example/a"]),
            (
                "<a?x=1,2>; title=\"a, b\"; REL = \"help Service-Desc\", </b>;rel=\"service-desc\"",
                vec!["https://h.example/docs/a?x=1,2", "https://h.example/b"],
            ),
            ("</a>; rel=\"x-service-desc-y\"", vec![]),
            ("</a>; rel=self, </b>", vec![]),
            ("service-desc", vec![]),
        ] {
            let found = header_links(&[HeaderValue::from_str(value).unwrap()], &address);
            assert_eq!(
                found.iter().map(Url::as_str).collect::<Vec<_>>(),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn links_of_a_page_need_the_relation_and_an_address() {
        let address = Url::parse("https://h.example/docs/").unwrap();
        let page =
            b"<link rel='stylesheet' href='x.css'><link href=\"a?b=1&amp;c=2\" rel=\"alternate service-desc\"><link rel=service-desc>";
        let found = page_links(page, &address);
        assert_eq!(
            found.iter().map(Url::as_str).collect::<Vec<_>>(),
            ["https://h.example/docs/a?b=1&c=2"]
        );
    }
}
