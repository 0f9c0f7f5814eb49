//! `openapi-mcp` turns an OpenAPI document into an MCP server: one annotated tool per operation,
//! and each tool call forwarded to the API as an HTTP request.
//!
//! The `openapi-mcp` binary is the product. This library is what the binary is made of, for
//! programs that want the same tools inside a process of their own: load a document, list its
//! tools, call one, serve all of them.
//!
//! # Serving an API
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use openapi_mcp::{Api, ApiOptions, Destination, Document, McpServer, OutboundOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let document = Document::parse(std::fs::read("petstore.yaml")?, None)?;
//! let client = openapi_mcp::http_client(&OutboundOptions::default())?;
//! let options = ApiOptions {
//!     destination: Destination::Fixed("https://petstore.example/api/v1".parse()?),
//!     ..ApiOptions::default()
//! };
//! // Operations that cannot become tools are named in the diagnostics.
//! let (api, diagnostics) = Api::build(document, options, client)?;
//! for tool in api.tools() {
//!     println!("{}: {:?}", tool.name, tool.annotations());
//! }
//!
//! let stop = tokio_util::sync::CancellationToken::new();
//! openapi_mcp::serve_stdio(McpServer::new(Arc::new(api)), stop).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Calling an operation with a credential
//!
//! [`Credentials`] are given by the names of the document's security schemes. [`CallOptions`] limit
//! a call, [`UpstreamOptions`] the calls to one origin, and [`Forwarding`] lists the headers of the
//! caller that the API gets.
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use http::{HeaderMap, HeaderName, HeaderValue};
//! use openapi_mcp::{
//!     Api, ApiOptions, CallOptions, Caller, Credentials, Destination, Document, Forwarding, OutboundOptions, UpstreamOptions,
//! };
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let document = Document::parse(std::fs::read("petstore.yaml")?, None)?;
//! let key = std::env::var("PETSTORE_KEY")?;
//! let language = HeaderName::from_static("accept-language");
//! let options = ApiOptions {
//!     destination: Destination::Fixed("https://petstore.example/api/v1".parse()?),
//!     credentials: Some(Credentials {
//!         variables: BTreeMap::from([(Credentials::suffix("apiKey"), key.into())]),
//!         ..Credentials::default()
//!     }),
//!     forward: Forwarding {
//!         headers: vec![(language.clone(), language.clone())],
//!     },
//!     call: CallOptions {
//!         timeout: Duration::from_secs(10),
//!         ..CallOptions::default()
//!     },
//!     upstream: UpstreamOptions {
//!         rate: Some(5.0),
//!         ..UpstreamOptions::default()
//!     },
//!     ..ApiOptions::default()
//! };
//! let client = openapi_mcp::http_client(&OutboundOptions::default())?;
//! let (api, _) = Api::build(document, options, client)?;
//!
//! let caller = Caller::default().with_headers(HeaderMap::from_iter([(language, HeaderValue::from_static("fr"))]));
//! let arguments = serde_json::json!({ "name": "Biscuit" }).as_object().cloned();
//! let result = Arc::new(api).call("create_pet", arguments, caller).await.ok_or("there is no such tool")?;
//! if result.is_error() {
//!     eprintln!("{}", result.text());
//! } else {
//!     println!("{:?}", result.structured_content());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Serving several APIs
//!
//! The tools of all APIs are served at `/mcp`, and those of each one also at `/mcp/NAME`.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use openapi_mcp::{Api, ApiName, ApiOptions, Destination, Document, HttpOptions, McpServer, OutboundOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = openapi_mcp::http_client(&OutboundOptions::default())?;
//! let mut apis = Vec::new();
//! for (name, url) in [("pets", "https://petstore.example/api/v1"), ("orders", "https://orders.example")] {
//!     let mut options = ApiOptions {
//!         destination: Destination::Fixed(url.parse()?),
//!         name: Some(ApiName::parse(name)?),
//!         ..ApiOptions::default()
//!     };
//!     // Tool names of different APIs must differ.
//!     options.annotate.names.prefix = format!("{name}_");
//!     let document = Document::parse(std::fs::read(format!("{name}.yaml"))?, None)?;
//!     let (api, _) = Api::build(document, options, client.clone())?;
//!     apis.push(Arc::new(api));
//! }
//! let server = McpServer::of_several(apis).map_err(|problems| problems.join("\n"))?;
//!
//! let listener = openapi_mcp::bind_http("127.0.0.1:8080".parse()?).await?;
//! let stop = tokio_util::sync::CancellationToken::new();
//! openapi_mcp::serve_http(listener, server, &HttpOptions::default(), None, stop).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Stages
//!
//! A [`SourceReader`] reads a [`Source`], and [`Document::parse`] makes a document of its bytes;
//! [`complete_document`] adds the files that its references lead to. [`Api::build`] reads the
//! operations, makes a tool of each, and decides for each the destination and the credentials of
//! its calls. A server shows the tools of an API at its endpoints.
//!
//! A call selects its credentials, checks and repairs the arguments, builds and sends the request,
//! and makes a [`ToolResult`] of the reply: secrets are removed, and what is too long is cut. `ARCHITECTURE.md` in the repository names the functions.

mod admission;
mod annotate;
mod api;
mod call_error;
mod caller;
mod check;
mod cli;
mod config;
mod credentials;
mod error;
mod fd_limit;
mod files;
mod json;
mod mcp;
mod mock;
mod observe;
mod outbound;
mod proxy;
mod redact;
mod results;
mod search;
mod shared_state;
mod spec;
mod text;
mod transport;

pub use crate::annotate::{
    AnnotateOptions, Hint, Hints, OutputSchemas, Policy, Reason, Tool, ToolAnnotations,
};
pub use crate::api::{Api, ApiName, ApiOptions, BoundTool, BuildError};
pub use crate::caller::Caller;
pub use crate::caller::memory_budget::MemoryBudget;
pub use crate::cli::run;
pub use crate::credentials::forward::Forwarding;
pub use crate::credentials::values::Credentials;
pub use crate::mcp::McpServer;
pub use crate::outbound::request::Request;
pub use crate::outbound::{
    Clients, HttpClient, HttpError, Identity, OutboundError, OutboundOptions, Proxy, http_client,
};
pub use crate::proxy::exchange::CallOptions;
pub use crate::proxy::upstream::UpstreamOptions;
pub use crate::proxy::{
    Destination, OnMissingCredential, TenantEntry, TenantOptions, TenantSource,
};
pub use crate::results::filter::Sandbox;
pub use crate::results::tool_result::ToolResult;
pub use crate::spec::document::external::complete_document;
pub use crate::spec::{
    Diagnostic, Document, ExternalReferences, LoadError, Operation, ReadError, Severity, Source,
    SourceReader,
};
pub use crate::transport::http::{HttpOptions, bind as bind_http, serve as serve_http};
pub use crate::transport::stdio::serve as serve_stdio;

/// Internals for the tests and the fuzz targets of this repository. Not a part of the
/// library's promise.
#[doc(hidden)]
pub mod internals {
    pub use crate::annotate::{AnnotatedTools, annotate};
    pub use crate::outbound::request::{Keep, percent_encode};
    pub use crate::proxy::request::target::{BaseUrl, PathValue};
    pub use crate::results::Reply;
    pub use crate::results::records::{Counter, Framing, records};
    pub use crate::results::render::{OutputContract, Rendering, render_error, render_reply};
    pub use crate::spec::argument_names::sanitize_argument_name;
    pub use crate::spec::{PathTemplate, operations};
}
