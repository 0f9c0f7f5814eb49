//! `--reload`: a document that is edited under a running server.

use std::sync::{Arc, Mutex};

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{ClientConfig, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientLifecycleMode, NotificationContext, serve_client_with_lifecycle};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{
    HttpServer, Session, SpecFile, TIMEOUT, Upstream, binary, command, initialize_parameters,
    reply, stderr, wait_until,
};

fn document(id: &str) -> String {
    json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {"/a": {"get": {"operationId": id}}}}).to_string()
}

fn names(session: &mut Session) -> Vec<String> {
    let tools = session.tools().into_iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The next notification that the tools changed.
fn told(session: &Session) {
    let message = session.receive();
    assert_eq!(
        message["method"], "notifications/tools/list_changed",
        "{message}"
    );
}

#[test]
fn a_list_of_all_tools_stays_whole_when_it_becomes_longer_than_any_client_takes() {
    let spec = SpecFile::new(&document("first"));
    let mut session =
        Session::start(&["serve", "--spec", spec.path(), "--mock", "--reload", "0.1"]);
    assert_eq!(names(&mut session), ["first"]);
    let long = "A thing of this API, in some words. ".repeat(50);
    let operation = |number: usize| {
        let operation =
            json!({"get": {"operationId": format!("getThing{number}"), "description": long}});
        (format!("/things{number}"), operation)
    };
    let paths: serde_json::Map<String, Value> = (0..4000).map(operation).collect();
    let longer =
        json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths});
    std::fs::write(spec.path(), longer.to_string()).unwrap();
    told(&session);
    assert_eq!(names(&mut session).len(), 4000);
    session.logged("it stays `all` until a restart");
}

#[test]
fn p36_an_edited_file_is_served_anew_and_a_broken_edit_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("spec.json", &document("first"));
    write(
        "overlay.yaml",
        "overlay: 1.0.0\ninfo: {title: O, version: '1'}\nactions: [{target: $.info, update: {}}]\n",
    );
    let path = directory.path().join("spec.json").display().to_string();
    let overlay = directory.path().join("overlay.yaml").display().to_string();
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &path,
        &format!("overlay: [\"{overlay}\"]"),
        "--mock",
        "--reload",
        "0.1",
    ]);
    assert_eq!(names(&mut session), ["first"]);

    write("spec.json", &document("second"));
    told(&session);
    assert_eq!(names(&mut session), ["second"]);
    assert_eq!(session.call("second", &json!({}))["isError"], false);
    assert!(
        session.request("tools/call", &json!({"name": "first"}))["error"].is_object(),
        "a tool that is gone is gone"
    );

    write("spec.json", "{\"openapi\": ");
    session.logged("cannot be served; the tools stay as they were: ");
    assert_eq!(names(&mut session), ["second"]);
    assert_eq!(session.call("second", &json!({}))["isError"], false);

    // A file that the document refers to, and an overlay, count like the document.
    write(
        "spec.json",
        &document("third").replace("\"/a\"", "\"/b\":{\"$ref\":\"other.yaml\"},\"/a\""),
    );
    told(&session);
    assert_eq!(names(&mut session), ["third"]);
    // It may be written after what refers to it.
    write("other.yaml", "get: {operationId: other}\n");
    told(&session);
    assert_eq!(names(&mut session), ["other", "third"]);
    write("other.yaml", "get: {operationId: another}\n");
    told(&session);
    assert_eq!(names(&mut session), ["another", "third"]);
    write(
        "overlay.yaml",
        "overlay: 1.0.0\ninfo: {title: O, version: '1'}\nactions: [{target: '$.paths[\"/a\"]', remove: true}]\n",
    );
    told(&session);
    assert_eq!(names(&mut session), ["another"]);

    // A file that cannot be read for a while is tried again, even if it is unchanged afterwards.
    let text = std::fs::read_to_string(&overlay).unwrap();
    std::fs::remove_file(&overlay).unwrap();
    write("other.yaml", "get: {operationId: last}\n");
    session.logged("overlay.yaml");
    write("overlay.yaml", &text);
    told(&session);
    assert_eq!(names(&mut session), ["last"]);
    session.close_stdin();
    assert_eq!(session.wait(), Some(0));
}

