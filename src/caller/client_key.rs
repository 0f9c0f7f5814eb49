//! The identity of a client: its address, its authentication, and the key under which its requests
//! are counted.

use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::OnceLock;

use aws_lc_rs::hmac;

/// The address at the other end of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Identifies the client that a request counts for: a hash, so that neither tokens nor subjects are
/// kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey(pub(crate) u64);

impl ClientKey {
    /// An authenticated client.
    pub(crate) fn named(kind: &str, name: &[u8]) -> Self {
        let Some(key) = SHARED_KEY.get() else {
            return Self(seeds().hash_one((kind, name)));
        };
        let mut context = hmac::Context::with_key(key);
        context.update(&kind.len().to_be_bytes());
        context.update(kind.as_bytes());
        context.update(name);
        let tag = context.sign();
        Self(
            tag.as_ref()
                .first_chunk()
                .copied()
                .map(u64::from_be_bytes)
                .unwrap_or_default(),
        )
    }

    /// Makes replicas with the same key identify a client in the same way. Called once, before the
    /// first client.
    pub(crate) fn share(key: hmac::Key) {
        let _ = SHARED_KEY.set(key);
    }

    /// The client at an address; an IPv6 /64 network counts as one client (RFC 6177).
    pub(crate) fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::named("v4", &address.octets()),
            IpAddr::V6(address) => Self::named("v6", address.octets().get(..8).unwrap_or_default()),
        }
    }
}

/// The key that replicas share.
static SHARED_KEY: OnceLock<hmac::Key> = OnceLock::new();

fn seeds() -> &'static foldhash::quality::RandomState {
    static SEEDS: std::sync::LazyLock<foldhash::quality::RandomState> =
        std::sync::LazyLock::new(Default::default);
    &SEEDS
}
