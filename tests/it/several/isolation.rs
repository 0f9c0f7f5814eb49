//! No credential of one API is sent with a call of another, and no secret of any comes back.

use serde_json::json;

use super::{KEYS, Setup, post_to};
use crate::support::{HttpServer, Session, Upstream, call_message, reply, soak};

/// Calls of all APIs together.
fn call_count() -> usize {
    if soak() { 10_000 } else { 2_000 }
}

/// Calls in flight at once.
const BATCH: usize = 500;

#[test]
fn p66_credentials_of_one_api_never_reach_another_in_many_mixed_calls() {
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    // Both redirect to the other; neither redirect is followed.
    let bills = Upstream::start(Box::new(|_| {
        reply(307, &["Location: http://127.0.0.1:9/things"], b"")
    }));
    let target = bills.url.clone();
    let pets = Upstream::start(Box::new(move |_| {
        reply(307, &[&format!("Location: {target}/things")], b"")
    }));
    // Two more share an origin.
    let shared = Upstream::echo();
    let mut config = super::pets_and_bills(&pets, &bills);
    for name in ["cats", "dogs"] {
        setup.document(name);
        config["apis"][name] = json!({"spec": format!("{name}.json"), "base_url": format!("{}/{name}", shared.url), "auth": {"key": {"env": format!("{}_KEY", name.to_uppercase())}}});
    }
    let config = setup.config(&config);
    let keys = [
        &KEYS[..],
        &[
            ("CATS_KEY", "the-key-of-cats"),
            ("DOGS_KEY", "the-key-of-dogs"),
        ],
    ]
    .concat();
    let mut session = Session::start_with(&["serve", "--config", &config], &keys);
    session.tools();
    let names = ["pets", "bills", "cats", "dogs"];
    let calls = call_count();
    for first in (0..calls).step_by(BATCH) {
        for index in first..first + BATCH {
            let tool = format!("{}_list_things", names[index % names.len()]);
            session.post(
                "tools/call",
                &json!({"name": tool, "arguments": {"q": index.to_string()}}),
            );
        }
        (0..BATCH).for_each(|_| drop(session.receive()));
    }
    let received: Vec<_> = [&pets, &bills, &shared]
        .map(Upstream::received)
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(received.len(), calls);
    assert_eq!(
        (pets.received().len(), bills.received().len()),
        (calls / 4, calls / 4)
    );
    for request in received {
        let number: usize = request.path().rsplit('=').next().unwrap().parse().unwrap();
        let name = names[number % names.len()];
        let keys: Vec<&String> = request
            .headers
            .iter()
            .filter(|line| line.contains("the-key-of"))
            .collect();
        assert_eq!(keys, [&format!("x-key: the-key-of-{name}")], "{request:?}");
        let is_behind = request.path().starts_with(&format!("/{name}/things?"));
        assert_eq!(is_behind, number % names.len() > 1, "{request:?}");
    }
}

#[test]
fn p66_two_apis_on_one_origin_share_neither_credentials_nor_connections_nor_limits() {
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    let shared = Upstream::start(Box::new(|request| match request.header("x-key") {
        Some("the-key-of-pets") => reply(503, &[], b""),
        _ => reply(200, &["Content-Type: application/json"], b"{\"ok\":true}"),
    }));
    let mut config = super::pets_and_bills(&shared, &shared);
    config["apis"]["pets"]["breaker_failures"] = 1.into();
    config["apis"]["pets"]["retries"] = 0.into();
    let mut session = Session::start_with(&["serve", "--config", &setup.config(&config)], &KEYS);
    session.call("pets_list_things", &json!({}));
    let refused = session.call("pets_list_things", &json!({}));
    assert_eq!(refused["isError"], true);
    assert_eq!(shared.take_all().len(), 1, "the breaker of one API is open");
    let fine = session.call("bills_list_things", &json!({}));
    assert_ne!(
        fine["isError"], true,
        "and that of the other is not: {fine}"
    );
    assert_eq!(shared.take_one().header("x-key"), Some("the-key-of-bills"));
}

#[test]
fn p66_the_secrets_of_all_are_taken_out_of_the_replies_of_each() {
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    // An API that keeps logs echoes what another one's requests carried.
    let echo = "the-key-of-bills short-key1 dGhlLXBhcnRuZXI6aHVudGVyMi1odW50ZXIy hunter2-hunter2 of-the-header-env";
    let pets = Upstream::start(Box::new(move |_| {
        reply(200, &["Content-Type: text/plain"], echo.as_bytes())
    }));
    let bills = Upstream::echo();
    let mut config = super::pets_and_bills(&pets, &bills);
    config["apis"]["bills"]["header_env"] = json!(["X-Other=OTHER_HEADER"]);
    config["apis"]["shorty"] =
        json!({"spec": "bills.json", "base_url": bills.url, "auth": {"key": {"env": "SHORT_KEY"}}});
    let mut document = super::document("partner");
    document["components"]["securitySchemes"]["key"] = json!({"type": "http", "scheme": "basic"});
    setup.write("partner.json", &document.to_string());
    config["apis"]["partner"] = json!({"spec": "partner.json", "base_url": bills.url});
    let variables = [
        ("OTHER_HEADER", "of-the-header-env"),
        ("SHORT_KEY", "short-key1"),
        (
            "OPENAPI_MCP_AUTH_PARTNER_KEY",
            "the-partner:hunter2-hunter2",
        ),
    ];
    let mut session = Session::start_with(
        &["serve", "--config", &setup.config(&config)],
        &[&KEYS[..], &variables].concat(),
    );
    let result = session.call("pets_list_things", &json!({})).to_string();
    for secret in [
        "the-key-of-bills",
        "dGhlLXBhcnRuZXI",
        "hunter2",
        "of-the-header-env",
    ] {
        assert!(!result.contains(secret), "{secret}: {result}");
    }
    assert!(
        result.contains("short-key1"),
        "a short one of another API may be anything: {result}"
    );
}

