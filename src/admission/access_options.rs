//! Who is admitted, by the settings of the operator, and the files of tokens, which change while the
//! server runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use url::Url;

use super::jwt::OauthOptions;
use super::static_token::{KnownToken, NamedToken, StaticToken};

/// Interval at which the files of tokens and certificates are checked for changes.
pub(crate) const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

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
        let nameless = self
            .all_tokens()
            .into_iter()
            .map(|token| KnownToken { token, named: None });
        // They are last, so that a token that is there twice counts as the one with a name.
        let named = self
            .named
            .iter()
            .enumerate()
            .map(|(place, named)| KnownToken {
                token: named.token,
                named: Some(place),
            });
        nameless.chain(named).collect()
    }
}

/// Reads the files of tokens again when they change, so that tokens can be rotated without a
/// restart. Where a file cannot be read, its last tokens stay valid.
pub(super) async fn reload_tokens(
    mut access: AccessOptions,
    sender: watch::Sender<Arc<[KnownToken]>>,
) {
    let mut told = Vec::new();
    loop {
        tokio::time::sleep(RELOAD_INTERVAL).await;
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
        if problems != told {
            problems.iter().for_each(|problem| {
                tracing::warn!("a file of tokens keeps its last state: {problem}");
            });
            told = problems;
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
    }
}
