//! Tokens of an issuer at the endpoints: audiences, metadata and scopes are each endpoint's own.

use serde_json::{Value, json};

use super::{Setup, listed, post_to};
use crate::http::auth_oauth::{Issuer, Signer, now, wait_for_keys};
use crate::support::http_server::answer_header;
use crate::support::{HttpServer, LIST, call_message};

pub const PUBLIC: &str = "https://mcp.example/proxied/mcp";

pub struct Served {
    pub server: HttpServer,
    issuer: Issuer,
    signer: Signer,
    _setup: Setup,
}

fn serve(more: &[&str]) -> Served {
    serve_with(more, &json!({}))
}

/// The same with more keys at the top of the configuration.
pub fn serve_with(more: &[&str], keys: &Value) -> Served {
    let (setup, signer) = (Setup::new(), Signer::rsa());
    let issuer = Issuer::start(vec![signer.jwk("r")]);
    setup.document("pets");
    setup.document("bills");
    let mut config = json!({
        "mock": true, "oauth_issuer": issuer.name(), "public_url": PUBLIC, "oauth_scope": ["mcp"],
        "apis": {
            "pets": {"spec": "pets.json"},
            "bills": {"spec": "bills.json", "oauth_read_scope": ["bills:read", "bills:admin"], "oauth_write_scope": "bills:write"},
        },
    });
    config
        .as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    let config = setup.config(&config);
    let server = HttpServer::start(&[&["--config", &config][..], more].concat());
    server.logged("all 2 APIs are served");
    wait_for_keys(&issuer);
    Served {
        server,
        issuer,
        signer,
        _setup: setup,
    }
}

impl Served {
    pub fn token(&self, audience: &str, scope: &str) -> String {
        let claims = json!({"iss": self.issuer.name(), "aud": audience, "exp": now() + 300, "sub": "alice", "scope": scope});
        let token = self
            .signer
            .token(&json!({"alg": "RS256", "kid": "r"}), &claims);
        format!("Authorization: Bearer {token}")
    }
}

#[test]
fn p55_a_token_for_one_endpoint_is_refused_at_the_others() {
    let served = serve(&[]);
    let endpoints = ["", "/pets", "/pets/readonly", "/bills", "/readonly"];
    for issued_for in endpoints {
        let token = served.token(&format!("{PUBLIC}{issued_for}"), "mcp");
        for asked in endpoints {
            let (status, head, _) =
                post_to(&served.server, &format!("/mcp{asked}"), &[&token], LIST);
            assert_eq!(
                status,
                if asked == issued_for { 200 } else { 401 },
                "{issued_for} at {asked}: {head}"
            );
        }
        // An unknown name is judged like the whole.
        let (status, ..) = post_to(&served.server, "/mcp/dogs", &[&token], LIST);
        assert_eq!(
            status,
            if issued_for.is_empty() { 404 } else { 401 },
            "{issued_for}"
        );
    }
}

#[test]
fn p55_each_endpoint_has_metadata_of_its_own() {
    let served = serve(&[]);
    for (path, scopes) in [
        ("", &["mcp", "bills:read", "bills:admin", "bills:write"][..]),
        ("/readonly", &["mcp", "bills:read", "bills:admin"]),
        ("/pets", &["mcp"]),
        (
            "/bills",
            &["mcp", "bills:read", "bills:admin", "bills:write"],
        ),
        ("/bills/readonly", &["mcp", "bills:read", "bills:admin"]),
    ] {
        for seen in [format!("/proxied/mcp{path}"), format!("/mcp{path}")] {
            let asked = format!(
                "GET /.well-known/oauth-protected-resource{seen} HTTP/1.1\r\nHost: mcp.example\r\nConnection: close\r\n\r\n"
            );
            let answer = served.server.raw(&asked);
            let body: Value =
                serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default();
            assert_eq!(
                body["resource"],
                format!("{PUBLIC}{path}"),
                "{seen}: {answer}"
            );
            assert_eq!(body["scopes_supported"], json!(scopes), "{seen}");
        }
        let (status, head, _) = post_to(&served.server, &format!("/mcp{path}"), &[], LIST);
        let challenge = answer_header(&head, "www-authenticate").unwrap();
        let expected = format!(
            r#"resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/proxied/mcp{path}""#
        );
        assert!(
            status == 401 && challenge.contains(&expected),
            "{path}: {challenge}"
        );
    }
    let asked = "GET /.well-known/oauth-protected-resource/mcp/dogs HTTP/1.1\r\nHost: mcp.example\r\nConnection: close\r\n\r\n";
    assert!(served.server.raw(asked).starts_with("HTTP/1.1 404 "));
}

