//! Access tokens: credentials that are not the same for every request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::{Value, json};

use super::credentials::{carried, document};
use crate::support::{
    Session, SpecFile, TIMEOUT, Upstream, command, reply, stderr, text, wait_until,
};

/// A token endpoint and an API in one: `/token` numbers its tokens, `/pets` takes only the newest,
/// in `Authorization`.
fn authority(life: &'static str) -> Upstream {
    let issued = std::sync::atomic::AtomicUsize::new(0);
    Upstream::start(Box::new(move |request| {
        use std::sync::atomic::Ordering::SeqCst;
        let json = |status, body: &str| {
            reply(status, &["Content-Type: application/json"], body.as_bytes())
        };
        match request.path() {
            "/token" => {
                let number = issued.fetch_add(1, SeqCst) + 1;
                json(
                    200,
                    &format!(
                        "{{\"access_token\":\"token-number-{number}\",\"token_type\":\"bearer\"{life}}}"
                    ),
                )
            }
            "/revoke" => {
                issued.fetch_add(1, SeqCst);
                json(200, "{}")
            }
            _ => {
                let newest = format!("Bearer token-number-{}", issued.load(SeqCst));
                let given = request.header("authorization").unwrap_or_default();
                json(
                    if given == newest { 200 } else { 401 },
                    &json!({"given": given, "body": request.body.len()}).to_string(),
                )
            }
        }
    }))
}

/// An endpoint may revoke a token when it gives the next one.
#[test]
fn an_operation_that_refuses_every_token_costs_the_others_none() {
    let issued = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| {
        let json = |status, body: &str| {
            reply(status, &["Content-Type: application/json"], body.as_bytes())
        };
        match request.path() {
            "/token" => {
                let number = issued.fetch_add(1, SeqCst) + 1;
                json(
                    200,
                    &format!(
                        "{{\"access_token\":\"token-number-{number}\",\"expires_in\":3600.0}}"
                    ),
                )
            }
            "/closed" => json(401, "{}"),
            _ => json(200, "{}"),
        }
    }));
    let spec = oauth_document("/token");
    let mut session = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &CLIENT,
    );
    for _ in 0..10 {
        assert_eq!(session.call("pets", &json!({"body": {}}))["isError"], false);
        assert_eq!(
            session.call("closed", &json!({"body": {}}))["isError"],
            true
        );
    }
    assert_eq!(
        count(&upstream, "/token"),
        2,
        "one, and another one for the first refusal"
    );
}

/// A token in a part with a charset of its own is found only after decoding.
#[test]
fn p41_a_fetched_token_that_comes_back_in_a_charset_of_its_own_is_taken_out() {
    let upstream = Upstream::start(Box::new(|request| {
        if request.line.contains("/token") {
            return reply(
                200,
                &["Content-Type: application/json"],
                b"{\"access_token\":\"fetched-t0ken-value\"}",
            );
        }
        let token = request
            .header("authorization")
            .unwrap_or_default()
            .to_owned();
        let wide: Vec<u8> = token.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let head = b"--x\r\nContent-Type: text/plain; charset=utf-16le\r\n\r\n";
        reply(
            200,
            &["Content-Type: multipart/mixed; boundary=x"],
            &[head, &wide[..], b"\r\n--x--"].concat(),
        )
    }));
    let spec = oauth_document(&format!("{}/token", upstream.url));
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let said = Session::start_with(&args, &CLIENT)
        .call("pets", &json!({"body": {}}))
        .to_string();
    assert!(
        said.contains("[redacted]") && !said.contains("t0ken"),
        "{said}"
    );
}

fn oauth_document(token_url: &str) -> SpecFile {
    let operation = |id: &str, security: Value| json!({"post": {"operationId": id, "security": security, "requestBody": {"content": {"application/json": {}}}}});
    SpecFile::new(
        &json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"},
            "components": {"securitySchemes": {"pets": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": token_url, "scopes": {"read": "x"}}}}}},
            "paths": {"/pets": operation("pets", json!([{"pets": ["read"]}])), "/revoke": operation("revoke", json!([])),
            "/closed": operation("closed", json!([{"pets": ["read"]}]))}})
        .to_string(),
    )
}

const CLIENT: [(&str, &str); 2] = [
    ("OPENAPI_MCP_AUTH_PETS_CLIENT_ID", "my client"),
    ("OPENAPI_MCP_AUTH_PETS_CLIENT_SECRET", "client-s3cret"),
];

fn count(upstream: &Upstream, path: &str) -> usize {
    upstream
        .received()
        .iter()
        .filter(|request| request.path() == path)
        .count()
}

