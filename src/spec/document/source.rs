//! Sources of documents (files, URLs and standard input) and the bytes read from them.
//!
//! # Changing how documents are fetched
//!
//! - `SourceReader` in `spec/document/source.rs`: it alone reads documents, overlays and the files
//!   that references lead to.
//! - A setting of it: a field of `DocumentSettings` in `config/documents.rs`, which
//!   `resolve_document` checks and `reader` hands over.

use std::error::Error as StdError;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use http::header::{
    ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LINK,
};
use thiserror::Error;
use url::Url;

use super::missing_file::explain_missing;
use super::web_page::{MAX_PAGE_BYTES, asks_for_password, is_login_address, is_web_page};
use crate::outbound::{self, HttpClient, HttpError};

/// The most bytes of a document, and of each overlay and each file that it refers to.
const MAX_SPEC_BYTES: usize = 128 << 20;
/// Time limit of fetching a document.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// More redirects than this are not followed.
const MAX_REDIRECTS: usize = 5;

/// Advice if a document is not public.
const CREDENTIAL_HINT: &str = "; if the document needs a credential, --spec-header-env NAME=VARIABLE sends one, as in 'Authorization=Bearer VARIABLE'";

/// Source of a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// A file.
    Path(PathBuf),
    /// An `http` or `https` URL.
    Url(Url),
    /// Standard input, written `-`.
    Stdin,
}

/// What sources are read with.
#[derive(Debug, Clone)]
pub struct SourceReader {
    pub(super) client: HttpClient,
    pub(super) headers: HeaderMap,
    /// The most bytes of one source.
    pub(super) max_bytes: usize,
}

/// The bytes of a source, and the final location from which they came.
#[derive(Debug)]
pub struct FetchedSource {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The final source: after a redirect, another URL than the requested one.
    pub source: Source,
    /// The headers that ask for another version only.
    pub(super) conditions: HeaderMap,
    /// The `Link` headers that came with them (RFC 8288).
    pub(crate) links: Vec<HeaderValue>,
    /// Number of requests, redirects included.
    pub(crate) requests: usize,
}

/// Returns the headers that ask for another version than the one that came with these headers (RFC
/// 9110 sections 8.8 and 13.1).
fn conditions(headers: &HeaderMap) -> HeaderMap {
    let known = [(IF_NONE_MATCH, ETAG), (IF_MODIFIED_SINCE, LAST_MODIFIED)];
    known
        .into_iter()
        .filter_map(|(name, validator)| Some((name, headers.get(validator)?.clone())))
        .collect()
}

/// Reason for which a source could not be read.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct ReadError {
    text: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// True if there are more bytes than may be read.
    pub(super) is_too_large: bool,
    /// The page that the server answered 404 with, or the answer of the address of the site, behind
    /// which there may be a document.
    pub(crate) page: Option<Box<FetchedSource>>,
}

impl ReadError {
    fn new(text: String) -> Self {
        Self {
            text,
            source: None,
            is_too_large: false,
            page: None,
        }
    }

    /// An error because of another one.
    fn of(text: String, source: impl StdError + Send + Sync + 'static) -> Self {
        Self {
            source: Some(Box::new(source)),
            ..Self::new(text)
        }
    }

    /// A file or stream that cannot be read.
    fn unreadable(source: &Source, error: std::io::Error) -> Self {
        Self::of(format!("{source} cannot be read"), error)
    }

    /// A source with more bytes than may be read.
    fn too_large(source: &Source, max_bytes: usize) -> Self {
        Self {
            is_too_large: true,
            ..Self::new(format!(
                "{source} is larger than {max_bytes} bytes, the most that is read"
            ))
        }
    }

    /// A scheme that nothing is fetched by.
    fn of_scheme(address: &str) -> Self {
        Self::new(format!(
            "`{address}` is neither a file, an http(s) URL, nor `-`"
        ))
    }

