//! Which operations each caller may list and call (`access`): every door gives the same answer,
//! that of a server whose document lacks what the caller's claims do not open.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::auth_oauth::{Issuer, Signer, now, wait_for_keys};
use crate::several::{Setup, listed, post_to};
use crate::support::http_server::{answer_header, http_request};
use crate::support::{
    HttpServer, LIST, Upstream, call_message, command, initialize_parameters, stateless_meta,
    stderr, text, wait_until,
};

const PUBLIC: &str = "https://mcp.example/mcp";

/// Each operation: name, method, path, tag.
pub const OPERATIONS: [[&str; 4]; 6] = [
    ["list_users", "get", "/users", "users"],
    ["create_user", "post", "/users", "users"],
    ["delete_user", "delete", "/users/{id}", "users"],
    ["list_vaults", "get", "/vaults", "admin"],
    ["rotate_vault", "put", "/vaults/{id}", "admin"],
    ["read_audit", "get", "/audit", "audit"],
];

/// A document with those of the operations that are `kept`.
pub fn document(kept: impl Fn(&str) -> bool) -> Value {
    let mut paths = json!({});
    for [name, method, path, tag] in OPERATIONS.into_iter().filter(|[name, ..]| kept(name)) {
        let id =
            json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
        let parameters = if path.contains('{') { id } else { json!([]) };
        paths[path][method] = json!({"operationId": name, "tags": [tag], "summary": format!("The summary of {name}."),
            "parameters": parameters, "responses": {"200": {"description": "Done."}}});
    }
    json!({"openapi": "3.1.0", "info": {"title": "Office", "version": "1"}, "paths": paths})
}

pub fn rules() -> Value {
    json!([
        {"match": {"tag": "admin"}, "scopes": ["admin", "root"], "claims": {"groups": ["ops", "sre"]}},
        {"match": {"method": ["PUT", "PATCH", "DELETE"]}, "claims": {"/realm_access/roles": ["billing"]}},
        {"match": {"operation": "read_audit"}, "scopes": "audit"},
    ])
}

/// A server, and what signs the tokens of its clients.
pub struct Office {
    pub server: HttpServer,
    pub setup: Setup,
}

struct Keys {
    issuer: Issuer,
    signer: Signer,
}

impl Keys {
    fn new() -> Self {
        let signer = Signer::rsa();
        let issuer = Issuer::start(vec![signer.jwk("k")]);
        Self { issuer, signer }
    }

    fn authorization(&self, claims: &Value) -> String {
        let mut all =
            json!({"iss": self.issuer.name(), "aud": PUBLIC, "exp": now() + 300, "sub": "ann"});
        all.as_object_mut()
            .unwrap()
            .extend(claims.as_object().unwrap().clone());
        format!(
            "Authorization: Bearer {}",
            self.signer
                .token(&json!({"alg": "RS256", "kid": "k"}), &all)
        )
    }

    fn serve(&self, document: &Value, more: &Value, args: &[&str]) -> Office {
        self.serve_with(document, more, args, &[])
    }

    fn serve_with(
        &self,
        document: &Value,
        more: &Value,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Office {
        let setup = Setup::new();
        setup.write("office.json", &document.to_string());
        let mut config = json!({"spec": "office.json", "mock": true, "oauth_issuer": self.issuer.name(), "public_url": PUBLIC, "page": "full"});
        config
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let config = setup.config(&config);
        let server =
            HttpServer::start_with(&[&["--config", &config][..], args].concat(), variables);
        server.logged("tool");
        wait_for_keys(&self.issuer);
        Office { server, setup }
    }
}

impl Office {
    pub fn ask(
        &self,
        authorization: &str,
        method: &str,
        parameters: &Value,
    ) -> (u16, String, Value) {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).to_string();
        post_to(&self.server, "/mcp", &[authorization], &message)
    }

    pub fn call(&self, authorization: &str, tool: &str, arguments: &Value) -> (u16, String, Value) {
        post_to(
            &self.server,
            "/mcp",
            &[authorization],
            &call_message(tool, &arguments.to_string()),
        )
    }

    pub fn write(&self, document: &Value) {
        self.setup.write("office.json", &document.to_string());
    }

    pub fn listed(&self, authorization: &str) -> Vec<String> {
        listed(&self.server, "/mcp", &[authorization])
    }
}

