//! The page for people who open the endpoint in a browser: one file, without anything from elsewhere.

use std::sync::{Arc, OnceLock};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::Digest as _;

const PAGE: &str = include_str!("page.html");

/// Placeholder of the settings of a page.
const SETTINGS_MARK: &str = "<!--settings-->";
/// Placeholder of the policy of a page that is a file.
const POLICY_MARK: &str = "<!--policy-->";

/// Content of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageKind {
    /// No page.
    Off,
    /// Instructions to connect, without any text of the document.
    Public,
    /// Also the tools, if clients need no token.
    #[default]
    Full,
}

/// Settings of a page.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// Content of the page.
    pub kind: PageKind,
    /// Entries for clients, with [`ENDPOINT`] in place of the endpoint.
    pub snippets: Vec<PageSnippet>,
}

/// Placeholder of the endpoint in an entry.
pub(crate) const ENDPOINT: &str = "https://endpoint.invalid/mcp";

/// An entry for a client's file.
#[derive(Debug, Clone, Serialize)]
pub struct PageSnippet {
    /// The client.
    pub client: String,
    /// Text to paste.
    pub text: String,
    /// Note about the place to paste it.
    pub note: String,
}

/// A page, ready to be sent.
#[derive(Debug)]
pub(super) struct ServedPage {
    text: String,
    policy: HeaderValue,
}

/// Authentication of clients, for the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignIn {
    None,
    Token,
    Oauth,
}

impl ServedPage {
    /// Makes the page of a server; `None` if it has none. `endpoint` is the address that the operator published.
    pub(super) fn new(options: &PageOptions, sign_in: SignIn, endpoint: Option<&url::Url>) -> Option<Arc<Self>> {
        let kind = match options.kind {
            PageKind::Off => return None,
            PageKind::Public => "public",
            PageKind::Full => "full",
        };
        let settings = json!({
            "page": kind,
            "auth": sign_in != SignIn::None,
            "oauth": sign_in == SignIn::Oauth,
            "endpoint": endpoint.map(url::Url::as_str),
            "snippets": options.snippets,
        });
        let policy = format!("{}; frame-ancestors 'none'", policy());
        Some(Arc::new(Self {
            text: PAGE.replacen(SETTINGS_MARK, &data_block(&settings), 1).replacen(POLICY_MARK, "", 1),
            policy: HeaderValue::from_str(&policy).ok()?,
        }))
    }

    fn answer(&self, method: &Method) -> Response {
        let body = if method == Method::HEAD { String::new() } else { self.text.clone() };
        let mut response = body.into_response();
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::VARY, "accept"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_FRAME_OPTIONS, "DENY"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        if method == Method::HEAD {
            headers.insert(header::CONTENT_LENGTH, self.text.len().into());
        }
        response
    }
}

/// The layer: answers a browser that asks for a page, and passes everything else on.
pub(super) async fn serve_page(State(page): State<Arc<ServedPage>>, request: Request, next: Next) -> Response {
    if asks_for_page(&request) {
        return page.answer(request.method());
    }
    next.run(request).await
}

/// Returns true if a request is for the page.
pub(super) fn asks_for_page<B>(request: &http::Request<B>) -> bool {
    let is_address = matches!(request.uri().path(), "/" | "/mcp");
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    is_address && is_reading && prefers_html(request.headers())
}

/// Returns true if `text/html` is named with a higher weight than the types of MCP (RFC 9110 section 12.5.1). `*/*` does not count.
fn prefers_html(headers: &HeaderMap) -> bool {
    let (mut html, mut json, mut any_application) = (0, None, 0);
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = weight(parts);
        match name.as_str() {
            "text/html" => html = html.max(weight),
            "text/event-stream" if weight > 0 => return false,
            "application/json" => json = json.max(Some(weight)),
            "application/*" => any_application = any_application.max(weight),
            _ => {}
        }
    }
    html > json.unwrap_or(any_application)
}