#[test]
fn a_url_is_asked_for_another_version_only() {
    let current = Arc::new(Mutex::new(("\"v1\"", document("first"))));
    let answer = Arc::clone(&current);
    let upstream = Upstream::start(Box::new(move |request| {
        let (tag, document) = answer.lock().unwrap().clone();
        if request.header("if-none-match") == Some(tag) {
            return reply(304, &[&format!("ETag: {tag}")], b"");
        }
        reply(
            200,
            &[
                &format!("ETag: {tag}"),
                "Last-Modified: Fri, 20 Nov 2026 10:00:00 GMT",
            ],
            document.as_bytes(),
        )
    }));
    let url = format!("{}/spec.json", upstream.url);
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &url,
        "spec_header: [\"X-Key: s3cret\"]",
        "--mock",
        "--reload",
        "0.1",
    ]);
    assert_eq!(names(&mut session), ["first"]);
    wait_until("it is not asked again", || upstream.received().len() >= 4);
    for request in upstream.received().iter().skip(1) {
        assert_eq!(
            ["if-none-match", "if-modified-since", "x-key"].map(|name| request.header(name)),
            [
                Some("\"v1\""),
                Some("Fri, 20 Nov 2026 10:00:00 GMT"),
                Some("s3cret")
            ]
        );
    }
    *current.lock().unwrap() = ("\"v2\"", document("second"));
    told(&session);
    assert_eq!(names(&mut session), ["second"]);
    let logs = session.end();
    assert!(!logs.contains("s3cret"), "{logs}");
}

#[test]
fn list_changed_is_announced_only_with_reload_and_where_a_client_can_be_notified() {
    let spec = SpecFile::new(&document("first"));
    let over_stdio = |flags: &[&str]| -> Value {
        let mut args = vec!["serve", "--spec", spec.path(), "--mock"];
        args.extend(flags);
        let mut session = Session::start(&args);
        session.request("initialize", &initialize_parameters(&json!({})))["result"]["capabilities"]
            ["tools"]
            .clone()
    };
    assert_ne!(over_stdio(&[])["listChanged"], true);
    assert_eq!(over_stdio(&["--reload", "60"])["listChanged"], true);
    let capability = |flags: &[&str]| -> Value {
        let mut args = vec!["--spec", spec.path(), "--mock"];
        args.extend(flags);
        let server = HttpServer::start(&args);
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_parameters(&json!({}))});
        let answer: Value =
            serde_json::from_str(&server.post(&[], &request.to_string()).1).unwrap();
        answer["result"]["capabilities"]["tools"].clone()
    };
    assert_ne!(capability(&[])["listChanged"], true);
    // Without a session no client can be notified.
    assert_ne!(capability(&["--reload", "60"])["listChanged"], true);
    for (args, expected) in [
        (
            ["serve", "--spec", spec.path(), "--reload", "100000"],
            "--reload must be",
        ),
        (
            ["serve", "--spec", spec.path(), "--reload", "0.01"],
            "--reload must be 0 (never) or between",
        ),
    ] {
        let output = command(&args).output().unwrap();
        assert!(
            output.status.code() == Some(2) && stderr(&output).contains(expected),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn clients_without_a_handshake_listen_for_changes() {
    // The client of this test is built without a TLS provider of its own.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mode = || ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let filter = || SubscriptionFilter::builder().tools_list_changed().build();
    runtime.block_on(async {
        for transport in ["stdio", "http"] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("spec.json");
            std::fs::write(&path, document("first")).unwrap();
            let spec = path.display().to_string();
            let flags = ["--spec", &spec, "--mock", "--reload", "0.1"];
            let mut server = None;
            let client = if transport == "stdio" {
                let mut command = tokio::process::Command::new(binary());
                command.arg("serve").args(flags);
                serve_client_with_lifecycle(
                    ClientConfig::default(),
                    TokioChildProcess::new(command).unwrap(),
                    mode(),
                )
                .await
            } else {
                let url = server.insert(HttpServer::start(&flags)).url();
                serve_client_with_lifecycle(
                    ClientConfig::default(),
                    StreamableHttpClientTransport::from_uri(url),
                    mode(),
                )
                .await
            };
            let client = client.unwrap();
            let mut subscription = client.listen(filter()).await.unwrap();
            assert_eq!(
                subscription.acknowledged().tools_list_changed,
                Some(true),
                "{transport}"
            );
            std::fs::write(&path, document("second")).unwrap();
            let notification = tokio::time::timeout(TIMEOUT, subscription.next())
                .await
                .unwrap()
                .unwrap();
            assert!(notification.is_some(), "{transport}");
            assert_eq!(
                client.list_all_tools().await.unwrap()[0].name,
                "second",
                "{transport}"
            );
            drop(subscription);
            client.cancel().await.unwrap();
        }
    });
}

/// A client that waits for the notification that the tools changed.
#[derive(Clone, Default)]
struct Listener(Arc<Notify>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.notify_one();
    }
}

