//! Who asks and who agrees, and what an agreement is for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{APPROVER, CLIENT, Office, VARIABLES, link};
use crate::http::audit::Log;
use crate::http::auth_oauth::{Issuer, Signer, now, wait_for_keys};
use crate::support::http_server::answer_header;
use crate::support::text;

#[test]
fn p89_an_agreement_is_for_one_caller_and_exactly_these_arguments() {
    let office = Office::start(&json!({}), &[]);
    let other = VARIABLES[2].1;
    let arguments = json!({"id": "1", "reason": "old"});
    let of_client = link(&office.call_as(CLIENT, "remove", &arguments));
    let of_other = link(&office.call_as(other, "remove", &arguments));
    assert_ne!(of_client, of_other);
    assert_eq!(office.answer(&of_client, true), 204);
    assert_eq!(link(&office.call_as(other, "remove", &arguments)), of_other);
    for near in [
        json!({"id": "1"}),
        json!({"id": "1", "reason": "Old"}),
        json!({"id": "1", "reason": "old", "key": ""}),
    ] {
        link(&office.call_as(CLIENT, "remove", &near));
    }
    assert!(office.upstream.received().is_empty());
    let done = office.call_as(CLIENT, "remove", &arguments);
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(
        office.upstream.take_one().line,
        "DELETE /things/1?reason=old HTTP/1.1"
    );
}

#[test]
fn p89_who_agrees_calls_nothing_and_who_calls_agrees_to_nothing() {
    let office = Office::start(&json!({}), &[]);
    let path = link(&office.remove("1"));
    for (token, expected) in [(APPROVER, 401), (CLIENT, 200)] {
        let authorization = format!("Authorization: Bearer {token}");
        let (status, answer) = office
            .server
            .send("POST", &[&authorization], crate::support::LIST);
        assert_eq!(status, expected, "{answer}");
    }
    assert_eq!(link(&office.remove("1")), path);
    // Also where clients need no token.
    let open = Office::start(&json!({"auth_token_env": []}), &[]);
    let authorization = format!("Authorization: Bearer {APPROVER}");
    assert_eq!(
        open.server
            .send("POST", &[&authorization], crate::support::LIST)
            .0,
        401
    );
    assert_eq!(
        open.server
            .send(
                "POST",
                &["Authorization: Bearer none"],
                crate::support::LIST
            )
            .0,
        200
    );
    let path = link(&open.remove("1"));
    assert_eq!(open.answer(&path, true), 204);
    assert_eq!(open.remove("1")["isError"], false);
}

#[test]
fn p45_one_caller_has_twenty_open_questions() {
    let office = Office::start(&json!({}), &[]);
    let links: BTreeSet<String> = (0..20)
        .map(|id| link(&office.remove(&id.to_string())))
        .collect();
    assert_eq!(links.len(), 20);
    let refused = office.remove("20");
    assert!(
        text(&refused).contains("too many calls wait for that already"),
        "{refused}"
    );
    assert!(
        links.contains(&link(&office.remove("3"))),
        "a known one is no more"
    );
    link(&office.call_as(VARIABLES[2].1, "remove", &json!({"id": "20"})));
    let answered = link(&office.remove("7"));
    assert_eq!(office.answer(&answered, false), 204);
    link(&office.remove("20"));
}

#[test]
fn p89_what_fails_before_a_byte_leaves_keeps_the_agreement() {
    // One request at once, and the next one in 1000 s: longer than a call takes.
    let office = Office::start(&json!({"rate_limit": 0.001, "timeout": 5}), &[]);
    let paths = ["1", "2"].map(|id| link(&office.remove(id)));
    for path in &paths {
        assert_eq!(office.answer(path, true), 204);
    }
    assert_eq!(office.remove("1")["isError"], false);
    for _ in 0..2 {
        let refused = office.remove("2");
        assert!(
            text(&refused).contains("sends no more requests"),
            "{refused}"
        );
    }
    assert_eq!(office.upstream.take_one().line, "DELETE /things/1 HTTP/1.1");
    assert!(
        text(&office.remove("1")).contains("/approve/"),
        "that one is used"
    );
}

#[test]
fn p89_values_of_rules_and_files_are_part_of_what_is_agreed_to() {
    let office = Office::start(
        &json!({
            "allow_file_args": ".", "forward_header": [],
            "overrides": [{"match": {"operation": "remove"}, "arguments": {"query:key": {"value": {"forward": "X-Key"}}}}],
        }),
        &[],
    );
    let call = |key: &str| {
        let more = [
            format!("Authorization: Bearer {CLIENT}"),
            format!("X-Key: {key}"),
        ];
        let more = more.each_ref().map(String::as_str);
        let parameters = json!({"arguments": {"id": "1"}});
        office
            .server
            .call_stateless_as(&more, "remove", parameters, &json!({}))["result"]
            .clone()
    };
    let path = link(&call("one-value-of-a-client"));
    let (_, shown) = office.shown(&path);
    assert!(
        !shown.to_string().contains("one-value-of-a-client"),
        "{shown}"
    );
    assert_eq!(office.answer(&path, true), 204);
    assert_ne!(link(&call("another-value-of-it")), path);
    assert_eq!(call("one-value-of-a-client")["isError"], false);
    assert_eq!(
        office.upstream.take_one().path(),
        "/things/1?key=one-value-of-a-client"
    );

    office.setup.write("a.txt", "what the person saw");
    let upload = || {
        office.call_as(
            CLIENT,
            "upload",
            &json!({"body": {"file": {"path": "a.txt"}}}),
        )
    };
    let path = link(&upload());
    assert_eq!(office.answer(&path, true), 204);
    office.setup.write("a.txt", "what the agent made");
    assert_ne!(link(&upload()), path);
    assert!(office.upstream.received().is_empty());
    office.setup.write("a.txt", "what the person saw");
    let done: Value = upload();
    assert_eq!(done["isError"], false, "{done}");
    let sent = office.upstream.take_one();
    assert!(String::from_utf8_lossy(&sent.body).contains("what the person saw"));
}