/// The weight of a media range in thousandths (RFC 9110 section 12.4.2). Without one it is 1; one that is not valid asks for nothing.
fn weight<'p>(mut parameters: impl Iterator<Item = &'p str>) -> u16 {
    let given = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    let Some(given) = given else { return 1000 };
    let (whole, decimals) = given.split_once('.').unwrap_or((given, ""));
    let is_valid = matches!(whole, "0" | "1") && decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths = format!("{whole}{decimals:0<3}").parse().unwrap_or(0);
    if is_valid && thousandths <= 1000 { thousandths } else { 0 }
}

/// The content of the first element of that name.
fn element(name: &str) -> &'static str {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let rest = PAGE.split_once(&start).map_or("", |(_, rest)| rest);
    rest.split_once(&end).map_or("", |(content, _)| content)
}

/// The policy of the page (CSP 3): its own script and style by their hashes, its own origin, nothing else.
fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let hash = |name: &str| base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(element(name).as_bytes()));
        format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
            hash("script"),
            hash("style")
        )
    })
}

/// Writes JSON for a script element. Text of a document cannot end it, because the JSON contains neither an end tag nor a line separator.
fn data_block(settings: &Value) -> String {
    let text = settings
        .to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    format!("<script type=\"application/json\" id=\"settings\">{text}</script>")
}

/// The page as a file with the tools in it. `sources` has the sources of the hints of each tool.
pub(crate) fn page_as_file(title: &str, tools: &Value, sources: &Value) -> String {
    let settings = json!({ "page": "full", "title": title, "tools": tools, "sources": sources });
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">", policy());
    PAGE.replacen(POLICY_MARK, &policy, 1)
        .replacen(SETTINGS_MARK, &data_block(&settings), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_for_a_page_by_name_gets_one() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("text/html", true),
            ("*/*", false),
            ("", false),
            ("application/json, text/html", false),
            ("application/json;q=0.5, text/html", true),
            ("text/html, text/event-stream;q=0.1", false),
            ("application/json, text/event-stream", false),
            ("text/html;q=0", false),
            ("Text/HTML; Q=0.9, application/json; Q=0.8", true),
            ("text/html;Q=0.5, application/json;q=0.8", false),
            ("text/html; q = 0.9, application/json;q=1", false),
            ("text/html;q=0.001, application/json;q=0", true),
            ("text/html;level=1;q=0.4, application/json;q=0.5", false),
            ("text/html, application/*", false),
            ("text/html, application/*;q=0.9, application/json;q=0.1", true),
            ("text/html;q=0.5, application/*, application/json;q=0.1", true),
            ("text/html, text/event-stream;q=0", true),
            ("text/html;q=NaN", false),
            ("text/html;q=2", false),
            ("text/html;q=1.001", false),
            ("text/html;q=0.9999", false),
            ("text/html;q=-1", false),
            ("text/html;q=", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).unwrap())]);
            assert_eq!(prefers_html(&headers), expected, "{accept}");
        }
    }

    #[test]
    fn the_page_is_one_small_file_without_inline_attributes() {
        assert!(PAGE.len() < 60_000, "{}", PAGE.len());
        assert_eq!(PAGE.matches("<script").count(), 1);
        assert_eq!((PAGE.matches(SETTINGS_MARK).count(), PAGE.matches(POLICY_MARK).count()), (1, 1));
        for forbidden in [
            " style=",
            " onclick=",
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "http://",
            "localStorage",
            "sessionStorage",
            "document.cookie",
            "eval(",
        ] {
            assert!(!PAGE.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn no_text_leaves_the_data_of_a_page() {
        let tools = json!([{ "name": "a", "description": "</script><script>alert(1)</script>\u{2028}<!--" }]);
        let text = page_as_file("</title>", &tools, &json!({}));
        assert!(!text.contains("alert(1)</script>") && !text.contains('\u{2028}'));
        assert_eq!(text.matches("</script>").count(), 2);
    }
}
