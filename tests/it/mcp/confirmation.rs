//! `--confirm`: a person confirms a call through the client, in both protocol eras and on both
//! transports.

use std::sync::{Arc, Mutex};

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, Implementation,
    ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, RequestContext, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};

use crate::support::{
    HttpServer, Session, SpecFile, Upstream, binary, petstore, run, soak, stderr,
};

/// The credential that the petstore asks for.
const KEY: &str = "X-API-Key: none-of-your-business";

/// A person who gives the same answer to every question, and records the questions.
#[derive(Clone)]
struct Person {
    answer: ElicitationAction,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Person {
    fn who_says(answer: ElicitationAction) -> Self {
        Self {
            answer,
            asked: Arc::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("person", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Err(ErrorData::invalid_params("a form was expected", None));
        };
        self.asked.lock().unwrap().push(message);
        Ok(ElicitResult::new(self.answer.clone()).with_content(json!({})))
    }
}

fn modes() -> [ClientLifecycleMode; 2] {
    let modern = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    [ClientLifecycleMode::Initialize, modern]
}

fn asking_before_what_destroys<'a>(spec: &'a str, upstream: &'a Upstream) -> [&'a str; 8] {
    [
        "--spec",
        spec,
        "--base-url",
        &upstream.url,
        "--confirm",
        "destructive",
        "--header",
        KEY,
    ]
}

type Client = RunningService<RoleClient, Person>;

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else {
        panic!("no object")
    };
    client
        .call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments))
        .await
        .unwrap()
}

fn text(result: &CallToolResult) -> String {
    serde_json::to_string(&result.content).unwrap()
}

async fn check(client: Client, person: &Person, upstream: &Upstream, say: &str) {
    // A call that only reads needs no confirmation.
    assert_eq!(
        call(&client, "list_pets", json!({})).await.is_error,
        Some(false),
        "{say}"
    );
    assert!(upstream.take_one().line.starts_with("GET /pets "));
    // Nor does a call that would be refused anyway.
    assert_eq!(
        call(&client, "delete_pet", json!({"petId": "x"}))
            .await
            .is_error,
        Some(true),
        "{say}"
    );
    assert_eq!(person.asked(), Vec::<String>::new(), "{say}");
    let result = call(&client, "delete_pet", json!({"petId": 7})).await;
    let asked = person.asked();
    assert_eq!(asked.len(), 1, "{say}: {result:?}");
    for expected in [
        "Allow delete_pet of",
        ": DELETE /pets/7? It may change or remove",
        "- petId: 7",
        "Delete a pet",
    ] {
        assert!(asked[0].contains(expected), "{say}: {}", asked[0]);
    }
    match person.answer {
        ElicitationAction::Accept => {
            assert_eq!(result.is_error, Some(false), "{say}: {result:?}");
            assert_eq!(upstream.take_one().line, "DELETE /pets/7 HTTP/1.1", "{say}");
        }
        ElicitationAction::Decline => assert!(
            text(&result).contains("the user declined"),
            "{say}: {result:?}"
        ),
        _ => assert!(
            text(&result).contains("gave no answer"),
            "{say}: {result:?}"
        ),
    }
    assert!(upstream.received().is_empty(), "{say}");
    client.cancel().await.unwrap();
}

#[test]
fn a_destructive_call_waits_for_confirmation_on_every_transport_in_both_eras() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (spec, upstream) = (petstore(), Upstream::echo());
    let args = asking_before_what_destroys(&spec, &upstream);
    let server = HttpServer::start(&args);
    runtime.block_on(async {
        for answer in [
            ElicitationAction::Accept,
            ElicitationAction::Decline,
            ElicitationAction::Cancel,
        ] {
            for (era, mode) in modes().into_iter().enumerate() {
                let person = Person::who_says(answer.clone());
                let mut command = tokio::process::Command::new(binary());
                command
                    .arg("serve")
                    .args(args)
                    .args(["--log-level", "error"]);
                let client = serve_client_with_lifecycle(
                    person.clone(),
                    TokioChildProcess::new(command).unwrap(),
                    mode.clone(),
                )
                .await
                .unwrap();
                check(
                    client,
                    &person,
                    &upstream,
                    &format!("stdio, era {era}, {answer:?}"),
                )
                .await;
                let transport = StreamableHttpClientTransport::from_uri(server.url());
                let client = serve_client_with_lifecycle(person.clone(), transport, mode)
                    .await
                    .unwrap();
                assert_eq!(
                    client.list_all_tools().await.unwrap().len(),
                    20,
                    "also where a session makes it a stream"
                );
                check(
                    client,
                    &person,
                    &upstream,
                    &format!("HTTP, era {era}, {answer:?}"),
                )
                .await;
            }
        }
    });
}