    /// An answer that is no success; the hint is a clause.
    fn answered(url: &Url, answer: impl fmt::Display, hint: &str) -> Self {
        Self::new(format!("{} answered {answer}{hint}", redacted(url)))
    }
}

impl Source {
    /// Reads the value of `--spec`.
    ///
    /// # Errors
    /// A URL of a scheme that is not fetched.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Self::Url(url)),
            Err(_) if text.starts_with("http://") || text.starts_with("https://") => {
                let shown = text.split(['@', '?']).next_back();
                Err(ReadError::of_scheme(shown.unwrap_or_default()))
            }
            Ok(url) if url.scheme() == "file" => url
                .to_file_path()
                .map(Self::Path)
                .map_err(|()| ReadError::of_scheme(&redacted(&url))),
            // `C:\spec.yaml` parses as a URL with a one-letter scheme.
            Ok(url) if url.scheme().len() > 1 && text.contains("://") => {
                Err(ReadError::of_scheme(&redacted(&url)))
            }
            _ => Ok(Self::Path(PathBuf::from(text))),
        }
    }

    /// The path or the URL as it may be shown.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Url(url) => redacted(url),
            Self::Stdin => "standard input".to_owned(),
        }
    }

    /// The path of a file.
    pub(super) fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Path(path) => Some(path),
            _ => None,
        }
    }

    /// The URL that relative references of the document start from.
    #[must_use]
    pub fn url(&self) -> Option<Url> {
        match self {
            Self::Url(url) => Some(url.clone()),
            _ => None,
        }
    }
}

impl SourceReader {
    /// Makes a reader that sends `headers` with each request, and reads at most 128 MiB of each
    /// source (after decompression).
    #[must_use]
    pub fn new(client: HttpClient, headers: HeaderMap) -> Self {
        Self {
            client,
            headers,
            max_bytes: MAX_SPEC_BYTES,
        }
    }

    /// The same for sources that get none of the headers.
    pub(crate) fn without_headers(&self) -> Self {
        Self {
            headers: HeaderMap::new(),
            ..self.clone()
        }
    }

    /// Reads all bytes, from a URL within 30 seconds, and also returns the final source. After a
    /// redirect that is another URL, and references of the document are relative to it (RFC 3986
    /// section 5.1.3).
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read(&self, source: &Source) -> Result<FetchedSource, ReadError> {
        let bytes = match source {
            Source::Path(path) => {
                let io = |error| ReadError::unreadable(source, error);
                let metadata =
                    std::fs::metadata(path).map_err(|error| io(explain_missing(path, error)))?;
                // `/dev/zero` never ends, a FIFO may never begin.
                if !metadata.is_file() {
                    return Err(ReadError::new(format!("{source} is not a regular file")));
                }
                let file = std::fs::File::open(path).map_err(io)?;
                let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
                self.read_all(source, file, length)?
            }
            Source::Stdin => self.read_all(source, std::io::stdin().lock(), 0)?,
            Source::Url(url) => return self.fetch(url, MAX_REDIRECTS).await,
        };
        Ok(FetchedSource {
            bytes,
            source: source.clone(),
            conditions: HeaderMap::new(),
            links: Vec::new(),
            requests: 0,
        })
    }