#[test]
fn client_credentials_fetch_one_token_for_many_calls_and_a_new_one_after_a_401() {
    let upstream = authority(",\"expires_in\":3600");
    let spec = oauth_document("/token");
    let mut variables = CLIENT.to_vec();
    variables.push(("OPENAPI_MCP_AUTH_PETS_SCOPES", "read write"));
    let mut session = Session::start_with(
        &[
            "serve",
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--log-level",
            "trace",
        ],
        &variables,
    );
    assert_eq!(
        count(&upstream, "/token"),
        0,
        "nothing is fetched before the first call"
    );
    let ids: Vec<u64> = (0..50)
        .map(|_| {
            session.post(
                "tools/call",
                &json!({"name": "pets", "arguments": {"body": {}}}),
            )
        })
        .collect();
    for _ in ids {
        let answer = session.receive();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        assert_eq!(
            answer["result"]["structuredContent"]["given"], "Bearer [redacted]",
            "{answer}"
        );
    }
    let first = upstream.received().remove(0);
    assert_eq!(first.line, "POST /token HTTP/1.1");
    assert_eq!(
        first.header("authorization"),
        Some("Basic bXklMjBjbGllbnQ6Y2xpZW50LXMzY3JldA==")
    );
    assert_eq!(
        first.body,
        b"grant_type=client_credentials&scope=read+write"
    );
    assert_eq!(
        (count(&upstream, "/token"), count(&upstream, "/pets")),
        (1, 50),
        "one flight for all"
    );

    session.call("revoke", &json!({"body": {}}));
    let result = session.call("pets", &json!({"body": {}}));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(
        (count(&upstream, "/token"), count(&upstream, "/pets")),
        (2, 52),
        "one retry with a fresh token"
    );
    let logs = session.end();
    assert!(
        !logs.contains("s3cret") && !logs.contains("token-number"),
        "{logs}"
    );
}

#[test]
fn a_user_gets_tokens_where_the_document_declares_the_password_flow() {
    let upstream = authority(",\"expires_in\":\"0\"");
    let document = json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "security": [{"login": []}],
        "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {"password": {"tokenUrl": "token", "scopes": {}}}}}},
        "paths": {"/pets": {"post": {"operationId": "pets", "requestBody": {"content": {"application/json": {}}}}}}});
    let spec = SpecFile::new(&document.to_string());
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let user = [
        ("OPENAPI_MCP_AUTH_LOGIN_USERNAME", "ann"),
        ("OPENAPI_MCP_AUTH_LOGIN_PASSWORD", "p&ssw0rd-of-ann"),
    ];
    let mut session = Session::start_with(&args, &user);
    for number in 1..=2 {
        let result = session.call("pets", &json!({"body": {}}));
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(count(&upstream, "/token"), number);
    }
    let first = upstream.received().remove(0);
    assert_eq!(first.header("authorization"), None);
    assert_eq!(
        first.body,
        b"grant_type=password&username=ann&password=p%26ssw0rd-of-ann"
    );
    drop(session);

    let mut session = Session::start_with(&args, &user[..1]);
    let result = session.call("pets", &json!({"body": {}}));
    assert!(
        text(&result).contains("OPENAPI_MCP_AUTH_LOGIN_PASSWORD"),
        "{result}"
    );
    drop(session);
    let mut session = Session::start(&args);
    let result = session.call("pets", &json!({"body": {}}));
    let advice = "sets OPENAPI_MCP_AUTH_LOGIN_USERNAME and OPENAPI_MCP_AUTH_LOGIN_PASSWORD, or OPENAPI_MCP_AUTH_LOGIN (an access token), for";
    assert!(text(&result).contains(advice), "{result}");
}

#[test]
fn the_log_says_why_a_token_endpoint_refuses_and_no_secret() {
    let detail = json!({"detail": [{"loc": ["body", "username"], "msg": "Field required for client-s3cret", "input": "my client"}],
        "error_description": "no\nuser"});
    let upstream = Upstream::start(Box::new(move |_| {
        reply(
            422,
            &["Content-Type: application/json"],
            detail.to_string().as_bytes(),
        )
    }));
    let spec = oauth_document("/token");
    let mut session = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &CLIENT,
    );
    let result = session.call("pets", &json!({"body": {}}));
    assert!(
        text(&result).contains("the token endpoint answered 422"),
        "{result}"
    );
    assert!(!text(&result).contains("username"), "{result}");
    let logs = session.end();
    assert!(
        logs.contains("error_description: no user; detail: body.username: Field required"),
        "{logs}"
    );
    assert!(
        !logs.contains("s3cret") && !logs.contains("my client"),
        "{logs}"
    );
}

#[test]
fn a_call_that_waits_for_a_token_holds_no_place() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let upstream = Upstream::start(Box::new(move |request| {
        let json = |body: &str| reply(200, &["Content-Type: application/json"], body.as_bytes());
        if request.path() == "/token" {
            released.lock().unwrap().recv_timeout(TIMEOUT).unwrap();
            return json(r#"{"access_token":"late-token","token_type":"bearer"}"#);
        }
        json("{}")
    }));
    let spec = oauth_document("/token");
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "max_concurrency: 1",
    ];
    let mut session = Session::start_with(&args, &CLIENT);
    let waiting = session.post(
        "tools/call",
        &json!({"name": "pets", "arguments": {"body": {}}}),
    );
    wait_until("the token is asked for", || count(&upstream, "/token") == 1);
    let plain = session.call("revoke", &json!({"body": {}}));
    assert_eq!(plain["isError"], false, "{plain}");
    release.send(()).unwrap();
    let answer = session.receive();
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(waiting), &json!(false)),
        "{answer}"
    );
}