#[test]
fn clients_with_a_session_over_http_are_told_and_list_anew() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let spec = SpecFile::new(&document("first"));
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--mock",
        "--reload",
        "0.1",
        "--confirm",
        "write",
    ]);
    runtime.block_on(async {
        let listener = Listener::default();
        let transport = StreamableHttpClientTransport::from_uri(server.url());
        let client = serve_client_with_lifecycle(
            listener.clone(),
            transport,
            ClientLifecycleMode::Initialize,
        )
        .await
        .unwrap();
        assert_eq!(client.list_all_tools().await.unwrap()[0].name, "first");
        std::fs::write(spec.path(), document("second")).unwrap();
        tokio::time::timeout(TIMEOUT, listener.0.notified())
            .await
            .unwrap();
        assert_eq!(client.list_all_tools().await.unwrap()[0].name, "second");
        client.cancel().await.unwrap();
    });
}

#[test]
fn a_call_in_flight_ends_where_it_began() {
    let (release, meta_tool) = std::sync::mpsc::channel::<()>();
    let meta_tool = Mutex::new(meta_tool);
    let slow = Upstream::start(Box::new(move |_| {
        let _ = meta_tool.lock().unwrap().recv();
        reply(
            200,
            &["Content-Type: application/json"],
            b"{\"from\":\"the old one\"}",
        )
    }));
    let new = Upstream::echo();
    let served_by = |url: &str, id: &str| {
        let mut document: Value = serde_json::from_str(&document(id)).unwrap();
        document["servers"] = json!([{"url": url}]);
        document["paths"]["/b"] = json!({"get": {"operationId": "same"}});
        document.to_string()
    };
    let spec = SpecFile::new(&served_by(&slow.url, "first"));
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--reload", "0.1"]);
    assert_eq!(names(&mut session).len(), 2);
    let begun = session.post("tools/call", &json!({"name": "same", "arguments": {}}));
    wait_until("it is not called", || !slow.received().is_empty());
    std::fs::write(spec.path(), served_by(&new.url, "second")).unwrap();
    told(&session);
    assert_eq!(session.call("same", &json!({}))["isError"], false);
    assert_eq!(new.take_one().line, "GET /b HTTP/1.1");
    release.send(()).unwrap();
    let answer = session.receive();
    assert_eq!(answer["id"], begun);
    assert!(answer.to_string().contains("the old one"), "{answer}");
    assert_eq!(slow.received().len(), 1);
}

#[test]
fn warnings_about_credentials_are_told_again_only_where_they_changed() {
    let asking = |id: &str, schemes: &[&str]| {
        let mut document: Value = serde_json::from_str(&document(id)).unwrap();
        for scheme in schemes {
            document["components"]["securitySchemes"][scheme] =
                json!({"type": "http", "scheme": "bearer"});
            document["paths"]["/a"]["get"]["security"] = json!([{*scheme: []}]);
        }
        document.to_string()
    };
    let upstream = Upstream::echo();
    let spec = SpecFile::new(&asking("first", &["one"]));
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--insecure-upstream",
        "--reload",
        "0.1",
    ]);
    let count = |logs: &str, text: &str| logs.matches(text).count();
    let before = session.logged("OPENAPI_MCP_AUTH_ONE");
    std::fs::write(spec.path(), asking("second", &["one"])).unwrap();
    told(&session);
    let after = session.logged("the new version is served");
    assert_eq!(
        count(&after, "OPENAPI_MCP_AUTH_ONE"),
        count(&before, "OPENAPI_MCP_AUTH_ONE"),
        "{after}"
    );
    std::fs::write(spec.path(), asking("third", &["one", "two"])).unwrap();
    told(&session);
    session.logged("OPENAPI_MCP_AUTH_TWO");
    assert_eq!(
        count(&session.end(), "NOT CHECKED"),
        1,
        "what does not change is said once"
    );
}