/// Claims, and the operations that they let a caller list, and those for which it only lacks a
/// scope.
fn callers() -> Vec<(Value, &'static [&'static str], &'static [&'static str])> {
    vec![
        (json!({}), &["list_users", "create_user"], &["read_audit"]),
        (
            json!({"scope": "admin root"}),
            &["list_users", "create_user"],
            &["read_audit"],
        ),
        (
            json!({"groups": ["ops"]}),
            &["list_users", "create_user"],
            &["list_vaults", "read_audit"],
        ),
        (
            json!({"groups": "sre", "scope": "x root"}),
            &["list_users", "create_user", "list_vaults"],
            &["read_audit"],
        ),
        (
            json!({"groups": "ops sre", "scope": "admin"}),
            &["list_users", "create_user"],
            &["read_audit"],
        ),
        (
            json!({"realm_access": {"roles": ["billing"]}, "scope": "audit"}),
            &["list_users", "create_user", "delete_user", "read_audit"],
            &[],
        ),
        (
            json!({"realm_access": {"roles": ["billing"]}, "groups": ["dev", "ops"]}),
            &["list_users", "create_user", "delete_user"],
            &["list_vaults", "rotate_vault", "read_audit"],
        ),
        (
            json!({"/realm_access/roles": ["billing"], "realm_access": "billing"}),
            &["list_users", "create_user"],
            &["read_audit"],
        ),
        (
            json!({"realm_access": {"roles": ["billing"]}, "groups": "ops", "scp": ["admin", "audit"]}),
            &[
                "list_users",
                "create_user",
                "delete_user",
                "list_vaults",
                "rotate_vault",
                "read_audit",
            ],
            &[],
        ),
    ]
}

#[test]
fn p83_list_and_calls_are_those_of_a_document_without_what_is_hidden() {
    let keys = Keys::new();
    let office = keys.serve(&document(|_| true), &json!({"access": rules()}), &[]);
    for (claims, may, lacks) in callers() {
        let ann = keys.authorization(&claims);
        // What lacks a scope exists, and is not listed.
        let exists = |name: &str| may.contains(&name) || lacks.contains(&name);
        let lesser = keys.serve(&document(exists), &json!({}), &[]);
        assert_eq!(office.listed(&ann), may, "{claims}");
        let whole = office.ask(&ann, "tools/list", &json!({})).2;
        let other = lesser.ask(&ann, "tools/list", &json!({})).2;
        let shown = |list: &Value| {
            let tools = list["result"]["tools"].as_array().unwrap().clone();
            tools
                .into_iter()
                .filter(|tool| may.contains(&tool["name"].as_str().unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&whole), shown(&other), "{claims}");
        assert_eq!(whole["result"]["cacheScope"], "private");
        let names = OPERATIONS.map(|[name, ..]| name);
        for name in names
            .into_iter()
            .chain(["delete_use", "list_vault", "none"])
        {
            for arguments in [json!({"id": "1"}), json!({}), json!({"x": 1})] {
                let (status, head, answer) = office.call(&ann, name, &arguments);
                if lacks.contains(&name) {
                    let challenge = answer_header(&head, "www-authenticate").unwrap();
                    assert!(
                        status == 403 && challenge.contains("insufficient_scope"),
                        "{claims} {name}: {head}"
                    );
                    continue;
                }
                let (expected, _, like) = lesser.call(&ann, name, &arguments);
                // Suggestions name what is listed, and the other server lists what lacks a scope.
                if !answer.to_string().contains("did you mean")
                    && !like.to_string().contains("did you mean")
                {
                    assert_eq!((status, &answer), (expected, &like), "{claims} {name}");
                }
                assert_eq!(
                    answer["error"].is_null(),
                    may.contains(&name),
                    "{claims} {name}: {answer}"
                );
            }
            let shown = office
                .ask(&ann, "openapi-mcp/tool", &json!({"tool": name}))
                .2;
            assert_eq!(
                shown["error"].is_null(),
                may.contains(&name),
                "{claims} {name}: {shown}"
            );
            let found = office
                .ask(&ann, "openapi-mcp/tools", &json!({"query": name}))
                .2;
            let is_found = |tool: &Value| tool["name"] == name;
            let is_found = found["result"]["tools"]
                .as_array()
                .unwrap()
                .iter()
                .any(is_found);
            assert_eq!(is_found, may.contains(&name), "{claims} {name}: {found}");
        }
        let listed = office.ask(&ann, "openapi-mcp/tools", &json!({})).2;
        assert_eq!(listed["result"]["total"], may.len(), "{claims}: {listed}");
        let effects = listed["result"]["server"]["effects"].as_object().unwrap();
        let counted: u64 = effects.values().filter_map(Value::as_u64).sum();
        assert_eq!(listed["result"]["total"], counted, "{claims}: {listed}");
        for (method, parameters) in [
            ("initialize", initialize_parameters(&json!({}))),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "v"}}),
            ),
        ] {
            let answers = [&office, &lesser].map(|office| office.ask(&ann, method, &parameters).2);
            assert_eq!(answers[0], answers[1], "{claims} {method}");
        }
    }
}