#[test]
fn a_token_is_refreshed_before_it_expires_and_a_refusal_is_told_once() {
    // The token expires at once: every call needs a new one.
    let upstream = authority(",\"expires_in\":\"0\"");
    let spec = oauth_document("/token");
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let mut short = Session::start_with(&args, &CLIENT);
    for expected in 1..4 {
        assert_eq!(short.call("pets", &json!({"body": {}}))["isError"], false);
        assert_eq!(count(&upstream, "/token"), expected);
    }

    let refusing = Upstream::start(Box::new(|request| {
        let in_body =
            String::from_utf8_lossy(&request.body).contains("client_secret=client-s3cret");
        match request.path() {
            "/token" if in_body => reply(
                400,
                &[],
                b"{\"error\":\"invalid_scope\",\"error_description\":\"client-s3cret\"}",
            ),
            "/token" => reply(401, &[], b"{\"error\":\"invalid_client\"}"),
            _ => reply(401, &[], b""),
        }
    }));
    let mut refused = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &refusing.url],
        &CLIENT,
    );
    let result = refused.call("pets", &json!({"body": {}}));
    assert_eq!(
        text(&result),
        "POST /pets failed: no access token could be obtained for the security scheme `pets`: the token endpoint answered 400 (invalid_scope)."
    );
    assert_eq!(count(&refusing, "/pets"), 0);
}

#[test]
fn a_call_whose_token_cannot_be_renewed_says_that_the_api_answered_401() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let asked = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| {
        if request.path() != "/token" {
            return reply(401, &[], b"");
        }
        match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => reply(
                200,
                &[],
                br#"{"access_token":"first-token","token_type":"bearer"}"#,
            ),
            1 => reply(400, &[], br#"{"error":"invalid_scope"}"#),
            _ => {
                let _ = released.lock().unwrap().recv_timeout(TIMEOUT);
                Vec::new()
            }
        }
    }));
    let spec = oauth_document("/token");
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--timeout",
        "1",
    ];
    let mut session = Session::start_with(&args, &CLIENT);
    for expected in [
        "the token endpoint answered 400 (invalid_scope)",
        "no other access token came in time",
    ] {
        let result = session.call("pets", &json!({"body": {}}));
        let said = text(&result);
        assert!(
            said.contains("the API answered 401 to the access token of this server, and")
                && said.contains(expected),
            "{said}"
        );
        assert!(!said.contains("nothing was sent"), "{said}");
    }
    release.send(()).unwrap();
}

#[test]
fn p47_a_document_does_not_decide_who_gets_the_clients_secret() {
    let (upstream, thief) = (authority(""), Upstream::echo());
    let spec = oauth_document(&format!("{}/token", thief.url));
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let mut refused = Session::start_with(&args, &CLIENT);
    let result = refused.call("pets", &json!({"body": {}}));
    assert!(
        text(&result).contains("OPENAPI_MCP_AUTH_PETS_TOKEN_URL")
            && !text(&result).contains(&thief.url),
        "{result}"
    );
    refused.logged("OPENAPI_MCP_AUTH_PETS_TOKEN_URL for the security scheme `pets`, because the document's own");

    let mut variables = CLIENT.to_vec();
    let token_url = format!("{}/token", upstream.url);
    variables.push(("OPENAPI_MCP_AUTH_PETS_TOKEN_URL", &token_url));
    assert_eq!(
        Session::start_with(&args, &variables).call("pets", &json!({"body": {}}))["isError"],
        false
    );
    variables.push(("OPENAPI_MCP_AUTH_PETS_ISSUER", "not a url"));
    let output = command(&args).envs(variables).output().unwrap();
    assert!(
        output.status.code() == Some(2)
            && stderr(&output).contains("OPENAPI_MCP_AUTH_PETS_ISSUER is not an http(s) URL")
    );
    assert!(thief.received().is_empty());
}

