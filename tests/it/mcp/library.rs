//! A program that uses the library serves over any transport of rmcp: real tools, calls and their
//! progress, in both eras.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openapi_mcp::{
    Api, ApiName, ApiOptions, Destination, Document, McpServer, OutboundOptions, http_client,
};
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientConfig, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, RunningService, ServiceExt as _,
    serve_client_with_lifecycle,
};
use serde_json::json;

use crate::support::{SpecFile, TIMEOUT, Upstream, reply};

#[derive(Clone, Default)]
struct CountingClient(Arc<AtomicUsize>);

impl ClientHandler for CountingClient {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

async fn check(client: RunningService<RoleClient, CountingClient>, era: &str, upstream: &Upstream) {
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["get_item"], "{era}");
    assert_eq!(
        tools[0]
            .annotations
            .as_ref()
            .and_then(|hints| hints.read_only_hint),
        Some(true),
        "{era}"
    );
    let arguments = json!({"id": "7"}).as_object().cloned().unwrap();
    let call = CallToolRequestParams::new("get_item").with_arguments(arguments);
    let result = client.call_tool(call).await.unwrap();
    assert_eq!(
        result.structured_content,
        Some(json!({"id": 7})),
        "{era}: {result:?}"
    );
    assert_eq!(upstream.take_one().line, "GET /items/7 HTTP/1.1", "{era}");
    // Our clients ask for progress by themselves.
    assert!(
        client.service().0.load(Ordering::Relaxed) > 0,
        "{era}: there was no progress"
    );
    let unknown = client
        .call_tool(CallToolRequestParams::new("get_itm"))
        .await
        .unwrap_err();
    assert!(
        unknown.to_string().contains("did you mean get_item?"),
        "{era}: {unknown}"
    );
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_program_serves_over_a_pipe_in_memory_in_both_eras() {
    let body = "{\"id\":7}".to_owned();
    let upstream = Upstream::start(Box::new(move |_| {
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }));
    let spec = SpecFile::with_paths(
        &json!({"/items/{id}": {"get": {"operationId": "get_item", "parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}}}),
    );
    let modes = [
        ("handshake", ClientLifecycleMode::Initialize),
        (
            "stateless",
            ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        ),
    ];
    for (era, mode) in modes {
        let document = Document::parse(std::fs::read(spec.path()).unwrap(), None).unwrap();
        let options = ApiOptions {
            destination: Destination::Fixed(upstream.url.parse().unwrap()),
            ..ApiOptions::default()
        };
        let (api, _) = Api::build(
            document,
            options,
            http_client(&OutboundOptions::default()).unwrap(),
        )
        .unwrap();
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let server = McpServer::new(Arc::new(api));
        let serving =
            tokio::spawn(
                async move { Box::pin(server.serve(ours)).await.unwrap().waiting().await },
            );
        let session = async {
            let client = serve_client_with_lifecycle(CountingClient::default(), theirs, mode)
                .await
                .unwrap();
            check(client, era, &upstream).await;
        };
        tokio::time::timeout(TIMEOUT, session)
            .await
            .expect("every answer comes");
        serving.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_program_serves_several_apis_if_their_names_and_those_of_their_tools_differ() {
    let spec = SpecFile::with_paths(&json!({"/items": {"get": {"operationId": "list_items"}}}));
    let named = |name: Option<&str>, prefix: &str| {
        let mut options = ApiOptions {
            name: name.map(|name| ApiName::parse(name).unwrap()),
            ..ApiOptions::default()
        };
        options.annotate.names.prefix = prefix.to_owned();
        let document = Document::parse(std::fs::read(spec.path()).unwrap(), None).unwrap();
        Arc::new(
            Api::build(
                document,
                options,
                http_client(&OutboundOptions::default()).unwrap(),
            )
            .unwrap()
            .0,
        )
    };
    for (apis, problem) in [
        (
            vec![named(Some("a"), "a_"), named(None, "b_")],
            "needs a name that no other API has",
        ),
        (
            vec![named(Some("a-b"), "a_"), named(Some("a_b"), "b_")],
            "needs a name that no other API has",
        ),
        (
            vec![named(Some("a"), ""), named(Some("b"), "")],
            "list_items",
        ),
    ] {
        let problems = McpServer::of_several(apis).err().unwrap();
        assert!(
            problems.len() == 1 && problems[0].contains(problem),
            "{problems:?}"
        );
    }

    let server =
        McpServer::of_several(vec![named(Some("a"), "a_"), named(Some("b"), "b_")]).unwrap();
    assert!(server.is_ready());
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let serving =
        tokio::spawn(async move { Box::pin(server.serve(ours)).await.unwrap().waiting().await });
    let session = async {
        let client = CountingClient::default().serve(theirs).await.unwrap();
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["a_list_items", "b_list_items"]);
        client.cancel().await.unwrap();
    };
    tokio::time::timeout(TIMEOUT, session)
        .await
        .expect("every answer comes");
    serving.await.unwrap().unwrap();
}
