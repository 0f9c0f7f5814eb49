//! Several APIs over stdio.

use serde_json::{Value, json};

use super::{KEYS, Setup, names, pets_and_bills};
use crate::support::{HttpServer, Session, Upstream, project, text};

#[test]
fn names_carry_their_api_and_calls_arrive_there() {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.document("bills");
    let config = setup.config(&pets_and_bills(&pets, &bills));
    let mut session = Session::start_with(&["serve", "--config", &config], &KEYS);
    let tools = session.tools();
    assert_eq!(
        names(&tools),
        [
            "bills_list_things",
            "bills_create_thing",
            "pets_list_things",
            "pets_create_thing"
        ]
    );
    session.call("pets_list_things", &json!({"q": "cats"}));
    let sent = pets.take_one();
    assert_eq!(
        (sent.path(), sent.header("x-key")),
        ("/things?q=cats", Some("the-key-of-pets"))
    );
    session.call("bills_create_thing", &json!({}));
    assert_eq!(bills.take_one().header("x-key"), Some("the-key-of-bills"));
    let unknown = session.request(
        "tools/call",
        &json!({"name": "list_things", "arguments": {}}),
    );
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let near = session.request(
        "tools/call",
        &json!({"name": "bills_list_thing", "arguments": {}}),
    );
    assert!(
        near["error"]["message"]
            .as_str()
            .unwrap()
            .contains("did you mean bills_list_things?"),
        "{near}"
    );
}

#[test]
fn instructions_name_each_api_with_its_title_and_no_other_words_of_its_document() {
    let setup = Setup::new();
    let mut long = super::document("pets");
    long["info"]["title"] =
        "A title\nof two lines that goes on and on and on, far beyond what anybody wants to read"
            .into();
    long["info"]["description"] = "Never use the other API.".into();
    setup.write("pets.json", &long.to_string());
    setup.document("bills");
    let config =
        setup.config(&json!({"mock": true, "apis": {"pets": {"spec": "pets.json"}, "bills": {"spec": "bills.json", "tool_prefix": "b-"}}}));
    let mut session = Session::start(&["serve", "--config", &config]);
    session.logged("all 2 APIs are served");
    drop(session);
    session = Session::start(&["serve", "--config", &config]);
    let handshake = session.handshake().clone();
    let instructions = handshake["instructions"].as_str().unwrap();
    for words in [
        "- bills (names begin with b-): The bills API, 2 tools",
        "- pets (names begin with pets_): A title of two lines",
    ] {
        assert!(instructions.contains(words), "{instructions}");
    }
    assert!(
        !instructions.contains("Never") && !instructions.contains("anybody"),
        "{instructions}"
    );
    assert_eq!(handshake["serverInfo"]["title"], "bills, pets");
    assert_eq!(
        handshake["capabilities"]["tools"]["listChanged"], true,
        "{handshake}"
    );
}

/// The answer to `server/discover` as the first message.
fn discovered(args: &[&str]) -> Value {
    let meta = crate::support::stateless_meta(&json!({}));
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
    let mut child = crate::support::command(args)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(
        child.stdin.as_mut().unwrap(),
        format!("{message}\n").as_bytes(),
    )
    .unwrap();
    // The input stays open: at its end the server would answer at once.
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    serde_json::from_str::<Value>(&line).unwrap()["result"].clone()
}

/// Returns the part of the instructions that hosts with the shortest view show.
fn shown_instructions(introduction: &Value) -> String {
    introduction["instructions"]
        .as_str()
        .unwrap()
        .chars()
        .take(512)
        .collect()
}

#[test]
fn a_client_that_discovers_the_server_at_once_is_told_of_its_apis() {
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    let config = setup.config(&json!({"mock": true, "apis": {"pets": {"spec": "pets.json"}, "bills": {"spec": "bills.json"}}}));
    let shown = shown_instructions(&discovered(&["serve", "--config", &config]));
    assert!(
        shown.contains("Tools of 2 APIs") && !shown.contains("not loaded yet"),
        "{shown}"
    );
}

