//! The name of one API among several: part of URLs, of tool names, of variables and of logs.

use std::fmt;
use std::sync::Arc;

use crate::observe::metrics::labels::ApiLabel;

/// Last segment of `/mcp/readonly`, which no API can have as its name.
const RESERVED: &str = "readonly";
/// The longest name, in characters.
const MAX_CHARACTERS: usize = 32;

/// The name of one API among several: `[a-z][a-z0-9_-]{0,31}`, but not `readonly`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiName(Arc<str>);

impl ApiName {
    /// Reads a name.
    ///
    /// # Errors
    /// A sentence on what a name may be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_legal =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let begins_with_letter = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase());
        if !begins_with_letter || text.len() > MAX_CHARACTERS || !text.bytes().all(is_legal) {
            return Err(format!(
                "`{}` is not a name for an API; a name has at most {MAX_CHARACTERS} lower-case letters, digits, `_` and `-`, and begins with a letter",
                crate::text::truncate(&crate::text::one_line(text), 64)
            ));
        }
        if text == RESERVED {
            return Err(format!(
                "`{RESERVED}` is not a name for an API, because `/mcp/{RESERVED}` serves the read-only tools of all"
            ));
        }
        Ok(Self(text.into()))
    }

    /// The name as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as it is written in names of environment variables.
    #[must_use]
    pub fn in_variables(&self) -> String {
        self.0.to_ascii_uppercase().replace('-', "_")
    }

    /// The label in metrics of an API of that name; none of one that is alone.
    pub(crate) fn metrics_label(name: Option<&Self>) -> ApiLabel {
        ApiLabel::new(name.map(Self::as_str))
    }

    /// Returns true if two names are the same in variables: names that differ only in `-` and `_`
    /// are.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.in_variables() == other.in_variables()
    }
}

impl fmt::Display for ApiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_fit_for_urls_and_variables() {
        for name in [
            "a",
            "pets",
            "pets-v2",
            "a_b",
            "readonly2",
            "a23456789_123456789_123456789_12",
        ] {
            assert_eq!(ApiName::parse(name).unwrap().as_str(), name);
        }
        for name in [
            "",
            "Pets",
            "2pets",
            "_a",
            "-a",
            "a.b",
            "a/b",
            "ä",
            "readonly",
            "a b",
            "a%62",
            "a23456789_123456789_123456789_123",
        ] {
            assert!(ApiName::parse(name).is_err(), "{name}");
        }
        let [one, other] = ["a-b", "a_b"].map(|name| ApiName::parse(name).unwrap());
        assert!(one.is_like(&other) && one != other);
        assert_eq!(one.in_variables(), "A_B");
    }
}
