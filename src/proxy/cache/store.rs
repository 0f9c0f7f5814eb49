//! The replies that are kept, within a number of bytes: those that were not used for the longest
//! time are dropped first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};

use super::freshness::Freshness;
use super::key::ReplyKey;
use crate::proxy::redact::Redactor;
use crate::proxy::response::Response;
use crate::proxy::upstream::Reply;

/// Number of bytes of a record besides its reply.
const RECORD_BYTES: usize = 512;
/// A reply larger than the capacity of the cache divided by this is not kept.
const REPLY_SHARE_DIVISOR: usize = 8;

/// A reply as it came from the API, before secrets are taken out, a filter runs or anything is cut.
#[derive(Clone)]
pub(crate) struct StoredReply {
    pub(crate) response: Response,
    pub(crate) redactors: Vec<Arc<Redactor>>,
    pub(crate) freshness: Arc<Freshness>,
    /// Path by which a change drops the reply.
    pub(crate) path: Box<str>,
    /// The generation of all replicas when it was asked for, as far as that is known.
    pub(crate) shared_generation: Option<u64>,
}

impl StoredReply {
    /// The reply for one more call.
    pub(crate) fn reply(&self, now: SystemTime) -> Reply {
        Reply {
            response: self.response.clone(),
            redactors: self.redactors.clone(),
            age: Some(self.freshness.age(now)),
        }
    }

    /// Its path without a slash at the end.
    fn place(&self) -> &str {
        self.path.trim_end_matches('/')
    }

    fn bytes(&self) -> usize {
        let headers: usize = self
            .response
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        RECORD_BYTES + 2 * self.path.len() + headers + self.response.body.len()
    }
}

/// The headers with values of their own: those that came are parts of the buffer of their
/// connection, which a kept reply would keep as a whole.
pub(crate) fn detached_headers(headers: &HeaderMap) -> HeaderMap {
    let detached = |value: &HeaderValue| {
        let mut own = HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
        own.set_sensitive(value.is_sensitive());
        own
    };
    headers
        .iter()
        .map(|(name, value)| (name.clone(), detached(value)))
        .collect()
}

