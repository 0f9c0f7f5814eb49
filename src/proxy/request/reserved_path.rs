//! Paths of other operations, which a value with slashes must not reach.

use percent_encoding::percent_decode_str;

use crate::spec::PathTemplate;
use crate::spec::operation::template::TemplatePart;

/// Character that represents an encoded slash in the reading of a path: servers differ about whether it separates segments. No URL that is
/// sent holds it.
pub(crate) const MAYBE_SLASH: char = '\u{2}';

/// Paths that an operation answers: its template, decoded and in lower case, because servers differ in the paths that they treat as the
/// same.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    pieces: Vec<PathPiece>,
    /// True if its operation has its own servers; it may then follow any other base path.
    has_own_base: bool,
    /// True if values without slashes must not reach it either.
    from_any_value: bool,
}

#[derive(Debug, Clone)]
enum PathPiece {
    Literal(String),
    /// One character or more, without a slash.
    Segment,
    /// One character or more.
    Segments,
}

impl PathPattern {
    /// The paths of a template. `spans_segments` says of which variables a value may hold slashes.
    #[must_use]
    pub(crate) fn of(template: &PathTemplate, spans_segments: impl Fn(&str) -> bool) -> Self {
        let mut pieces = Vec::new();
        for segment in &template.segments {
            pieces.push(PathPiece::Literal("/".to_owned()));
            pieces.extend(segment.iter().map(|part| match part {
                TemplatePart::Literal(literal) => PathPiece::Literal(normalized(literal)),
                TemplatePart::Variable(name) if spans_segments(name) => PathPiece::Segments,
                TemplatePart::Variable(_) => PathPiece::Segment,
            }));
        }
        Self {
            pieces,
            has_own_base: false,
            from_any_value: false,
        }
    }

    /// The same, which no value may reach, with slashes or without.
    #[must_use]
    pub(crate) fn against_any_value(mut self) -> Self {
        self.from_any_value = true;
        self
    }

    /// Returns true if it concerns a value: one that spans segments, or any.
    #[must_use]
    pub(crate) fn concerns(&self, is_spanning: bool) -> bool {
        is_spanning || self.from_any_value
    }

    /// The same for an operation with servers of its own, whose base path is not compared.
    #[must_use]
    pub(crate) fn behind_any_base(mut self) -> Self {
        self.has_own_base = true;
        self
    }

    /// Returns true if a finished path is one of them: `full` with the server's base path, `path` without it. Servers differ about a slash
    /// at the end, so it does not count.
    #[must_use]
    pub(crate) fn is_reached_by(&self, full: &str, path: &str) -> bool {
        let path = if self.has_own_base { full } else { path };
        self.matches(path) || self.matches(&format!("{path}/"))
    }

    /// Returns true if the path of a finished URL, without the server's base path, is one of them.
    #[must_use]
    pub(crate) fn matches(&self, path: &str) -> bool {
        let path = normalized(path);
        let bytes = path.as_bytes();
        // At which offsets what was matched so far may end.
        let mut ends = vec![false; bytes.len() + 1];
        let starts = if self.has_own_base { ends.len() } else { 1 };
        ends.iter_mut().take(starts).for_each(|start| *start = true);
        for piece in &self.pieces {
            let mut next = vec![false; ends.len()];
            for start in ends.iter().enumerate().filter(|(_, is_end)| **is_end).map(|(offset, _)| offset) {
                let rest = bytes.get(start..).unwrap_or_default();
                let (shortest, longest) = match piece {
                    PathPiece::Literal(literal) if begins_with(rest, literal.as_bytes()) => (literal.len(), literal.len()),
                    PathPiece::Literal(_) => continue,
                    PathPiece::Segment => (1, rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len())),
                    PathPiece::Segments => (1, rest.len()),
                };
                let reached = next.get_mut(start + shortest..(start + longest + 1).max(start + shortest));
                reached.unwrap_or_default().fill(true);
            }
            ends = next;
        }
        ends.last().is_some_and(|is_end| *is_end)
    }

    /// Returns true if this answers every path of `template` already if its values hold no slash; a slash then does not reach more paths.
    #[must_use]
    pub(crate) fn covers(&self, template: &PathTemplate) -> bool {
        // A character that no template and no URL holds represents any value.
        const ANY_VALUE: &str = "\u{1}";
        let mut path = String::new();
        for segment in &template.segments {
            path.push('/');
            for part in segment {
                path.push_str(match part {
                    TemplatePart::Literal(literal) => literal,
                    TemplatePart::Variable(_) => ANY_VALUE,
                });
            }
        }
        self.matches(&path)
    }
}

/// Returns true if a path begins with a literal; [`MAYBE_SLASH`] counts as a slash.
fn begins_with(path: &[u8], literal: &[u8]) -> bool {
    let is_same = |(found, expected): (&u8, &u8)| found == expected || *expected == b'/' && char::from(*found) == MAYBE_SLASH;
    path.len() >= literal.len() && path.iter().zip(literal).all(is_same)
}

/// Decodes a text of a path and folds its case: paths that are equal so may be the same to a server.
pub(crate) fn normalized(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(template: &str, spans: bool) -> PathPattern {
        PathPattern::of(&PathTemplate::parse(template).unwrap(), |_| spans)
    }

    #[test]
    fn a_pattern_matches_the_paths_of_its_operation() {
        for (template, path, one, many) in [
            ("/v1/projects/{p}:purge", "/v1/projects/a%3Apurge", true, true),
            ("/v1/projects/{p}:purge", "/V1/Projects/a:PURGE", true, true),
            ("/v1/projects/{p}:purge", "/v1/projects/a/b:purge", false, true),
            ("/v1/projects/{p}:purge", "/v1/projects/:purge", false, false),
            ("/v1/{a}/{b}", "/v1/x/y", true, true),
            ("/v1/{a}/{b}", "/v1/x/y/z", false, true),
            ("/v1/{a}/{b}", "/v1/x", false, false),
            ("/v1/{a}.{b}/raw", "/v1/x.y.z/raw", true, true),
            ("/", "/", true, true),
        ] {
            let matched = (pattern(template, false).matches(path), pattern(template, true).matches(path));
            assert_eq!(matched, (one, many), "{template} {path}");
        }
    }

    #[test]
    fn a_pattern_covers_a_template_that_it_answers_whatever_the_values_are() {
        for (other, own, expected) in [
            ("/v1/{topic}", "/v1/{name}", true),
            ("/{version}/{name}", "/v1/{name}", true),
            ("/v1/projects/{p}:purge", "/v1/{name}", false),
            ("/v1/{a}/{b}", "/v1/{name}", false),
        ] {
            let own = PathTemplate::parse(own).unwrap();
            assert_eq!(pattern(other, true).covers(&own), expected, "{other}");
        }
    }
}