#[test]
fn a_client_that_cannot_ask_gets_a_refusal_that_says_how_to_allow_it() {
    let (spec, upstream) = (petstore(), Upstream::echo());
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &spec,
        "--base-url",
        &upstream.url,
        "--confirm",
        "write",
        "--header",
        KEY,
    ]);
    assert_eq!(session.call("list_pets", &json!({}))["isError"], false);
    upstream.take_one();
    for (tool, arguments) in [
        ("delete_pet", json!({"petId": 1})),
        (
            "create_pet",
            json!({"body": {"name": "Rex", "status": "available", "price": 1}}),
        ),
    ] {
        let result = session.call(tool, &arguments);
        let told = result["content"][0]["text"].as_str().unwrap();
        assert!(
            result["isError"] == true
                && told.contains("--confirm none")
                && told.contains("Nothing was sent"),
            "{tool}: {result}"
        );
    }
    let server = HttpServer::start(&asking_before_what_destroys(&spec, &upstream));
    let answer =
        server.call_stateless("delete_pet", json!({"arguments": {"petId": 1}}), &json!({}));
    let answer = answer.to_string();
    assert!(answer.contains("--confirm none"), "{answer}");
    assert!(upstream.received().is_empty());
}

/// A confirmation is bound to the call that was shown, and cannot be forged.
#[test]
fn a_confirmation_counts_for_one_call_only() {
    let (spec, upstream) = (petstore(), Upstream::echo());
    let server = HttpServer::start(&asking_before_what_destroys(&spec, &upstream));
    let post = |arguments: Value, answered: Option<(&str, Value)>| -> Value {
        let mut parameters = json!({"arguments": arguments});
        if let Some((state, answers)) = answered {
            parameters["requestState"] = state.into();
            parameters["inputResponses"] = answers;
        }
        server.call_stateless("delete_pet", parameters, &json!({"elicitation": {}}))
    };
    let asked = post(json!({"petId": 1}), None);
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let yes = || json!({"confirm": {"action": "accept", "content": {}}});
    for (arguments, state, answers) in [
        (json!({"petId": 2}), state.as_str(), yes()),
        (json!({"petId": 1}), "made up", yes()),
        (json!({"petId": 1}), "", yes()),
        (
            json!({"petId": 1}),
            state.as_str(),
            json!({"other": {"action": "accept"}}),
        ),
        (
            json!({"petId": 1}),
            state.as_str(),
            json!({"confirm": true}),
        ),
    ] {
        let again = post(arguments.clone(), Some((state, answers)));
        assert_eq!(
            again["result"]["resultType"], "input_required",
            "{arguments} {state}: {again}"
        );
    }
    assert!(upstream.received().is_empty());
    let done = post(json!({"petId": 1}), Some((&state, yes())));
    assert_eq!(done["result"]["isError"], false, "{done}");
    assert_eq!(upstream.take_one().line, "DELETE /pets/1 HTTP/1.1");
    let again = post(json!({"petId": 1}), Some((&state, yes())));
    assert_eq!(
        again["result"]["resultType"], "input_required",
        "a yes counts once: {again}"
    );
    assert!(upstream.received().is_empty());
}