#[test]
fn p55_scopes_of_an_api_are_needed_there_besides_the_common_ones() {
    let served = serve(&[]);
    for (scope, tools) in [
        ("mcp", &["pets_list_things", "pets_create_thing"][..]),
        (
            "mcp bills:read",
            &["bills_list_things", "pets_list_things", "pets_create_thing"],
        ),
        (
            "mcp bills:admin",
            &["bills_list_things", "pets_list_things", "pets_create_thing"],
        ),
        (
            "mcp bills:write",
            &[
                "bills_create_thing",
                "pets_list_things",
                "pets_create_thing",
            ],
        ),
    ] {
        let token = served.token(PUBLIC, scope);
        assert_eq!(listed(&served.server, "/mcp", &[&token]), tools, "{scope}");
        let (_, _, answer) = post_to(&served.server, "/mcp", &[&token], LIST);
        assert_eq!(answer["result"]["cacheScope"], "private", "{answer}");
        for (tool, needed) in [
            ("bills_list_things", "bills:read"),
            ("bills_create_thing", "bills:write"),
            ("pets_create_thing", ""),
        ] {
            let (status, head, _) =
                post_to(&served.server, "/mcp", &[&token], &call_message(tool, "{}"));
            let may_call = needed.is_empty() || tools.contains(&tool);
            assert_eq!(
                status,
                if may_call { 200 } else { 403 },
                "{scope} {tool}: {head}"
            );
            if !may_call {
                let challenge = answer_header(&head, "www-authenticate").unwrap();
                assert!(
                    challenge.contains(r#"error="insufficient_scope""#),
                    "{challenge}"
                );
                for word in scope.split(' ').chain([needed]) {
                    assert!(challenge.contains(word), "{word}: {challenge}");
                }
            }
        }
    }
    // A static token sees all.
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": crate::support::initialize_parameters(&json!({}))});
    let token = served.token(PUBLIC, "mcp");
    let (_, _, answer) = post_to(&served.server, "/mcp", &[&token], &initialize.to_string());
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    assert!(
        instructions.contains("The pets API, 2 tools") && instructions.contains("The bills API\n"),
        "{instructions}"
    );
}

#[test]
fn with_one_audience_for_all_the_start_says_what_readonly_is_worth() {
    let served = serve(&["--oauth-audience", "api://all"]);
    served
        .server
        .logged("a token for one endpoint is good at all");
    let token = served.token("api://all", "mcp");
    for path in ["/mcp", "/mcp/pets", "/mcp/readonly"] {
        assert_eq!(
            post_to(&served.server, path, &[&token], LIST).0,
            200,
            "{path}"
        );
    }
}

#[test]
fn p83_rules_of_one_api_leave_the_others_alone() {
    let bills = json!({"spec": "bills.json", "access": [
        {"match": {"method": "POST"}, "scopes": ["bills:admin"]}, {"match": {"method": "GET"}, "claims": {"sub": ["bob"]}}]});
    let served = serve_with(
        &[],
        &json!({"apis": {"pets": {"spec": "pets.json"}, "bills": bills}}),
    );
    for (scope, at_bills, status) in [
        ("mcp", &[][..], 403),
        ("mcp bills:admin", &["bills_create_thing"], 200),
    ] {
        let whole = served.token(PUBLIC, scope);
        let expected = [at_bills, &["pets_list_things", "pets_create_thing"]].concat();
        assert_eq!(
            listed(&served.server, "/mcp", &[&whole]),
            expected,
            "{scope}"
        );
        let own = served.token(&format!("{PUBLIC}/bills"), scope);
        assert_eq!(
            listed(&served.server, "/mcp/bills", &[&own]),
            at_bills,
            "{scope}"
        );
        let readonly = served.token(&format!("{PUBLIC}/readonly"), scope);
        assert_eq!(
            listed(&served.server, "/mcp/readonly", &[&readonly]),
            ["pets_list_things"],
            "{scope}"
        );
        let call =
            |tool: &str| post_to(&served.server, "/mcp", &[&whole], &call_message(tool, "{}"));
        let (got, head, _) = call("bills_create_thing");
        assert_eq!(got, status, "{head}");
        if status == 403 {
            let challenge = answer_header(&head, "www-authenticate").unwrap();
            assert!(
                challenge.contains(r#"scope="mcp bills:admin""#),
                "{challenge}"
            );
        }
        let [hidden, unknown] = ["bills_list_things", "bills_xist_things"]
            .map(|tool| call(tool).2["error"]["message"].to_string());
        assert_eq!(
            hidden.replace("bills_list_things", ""),
            unknown.replace("bills_xist_things", ""),
            "{scope}"
        );
    }
}
