//! MCP as rmcp's own client speaks it: both eras, both transports, the same tools and the same
//! answers.

use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};

use crate::support::{HttpServer, SpecFile, TIMEOUT, Upstream, binary, reply};

const METHODS: [&str; 8] = [
    "get", "head", "options", "post", "put", "patch", "delete", "trace",
];

/// The verb table: readOnly, destructive, idempotent, openWorld; `None` is no `annotations` at all.
fn hints(method: &str) -> Option<[bool; 4]> {
    match method {
        "get" | "head" | "options" | "query" => Some([true, false, true, true]),
        "post" => Some([false, false, false, true]),
        "put" | "delete" => Some([false, true, true, true]),
        "patch" => Some([false, true, false, true]),
        _ => None,
    }
}

fn spec() -> SpecFile {
    let mut operations: serde_json::Map<String, Value> = METHODS
        .iter()
        .map(|method| {
            (
                (*method).to_owned(),
                json!({"operationId": method, "summary": format!("Try {method}")}),
            )
        })
        .collect();
    operations.insert("query".into(), json!({"operationId": "query"}));
    SpecFile::new(&json!({"openapi": "3.2.0", "info": {"title": "Verbs", "version": "1"}, "paths": {"/thing": operations}}).to_string())
}

fn modes() -> [(&'static str, ClientLifecycleMode); 2] {
    [
        ("handshake", ClientLifecycleMode::Initialize),
        (
            "stateless",
            ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        ),
    ]
}

/// The client of these tests waits without end for an answer that it cannot read.
async fn in_time(check: impl Future<Output = ()>) {
    tokio::time::timeout(TIMEOUT, check)
        .await
        .expect("every answer comes");
}

async fn check(era: &str, client: RunningService<RoleClient, ClientConfig>, upstream: &Upstream) {
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), METHODS.len() + 1, "{era}");
    for tool in &tools {
        let tool = serde_json::to_value(tool).unwrap();
        let name = tool["name"].as_str().unwrap();
        let annotations = tool.get("annotations");
        let told = annotations.map(|hints| {
            [
                "readOnlyHint",
                "destructiveHint",
                "idempotentHint",
                "openWorldHint",
            ]
            .map(|hint| hints[hint].as_bool().expect("written out"))
        });
        assert_eq!(told, hints(name), "{era}: {name}");
        assert!(
            annotations.is_none_or(|hints| hints.get("title").is_none()),
            "{era}: {name}: the title is the tool's"
        );
        assert!(!tool["title"].as_str().unwrap().is_empty(), "{era}: {name}");
    }
    for method in METHODS {
        let result = client
            .call_tool(CallToolRequestParams::new(method))
            .await
            .unwrap();
        assert_eq!(result.is_error, Some(false), "{era}: {method}: {result:?}");
        assert_eq!(
            upstream.take_one().line,
            format!("{} /thing HTTP/1.1", method.to_uppercase()),
            "{era}"
        );
    }
    let unknown = client
        .call_tool(CallToolRequestParams::new("nothing"))
        .await
        .unwrap_err();
    assert!(
        unknown.to_string().contains("-32602") || unknown.to_string().contains("Unknown tool"),
        "{unknown}"
    );
    client.cancel().await.unwrap();
}

/// HEAD must be answered without a body.
fn upstream() -> Upstream {
    Upstream::start(Box::new(|request| {
        let body: &[u8] = if request.line.starts_with("HEAD") {
            b""
        } else {
            b"{\"ok\":true}"
        };
        reply(200, &["Content-Type: application/json"], body)
    }))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn every_verb_is_told_and_called_over_stdio_in_both_eras() {
    let (spec, upstream) = (spec(), upstream());
    runtime().block_on(async {
        for (era, mode) in modes() {
            let mut command = tokio::process::Command::new(binary());
            command.args([
                "serve",
                "--spec",
                spec.path(),
                "--base-url",
                &upstream.url,
                "--log-level",
                "error",
            ]);
            let client = serve_client_with_lifecycle(
                ClientConfig::default(),
                TokioChildProcess::new(command).unwrap(),
                mode,
            )
            .await
            .unwrap();
            in_time(check(era, client, &upstream)).await;
        }
    });
}

#[test]
fn every_verb_is_told_and_called_over_http_in_both_eras() {
    // The client of this test is built without a TLS provider of its own.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (spec, upstream) = (spec(), upstream());
    let server = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
    runtime().block_on(async {
        for (era, mode) in modes() {
            let transport = StreamableHttpClientTransport::from_uri(server.url());
            let client = serve_client_with_lifecycle(ClientConfig::default(), transport, mode)
                .await
                .unwrap();
            in_time(check(era, client, &upstream)).await;
        }
    });
}

#[test]
fn p23_odd_request_ids_come_back_as_they_were() {
    let server = HttpServer::start(&["--spec", spec().path(), "--base-url", "http://127.0.0.1:1"]);
    for id in ["0", "9007199254740991", "-5", "\"\"", "\"a b\"", "\"ü\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        let (_, answer) = server.post(&["MCP-Protocol-Version: 2025-11-25"], &body);
        assert!(answer.contains(&format!("\"id\":{id}")), "{id}: {answer}");
    }
}