/// With `--reload`, the same tool may send another request by the time a person answers.
#[test]
fn a_confirmation_counts_only_for_the_request_that_was_shown() {
    let moved = |path: &str| {
        let item = json!({"delete": {"operationId": "tidy"}});
        json!({"openapi": "3.1.0", "info": {"title": path, "version": "1"}, "paths": {path: item}})
            .to_string()
    };
    let (spec, upstream) = (SpecFile::new(&moved("/old")), Upstream::echo());
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--confirm",
        "destructive",
        "--reload",
        "0.1",
    ]);
    let post = |state: Option<&Value>| -> Value {
        let mut parameters = json!({"arguments": {}});
        if let Some(state) = state {
            parameters["requestState"] = state.clone();
            parameters["inputResponses"] = json!({"confirm": {"action": "accept", "content": {}}});
        }
        server.call_stateless("tidy", parameters, &json!({"elicitation": {}}))["result"].clone()
    };
    let asked = post(None);
    assert!(asked.to_string().contains(": DELETE /old?"), "{asked}");
    std::fs::write(spec.path(), moved("/everything")).unwrap();
    server.logged("the new version is served");
    let again = post(Some(&asked["requestState"]));
    assert!(
        again.to_string().contains(": DELETE /everything?"),
        "{again}"
    );
    assert!(upstream.received().is_empty());
    assert_eq!(post(Some(&again["requestState"]))["isError"], false);
    assert_eq!(upstream.take_one().line, "DELETE /everything HTTP/1.1");
}

/// The question shows everything that is sent, and the server does not wait for an answer that
/// cannot come.
#[test]
fn a_question_shows_every_argument_and_ends_with_its_call() {
    let (spec, upstream) = (petstore(), Upstream::echo());
    let mut session = Session::start_able(
        &[
            "serve",
            "--spec",
            &spec,
            "--base-url",
            &upstream.url,
            "--confirm",
            "write",
            "--header",
            KEY,
        ],
        &json!({"elicitation": {}}),
    );
    let body = json!({"note": "Harmless. ".repeat(100), "name": "Rex\u{200b}", "status": "available", "price": 1});
    let call = session.post(
        "tools/call",
        &json!({"name": "create_pet", "arguments": {"body": body}}),
    );
    let asked = session.receive();
    let told = asked["params"]["message"].as_str().unwrap();
    assert!(
        told.contains("- body: {\"note\":\"Harmless.")
            && told.contains("bytes more, which are not shown"),
        "{told}"
    );
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}));
    let withdrawn = session.receive();
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked["id"])
    );
    session.post(
        "tools/call",
        &json!({"name": "delete_pet", "arguments": {"petId": 1}}),
    );
    assert_eq!(session.receive()["method"], "elicitation/create");
    let begun = std::time::Instant::now();
    session.close_stdin();
    session.wait();
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    assert!(upstream.received().is_empty());
}