    fn read_all(
        &self,
        source: &Source,
        reader: impl Read,
        expected: usize,
    ) -> Result<Vec<u8>, ReadError> {
        let too_large = || ReadError::too_large(source, self.max_bytes);
        if expected > self.max_bytes {
            return Err(too_large());
        }
        let mut bytes = Vec::with_capacity(expected);
        let limit = u64::try_from(self.max_bytes).unwrap_or(u64::MAX);
        reader
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| ReadError::unreadable(source, error))?;
        if bytes.len() > self.max_bytes {
            return Err(too_large());
        }
        Ok(bytes)
    }

    /// Fetches one URL, and returns the final URL too. Follows a limited number of redirects, and
    /// only within the origin, because the headers may hold a credential.
    pub(super) async fn fetch(
        &self,
        url: &Url,
        redirects: usize,
    ) -> Result<FetchedSource, ReadError> {
        let found = self.fetch_all(url, redirects).await?;
        // The request was not conditional.
        found.ok_or_else(|| ReadError::answered(url, StatusCode::NOT_MODIFIED, ""))
    }

    /// Fetches like [`SourceReader::fetch`], but returns `None` if the version is the known one.
    pub(super) async fn fetch_if_changed(
        &self,
        url: &Url,
        conditions: &HeaderMap,
    ) -> Result<Option<FetchedSource>, ReadError> {
        let mut reader = self.clone();
        reader.headers.extend(conditions.clone());
        reader.fetch_all(url, MAX_REDIRECTS).await
    }

    async fn fetch_all(
        &self,
        url: &Url,
        redirects: usize,
    ) -> Result<Option<FetchedSource>, ReadError> {
        let fetched = tokio::time::timeout(FETCH_TIMEOUT, self.follow(url, redirects)).await;
        fetched.unwrap_or_else(|_| {
            let (url, seconds) = (redacted(url), FETCH_TIMEOUT.as_secs());
            let text = format!("{url} was not read within {seconds} s");
            Err(ReadError::new(text))
        })
    }

    async fn follow(
        &self,
        url: &Url,
        redirects: usize,
    ) -> Result<Option<FetchedSource>, ReadError> {
        let mut current = url.clone();
        for round in 0..=redirects {
            match self.ask(&current).await? {
                SourceAnswer::Found(found) => {
                    return Ok(Some(FetchedSource {
                        requests: round + 1,
                        ..found
                    }));
                }
                SourceAnswer::Unchanged => return Ok(None),
                SourceAnswer::Moved { target, .. }
                    if target.origin() == url.origin() && round < redirects =>
                {
                    current = target;
                }
                SourceAnswer::Moved { target, status } => {
                    let shown = redacted(&target);
                    let hint = if is_login_address(&target) {
                        format!(" and points to {shown}, a page to sign in{CREDENTIAL_HINT}")
                    } else {
                        format!(" and points to {shown}; give that address")
                    };
                    return Err(ReadError::answered(&current, status, &hint));
                }
            }
        }
        Err(ReadError::answered(url, "redirects without end", ""))
    }

    /// Makes one request for a source.
    ///
    /// # Errors
    /// [`ReadError`] if there is no answer, or one that is neither a success nor a redirect.
    pub(super) async fn ask(&self, url: &Url) -> Result<SourceAnswer, ReadError> {
        let failed = |error: HttpError| {
            let hint = fetch_hint(&error, self.client.has_proxy());
            let text = format!("{} cannot be fetched{hint}", redacted(url));
            ReadError::of(text, error.without_url())
        };
        let request = self
            .client
            .get(url.clone())
            .header("accept", "application/yaml, application/json, */*;q=0.5")
            .headers(self.headers.clone());
        let response = outbound::send(request).await.map_err(failed)?;
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED {
            return Ok(SourceAnswer::Unchanged);
        }
        let target = response.headers().get("location");
        let target = target.and_then(|location| url.join(location.to_str().ok()?).ok());
        if let Some(target) = target.filter(|_| status.is_redirection()) {
            return Ok(SourceAnswer::Moved { target, status });
        }
        let refused = ReadError::answered(url, status, status_hint(status));
        if !status.is_success() && status != StatusCode::NOT_FOUND {
            return Err(refused);
        }
        let conditions = conditions(response.headers());
        let links = response.headers().get_all(LINK).iter().cloned().collect();
        let bytes = match read_source(response, self.max_bytes).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(_) if !status.is_success() => return Err(refused),
            Ok(None) => {
                let source = Source::Url(url.clone());
                return Err(ReadError::too_large(&source, self.max_bytes));
            }
            Err(error) => return Err(failed(error)),
        };
        let found = FetchedSource {
            bytes,
            source: Source::Url(url.clone()),
            conditions,
            links,
            requests: 1,
        };
        if status.is_success() {
            return Ok(SourceAnswer::Found(found));
        }
        let may_hide_document = is_web_page(&found.bytes) || url.path() == "/";
        Err(ReadError {
            page: may_hide_document.then(|| Box::new(found)),
            ..refused
        })
    }
}

