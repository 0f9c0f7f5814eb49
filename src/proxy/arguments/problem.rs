//! A problem of an argument, and the branch of a union that a value is meant for.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};

/// Problem of the arguments.
pub(super) struct Problem {
    /// A clause for the model, with the place that it is about.
    pub(super) text: String,
    pub(super) kind: ProblemKind,
    /// The JSON Pointer of its place.
    pub(super) pointer: String,
    /// Number of levels of its place below the arguments.
    pub(super) level: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemKind {
    /// The value is of another type. Whether the schema accepts only null.
    Type {
        accepts_only_null: bool,
    },
    /// The value is not the one, or one of those, that the schema lists.
    Constant,
    /// The text does not match its `format`.
    Format,
    Other,
}

impl Problem {
    pub(super) fn is_about_format(&self) -> bool {
        self.kind == ProblemKind::Format
    }
}

impl ProblemKind {
    pub(super) fn of(error: &ValidationError<'_>) -> Self {
        match error.kind() {
            ValidationErrorKind::Type { kind } => Self::Type {
                accepts_only_null: matches!(kind, TypeKind::Single(JsonType::Null)),
            },
            ValidationErrorKind::Enum { .. } | ValidationErrorKind::Constant { .. } => {
                Self::Constant
            }
            ValidationErrorKind::Format { .. } => Self::Format,
            _ => Self::Other,
        }
    }
}

/// The branch that is meant, of those that refuse a value.
pub(super) enum BranchChoice {
    /// The only one that it can be.
    Meant(Vec<Problem>),
    /// The one with the fewest problems.
    Nearest(Vec<Problem>),
}

/// The problems of the branch that is meant by a value at that level: of the only one that accepts
/// its type, or else of the only one that is not null, as in `anyOf: [X, {type: null}]`; of the
/// only one whose constants it has.
pub(super) fn meant_branch(mut refused: Vec<Vec<Problem>>, level: usize) -> BranchChoice {
    let refuses = |problems: &Vec<Problem>, by: &dyn Fn(&Problem) -> bool| problems.iter().any(by);
    let by_type = |problem: &Problem| {
        problem.level == level && matches!(problem.kind, ProblemKind::Type { .. })
    };
    let by_null = |problem: &Problem| {
        let only_null = ProblemKind::Type {
            accepts_only_null: true,
        };
        problem.level == level && problem.kind == only_null
    };
    let by_constant =
        |problem: &Problem| problem.level <= level + 1 && problem.kind == ProblemKind::Constant;
    for by in [
        &by_type as &dyn Fn(&Problem) -> bool,
        &by_null,
        &by_constant,
    ] {
        let left = refused
            .iter()
            .filter(|problems| !refuses(problems, by))
            .count();
        if left > 0 {
            refused.retain(|problems| !refuses(problems, by));
        }
        if let [_] = refused.as_slice() {
            return BranchChoice::Meant(refused.pop().unwrap_or_default());
        }
    }
    // A text that does not match its format is sent all the same.
    if let Some(only_formats) = refused
        .iter()
        .position(|problems| problems.iter().all(Problem::is_about_format))
    {
        return BranchChoice::Meant(refused.swap_remove(only_formats));
    }
    BranchChoice::Nearest(refused.into_iter().min_by_key(Vec::len).unwrap_or_default())
}
