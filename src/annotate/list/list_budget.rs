//! Fits the list of tools into its budget. Where the list is over it, the largest schemas give way: all of them down to the same
//! size, so that no small tool pays for a large one.
//!
//! That size is known only once all tools are described, and to describe each of them twice would double the time of the start.
//! So it is estimated from the tools before, and only tools of which another size would make something else are described again.

use crate::spec::Diagnostic;
use crate::spec::schema::{Fit, SchemaOptions, Schemas};

/// No schema has to give way further than to this size.
const MIN_BUDGET: usize = 512;
/// The first estimate is made after so many tools, each further one after twice as many.
const FIRST_ESTIMATE: usize = 32;

/// A tool as far as its size is concerned.
pub(crate) trait SizedTool {
    /// What else its input depends on.
    type Options;
    /// What else is found out while its input is described.
    type Findings;

    /// Describes its input within limits. What had to be read loosely goes to `warnings`.
    fn describe_input(
        &mut self,
        limits: &SchemaOptions,
        options: &Self::Options,
        schemas: &mut Schemas<'_>,
        warnings: &mut Vec<String>,
        findings: &mut Self::Findings,
    ) -> Fit;

    /// About how many bytes it takes in the list.
    fn bytes(&self) -> usize;

    /// As [`SizedTool::bytes`], without its input.
    fn bytes_without_input(&self) -> usize;

    /// Where its operation stands in the document, as a JSON Pointer fragment.
    fn pointer(&self) -> &str;
}

/// Describes the inputs of tools so that the list fits.
pub(crate) struct ListBudget<'o, T: SizedTool> {
    /// How many bytes the list should take at the most.
    max_bytes: usize,
    /// The limits of a single schema.
    limits: &'o SchemaOptions,
    options: &'o T::Options,
    /// One for each tool; `None` for those that are not listed.
    described: Vec<Option<Described>>,
    /// The budget for the schema of the next tool.
    guess: usize,
    next_estimate: usize,
}

/// What is known of one tool.
struct Described {
    fit: Fit,
    /// How many bytes it takes with the budget for a single schema; `None` where that is not known, and more than it was cut to.
    whole: Option<usize>,
    /// What had to be read loosely.
    warnings: Vec<String>,
}

impl<'o, T: SizedTool> ListBudget<'o, T> {
    #[must_use]
    pub(crate) fn new(max_bytes: usize, limits: &'o SchemaOptions, options: &'o T::Options) -> Self {
        Self {
            max_bytes,
            limits,
            options,
            described: Vec::new(),
            guess: limits.budget,
            next_estimate: FIRST_ESTIMATE,
        }
    }

    /// Passes over the next tool, which is not listed.
    pub(crate) fn pass_over(&mut self) {
        self.described.push(None);
    }

    /// Describes the input of the next tool, of about `count` in all.
    pub(crate) fn describe_next(&mut self, tool: &mut T, count: usize, schemas: &mut Schemas<'_>, findings: &mut T::Findings) {
        if self.described.len() == self.next_estimate {
            self.next_estimate *= 2;
            self.guess = self.estimate(count);
        }
        let mut warnings = Vec::new();
        let fit = self.describe(tool, self.guess, schemas, &mut warnings, findings);
        self.described.push(Some(Described {
            fit,
            whole: None,
            warnings,
        }));
        let index = self.described.len() - 1;
        self.learn(index, tool, schemas, findings);
    }

    /// Describes again what the estimates were wrong about, and gives the remarks on all tools.
    pub(crate) fn finish(
        mut self,
        tools: &mut [T],
        schemas: &mut Schemas<'_>,
        diagnostics: &mut Vec<Diagnostic>,
        findings: &mut T::Findings,
    ) {
        let cap = self.learn_cap(tools, schemas, findings);
        let full = self.limits.budget;
        for (index, tool) in tools.iter_mut().enumerate() {
            let Some(known) = self.known(index) else { continue };
            let is_whole = cap.is_none_or(|cap| known.whole.is_some_and(|whole| whole <= cap));
            let budget = cap.filter(|_| !is_whole).unwrap_or(full);
            let is_same = known.fit.same_for.contains(budget);
            let fit = (!is_same).then(|| self.describe(tool, budget, schemas, &mut Vec::new(), findings));
            let Some(known) = self.described.get_mut(index).and_then(Option::as_mut) else {
                continue;
            };
            known.fit = fit.unwrap_or(known.fit);
            let warnings = std::mem::take(&mut known.warnings);
            let warnings = warnings.into_iter().chain(known.fit.warning(budget));
            diagnostics.extend(warnings.map(|warning| Diagnostic::warning(tool.pointer().to_owned(), warning)));
        }
    }

