//! A document behind the address of a site: the places where documents are published are tried on the same origin.

use std::time::Duration;

use http::header::{HeaderMap, LINK};
use url::Url;

use super::source::{FetchedSource, Source, fetch};

/// More requests than this are not made.
const MAX_REQUESTS: usize = 10;
/// How long the search may take in all.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);
/// More of a page is not searched for links.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// Where frameworks publish documents: `FastAPI`, ASP.NET, springdoc, Swagger UI.
const WELL_KNOWN: [&str; 5] = [
    "/openapi.json",
    "/openapi.yaml",
    "/swagger.json",
    "/v3/api-docs",
    "/swagger/v1/swagger.json",
];

/// The media types of API catalogs (RFC 9727 section 4).
const CATALOG: &str = "/.well-known/api-catalog";

/// What a search found.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// The document.
    pub(crate) found: Option<FetchedSource>,
    /// The addresses that were tried.
    pub(crate) tried: Vec<Url>,
    /// Links to documents on other origins, which are shown and not fetched.
    pub(crate) elsewhere: Vec<Url>,
}

/// Whether bytes are a web page.
pub(crate) fn is_web_page(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    // Neither JSON nor YAML of an OpenAPI document begins with `<`; a page may begin with any element or comment.
    bytes.trim_ascii_start().starts_with(b"<")
}

/// Searches the origin of a web page for a document. `headers` go along, because the origin is the one that they were meant for.
pub(crate) async fn discover(client: &reqwest::Client, page: &FetchedSource, headers: &HeaderMap, max_bytes: usize) -> Discovery {
    let mut discovery = Discovery::default();
    // What was found when the time is over is lost, and nothing else.
    let search = search(client, page, headers, max_bytes, &mut discovery);
    let _ = tokio::time::timeout(SEARCH_TIMEOUT, search).await;
    discovery
}

async fn search(client: &reqwest::Client, page: &FetchedSource, headers: &HeaderMap, max_bytes: usize, discovery: &mut Discovery) {
    let Source::Url(address) = &page.source else { return };
    let mut candidates: Vec<Url> = page_links(&page.bytes, address);
    candidates.extend(header_links(client, address, headers).await);
    if let Ok(catalog) = address.join(CATALOG)
        && let Ok(answer) = fetch(client, &catalog, headers, 0, MAX_PAGE_BYTES).await
    {
        candidates.extend(catalog_links(&answer.bytes, &catalog));
    }
    candidates.extend(WELL_KNOWN.iter().filter_map(|path| address.join(path).ok()));
    // The page itself, its headers and the catalog were asked for.
    let mut left = MAX_REQUESTS - 3;
    for candidate in candidates {
        if candidate.origin() != address.origin() {
            if !discovery.elsewhere.contains(&candidate) {
                discovery.elsewhere.push(candidate);
            }
            continue;
        }
        if left == 0 || candidate == *address || discovery.tried.contains(&candidate) {
            continue;
        }
        left -= 1;
        discovery.tried.push(candidate.clone());
        match fetch(client, &candidate, headers, 0, max_bytes).await {
            Ok(answer) if is_document(&answer.bytes) => {
                discovery.found = Some(answer);
                return;
            }
            _ => {}
        }
    }
}

/// Whether bytes may be a document: not a page, and with a version and paths.
fn is_document(bytes: &[u8]) -> bool {
    let says = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
    !is_web_page(bytes) && (says(b"openapi") || says(b"swagger")) && says(b"paths")
}

/// The targets of `Link` headers with the relation `service-desc` (RFC 8288, RFC 8631).
async fn header_links(client: &reqwest::Client, address: &Url, headers: &HeaderMap) -> Vec<Url> {
    let request = client.get(address.clone()).headers(headers.clone());
    let Ok(response) = request.send().await else { return Vec::new() };
    let values = response.headers().get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let targets = values.flat_map(|value| value.split(',')).filter_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_description = parameters.split(';').any(|parameter| {
            let value = parameter.trim().strip_prefix("rel=").unwrap_or_default();
            value
                .trim_matches('"')
                .split_whitespace()
                .any(|relation| relation == "service-desc")
        });
        is_description.then(|| address.join(target).ok()).flatten()
    });
    targets.collect()
}

/// The targets of `<link rel="service-desc" href="…">` in a page.
fn page_links(bytes: &[u8], address: &Url) -> Vec<Url> {
    let page = bytes.get(..bytes.len().min(MAX_PAGE_BYTES)).unwrap_or_default();
    let text = String::from_utf8_lossy(page);
    let elements = text.split("<link").skip(1).filter_map(|rest| rest.split('>').next());
    let described = elements.filter(|element| attribute(element, "rel").is_some_and(|relation| relation.contains("service-desc")));
    described
        .filter_map(|element| address.join(&attribute(element, "href")?).ok())
        .collect()
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

/// The targets of `service-desc` in a linkset (RFC 9264).
fn catalog_links(bytes: &[u8], address: &Url) -> Vec<Url> {
    let catalog: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let sets = catalog.get("linkset").and_then(serde_json::Value::as_array).into_iter().flatten();
    let descriptions = sets.filter_map(|set| set.get("service-desc")?.as_array()).flatten();
    let targets = descriptions.filter_map(|link| link.get("href")?.as_str());
    targets.filter_map(|target| address.join(target).ok()).collect()
}