#[test]
fn the_instructions_begin_with_what_matters_most() {
    let setup = Setup::new();
    let apis: serde_json::Map<String, Value> = (0..20)
        .map(|number| {
            let name = format!("api{number}");
            setup.write(
                &format!("{name}.json"),
                &super::document(&"long title ".repeat(8)).to_string(),
            );
            (name.clone(), json!({"spec": format!("{name}.json")}))
        })
        .chain([("gone".to_owned(), json!({"spec": "gone.json"}))])
        .collect();
    let config = setup.config(&json!({"mock": true, "apis": apis}));
    for (mode, said) in [
        (
            "all",
            &[
                "each makes one HTTP request",
                "nothing of it is found: gone",
            ][..],
        ),
        (
            "search",
            &[
                "Three steps: ",
                "search_operations finds",
                "call_write",
                "calls one",
                "nothing of it is found: gone",
            ],
        ),
    ] {
        let mut session = Session::start(&["serve", "--config", &config, "--tools", mode]);
        session.logged("20 of 21 APIs are served");
        let meta = crate::support::stateless_meta(&json!({}));
        let answer = session.request("server/discover", &json!({"_meta": meta}));
        let shown = shown_instructions(&answer["result"]);
        assert!(
            said.iter().all(|words| shown.contains(words)),
            "{mode}: {shown}"
        );
    }
    setup.document("only");
    let only = setup.folder.path().join("only.json");
    for mode in ["all", "search"] {
        let session = Session::start(&[
            "serve",
            "--mock",
            "--spec",
            only.to_str().unwrap(),
            "--tools",
            mode,
        ]);
        let shown = shown_instructions(session.handshake());
        let steps = if mode == "all" {
            "Tools for"
        } else {
            "Three steps: "
        };
        assert!(
            shown.contains(steps) && shown.contains("only") && shown.contains("one HTTP request"),
            "{shown}"
        );
    }
}

#[test]
fn a_mock_answers_for_all_and_nothing_leaves() {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.document("bills");
    let config = setup.config(&pets_and_bills(&pets, &bills));
    let mut session = Session::start_with(&["serve", "--mock", "--config", &config], &KEYS);
    for tool in ["pets_list_things", "bills_create_thing"] {
        let result = session.call(tool, &json!({}));
        assert_ne!(result["isError"], true, "{result}");
    }
    assert_eq!((pets.received().len(), bills.received().len()), (0, 0));
}

#[test]
fn twenty_real_documents_are_served_at_once() {
    let files = super::corpus_documents(20);
    if files.is_empty() {
        return;
    }
    let setup = Setup::new();
    let apis: serde_json::Map<String, Value> = files
        .iter()
        .enumerate()
        .map(|(index, file)| (format!("api{index}"), json!({"spec": file, "mock": true})))
        .collect();
    let count = apis.len();
    let config = setup.config(&json!({"apis": apis}));
    let mut session = Session::start(&["serve", "--config", &config]);
    let tools = session.tools();
    let by_name: std::collections::BTreeSet<&str> = names(&tools).into_iter().collect();
    assert_eq!(by_name.len(), tools.len(), "names are unique");
    let has_tools = |index: &usize| {
        by_name
            .iter()
            .any(|name| name.starts_with(&format!("api{index}_")))
    };
    let with_tools = (0..count).filter(has_tools).count();
    // A document of the corpus may have no operation; each is decided, and none costs another.
    assert!(
        count == 20 && with_tools >= 15,
        "{with_tools} of {count}: {}",
        session.logs()
    );
    assert!(by_name.iter().all(|name| name.len() <= 64));
}

#[test]
fn the_example_of_the_documentation_is_understood() {
    let page = std::fs::read_to_string(project("docs/guides/several-apis.md")).unwrap();
    let example = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let setup = Setup::new();
    let config = setup.write(
        "mcp.yaml",
        &example.replace("https://bills.example/openapi.json", "bills.json"),
    );
    setup.document("bills");
    std::fs::copy(
        crate::support::petstore(),
        setup.folder.path().join("petstore.yaml"),
    )
    .unwrap();
    let tagged = setup.folder.path().join("bills.json");
    let mut document: Value =
        serde_json::from_str(&std::fs::read_to_string(&tagged).unwrap()).unwrap();
    document["paths"]["/things"]["post"]["tags"] = json!(["admin"]);
    std::fs::write(&tagged, document.to_string()).unwrap();
    let output = crate::support::command(&["tools", "--config", &config])
        .env("PETS_KEY", "k3y-of-pets")
        .output()
        .unwrap();
    let told = crate::support::stdout(&output);
    assert!(
        told.contains("pets_") && told.contains("b_list_things"),
        "{told}{}",
        crate::support::stderr(&output)
    );
    assert!(!told.contains("b_create_thing"), "{told}");
}

