//! Errors for which a document cannot be read as a whole.

use std::error::Error as StdError;

use thiserror::Error;

/// Reason for which a document cannot be read as a whole, or an overlay cannot be applied to it.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct LoadError {
    text: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// True if the text is JSON or YAML, but not an OpenAPI document.
    pub(crate) is_other_format: bool,
}

impl LoadError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            source: None,
            is_other_format: false,
        }
    }

    /// An error because of another one.
    pub(super) fn of(text: &str, source: impl StdError + Send + Sync + 'static) -> Self {
        Self {
            source: Some(Box::new(source)),
            ..Self::new(text)
        }
    }

    /// The text begins like JSON, but is not valid JSON.
    pub(super) fn not_json(error: serde_json::Error) -> Self {
        Self::of("the document is not valid JSON", error)
    }

    /// The text is JSON or YAML, but not an OpenAPI document.
    pub(super) fn not_open_api(why: &str) -> Self {
        Self {
            is_other_format: true,
            ..Self::new(format!("this is not an OpenAPI document: {why}"))
        }
    }
}