#[test]
fn p83_search_and_description_know_only_what_is_listed() {
    let keys = Keys::new();
    let office = keys.serve(
        &document(|_| true),
        &json!({"access": rules()}),
        &["--tools", "search"],
    );
    let told = office
        .ask(
            &keys.authorization(&json!({})),
            "initialize",
            &initialize_parameters(&json!({})),
        )
        .2;
    for (claims, may, lacks) in callers() {
        let ann = keys.authorization(&claims);
        let mut answers = vec![
            office
                .ask(&ann, "initialize", &initialize_parameters(&json!({})))
                .2,
        ];
        assert_eq!(answers[0], told, "{claims}");
        answers.push(office.ask(&ann, "tools/list", &json!({})).2);
        let meta_tools = office.listed(&ann);
        let effect_of = |name: &str| match OPERATIONS
            .into_iter()
            .find(|[own, ..]| *own == name)
            .unwrap()[1]
        {
            "get" => "read",
            "post" => "write",
            _ => "destructive",
        };
        for effect in ["read", "write", "destructive"] {
            let is_listed = may.iter().any(|name| effect_of(name) == effect);
            assert_eq!(
                meta_tools.contains(&format!("call_{effect}")),
                is_listed,
                "{claims} {effect}: {meta_tools:?}"
            );
            let browsed = office
                .call(
                    &ann,
                    "search_operations",
                    &json!({"effect": effect, "limit": 25}),
                )
                .2;
            let hits = may.iter().filter(|name| effect_of(name) == effect).count();
            let found = text(&browsed["result"])
                .lines()
                .filter(|line| line.contains(" · "))
                .count();
            assert_eq!(found, hits, "{claims} {effect}: {browsed}");
            answers.push(browsed);
        }
        answers.push(office.call(&ann, "search_operations", &json!({})).2);
        for [name, method, path, tag] in OPERATIONS {
            let is_listed = may.contains(&name);
            for query in [
                name.to_owned(),
                name.replace('_', " "),
                format!("{method} {path}"),
                format!("summary of {tag} {path}"),
            ] {
                let found = office
                    .call(
                        &ann,
                        "search_operations",
                        &json!({"queries": [query], "limit": 25}),
                    )
                    .2;
                let is_found = text(&found["result"]).contains(&format!("{name} "));
                assert!(is_listed || !is_found, "{claims} {query}: {found}");
                if query == name {
                    assert_eq!(is_found, is_listed, "{claims} {query}: {found}");
                }
            }
            for name in [name.to_owned(), format!("{} {path}", method.to_uppercase())] {
                let described = office
                    .call(&ann, "describe_operations", &json!({"names": [name]}))
                    .2;
                assert_eq!(
                    described["result"]["isError"] == json!(true),
                    !is_listed,
                    "{claims} {name}: {described}"
                );
            }
            let meta_tool = format!("call_{}", effect_of(name));
            let arguments = if path.contains('{') {
                json!({"id": "1"})
            } else {
                json!({})
            };
            let (status, _, called) = office.call(
                &ann,
                &meta_tool,
                &json!({"operation": name, "arguments": arguments}),
            );
            let is_called =
                called["result"].is_object() && called["result"]["isError"] != json!(true);
            assert_eq!(
                (status, is_called),
                (if lacks.contains(&name) { 403 } else { 200 }, is_listed),
                "{claims} {name}: {called}"
            );
            answers.push(called);
        }
        let all = answers.iter().map(Value::to_string).collect::<String>();
        for [name, _, path, _] in OPERATIONS
            .into_iter()
            .filter(|[name, ..]| !may.contains(name) && !lacks.contains(name))
        {
            // What a caller names itself is repeated.
            let said = all.replace(&format!("`{name}`"), "");
            assert!(!said.contains(name), "{claims} {name}: {said}");
            let has_other = OPERATIONS
                .iter()
                .any(|[other, _, like, _]| *like == path && may.contains(other));
            assert!(has_other || !said.contains(path), "{claims} {path}: {said}");
        }
        // Neither does a word that only hidden operations have sound otherwise than one that none
        // has.
        if !may.contains(&"list_vaults") {
            for beside in ["", "users ", "list the users of "] {
                let [known, unknown] = ["vaults", "zzzzzz"].map(|word| {
                    let query = format!("{beside}{word}");
                    let found = office
                        .call(&ann, "search_operations", &json!({"queries": [query]}))
                        .2;
                    found.to_string().replace(word, "")
                });
                let tail = |said: &str| said.split("The nearest tags").next().unwrap().to_owned();
                assert_eq!(tail(&known), tail(&unknown), "{claims} {beside}");
            }
        }
    }
}