#[test]
fn p47_refresh_tokens_are_exchanged_and_an_issuer_names_its_endpoint() {
    let (address, known) = std::sync::mpsc::channel::<String>();
    let known = std::sync::Mutex::new(known);
    let own = std::sync::OnceLock::new();
    let issuer = Upstream::start(Box::new(move |request| {
        let own = own.get_or_init(|| known.lock().unwrap().recv().unwrap());
        let body = match request.path() {
            "/realm/.well-known/openid-configuration" => {
                json!({"issuer": format!("{own}/realm"), "token_endpoint": format!("{own}/t")})
            }
            "/t" if request.body
                == b"grant_type=refresh_token&refresh_token=refresh-s3cret&client_id=app" =>
            {
                json!({"access_token": "fresh-access", "refresh_token": "rotated-s3cret"})
            }
            _ => return reply(404, &[], b""),
        };
        reply(200, &[], body.to_string().as_bytes())
    }));
    address.send(issuer.url.clone()).unwrap();
    let upstream = Upstream::echo();
    let scheme =
        json!({"type": "openIdConnect", "openIdConnectUrl": format!("{}/x", upstream.url)});
    let spec = document(&json!({"id": scheme}), &json!([{"id": []}]));
    let realm = format!("{}/realm/", issuer.url);
    let mut variables = vec![
        ("OPENAPI_MCP_AUTH_ID_CLIENT_ID", "app"),
        ("OPENAPI_MCP_AUTH_ID_REFRESH_TOKEN", "refresh-s3cret"),
    ];
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let refused = Session::start_with(&args, &variables).call("call", &json!({}));
    assert!(
        text(&refused).contains("OPENAPI_MCP_AUTH_ID_ISSUER"),
        "{refused}"
    );
    assert!(
        upstream.received().is_empty(),
        "the document's discovery URL is not fetched"
    );
    variables.push(("OPENAPI_MCP_AUTH_ID_ISSUER", &realm));
    let mut session = Session::start_with(&args, &variables);
    assert_eq!(
        session.call("call", &json!({}))["isError"],
        false,
        "{}",
        session.logs()
    );
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Bearer fresh-access"]
    );
    let logs = session.end();
    assert!(
        logs.contains("the refresh token of `id` was replaced") && !logs.contains("s3cret"),
        "{logs}"
    );
}

#[test]
fn an_issuer_with_the_metadata_of_rfc_8414_alone_names_its_endpoint() {
    let own = Arc::new(std::sync::OnceLock::new());
    let known = Arc::clone(&own);
    let issuer = Upstream::start(Box::new(move |request| {
        let body = match request.path() {
            "/.well-known/oauth-authorization-server/realm" => {
                let own: &String = known.wait();
                json!({"issuer": format!("{own}/realm"), "token_endpoint": format!("{own}/t")})
            }
            "/t" => json!({"access_token": "fresh-access"}),
            _ => return reply(404, &[], b""),
        };
        reply(200, &[], body.to_string().as_bytes())
    }));
    own.set(issuer.url.clone()).unwrap();
    let upstream = Upstream::echo();
    let spec = document(
        &json!({"id": {"type": "openIdConnect", "openIdConnectUrl": "/x"}}),
        &json!([{"id": []}]),
    );
    let realm = format!("{}/realm", issuer.url);
    let variables = [
        ("OPENAPI_MCP_AUTH_ID_CLIENT_ID", "app"),
        ("OPENAPI_MCP_AUTH_ID_CLIENT_SECRET", "client-s3cret"),
        ("OPENAPI_MCP_AUTH_ID_ISSUER", &realm),
    ];
    let mut session = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &variables,
    );
    assert_eq!(
        session.call("call", &json!({}))["isError"],
        false,
        "{}",
        session.logs()
    );
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Bearer fresh-access"]
    );
}

/// A refresh token that is replaced on use works once: a call that is cancelled meanwhile must not
/// lose the new one.
#[test]
fn a_cancelled_call_does_not_lose_a_refresh_token() {
    let (asked, was_asked) = std::sync::mpsc::channel::<()>();
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let (asked, wait) = (std::sync::Mutex::new(asked), std::sync::Mutex::new(wait));
    let rotation = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| {
        if !request.line.contains("/token") {
            return reply(200, &["Content-Type: application/json"], b"{}");
        }
        let turn = rotation.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if turn == 0 {
            asked.lock().unwrap().send(()).unwrap();
            let _ = wait.lock().unwrap().recv_timeout(TIMEOUT);
        }
        let given = String::from_utf8(request.body.clone()).unwrap();
        if !given.contains(&format!("refresh_token=refresh-{turn}")) {
            return reply(
                400,
                &["Content-Type: application/json"],
                b"{\"error\":\"invalid_grant\"}",
            );
        }
        let granted = json!({"access_token": format!("access-{turn}"), "refresh_token": format!("refresh-{}", turn + 1)});
        reply(
            200,
            &["Content-Type: application/json"],
            granted.to_string().as_bytes(),
        )
    }));
    let spec = oauth_document("/token");
    let variables = [
        ("OPENAPI_MCP_AUTH_PETS_CLIENT_ID", "app"),
        ("OPENAPI_MCP_AUTH_PETS_REFRESH_TOKEN", "refresh-0"),
    ];
    let mut session = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &variables,
    );
    let id = session.post(
        "tools/call",
        &json!({"name": "pets", "arguments": {"body": {}}}),
    );
    was_asked.recv_timeout(TIMEOUT).unwrap();
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // Answered after the notification was read.
    session.request("ping", &json!({}));
    release.send(()).unwrap();
    let result = session.call("pets", &json!({"body": {}}));
    assert_eq!(result["isError"], false, "{result}");
}