#[test]
fn a_person_is_asked_about_single_tools_by_pattern() {
    let (spec, upstream) = (petstore(), Upstream::echo());
    let config = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(
        config.path(),
        "confirm: ['list_pets', 'tag:users', '?no_such_tool']\n",
    )
    .unwrap();
    let config = config.path().to_str().unwrap();
    let body = json!({"body": {"name": "Rex", "status": "available", "price": 1}});
    for (flags, asked, free) in [
        (
            &["--confirm", "list_pets"][..],
            vec![("list_pets", json!({}))],
            vec![("delete_pet", json!({"petId": 1}))],
        ),
        (
            &["--confirm", "destructive,list_*"],
            vec![
                ("list_pets", json!({})),
                ("delete_pet", json!({"petId": 1})),
            ],
            vec![("create_pet", body.clone())],
        ),
        (
            &["--confirm", "destructive", "--confirm", "method:GET"],
            vec![
                ("list_pets", json!({})),
                ("delete_pet", json!({"petId": 1})),
            ],
            vec![("create_pet", body.clone())],
        ),
        (
            &["--config", config],
            vec![("list_pets", json!({}))],
            vec![("create_pet", body.clone())],
        ),
    ] {
        let args = [
            "serve",
            "--spec",
            &spec,
            "--base-url",
            &upstream.url,
            "--header",
            KEY,
        ];
        let mut session = Session::start(&[&args, flags].concat());
        for (tool, arguments) in asked {
            let result = session.call(tool, &arguments);
            assert!(
                result["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .contains("Nothing was sent"),
                "{flags:?} {tool}: {result}"
            );
        }
        assert!(upstream.received().is_empty(), "{flags:?}");
        for (tool, arguments) in free {
            assert_eq!(
                session.call(tool, &arguments)["isError"],
                false,
                "{flags:?} {tool}"
            );
            upstream.take_one();
        }
    }
}

#[test]
fn a_pattern_that_asks_about_nothing_ends_the_start() {
    let spec = petstore();
    let told = |confirm: &[&str]| {
        let args = ["serve", "--spec", &spec, "--mock"];
        let flags: Vec<&str> = confirm
            .iter()
            .flat_map(|text| ["--confirm", text])
            .collect();
        let output = run(&[&args[..], &flags].concat());
        (output.status.code(), stderr(&output))
    };
    let (code, text) = told(&["plce_order", "tag:billing", "list_pets"]);
    assert_eq!(code, Some(2), "{text}");
    for expected in [
        "`plce_order` matches no operation",
        "`tag:billing` matches no operation",
        "`?plce_order`",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("`list_pets`"), "{text}");
    for (confirm, expected) in [
        (&["destructiv"][..], "did you mean `destructive`?"),
        (&["none", "write"], "`none` cannot be combined"),
        (&["taq:x"], "`taq`"),
    ] {
        let (code, text) = told(confirm);
        assert!(
            code == Some(2) && text.contains(expected),
            "{confirm:?}: {text}"
        );
    }
    let (code, text) = told(&["?plce_order"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn p45_one_clients_answers_do_not_keep_those_of_others_from_counting() {
    let (spec, upstream) = (petstore(), Upstream::echo());
    let args = [
        &asking_before_what_destroys(&spec, &upstream)[..],
        &["--auth-token-env", "ONE,TWO"],
    ]
    .concat();
    let server = HttpServer::start_with(
        &args,
        &[
            ("ONE", "token-of-the-first-client"),
            ("TWO", "token-of-the-second-client"),
        ],
    );
    let post = |client: &str, answered: Option<(&str, &str)>| -> Value {
        let mut parameters = json!({"arguments": {"petId": 1}});
        if let Some((state, action)) = answered {
            parameters["requestState"] = state.into();
            parameters["inputResponses"] = json!({"confirm": {"action": action, "content": {}}});
        }
        let token = format!("Authorization: Bearer token-of-the-{client}-client");
        server.call_stateless_as(
            &[&token],
            "delete_pet",
            parameters,
            &json!({"elicitation": {}}),
        )["result"]
            .clone()
    };
    let ask = |client: &str| {
        post(client, None)["requestState"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let count = if soak() { 10_050 } else { 200 };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                (0..count / 8).for_each(|_| drop(post("first", Some((&ask("first"), "decline")))));
            });
        }
    });
    let done = post("second", Some((&ask("second"), "accept")));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(upstream.take_one().line, "DELETE /pets/1 HTTP/1.1");
}

#[test]
fn a_client_that_cannot_ask_is_warned_of_at_the_start() {
    for (flags, is_told) in [
        (
            &["--confirm", "destructive", "--client", "claude-desktop"][..],
            true,
        ),
        (
            &["--confirm", "destructive", "--client", "claude-code"],
            false,
        ),
        (&["--client", "claude-desktop"], false),
    ] {
        let mut session =
            Session::start(&[&["serve", "--mock", "--spec", &petstore()], flags].concat());
        let logs = session.end();
        let told = "Claude Desktop cannot ask its user, so that each call that needs a confirmation is refused; let a person agree by a link with --confirm-by link";
        assert_eq!(logs.contains(told), is_told, "{flags:?}: {logs}");
    }
}
