//! Why a document cannot be read as a whole.

use thiserror::Error;

use super::yaml::YamlError;

/// Why a document cannot be read as a whole.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The bytes are not text.
    #[error("the document is not UTF-8 text (first bad byte at offset {0})")]
    NotText(usize),
    /// There are no bytes but white space.
    #[error("the document is empty")]
    Empty,
    /// The text begins like JSON and is not JSON.
    #[error("the document is not valid JSON")]
    NotJson(#[source] serde_json::Error),
    /// The text is neither JSON nor YAML.
    #[error("the document is neither JSON nor YAML")]
    NotYaml(#[source] YamlError),
    /// A page for people.
    #[error(
        "this is a web page (HTML), not an OpenAPI document; look on that page for the link to openapi.json or openapi.yaml, and give its address"
    )]
    WebPage,
    /// The text is JSON or YAML, but not an OpenAPI document.
    #[error("this is not an OpenAPI document: {0}")]
    NotOpenApi(String),
    /// The version is not one that is read.
    #[error("OpenAPI {0} is not supported; 2.0, 3.0, 3.1 and 3.2 are")]
    Version(String),
}
