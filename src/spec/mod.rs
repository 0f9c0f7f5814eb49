//! The API as its document describes it: operations, parameters, bodies, servers and schemas. It
//! does not depend on MCP, tools or the sending of requests.

pub(crate) mod argument_names;
pub(crate) mod diagnostic;
pub(crate) mod document;
pub(crate) mod jumps;
pub(crate) mod links;
pub(crate) mod long_running;
pub(crate) mod mask;
pub(crate) mod media_type;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod paging;
pub(crate) mod pointer;
pub(crate) mod schema;

pub use self::diagnostic::{Diagnostic, Severity};
pub use self::document::Document;
pub use self::document::error::LoadError;
pub use self::document::external::ExternalReferences;
pub(crate) use self::document::revision::Revision;
pub use self::document::source::{ReadError, Source, SourceReader};
pub(crate) use self::media_type::MediaKind;
pub(crate) use self::node::Span;
pub use self::operation::Operation;
pub(crate) use self::operation::parameter::{Location, Parameter, Serialization, Style};
pub use self::operation::reader::operations;
pub(crate) use self::operation::request_body::{MediaType, RequestBody};
pub(crate) use self::operation::security::SecurityRequirement;
pub(crate) use self::operation::security_scheme::{ConsentUrls, OAuthFlow, SecurityScheme};
pub use self::operation::template::PathTemplate;
