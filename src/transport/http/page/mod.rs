//! The page for people who open the endpoint in a browser: one file, without anything from
//! elsewhere.
//!
//! Styles and scripts are files of this folder, each about one concept, that are joined in the
//! order in which they are listed here.
//!
//! # Adding a panel of the page
//!
//! - Its markup in `transport/http/page/page.html`.
//! - Its script in a file of `transport/http/page/script/`, which `SCRIPT` in
//!   `transport/http/page/mod.rs` joins.
//! - Its call in `load` in `transport/http/page/script/start.js`.
//! - Its data in `mcp/page_tools.rs`, as a member of an answer or as a variant of `PageRequest`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Digest as _;

/// The markup, with a mark for each of the other parts.
const PAGE: &str = include_str!("page.html");
/// The only style of the page.
const STYLE: &str = concat!(
    include_str!("style/theme.css"),
    include_str!("style/layout.css"),
    include_str!("style/tool.css"),
    include_str!("style/form.css"),
    include_str!("style/result.css"),
);
/// The only script of the page.
const SCRIPT: &str = concat!(
    include_str!("script/elements.js"),
    include_str!("script/server.js"),
    include_str!("script/source.js"),
    include_str!("script/markdown.js"),
    include_str!("script/json_text.js"),
    include_str!("script/schema.js"),
    include_str!("script/fields.js"),
    include_str!("script/arguments.js"),
    include_str!("script/result.js"),
    include_str!("script/call.js"),
    include_str!("script/tool.js"),
    include_str!("script/list.js"),
    include_str!("script/connect.js"),
    include_str!("script/start.js"),
);

/// The logo, which is the icon of the page unless the operator set one.
const LOGO: &str = include_str!("logo.svg");

/// Placeholder of the icon.
const ICON_MARK: &str = "<!--icon-->";
/// Placeholder of the style.
const STYLE_MARK: &str = "<!--style-->";
/// Placeholder of the script.
const SCRIPT_MARK: &str = "<!--script-->";
/// Placeholder of the settings of a page.
const SETTINGS_MARK: &str = "<!--settings-->";
/// Placeholder of the policy of a page that is a file.
const POLICY_MARK: &str = "<!--policy-->";

/// The answer to a program that reads `/`, such as curl.
const INTRODUCTION: &str = "This is an MCP server with its endpoint at /mcp. Open this address in a browser to see what it offers and how to connect.\n";

/// Content of a page.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    clap::ValueEnum,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    /// Steps to connect, and the tools
    #[default]
    Full,
    /// Steps to connect, without any text of the document
    Public,
    /// There is no page
    Off,
}

/// Settings of a page.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// Content of the page.
    pub kind: PageKind,
    /// The title of the server, if the operator set it. Nothing on the page comes from the document
    /// before a client has a token.
    pub title: Option<String>,
    /// The name of its entry in a client, if the operator set it.
    pub entry: Option<String>,
    /// Its icon as a `data:` URL, if the operator set it.
    pub icon: Option<String>,
    /// Entries for clients, with [`ENDPOINT`] in place of the endpoint.
    pub snippets: Vec<PageSnippet>,
}

/// Placeholder of the endpoint in an entry.
pub(crate) const ENDPOINT: &str = "https://endpoint.invalid/mcp";

/// An entry for a client's file.
#[derive(Debug, Clone, Serialize)]
pub struct PageSnippet {
    /// The client, as people call it.
    pub client: String,
    /// The command that adds the entry, for clients that have one.
    pub command: Option<String>,
    /// Text to paste.
    pub text: String,
    /// The file to paste it into, on Linux.
    pub file: String,
    /// A remark, or nothing.
    pub note: String,
}

/// A page, ready to be sent.
pub(super) struct ServedPage {
    text: String,
    policy: HeaderValue,
}

/// Authentication of clients, for the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SignIn {
    None,
    Token,
    Oauth,
}

