//! Execution of calls: from arguments to an HTTP request, and from the reply to a result. It
//! depends on the document's operations, but not on the form of tools.

pub(crate) mod arguments;
pub(crate) mod auth;
pub(crate) mod binding;
pub(crate) mod call;
pub(crate) mod caller;
pub(crate) mod client_values;
pub(crate) mod error;
pub(crate) mod exchange;
pub(crate) mod files;
pub(crate) mod pages;
pub(crate) mod redact;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod tenants;
pub(crate) mod upstream;
pub(crate) mod waiting;

pub(crate) use self::arguments::check::{ArgumentChecks, CheckedArguments};
pub(crate) use self::arguments::property_names::{with_schema_names, with_wire_names};
pub(crate) use self::arguments::repair::EmptyArgument;
pub(crate) use self::arguments::ruled::ArgumentRules;
pub(crate) use self::auth::forward::Forwarding;
pub(crate) use self::auth::values::{CredentialPart, CredentialValues, Credentials};
pub(crate) use self::binding::{Binder, BindingOptions, BoundOperation, link_etags};
pub(crate) use self::call::ask::Ask;
pub use self::call::begin::OnMissingCredential;
pub(crate) use self::call::{ApiProxy, Call, Ending};
pub use self::caller::Caller;
pub use self::caller::memory_budget::MemoryBudget;
pub(crate) use self::error::CallError;
pub(crate) use self::exchange::CallOptions;
pub(crate) use self::pages::RequestedPages;
pub use self::request::base_url::Destination;
pub use self::response::Reply;
pub(crate) use self::response::filter;
pub(crate) use self::response::render::{OutputContract, render_error};
pub(crate) use self::response::result_notes::NoteKind;
pub(crate) use self::response::sandbox::Sandbox;
pub(crate) use self::response::tool_result::ToolResult;
pub(crate) use self::tenants::Tenant;
pub use self::tenants::{TenantEntry, TenantOptions, TenantSource};
pub(crate) use self::upstream::UpstreamOptions;
pub(crate) use crate::outbound::payload::Payload;
pub use crate::outbound::request::Request;