impl FetchedSource {
    /// The error for a web page that the server redirected to instead of `asked`; nothing for
    /// another page.
    pub(crate) fn redirected_page(&self, asked: &Source) -> Option<ReadError> {
        let (url, target) = (asked.url()?, self.source.url()?);
        (url != target && is_web_page(&self.bytes)).then(|| {
            let page = if is_login_address(&target) || asks_for_password(&self.bytes) {
                "a page to sign in"
            } else {
                "which is a web page"
            };
            let [url, target] = [url, target].map(|url| redacted(&url));
            ReadError::new(format!(
                "{url} was redirected to {target}, {page}{CREDENTIAL_HINT}"
            ))
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str(&self.name()),
            _ => write!(f, "`{}`", self.name()),
        }
    }
}

/// Result of one request for a source.
pub(crate) enum SourceAnswer {
    Found(FetchedSource),
    /// The version is the known one.
    Unchanged,
    /// The server redirects.
    Moved {
        target: Url,
        status: StatusCode,
    },
}

/// Reads the body of a source; `None` if it is longer than the limit. Of a web page, only the
/// beginning is read, which holds its links.
async fn read_source(
    mut response: reqwest::Response,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>, HttpError> {
    let mut bytes = Vec::new();
    let mut is_page = false;
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        is_page = is_page || (bytes.len() < MAX_PAGE_BYTES && is_web_page(&bytes));
        if is_page && bytes.len() >= MAX_PAGE_BYTES {
            bytes.truncate(MAX_PAGE_BYTES);
            break;
        }
        if bytes.len() > max_bytes {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

fn status_hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => CREDENTIAL_HINT,
        StatusCode::NOT_FOUND => {
            "; check the address of the document, which many servers have at /openapi.json"
        }
        _ => "",
    }
}

fn fetch_hint(error: &HttpError, has_proxy: bool) -> &'static str {
    for error in crate::text::error_causes(error) {
        let system = error.downcast_ref::<std::io::Error>();
        if system.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
            return if has_proxy {
                ", because nothing listens at the address of the proxy; check --proxy"
            } else {
                ", because nothing listens there; check the port, and start the server"
            };
        }
        let text = error.to_string();
        if text.contains("invalid HTTP version parsed") || text.contains("invalid HTTP status") {
            return ", because what answers there does not speak HTTP; try https:// in place of http://";
        }
        if text.contains("invalid peer certificate") {
            return ", because its certificate is not trusted; --ca-cert FILE names its authority, or the certificate itself; --insecure-upstream is about the calls alone";
        }
    }
    ""
}

/// A URL as it may be shown: without user information and query, which may hold secrets.
pub(crate) fn redacted(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if url.query().is_some() {
        url.set_query(Some("..."));
    }
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart() {
        assert_eq!(Source::parse("-").unwrap(), Source::Stdin);
        assert!(matches!(
            Source::parse("petstore.yaml").unwrap(),
            Source::Path(_)
        ));
        assert!(matches!(
            Source::parse(r"C:\specs\petstore.yaml").unwrap(),
            Source::Path(_)
        ));
        assert!(matches!(
            Source::parse("https://h.example/openapi.json").unwrap(),
            Source::Url(_)
        ));
        assert_eq!(
            Source::parse("file:///srv/a%20b.yaml").unwrap(),
            Source::Path("/srv/a b.yaml".into())
        );
        for refused in ["ftp://h.example/x", "data://x"] {
            assert!(Source::parse(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_shown_url_holds_no_secret() {
        let url = Url::parse("https://user:pass@h.example/spec?token=secret#x").unwrap();
        let shown = redacted(&url);
        assert!(
            !shown.contains("secret") && !shown.contains("pass"),
            "{shown}"
        );
    }
}
