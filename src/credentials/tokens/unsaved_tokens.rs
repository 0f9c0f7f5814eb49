//! Tokens that could not be written to the token store yet: the refresh tokens in the file before
//! them are used up.

use parking_lot::Mutex;

use super::stored_token::{StoredToken, TokenOwner};

/// The newest tokens of each owner that the file lacks.
#[derive(Debug, Default)]
pub(crate) struct UnsavedTokens(Mutex<Unsaved>);

#[derive(Debug, Default)]
struct Unsaved {
    tokens: Vec<(TokenOwner, StoredToken)>,
    /// True if a task tries to write them.
    is_retried: bool,
}

impl UnsavedTokens {
    /// Keeps a token unless a newer one is kept. Returns true if the caller must begin to write it.
    pub(crate) fn keep(&self, owner: &TokenOwner, token: &StoredToken) -> bool {
        let mut unsaved = self.0.lock();
        if unsaved
            .of(owner)
            .is_none_or(|known| known.generation <= token.generation)
        {
            unsaved.tokens.retain(|(other, _)| other.id != owner.id);
            unsaved.tokens.push((owner.clone(), token.clone()));
        }
        !std::mem::replace(&mut unsaved.is_retried, true)
    }

    /// The token of an owner that is kept here, or the one that is `stored`, whichever is newer.
    pub(crate) fn newest(
        &self,
        owner: &TokenOwner,
        stored: Option<StoredToken>,
    ) -> Option<StoredToken> {
        let unsaved = self.0.lock().of(owner).cloned();
        match (unsaved, stored) {
            (Some(unsaved), Some(stored)) if stored.generation > unsaved.generation => Some(stored),
            (unsaved, stored) => unsaved.or(stored),
        }
    }

    /// Returns the tokens that are kept here.
    pub(crate) fn all(&self) -> Vec<(TokenOwner, StoredToken)> {
        self.0.lock().tokens.clone()
    }

    /// A token of that generation is written.
    pub(crate) fn forget(&self, owner: &TokenOwner, generation: u64) {
        let is_left = |(other, token): &(TokenOwner, StoredToken)| {
            other.id != owner.id || token.generation > generation
        };
        self.0.lock().tokens.retain(is_left);
    }

    /// Returns true if there is nothing left to write; the task that wrote may then end.
    pub(crate) fn is_done(&self) -> bool {
        let mut unsaved = self.0.lock();
        unsaved.is_retried = !unsaved.tokens.is_empty();
        !unsaved.is_retried
    }
}

impl Unsaved {
    fn of(&self, owner: &TokenOwner) -> Option<&StoredToken> {
        let found = self.tokens.iter().find(|(other, _)| other == owner);
        found.map(|(_, token)| token)
    }
}
