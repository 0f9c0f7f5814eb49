//! Static tokens with a name, and a share of the tools of their own (`auth_tokens`).

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::access::{OPERATIONS, Office, document, rules};
use super::audit::Log;
use crate::several::{Setup, post_to};
use crate::support::http_server::answer_header;
use crate::support::{
    HttpServer, LIST, SpecFile, Upstream, command, initialize_parameters, reply, stderr, text,
    wait_until,
};

const VARIABLES: [(&str, &str); 6] = [
    ("PLAIN", "a-plain-token-without-name"),
    ("READER", "the-token-of-the-reader-1"),
    ("OPS", "the-token-of-the-operators"),
    ("USERS", "the-token-of-the-user-desk"),
    ("SCOPED", "the-token-that-has-a-scope"),
    ("ALL", "the-token-that-may-do-all"),
];

fn authorization(name: &str) -> String {
    let (_, token) = VARIABLES.iter().find(|(own, _)| *own == name).unwrap();
    format!("Authorization: Bearer {token}")
}

fn tokens() -> Value {
    json!([
        {"name": "reader", "env": "READER", "read_only": true},
        {"name": "ops", "env": "OPS", "claims": {"groups": ["ops"]}, "scopes": ["admin"]},
        {"name": "users", "env": "USERS", "tool_include": ["tag:users", "?none"], "tool_exclude": "delete_*"},
        {"name": "scoped", "env": "SCOPED", "scopes": "audit", "tool_exclude": ["path:/users"]},
        {"name": "all", "env": "ALL"},
    ])
}

/// A server with these keys in its configuration, and these arguments.
fn serve(document: &Value, keys: &Value, args: &[&str]) -> Office {
    let setup = Setup::new();
    setup.write("office.json", &document.to_string());
    let mut config = json!({"spec": "office.json", "mock": true});
    config
        .as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    let config = setup.config(&config);
    let server = HttpServer::start_with(&[&["--config", &config][..], args].concat(), &VARIABLES);
    server.logged("tool");
    Office { server, setup }
}

#[test]
fn p84_a_token_has_its_own_share_of_the_tools() {
    let log = Log::new();
    let args = ["--auth-token-env", "PLAIN", "--audit-log", log.name()];
    let office = serve(
        &document(|_| true),
        &json!({"auth_tokens": tokens()}),
        &args,
    );
    let all = OPERATIONS.map(|[name, ..]| name);
    for (name, may) in [
        ("PLAIN", &all[..]),
        ("ALL", &all),
        ("OPS", &all),
        ("READER", &["list_users", "list_vaults", "read_audit"]),
        ("USERS", &["list_users", "create_user"]),
        (
            "SCOPED",
            &["delete_user", "list_vaults", "rotate_vault", "read_audit"],
        ),
    ] {
        let token = authorization(name);
        assert_eq!(office.listed(&token), may, "{name}");
        for [tool, ..] in OPERATIONS {
            let arguments = if ["delete_user", "rotate_vault"].contains(&tool) {
                json!({"id": "1"})
            } else {
                json!({})
            };
            let answer = office.call(&token, tool, &arguments).2;
            let unknown = format!("Unknown tool: {tool}");
            let is_unknown = answer["error"]["message"]
                .as_str()
                .is_some_and(|told| told.starts_with(&unknown));
            assert_eq!(!is_unknown, may.contains(&tool), "{name} {tool}: {answer}");
        }
    }
    let lines = log.wait_for(36);
    let clients: std::collections::BTreeSet<&str> = lines
        .iter()
        .map(|line| line["client"].as_str().unwrap())
        .collect();
    for name in [
        "token:all",
        "token:ops",
        "token:reader",
        "token:scoped",
        "token:users",
    ] {
        assert!(clients.contains(name), "{clients:?}");
    }
    assert_eq!(clients.len(), 6, "{clients:?}");
}

