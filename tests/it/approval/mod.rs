//! `--confirm-by link`: a person agrees to a call on a page of the server.

mod callers;
mod page;
mod replicas;
mod settings;
#[cfg(target_os = "linux")]
mod stdio;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::several::Setup;
use crate::support::{HttpServer, Upstream, text};

pub const APPROVER: &str = "the-token-of-who-agrees";
const CLIENT: &str = "the-token-of-the-client-1";
const VARIABLES: [(&str, &str); 4] = [
    ("APPROVER", APPROVER),
    ("CLIENT", CLIENT),
    ("OTHER", "the-token-of-a-client-2"),
    ("SECRET", "a-secret-of-the-operator"),
];

/// An API with a tool that deletes, and one that uploads.
fn document() -> Value {
    let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Office", "version": "1"},
        "paths": {
            "/things/{id}": {"delete": {"operationId": "remove", "summary": "Remove a thing", "parameters": [id,
                {"name": "reason", "in": "query", "schema": {"type": "string"}},
                {"name": "key", "in": "query", "schema": {"type": "string"}}]}},
            "/files": {"post": {"operationId": "upload", "requestBody": {"content": {"multipart/form-data": {"schema": {
                "type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}}}}}},
        },
    })
}

/// A server that asks by a link before it deletes.
pub struct Office {
    pub server: HttpServer,
    pub upstream: Upstream,
    pub setup: Setup,
}

impl Office {
    fn start(keys: &Value, args: &[&str]) -> Self {
        let (setup, upstream) = (Setup::new(), Upstream::echo());
        setup.write("office.json", &document().to_string());
        let mut config = json!({
            "spec": "office.json", "base_url": upstream.url, "confirm": "write", "confirm_by": "link",
            "auth_token_env": ["CLIENT", "OTHER"],
            "auth_tokens": [{"name": "boss", "env": "APPROVER", "approve": true}],
        });
        config
            .as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        config
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        let config = setup.config(&config);
        let server =
            HttpServer::start_with(&[&["--config", &config][..], args].concat(), &VARIABLES);
        server.logged("tool");
        Self {
            server,
            upstream,
            setup,
        }
    }

    /// Calls with a token, and gives the result.
    fn call_as(&self, token: &str, tool: &str, arguments: &Value) -> Value {
        let authorization = format!("Authorization: Bearer {token}");
        let parameters = json!({ "arguments": arguments });
        let answer = self
            .server
            .call_stateless_as(&[&authorization], tool, parameters, &json!({}));
        answer["result"].clone()
    }

    fn remove(&self, id: &str) -> Value {
        self.call_as(CLIENT, "remove", &json!({ "id": id }))
    }

    fn ask(&self, path: &str, method: &str, headers: &[&str], body: &str) -> (u16, String) {
        ask(&self.server.address, path, method, headers, body)
    }

    /// What the page shows.
    fn shown(&self, link: &str) -> (u16, Value) {
        self.shown_to(APPROVER, link)
    }

    fn shown_to(&self, token: &str, link: &str) -> (u16, Value) {
        shown(&self.server.address, token, link)
    }

    /// Answers as the page does, and gives the status.
    fn answer(&self, link: &str, agree: bool) -> u16 {
        self.answer_as(APPROVER, link, agree)
    }

    fn answer_as(&self, token: &str, link: &str, agree: bool) -> u16 {
        answer(&self.server.address, token, link, agree)
    }
}

/// What the page of a server shows.
fn shown(address: &str, token: &str, link: &str) -> (u16, Value) {
    let authorization = format!("Authorization: Bearer {token}");
    let headers = [authorization.as_str(), "Accept: application/json"];
    let (status, answer) = ask(address, link, "GET", &headers, "");
    (status, body_of(&answer))
}

/// Answers as the page of a server does, and gives the status of what was refused.
fn answer(address: &str, token: &str, link: &str, agree: bool) -> u16 {
    let (status, shown) = shown(address, token, link);
    if status != 200 {
        return status;
    }
    let body = json!({"hash": shown["hash"], "agree": agree}).to_string();
    let origin = format!("Origin: http://{address}");
    let authorization = format!("Authorization: Bearer {token}");
    let headers = [
        authorization.as_str(),
        &origin,
        "Content-Type: application/json",
        "Sec-Fetch-Site: same-origin",
    ];
    ask(address, link, "POST", &headers, &body).0
}

/// Sends a request for a path; `headers` are whole lines.
pub fn ask(address: &str, path: &str, method: &str, headers: &[&str], body: &str) -> (u16, String) {
    let mut lines = vec![
        format!("{method} {path} HTTP/1.1"),
        "Connection: close".into(),
    ];
    if !headers.iter().any(|line| line.starts_with("Host:")) {
        lines.push(format!("Host: {address}"));
    }
    lines.extend(headers.iter().map(|line| (*line).to_owned()));
    let request = format!(
        "{}\r\nContent-Length: {}\r\n\r\n{body}",
        lines.join("\r\n"),
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (
        status.unwrap_or_else(|| panic!("no status: {answer:?}")),
        answer,
    )
}

fn body_of(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_default()
}

/// The link of a result that asks.
pub fn link_url(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    let (_, rest) = text(result)
        .split_once("Show this link to the user: ")
        .unwrap_or_else(|| panic!("no link: {result}"));
    rest.lines().next().unwrap()
}

/// The path of that link.
fn link(result: &Value) -> String {
    let url = link_url(result);
    let (_, id) = url.split_once("/approve/").unwrap();
    format!("/approve/{id}")
}