#[test]
fn a_token_that_expires_at_once_is_fetched_once_for_all_calls_that_wait() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(Box::new(move |request| {
        if request.line.contains("/token") {
            // Only the first one waits.
            let _ = wait.lock().unwrap().recv_timeout(TIMEOUT);
            let token = b"{\"access_token\":\"access-token\",\"expires_in\":0}";
            return reply(200, &["Content-Type: application/json"], token);
        }
        reply(200, &["Content-Type: application/json"], b"{}")
    }));
    let spec = oauth_document("/token");
    let mut session = Session::serving_with(&spec, &upstream, &[], &CLIENT);
    for _ in 0..16 {
        session.post(
            "tools/call",
            &json!({"name": "pets", "arguments": {"body": {}}}),
        );
    }
    // All of them were read when what was sent later is answered.
    session.request("ping", &json!({}));
    drop(release);
    for _ in 0..16 {
        assert_eq!(session.receive()["result"]["isError"], false);
    }
    assert!(
        count(&upstream, "/token") < 4,
        "{} tokens were fetched",
        count(&upstream, "/token")
    );
}

#[test]
fn p41_what_a_token_endpoint_says_or_an_api_echoes_shows_no_secret() {
    let upstream = Upstream::start(Box::new(|request| {
        let body: &[u8] = b"{\"error\":\"secret_in_lower_case\"}";
        reply(
            if request.line.contains("/token") {
                400
            } else {
                200
            },
            &["Content-Type: application/json"],
            body,
        )
    }));
    let spec = oauth_document("/token");
    let client = [
        ("OPENAPI_MCP_AUTH_PETS_CLIENT_ID", "app"),
        (
            "OPENAPI_MCP_AUTH_PETS_CLIENT_SECRET",
            "secret_in_lower_case",
        ),
    ];
    let mut refused = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &client,
    );
    let said = refused.call("pets", &json!({"body": {}})).to_string() + &refused.end();
    assert!(
        said.contains("answered 400") && !said.contains("secret_in"),
        "{said}"
    );

    // A token that was refused, and the client's pair, come back with the reply to the second try.
    let number = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| {
        let json = |status, body: &Value| {
            reply(
                status,
                &["Content-Type: application/json"],
                body.to_string().as_bytes(),
            )
        };
        if request.line.contains("/token") {
            let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            return json(
                200,
                &json!({"access_token": format!("tok{number}en"), "refresh_token": "next-refresh"}),
            );
        }
        let first = request.header("authorization") == Some("Bearer tok0en");
        let echo = json!({"old": "tok0en", "new": "tok1en", "pair": "bXklMjBjbGllbnQ6Y2xpZW50LXMzY3JldA==", "next": "next-refresh"});
        json(if first { 401 } else { 200 }, &echo)
    }));
    let result = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &CLIENT,
    )
    .call("pets", &json!({"body": {}}));
    for name in ["old", "new", "pair", "next"] {
        assert_eq!(
            result["structuredContent"][name], "[redacted]",
            "{name}: {result}"
        );
    }
}

#[test]
fn a_token_endpoint_may_answer_with_a_form_and_an_empty_token_is_none() {
    for (content_type, answer, expected) in [
        (
            "application/x-www-form-urlencoded; charset=utf-8",
            "access_token=gho_16C7e42F292c&scope=repo%2Cgist&token_type=bearer",
            Ok("Bearer gho_16C7e42F292c"),
        ),
        (
            "application/x-www-form-urlencoded",
            "error=invalid_grant&error_description=The+code+is+wrong",
            Err("invalid_grant"),
        ),
        (
            "application/json",
            r#"{"access_token":"","token_type":"bearer"}"#,
            Err("empty `access_token`"),
        ),
        (
            "application/json",
            r#"{"error":"invalid_scope"}"#,
            Err("invalid_scope"),
        ),
        ("application/json", "{}", Err("no `access_token`")),
    ] {
        let (content_type, answer) = (format!("Content-Type: {content_type}"), answer.to_owned());
        let upstream = Upstream::start(Box::new(move |request| {
            if request.path() == "/token" {
                reply(200, &[&content_type], answer.as_bytes())
            } else {
                reply(200, &["Content-Type: application/json"], b"{\"ok\":true}")
            }
        }));
        let spec = oauth_document("/token");
        let result = Session::start_with(
            &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
            &CLIENT,
        )
        .call("pets", &json!({"body": {}}));
        let calls: Vec<_> = upstream
            .take_all()
            .into_iter()
            .filter(|request| request.path() != "/token")
            .collect();
        match expected {
            Ok(header) => assert_eq!(calls[0].header("authorization"), Some(header), "{result}"),
            Err(why) => {
                assert!(calls.is_empty(), "{calls:?}");
                assert!(
                    result["isError"] == true && text(&result).contains(why),
                    "{why}: {result}"
                );
            }
        }
    }
}

