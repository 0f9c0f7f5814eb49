//! The turns of questions about tokens at the introspection endpoint. Some are kept for tokens that
//! were active before, and one address has few, so that made-up tokens do not delay other clients.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::caller::ClientKey;

/// Number of questions at a time: tokens of strangers must not become a storm at the authorization
/// server.
const MAX_QUESTIONS: usize = 32;
/// Those of them about tokens that were never active.
const MAX_NEW: usize = 24;
/// Those of them from one address.
const MAX_OF_ADDRESS: usize = 8;
/// Number of questions that wait; one more takes the place of the oldest.
const MAX_WAITING: usize = 1024;

/// Turns that are taken and waited for.
#[derive(Default)]
pub(super) struct QuestionTurns(Mutex<Questions>);

#[derive(Default)]
struct Questions {
    /// The address that each question comes from; `None` if the token was active before.
    asked: Vec<Option<ClientKey>>,
    waiting: Vec<(Option<ClientKey>, oneshot::Sender<QuestionTurn>)>,
}

/// The turn of a question, until this is dropped.
pub(super) struct QuestionTurn {
    turns: Arc<QuestionTurns>,
    address: Option<ClientKey>,
}

impl QuestionTurns {
    /// Waits for the turn of a token that comes from an address; `None` for a token that was active
    /// before. Returns `None` if newer questions took its place.
    pub(super) async fn wait(self: &Arc<Self>, address: Option<ClientKey>) -> Option<QuestionTurn> {
        let receiver = {
            let mut questions = self.0.lock();
            if questions.may_ask(address) {
                questions.asked.push(address);
                return Some(self.turn(address));
            }
            if questions.waiting.len() >= MAX_WAITING {
                questions.waiting.remove(0);
            }
            let (sender, receiver) = oneshot::channel();
            questions.waiting.push((address, sender));
            receiver
        };
        receiver.await.ok()
    }

    fn turn(self: &Arc<Self>, address: Option<ClientKey>) -> QuestionTurn {
        let turns = Arc::clone(self);
        QuestionTurn { turns, address }
    }
}

impl Questions {
    fn may_ask(&self, address: Option<ClientKey>) -> bool {
        let count = |is_counted: fn(Option<ClientKey>, Option<ClientKey>) -> bool| {
            self.asked
                .iter()
                .filter(|asked| is_counted(**asked, address))
                .count()
        };
        self.asked.len() < MAX_QUESTIONS
            && (address.is_none()
                || count(|asked, _| asked.is_some()) < MAX_NEW
                    && count(|asked, own| asked == own) < MAX_OF_ADDRESS)
    }

    /// Takes the next question that may be asked. The newest is first: if there are too many, all
    /// would end in the time limit in the order of their age.
    fn next(&mut self) -> Option<(Option<ClientKey>, oneshot::Sender<QuestionTurn>)> {
        self.waiting.retain(|(_, sender)| !sender.is_closed());
        let was_active = self
            .waiting
            .iter()
            .rposition(|(address, _)| address.is_none());
        let place = was_active.or_else(|| {
            self.waiting
                .iter()
                .rposition(|(address, _)| self.may_ask(*address))
        })?;
        let next = self.waiting.remove(place);
        self.asked.push(next.0);
        Some(next)
    }
}

impl Drop for QuestionTurn {
    fn drop(&mut self) {
        let next = {
            let mut questions = self.turns.0.lock();
            if let Some(place) = questions
                .asked
                .iter()
                .position(|asked| *asked == self.address)
            {
                questions.asked.swap_remove(place);
            }
            questions.next()
        };
        if let Some((address, sender)) = next {
            // Without a receiver, the turn ends here and goes to another.
            let _ = sender.send(self.turns.turn(address));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn address(last: u8) -> ClientKey {
        ClientKey::at([192, 0, 2, last].into())
    }

    #[tokio::test]
    async fn p45_one_address_asks_few_questions_and_tokens_that_were_active_have_turns_of_their_own()
     {
        let turns = Arc::new(QuestionTurns::default());
        let mut held = Vec::new();
        for last in 1..=3 {
            for _ in 0..MAX_OF_ADDRESS {
                held.push(
                    turns
                        .wait(Some(address(last)))
                        .now_or_never()
                        .flatten()
                        .expect("few for one address"),
                );
            }
            assert!(turns.wait(Some(address(last))).now_or_never().is_none());
        }
        assert!(
            turns.wait(Some(address(4))).now_or_never().is_none(),
            "the rest is for tokens that were active"
        );
        for _ in MAX_NEW..MAX_QUESTIONS {
            held.push(
                turns
                    .wait(None)
                    .now_or_never()
                    .flatten()
                    .expect("a token that was active"),
            );
        }
        assert!(turns.wait(None).now_or_never().is_none());
        drop(held);
        assert!(
            turns.wait(Some(address(1))).now_or_never().is_some(),
            "all turns are free again"
        );
        assert!(turns.0.lock().asked.is_empty());
    }

    #[tokio::test]
    async fn p45_of_the_questions_that_wait_the_newest_is_first_and_their_number_is_limited() {
        let turns = Arc::new(QuestionTurns::default());
        let mut held: Vec<_> = (0..MAX_OF_ADDRESS)
            .filter_map(|_| turns.wait(Some(address(1))).now_or_never()?)
            .collect();
        let mut waiting: Vec<_> = (0..=MAX_WAITING)
            .map(|_| Box::pin(turns.wait(Some(address(1)))))
            .collect();
        for wait in &mut waiting {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        held.pop();
        let newest = waiting
            .pop()
            .unwrap()
            .now_or_never()
            .flatten()
            .expect("the newest");
        assert!(
            waiting
                .remove(0)
                .now_or_never()
                .expect("the oldest is told")
                .is_none()
        );
        // Those who do not wait any more are passed over.
        waiting.truncate(1);
        drop(newest);
        assert!(waiting.remove(0).now_or_never().flatten().is_some());
    }
}
