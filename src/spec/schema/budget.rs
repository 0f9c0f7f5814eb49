//! A limit in bytes, and by which other limits a schema would have been completed in the same way.

use std::cell::Cell;

/// The limits, both ends included, under which every decision about a schema's size is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetRange {
    from: usize,
    to: usize,
}

impl BudgetRange {
    #[must_use]
    pub(crate) fn contains(self, max_bytes: usize) -> bool {
        (self.from..=self.to).contains(&max_bytes)
    }
}

/// A limit in bytes that remembers what was decided by it.
#[derive(Debug)]
pub(crate) struct SchemaBudget {
    max_bytes: usize,
    same: Cell<BudgetRange>,
}

impl SchemaBudget {
    #[must_use]
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            same: Cell::new(BudgetRange { from: 0, to: usize::MAX }),
        }
    }

    /// How much of the limit may be used before the last touch, which adds descriptions, and before escapes count.
    #[must_use]
    pub(crate) fn early(&self) -> usize {
        early(self.max_bytes)
    }

    /// Whether so many bytes are too many.
    pub(crate) fn is_exceeded_by(&self, bytes: usize) -> bool {
        self.decide(bytes)
    }

    /// Whether so many bytes are too many while the last touch is still to come.
    pub(crate) fn is_exceeded_early_by(&self, bytes: usize) -> bool {
        self.decide(limit_for_early(bytes))
    }

    /// Whether the limit is below so many bytes. Nothing may be decided by that but whether it is worth to find out more.
    #[must_use]
    pub(crate) fn is_below(&self, bytes: usize) -> bool {
        self.max_bytes < bytes
    }

    /// Another limit may give another schema, whatever was decided.
    pub(crate) fn pin(&self) {
        self.same.set(BudgetRange {
            from: self.max_bytes,
            to: self.max_bytes,
        });
    }

    /// The limits under which all decisions would have been the same.
    #[must_use]
    pub(crate) fn same(&self) -> BudgetRange {
        self.same.get()
    }

    /// Whether the limit is below the `least` one that would be enough.
    fn decide(&self, least: usize) -> bool {
        let same = self.same.get();
        let is_exceeded = self.max_bytes < least;
        self.same.set(if is_exceeded {
            BudgetRange {
                to: same.to.min(least.saturating_sub(1)),
                ..same
            }
        } else {
            BudgetRange {
                from: same.from.max(least),
                ..same
            }
        });
        is_exceeded
    }
}

/// Some of a limit is kept back for the descriptions that the last touch adds, and for escapes.
fn early(max_bytes: usize) -> usize {
    max_bytes - max_bytes / 12
}

/// The least limit of which [`early`] is at least `bytes`.
fn limit_for_early(bytes: usize) -> usize {
    // Within one of it, by rounding.
    let about = bytes.saturating_add(bytes / 11).saturating_sub(1);
    (about..=about.saturating_add(3))
        .find(|limit| early(*limit) >= bytes)
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_limit_in_the_range_decides_alike(limit in 0..5000_usize, sizes in proptest::collection::vec((0..6000_usize, any::<bool>()), 0..6)) {
            let decide = |limit: usize| {
                let budget = SchemaBudget::new(limit);
                let decisions: Vec<bool> = sizes
                    .iter()
                    .map(|(bytes, early)| if *early { budget.is_exceeded_early_by(*bytes) } else { budget.is_exceeded_by(*bytes) })
                    .collect();
                (decisions, budget.same())
            };
            let (decisions, same) = decide(limit);
            prop_assert!(same.contains(limit));
            for other in 0..6000 {
                prop_assert_eq!(same.contains(other), decide(other).0 == decisions, "{}", other);
            }
            for (index, (bytes, early)) in sizes.iter().enumerate() {
                let limit = if *early { limit - limit / 12 } else { limit };
                prop_assert_eq!(decisions[index], *bytes > limit);
            }
        }
    }
}
