//! What the hints of a tool allow: rules that are kept, not only told. Whoever repeats, keeps, hides or confirms a call
//! asks here.

use super::annotations::{Hint, Hints};

/// Which calls a person is asked about before they are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confirm {
    /// None.
    #[default]
    None,
    /// Those that may change or remove what exists.
    Destructive,
    /// All that are not read-only.
    Write,
}

/// Whether a call may be made again where its first try failed: a repeat must change nothing more.
#[must_use]
pub(crate) fn may_repeat(hints: &Hints) -> bool {
    hints.is_read_only() || hints.effective(Hint::Idempotent)
}

/// Whether a person has to agree first.
#[must_use]
pub(crate) fn must_confirm(hints: &Hints, confirm: Confirm) -> bool {
    match confirm {
        Confirm::None => false,
        Confirm::Destructive => hints.is_destructive(),
        Confirm::Write => !hints.is_read_only(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    #[test]
    fn the_rules_follow_the_hints() {
        for (method, repeat, destructive, write) in [
            ("GET", true, false, false),
            ("QUERY", true, false, false),
            ("POST", false, false, true),
            ("PUT", true, true, true),
            ("PATCH", false, true, true),
            ("DELETE", true, true, true),
            ("TRACE", false, true, true),
        ] {
            let hints = Hints::of_method(&Method::from_bytes(method.as_bytes()).unwrap());
            let told = (
                may_repeat(&hints),
                must_confirm(&hints, Confirm::Destructive),
                must_confirm(&hints, Confirm::Write),
            );
            assert_eq!(told, (repeat, destructive, write), "{method}");
            assert!(!must_confirm(&hints, Confirm::None));
        }
    }
}
