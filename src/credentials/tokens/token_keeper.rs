//! Storage of the tokens of one scheme beyond the process, in a file and in the shared state of
//! replicas, with turns for the use of the refresh token: one process at a time, because a refresh
//! token that is used twice may revoke all of its kind (RFC 9700 section 4.13.2).
//!
//! Without the lock no refresh token is used: a call that waits is better than a family of tokens
//! that is revoked.

use std::time::Duration;

use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::time::{Instant, sleep};

use super::oauth_client::{OauthClient, exposed};
use super::stored_token::{StoredToken, TokenOwner, digest_secret};
use super::token_store::{LockedTokenStore, TokenStore, unreadable};
use crate::credentials::values::Credentials;
use crate::shared_state::connection::StateUnavailable;
use crate::shared_state::keys::OpenError;
use crate::shared_state::record::{RecordError, RecordLock, SharedRecord};

/// Time for which a process waits for its turn: a little more than the lifetime of a lock whose
/// holder has ended.
const TURN_TIMEOUT: Duration = Duration::from_secs(65);
/// Interval at which it checks for its turn.
const TURN_INTERVAL: Duration = Duration::from_millis(50);
/// Time within which replicas must offer a newer token than the one that is found, if the server
/// may have lost it.
const OFFER_TIME: Duration = Duration::from_secs(2);
/// Interval at which each replica looks for a newer token, and checks that its own still exists.
/// Less than [`OFFER_TIME`].
pub(crate) const FOLLOW_INTERVAL: Duration = Duration::from_millis(700);

const UNREACHABLE: &str = "the state that the replicas of this server share cannot be reached, and without its lock the refresh token must not be used; try again in a moment";
const UNREADABLE: &str =
    "the tokens that the replicas of this server share cannot be read; the server's log says why";
const OCCUPIED: &str = "another replica of this server takes too long to renew the access token; try again in a moment";

/// Storage of one scheme's tokens.
pub(crate) struct TokenKeeper {
    owner: TokenOwner,
    file: Option<TokenStore>,
    shared: Option<SharedTokens>,
}

struct SharedTokens {
    record: SharedRecord,
    /// The newest that this process knows of: it is offered if the server has lost it.
    newest: Mutex<Option<StoredToken>>,
}

/// A turn, during which no other process uses the refresh token.
pub(crate) struct TokenTurn<'k> {
    keeper: &'k TokenKeeper,
    lock: Option<RecordLock>,
    file: Option<LockedTokenStore>,
    pub(super) newest: Option<StoredToken>,
}

impl TokenKeeper {
    /// Makes the storage; `None` without a refresh token, or without a place to keep it.
    pub(crate) fn new(
        client: &OauthClient,
        refresh_token: Option<&SecretString>,
        credentials: &Credentials,
    ) -> Option<Self> {
        let configured = digest_secret(refresh_token?);
        let id = exposed(client.id.as_ref()).unwrap_or_default();
        let endpoint = client.endpoint.url().as_str();
        let shared = credentials.shared.as_ref().and_then(|shared| {
            let subject = [
                shared.api.as_str(),
                &client.scheme,
                endpoint,
                id,
                &configured,
            ];
            Some(SharedTokens {
                record: SharedRecord::new(&shared.state, &subject.map(str::as_bytes))?,
                newest: Mutex::default(),
            })
        });
        let file = credentials.token_store.clone();
        (file.is_some() || shared.is_some()).then(|| Self {
            owner: TokenOwner {
                id: format!("{} {endpoint} {id}", client.scheme),
                configured,
            },
            file,
            shared,
        })
    }

    /// Storage of the tokens of a login, on this machine alone.
    pub(crate) fn of_login(owner: TokenOwner, store: TokenStore) -> Self {
        Self {
            owner,
            file: Some(store),
            shared: None,
        }
    }

