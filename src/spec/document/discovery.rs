//! Discovery of a document from the address of a site: requests the usual paths of documents on the
//! same origin.

use std::time::Duration;

use serde_json::Value;
use url::Url;

use super::source::{FetchedSource, SourceAnswer, SourceReader};
use super::web_page::{MAX_PAGE_BYTES, header_links, is_web_page, page_links};

/// More requests than this are not made, that for the page and redirects included.
const MAX_REQUESTS: usize = 15;
/// Time limit of the whole search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Paths at which frameworks publish documents: `FastAPI`, ASP.NET, springdoc, Swagger UI, and
/// paths below `/api` or `/docs`.
const WELL_KNOWN: &str = "/openapi.json /openapi.yaml /swagger.json /v3/api-docs
    /swagger/v1/swagger.json /api/openapi.json /docs/openapi.json /api/swagger.json /api/docs";

/// Path of a catalog of APIs (RFC 9727 section 2).
const CATALOG: &str = "/.well-known/api-catalog";

/// Result of a search.
#[derive(Default)]
pub(crate) struct Discovery {
    /// The document.
    pub(crate) found: Option<FetchedSource>,
    /// The addresses that were tried.
    pub(crate) tried: Vec<Url>,
    /// Links to documents on other origins, which are shown and not fetched.
    pub(crate) elsewhere: Vec<Url>,
}

/// Searches the origin of a web page for a document. The headers of `reader` go along, because the
/// origin is the one that they were meant for.
pub(crate) async fn discover(reader: &SourceReader, page: &FetchedSource) -> Discovery {
    let Some(address) = page.source.url() else {
        return Discovery::default();
    };
    let mut search = Search {
        reader,
        address,
        left: MAX_REQUESTS.saturating_sub(page.requests),
        result: Discovery::default(),
    };
    // What was found when the time is over is lost, and nothing else.
    let _ = tokio::time::timeout(SEARCH_TIMEOUT, search.run(page)).await;
    search.result
}

/// A search on one origin.
struct Search<'s> {
    reader: &'s SourceReader,
    /// Address of the page.
    address: Url,
    /// Number of requests that may still be made.
    left: usize,
    result: Discovery,
}

impl Search<'_> {
    async fn run(&mut self, page: &FetchedSource) {
        let mut candidates = page_links(&page.bytes, &self.address);
        candidates.extend(header_links(&page.links, &self.address));
        let of_catalog = SourceReader {
            max_bytes: MAX_PAGE_BYTES,
            ..self.reader.clone()
        };
        if let Ok(catalog) = self.address.join(CATALOG)
            && let Some(answer) = self.get(&of_catalog, catalog.clone()).await
        {
            candidates.extend(catalog_links(&answer.bytes, &catalog));
        }
        let well_known = WELL_KNOWN.split_whitespace();
        let well_known = well_known.filter_map(|path| self.address.join(path).ok());
        candidates.extend(well_known);
        for candidate in candidates {
            if candidate == self.address
                || self.result.tried.contains(&candidate)
                || !self.is_here(&candidate)
            {
                continue;
            }
            if self.left == 0 {
                return;
            }
            self.result.tried.push(candidate.clone());
            let answer = self.get(self.reader, candidate).await;
            if let Some(document) = answer.filter(|answer| is_document(&answer.bytes)) {
                self.result.found = Some(document);
                return;
            }
        }
    }

    /// Fetches an address, and follows its redirects on the same origin.
    async fn get(&mut self, reader: &SourceReader, mut address: Url) -> Option<FetchedSource> {
        while self.left > 0 {
            self.left -= 1;
            match reader.ask(&address).await.ok()? {
                SourceAnswer::Found(found) => return Some(found),
                SourceAnswer::Moved { target, .. } if self.is_here(&target) => address = target,
                SourceAnswer::Moved { .. } | SourceAnswer::Unchanged => return None,
            }
        }
        None
    }

    /// Returns true if an address is on the origin that is searched. Others are noted.
    fn is_here(&mut self, url: &Url) -> bool {
        let is_here = url.origin() == self.address.origin();
        if !is_here && !self.result.elsewhere.contains(url) {
            self.result.elsewhere.push(url.clone());
        }
        is_here
    }
}

/// Returns true if bytes may be a document: not a page, and with a version and paths.
fn is_document(bytes: &[u8]) -> bool {
    let says = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
    !is_web_page(bytes) && (says(b"openapi") || says(b"swagger")) && says(b"paths")
}

/// The targets of `service-desc` in a linkset (RFC 9264).
fn catalog_links(bytes: &[u8], address: &Url) -> Vec<Url> {
    let catalog: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let sets = catalog.get("linkset").and_then(Value::as_array);
    let links = sets
        .into_iter()
        .flatten()
        .filter_map(|set| set.get("service-desc")?.as_array())
        .flatten();
    links
        .filter_map(|link| address.join(link.get("href")?.as_str()?).ok())
        .collect()
}