/// A token endpoint that replaces the refresh token each time, and refuses one that was used
/// before; and an API that takes any token.
fn rotating() -> Upstream {
    let current = std::sync::Mutex::new(0);
    Upstream::start(Box::new(move |request| {
        let json = |status, body: Value| {
            reply(
                status,
                &["Content-Type: application/json"],
                body.to_string().as_bytes(),
            )
        };
        if request.path() != "/token" {
            return json(200, json!({"ok": true}));
        }
        let mut current = current.lock().unwrap();
        let expected = format!("refresh_token=refresh-s3cret-{current}&");
        if !format!("{}&", String::from_utf8_lossy(&request.body)).contains(&expected) {
            return json(400, json!({"error": "invalid_grant"}));
        }
        *current += 1;
        json(
            200,
            json!({"access_token": format!("access-s3cret-{current}"), "refresh_token": format!("refresh-s3cret-{current}"), "expires_in": 3600}),
        )
    }))
}

const ROTATING: [(&str, &str); 2] = [
    ("OPENAPI_MCP_AUTH_PETS_CLIENT_ID", "app"),
    ("OPENAPI_MCP_AUTH_PETS_REFRESH_TOKEN", "refresh-s3cret-0"),
];

fn serve_with_store<'a>(spec: &'a SpecFile, upstream: &'a Upstream, store: &Path) -> [&'a str; 6] {
    let store = format!("token_store: {}", store.display()).leak();
    [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        store,
    ]
}

fn stored_session(upstream: &Upstream, store: &Path) -> Session {
    let spec = oauth_document("/token");
    Session::start_with(&serve_with_store(&spec, upstream, store), &ROTATING)
}

#[test]
fn a_replaced_refresh_token_survives_a_restart_and_is_shared_by_processes() {
    let upstream = rotating();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    let call = |session: &mut Session| {
        assert_eq!(
            session.call("pets", &json!({"body": {}}))["isError"],
            false,
            "{}",
            session.logs()
        );
    };
    let mut first = stored_session(&upstream, &store);
    let mut second = stored_session(&upstream, &store);
    call(&mut first);
    call(&mut second);
    assert_eq!(count(&upstream, "/token"), 1, "one refresh serves both");
    let logs = first.end() + &second.end();
    assert!(
        !logs.contains("s3cret") && !logs.contains("was replaced"),
        "{logs}"
    );
    call(&mut stored_session(&upstream, &store));
    assert_eq!(
        count(&upstream, "/token"),
        1,
        "the access token is still good"
    );

    // It has ended: the replaced refresh token is used, which the settings do not have.
    let text = std::fs::read_to_string(&store).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    file["tokens"][0]["expires"] = 1.into();
    std::fs::write(&store, file.to_string()).unwrap();
    call(&mut stored_session(&upstream, &store));
    assert_eq!(count(&upstream, "/token"), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&store).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_refresh_token_is_used_while_the_disk_is_full() {
    let (upstream, folder) = (rotating(), tempfile::tempdir().unwrap());
    let store = folder.path().join("tokens.json");
    let spec = oauth_document("/token");
    // Files of more than 4 KiB cannot be written.
    let mut session =
        Session::start_with_file_limit(8, &serve_with_store(&spec, &upstream, &store), &ROTATING);
    let result = session.call("pets", &json!({"body": {}}));
    assert!(
        result["isError"] == true
            && text_of(&result).contains("the token store of this server cannot be written"),
        "{result}"
    );
    assert_eq!(count(&upstream, "/token"), 0);
    session.logged("File too large");
    let pid = i32::try_from(session.pid()).unwrap();
    rlimit::prlimit(
        pid,
        rlimit::Resource::FSIZE,
        Some((rlimit::INFINITY, rlimit::INFINITY)),
        None,
    )
    .unwrap();
    assert_eq!(
        session.call("pets", &json!({"body": {}}))["isError"],
        false,
        "{}",
        session.logs()
    );
    let stored = std::fs::read_to_string(&store).unwrap();
    assert!(
        stored.contains("refresh-s3cret-1") && stored.ends_with('}'),
        "{stored:?}"
    );
}

/// Any user who can write into the folder could have put these files there.
#[cfg(unix)]
#[test]
fn files_of_others_beside_the_token_store_are_not_written() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::fs::symlink;

    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (upstream, folder) = (rotating(), tempfile::tempdir().unwrap());
    let [store, new, lock, other] = [
        "tokens.json",
        "tokens.json.new",
        "tokens.json.lock",
        "other",
    ]
    .map(|name| folder.path().join(name));
    let open_to_all = |path: &Path| {
        std::fs::write(path, "").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
    };
    let pipe = |path: &Path| {
        assert!(
            std::process::Command::new("mkfifo")
                .arg(path)
                .status()
                .unwrap()
                .success()
        );
    };
    let link = |path: &Path| symlink(&other, path).unwrap();
    open_to_all(&lock);
    let obstacles: [&dyn Fn(&Path); 3] = [&open_to_all, &pipe, &link];
    for put in obstacles {
        std::fs::write(&other, "untouched").unwrap();
        let _ = std::fs::remove_file(&store);
        put(&new);
        let upstream = rotating();
        let mut session = stored_session(&upstream, &store);
        assert_eq!(
            session.call("pets", &json!({"body": {}}))["isError"],
            false,
            "{}",
            session.logs()
        );
        assert_eq!((mode(&store), mode(&lock)), (0o600, 0o600));
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "untouched");
    }
    // A lock cannot be replaced, because others may hold it.
    for put in [&pipe as &dyn Fn(&Path), &link] {
        std::fs::remove_file(&lock).unwrap();
        put(&lock);
        let spec = oauth_document("/token");
        let output = command(&serve_with_store(&spec, &upstream, &store))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("no file can be written beside"), "{told}");
    }
}

