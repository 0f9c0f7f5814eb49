//! Schemas whose `oneOf` is checked as `anyOf` in arguments.

use super::object_kind::ObjectKind;
use super::walk::WalkedObject;
use crate::spec::{Diagnostic, Span};
use crate::text::counted;

/// Counts such schemas, and knows the first.
#[derive(Default)]
pub(super) struct LoosenedChoices {
    count: usize,
    first: Option<(Span, String)>,
}

impl LoosenedChoices {
    pub(super) fn add(&mut self, object: &WalkedObject<'_, '_>) {
        let choice = object
            .get("oneOf")
            .filter(|choice| choice.text().starts_with('['));
        let Some(choice) = choice.filter(|_| object.kind == Some(ObjectKind::SCHEMA)) else {
            return;
        };
        self.count += 1;
        let span = choice.span();
        let is_first = |first: Span| (span.file, span.start) < (first.file, first.start);
        if self
            .first
            .as_ref()
            .is_none_or(|(first, _)| is_first(*first))
        {
            self.first = Some((span, object.place_of("oneOf")));
        }
    }

    /// One diagnostic for all of them, at the first.
    pub(super) fn diagnostic(self) -> Option<Diagnostic> {
        let (span, place) = self.first?;
        let message = format!(
            "{} with `oneOf`, from here on: in arguments it is read as `anyOf`, so that a value which fits several branches is sent, and the API decides",
            counted(self.count, "schema")
        );
        let mut diagnostic = Diagnostic::warning(place, message);
        diagnostic.span = Some(span);
        Some(diagnostic)
    }
}
