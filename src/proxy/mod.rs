//! Execution of calls: from arguments to an HTTP request, and from the reply to a result. It
//! depends on the document's operations, but not on the form of tools.

pub(crate) mod arguments;
pub(crate) mod binding;
pub(crate) mod call;
pub(crate) mod exchange;
#[cfg(test)]
mod mask_proptests;
pub(crate) mod pages;
pub(crate) mod request;
pub(crate) mod tenants;
pub(crate) mod upstream;
pub(crate) mod waiting;

pub(crate) use self::arguments::check::{ArgumentChecks, CheckedArguments};
pub(crate) use self::arguments::placement::{with_schema_names, with_wire_names};
pub(crate) use self::arguments::repair::EmptyArgument;
pub(crate) use self::arguments::ruled::ArgumentRules;
pub(crate) use self::binding::{Binder, BindingOptions, BoundOperation, link_etags};
pub use self::call::OnMissingCredential;
pub(crate) use self::call::ask::Ask;
pub(crate) use self::call::{ApiProxy, Call, Ending};
pub(crate) use self::exchange::CallOptions;
pub(crate) use self::pages::RequestedPages;
pub use self::request::target::Destination;
pub use self::tenants::{TenantEntry, TenantOptions, TenantSource};
pub(crate) use self::upstream::UpstreamOptions;
