//! What a call does: from arguments to an HTTP request, and from the reply to a result. Knows the document's operations,
//! and nothing of how tools look.

pub(crate) mod arguments;
pub(crate) mod auth;
pub(crate) mod error;
pub(crate) mod redact;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod upstream;

pub(crate) use self::arguments::validate::Validator;
pub(crate) use self::auth::forward::Forwarding;
pub(crate) use self::auth::resolve::{Credential, OperationAccess};
pub(crate) use self::auth::values::{CredentialPart, CredentialValues, Credentials};
pub(crate) use self::error::CallError;
pub(crate) use self::request::Injected;
pub use self::request::Request;
pub(crate) use self::request::target::BaseUrl;
pub(crate) use self::response::sandbox::Sandbox;
pub use self::upstream::exchange::Response;
pub(crate) use self::upstream::exchange::{CallOptions, Progress};
pub(crate) use self::upstream::{Upstream, UpstreamOptions};
