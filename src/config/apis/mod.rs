//! Several APIs in one server: the settings under each name of `apis`, those of one API and those
//! of the whole process. There is no inheritance: a setting of one API in any other place is an
//! error.

pub(crate) mod about;
pub(crate) mod admission;
pub(crate) mod choice;
pub(crate) mod documents;
pub(crate) mod file;
pub(crate) mod keys;
pub(crate) mod named;
#[cfg(test)]
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod tenants;
pub(crate) mod variables;
