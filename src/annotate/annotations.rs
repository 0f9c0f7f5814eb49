//! The hints of one tool, each with its source.
//!
//! The verb table: what an HTTP method says about a tool. The whole mapping lives here and knows
//! nothing of tools.

use std::fmt;

use http::Method;
use serde::{Deserialize, Serialize};

/// The member `annotations` of a tool (MCP, `ToolAnnotations`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A title that a person wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Box<str>>,
    /// [`Hint::ReadOnly`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// [`Hint::Destructive`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// [`Hint::Idempotent`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// [`Hint::OpenWorld`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// One of MCP's four behavioural hints (`ToolAnnotations`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// `readOnlyHint`: the tool changes nothing.
    ReadOnly,
    /// `destructiveHint`: it may change or remove what exists.
    Destructive,
    /// `idempotentHint`: a repeated call with the same arguments changes nothing more.
    Idempotent,
    /// `openWorldHint`: it deals with things outside of this server.
    OpenWorld,
}

/// Effect of a call: the class of a tool, by its hints.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Effect {
    /// It changes nothing.
    Read,
    /// It adds something, or changes nothing that exists.
    Write,
    /// It may change or remove what exists.
    Destructive,
}

impl Effect {
    /// All of them, the most harmless first.
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Destructive];

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        self.into()
    }
}

/// Source of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// MCP's default, because nothing else says anything about the hint.
    Default,
    /// `readOnlyHint: true`: what changes nothing is neither destructive, nor does a repeated call
    /// change anything.
    ReadOnly,
    /// The HTTP method; see `for_method`.
    Method,
    /// A requirement of the operation.
    Evidence(&'static str),
    /// A word of its name or its description.
    Word(&'static str),
    /// An extension of the document.
    Document(&'static str),
    /// A rule of the configuration file, counted from 1.
    Rule(usize),
    /// The command line.
    CommandLine,
}

/// A hint's value and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sourced {
    /// The value.
    pub value: bool,
    /// The source.
    pub reason: Reason,
}

/// All hints of a tool. None at all means that MCP's defaults apply; as soon as one is set, all are
/// written out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints([Option<Sourced>; 4]);

impl Hint {
    /// All of them, in the order in which people read them.
    pub const ALL: [Self; 4] = [
        Self::ReadOnly,
        Self::Destructive,
        Self::Idempotent,
        Self::OpenWorld,
    ];

    /// The key in `annotations`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnlyHint",
            Self::Destructive => "destructiveHint",
            Self::Idempotent => "idempotentHint",
            Self::OpenWorld => "openWorldHint",
        }
    }

    /// The key without `Hint`.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.key().trim_end_matches("Hint")
    }

    /// MCP's default for an absent hint, which is the careful value (MCP, `ToolAnnotations`).
    #[must_use]
    pub fn default_value(self) -> bool {
        matches!(self, Self::Destructive | Self::OpenWorld)
    }

    /// The hint of that key, with or without `Hint` at its end.
    #[must_use]
    pub fn parse(key: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|hint| hint.key() == key || hint.word() == key)
    }
}

impl Hints {
    /// The row of the verb table.
    #[must_use]
    pub fn of_method(method: &Method) -> Self {
        let Some((values, _)) = for_method(method) else {
            return Self::default();
        };
        let reason = Reason::Method;
        Self(values.map(|value| Some(Sourced { value, reason })))
    }

    /// The value that is written out, and its source; `None` if the tool has no such hint.
    #[must_use]
    pub fn get(&self, hint: Hint) -> Option<Sourced> {
        self.0.get(hint as usize).copied().flatten()
    }

    /// Returns true if that is written out.
    fn says(&self, hint: Hint) -> bool {
        self.get(hint).is_some_and(|sourced| sourced.value)
    }

    /// Describes the source of the value.
    pub(crate) fn source(&self, hint: Hint) -> String {
        match self.get(hint) {
            Some(sourced) => sourced.reason.to_string(),
            None => "MCP default, not written out".to_owned(),
        }
    }

    /// The value that counts: the one that is written out, else MCP's default.
    #[must_use]
    pub fn effective(&self, hint: Hint) -> bool {
        let sourced = self.get(hint);
        let value = sourced.map_or(hint.default_value(), |sourced| sourced.value);
        // What is also called destructive does not count as read-only.
        value && !(hint == Hint::ReadOnly && self.says(Hint::Destructive))
    }

