//! What the API is: its document, operations, parameters, bodies, servers and schemas. Knows nothing of MCP, of tools, or
//! of how a request is sent.

pub(crate) mod body;
mod choice;
pub(crate) mod diagnostic;
pub(crate) mod document;
pub(crate) mod external;
pub(crate) mod file;
pub(crate) mod json;
pub(crate) mod keys;
mod marks;
mod named;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod overlay;
pub(crate) mod parameter;
mod parameters;
pub(crate) mod pointer;
pub(crate) mod reference;
pub(crate) mod response;
pub(crate) mod schema;
pub(crate) mod security;
pub(crate) mod seen;
pub(crate) mod server;
pub(crate) mod source;
pub(crate) mod template;
pub(crate) mod text;
mod yaml;

pub(crate) use body::{MediaKind, MediaType, RequestBody};
pub use diagnostic::{Diagnostic, Severity};
pub(crate) use document::Span;
pub use document::{Document, LoadError};
pub use external::ExternalReferences;
pub use operation::{Operation, operations};
pub(crate) use parameter::{Location, Parameter, Serialization, Style};
pub(crate) use security::{SecurityRequirement, SecurityScheme};
pub(crate) use seen::Seen;
pub use source::{ReadError, Source};
pub use template::PathTemplate;