    /// Returns true if there are tokens of a login.
    ///
    /// # Errors
    /// The store cannot be read, which is logged; in words for a model.
    pub(crate) fn has_login(&self) -> Result<bool, &'static str> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let found = file.find_login(&self.owner);
        found
            .map(|found| found.is_some())
            .map_err(|problem| unreadable(&problem))
    }

    /// Returns true if other replicas may have newer tokens.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Waits for a turn; ends early if another process stores a token that `is_useful`.
    ///
    /// # Errors
    /// There is none, in words for a model.
    pub(crate) async fn take_turn(
        &self,
        is_useful: impl Fn(&StoredToken) -> bool,
    ) -> Result<TokenTurn<'_>, &'static str> {
        let mut turn = TokenTurn {
            keeper: self,
            lock: None,
            file: None,
            newest: None,
        };
        if let Some(shared) = &self.shared {
            turn.lock = shared.take_turn(is_useful).await?;
            turn.newest = shared.newest();
            if turn.lock.is_none() {
                return Ok(turn);
            }
        }
        if let Err(problem) = turn.read_file().await {
            turn.end().await;
            return Err(problem);
        }
        Ok(turn)
    }

    /// Takes what other replicas have stored, and offers what is newer here. Gives a token that was
    /// not known here.
    pub(crate) async fn follow(&self) -> Option<StoredToken> {
        let shared = self.shared.as_ref()?;
        let before = shared.newest().map(|token| token.generation);
        shared.compare().await.ok()?;
        let newest = shared.newest();
        let mut newest = newest.filter(|newest| before < Some(newest.generation))?;
        newest.owner = self.owner.clone();
        if let Some(file) = &self.file {
            match file.lock().await {
                Ok(locked) => locked.save(newest.clone()).await,
                Err(_) => file.save_later(newest.clone()),
            }
        }
        Some(newest)
    }
}

impl SharedTokens {
    fn newest(&self) -> Option<StoredToken> {
        self.newest.lock().clone()
    }

    /// Keeps a token unless a newer one is known.
    fn learn(&self, token: StoredToken) {
        let mut newest = self.newest.lock();
        if newest.as_ref().map(|newest| newest.generation) < Some(token.generation) {
            *newest = Some(token);
        }
    }

    /// Reads what is shared, takes a newer token over, and offers ours if that is newer. Gives
    /// whether what was found is certainly the newest: the server has it, and nobody renews it.
    async fn compare(&self) -> Result<bool, RecordError> {
        let found = self.record.read().await?;
        let generation = found.newest.as_ref().map(|(generation, _)| *generation);
        if let Some((generation, text)) = &found.newest {
            let token: Option<StoredToken> = serde_json::from_slice(text).ok();
            // A record whose generation differs from the one it is stored with was put there by a
            // third party.
            let token = token.filter(|token| token.generation == *generation);
            self.learn(token.ok_or(OpenError::Damaged)?);
        }
        let newest = self.newest();
        if let Some(newest) = newest.filter(|newest| generation < Some(newest.generation)) {
            self.offer(None, &newest).await?;
            return Ok(false);
        }
        Ok(generation.is_some() && !found.is_being_renewed)
    }

    async fn offer(
        &self,
        lock: Option<&RecordLock>,
        token: &StoredToken,
    ) -> Result<u64, StateUnavailable> {
        // The name under which it is shared binds it to its owner.
        let mut shared = token.clone();
        shared.owner = TokenOwner::default();
        let text = serde_json::to_vec(&shared).map_err(|_| StateUnavailable)?;
        self.record.offer(lock, token.generation, &text).await
    }