/// What comes over a stream, as it comes.
fn hear(mut stream: std::net::TcpStream) -> Arc<Mutex<String>> {
    let heard = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&heard);
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            told.lock()
                .unwrap()
                .push_str(&String::from_utf8_lossy(&piece[..length]));
        }
    });
    heard
}

#[test]
fn p83_only_who_sees_a_change_of_the_list_is_told_and_a_rule_does_not_lose_its_operations() {
    let keys = Keys::new();
    let office = keys.serve(
        &document(|_| true),
        &json!({"access": rules(), "reload": 0.2}),
        &[],
    );
    let listen = |claims: &Value| {
        let parameters = json!({"_meta": stateless_meta(&json!({})), "notifications": {"toolsListChanged": true}});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": parameters}).to_string();
        let token = keys.authorization(claims);
        let headers = [
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Method: subscriptions/listen",
            &token,
        ];
        let mut stream = office.server.connect();
        let request = http_request(&office.server.address, "POST", &headers, &body);
        stream.write_all(request.as_bytes()).unwrap();
        let heard = hear(stream);
        wait_until("the subscription stands", || {
            heard.lock().unwrap().contains("acknowledged")
        });
        heard
    };
    let times = |heard: &Arc<Mutex<String>>| heard.lock().unwrap().matches("list_changed").count();
    let (anybody, billing) = (
        listen(&json!({})),
        listen(&json!({"realm_access": {"roles": "billing"}})),
    );
    let mut changed = document(|_| true);
    changed["paths"]["/users/{id}"]["delete"]["summary"] = "Another summary.".into();
    office.write(&changed);
    wait_until("who sees it is told", || times(&billing) == 1);
    office
        .server
        .logged("the document changed; the new version is served");
    changed["paths"]["/users"]["get"]["summary"] = "Another summary.".into();
    office.write(&changed);
    wait_until("everybody is told", || {
        times(&billing) == 2 && times(&anybody) == 1
    });
    let ann = keys.authorization(&json!({"scope": "audit"}));
    office.write(&document(|name| name != "read_audit"));
    let told = office
        .server
        .logged("cannot be served; the tools stay as they were");
    assert!(
        told.contains("`access[2]`: `operation:read_audit` matches no operation"),
        "{told}"
    );
    assert_eq!(
        office.listed(&ann),
        ["list_users", "create_user", "read_audit"]
    );
    assert_eq!((times(&anybody), times(&billing)), (1, 2));
}

#[test]
fn p83_a_session_is_told_of_what_the_token_of_its_stream_may_list() {
    let keys = Keys::new();
    let office = keys.serve(
        &document(|_| true),
        &json!({"access": rules(), "reload": 0.2, "confirm": "destructive"}),
        &[],
    );
    let (wide, narrow) = (
        keys.authorization(&callers().pop().unwrap().0),
        keys.authorization(&json!({})),
    );
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_parameters(&json!({}))});
    let (_, begun) = office
        .server
        .send("POST", &[&wide], &initialize.to_string());
    let session = format!(
        "Mcp-Session-Id: {}",
        answer_header(&begun, "mcp-session-id").unwrap()
    );
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    office.server.send("POST", &[&wide, &session], &ready);
    let mut stream = office.server.connect();
    let headers = ["Accept: text/event-stream", &narrow, &session];
    let request = http_request(&office.server.address, "GET", &headers, "");
    stream.write_all(request.as_bytes()).unwrap();
    let heard = hear(stream);
    wait_until("the stream is open", || {
        heard.lock().unwrap().contains("200 OK")
    });
    let mut changed = document(|_| true);
    changed["paths"]["/vaults"]["get"]["summary"] = "Another summary.".into();
    office.write(&changed);
    office
        .server
        .logged("the document changed; the new version is served");
    changed["paths"]["/users"]["get"]["summary"] = "Another summary.".into();
    office.write(&changed);
    let times = || heard.lock().unwrap().matches("list_changed").count();
    wait_until("the change of a listed tool is reported", || times() > 0);
    assert_eq!(times(), 1, "{}", heard.lock().unwrap());
}