    /// Sets one hint. A tool that is no longer read-only loses the hints that only followed from
    /// that: MCP's defaults, the careful values, take their place. All other hints stay as they
    /// are.
    pub fn set(&mut self, hint: Hint, value: bool, reason: Reason) {
        if hint == Hint::ReadOnly
            && !value
            && let Some(before) = self.get(hint).filter(|before| before.value)
        {
            for follower in [Hint::Destructive, Hint::Idempotent] {
                let known = self.get(follower).map(|known| known.reason);
                if known == Some(before.reason) || known == Some(Reason::ReadOnly) {
                    self.set(follower, follower.default_value(), Reason::Default);
                }
            }
        }
        if let Some(slot) = self.0.get_mut(hint as usize) {
            *slot = Some(Sourced { value, reason });
        }
    }

    /// Returns true if the value would make the tool look less dangerous than it does.
    #[must_use]
    pub fn would_loosen(&self, hint: Hint, value: bool) -> bool {
        value != hint.default_value() && value != self.effective(hint)
    }

    /// Returns true if any hint is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Completes the hints after all sources: MCP's defaults are written out beside the hints that
    /// are set, and what follows from `readOnlyHint` is applied.
    ///
    /// Between `readOnlyHint: true` and `destructiveHint: true`, the stronger source wins. If the
    /// operator says both, or a document says that a destructive method only reads, the
    /// contradiction stays and counts as destructive.
    pub fn settle(&mut self) {
        if !self.is_set() {
            return;
        }
        for hint in Hint::ALL {
            if self.get(hint).is_none() {
                self.set(hint, hint.default_value(), Reason::Default);
            }
        }
        let (Some(read_only), Some(destructive)) =
            (self.get(Hint::ReadOnly), self.get(Hint::Destructive))
        else {
            return;
        };
        if read_only.value && destructive.value {
            if destructive.reason.rank() > read_only.reason.rank() {
                self.set(Hint::ReadOnly, false, destructive.reason);
            } else if destructive.reason == Reason::Default
                || (read_only.reason.is_operator() && !destructive.reason.is_operator())
            {
                self.set(Hint::Destructive, false, Reason::ReadOnly);
            }
        }
        let is_declared = |sourced: Sourced| sourced.reason.rank() >= Reason::Document("").rank();
        let idempotent = self.get(Hint::Idempotent);
        if self.is_read_only() && !idempotent.is_some_and(|hint| hint.value || is_declared(hint)) {
            self.set(Hint::Idempotent, true, Reason::ReadOnly);
        }
    }

    /// Returns true if the tool changes nothing. A tool that is also called destructive does not
    /// count as read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.effective(Hint::ReadOnly)
    }

    /// Returns true if the tool may change or remove what exists. A tool without hints may (MCP's
    /// default).
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        !self.is_read_only() && self.effective(Hint::Destructive)
    }

    /// Returns the class of the tool. One that is said to be read-only as well as destructive is
    /// destructive.
    pub(crate) fn effect(&self) -> Effect {
        if self.is_destructive() {
            Effect::Destructive
        } else if self.is_read_only() {
            Effect::Read
        } else {
            Effect::Write
        }
    }

    /// Returns true if it is called read-only and destructive at once.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        self.says(Hint::ReadOnly) && self.says(Hint::Destructive)
    }

    /// Returns the annotations that clients get; `title` is for `annotations.title`, which stays
    /// empty unless a person wrote one.
    #[must_use]
    pub fn to_annotations(&self, title: Option<Box<str>>) -> Option<ToolAnnotations> {
        (self.is_set() || title.is_some()).then(|| {
            let value = |hint| self.get(hint).map(|_| self.effective(hint));
            ToolAnnotations {
                title,
                read_only_hint: value(Hint::ReadOnly),
                destructive_hint: value(Hint::Destructive),
                idempotent_hint: value(Hint::Idempotent),
                open_world_hint: value(Hint::OpenWorld),
            }
        })
    }

    /// One line that explains a hint; `method` is the operation's.
    #[must_use]
    pub fn because(&self, hint: Hint, method: &Method) -> String {
        let Some(Sourced { value, reason }) = self.get(hint) else {
            return format!(
                "{} has no known meaning, so MCP's default applies",
                method.as_str()
            );
        };
        match reason {
            Reason::Default => "MCP's default".to_owned(),
            Reason::ReadOnly => "it follows from readOnly=true".to_owned(),
            Reason::Method if hint == Hint::OpenWorld => {
                "the API is outside of this server".to_owned()
            }
            Reason::Method => {
                let because = for_method(method).map_or("", |(_, because)| because);
                format!("{}: {because}", method.as_str())
            }
            Reason::Evidence(evidence) => format!("the operation has {evidence}"),
            Reason::Word(word) => format!("its name says `{word}`"),
            Reason::Document(extension) => format!("the document's author says so (`{extension}`)"),
            Reason::Rule(_) | Reason::CommandLine => {
                format!("the operator declared {}={value}", hint.word())
            }
        }
    }
}

