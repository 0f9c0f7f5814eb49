//! The API behind the server: the requests that reach it, the credentials that they carry, and its
//! replies.

mod access_tokens;
mod call_cases;
mod collected_pages;
mod connections;
mod credentials;
mod examples;
mod forwarding;
mod hostile_arguments;
mod hostile_replies;
mod hostile_values;
mod http2;
mod large_replies;
mod limits;
mod masks;
mod redaction;
mod response_filter;
mod ruled_arguments;
pub(crate) mod signed_requests;
mod tls;
mod uploads;
