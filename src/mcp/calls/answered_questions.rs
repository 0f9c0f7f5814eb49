//! The questions that were answered, so that each answer counts once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use crate::caller::{ClientKey, may_take_place};

/// Answers that are remembered at the same time.
const MAX_ANSWERS: usize = 10_000;

/// The answered questions, each kept until it expires.
pub(crate) struct AnsweredQuestions {
    lifetime: Duration,
    questions: HashSet<Vec<u8>>,
    /// The same in the order of the answers.
    by_age: VecDeque<(Instant, Vec<u8>, ClientKey)>,
    /// Number of questions that each client has answered.
    held: HashMap<ClientKey, usize>,
}

impl AnsweredQuestions {
    /// Makes an empty set; a question can be answered for `lifetime`.
    pub(crate) fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            questions: HashSet::new(),
            by_age: VecDeque::new(),
            held: HashMap::new(),
        }
    }

    /// Returns true if this is the first answer to the question and there is room to remember it.
    /// An answer that cannot be remembered does not count, because it could be repeated.
    pub(crate) fn take_first_answer(
        &mut self,
        question: Vec<u8>,
        client: ClientKey,
        now: Instant,
    ) -> bool {
        self.forget_old(now);
        let own = self.held.get(&client).copied().unwrap_or_default();
        if self.questions.contains(&question)
            || !may_take_place(own, self.questions.len(), MAX_ANSWERS)
        {
            return false;
        }
        self.by_age.push_back((now, question.clone(), client));
        self.held.insert(client, own + 1);
        self.questions.insert(question)
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((at, ..)) = self.by_age.front()
            && now.saturating_duration_since(*at) >= self.lifetime
        {
            let Some((_, question, client)) = self.by_age.pop_front() else {
                return;
            };
            self.questions.remove(&question);
            if let Some(own) = self.held.get_mut(&client) {
                *own -= 1;
                if *own == 0 {
                    self.held.remove(&client);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p45_an_answer_counts_once_and_a_client_cannot_fill_the_table() {
        let mut answered = AnsweredQuestions::new(Duration::from_mins(5));
        let (one, other) = (ClientKey::named("t", b"1"), ClientKey::named("t", b"2"));
        let now = Instant::now();
        let taken = (0..20_000_u32)
            .filter(|number| answered.take_first_answer(number.to_be_bytes().to_vec(), one, now));
        assert_eq!(taken.count(), MAX_ANSWERS / 2);
        assert!(answered.take_first_answer(b"other".to_vec(), other, now));
        assert!(
            !answered.take_first_answer(b"other".to_vec(), other, now),
            "it counts once"
        );
        let later = now + Duration::from_mins(6);
        assert!(
            answered.take_first_answer(b"again".to_vec(), one, later),
            "what is old is forgotten"
        );
        assert_eq!(
            (
                answered.questions.len(),
                answered.by_age.len(),
                answered.held.len()
            ),
            (1, 1, 1)
        );
    }
}