impl Reason {
    /// Returns true if the operator set the hint: by a rule of the configuration file, or on the
    /// command line.
    #[must_use]
    pub fn is_operator(self) -> bool {
        matches!(self, Self::Rule(_) | Self::CommandLine)
    }

    /// Returns the word, if the source is one.
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns the strength of the source; rules and the command line are equally strong, because
    /// both are the operator's.
    fn rank(self) -> u8 {
        match self {
            Self::Default | Self::ReadOnly => 0,
            Self::Method => 1,
            Self::Evidence(_) | Self::Word(_) => 2,
            Self::Document(_) => 3,
            Self::Rule(_) | Self::CommandLine => 4,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("MCP default"),
            Self::ReadOnly => f.write_str("follows from readOnly=true"),
            Self::Method => f.write_str("method"),
            Self::Evidence(evidence) => f.write_str(evidence),
            Self::Word(word) => write!(f, "word `{word}`"),
            Self::Document(extension) => write!(f, "document `{extension}`"),
            Self::Rule(number) => write!(f, "config rule {number}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// The hints for a method, or `None` for a method that says nothing (TRACE and any unknown one):
/// then MCP's defaults apply, which are the careful ones.
///
/// | method | readOnly | destructive | idempotent | openWorld |
/// |---|---|---|---|---|
/// | GET, HEAD, OPTIONS, QUERY | true | false | true | true |
/// | POST | false | false | false | true |
/// | PUT | false | true | true | true |
/// | PATCH | false | true | false | true |
/// | DELETE | false | true | true | true |
///
/// The method compares without case. The text is the reason of the row, for readers.
pub(crate) fn for_method(method: &Method) -> Option<([bool; 4], &'static str)> {
    // An API is an external system to this server, even if its data is internal.
    const OPEN_WORLD: bool = true;
    let reads = [true, false, true, OPEN_WORLD];
    Some(match method.as_str().to_ascii_uppercase().as_str() {
        // RFC 9110 section 9.2.1 calls these safe, 9.2.2 makes every safe method idempotent.
        // QUERY is both by its draft.
        "GET" | "QUERY" => (reads, "a safe, idempotent read"),
        "HEAD" => (reads, "a read without a body"),
        "OPTIONS" => (reads, "asks what is possible"),
        "POST" => (
            [false, false, false, OPEN_WORLD],
            "creates; what exists stays as it is, a repeat creates again",
        ),
        // RFC 9110 section 9.3.4.
        "PUT" => (
            [false, true, true, OPEN_WORLD],
            "replaces what was there; a repeat leaves the same state",
        ),
        // RFC 5789 section 2 does not promise that a repeat changes nothing more.
        "PATCH" => (
            [false, true, false, OPEN_WORLD],
            "changes what was there; a repeat may change it again",
        ),
        // That a second answer says 404 does not change the state again (RFC 9110 section 9.3.5).
        "DELETE" => (
            [false, true, true, OPEN_WORLD],
            "removes; a repeat removes nothing more",
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a10_every_hint_is_written_out_as_soon_as_one_is_set() {
        let mut hints = Hints::of_method(&Method::TRACE);
        assert_eq!(hints.to_annotations(None), None);
        hints.set(Hint::ReadOnly, true, Reason::CommandLine);
        hints.settle();
        let told = hints.to_annotations(None).unwrap();
        assert_eq!(
            (
                told.read_only_hint,
                told.destructive_hint,
                told.idempotent_hint,
                told.open_world_hint
            ),
            (Some(true), Some(false), Some(true), Some(true))
        );
    }

    #[test]
    fn a8_the_annotations_own_title_stays_empty_unless_a_person_wrote_one() {
        let hints = Hints::of_method(&Method::GET);
        assert_eq!(hints.to_annotations(None).unwrap().title, None);
        assert_eq!(
            hints
                .to_annotations(Some("Look".into()))
                .unwrap()
                .title
                .as_deref(),
            Some("Look")
        );
    }

    #[test]
    fn a12_a_tool_without_hints_counts_as_what_mcp_says_by_default() {
        let hints = Hints::of_method(&Method::TRACE);
        assert_eq!(
            Hint::ALL.map(|hint| hints.effective(hint)),
            [false, true, false, true]
        );
        assert!(!hints.is_read_only() && hints.is_destructive());
    }

    #[test]
    fn what_is_called_read_only_and_destructive_is_not_taken_for_a_read() {
        let mut hints = Hints::of_method(&Method::GET);
        hints.set(Hint::Destructive, true, Reason::Document("x-mcp"));
        assert!(hints.is_contradiction() && hints.is_destructive() && !hints.is_read_only());
        hints.settle();
        assert!(
            !hints.effective(Hint::ReadOnly) && !hints.is_contradiction(),
            "the stronger word"
        );
        // An operator who says both is asked by `check` which of them is meant.
        let mut hints = Hints::of_method(&Method::PUT);
        hints.set(Hint::ReadOnly, true, Reason::Rule(1));
        hints.set(Hint::Destructive, true, Reason::CommandLine);
        hints.settle();
        assert!(hints.is_contradiction() && hints.is_destructive());
    }

    /// `rdio`, with `-` for what is false.
    fn letters(hints: &Hints) -> String {
        let letters = Hint::ALL.into_iter().zip("rdio".chars());
        letters
            .map(|(hint, letter)| if hints.effective(hint) { letter } else { '-' })
            .collect()
    }

    #[test]
    fn a_tool_that_is_no_longer_read_only_gets_the_careful_defaults() {
        for (method, set, expected) in [
            (Method::GET, &[(Hint::ReadOnly, false)][..], "-d-o"),
            (Method::GET, &[(Hint::Destructive, true)], "-d-o"),
            (
                Method::GET,
                &[(Hint::ReadOnly, false), (Hint::Destructive, false)],
                "---o",
            ),
            (
                Method::GET,
                &[(Hint::Destructive, false), (Hint::ReadOnly, false)],
                "---o",
            ),
            (
                Method::GET,
                &[(Hint::ReadOnly, false), (Hint::ReadOnly, true)],
                "r-io",
            ),
            (Method::POST, &[(Hint::ReadOnly, false)], "---o"),
            (Method::PUT, &[(Hint::ReadOnly, false)], "-dio"),
        ] {
            for reason in [
                Reason::Document("x-mcp"),
                Reason::Rule(1),
                Reason::CommandLine,
            ] {
                let mut hints = Hints::of_method(&method);
                for (hint, value) in set {
                    hints.set(*hint, *value, reason);
                }
                hints.settle();
                assert_eq!(letters(&hints), expected, "{method} {set:?} {reason}");
            }
        }
    }

    #[test]
    fn a_read_only_tool_is_idempotent_and_only_the_operator_makes_a_destructive_method_one() {
        for (method, reason, expected) in [
            (Method::POST, Reason::Document("x-mcp"), "r-io"),
            (Method::POST, Reason::Rule(1), "r-io"),
            (Method::TRACE, Reason::Document("x-mcp"), "r-io"),
            (Method::DELETE, Reason::CommandLine, "r-io"),
            (Method::PATCH, Reason::Rule(1), "r-io"),
            (Method::DELETE, Reason::Document("x-mcp"), "-dio"),
            (Method::PATCH, Reason::Document("x-mcp"), "-d-o"),
        ] {
            let mut hints = Hints::of_method(&method);
            hints.set(Hint::ReadOnly, true, reason);
            hints.settle();
            assert_eq!(letters(&hints), expected, "{method} {reason}");
        }
    }
}

#[cfg(test)]
mod hints_tests {
    use super::*;

    fn row(method: &str) -> Option<[bool; 4]> {
        let (hints, because) = for_method(&Method::from_bytes(method.as_bytes()).unwrap())?;
        assert!(!because.is_empty());
        Some(hints)
    }

    const READ: Option<[bool; 4]> = Some([true, false, true, true]);

    #[test]
    fn a1_get_reads() {
        assert_eq!(row("GET"), READ);
    }
    #[test]
    fn a2_post_adds() {
        assert_eq!(row("POST"), Some([false, false, false, true]));
    }
    #[test]
    fn a3_put_replaces() {
        assert_eq!(row("PUT"), Some([false, true, true, true]));
    }
    #[test]
    fn a4_patch_changes() {
        assert_eq!(row("PATCH"), Some([false, true, false, true]));
    }
    #[test]
    fn a5_delete_removes() {
        assert_eq!(row("DELETE"), Some([false, true, true, true]));
    }
    #[test]
    fn a6_head_options_and_query_read() {
        assert_eq!(
            (row("HEAD"), row("OPTIONS"), row("QUERY")),
            (READ, READ, READ)
        );
    }
    #[test]
    fn a7_an_unknown_method_says_nothing() {
        assert_eq!((row("TRACE"), row("PURGE")), (None, None));
    }
    #[test]
    fn a9_the_method_compares_without_case() {
        assert_eq!((row("get"), row("Delete")), (READ, row("DELETE")));
    }
}
