//! The name of one API among several, which is part of URLs, of tool names, of variables and of logs;
//! and the introduction of a server to clients and people: its name, title, description, website, icon
//! and instructions.

use std::fmt;
use std::sync::Arc;

use crate::observe::metrics::labels::ApiLabel;
use crate::spec::Document;
use crate::text::{name_from_title, one_line, truncate};

/// The longest name that is made from a title, in bytes: clients limit the names of servers.
pub(crate) const MAX_NAME_BYTES: usize = 32;
/// The longest title, in bytes.
pub(crate) const MAX_TITLE_BYTES: usize = 200;
/// The longest description, in bytes.
pub(crate) const MAX_SUMMARY_BYTES: usize = 500;
/// The longest instructions of an operator, in bytes: with the sentences that the server adds, they
/// are short enough for every client.
pub(crate) const MAX_INSTRUCTIONS_BYTES: usize = 1500;

/// Introduction of a server. What is not set comes from the document of its API.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Name for programs; a slug of the title unless set.
    pub name: Option<String>,
    /// Name for people.
    pub title: Option<String>,
    /// Description in a sentence.
    pub description: Option<String>,
    /// Address of a page about the server.
    pub website: Option<String>,
    /// Icon.
    pub icon: Option<AboutIcon>,
    /// Instructions for the model, in place of the description of the document.
    pub instructions: Option<String>,
}

/// Icon of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboutIcon {
    /// An `https` URL, or a `data:` URL with the icon.
    pub src: String,
    /// Its media type, if that is known.
    pub media_type: Option<&'static str>,
    /// `WIDTHxHEIGHT` in pixels, or `any`, if that is known.
    pub size: Option<String>,
}

impl About {
    /// The same, with what is not set taken from the document. Its instructions stay what they are:
    /// the description of a document is shortened, and those of an operator are not.
    pub(super) fn complete(self, document: &Document) -> Self {
        let title = self
            .title
            .unwrap_or_else(|| truncate(&one_line(document.title()), MAX_TITLE_BYTES));
        let summary = || {
            let text = truncate(&one_line(document.summary()?), MAX_SUMMARY_BYTES);
            (!text.is_empty()).then_some(text)
        };
        let logo = || {
            Some(AboutIcon {
                src: document.logo()?.to_string(),
                media_type: None,
                size: None,
            })
        };
        Self {
            name: self
                .name
                .or_else(|| Some(name_from_title(&title, MAX_NAME_BYTES))),
            title: Some(title),
            description: self.description.or_else(summary),
            website: self
                .website
                .or_else(|| document.website().map(ToString::to_string)),
            icon: self.icon.or_else(logo),
            instructions: self.instructions,
        }
    }
}

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
        let begins_with_letter = text.starts_with(|first: char| first.is_ascii_lowercase());
        if !begins_with_letter || text.len() > MAX_CHARACTERS || !text.bytes().all(is_legal) {
            return Err(format!(
                "`{}` is not a name for an API; a name has at most {MAX_CHARACTERS} lower-case letters, digits, `_` and `-`, and begins with a letter",
                truncate(&one_line(text), 64)
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