impl ServedPage {
    /// Makes the page of a server; `None` if it has none. `endpoint` is the address that the
    /// operator published.
    pub(super) fn new(
        options: &PageOptions,
        sign_in: SignIn,
        endpoint: Option<&url::Url>,
    ) -> Option<Arc<Self>> {
        if options.kind == PageKind::Off {
            return None;
        }
        let settings = json!({
            "page": options.kind,
            "auth": sign_in != SignIn::None,
            "oauth": sign_in == SignIn::Oauth,
            "endpoint": endpoint.map(url::Url::as_str),
            "title": options.title,
            "entry": options.entry,
            "icon": options.icon,
            "snippets": options.snippets,
        });
        let policy = policy_of(SCRIPT, STYLE);
        Self::with_policy(assemble("", &settings), &policy).map(Arc::new)
    }

    /// Makes a page of its parts. `None` would be a mistake in them.
    pub(super) fn of(markup: &str, style: &str, script: &str) -> Option<Self> {
        Self::with_policy(with_parts(markup, style, script), &policy_of(script, style))
    }

    fn with_policy(text: String, policy: &str) -> Option<Self> {
        let policy = HeaderValue::try_from(format!("{policy}; frame-ancestors 'none'")).ok()?;
        Some(Self { text, policy })
    }

    pub(super) fn answer(&self, method: &Method) -> Response {
        let headers = [
            (
                header::REFERRER_POLICY,
                HeaderValue::from_static("no-referrer"),
            ),
            (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
            (header::CONTENT_SECURITY_POLICY, self.policy.clone()),
        ];
        (
            headers,
            readable(method, "text/html; charset=utf-8", &self.text),
        )
            .into_response()
    }
}

/// A text that depends on the `Accept` of the request; without the text for HEAD.
fn readable(method: &Method, media_type: &'static str, text: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "accept"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    if method == Method::HEAD {
        return (headers, [(header::CONTENT_LENGTH, text.len())]).into_response();
    }
    (headers, text.to_owned()).into_response()
}

/// The layer: answers a browser that asks for a page, and a command such as curl that asks `/` for
/// anything, and passes everything else on.
pub(super) async fn serve_page(
    State(page): State<Arc<ServedPage>>,
    request: Request,
    next: Next,
) -> Response {
    if asks_for_page(&request) {
        return page.answer(request.method());
    }
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_reading && request.uri().path() == "/" && takes_text(request.headers()) {
        return readable(request.method(), "text/plain; charset=utf-8", INTRODUCTION);
    }
    next.run(request).await
}

/// Returns true if a request is for the page.
pub(super) fn asks_for_page<B>(request: &http::Request<B>) -> bool {
    let is_address = matches!(request.uri().path(), "/" | "/mcp");
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    is_address && is_reading && prefers_html(request.headers())
}

/// Returns true if a request takes plain text, and is not one of an MCP client.
fn takes_text(headers: &HeaderMap) -> bool {
    let is_text = |(name, _): (String, _)| matches!(name.as_str(), "*/*" | "text/*" | "text/plain");
    !headers.contains_key(header::ACCEPT)
        || accepted(headers).any(is_text)
            && accepted(headers).all(|(name, _)| name != "text/event-stream")
}

/// The media ranges that `Accept` names, in lower case, each with its weight (RFC 9110 section
/// 12.5.1).
pub(super) fn accepted(headers: &HeaderMap) -> impl Iterator<Item = (String, u16)> {
    let values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        (name, weight(parts))
    })
}

/// Returns true if `text/html` is named with a higher weight than the types of MCP (RFC 9110
/// section 12.5.1). `*/*` does not count.
fn prefers_html(headers: &HeaderMap) -> bool {
    let (mut html, mut json, mut any_application) = (0, None, 0);
    for (name, weight) in accepted(headers) {
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

/// The weight of a media range in thousandths (RFC 9110 section 12.4.2). Without one it is 1; one
/// that is not valid asks for nothing.
fn weight<'p>(mut parameters: impl Iterator<Item = &'p str>) -> u16 {
    let given = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("q")
            .then_some(value.trim())
    });
    let Some(given) = given else { return 1000 };
    let (whole, decimals) = given.split_once('.').unwrap_or((given, ""));
    let is_valid = matches!(whole, "0" | "1")
        && decimals.len() <= 3
        && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths = format!("{whole}{decimals:0<3}").parse().unwrap_or(0);
    if is_valid && thousandths <= 1000 {
        thousandths
    } else {
        0
    }
}

