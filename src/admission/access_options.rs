//! Who is admitted, by the settings of the operator: static bearer tokens, those without a name and
//! those of `auth_tokens` with a name, claims and scopes of their own, of which only digests are kept
//! in memory; and the files of tokens, which change while the server runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::sync::watch;
use url::Url;

use super::jwt::OauthOptions;
use crate::caller::client_grant::ClientGrant;
use crate::caller::{AuthenticatedClient, ClientKey};
use crate::observe;

/// Interval at which the files of tokens and certificates are checked for changes.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// Authentication of clients.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// Tokens from the settings.
    pub tokens: Vec<StaticToken>,
    /// Files of tokens, which are read again when they change.
    pub token_files: Vec<(PathBuf, Vec<StaticToken>)>,
    /// Tokens with names.
    pub named: Vec<NamedToken>,
    /// Tokens of an OAuth issuer.
    pub oauth: Option<OauthOptions>,
    /// The scope of those of its tokens whose users agree to calls.
    pub approver_scope: Option<String>,
    /// The URL that clients use for `/mcp`; by default that of the address we listen on.
    pub public_url: Option<Url>,
}

impl AccessOptions {
    /// Returns true if clients need no authentication.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.has_static_tokens() && self.oauth.is_none()
    }

    /// Returns true if some clients have static tokens.
    pub(crate) fn has_static_tokens(&self) -> bool {
        !(self.tokens.is_empty() && self.token_files.is_empty())
            || self.named.iter().any(|named| !named.approves)
    }

    /// Returns true if there are people who may agree to calls.
    pub(crate) fn has_approvers(&self) -> bool {
        self.approver_scope.is_some() || self.named.iter().any(|named| named.approves)
    }

    /// Returns the tokens without names.
    pub(crate) fn all_tokens(&self) -> Vec<StaticToken> {
        let files = self.token_files.iter().flat_map(|(_, tokens)| tokens);
        self.tokens.iter().chain(files).copied().collect()
    }

    pub(super) fn known_tokens(&self) -> Arc<[KnownToken]> {
        let nameless = self.all_tokens().into_iter();
        let nameless = nameless.map(|token| KnownToken { token, named: None });
        // They are last, so that a token that is there twice counts as the one with a name.
        let named = self.named.iter().zip(0..).map(|(named, place)| KnownToken {
            token: named.token,
            named: Some(place),
        });
        nameless.chain(named).collect()
    }
}

/// Looks at files from time to time. `read` returns what is wrong with them, which is logged when it
/// changes, after these words.
pub(crate) async fn watch_files(words: &str, mut read: impl FnMut() -> Vec<String>) {
    let mut told = Vec::new();
    loop {
        tokio::time::sleep(RELOAD_INTERVAL).await;
        let problems = read();
        if problems != told {
            for problem in &problems {
                tracing::warn!("{words}: {problem}");
            }
            told = problems;
        }
    }
}

/// Reads the files of tokens again when they change, so that tokens can be rotated without a
/// restart. Where a file cannot be read, its last tokens stay valid.
pub(super) async fn reload_tokens(
    mut access: AccessOptions,
    sender: watch::Sender<Arc<[KnownToken]>>,
) {
    watch_files("a file of tokens keeps its last state", || {
        let mut problems = Vec::new();
        for (path, tokens) in &mut access.token_files {
            match StaticToken::in_file(path) {
                Ok(read) => *tokens = read,
                Err(wrong) => problems.extend(wrong),
            }
        }
        let nameless = access.all_tokens();
        let mut seen: Vec<StaticToken> = access.named.iter().map(|named| named.token).collect();
        for (place, named) in access.named.iter_mut().enumerate() {
            let Some(path) = &named.file else { continue };
            match NamedToken::in_file(path) {
                Ok(read) if read == named.token => {}
                Ok(read) if nameless.contains(&read) || seen.contains(&read) => {
                    problems.push(format!(
                        "`{}`: its token is that of another client",
                        path.display()
                    ));
                }
                Ok(read) => {
                    named.token = read;
                    if let Some(seen) = seen.get_mut(place) {
                        *seen = read;
                    }
                }
                Err(wrong) => problems.extend(wrong),
            }
        }
        let tokens = access.known_tokens();
        let count = tokens.len();
        let changed = sender.send_if_modified(|current| {
            let changed = **current != *tokens;
            *current = tokens;
            changed
        });
        if changed {
            tracing::info!("the tokens of clients were read again; there are {count}");
        }
        problems
    })
    .await;
}

