//! The introduction of a server to clients and people: its name, title, description, website, icon
//! and instructions.

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