/// A volume as Kubernetes makes one of a `ConfigMap`: the files are links into a folder that is
/// replaced as a whole.
#[cfg(unix)]
#[test]
fn a_file_behind_links_that_are_changed_at_once_is_served_anew() {
    use std::os::unix::fs::symlink;

    let directory = tempfile::tempdir().unwrap();
    let volume = directory.path();
    let version = |name: &str, id: &str| {
        std::fs::create_dir(volume.join(name)).unwrap();
        let document =
            document("first").replace("\"/a\"", "\"/b\":{\"$ref\":\"other.yaml\"},\"/a\"");
        std::fs::write(volume.join(name).join("spec.json"), document).unwrap();
        std::fs::write(
            volume.join(name).join("other.yaml"),
            format!("get: {{operationId: {id}}}\n"),
        )
        .unwrap();
    };
    version("..v1", "other");
    symlink("..v1", volume.join("..data")).unwrap();
    for name in ["spec.json", "other.yaml"] {
        symlink(format!("..data/{name}"), volume.join(name)).unwrap();
    }
    let spec = volume.join("spec.json").display().to_string();
    let mut session = Session::start(&["serve", "--spec", &spec, "--mock", "--reload", "0.1"]);
    assert_eq!(names(&mut session), ["other", "first"]);

    version("..v2", "another");
    symlink("..v2", volume.join("..data_tmp")).unwrap();
    std::fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    std::fs::remove_dir_all(volume.join("..v1")).unwrap();
    told(&session);
    assert_eq!(names(&mut session), ["another", "first"]);
    let logs = session.end();
    assert!(!logs.contains("could not be checked"), "{logs}");
}

#[test]
fn a_referenced_file_that_is_deleted_is_looked_for_anew() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write(
        "spec.json",
        &document("first").replace("\"/a\"", "\"/b\":{\"$ref\":\"other.yaml\"},\"/a\""),
    );
    write("other.yaml", "get: {operationId: other}\n");
    let spec = directory.path().join("spec.json").display().to_string();
    let mut session = Session::start(&["serve", "--spec", &spec, "--mock", "--reload", "0.1"]);
    assert_eq!(names(&mut session), ["other", "first"]);
    std::fs::remove_file(directory.path().join("other.yaml")).unwrap();
    told(&session);
    assert_eq!(names(&mut session), ["first"]);
    write("other.yaml", "get: {operationId: other}\n");
    told(&session);
    assert_eq!(names(&mut session), ["other", "first"]);
}

#[test]
fn a_single_api_that_is_down_at_the_start_is_served_when_it_comes() {
    let is_up = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let now = Arc::clone(&is_up);
    let upstream = Upstream::start(Box::new(move |_| {
        if now.load(std::sync::atomic::Ordering::SeqCst) {
            reply(
                200,
                &["Content-Type: application/json"],
                document("first").as_bytes(),
            )
        } else {
            reply(503, &[], b"")
        }
    }));
    let url = format!("{}/openapi.json", upstream.url);
    let mut session = Session::start(&["serve", "--reload", "0.2", "--spec", &url]);
    let line = session.logged("there are no tools yet");
    assert!(
        line.contains("503") && line.contains("--reload tries again every 0.2 s"),
        "{line}"
    );
    let refused = session.request("tools/list", &json!({}));
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("could not be fetched"), "{refused}");
    is_up.store(true, std::sync::atomic::Ordering::SeqCst);
    let told = session.receive();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert_eq!(names(&mut session), ["first"]);
    // Without `--reload`, and where the document is a file, the start fails.
    is_up.store(false, std::sync::atomic::Ordering::SeqCst);
    let missing = command(&["serve", "--spec", &url]).output().unwrap();
    assert_eq!(missing.status.code(), Some(3), "{}", stderr(&missing));
    let missing = command(&["serve", "--reload", "0.2", "--spec", "missing.yaml"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(3), "{}", stderr(&missing));
}
