//! What the API is: its document, operations, parameters, bodies, servers and schemas. Knows nothing of MCP, of tools, or
//! of how a request is sent.

pub mod body;
mod choice;
pub mod diagnostic;
pub mod document;
pub mod external;
pub mod file;
pub mod json;
pub mod keys;
mod marks;
mod named;
pub mod node;
pub mod operation;
pub mod overlay;
pub mod parameter;
mod parameters;
pub mod pointer;
pub mod reference;
pub mod response;
pub mod schema;
pub mod security;
pub mod seen;
pub mod server;
pub mod source;
pub mod template;
pub mod text;
mod yaml;

pub use body::{MediaKind, MediaType, RequestBody};
pub use diagnostic::{Diagnostic, Severity};
pub use document::{Document, LoadError, Span, Version};
pub use external::ExternalReferences;
pub use operation::{Operation, operations};
pub use parameter::{Location, Parameter, Serialization, Style};
pub use security::{SecurityRequirement, SecurityScheme};
pub use seen::Seen;
pub use source::{ReadError, Source};
pub use template::PathTemplate;