#[test]
fn p84_claims_and_scopes_of_a_token_count_for_access() {
    let keys = json!({"auth_tokens": tokens(), "access": rules()});
    let office = serve(&document(|_| true), &keys, &["--auth-token-env", "PLAIN"]);
    let searching = serve(
        &document(|_| true),
        &keys,
        &["--auth-token-env", "PLAIN", "--tools", "search"],
    );
    for (name, may, lacks) in [
        (
            "PLAIN",
            &["list_users", "create_user"][..],
            &["read_audit"][..],
        ),
        ("ALL", &["list_users", "create_user"], &["read_audit"]),
        ("READER", &["list_users"], &["read_audit"]),
        (
            "OPS",
            &["list_users", "create_user", "list_vaults"],
            &["read_audit"],
        ),
        ("USERS", &["list_users", "create_user"], &[]),
        ("SCOPED", &["read_audit"], &[]),
    ] {
        let token = authorization(name);
        assert_eq!(office.listed(&token), may, "{name}");
        for [tool, ..] in OPERATIONS {
            let arguments = if ["delete_user", "rotate_vault"].contains(&tool) {
                json!({"id": "1"})
            } else {
                json!({})
            };
            let (status, head, answer) = office.call(&token, tool, &arguments);
            let is_called = answer["result"]["isError"] == json!(false);
            assert_eq!(
                (status == 403, is_called),
                (lacks.contains(&tool), may.contains(&tool)),
                "{name} {tool}: {answer}"
            );
            if status == 403 {
                let challenge = answer_header(&head, "www-authenticate").unwrap();
                assert!(
                    challenge.contains(r#"error="insufficient_scope""#)
                        && challenge.contains(r#"scope="audit""#),
                    "{challenge}"
                );
            }
            let described = searching
                .call(&token, "describe_operations", &json!({"names": [tool]}))
                .2;
            assert_eq!(
                described["result"]["isError"] == json!(false),
                may.contains(&tool),
                "{name} {tool}: {described}"
            );
        }
        let found = searching.call(&token, "search_operations", &json!({})).2;
        let counted = format!("{} operation", may.len());
        assert!(
            text(&found["result"]).starts_with(&counted),
            "{name}: {found}"
        );
        let told = searching
            .ask(&token, "initialize", &initialize_parameters(&json!({})))
            .2;
        assert!(!told.to_string().contains("vault"), "{told}");
    }
}

#[test]
fn p84_a_file_is_read_again_and_the_limit_counts_by_name() {
    let setup = Setup::new();
    setup.write("office.json", &document(|_| true).to_string());
    let file = setup.write("one.token", "# of today\nthe-first-token-of-a-file\n");
    let config = setup.config(
        &json!({"spec": "office.json", "mock": true, "client_rate_limit": 0.01, "auth_tokens": [
        {"name": "one", "file": file}, {"name": "two", "env": "ALL"}]}),
    );
    let mut server = HttpServer::start_with(&["--config", &config], &VARIABLES);
    let ask = |token: &str| {
        server
            .send("POST", &[&format!("Authorization: Bearer {token}")], LIST)
            .0
    };
    assert_eq!(
        (
            ask("the-first-token-of-a-file"),
            ask("the-token-that-may-do-all")
        ),
        (200, 200)
    );
    assert_eq!(ask("the-first-token-of-a-file"), 429);
    setup.write("one.token", "the-token-that-may-do-all");
    server.logged("its token is that of another client");
    setup.write(
        "one.token",
        "the-first-token-of-a-file\nanother-token-of-the-file",
    );
    server.logged("holds 2 tokens, and a name is for one");
    setup.write("one.token", "another-token-of-the-file");
    server.logged("the tokens of clients were read again");
    assert_eq!(
        ask("another-token-of-the-file"),
        429,
        "it is the same client"
    );
    let logs = server.end();
    assert!(
        !logs.contains("token-of-the-file") && !logs.contains("the-first"),
        "{logs}"
    );
}

#[test]
fn p84_a_change_that_would_free_a_tool_is_not_served() {
    let keys = json!({"auth_tokens": [{"name": "desk", "env": "USERS", "tool_exclude": ["delete_user"]}], "reload": 0.2});
    let office = serve(&document(|_| true), &keys, &[]);
    let token = authorization("USERS");
    let before = office.listed(&token);
    assert!(!before.contains(&"delete_user".to_owned()));
    let mut renamed = document(|_| true);
    renamed["paths"]["/users/{id}"]["delete"]["operationId"] = "remove_user".into();
    office.write(&renamed);
    let told = office
        .server
        .logged("cannot be served; the tools stay as they were");
    assert!(
        told.contains(
            "`tool_exclude` of the token `desk`: `delete_user` matches no tool of any API"
        ),
        "{told}"
    );
    assert_eq!(office.listed(&token), before);
}

#[test]
fn p84_a_document_that_comes_late_is_not_served_if_a_pattern_matches_nothing() {
    let text = Arc::new(Mutex::new(None::<String>));
    let known = Arc::clone(&text);
    let documents = Upstream::start(Box::new(move |_| match known.lock().unwrap().as_ref() {
        Some(text) => reply(200, &["Content-Type: application/json"], text.as_bytes()),
        None => reply(503, &[], b""),
    }));
    let mut renamed = document(|_| true);
    renamed["paths"]["/users/{id}"]["delete"]["operationId"] = "remove_user".into();
    let url = format!("{}/office.json", documents.url);
    let keys = json!([{"name": "desk", "env": "USERS", "tool_exclude": ["delete_user", "?none"]}]);
    // As the only API, and as the last of two.
    let office = json!({"spec": url, "mock": true});
    let only = json!({"spec": url, "mock": true, "reload": 0.2, "auth_tokens": keys});
    let last = json!({"apis": {"office": office, "things": {"spec": "things.json", "mock": true}}, "reload": 0.2, "auth_tokens": keys});
    for (config, path) in [(only, "/mcp"), (last, "/mcp/office")] {
        *text.lock().unwrap() = None;
        let setup = Setup::new();
        setup.document("things");
        let server = HttpServer::start_with(&["--config", &setup.config(&config)], &VARIABLES);
        server.logged("503");
        *text.lock().unwrap() = Some(renamed.to_string());
        let told = server.logged("the document still cannot be served: `tool_exclude`");
        assert!(
            told.contains(
                "`tool_exclude` of the token `desk`: `delete_user` matches no tool of any API"
            ),
            "{told}"
        );
        let list = || {
            post_to(&server, path, &[&authorization("USERS")], LIST)
                .2
                .to_string()
        };
        assert!(!list().contains("remove_user"), "{}", list());
        *text.lock().unwrap() = Some(document(|_| true).to_string());
        wait_until("the document was not served", || {
            list().contains("list_users")
        });
        assert!(!list().contains("delete_user"), "{}", list());
    }
}

#[test]
fn all_wrong_tokens_are_reported_at_start() {
    let setup = Setup::new();
    setup.write("office.json", &document(|_| true).to_string());
    let two = setup.write("two", "the-first-token-of-two\nthe-second-token-of-two");
    let start = |tokens: &Value, args: &[&str]| {
        let config =
            setup.config(&json!({"spec": "office.json", "mock": true, "auth_tokens": tokens}));
        let http = ["--transport", "http", "--bind", "127.0.0.1:0"];
        let args = [
            &["serve", "--config", &config][..],
            if args.is_empty() { &http } else { args },
        ]
        .concat();
        let output = command(&args)
            .envs(VARIABLES)
            .env("SHORT", "hunter2")
            .output()
            .unwrap();
        (output.status.code(), stderr(&output))
    };
    for (tokens, args, words) in [
        (
            json!([{"name": "a", "env": "ALL"}, {"name": "a", "env": "OPS"}, {"name": "B!", "env": "READER"}, {"env": "USERS"}, {"name": "e", "env": "ALL"},
                {"name": "f"}, {"name": "g", "env": "SCOPED", "file": "x"}, {"name": "h", "env": "UNSET_VARIABLE"}, {"name": "i", "env": "SHORT"}, {"name": "j", "file": two},
                {"name": "k", "env": "PLAIN", "scopes": ["a b"], "tool_include": ["tags:x"]}]),
            &[][..],
            &[
                "`auth_tokens[1].name`: `a` is the name of another token",
                "`auth_tokens[2].name` must be 1 to 32",
                "`auth_tokens[3].name` must be",
                "`auth_tokens[4]`: its token is there twice",
                "`auth_tokens[5]`: there is no token; add `env`",
                "`auth_tokens[6]`: `env` and `file` exclude each other",
                "`auth_tokens[7]`",
                "UNSET_VARIABLE",
                "`auth_tokens[8]`: the token in the variable `SHORT` is shorter than 16",
                "`auth_tokens[9]`",
                "holds 2 tokens",
                "`auth_tokens[10]`: `a b` is not an OAuth scope",
                "`auth_tokens[10].tool_include`: `tags:x` is not a valid pattern",
            ][..],
        ),
        (
            json!([{"name": "a", "token": "my-secret-token-of-the-file"}, {"name": 1, "env": ["x"], "read_only": "yes", "claims": ["a"], "role": "x", "tool_include": 3}, "my-secret-token-of-the-file"]),
            &[],
            &[
                "unknown key `auth_tokens[0].token`: this file holds no token",
                "`auth_tokens[1].name` is a number",
                "`auth_tokens[1].env`",
                "`auth_tokens[1].read_only`",
                "`auth_tokens[1].claims` is a list",
                "unknown key `auth_tokens[1].role`",
                "`auth_tokens[1].tool_include`",
                "`auth_tokens[2]` is a text",
            ],
        ),
        (
            json!([{"name": "a", "env": "ALL", "scopes": []}, {"name": "b", "env": "OPS", "tool_include": [], "tool_exclude": []}]),
            &[],
            &[
                "`auth_tokens[0].scopes` is a list; expected a text or a list of texts that is not empty",
                "`auth_tokens[1].tool_include` is a list; expected a text or a list of texts that is not empty",
            ],
        ),
        (json!([]), &[], &["`auth_tokens` is an empty list"]),
        (
            json!([{"name": "a", "env": "ALL", "tool_exclude": ["delete_usr"], "tool_include": ["tag:none", "?tag:nothing"]}]),
            &[],
            &[
                "`tool_exclude` of the token `a`: `delete_usr` matches no tool",
                "`tool_include` of the token `a`: `tag:none` matches no tool of any API; write `?tag:none`",
            ],
        ),
        (
            json!([{"name": "a", "env": "PLAIN"}]),
            &[
                "--transport",
                "http",
                "--bind",
                "127.0.0.1:0",
                "--auth-token-env",
                "PLAIN",
            ],
            &["`auth_tokens[0]`: its token is there twice"],
        ),
        (
            json!([{"name": "a", "env": "PLAIN"}]),
            &["--transport", "http", "forward_authorization: true"],
            &["`auth_tokens` or --oauth-issuer"],
        ),
        (
            json!([{"name": "a", "env": "PLAIN"}]),
            &["--log-level", "info"],
            &["`auth_tokens` needs --transport http"],
        ),
    ] {
        let (code, told) = start(&tokens, args);
        assert_eq!(code, Some(2), "{tokens}: {told}");
        for word in words {
            assert!(told.contains(word), "{word}: {told}");
        }
        assert!(
            !told.contains("hunter2") && !told.contains("my-secret") && !told.contains("the-token"),
            "{told}"
        );
    }
    // Of several APIs, it belongs to none.
    let config = SpecFile::new(
        &json!({"apis": {"office": {"spec": "office.json", "auth_tokens": []}}}).to_string(),
    );
    let output = command(&["serve", "--config", config.path()])
        .output()
        .unwrap();
    assert!(
        stderr(&output).contains("`auth_tokens` concerns the whole process"),
        "{}",
        stderr(&output)
    );
}
