//! Errors for which a document cannot be read as a whole.

use thiserror::Error;

use super::yaml::YamlError;

/// Reason for which a document cannot be read as a whole.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The bytes are not valid UTF-8 or UTF-16.
    #[error("the document is not UTF-8 text (first bad byte at offset {0})")]
    NotText(usize),
    /// The document is empty or contains only white space.
    #[error("the document is empty")]
    Empty,
    /// The text begins like JSON, but is not valid JSON.
    #[error("the document is not valid JSON")]
    NotJson(#[source] serde_json::Error),
    /// The text is neither valid JSON nor valid YAML.
    #[error("the document is neither JSON nor YAML")]
    NotYaml(#[source] YamlError),
    /// The text is an HTML page.
    #[error(
        "this is a web page (HTML), not an OpenAPI document; look on that page for the link to openapi.json or openapi.yaml, and give its address"
    )]
    WebPage,
    /// The text is JSON or YAML, but not an OpenAPI document.
    #[error("this is not an OpenAPI document: {0}")]
    NotOpenApi(String),
    /// The OpenAPI version is not supported.
    #[error("OpenAPI {0} is not supported; 2.0, 3.0, 3.1 and 3.2 are")]
    Version(String),
}