    /// Finds out what the tool takes with the budget for a single schema, where what it was described with does not tell.
    fn learn(&mut self, index: usize, tool: &mut T, schemas: &mut Schemas<'_>, findings: &mut T::Findings) {
        let full = self.limits.budget;
        let Some(known) = self.known(index) else { return };
        if known.whole.is_some() {
            return;
        }
        // What is not cut may still be arranged in another way.
        let fit = match known.fit {
            fit if fit.same_for.contains(full) => fit,
            fit if fit.is_cut => return,
            _ => self.describe(tool, full, schemas, &mut Vec::new(), findings),
        };
        self.set_whole(index, fit, tool);
    }

    fn set_whole(&mut self, index: usize, fit: Fit, tool: &T) {
        if let Some(known) = self.described.get_mut(index).and_then(Option::as_mut) {
            known.fit = fit;
            known.whole = Some(tool.bytes());
        }
    }

    /// The size that the largest tools have to give way to; `None` where the list fits as it is.
    fn learn_cap(&mut self, tools: &mut [T], schemas: &mut Schemas<'_>, findings: &mut T::Findings) -> Option<usize> {
        let full = self.limits.budget;
        loop {
            let cap = cap(self.sizes(), self.max_bytes)?;
            let mut is_known = true;
            for (index, tool) in tools.iter_mut().enumerate() {
                let Some(known) = self.known(index) else { continue };
                let least = tool.bytes_without_input() + known.fit.least_bytes_with(full);
                if known.whole.is_none() && (cap >= full || least <= cap) {
                    let fit = self.describe(tool, full, schemas, &mut Vec::new(), findings);
                    self.set_whole(index, fit, tool);
                    is_known = false;
                }
            }
            if is_known {
                return Some(cap);
            }
        }
    }

    /// The budget that the tools so far suggest, of about `count` in all.
    fn estimate(&self, count: usize) -> usize {
        let full = self.limits.budget;
        let room = self.max_bytes.saturating_mul(self.described.len()) / count.max(1);
        // What is only just over the budget may still turn out to fit.
        let slack = if self.described.iter().flatten().all(|known| known.whole.is_some()) {
            room / 4
        } else {
            0
        };
        match cap(self.sizes(), room + slack) {
            Some(_) => cap(self.sizes(), room).unwrap_or(full).min(full),
            None => full,
        }
    }

    /// How many bytes each tool takes; what is not known is more than any cap.
    fn sizes(&self) -> Vec<usize> {
        let listed = self.described.iter().flatten();
        listed.map(|known| known.whole.unwrap_or(usize::MAX)).collect()
    }

    fn known(&self, index: usize) -> Option<&Described> {
        self.described.get(index)?.as_ref()
    }

    fn describe(
        &self,
        tool: &mut T,
        max_bytes: usize,
        schemas: &mut Schemas<'_>,
        warnings: &mut Vec<String>,
        findings: &mut T::Findings,
    ) -> Fit {
        let limits = SchemaOptions {
            budget: max_bytes,
            ..self.limits.clone()
        };
        tool.describe_input(&limits, self.options, schemas, warnings, findings)
    }
}

/// The largest size that all tools of these sizes may have to fit together into `room` bytes; `None` where they fit as they are.
fn cap(mut sizes: Vec<usize>, room: usize) -> Option<usize> {
    if sizes.iter().fold(0_usize, |total, size| total.saturating_add(*size)) <= room {
        return None;
    }
    sizes.sort_unstable();
    let mut room = room;
    for (index, size) in sizes.iter().enumerate() {
        let share = room / (sizes.len() - index);
        if *size > share {
            return Some(share.max(MIN_BUDGET));
        }
        room -= size;
    }
    Some(MIN_BUDGET)
}
