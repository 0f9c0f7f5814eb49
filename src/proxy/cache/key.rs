//! Keys of replies: two calls have the same key if their URL and their caller are the same.

use aws_lc_rs::hmac;

use crate::proxy::request::Request;

/// A keyed hash, so that no secret of a URL or a header is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ReplyKey([u8; 32]);

impl ReplyKey {
    /// Smallest and largest key.
    pub(crate) const BOUNDS: [Self; 2] = [Self([0; 32]), Self([u8::MAX; 32])];
}

impl AsRef<[u8]> for ReplyKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Makes keys that only replicas with the same shared state can make.
pub(crate) struct KeyMaker(hmac::Key);

impl KeyMaker {
    /// Makes it with a key that replicas share.
    pub(crate) fn shared(key: hmac::Key) -> Self {
        Self(key)
    }

    pub(crate) fn new() -> Option<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Makes the key of the URL, of every header of the request, those of the client included (any
    /// of them may name a tenant), and of the operator's credential, by its identity: tokens are
    /// replaced and digests differ each time.
    pub(crate) fn key(&self, request: &Request, credential: &[u8]) -> ReplyKey {
        let mut context = hmac::Context::with_key(&self.0);
        let mut part = |bytes: &[u8]| {
            // With its length, so that no two lists of parts are the same text.
            context.update(&bytes.len().to_be_bytes());
            context.update(bytes);
        };
        part(request.url.as_str().as_bytes());
        part(credential);
        let mut headers: Vec<(&str, &[u8])> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        // Values of one name stay in their order.
        headers.sort_by_key(|(name, _)| *name);
        for (name, value) in headers {
            part(name.as_bytes());
            part(value);
        }
        let mut key = [0; 32];
        key.copy_from_slice(context.sign().as_ref());
        ReplyKey(key)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue, Method};
    use proptest::prelude::*;

    use super::*;

    fn request(url: &str, headers: &[(String, String)]) -> Request {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        Request {
            method: Method::GET,
            url: url.parse().unwrap(),
            headers: map,
            body: None,
            may_stream: false,
        }
    }

    proptest! {
        #[test]
        fn two_who_ask_never_have_one_key(
            one in prop::collection::vec(("[a-z]{1,3}", "[a-z0-9]{0,3}"), 0..4),
            other in prop::collection::vec(("[a-z]{1,3}", "[a-z0-9]{0,3}"), 0..4),
            credentials in ("[ab]{0,2}", "[ab]{0,2}"),
            query in ("[a-z=&]{0,4}", "[a-z=&]{0,4}"),
        ) {
            let keys = KeyMaker::new().unwrap();
            let (first, second) = (
                request(&format!("http://h/a?{}", query.0), &one),
                request(&format!("http://h/a?{}", query.1), &other),
            );
            let is_same = first.url == second.url && first.headers == second.headers && credentials.0 == credentials.1;
            prop_assert_eq!(keys.key(&first, credentials.0.as_bytes()) == keys.key(&second, credentials.1.as_bytes()), is_same);
        }
    }
}