/// An API that takes one access token alone, and a token endpoint that takes each refresh token
/// once. The file for the tokens cannot be written while one of the first two is given: a folder
/// stands in its place.
fn rotating_beside_an_obstacle(store: &Path, wanted: &Arc<AtomicUsize>) -> Upstream {
    let (store, wanted, given) = (store.to_owned(), Arc::clone(wanted), AtomicUsize::new(0));
    Upstream::start(Box::new(move |request| {
        let json = |status, body: Value| {
            reply(
                status,
                &["Content-Type: application/json"],
                body.to_string().as_bytes(),
            )
        };
        if request.path() != "/token" {
            let token = format!("Bearer access-s3cret-{}", wanted.load(SeqCst));
            let is_right = request.header("authorization").unwrap_or_default() == token;
            return json(if is_right { 200 } else { 401 }, json!({"ok": is_right}));
        }
        let number = given.load(SeqCst);
        let expected = format!("refresh_token=refresh-s3cret-{number}&");
        if !format!("{}&", String::from_utf8_lossy(&request.body)).contains(&expected) {
            return json(400, json!({"error": "invalid_grant"}));
        }
        let number = given.fetch_add(1, SeqCst) + 1;
        if number <= 2 {
            let _ = std::fs::remove_file(&store);
            std::fs::create_dir(&store).unwrap();
        }
        json(
            200,
            json!({"access_token": format!("access-s3cret-{number}"), "refresh_token": format!("refresh-s3cret-{number}"), "expires_in": 3600}),
        )
    }))
}

#[test]
fn tokens_that_could_not_be_written_are_used_and_the_newest_is_written_as_soon_as_that_is_possible()
{
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    let wanted = Arc::new(AtomicUsize::new(0));
    let upstream = rotating_beside_an_obstacle(&store, &wanted);
    let mut session = stored_session(&upstream, &store);
    for number in 1..=3 {
        wanted.store(number, SeqCst);
        let result = session.call("pets", &json!({"body": {}}));
        assert_eq!(
            result["isError"],
            false,
            "{number}: {result}\n{}",
            session.logs()
        );
        if number < 3 {
            session.logged("the token store cannot be written");
            std::fs::remove_dir(&store).unwrap();
        }
        if number == 2 {
            wait_until("the token is written", || {
                std::fs::read_to_string(&store).is_ok_and(|text| text.contains("refresh-s3cret-2"))
            });
            session.logged("the token store is written again");
        }
    }
    assert!(
        std::fs::read_to_string(&store)
            .unwrap()
            .contains("refresh-s3cret-3")
    );
    assert_eq!(count(&upstream, "/token"), 3, "{}", session.logs());
}

#[test]
fn with_a_state_key_the_store_is_encrypted_and_what_was_in_the_clear_as_well() {
    let upstream = rotating();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    let spec = oauth_document("/token");
    let args = serve_with_store(&spec, &upstream, &store);
    let keyed = [&args[..], &["--state-key-env", "STATE_KEY"]].concat();
    let (old, new) = ("01".repeat(32), "02".repeat(32));
    let both = format!("{new} {old}");
    let call_with = |args: &[&str], key: &str| {
        let variables = [&ROTATING[..], &[("STATE_KEY", key)]].concat();
        let mut session = Session::start_with(args, &variables);
        assert_eq!(
            session.call("pets", &json!({"body": {}}))["isError"],
            false,
            "{}",
            session.logs()
        );
    };
    call_with(&args, "");
    assert!(std::fs::read_to_string(&store).unwrap().contains("s3cret"));
    for key in [&old, &both] {
        call_with(&keyed, key);
        let text = std::fs::read_to_string(&store).unwrap();
        assert!(
            !text.contains("s3cret") && !text.contains("token\""),
            "{text}"
        );
    }
    assert_eq!(
        count(&upstream, "/token"),
        1,
        "the stored token is used all the time"
    );

    let text = std::fs::read(&store).unwrap();
    for (args, key, expected) in [
        (&args[..], "", "is encrypted; name its key"),
        (&keyed, &new, "another key"),
    ] {
        let output = command(args)
            .envs(ROTATING)
            .env("STATE_KEY", key)
            .output()
            .unwrap();
        assert!(
            output.status.code() == Some(2) && stderr(&output).contains(expected),
            "{}",
            stderr(&output)
        );
        assert_eq!(std::fs::read(&store).unwrap(), text, "it is not touched");
    }
}

