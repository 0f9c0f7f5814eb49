//! Replies that a request that may change something drops from the cache (RFC 9111 section 4.4).

use http::header::{self, HeaderMap};
use url::Url;

use super::ReplyCache;

impl ReplyCache {
    /// A request that may change something is about to leave. However it ends, what it may have
    /// changed is dropped when the value that is returned is.
    pub(crate) async fn expect_change(&self, url: &Url) -> ExpectedChange<'_> {
        self.store().advance();
        let change = ExpectedChange {
            cache: self,
            paths: vec![url.path().to_owned()],
            url: url.clone(),
            is_shared: false,
        };
        if let Some(shared) = &self.shared {
            shared.raise().await;
        }
        change
    }
}

/// A request that may change something.
pub(crate) struct ExpectedChange<'c> {
    cache: &'c ReplyCache,
    paths: Vec<String>,
    url: Url,
    /// True if other replicas know that it has ended.
    is_shared: bool,
}

impl ExpectedChange<'_> {
    /// Drops the URLs that the reply names too (RFC 9111 section 4.4), if they are of the same
    /// origin.
    pub(crate) fn answered(&mut self, headers: &HeaderMap) {
        for name in [header::LOCATION, header::CONTENT_LOCATION] {
            let named = headers
                .get(name)
                .and_then(|value| self.url.join(value.to_str().ok()?).ok());
            self.paths.extend(
                named
                    .filter(|named| named.origin() == self.url.origin())
                    .map(|named| named.path().to_owned()),
            );
        }
    }

    /// Drops these paths too, which may have a query.
    pub(crate) fn named<'p>(&mut self, paths: impl Iterator<Item = &'p str>) {
        let named = paths.filter_map(|path| self.url.join(path).ok());
        let own = named.filter(|named| named.origin() == self.url.origin());
        let own: Vec<String> = own.map(|named| named.path().to_owned()).collect();
        self.paths.extend(own);
    }

    /// Ends the change with its request. Once this has returned, no call gets a reply from before
    /// it.
    pub(crate) async fn end(mut self) {
        self.is_shared = true;
        let shared = self.cache.shared.clone();
        drop(self);
        if let Some(shared) = shared {
            shared.raise().await;
        }
    }
}

impl Drop for ExpectedChange<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.cache.shared.as_ref().filter(|_| !self.is_shared) {
            shared.raise_later();
        }
        let mut store = self.cache.store();
        store.advance();
        self.paths.iter().for_each(|path| store.drop_around(path));
    }
}