#[test]
fn p83_no_description_names_a_replacement_that_not_everybody_sees_who_reads_it() {
    let mut document = document(|_| true);
    for (path, other) in [
        ("/users", "list_vaults"),
        ("/audit", "list_users"),
        ("/vaults", "list_users"),
    ] {
        document["paths"][path]["get"]["deprecated"] = true.into();
        document["paths"][path]["get"]["description"] = format!("Use {other} instead.").into();
    }
    let keys = Keys::new();
    let office = keys.serve(
        &document,
        &json!({"access": rules(), "describe": "brief"}),
        &[],
    );
    let all = keys.authorization(&callers().pop().unwrap().0);
    let list = office.ask(&all, "tools/list", &json!({})).2;
    let names = |tool: &str| {
        let tools = list["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|one| one["name"] == tool).unwrap();
        tool["description"].as_str().unwrap().contains("; use `")
    };
    assert_eq!(
        ["list_users", "read_audit", "list_vaults"].map(names),
        [false, true, true],
        "{list}"
    );
}

#[test]
fn p83_what_settings_leave_out_sounds_like_an_unknown_name_where_rules_hide_operations() {
    let keys = Keys::new();
    let office = keys.serve(
        &document(|_| true),
        &json!({"access": rules()}),
        &["--read-only"],
    );
    let ann = keys.authorization(&json!({}));
    let [left_out, unknown] = ["delete_user", "delete_usex"].map(|name| {
        let answer = office.call(&ann, name, &json!({"id": "1"})).2;
        answer.to_string().replace(name, "")
    });
    assert_eq!(left_out, unknown);
}

#[test]
fn p83_no_value_reaches_the_path_of_an_operation_that_is_hidden() {
    let get = |id: &str, tag: &str, names: &[&str]| {
        let parameters: Vec<Value> = names
            .iter()
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
            .collect();
        json!({"get": {"operationId": id, "tags": [tag], "parameters": parameters, "responses": {"200": {"description": "Done."}}}})
    };
    let document = json!({"openapi": "3.1.0", "info": {"title": "Office", "version": "1"}, "paths": {
        "/reports/{id}": get("get_report", "open", &["id"]),
        "/reports/payroll": get("get_payroll", "secret", &[]),
        "/{kind}/{id}": get("get_any", "open", &["kind", "id"]),
        "/audit/log": get("read_log", "secret", &[])}});
    let keys = Keys::new();
    let rules = json!([{"match": {"tag": "secret"}, "claims": {"groups": "ops"}}]);
    let share =
        json!([{"name": "nightly", "env": "NIGHTLY", "tool_exclude": ["get_payroll", "read_log"]}]);
    let of_rules = keys.serve(&document, &json!({"access": rules}), &[]);
    let of_shares = keys.serve_with(
        &document,
        &json!({"auth_tokens": share}),
        &[],
        &[("NIGHTLY", "a-token-of-the-night-00000")],
    );
    for (office, authorization) in [
        (of_rules, keys.authorization(&json!({"groups": []}))),
        (
            of_shares,
            "Authorization: Bearer a-token-of-the-night-00000".to_owned(),
        ),
    ] {
        for (tool, arguments, is_sent) in [
            ("get_report", json!({"id": "7"}), true),
            ("get_report", json!({"id": "payroll"}), false),
            ("get_report", json!({"id": "PAYROLL"}), false),
            ("get_any", json!({"kind": "audit", "id": "8"}), true),
            ("get_any", json!({"kind": "audit", "id": "log"}), false),
            (
                "get_any",
                json!({"kind": "reports", "id": "payroll"}),
                false,
            ),
        ] {
            let (_, _, answer) = office.call(&authorization, tool, &arguments);
            assert_eq!(
                answer["result"]["isError"], !is_sent,
                "{tool} {arguments}: {answer}"
            );
        }
    }
}

#[test]
fn p83_a_missing_scope_is_asked_for_with_all_others_and_is_not_advertised() {
    let keys = Keys::new();
    let more = json!({"access": [
        {"match": {"tag": "admin"}, "scopes": ["admin", "root"]},
        {"match": {"method": "PUT"}, "scopes": ["rotate"]},
    ], "oauth_scope": ["mcp"], "oauth_read_scope": ["read"], "oauth_write_scope": ["write"]});
    let office = keys.serve(&document(|_| true), &more, &[]);
    for (scope, tool, expected) in [
        ("mcp read", "list_vaults", "mcp read admin"),
        (
            "mcp read write",
            "rotate_vault",
            "mcp read write admin rotate",
        ),
        (
            "mcp read root unknown",
            "rotate_vault",
            "mcp read write root rotate",
        ),
        ("mcp", "list_vaults", "mcp read admin"),
    ] {
        let ann = keys.authorization(&json!({"scope": scope}));
        let (status, head, _) = office.call(&ann, tool, &json!({"id": "1"}));
        let challenge = answer_header(&head, "www-authenticate").unwrap();
        let scopes = format!(r#"scope="{expected}""#);
        assert!(
            status == 403 && challenge.contains(&scopes),
            "{scope} {tool}: {challenge}"
        );
    }
    for (token, path) in [("", "/mcp"), ("Authorization: Bearer a.b.c", "/mcp")] {
        let (_, head, _) = post_to(
            &office.server,
            path,
            &[token]
                .into_iter()
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>(),
            LIST,
        );
        assert!(
            answer_header(&head, "www-authenticate")
                .unwrap()
                .contains(r#"scope="mcp read""#),
            "{head}"
        );
    }
    let metadata = office
        .server
        .get("/.well-known/oauth-protected-resource/mcp");
    let (_, body) = metadata.split_once("\r\n\r\n").unwrap();
    let metadata: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        metadata["scopes_supported"],
        json!(["mcp", "read", "write"])
    );
}

#[test]
fn what_keeps_access_from_working_ends_the_start() {
    let setup = Setup::new();
    setup.write("office.json", &document(|_| true).to_string());
    let start = |keys: &Value, args: &[&str]| {
        let mut config = json!({"spec": "office.json", "mock": true});
        config
            .as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        let output = command(&[&["serve", "--config", &setup.config(&config)], args].concat())
            .output()
            .unwrap();
        (output.status.code(), stderr(&output))
    };
    let http = ["--transport", "http", "--bind", "127.0.0.1:0"];
    let with_issuer = [&http[..], &["--oauth-issuer", "https://login.example"]].concat();
    let rule = json!([{"claims": {"a": "b"}}]);
    for (access, args, words) in [
        (&rule, &[][..], &["`access` needs --transport http"][..]),
        (
            &rule,
            &["--transport", "stdio"],
            &["`access` needs --transport http"],
        ),
        (
            &rule,
            &http,
            &["`access` needs clients that show a token", "--oauth-issuer"],
        ),
        (
            &json!([{"match": {"tag": "admn"}, "scopes": ["a"]}, {"match": {"operation": "x*"}, "claims": {"a": 1}}, {"match": {"tag": "audit", "method": "PUT"}, "claims": {"a": 1}}]),
            &with_issuer,
            &[
                "`access[0]`: `tag:admn` matches no operation of the document; did you mean `tag:admin`?; add `optional: true`",
                "`access[1]`: `operation:x*`",
                "`access[2]`: no operation of the document matches",
            ],
        ),
        (
            &json!([{}, {"match": {}}, {"scopes": []}, {"claims": {"": "x"}}, {"claims": {"/a~2": "x"}}, {"claims": {"a": []}}, {"claims": {"a": {"b": 1}}}, {"claims": ["a"]},
                {"scopes": ["a b"]}, {"scopes": 1}, {"roles": ["x"]}, "admin", {"optional": "yes", "scopes": "a"}]),
            &with_issuer,
            &[
                "`access[0]` asks for nothing; add `scopes` or `claims`",
                "`access[1]` asks",
                "`access[2]` asks",
                "`access[3].claims.`: the name of a claim is missing",
                "`access[4].claims./a~2`: `/a~2` is not a JSON Pointer",
                "`access[5].claims.a` is an empty list",
                "`access[6].claims.a` is a mapping",
                "`access[7].claims` is a list",
                "`access[8].scopes`: `a b` is not an OAuth scope",
                "`access[9].scopes` is the number 1",
                "unknown key `access[10].roles`",
                "`access[11]` is the text",
                "`access[12].optional`",
            ],
        ),
        (
            &json!({"tag": "admin"}),
            &with_issuer,
            &["`access` is a mapping; expected a list of rules"],
        ),
    ] {
        let (code, told) = start(&json!({"access": access}), args);
        assert_eq!(code, Some(2), "{access}: {told}");
        for word in words {
            assert!(told.contains(word), "{word}: {told}");
        }
    }
    // What may match nothing says so.
    let optional = json!([{"match": {"tag": "none"}, "optional": true, "scopes": ["a"]}]);
    let output = command(&[
        "tools",
        "--config",
        &setup.config(&json!({"spec": "office.json", "access": optional})),
    ])
    .output()
    .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn tools_shows_the_list_of_a_user_and_a_claim_may_be_a_pointer() {
    let setup = Setup::new();
    setup.write("office.json", &document(|_| true).to_string());
    let config =
        setup.config(&json!({"spec": "office.json", "transport": "http", "oauth_issuer": "https://login.example", "access": rules()}));
    let tools = |more: &[&str]| {
        let output = command(&[&["tools", "--config", &config, "--format", "json"], more].concat())
            .output()
            .unwrap();
        let listed: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let names = listed
            .iter()
            .map(|one| one["tool"]["name"].as_str().unwrap().to_owned());
        (names.collect::<Vec<_>>(), stderr(&output))
    };
    assert_eq!(tools(&[]).0.len(), 6);
    for (claims, may, _) in callers() {
        let file = setup.write("claims.json", &claims.to_string());
        assert_eq!(tools(&["--as", &file]).0, may, "{claims}");
    }
    let searched = tools(&[
        "--as",
        &setup.write("claims.json", "{}"),
        "--search",
        "list vaults",
    ])
    .0;
    assert!(
        !searched.contains(&"list_vaults".to_owned()),
        "{searched:?}"
    );
    for (text, words) in [
        ("[]", "is not a JSON object of claims"),
        ("{", "is not valid JSON"),
    ] {
        let told = tools(&["--as", &setup.write("claims.json", text)]).1;
        assert!(told.contains("--as: `") && told.contains(words), "{told}");
    }
    let tenants =
        json!({"claim": "/org/id", "entries": {"acme": {"base_url": "http://127.0.0.1:9/acme"}}});
    let config = setup.config(&json!({"spec": "office.json", "tenants": tenants}));
    let args = [
        "call",
        "--config",
        &config,
        "--tenant",
        "acme",
        "--dry-run",
        "list_users",
    ];
    let output = command(&args).output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("GET /acme/users"),
        "{output:?}"
    );
    for (keys, words) in [
        (
            json!({"tenants": {"claim": "/a~", "entries": {}}}),
            "`tenants.claim`: `/a~` is not a JSON Pointer",
        ),
        (
            json!({"overrides": [{"match": {"operation": "delete_user"}, "arguments": {"path:id": {"value": {"claim": "/~2"}}}}]}),
            "`/~2` is not a JSON Pointer",
        ),
    ] {
        let mut all = json!({"spec": "office.json"});
        all.as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        let told = stderr(
            &command(&["tools", "--config", &setup.config(&all)])
                .output()
                .unwrap(),
        );
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn a_value_may_come_from_a_claim_at_a_pointer() {
    let keys = Keys::new();
    let upstream = Upstream::echo();
    let rules = json!([{"match": {"operation": "delete_user"}, "arguments": {"path:id": {"value": {"claim": "/org/user ids/0"}}}}]);
    let setup = Setup::new();
    setup.write("office.json", &document(|_| true).to_string());
    let config = setup.config(
        &json!({"spec": "office.json", "base_url": upstream.url, "oauth_issuer": keys.issuer.name(), "public_url": PUBLIC,
        "overrides": rules}),
    );
    let server = HttpServer::start(&["--config", &config]);
    wait_for_keys(&keys.issuer);
    for (claims, id) in [
        (json!({"org": {"user ids": ["u7"]}}), Some("u7")),
        (json!({"/org/user ids/0": "u8"}), None),
        (json!({"org": {"user ids": [{}]}}), None),
    ] {
        let answer = post_to(
            &server,
            "/mcp",
            &[&keys.authorization(&claims)],
            &call_message("delete_user", "{}"),
        )
        .2;
        let path = upstream
            .received()
            .pop()
            .map(|request| request.path().to_owned());
        match id {
            Some(id) => assert_eq!(path, Some(format!("/users/{id}")), "{answer}"),
            None => assert!(
                text(&answer["result"]).contains("nothing was sent"),
                "{answer}"
            ),
        }
    }
    assert_eq!(upstream.received().len(), 1);
}

/// The next number below `bound` of a sequence that is the same in each run.
fn next(seed: &mut u64, bound: usize) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from((*seed >> 33) % bound as u64).unwrap()
}

/// A rule of `access`: scopes, and values of the claims `g` and `/a/b`.
type RandomRule = (
    Value,
    Vec<usize>,
    Option<&'static str>,
    Vec<(&'static str, Vec<Value>)>,
);

fn random_rule(seed: &mut u64) -> RandomRule {
    let all: Vec<usize> = (0..OPERATIONS.len()).collect();
    let (matches, of) = match next(seed, 4) {
        0 => (json!({}), all),
        1 => {
            let tag = ["users", "admin", "audit"][next(seed, 3)];
            (
                json!({"tag": tag}),
                all.into_iter()
                    .filter(|place| OPERATIONS[*place][3] == tag)
                    .collect(),
            )
        }
        2 => {
            let method = ["get", "post", "put", "delete"][next(seed, 4)];
            (
                json!({"method": method.to_uppercase()}),
                all.into_iter()
                    .filter(|place| OPERATIONS[*place][1] == method)
                    .collect(),
            )
        }
        _ => {
            let place = next(seed, OPERATIONS.len());
            (json!({"operation": OPERATIONS[place][0]}), vec![place])
        }
    };
    let scope = (next(seed, 3) == 0).then(|| ["s", "t"][next(seed, 2)]);
    let mut claims = Vec::new();
    for claim in ["g", "/a/b"] {
        if next(seed, 2) == 0 || (scope.is_none() && claims.is_empty() && claim == "/a/b") {
            let values = [json!("x"), json!(1), json!(true), json!("1")];
            let first = next(seed, 4);
            claims.push((
                claim,
                vec![
                    values[first].clone(),
                    values[(first + next(seed, 3)) % 4].clone(),
                ],
            ));
        }
    }
    let mut rule = json!({"match": matches});
    if let Some(scope) = scope {
        rule["scopes"] = json!([scope]);
    }
    if !claims.is_empty() {
        rule["claims"] = claims
            .iter()
            .map(|(claim, values)| ((*claim).to_owned(), json!(values)))
            .collect();
    }
    (rule, of, scope, claims)
}

#[test]
fn p83_all_doors_agree_for_random_rules_and_claims() {
    let keys = Keys::new();
    let mut seed = 7;
    for _ in 0..6 {
        let rules: Vec<RandomRule> = (0..=next(&mut seed, 4))
            .map(|_| random_rule(&mut seed))
            .collect();
        let access: Vec<&Value> = rules.iter().map(|(rule, ..)| rule).collect();
        let office = keys.serve(&document(|_| true), &json!({"access": access}), &[]);
        let searching = keys.serve(
            &document(|_| true),
            &json!({"access": access}),
            &["--tools", "search"],
        );
        for _ in 0..8 {
            let values = [
                json!("x"),
                json!(1),
                json!(true),
                json!("1"),
                json!(["x", 1]),
                json!([true]),
                json!(null),
                json!({"x": 1}),
                json!(1.0),
            ];
            let (g, b) = (
                values[next(&mut seed, 9)].clone(),
                values[next(&mut seed, 9)].clone(),
            );
            let scope = ["", "s", "t", "s t"][next(&mut seed, 4)];
            let claims = json!({"g": g, "a": {"b": b}, "scope": scope});
            let has = |claim: &str, wanted: &[Value]| {
                let found = if claim == "g" { &g } else { &b };
                let elements = found
                    .as_array()
                    .cloned()
                    .unwrap_or_else(|| vec![found.clone()]);
                elements.iter().any(|element| wanted.contains(element))
            };
            let ann = keys.authorization(&claims);
            let listed = office.listed(&ann);
            for (place, [name, method, path, _]) in OPERATIONS.into_iter().enumerate() {
                let of = || rules.iter().filter(|(_, of, ..)| of.contains(&place));
                let exists = of().all(|(_, _, _, claims)| {
                    claims.iter().all(|(claim, values)| has(claim, values))
                });
                let may = exists
                    && of().all(|(_, _, wanted, _)| {
                        wanted.is_none_or(|wanted| scope.split(' ').any(|scope| scope == wanted))
                    });
                let told = format!("{access:?} {claims} {name}");
                assert_eq!(listed.contains(&name.to_owned()), may, "{told}");
                let arguments = if path.contains('{') {
                    json!({"id": "1"})
                } else {
                    json!({})
                };
                let effect = match method {
                    "get" => "read",
                    "post" => "write",
                    _ => "destructive",
                };
                let gate = format!("call_{effect}");
                for (status, _, answer) in [
                    office.call(&ann, name, &arguments),
                    searching.call(&ann, name, &arguments),
                    searching.call(
                        &ann,
                        &gate,
                        &json!({"operation": name, "arguments": arguments}),
                    ),
                ] {
                    assert_eq!(status == 403, exists && !may, "{told}: {answer}");
                    assert_eq!(
                        answer["result"]["isError"] == json!(false),
                        may,
                        "{told}: {answer}"
                    );
                }
                let described = searching
                    .call(&ann, "describe_operations", &json!({"names": [name]}))
                    .2;
                assert_eq!(
                    described["result"]["isError"] == json!(false),
                    may,
                    "{told}: {described}"
                );
                let found = searching
                    .call(
                        &ann,
                        "search_operations",
                        &json!({"queries": [name], "limit": 25}),
                    )
                    .2;
                let is_found = text(&found["result"])
                    .lines()
                    .any(|line| line.starts_with(&format!("{name} ·")));
                assert_eq!(is_found, may, "{told}: {found}");
                let shown = office
                    .ask(&ann, "openapi-mcp/tool", &json!({"tool": name}))
                    .2;
                assert_eq!(shown["error"].is_null(), may, "{told}: {shown}");
            }
        }
    }
}
