//! The list of tools, put into the answer as text.
//!
//! rmcp wants every tool as a tree and writes it anew for each client; for a large API that is most of the work of a start
//! and many times the memory of the text, which is the same for all. So the handler answers with one tool that stands for
//! the list, and its JSON is replaced by the list's on the way out. The stand-in's name is made of random bits in every
//! process, so that no document and no reply can contain it.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use memchr::memmem::Finder;
use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, ServerResult, Tool};
use rmcp::service::TxJsonRpcMessage;
use serde::Deserialize;
use serde_json::{Value, json};

use super::list_pieces::ListPieces;
use super::state::EndpointState;
use crate::proxy::caller::scopes::Scopes;

/// The stand-in, and its JSON.
static STAND_IN: LazyLock<(Tool, String)> = LazyLock::new(|| {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one(0);
    let tool = Tool::new_with_raw(format!("tools-{:016x}{:016x}", random(), random()), None, Arc::default());
    let json = serde_json::to_string(&tool).unwrap_or_default();
    (tool, json)
});

/// The tool to answer with.
pub(crate) fn stand_in() -> Tool {
    STAND_IN.0.clone()
}

/// Whether a message answers `tools/list`.
pub(crate) fn is_list(message: &TxJsonRpcMessage<RoleServer>) -> bool {
    matches!(message, JsonRpcMessage::Response(response) if matches!(response.result, ServerResult::ListToolsResult(_)))
}

/// The answer to `tools/list` that stands where rmcp wrote the stand-in in another way than it was found by: better no list
/// than one tool that does not exist. `None` where the name of the stand-in is not in the bytes.
pub(crate) fn refuse_unspliced(bytes: &[u8]) -> Option<Vec<u8>> {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(STAND_IN.0.name.as_bytes()).into_owned());
    FINDER.find(bytes)?;
    tracing::error!("the list of tools cannot be put into the answer to tools/list: rmcp writes it in a way that is not known");
    // In an event of a stream, there is something around the message.
    let start = memchr::memchr(b'{', bytes)?;
    let end = memchr::memrchr(b'}', bytes)? + 1;
    let (head, message, tail) = (bytes.get(..start)?, bytes.get(start..end)?, bytes.get(end..)?);
    let id = serde_json::from_slice::<AnswerId>(message)
        .map(|answer| answer.id)
        .unwrap_or_default();
    let error = json!({"code": -32603, "message": "Internal error: the list of tools cannot be written; the server's log says why"});
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
    Some([head, answer.as_bytes(), tail].concat())
}

#[derive(Deserialize)]
struct AnswerId {
    id: Value,
}

/// The bytes with the list in place of the stand-in, or `None` where it is not in them.
pub(crate) fn splice(bytes: &[u8], state: &EndpointState, scopes: Option<&Scopes>) -> Option<Vec<u8>> {
    let (head, tail) = around_stand_in(bytes)?;
    let list = ListPieces::new(state.served()?, scopes);
    let mut spliced = Vec::with_capacity(bytes.len() + list.length());
    spliced.extend_from_slice(bytes.get(..head)?);
    list.for_each(|piece| spliced.extend_from_slice(&piece));
    spliced.extend_from_slice(bytes.get(tail..)?);
    Some(spliced)
}

/// The same in pieces, for who may take them slowly: a list can have megabytes, and many may ask for it at once. With the
/// length of all of them.
pub(crate) fn pieces(
    bytes: &Bytes,
    state: &EndpointState,
    scopes: Option<&Scopes>,
) -> Option<(usize, impl Iterator<Item = Bytes> + Send + use<>)> {
    let (head, tail) = around_stand_in(bytes)?;
    let list = ListPieces::new(state.served()?, scopes);
    let (head, tail) = (bytes.slice(..head), bytes.slice(tail..));
    let length = head.len() + list.length() + tail.len();
    Some((length, std::iter::once(head).chain(list).chain(std::iter::once(tail))))
}

/// Where the stand-in begins and ends.
fn around_stand_in(bytes: &[u8]) -> Option<(usize, usize)> {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&STAND_IN.1).into_owned());
    let head = FINDER.find(bytes)?;
    Some((head, head + STAND_IN.1.len()))
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerConfig;

    use super::*;
    use crate::api::{Api, ApiOptions};
    use crate::server::catalog::{Catalog, CatalogApi};
    use crate::server::visible::View;

    fn api() -> Arc<Api> {
        use crate::outbound::{OutboundOptions, http_client};
        let document = crate::spec::Document::parse(br#"{"openapi":"3.1.0","paths":{"/a":{"get":{},"put":{}}}}"#.to_vec(), None).unwrap();
        let client = http_client(&OutboundOptions {
            tls: false,
            ..OutboundOptions::default()
        })
        .unwrap();
        let options = ApiOptions::default();
        Arc::new(Api::build(document, options, client).unwrap().0)
    }

    #[test]
    fn the_list_goes_in_where_the_stand_in_was() {
        let (state, api) = (EndpointState::pending(None), api());
        let answer = format!("{{\"tools\":[{}]}}", serde_json::to_string(&stand_in()).unwrap());
        assert_eq!(splice(answer.as_bytes(), &state, None), None, "there is no list yet");
        let config = ServerConfig::default();
        let view = View {
            path: "/mcp".into(),
            names_apis: false,
            reads_only: false,
        };
        let of_catalog = CatalogApi {
            api: Arc::clone(&api),
            scopes: Arc::default(),
        };
        state.ready(Catalog::new(vec![of_catalog], view, Vec::new(), config));
        assert_eq!(splice(b"another answer", &state, None), None);
        let written = String::from_utf8(splice(answer.as_bytes(), &state, None).unwrap()).unwrap();
        let tools = api.texts().collect::<Vec<_>>().join(",");
        assert!(tools.contains("\"get_a\"") && tools.contains("\"put_a\""));
        assert_eq!(written, format!("{{\"tools\":[{tools}]}}"));
        assert!(pieces(&Bytes::from_static(b"another answer"), &state, None).is_none());
        assert_eq!(refuse_unspliced(b"another answer"), None);
        let other = format!("{{\"id\":7,\"result\":{{\"tools\":[{{ \"name\": \"{}\"}}]}}}}", stand_in().name);
        assert_eq!(splice(other.as_bytes(), &state, None), None);
        let refused: Value = serde_json::from_slice(&refuse_unspliced(other.as_bytes()).unwrap()).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32603)));
        let (length, parts) = pieces(&answer.into(), &state, None).unwrap();
        let parts: Vec<u8> = parts.flatten().collect();
        assert_eq!((length, String::from_utf8(parts).unwrap()), (written.len(), written));
    }
}
