//! Tokens of `auth_tokens`: static tokens with a name, claims and scopes of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

use super::static_token::StaticToken;
use crate::caller::client_grant::ClientGrant;
use crate::caller::{AuthenticatedClient, ClientKey};
use crate::observe;

/// Static token with a name.
#[derive(Clone)]
pub struct NamedToken {
    pub(crate) name: String,
    pub(crate) token: StaticToken,
    /// The file that is read again when it changes; none for a token of a variable.
    pub(crate) file: Option<PathBuf>,
    /// True if its holder agrees to calls, and may do nothing else.
    pub(crate) approves: bool,
    pub(crate) granted: ClientGrant,
}

impl std::fmt::Debug for NamedToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl NamedToken {
    /// Reads the token of a file, which must be the only one.
    ///
    /// # Errors
    /// All problems, each with the path of the file.
    pub(crate) fn in_file(path: &Path) -> Result<StaticToken, Vec<String>> {
        match StaticToken::in_file(path)?.as_slice() {
            [only] => Ok(*only),
            several => Err(vec![format!(
                "`{}` holds {} tokens, and a name is for one",
                path.display(),
                several.len()
            )]),
        }
    }

    /// Returns the client that has shown the token; `None` for the token of a person who agrees to
    /// calls. It is counted and logged by the name.
    pub(super) fn client(&self) -> Option<AuthenticatedClient> {
        (!self.approves).then(|| AuthenticatedClient {
            key: ClientKey::named("named token", self.name.as_bytes()),
            name: observe::audit().map(|_| Arc::from(format!("token:{}", self.name))),
            granted: self.granted.clone(),
            subject: None,
            digest: None,
        })
    }
}

/// Digest of a token that is accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownToken {
    pub(super) token: StaticToken,
    /// Index of the token among those with a name, if it is one.
    pub(super) named: Option<usize>,
}

impl KnownToken {
    /// Finds the token that was presented, in constant time. Of two that are equal, the last
    /// counts.
    pub(super) fn find<'t>(presented: &[u8], tokens: &'t [Self]) -> Option<&'t Self> {
        let presented = StaticToken::of(presented);
        let mut found = u64::MAX;
        for (place, known) in (0..).zip(tokens) {
            found.conditional_assign(&place, known.token.0.ct_eq(&presented.0));
        }
        tokens.get(usize::try_from(found).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_whole_text() {
        let known = |text: &str, named| KnownToken {
            token: StaticToken::parse(text).unwrap(),
            named,
        };
        let twice = "a-token-that-is-there-twice";
        let tokens = [
            known("the-first-token-of-all", None),
            known(twice, None),
            known(twice, Some(0)),
            known("the-last-token-of-all", Some(1)),
        ];
        for (presented, expected) in [
            ("the-first-token-of-all", Some(None)),
            (twice, Some(Some(0))),
            ("the-last-token-of-all", Some(Some(1))),
            ("the-last-token-of-al", None),
            ("", None),
        ] {
            assert_eq!(
                KnownToken::find(presented.as_bytes(), &tokens).map(|known| known.named),
                expected,
                "{presented}"
            );
        }
        assert!(KnownToken::find(b"", &[]).is_none());
    }
}