/// The headers of a reply after the API has said that it is still good (RFC 9111 section 3.2).
pub(crate) fn updated_headers(stored: &HeaderMap, not_modified: &HeaderMap) -> HeaderMap {
    let mut headers = stored.clone();
    let of_the_message = [
        CONNECTION,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        TRANSFER_ENCODING,
    ];
    for name in not_modified
        .keys()
        .filter(|name| !of_the_message.contains(name))
    {
        headers.remove(name);
        for value in not_modified.get_all(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers
}

/// The replies of one API.
pub(crate) struct ReplyStore {
    capacity: usize,
    bytes: usize,
    replies: HashMap<ReplyKey, (u64, StoredReply)>,
    /// Keys by their last use; the least recent comes first.
    uses: BTreeMap<u64, ReplyKey>,
    /// Keys by their path without a slash at its end, for changes at a path.
    paths: BTreeSet<(Box<str>, ReplyKey)>,
    next_use: u64,
    generation: u64,
}

impl ReplyStore {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            bytes: 0,
            replies: HashMap::new(),
            uses: BTreeMap::new(),
            paths: BTreeSet::new(),
            next_use: 0,
            generation: 0,
        }
    }

    /// Bytes of all records.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of possible changes.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Counts a possible change: replies to requests in flight are not stored afterwards.
    pub(crate) fn advance(&mut self) {
        self.generation += 1;
    }

    /// The reply, which is in use now.
    pub(crate) fn get(&mut self, key: &ReplyKey) -> Option<StoredReply> {
        let (used, reply) = self.replies.get_mut(key)?;
        self.uses.remove(used);
        *used = self.next_use;
        self.uses.insert(self.next_use, *key);
        self.next_use += 1;
        Some(reply.clone())
    }

    /// Keeps a reply to a call of that generation; whether it is kept.
    pub(crate) fn put(&mut self, key: ReplyKey, reply: StoredReply, generation: u64) -> bool {
        self.remove(&key);
        let bytes = reply.bytes();
        if generation != self.generation || bytes > self.capacity / REPLY_SHARE_DIVISOR {
            return false;
        }
        while self.bytes + bytes > self.capacity {
            let Some((_, oldest)) = self.uses.pop_first() else {
                break;
            };
            self.remove(&oldest);
        }
        self.bytes += bytes;
        self.uses.insert(self.next_use, key);
        self.paths.insert((reply.place().into(), key));
        self.replies.insert(key, (self.next_use, reply));
        self.next_use += 1;
        true
    }

    pub(crate) fn remove(&mut self, key: &ReplyKey) {
        if let Some((used, reply)) = self.replies.remove(key) {
            self.uses.remove(&used);
            self.paths.remove(&(reply.place().into(), *key));
            self.bytes -= reply.bytes();
        }
    }

    /// Drops what a change at a path may concern: the path with any query, the path above (the
    /// list), and all below. A change at `/pets/7:archive` may be one of `/pets/7`.
    pub(crate) fn drop_around(&mut self, path: &str) {
        let path = path.trim_end_matches('/');
        self.drop_near(path);
        if let Some((resource, verb)) = path.rsplit_once(':')
            && !verb.contains('/')
        {
            self.drop_near(resource);
        }
    }

    fn drop_near(&mut self, path: &str) {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let below = format!("{path}/");
        let [first, last] = ReplyKey::BOUNDS;
        let at = |path: &str| self.paths.range((path.into(), first)..=(path.into(), last));
        let all_below = self
            .paths
            .range((below.as_str().into(), first)..)
            .take_while(|(other, _)| other.starts_with(&below));
        let concerned: Vec<ReplyKey> = at(path)
            .chain(at(above))
            .chain(all_below)
            .map(|(_, key)| *key)
            .collect();
        concerned.iter().for_each(|key| self.remove(key));
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Method, StatusCode};

    use super::*;
    use crate::proxy::cache::key::KeyMaker;
    use crate::proxy::request::Request;

    fn key(keys: &KeyMaker, number: usize) -> ReplyKey {
        let request = Request {
            method: Method::GET,
            url: format!("http://h/{number}").parse().unwrap(),
            headers: HeaderMap::new(),
            body: None,
            may_stream: false,
        };
        keys.key(&request, b"")
    }

    fn stored(path: &str, bytes: usize) -> StoredReply {
        let mut response = Response {
            status: StatusCode::OK,
            body: Bytes::from(vec![0; bytes]),
            ..Response::default()
        };
        response.headers.insert(
            http::header::CACHE_CONTROL,
            HeaderValue::from_static("max-age=60"),
        );
        let freshness = Freshness::new(&response, SystemTime::now(), None).unwrap();
        StoredReply {
            response,
            redactors: Vec::new(),
            freshness: Arc::new(freshness),
            path: path.into(),
            shared_generation: None,
        }
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let keys = KeyMaker::new().unwrap();
        let mut store = ReplyStore::new(1 << 20);
        let first = key(&keys, 0);
        assert!(store.put(first, stored("/0", 1000), 0));
        for number in 1..100_000 {
            assert!(store.put(key(&keys, number), stored("/x", 1000), 0));
            assert!(store.bytes() <= 1 << 20);
            assert!(store.get(&first).is_some(), "{number}");
        }
        assert!(store.get(&key(&keys, 1)).is_none());
        assert_eq!(store.replies.len(), store.uses.len());
        assert!(
            !store.put(key(&keys, 1), stored("/large", 1 << 18), 0),
            "a record takes an eighth at most"
        );
    }

    #[test]
    fn detached_headers_keep_no_buffer() {
        let buffer = Bytes::from(vec![b'a'; 8192]);
        let mut headers = HeaderMap::new();
        for range in [0..10, 10..20] {
            headers.append(
                "x-part",
                HeaderValue::from_maybe_shared(buffer.slice(range)).unwrap(),
            );
        }
        headers.get_mut("x-part").unwrap().set_sensitive(true);
        let detached = detached_headers(&headers);
        assert_eq!(detached, headers);
        assert!(detached["x-part"].is_sensitive());
        drop(headers);
        assert!(buffer.is_unique());
    }

    #[test]
    fn a_change_drops_its_path_the_list_above_and_all_below() {
        let keys = KeyMaker::new().unwrap();
        for (path, is_dropped) in [
            ("/pets/7", true),
            ("/pets/7/", true),
            ("/pets", true),
            ("/pets/7/toys/1", true),
            ("/pets/70", false),
            ("/pets/8", false),
            ("/", false),
        ] {
            let mut store = ReplyStore::new(1 << 20);
            store.put(key(&keys, 0), stored(path, 1), 0);
            store.drop_around("/pets/7");
            assert_eq!(store.get(&key(&keys, 0)).is_none(), is_dropped, "{path}");
            assert_eq!(store.bytes() == 0, is_dropped, "{path}");
        }
    }

    #[test]
    fn a_change_looks_only_at_what_it_may_concern() {
        let keys = KeyMaker::new().unwrap();
        let mut store = ReplyStore::new(1 << 30);
        for number in 0..20_000 {
            store.put(
                key(&keys, number),
                stored(&format!("/others/{number}"), 1),
                0,
            );
        }
        let began = std::time::Instant::now();
        for number in 0..1000 {
            store.drop_around(&format!("/pets/{number}"));
        }
        assert!(
            began.elapsed() < std::time::Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
        assert_eq!((store.replies.len(), store.paths.len()), (20_000, 20_000));
        store.drop_around("/others");
        assert_eq!(
            (store.replies.len(), store.paths.len(), store.bytes()),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_method_of_a_resource_drops_what_a_change_of_the_resource_does() {
        let keys = KeyMaker::new().unwrap();
        for (changed, path, is_dropped) in [
            ("/pets:archive", "/pets", true),
            ("/pets:archive", "/pets/7", true),
            ("/pets/7:archive", "/pets/7", true),
            ("/pets/7:archive", "/pets/8", false),
            ("/items/urn:isbn:1", "/items/urn:isbn:1", true),
            ("/urn:x/1", "/urn", false),
        ] {
            let mut store = ReplyStore::new(1 << 20);
            store.put(key(&keys, 0), stored(path, 1), 0);
            store.drop_around(changed);
            assert_eq!(
                store.get(&key(&keys, 0)).is_none(),
                is_dropped,
                "{changed}: {path}"
            );
        }
    }

    #[test]
    fn what_was_asked_before_a_change_is_not_stored_after_it() {
        let keys = KeyMaker::new().unwrap();
        let mut store = ReplyStore::new(1 << 20);
        let before = store.generation();
        store.advance();
        assert!(!store.put(key(&keys, 0), stored("/a", 1), before));
        assert!(store.put(key(&keys, 0), stored("/a", 1), store.generation()));
    }
}
