//! OpenAPI documents: what is read, and the tools that it becomes.

mod annotations;
mod check_findings;
mod compared;
mod corpus;
mod descriptions;
mod discovery;
mod enforcement;
pub mod from_a_url;
mod hostile_documents;
mod large_apis;
mod mutated;
mod petstore_tools;
mod reload;
mod size_limits;