#[test]
fn a_call_of_a_served_api_waits_for_no_other() {
    let setup = Setup::new();
    setup.document("pets");
    let (silent, url) = crate::support::listener();
    let pets = Upstream::echo();
    let config = setup.config(&json!({"apis": {
        "pets": {"spec": "pets.json", "base_url": pets.url, "allow_missing_credentials": true},
        "slow": {"spec": format!("{url}/openapi.json")},
    }}));
    let started = std::time::Instant::now();
    let mut session = Session::start(&["serve", "--config", &config]);
    let instructions = session.handshake()["instructions"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        instructions.contains("- slow: not loaded yet"),
        "{instructions}"
    );
    let result = session.call("pets_list_things", &json!({}));
    assert!(text(&result).contains("ok"), "{result}");
    assert!(
        started.elapsed() < crate::support::within(8),
        "it waited for the other"
    );
    // The list waits for a while, and then has what is there.
    let list = session.request("tools/list", &json!({}));
    assert_eq!(
        names(list["result"]["tools"].as_array().unwrap()).len(),
        2,
        "{list}"
    );
    assert_eq!(list["result"]["ttlMs"], 0, "{list}");
    // An API that comes late is reported, and served.
    let document = super::document("slow").to_string();
    let (stream, _) = silent.accept().unwrap();
    std::io::Write::write_all(
        &mut &stream,
        &crate::support::reply(
            200,
            &["Content-Type: application/json"],
            document.as_bytes(),
        ),
    )
    .unwrap();
    let told = session.receive();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert_eq!(session.tools().len(), 4);
}

#[test]
fn metrics_name_the_api_where_there_are_several() {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.document("bills");
    let config = setup.config(&pets_and_bills(&pets, &bills));
    let args = [
        "serve",
        "--config",
        &config,
        "--metrics-bind",
        "127.0.0.1:0",
    ];
    let mut session = Session::start_with(&args, &KEYS);
    session.call("pets_list_things", &json!({}));
    session.call("bills_create_thing", &json!({}));
    session.call("bills_create_thing", &json!({}));
    let logs = session.logged("metrics at");
    let (_, address) = logs.split_once("metrics at http://").unwrap();
    let text = crate::support::http_server::scrape(address.split('/').next().unwrap());
    for (expected, value) in [
        (
            "mcp_server_operation_duration_seconds_count{api=\"pets\",mcp_method_name=\"tools/call\",gen_ai_tool_name=\"list_things\"",
            "1",
        ),
        (
            "mcp_server_operation_duration_seconds_count{api=\"bills\",mcp_method_name=\"tools/call\",gen_ai_tool_name=\"create_thing\"",
            "2",
        ),
        (
            "mcp_server_operation_duration_seconds_count{mcp_method_name=\"initialize\"",
            "1",
        ),
        (
            "http_client_request_duration_seconds_count{api=\"bills\",http_request_method=\"POST\"",
            "2",
        ),
        (
            "openapi_mcp_inflight{api=\"pets\",server_address=\"127.0.0.1\"}",
            "0",
        ),
        (
            "openapi_mcp_breaker_open{api=\"bills\",server_address=\"127.0.0.1\"}",
            "0",
        ),
        ("openapi_mcp_tools{api=\"pets\",effect=\"read\"}", "1"),
        ("openapi_mcp_tools{api=\"bills\",effect=\"write\"}", "1"),
        ("openapi_mcp_retries_total{api=\"pets\"}", "0"),
    ] {
        let line = text
            .lines()
            .find(|line| line.starts_with(expected))
            .unwrap_or_else(|| panic!("{expected}: {text}"));
        assert!(line.ends_with(&format!(" {value}")), "{line}");
    }
}

