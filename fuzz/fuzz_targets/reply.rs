//! Any status, type and body of a reply: rendered without a panic, and always as valid JSON.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use openapi_mcp::internals::{self as render, Reply, operations};
use openapi_mcp::{Document, Operation};

static OPERATION: OnceLock<Box<Operation>> = OnceLock::new();

fuzz_target!(|input: (u16, String, Vec<u8>, u8)| {
    let (status, content_type, body, promise) = input;
    let operation = OPERATION.get_or_init(|| {
        let document = Document::parse(br#"{"openapi":"3.1.0","paths":{"/a":{"get":{}}}}"#.to_vec(), None).expect("a document");
        operations(&document).0.remove(0)
    });
    let (Ok(status), Ok(content_type)) = (http::StatusCode::from_u16(status), content_type.parse()) else { return };
    let mut response = Reply::default();
    (response.status, response.body) = (status, body.into());
    response.headers.insert("content-type", content_type);
    let promise = [render::OutputContract::None, render::OutputContract::AnyObject, render::OutputContract::AsDeclared][usize::from(promise) % 3];
    let mut rendering = render::Rendering::default();
    (rendering.promise, rendering.max_bytes) = (promise, 500);
    let result = render::render_reply(operation, &response, rendering);
    let checked = promise != render::OutputContract::None && !result.is_error();
    assert!(!checked || result.structured_content().is_some_and(|content| content.is_object()));
    assert!(result.to_json()["content"][0]["text"].is_string());
});