/// The minimum length of a token, in characters; shorter ones can be guessed.
const MIN_TOKEN_LEN: usize = 16;

/// The SHA-256 digest of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StaticToken(pub(super) [u8; 32]);

impl std::fmt::Debug for StaticToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[token]")
    }
}

impl StaticToken {
    /// Reads a token from a variable or from a line of a file.
    ///
    /// # Errors
    /// The fault, without the text itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("is empty".into());
        }
        // RFC 6750 section 2.1 allows fewer characters; this refuses only what a header cannot
        // carry as one word.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("holds spaces or characters beyond ASCII, which no client can send".into());
        }
        if text.len() < MIN_TOKEN_LEN {
            return Err(format!(
                "is shorter than {MIN_TOKEN_LEN} characters and can be guessed; `openssl rand -hex 32` makes a good one"
            ));
        }
        Ok(Self::of(text.as_bytes()))
    }

    /// Reads tokens, one on each line; empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// All problems, each with its line number.
    pub fn in_text(text: &str) -> Result<Vec<Self>, Vec<String>> {
        let lines = text.lines().map(str::trim).enumerate();
        let (mut tokens, mut problems) = (Vec::new(), Vec::new());
        for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            match Self::parse(line) {
                Ok(token) => tokens.push(token),
                Err(problem) => problems.push(format!("the token in line {} {problem}", index + 1)),
            }
        }
        if tokens.is_empty() && problems.is_empty() {
            problems.push("there is no token".into());
        }
        if problems.is_empty() {
            Ok(tokens)
        } else {
            Err(problems)
        }
    }

    /// Reads the tokens of a file.
    ///
    /// # Errors
    /// All problems, each with the path of the file.
    pub fn in_file(path: &Path) -> Result<Vec<Self>, Vec<String>> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| vec![format!("`{shown}` cannot be read: {error}")])?;
        Self::in_text(&text).map_err(|problems| {
            let named = problems
                .iter()
                .map(|problem| format!("`{shown}`: {problem}"));
            named.collect()
        })
    }

    fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

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
        let name = observe::audit().map(|_| format!("token:{}", self.name).into());
        let key = ClientKey::named("named token", self.name.as_bytes());
        (!self.approves).then(|| AuthenticatedClient::new(key, name, self.granted.clone()))
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
    fn what_can_be_guessed_or_not_sent_is_no_token() {
        for wrong in [
            "",
            "hunter2",
            "fifteen-letters",
            "with a space in the middle",
            "ümlaut-ümlaut-ümlaut",
            "line\nbreak-and-more-of-it",
        ] {
            let problem = StaticToken::parse(wrong).unwrap_err();
            assert!(wrong.is_empty() || !problem.contains(wrong), "{problem}");
        }
        assert!(StaticToken::parse("sixteen-letters!").is_ok());
    }

    #[test]
    fn a_text_holds_one_token_a_line() {
        let tokens =
            StaticToken::in_text("# old\nfirst-token-of-mine\n\n  second-token-of-mine \r\n")
                .unwrap();
        assert_eq!(tokens.len(), 2);
        for (presented, expected) in [
            ("first-token-of-mine", true),
            ("second-token-of-mine", true),
            ("third-token-of-mine!", false),
            ("first-token-of-min", false),
            ("", false),
        ] {
            assert_eq!(
                tokens.contains(&StaticToken::of(presented.as_bytes())),
                expected,
                "{presented}"
            );
        }
        assert_eq!(StaticToken::in_text("x\ny").unwrap_err().len(), 2);
        assert_eq!(
            StaticToken::in_text("\n# only this\n").unwrap_err(),
            ["there is no token"]
        );
    }

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
