//! Declarations of an operation that may be done only after its first reply.

use super::document::Document;
use super::node::{Node, Object};

/// Headers of a 202 with the URL of the status.
const STATUS_HEADERS: [&str; 3] = ["location", "operation-location", "azure-asyncoperation"];

/// Declaration that an operation may be done only after its first reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LongRunning {
    /// True if it declares the status 202 or `2XX`.
    pub is_accepted: bool,
    /// True if its 202 declares a header with the URL of the status.
    pub names_status: bool,
    /// `x-ms-long-running-operation`, with the place of the result.
    pub extension: Option<FinalState>,
}

/// Place of the result of an operation: `final-state-via` in `x-ms-long-running-operation-options`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalState {
    /// It is not said.
    Unsaid,
    /// The status itself (`azure-async-operation`, `operation-location`).
    Status,
    /// The URL of `Location`.
    Location,
    /// The URL of the request.
    Original,
}

impl LongRunning {
    /// Reads what an Operation Object says.
    pub(crate) fn read(document: &Document, operation: &Object<'_>) -> Self {
        // Most operations declare neither, and their responses are not opened for it.
        let mentions = |responses: &Node<'_>| {
            let text = responses.text().as_bytes();
            ["\"202\"", "\"2XX\"", "\"2xx\""]
                .iter()
                .any(|key| memchr::memmem::find(text, key.as_bytes()).is_some())
        };
        let responses = operation.get("responses").filter(mentions);
        let declared = responses.and_then(Node::object).unwrap_or_default();
        let accepted = declared
            .get("202")
            .and_then(|response| document.object(response));
        let headers = accepted.unwrap_or_default().object("headers");
        let names_status = |(name, _): (&str, _)| {
            STATUS_HEADERS
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        };
        let is_long = operation.is_true("x-ms-long-running-operation");
        Self {
            is_accepted: declared
                .iter()
                .any(|(status, _)| matches!(status, "202" | "2XX" | "2xx")),
            names_status: headers.iter().any(names_status),
            extension: is_long.then(|| {
                let options = operation.object("x-ms-long-running-operation-options");
                match options.text("final-state-via").as_deref() {
                    Some("azure-async-operation" | "operation-location") => FinalState::Status,
                    Some("location") => FinalState::Location,
                    Some("original-uri") => FinalState::Original,
                    _ => FinalState::Unsaid,
                }
            }),
        }
    }
}