#[test]
fn another_refresh_token_in_the_settings_or_a_refused_stored_one_counts() {
    let upstream = rotating();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    stored_session(&upstream, &store).call("pets", &json!({"body": {}}));
    let text = std::fs::read_to_string(&store).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    // The operator has set another one since.
    file["tokens"][0]["configured"] = "of another token".into();
    std::fs::write(&store, file.to_string()).unwrap();
    let result = stored_session(&upstream, &store).call("pets", &json!({"body": {}}));
    assert!(text_of(&result).contains("invalid_grant"), "{result}");
    assert_eq!(count(&upstream, "/token"), 2, "the stored one is not tried");

    // The endpoint refuses the stored one: the one in the settings is tried once.
    let fresh = rotating();
    let mut file: Value = serde_json::from_str(&text.replace(&upstream.url, &fresh.url)).unwrap();
    file["tokens"][0]["refresh_token"] = "revoked-s3cret".into();
    file["tokens"][0]["expires"] = 1.into();
    std::fs::write(&store, file.to_string()).unwrap();
    assert_eq!(
        stored_session(&fresh, &store).call("pets", &json!({"body": {}}))["isError"],
        false
    );
    assert_eq!(count(&fresh, "/token"), 2);
}

fn text_of(result: &Value) -> String {
    result.to_string()
}

#[test]
fn the_start_says_that_a_replaced_refresh_token_would_be_lost() {
    let (upstream, folder) = (rotating(), tempfile::tempdir().unwrap());
    let spec = oauth_document("/token");
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let mut session = Session::start_with(&args, &ROTATING);
    session.logged("if the token endpoint of `pets` replaces the refresh token");
    session.close_stdin();
    assert_eq!(session.wait(), Some(0));
    for logs in [
        stored_session(&upstream, &folder.path().join("tokens.json")).end(),
        Session::start_with(&args, &CLIENT).end(),
    ] {
        assert!(!logs.contains("replaces the refresh token"), "{logs}");
    }
}

#[test]
fn a_token_store_that_cannot_be_trusted_ends_the_start_and_a_corrupt_one_is_set_aside() {
    let upstream = rotating();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    let refused = |path: &Path| {
        let spec = oauth_document("/token");
        let output = command(&[
            "serve",
            "--spec",
            spec.path(),
            &format!("token_store: {}", path.display()),
        ])
        .output()
        .unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(refused(&folder.path().join("no/such/folder/tokens.json")).contains("`token_store`"));
    std::fs::write(&store, "{\"version\": 3, \"tokens\": {}}").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refused(&store).contains("chmod 600"));
        std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert!(refused(&store).contains("newer version"));
    std::fs::write(&store, "{\"version\": 1, \"tok").unwrap();
    let mut session = stored_session(&upstream, &store);
    session.logged("set aside");
    assert_eq!(session.call("pets", &json!({"body": {}}))["isError"], false);
    assert!(std::fs::read_dir(folder.path()).unwrap().any(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains(".corrupt-")
    }));
}

/// Each of the pages that one call collects may carry a token of its own, and the result holds none
/// of them.
#[test]
fn p41_the_tokens_of_all_pages_are_taken_out_of_the_list() {
    let issued = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| {
        let json = |status, body: &str| {
            reply(status, &["Content-Type: application/json"], body.as_bytes())
        };
        if request.path() == "/token" {
            let number = issued.fetch_add(1, SeqCst) + 1;
            return json(
                200,
                &format!(r#"{{"access_token":"token-number-{number}"}}"#),
            );
        }
        let page: usize = request
            .path()
            .split_once("cursor=")
            .map_or(1, |(_, page)| page.parse().unwrap());
        let token = request.header("authorization").unwrap_or_default();
        if !token.ends_with(&page.to_string()) {
            return json(401, "{}");
        }
        // As a text that other code reads once more.
        let escaped = token.replace('-', "\\u002d");
        if page == 4 {
            return json(
                400,
                &format!(r#"{{"own":"{token}","escaped":"{escaped}"}}"#),
            );
        }
        let next = page + 1;
        json(
            200,
            &format!(
                r#"{{"items":[{{"n":{page},"own":"{token}","escaped":"{escaped}"}}],"next_cursor":{next}}}"#
            ),
        )
    }));
    let flows = json!({"clientCredentials": {"tokenUrl": "/token", "scopes": {}}});
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "security": [{"pets": []}],
            "components": {"securitySchemes": {"pets": {"type": "oauth2", "flows": flows}}},
            "paths": {"/list": {"get": {"operationId": "list", "parameters": [{"name": "cursor", "in": "query", "schema": {"type": "integer"}}]}}}})
        .to_string(),
    );
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "collect_pages: 9",
    ];
    let mut session = Session::start_with(&args, &CLIENT);
    let result = session.call("list", &json!({"collect_pages": 9}));
    assert_eq!(
        result["structuredContent"]["items"]
            .as_array()
            .map(Vec::len),
        Some(3),
        "{result}"
    );
    assert!(
        !result.to_string().contains("token-number") && !result.to_string().contains("u002d"),
        "{result}"
    );
    assert_eq!(text(&result).matches("[redacted]").count(), 8, "{result}");
    assert_eq!(count(&upstream, "/token"), 4);
}