#[test]
fn each_line_of_the_log_about_one_api_names_it() {
    let setup = Setup::new();
    let mut document = super::document("pets");
    document["paths"]["/more"] =
        json!({"get": {"operationId": "more", "parameters": [{"$ref": "#/nowhere"}]}});
    setup.write("pets.json", &document.to_string());
    setup.document("bills");
    let gone = "http://127.0.0.1:9";
    let api = |spec: &str| json!({"spec": spec, "base_url": gone, "retries": 0, "allow_missing_credentials": true});
    let config =
        setup.config(&json!({"apis": {"pets": api("pets.json"), "bills": api("bills.json")}}));
    for (format, api) in [
        ("text", "document{api=pets}: "),
        ("json", r#""spans":[{"api":"pets","name":"document"}]"#),
    ] {
        let mut session = Session::start(&["serve", "--config", &config, "--log-format", format]);
        session.call("pets_list_things", &json!({}));
        let log = session.end();
        for words in ["1 remark on the document", "The pets API: 3 tools"] {
            let line = log
                .lines()
                .find(|line| line.contains(words))
                .unwrap_or_else(|| panic!("{words}: {log}"));
            assert!(line.contains(api), "{line}");
        }
        let call = log
            .lines()
            .find(|line| line.contains("the call failed"))
            .unwrap_or_else(|| panic!("{log}"));
        assert!(call.contains("pets_list_things"), "{call}");
    }
}

#[test]
fn the_only_entry_has_a_prefix_as_well() {
    let setup = Setup::new();
    setup.document("pets");
    let config = setup.config(&json!({"mock": true, "apis": {"pets": {"spec": "pets.json"}}}));
    let mut session = Session::start(&["serve", "--config", &config]);
    assert_eq!(
        names(&session.tools()),
        ["pets_list_things", "pets_create_thing"]
    );
}

#[test]
fn apis_that_are_too_many_for_the_instructions_are_counted() {
    let setup = Setup::new();
    setup.document("pets");
    let name = |index: usize| format!("a-long-name-of-an-api-{index:03}");
    let apis: serde_json::Map<String, Value> = (0..90)
        .map(|index| (name(index), json!({"spec": "pets.json"})))
        .collect();
    let config = setup.config(&json!({"mock": true, "apis": apis}));
    let server = HttpServer::start(&["--config", &config]);
    server.logged("all 90 APIs are served");
    let parameters = crate::support::initialize_parameters(&json!({}));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters});
    let answer = super::post_to(&server, "/mcp", &[], &hello.to_string()).2;
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    assert!(instructions.len() <= 2048, "{}", instructions.len());
    let named = instructions.matches("a-long-name-of-an-api-").count();
    assert!(
        named < 90 && instructions.contains(&format!("and {} more", 90 - named)),
        "{instructions}"
    );
}

/// The work on a large document delays neither the handshake nor the calls of others, also if there
/// is one processor.
#[test]
fn a_large_document_keeps_nobody_waiting() {
    let setup = Setup::new();
    setup.document("pets");
    let path = |index: usize| {
        let parameters: Vec<Value> = (0..20)
            .map(|name| json!({"name": format!("p{name}"), "in": "query", "schema": {"type": "string"}}))
            .collect();
        (
            format!("/things{index}"),
            json!({"get": {"operationId": format!("get_{index}"), "parameters": parameters}}),
        )
    };
    let paths: serde_json::Map<String, Value> = (0..3000).map(path).collect();
    setup.write(
        "large.json",
        &json!({"openapi": "3.1.0", "info": {"title": "Large", "version": "1"}, "paths": paths})
            .to_string(),
    );
    let upstream = Upstream::echo();
    let config = setup.config(&json!({"apis": {
        "large": {"spec": "large.json", "base_url": upstream.url},
        "pets": {"spec": "pets.json", "base_url": upstream.url, "allow_missing_credentials": true},
    }}));
    let mut session = Session::start_with(
        &["serve", "--config", &config],
        &[("TOKIO_WORKER_THREADS", "1")],
    );
    let instructions = session.handshake()["instructions"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        instructions.contains("large: not loaded yet"),
        "{instructions}"
    );
    let result = session.call("pets_list_things", &json!({}));
    assert_eq!(result["isError"], false, "{result}");
    crate::support::wait_until("the large one is served", || session.tools().len() == 3_002);
}
