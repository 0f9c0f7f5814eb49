//! Several APIs in one server.

mod commands;
mod endpoints;
mod failures;
mod isolation;
mod scopes;
mod search;
mod serving;
mod settings;
mod twenty;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{HttpServer, Upstream};

/// A configuration file with what it names beside it.
pub struct Setup {
    folder: TempDir,
}

impl Setup {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Writes a file of the folder and gives its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Writes the configuration and gives its path.
    pub fn config(&self, config: &Value) -> String {
        self.write("mcp.yaml", &config.to_string())
    }

    /// A document with a tool that reads and one that writes, both with an API key in a header,
    /// written beside the configuration.
    pub fn document(&self, name: &str) {
        self.write(&format!("{name}.json"), &document(name).to_string());
    }
}

/// `list_things` reads, `create_thing` writes.
pub fn document(title: &str) -> Value {
    let response = json!({"200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": format!("The {title} API"), "version": "1", "description": format!("All about {title}.")},
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "security": [{"key": []}],
        "paths": {"/things": {
            "get": {"operationId": "list_things", "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}], "responses": response},
            "post": {"operationId": "create_thing", "responses": response},
        }},
    })
}

/// The settings of two APIs, each with an upstream and a key of its own.
pub fn pets_and_bills(pets: &Upstream, bills: &Upstream) -> Value {
    json!({"apis": {
        "pets": {"spec": "pets.json", "base_url": pets.url, "auth": {"key": {"env": "PETS_KEY"}}},
        "bills": {"spec": "bills.json", "base_url": bills.url, "auth": {"key": {"env": "BILLS_KEY"}}},
    }})
}

pub const KEYS: [(&str, &str); 2] = [
    ("PETS_KEY", "the-key-of-pets"),
    ("BILLS_KEY", "the-key-of-bills"),
];

/// The names of tools in a list.
pub fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// Posts a message to a path and gives status, head and body.
pub fn post_to(
    server: &HttpServer,
    path: &str,
    headers: &[&str],
    body: &str,
) -> (u16, String, Value) {
    let headers = [&["Connection: close"][..], headers].concat();
    let request =
        crate::support::http_server::http_request(&server.address, "POST", &headers, body);
    let answer = server.raw(&request.replacen(" /mcp ", &format!(" {path} "), 1));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_default();
    (
        status,
        head.to_owned(),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

/// Posts a request of the version 2026-07-28 and gives the answer.
pub fn post_statelessly(
    server: &HttpServer,
    path: &str,
    method: &str,
    mut parameters: Value,
) -> Value {
    if parameters.get("_meta").is_none() {
        parameters["_meta"] = crate::support::stateless_meta(&json!({}));
    }
    let name = parameters["name"]
        .as_str()
        .map(|name| format!("Mcp-Name: {name}"));
    let method_line = format!("Mcp-Method: {method}");
    let headers = ["MCP-Protocol-Version: 2026-07-28", &method_line]
        .into_iter()
        .chain(name.as_deref());
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).to_string();
    post_to(server, path, &headers.collect::<Vec<_>>(), &body).2
}

/// A call of the version 2026-07-28; the tool's name is added to the parameters.
pub fn call_statelessly(
    server: &HttpServer,
    path: &str,
    tool: &str,
    mut parameters: Value,
) -> Value {
    parameters["name"] = tool.into();
    post_statelessly(server, path, "tools/call", parameters)
}

/// The names that an endpoint lists.
pub fn listed(server: &HttpServer, path: &str, headers: &[&str]) -> Vec<String> {
    let (status, _, answer) = post_to(server, path, headers, crate::support::LIST);
    assert_eq!(status, 200, "{path}: {answer}");
    let tools = answer["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{path}: {answer}"));
    names(tools).into_iter().map(str::to_owned).collect()
}

/// The smallest documents of the corpus; none if there is no corpus.
pub fn corpus_documents(count: usize) -> Vec<std::path::PathBuf> {
    let Ok(corpus) = std::env::var("OPENAPI_MCP_CORPUS") else {
        return Vec::new();
    };
    let mut folders = vec![std::path::Path::new(&corpus).join("apisguru30")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path
                    .extension()
                    .is_some_and(|end| end == "json" || end == "yaml") =>
                {
                    files.push(path);
                }
                _ => {}
            }
        }
    }
    files.sort_by_key(|path| {
        std::fs::metadata(path)
            .map(|data| data.len())
            .unwrap_or_default()
    });
    files.truncate(count);
    files
}
