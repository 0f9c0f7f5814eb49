//! Keys for values that are kept outside the process: they encrypt values, and hash names so that
//! others cannot guess them.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use thiserror::Error;

/// The form of sealed values that is written.
const VERSION: u8 = 1;
/// Bytes of a key, and of everything that is derived from one.
const KEY_BYTES: usize = 32;
/// Bytes that say which key sealed a value.
const ID_BYTES: usize = 4;
/// Random bytes that give each value a key of its own: random nonces alone would limit how many
/// values one key may seal (NIST SP 800-38D section 8.3).
const SALT_BYTES: usize = 16;

/// The keys of an operator, at least one: the first seals, all of them open.
#[derive(Clone)]
pub(crate) struct StateKeys(Arc<[StateKey]>);

struct StateKey {
    id: [u8; ID_BYTES],
    secret: hkdf::Prk,
}

/// Reason for which a sealed value cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum OpenError {
    /// Another version of this program wrote it.
    #[error("another version of openapi-mcp wrote it")]
    Version,
    /// No key sealed it.
    #[error("it was encrypted with another key than those of --state-key-env or --state-key-file")]
    Key,
    /// The value is not the one that was sealed under this name.
    #[error("it was changed, or belongs elsewhere")]
    Damaged,
}

impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateKeys({})", self.0.len())
    }
}

impl StateKey {
    fn new(bytes: &[u8]) -> Option<Self> {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"openapi-mcp state key").extract(bytes);
        let id = *derive(&secret, &[b"id"])?.first_chunk()?;
        Some(Self { id, secret })
    }

    /// The key of one sealed value.
    fn cipher(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let key = derive(&self.secret, &[b"seal", salt])?;
        Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).ok()?))
    }
}

/// Bytes for one purpose (RFC 5869 section 2.3).
fn derive(secret: &hkdf::Prk, purpose: &[&[u8]]) -> Option<[u8; KEY_BYTES]> {
    let mut bytes = [0; KEY_BYTES];
    let derived = secret.expand(purpose, hkdf::HKDF_SHA256).ok()?;
    derived.fill(&mut bytes).ok()?;
    Some(bytes)
}

impl StateKeys {
    /// Keys separated by white space or commas, each of 32 bytes in hexadecimal digits or base64.
    ///
    /// # Errors
    /// The fault, as the end of a sentence about their source, without any of the text.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const SEPARATORS: fn(char) -> bool =
            |character| character.is_whitespace() || character == ',';
        let mut keys = Vec::new();
        for word in text.split(SEPARATORS).filter(|word| !word.is_empty()) {
            let bytes = read_key(word).ok_or(
                "holds something that is not a key of 32 bytes in 64 hexadecimal digits or in base64; `openssl rand -hex 32` makes one",
            )?;
            keys.push(StateKey::new(&bytes).ok_or("holds a key that cannot be used")?);
        }
        if keys.is_empty() {
            return Err("holds no key; `openssl rand -hex 32` makes one");
        }
        Ok(Self(keys.into()))
    }

    /// Keys of this process alone; `None` if there is no randomness.
    pub(crate) fn random() -> Option<Self> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self([StateKey::new(&bytes)?].into()))
    }

    /// Encrypts a value that is kept under a name (AES-256-GCM); it can be opened under that name
    /// alone. `None` if there is no randomness.
    pub(crate) fn seal(&self, name: &str, value: &[u8]) -> Option<Vec<u8>> {
        let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_LEN]);
        getrandom::fill(&mut salt).ok()?;
        getrandom::fill(&mut nonce).ok()?;
        let mut text = value.to_vec();
        let first = self.0.first()?;
        let cipher = first.cipher(&salt)?;
        let once = Nonce::assume_unique_for_key(nonce);
        cipher
            .seal_in_place_append_tag(once, associated(name), &mut text)
            .ok()?;
        Some([&[VERSION], &first.id[..], &salt, &nonce, &text].concat())
    }

    /// Decrypts a value that was sealed under that name.
    ///
    /// # Errors
    /// [`OpenError`]
    pub(crate) fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (version, rest) = sealed.split_first().ok_or(OpenError::Damaged)?;
        if *version != VERSION {
            return Err(OpenError::Version);
        }
        let parts = || {
            let (id, rest) = rest.split_first_chunk::<ID_BYTES>()?;
            let (salt, rest) = rest.split_first_chunk::<SALT_BYTES>()?;
            let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
            Some((id, salt, nonce, text))
        };
        let (id, salt, nonce, text) = parts().ok_or(OpenError::Damaged)?;
        let mut keys = self.0.iter();
        let key = keys.find(|key| key.id == *id).ok_or(OpenError::Key)?;
        let mut text = text.to_vec();
        let cipher = key.cipher(salt).ok_or(OpenError::Damaged)?;
        let once = Nonce::assume_unique_for_key(*nonce);
        let opened = cipher.open_in_place(once, associated(name), &mut text);
        let length = opened.map_err(|_| OpenError::Damaged)?.len();
        text.truncate(length);
        Ok(text)
    }

    /// A key for hashes with one purpose, of the first key.
    pub(crate) fn hash_key(&self, purpose: &str) -> Option<hmac::Key> {
        let secret = &self.0.first()?.secret;
        let bytes = derive(secret, &[b"hash", purpose.as_bytes()])?;
        Some(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
    }

    /// A key for one purpose of each of the keys, the first of them first.
    pub(crate) fn derived_keys(&self, purpose: &str) -> Vec<[u8; KEY_BYTES]> {
        let keys = self.0.iter();
        keys.filter_map(|key| derive(&key.secret, &[b"key", purpose.as_bytes()]))
            .collect()
    }
}