/// The policy of a page with that script and that style (CSP 3): they by their hashes, its own origin,
/// nothing else.
fn policy_of(script: &str, style: &str) -> String {
    let hash = |text: &str| STANDARD.encode(sha2::Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
        hash(script),
        hash(style)
    )
}

/// The markup with its style and its script.
fn with_parts(markup: &str, style: &str, script: &str) -> String {
    markup
        .replacen(STYLE_MARK, &format!("<style>{style}</style>"), 1)
        .replacen(SCRIPT_MARK, &format!("<script>{script}</script>"), 1)
}

/// Writes JSON for a script element. Text of a document cannot end it, because the JSON contains
/// neither an end tag nor a line separator.
fn data_block(settings: &Value) -> String {
    let text = settings
        .to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    format!("<script type=\"application/json\" id=\"settings\">{text}</script>")
}

/// The whole page. The settings come last, because they may hold any text, also that of a mark.
fn assemble(policy: &str, settings: &Value) -> String {
    let logo = STANDARD.encode(LOGO.trim());
    let icon = format!("<link rel=\"icon\" id=\"icon\" href=\"data:image/svg+xml;base64,{logo}\">");
    let markup = PAGE
        .replacen(POLICY_MARK, policy, 1)
        .replacen(ICON_MARK, &icon, 1);
    with_parts(&markup, STYLE, SCRIPT).replacen(SETTINGS_MARK, &data_block(settings), 1)
}

/// The page as a file with the tools in it, each in detail.
pub(crate) fn page_as_file(title: &str, tools: &Value) -> String {
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">",
        policy_of(SCRIPT, STYLE)
    );
    assemble(
        &policy,
        &json!({ "page": "full", "title": title, "tools": tools }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_for_a_page_by_name_gets_one() {
        for (accept, expected) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
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
            (
                "text/html, application/*;q=0.9, application/json;q=0.1",
                true,
            ),
            (
                "text/html;q=0.5, application/*, application/json;q=0.1",
                true,
            ),
            ("text/html, text/event-stream;q=0", true),
            ("text/html;q=NaN", false),
            ("text/html;q=2", false),
            ("text/html;q=1.001", false),
            ("text/html;q=0.9999", false),
            ("text/html;q=-1", false),
            ("text/html;q=", false),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).unwrap())]);
            assert_eq!(prefers_html(&headers), expected, "{accept}");
        }
    }

    #[test]
    fn the_page_is_one_small_file_without_inline_attributes() {
        let page = assemble("", &json!({}));
        assert!(page.len() < 100_000, "{}", page.len());
        assert_eq!(
            (
                PAGE.matches("<script").count(),
                PAGE.matches("<style").count()
            ),
            (0, 0)
        );
        for mark in [
            ICON_MARK,
            STYLE_MARK,
            SCRIPT_MARK,
            SETTINGS_MARK,
            POLICY_MARK,
        ] {
            assert_eq!(PAGE.matches(mark).count(), 1, "{mark}");
            assert!(!STYLE.contains(mark) && !SCRIPT.contains(mark), "{mark}");
        }
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
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
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn no_two_files_of_the_script_declare_the_same_function() {
        let mut names = std::collections::HashSet::new();
        let declared = SCRIPT.lines().filter_map(|line| {
            let line = line.strip_prefix("async ").unwrap_or(line);
            line.strip_prefix("function ")?.split('(').next()
        });
        for name in declared {
            assert!(names.insert(name), "{name}");
        }
    }

    #[test]
    fn the_book_has_the_logo_of_the_page() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures/logo.svg");
        assert_eq!(std::fs::read_to_string(path).unwrap(), LOGO);
    }

    #[test]
    fn no_text_leaves_the_data_of_a_page() {
        let tools = json!([{ "name": "a", "description": "</script><script>alert(1)</script>\u{2028}<!--" }]);
        let text = page_as_file("</title>", &tools);
        assert!(!text.contains("alert(1)</script>") && !text.contains('\u{2028}'));
        assert_eq!(text.matches("</script>").count(), 2);
    }
}