#[test]
fn p66_headers_of_a_client_go_to_the_api_whose_rule_names_them() {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.document("bills");
    let mut config = super::pets_and_bills(&pets, &bills);
    config["apis"]["pets"]["forward_header"] = json!(["X-Tenant"]);
    let config = setup.config(&config);
    let server = HttpServer::start_with(&["--config", &config], &KEYS);
    for tool in ["pets_list_things", "bills_list_things"] {
        post_to(
            &server,
            "/mcp",
            &["X-Tenant: acme"],
            &call_message(tool, "{}"),
        );
    }
    assert_eq!(pets.take_one().header("x-tenant"), Some("acme"));
    assert_eq!(bills.take_one().header("x-tenant"), None);
}

#[test]
fn p66_headers_of_a_client_go_through_meta_tools_to_the_api_whose_rule_names_them() {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.document("bills");
    let mut config = super::pets_and_bills(&pets, &bills);
    config["tools"] = "search".into();
    config["apis"]["pets"]["forward_header"] = json!(["X-Tenant"]);
    let server = HttpServer::start_with(&["--config", &setup.config(&config)], &KEYS);
    server.logged("all 2 APIs are served");
    for name in ["pets_list_things", "bills_list_things"] {
        let arguments = json!({ "operation": name }).to_string();
        post_to(
            &server,
            "/mcp",
            &["X-Tenant: acme"],
            &call_message("call_read", &arguments),
        );
    }
    assert_eq!(pets.take_one().header("x-tenant"), Some("acme"));
    assert_eq!(bills.take_one().header("x-tenant"), None);
}

/// Two APIs at one address, of which the API gives each a token of its own and echoes both.
#[test]
fn p66_fetched_tokens_are_each_apis_own() {
    let shared = Upstream::start(Box::new(|request| {
        let client = if String::from_utf8_lossy(&request.body).contains("client-of-pets")
            || request
                .header("authorization")
                .is_some_and(|value| value == "Basic Y2xpZW50LW9mLXBldHM6c2VjcmV0LW9mLXBldHM=")
        {
            "pets"
        } else {
            "bills"
        };
        let body = if request.path() == "/token" {
            json!({"access_token": format!("token-fetched-by-{client}"), "token_type": "Bearer", "expires_in": 3600})
        } else {
            json!({"for": request.header("authorization"), "all": ["token-fetched-by-pets", "token-fetched-by-bills"]})
        };
        reply(
            200,
            &["Content-Type: application/json"],
            body.to_string().as_bytes(),
        )
    }));
    let setup = Setup::new();
    let mut document = super::document("pets");
    document["components"]["securitySchemes"]["key"] = json!({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/token", "scopes": {}}}});
    setup.write("both.json", &document.to_string());
    let api = json!({"spec": "both.json", "base_url": shared.url});
    let config = setup.config(&json!({"apis": {"pets": api, "bills": api}}));
    let variables = [
        ("OPENAPI_MCP_AUTH_PETS_KEY_CLIENT_ID", "client-of-pets"),
        ("OPENAPI_MCP_AUTH_PETS_KEY_CLIENT_SECRET", "secret-of-pets"),
        ("OPENAPI_MCP_AUTH_BILLS_KEY_CLIENT_ID", "client-of-bills"),
        (
            "OPENAPI_MCP_AUTH_BILLS_KEY_CLIENT_SECRET",
            "secret-of-bills",
        ),
    ];
    let mut session = Session::start_with(&["serve", "--config", &config], &variables);
    for (name, other) in [("pets", "bills"), ("bills", "pets"), ("pets", "bills")] {
        let result = session
            .call(&format!("{name}_list_things"), &json!({}))
            .to_string();
        assert!(
            !result.contains(&format!("token-fetched-by-{name}")),
            "{result}"
        );
        assert!(
            result.contains(&format!("token-fetched-by-{other}")),
            "fetched tokens are taken out of their own API alone: {result}"
        );
    }
    let calls: Vec<String> = shared
        .take_all()
        .iter()
        .filter(|request| request.path() == "/things")
        .map(|request| {
            request
                .header("authorization")
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    assert_eq!(
        calls,
        [
            "Bearer token-fetched-by-pets",
            "Bearer token-fetched-by-bills",
            "Bearer token-fetched-by-pets"
        ]
    );
}