/// Returns the data that is authenticated with the value, so that a writer of the storage cannot
/// move it to another name.
fn associated(name: &str) -> Aad<Vec<u8>> {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(name.as_bytes());
    Aad::from(bytes)
}

fn read_key(word: &str) -> Option<Vec<u8>> {
    if word.len() == 2 * KEY_BYTES && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let pairs = word.as_bytes().chunks(2);
        return pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
    }
    let bytes = STANDARD
        .decode(word)
        .or_else(|_| URL_SAFE_NO_PAD.decode(word.trim_end_matches('=')))
        .ok()?;
    (bytes.len() == KEY_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> StateKeys {
        StateKeys::parse(text).unwrap()
    }

    #[test]
    fn the_first_key_seals_and_all_keys_open() {
        let (old, new) = ("11".repeat(32), "22".repeat(32));
        let (before, during, after) = (keys(&old), keys(&format!("{new}, {old}")), keys(&new));
        let sealed = before.seal("a", b"value").unwrap();
        assert_eq!(during.open("a", &sealed), Ok(b"value".to_vec()));
        assert_eq!(after.open("a", &sealed), Err(OpenError::Key));
        let sealed = during.seal("a", b"value").unwrap();
        assert_eq!(after.open("a", &sealed), Ok(b"value".to_vec()));
        assert_eq!(before.open("a", &sealed), Err(OpenError::Key));
        assert_ne!(sealed, during.seal("a", b"value").unwrap());
    }

    #[test]
    fn a_value_opens_under_its_own_name_and_unchanged() {
        let keys = keys(&"ab".repeat(32));
        let sealed = keys.seal("tenant-a", b"secret").unwrap();
        assert_eq!(keys.open("tenant-b", &sealed), Err(OpenError::Damaged));
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(keys.open("tenant-a", &changed).is_err(), "byte {index}");
            assert!(
                keys.open("tenant-a", &sealed[..index]).is_err(),
                "{index} bytes"
            );
        }
        let mut newer = sealed.clone();
        newer[0] = VERSION + 1;
        assert_eq!(keys.open("tenant-a", &newer), Err(OpenError::Version));
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
    }

    #[test]
    fn a_key_has_32_bytes_in_hexadecimal_digits_or_base64() {
        let bytes = [7; 32];
        for (text, is_key) in [
            ("07".repeat(32), true),
            (STANDARD.encode(bytes), true),
            (URL_SAFE_NO_PAD.encode(bytes), true),
            (format!("{}\n{}\n", "07".repeat(32), "08".repeat(32)), true),
            ("07".repeat(31), false),
            (STANDARD.encode([7; 31]), false),
            ("hunter2".into(), false),
            (String::new(), false),
            (" , ".into(), false),
        ] {
            let read = StateKeys::parse(&text);
            assert_eq!(read.is_ok(), is_key, "{text}");
            assert!(!format!("{read:?}").contains("hunter2"));
        }
    }
}