#[test]
fn p89_a_changed_document_is_asked_about_again() {
    let office = Office::start(&json!({"reload": 0.2}), &[]);
    let path = link(&office.remove("1"));
    assert_eq!(office.answer(&path, true), 204);
    let mut changed = super::document();
    changed["info"]["version"] = json!("2");
    office.setup.write("office.json", &changed.to_string());
    office.server.logged("changed");
    assert_ne!(link(&office.remove("1")), path);
    assert!(office.upstream.received().is_empty());
}

#[test]
fn a_client_that_can_ask_gets_no_link_if_both_are_named() {
    let office = Office::start(&json!({"confirm_by": "client,link"}), &[]);
    let authorization = format!("Authorization: Bearer {CLIENT}");
    let call = |parameters: Value| {
        let capabilities = json!({"elicitation": {}});
        let headers = [authorization.as_str()];
        let answer = office
            .server
            .call_stateless_as(&headers, "remove", parameters, &capabilities);
        answer["result"].clone()
    };
    let asked = call(json!({"arguments": {"id": "1"}}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let declined = call(json!({
        "arguments": {"id": "1"}, "requestState": asked["requestState"],
        "inputResponses": {"confirm": {"action": "decline"}},
    }));
    assert!(text(&declined).contains("the user declined"), "{declined}");
    link(&office.remove("1"));
    assert!(office.upstream.received().is_empty());
    // With links alone, such a client gets one too, and its own answer is of no use.
    let office = Office::start(&json!({}), &[]);
    let headers = [authorization.as_str()];
    let parameters = json!({
        "arguments": {"id": "1"}, "requestState": asked["requestState"],
        "inputResponses": {"confirm": {"action": "accept", "content": {}}},
    });
    let answer = office.server.call_stateless_as(
        &headers,
        "remove",
        parameters,
        &json!({"elicitation": {}}),
    );
    link(&answer["result"]);
    assert!(office.upstream.received().is_empty());
}

#[test]
fn p89_users_with_the_scope_of_approvers_agree_and_call_nothing_that_needs_agreement() {
    let rsa = Signer::rsa();
    let issuer = Issuer::start(vec![rsa.jwk("r")]);
    let log = Log::new();
    let office = Office::start(
        &json!({
            "auth_tokens": null, "auth_token_env": [], "oauth_issuer": issuer.name(),
            "oauth_write_scope": ["write"], "approver_scope": "approve",
        }),
        &["--audit-log", log.name()],
    );
    wait_for_keys(&issuer);
    let token = |changes: Value| {
        let mut claims = json!({"iss": issuer.name(), "aud": office.server.url(), "exp": now() + 300, "sub": "alice", "scope": "write"});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        rsa.token(&json!({"alg": "RS256", "kid": "r"}), &claims)
    };
    let (alice, boss) = (
        token(json!({})),
        token(json!({"sub": "boss", "scope": "write approve"})),
    );
    let arguments = json!({"id": "1"});
    let path = link(&office.call_as(&alice, "remove", &arguments));
    let refused = office.call_as(&boss, "remove", &arguments);
    assert!(
        text(&refused).contains("one of those with which people agree"),
        "{refused}"
    );
    for (claims, expected) in [
        (
            json!({"sub": "boss", "scope": "write approve", "aud": "https://other.example"}),
            401,
        ),
        (json!({"sub": "boss", "scope": "approve"}), 200),
    ] {
        let authorization = format!("Authorization: Bearer {}", token(claims.clone()));
        let headers = [authorization.as_str(), "Accept: application/json"];
        let (status, answer) = office.ask(&path, "GET", &headers, "");
        assert_eq!(status, expected, "{claims} {answer}");
        let challenge = answer_header(&answer, "www-authenticate").unwrap_or_default();
        assert!(!challenge.contains("scope"), "{challenge}");
    }
    let metadata = office.server.get("/.well-known/oauth-protected-resource");
    assert!(
        metadata.contains("\"write\"") && !metadata.contains("approve"),
        "{metadata}"
    );
    let shown = office.shown_to(&boss, &path).1;
    assert_eq!(
        shown["question"]["caller"],
        format!("{} sub alice", issuer.name())
    );
    assert_eq!(office.answer_as(&boss, &path, true), 204);
    // Another token of the same user is the same caller.
    let later = token(json!({"exp": now() + 301}));
    assert_eq!(
        office.call_as(&later, "remove", &arguments)["isError"],
        false
    );
    assert_eq!(office.upstream.take_one().line, "DELETE /things/1 HTTP/1.1");
    let lines = log.wait_for(4);
    let approval = lines
        .iter()
        .find(|line| line["event"] == "approval")
        .unwrap();
    assert_eq!(approval["approver"], format!("{} boss", issuer.name()));
}
