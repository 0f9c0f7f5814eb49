//! Several APIs in one server: what stands under each name of `apis`, and which settings concern one API and which the whole
//! process. Nothing is inherited: a setting of one API that stands anywhere else is an error.

pub(crate) mod admission;
pub(crate) mod choice;
pub(crate) mod file;
pub(crate) mod keys;
pub(crate) mod named;
pub(crate) mod oauth_client;
#[cfg(test)]
pub(crate) mod schema;
pub(crate) mod scopes;
pub(crate) mod secrets;
pub(crate) mod tenants;
pub(crate) mod text_list;
pub(crate) mod variables;
