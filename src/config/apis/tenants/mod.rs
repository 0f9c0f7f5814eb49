//! Tenants: calls of one API that go to different base URLs, as a claim or a header of the client
//! says.

pub(crate) mod resolve;
pub(crate) mod settings;