    /// Takes the lock, or `None` if a token that `is_useful` came meanwhile.
    async fn take_turn(
        &self,
        is_useful: impl Fn(&StoredToken) -> bool,
    ) -> Result<Option<RecordLock>, &'static str> {
        let deadline = Instant::now() + TURN_TIMEOUT;
        let lock = loop {
            if let Some(lock) = self.record.try_lock().await.map_err(|_| UNREACHABLE)? {
                break lock;
            }
            self.compare().await.map_err(problem)?;
            if self.newest().is_some_and(|newest| is_useful(&newest)) {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                return Err(OCCUPIED);
            }
            sleep(TURN_INTERVAL).await;
        };
        match self.settle(&is_useful).await {
            Ok(()) => Ok(Some(lock)),
            Err(problem) => {
                self.record.release(lock).await;
                Err(problem)
            }
        }
    }

    /// Finds out which token is the newest. If the server may have lost it, or the last renewal was
    /// interrupted, the other replicas get the time to offer theirs.
    async fn settle(&self, is_useful: &impl Fn(&StoredToken) -> bool) -> Result<(), &'static str> {
        let waits = if self.compare().await.map_err(problem)? {
            OFFER_TIME.saturating_sub(self.record.connected_for())
        } else {
            OFFER_TIME
        };
        if waits.is_zero() || self.newest().is_some_and(|newest| is_useful(&newest)) {
            return Ok(());
        }
        sleep(waits).await;
        self.compare().await.map(|_| ()).map_err(problem)
    }
}

/// Describes an error in words for a model.
fn problem(error: RecordError) -> &'static str {
    match error {
        RecordError::Unavailable(_) => UNREACHABLE,
        RecordError::Unreadable(error) => {
            tracing::error!("a shared refresh token cannot be read: {error}");
            UNREADABLE
        }
    }
}

impl TokenTurn<'_> {
    async fn read_file(&mut self) -> Result<(), &'static str> {
        let keeper = self.keeper;
        let Some(file) = &keeper.file else {
            return Ok(());
        };
        let locked = file.lock().await?;
        let stored = locked.find(&keeper.owner)?;
        self.file = Some(locked);
        let generation = self.newest.as_ref().map(|newest| newest.generation);
        if let Some(stored) = stored.filter(|stored| generation < Some(stored.generation)) {
            if let Some(shared) = &keeper.shared {
                shared.learn(stored.clone());
                shared.offer(None, &stored).await.map_err(|_| UNREACHABLE)?;
            }
            self.newest = Some(stored);
        }
        Ok(())
    }

    /// Makes sure that the turn lasts and that there is room for the new token, before the refresh
    /// token is used.
    ///
    /// # Errors
    /// It does not, or the new token could not be written; in words for a model.
    pub(crate) async fn begin_renewal(&mut self) -> Result<(), &'static str> {
        if let Some(file) = &mut self.file {
            file.reserve().await?;
        }
        let Some(shared) = &self.keeper.shared else {
            return Ok(());
        };
        let Some(lock) = &self.lock else {
            return Err(OCCUPIED);
        };
        let begun = shared.record.begin_renewal(lock).await;
        let begun = begun.map_err(|_| UNREACHABLE)?;
        begun.then_some(()).ok_or(OCCUPIED)
    }

    /// Stores a token that replaces the newest one, and ends the turn.
    pub(crate) async fn store(mut self, mut token: StoredToken) {
        let newest = self.newest.as_ref();
        token.generation = newest.map_or(1, |newest| newest.generation + 1);
        token.owner = self.keeper.owner.clone();
        token.login = newest.and_then(|newest| newest.login.clone());
        if let Some(file) = self.file.take() {
            file.save(token.clone()).await;
        }
        if let Some(shared) = &self.keeper.shared {
            shared.learn(token.clone());
            if shared.offer(self.lock.as_ref(), &token).await.is_err() {
                tracing::error!(
                    "a refresh token that was replaced cannot be shared yet; this process keeps it and offers it until the shared state answers"
                );
                // The lock stays until it ends by itself, so that no process uses the old token.
                self.lock = None;
            }
        }
        self.end().await;
    }

    /// Ends the turn.
    pub(crate) async fn end(mut self) {
        drop(self.file.take());
        if let (Some(shared), Some(lock)) = (&self.keeper.shared, self.lock.take()) {
            shared.record.release(lock).await;
        }
    }
}
