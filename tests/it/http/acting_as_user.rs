//! APIs that are called as the user: the token of the client is exchanged for one of the API.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::auth_oauth::{Issuer, Signer, now, wait_for_keys};
use crate::support::http_server::{answer_header, scrape};
use crate::support::upstream::Received;
use crate::support::{
    HttpServer, Redis, SpecFile, Upstream, call_message as call, command, reply, run, stderr,
    wait_until,
};

const JSON: [&str; 1] = ["Content-Type: application/json"];

fn form(request: &Received) -> Vec<(String, String)> {
    form_urlencoded::parse(&request.body).into_owned().collect()
}

fn field(request: &Received, name: &str) -> String {
    let found = form(request).into_iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value).unwrap_or_default()
}

/// The claims of a JWT that is only read.
fn claims(token: &str) -> Value {
    let middle = token.split('.').nth(1).unwrap_or_default();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(middle).unwrap()).unwrap()
}

fn user_of(request: &Received) -> String {
    let token = [field(request, "subject_token"), field(request, "assertion")].concat();
    claims(&token)["sub"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the answer of the token endpoint, as status and body.
type Grants = dyn Fn(&Received) -> (u16, Value) + Send + Sync;

fn grant_all(request: &Received) -> (u16, Value) {
    let token = format!(
        "for-{}-with-{}",
        user_of(request),
        field(request, "scope").replace(' ', "-")
    );
    let reply = json!({"access_token": token, "token_type": "bearer", "expires_in": 300, "refresh_token": "never-kept",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"});
    (200, reply)
}

/// An API and a token endpoint: `/me` says which token it got, and refuses tokens that begin with
/// `old`.
fn authority(grants: Box<Grants>) -> Upstream {
    Upstream::start(Box::new(move |request| {
        if request.path() == "/token" {
            let (status, body) = grants(request);
            return reply(status, &JSON, body.to_string().as_bytes());
        }
        let token = request
            .header("authorization")
            .unwrap_or("nobody")
            .trim_start_matches("Bearer ")
            .to_owned();
        let status = if token.starts_with("old") { 401 } else { 200 };
        // The user is named otherwise than by the token, which is redacted.
        let user = token.split('-').nth(1).unwrap_or("nobody");
        reply(status, &JSON, json!({"user": user}).to_string().as_bytes())
    }))
}

struct Setup {
    server: HttpServer,
    authority: Upstream,
    issuer: Issuer,
    key: Signer,
    files: tempfile::TempDir,
    _spec: SpecFile,
}

fn spec() -> SpecFile {
    let operation = |id: &str, scopes: Value| json!({"get": {"operationId": id, "security": [{"accounts": scopes}, {}]}});
    SpecFile::new(
        &json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"},
            "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "accounts": {"type": "oauth2", "flows": {"authorizationCode": {
                "authorizationUrl": "https://evil.example/a", "tokenUrl": "https://evil.example/token", "scopes": {}}}}}},
            "paths": {"/me": operation("me", json!(["read"])), "/all": operation("all", json!(["write", "read"])), "/free": operation("free", json!([])),
                "/either": {"get": {"operationId": "either", "security": [{"key": []}, {"accounts": ["other"]}]}}}})
        .to_string(),
    )
}

impl Setup {
    /// A server whose scheme has these settings besides the client and the endpoint.
    fn start(scheme: &Value, grants: Box<Grants>, more: &[&str]) -> Self {
        let key = Signer::rsa();
        let issuer = Issuer::start(vec![key.jwk("k")]);
        let authority = authority(grants);
        let files = tempfile::tempdir().unwrap();
        let path = |name: &str| files.path().join(name).display().to_string();
        std::fs::write(path("secret"), "gateway-s3cret").unwrap();
        std::fs::write(path("key"), "key-of-the-operator").unwrap();
        std::fs::write(path("clients"), "a-static-token-of-a-script").unwrap();
        let mut settings =
            json!({"token_url": format!("{}/token", authority.url), "client_id": "gateway"});
        settings
            .as_object_mut()
            .unwrap()
            .extend(scheme.as_object().unwrap().clone());
        if settings.get("client_key").is_none() {
            settings["client_secret"] = json!({"file": path("secret")});
        }
        let spec = spec();
        let config = json!({"spec": spec.path(), "base_url": authority.url, "oauth_issuer": issuer.name(), "oauth_audience": ["gateway"],
            "auth_token_file": [path("clients")], "auth": {"accounts": settings, "key": {"file": path("key")}}});
        std::fs::write(path("config.yaml"), config.to_string()).unwrap();
        let server = HttpServer::start(
            &[
                &["--config", &path("config.yaml"), "--log-level", "trace"],
                more,
            ]
            .concat(),
        );
        wait_for_keys(&issuer);
        Self {
            server,
            authority,
            issuer,
            key,
            files,
            _spec: spec,
        }
    }

    fn token(&self, more: &Value) -> String {
        let mut claims = json!({"iss": self.issuer.name(), "aud": "gateway", "exp": now() + 300, "sub": "alice", "client_id": "an-app"});
        claims
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.key
            .token(&json!({"alg": "RS256", "kid": "k"}), &claims)
    }

    fn user(&self, name: &str) -> String {
        self.token(&json!({"sub": name}))
    }

    /// The status of a call, and the whole answer.
    fn call(&self, token: &str, tool: &str) -> (u16, String) {
        let authorization = format!("Authorization: Bearer {token}");
        self.server
            .send("POST", &[&authorization], &call(tool, "{}"))
    }

    /// The result of a call that HTTP answers with 200.
    fn result(&self, token: &str, tool: &str) -> Value {
        let (status, answer) = self.call(token, tool);
        assert_eq!(status, 200, "{answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str::<Value>(body).unwrap()["result"].clone()
    }

    fn asked(&self) -> Vec<Received> {
        let all = self.authority.received();
        all.into_iter()
            .filter(|request| request.path() == "/token")
            .collect()
    }

    fn sent(&self) -> usize {
        self.authority.received().len() - self.asked().len()
    }
}

#[test]
fn p31_a_users_token_is_exchanged_to_the_letter_and_each_user_gets_their_own() {
    let scheme = json!({"grant": "token-exchange", "audience": ["https://api.example", "second"], "resource": "https://api.example/r", "scopes": "a b"});
    let setup = Setup::start(&scheme, Box::new(grant_all), &[]);
    let (alice, bob) = (setup.user("alice"), setup.user("bob"));
    for _ in 0..3 {
        for (token, name) in [(&alice, "alice"), (&bob, "bob")] {
            let result = setup.result(token, "me");
            assert_eq!(result["structuredContent"]["user"], name, "{result}");
        }
    }
    let asked = setup.asked();
    assert_eq!(asked.len(), 2, "one exchange for each user");
    let expected = [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        ("subject_token", &alice),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:access_token",
        ),
        ("audience", "https://api.example"),
        ("audience", "second"),
        ("resource", "https://api.example/r"),
        ("scope", "a b"),
    ];
    assert_eq!(
        form(&asked[0]),
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    let basic = format!("Basic {}", BASE64_STANDARD.encode("gateway:gateway-s3cret"));
    assert_eq!(asked[0].header("authorization"), Some(basic.as_str()));
    let api = setup.authority.received();
    let tokens: Vec<_> = api
        .iter()
        .filter_map(|request| request.header("authorization"))
        .collect();
    assert!(
        !tokens
            .iter()
            .any(|sent| sent.contains(&alice) || sent.contains(&bob)),
        "{tokens:?}"
    );
    let log = setup.server.logged("called");
    assert!(
        !log.contains(&alice) && !log.contains("for-alice") && !log.contains("s3cret"),
        "{log}"
    );
}

#[test]
fn p31_what_is_not_a_user_is_refused_and_nothing_is_sent() {
    let setup = Setup::start(
        &json!({"grant": "token-exchange"}),
        Box::new(grant_all),
        &["--allow-missing-credentials"],
    );
    let not_users = [
        setup.token(&json!({"sub": "an-app"})),
        setup.token(&json!({"azp": "alice"})),
        setup.token(&json!({"idtyp": "app"})),
        setup.token(&json!({"cid": "alice"})),
        setup.token(&json!({"sub": "an-app@clients"})),
        setup.token(&json!({"gty": "client-credentials"})),
        setup.token(&json!({"preferred_username": "service-account-an-app"})),
        setup.token(&json!({"sub": null})),
        setup.token(&json!({"sub": ""})),
        "a-static-token-of-a-script".to_owned(),
    ];
    for token in not_users {
        for tool in ["me", "free"] {
            let result = setup.result(&token, tool);
            assert_eq!(result["isError"], true, "{result}");
            assert!(
                result.to_string().contains("is called as the user"),
                "{result}"
            );
        }
    }
    let (status, answer) = setup.call(&setup.token(&json!({"exp": 9.3e18})), "me");
    assert_eq!(status, 401, "{answer}");
    assert!(setup.authority.received().is_empty());
}

#[test]
fn p56_no_alternative_of_the_operators_takes_the_place_of_a_user() {
    let grants = |request: &Received| match user_of(request).as_str() {
        "bob" => grant_all(request),
        _ => (400, json!({"error": "consent_required"})),
    };
    let setup = Setup::start(
        &json!({"grant": "token-exchange"}),
        Box::new(grants),
        &["--allow-missing-credentials"],
    );
    assert_eq!(
        setup.result(&setup.user("bob"), "either")["structuredContent"]["user"],
        "bob"
    );
    for token in [setup.user("alice"), "a-static-token-of-a-script".to_owned()] {
        let result = setup.result(&token, "either");
        assert_eq!(result["isError"], true, "{result}");
    }
    assert_eq!(setup.sent(), 1);
    let sent = setup.authority.received();
    assert!(
        sent.iter().all(|request| request.header("x-key").is_none()),
        "{sent:?}"
    );
}

#[test]
fn p56_an_operation_of_another_server_is_not_called_as_nobody_in_place_of_the_user() {
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name).display().to_string();
    let scheme = json!({"type": "http", "scheme": "bearer"});
    let operation = |id: &str, url: &str| json!({"get": {"operationId": id, "servers": [{"url": url}], "security": [{"accounts": []}, {}]}});
    let document = json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://api.example"}],
        "components": {"securitySchemes": {"accounts": scheme}},
        "paths": {"/here": operation("here", "https://api.example"), "/away": operation("away", "https://other.example")}});
    std::fs::write(path("spec.json"), document.to_string()).unwrap();
    let config = json!({"spec": path("spec.json"), "auth": {"accounts": {"grant": "token-exchange", "token_url": "https://login.example/t", "client_id": "gateway"}}});
    std::fs::write(path("config.yaml"), config.to_string()).unwrap();
    let output = run(&[
        "call",
        "--config",
        &path("config.yaml"),
        "--dry-run",
        "away",
    ]);
    assert!(
        stderr(&output).contains("this would not be sent"),
        "{output:?}"
    );
    let output = run(&[
        "call",
        "--config",
        &path("config.yaml"),
        "--dry-run",
        "here",
    ]);
    assert!(!stderr(&output).contains("another server"), "{output:?}");
}

#[test]
fn an_operation_gets_a_token_of_its_own_scopes() {
    let scheme =
        json!({"grant": "token-exchange", "operation_scopes": true, "subject_token_type": "jwt"});
    let setup = Setup::start(&scheme, Box::new(grant_all), &[]);
    let alice = setup.user("alice");
    for tool in ["me", "all", "free", "me"] {
        assert_eq!(setup.result(&alice, tool)["isError"], false);
    }
    let asked = setup.asked();
    let scopes: Vec<String> = asked
        .iter()
        .map(|request| field(request, "scope"))
        .collect();
    assert_eq!(scopes, ["read", "read write", ""]);
    assert!(
        asked
            .iter()
            .all(|request| field(request, "subject_token_type")
                == "urn:ietf:params:oauth:token-type:jwt")
    );
}

#[test]
fn on_behalf_of_asks_as_entra_wants_it_with_a_key_and_a_certificate() {
    let made = rcgen::generate_simple_self_signed(vec!["gateway.example".into()]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name).display().to_string();
    std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(path("certificate.pem"), made.cert.pem()).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(
        path("key.pem"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let scheme = json!({"grant": "on-behalf-of", "scopes": "api://x/.default", "client_key": {"file": path("key.pem")},
        "client_key_id": "key-1", "client_certificate": path("certificate.pem")});
    let setup = Setup::start(&scheme, Box::new(grant_all), &[]);
    let alice = setup.user("alice");
    assert_eq!(
        setup.result(&alice, "me")["structuredContent"]["user"],
        "alice"
    );
    let asked = setup.asked().remove(0);
    assert_eq!(asked.header("authorization"), None);
    let fields: BTreeMap<String, String> = form(&asked).into_iter().collect();
    for (name, expected) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", &alice),
        ("requested_token_use", "on_behalf_of"),
        ("scope", "api://x/.default"),
        ("client_id", "gateway"),
        (
            "client_assertion_type",
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        ),
    ] {
        assert_eq!(fields[name], expected, "{name}");
    }
    assert_eq!(fields.len(), 7, "{fields:?}");
    let assertion = &fields["client_assertion"];
    let header: Value = serde_json::from_slice(
        &BASE64_URL_SAFE_NO_PAD
            .decode(assertion.split('.').next().unwrap())
            .unwrap(),
    )
    .unwrap();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, made.cert.der());
    assert_eq!(
        header["x5t#S256"],
        BASE64_URL_SAFE_NO_PAD.encode(digest),
        "{header}"
    );
    assert_eq!(
        (&header["alg"], &header["kid"]),
        (&json!("ES256"), &json!("key-1"))
    );
    let claims = claims(assertion);
    assert_eq!(
        (&claims["iss"], &claims["sub"]),
        (&json!("gateway"), &json!("gateway"))
    );
    assert_eq!(claims["aud"], format!("{}/token", setup.authority.url));
    assert_eq!(
        claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(),
        60
    );
    let key = jsonwebtoken::DecodingKey::from_ec_der(made.signing_key.public_key_raw());
    let mut validation = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::ES256);
    validation.set_audience(&[format!("{}/token", setup.authority.url)]);
    jsonwebtoken::decode::<Value>(assertion, &key, &validation).expect("the signature is right");
}

#[test]
fn a_user_who_can_mend_it_is_asked_to_sign_in_once_and_then_told_why() {
    let refuse = |code: &'static str, claims: Option<&'static str>| -> Box<Grants> {
        Box::new(move |request| {
            (
                400,
                json!({"error": code, "error_description": format!("no {}", field(request, "subject_token")), "claims": claims}),
            )
        })
    };
    let wanted = r#"{"access_token":{"acrs":{"essential":true,"value":"c1"}}}"#;
    for (code, given, expected) in [
        (
            "invalid_grant",
            None,
            Some("error=\"invalid_token\"".to_owned()),
        ),
        (
            "login_required",
            None,
            Some("error=\"invalid_token\"".to_owned()),
        ),
        (
            "interaction_required",
            Some(wanted),
            Some(format!(
                "error=\"insufficient_claims\", error_description=\"the API needs another token of the user\", resource_metadata=\"SERVER\", claims=\"{}\"",
                BASE64_STANDARD.encode(wanted)
            )),
        ),
        ("consent_required", None, None),
        ("invalid_request", None, None),
    ] {
        let setup = Setup::start(
            &json!({"grant": "token-exchange"}),
            refuse(code, given),
            &[],
        );
        let (alice, again) = (setup.user("alice"), setup.token(&json!({"jti": "2"})));
        if let Some(expected) = expected {
            let (status, answer) = setup.call(&alice, "me");
            assert_eq!(status, 401, "{code}: {answer}");
            let metadata = format!(
                "http://{}/.well-known/oauth-protected-resource/mcp",
                setup.server.address
            );
            let challenge = answer_header(&answer, "www-authenticate").unwrap();
            assert!(
                challenge.contains(&expected.replace("SERVER", &metadata))
                    && challenge.contains(&metadata),
                "{code}: {challenge}"
            );
        }
        // Her new token fails in the same way.
        let result = setup.result(&again, "me");
        assert_eq!(result["isError"], true, "{code}");
        let said = result["content"][0]["text"].as_str().unwrap();
        assert!(
            said.contains("sign in") && said.contains("nothing was sent"),
            "{code}: {said}"
        );
        assert!(!said.contains(&again), "{said}");
        // A refusal is kept for a moment.
        let asked = setup.asked().len();
        setup.result(&again, "me");
        assert_eq!((setup.asked().len(), setup.sent()), (asked, 0), "{code}");
        let log = setup.server.logged("error_description");
        assert!(!log.contains(&alice) && !log.contains(&again), "{log}");
    }
}

#[test]
fn what_the_operator_must_mend_is_a_result_and_a_line_of_the_log() {
    let setup = Setup::start(
        &json!({"grant": "token-exchange"}),
        Box::new(|_| {
            (
                401,
                json!({"error": "invalid_client", "error_description": "unknown gateway"}),
            )
        }),
        &[],
    );
    let alice = setup.user("alice");
    let result = setup.result(&alice, "me");
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(
        said.contains("invalid_client") && !said.contains("sign in"),
        "{said}"
    );
    setup.server.logged("unknown gateway");
    assert_eq!(
        setup.asked().len(),
        2,
        "the second form of the secret is tried"
    );
    assert_eq!(setup.asked()[1].header("authorization"), None);
    setup.result(&alice, "me");
    assert_eq!(
        setup.asked().len(),
        4,
        "a failure of the endpoint is not kept"
    );

    // A dead endpoint is left alone after five failures in a row, and other calls do not wait for
    // it.
    let setup = Setup::start(
        &json!({"grant": "token-exchange"}),
        Box::new(|_| (503, json!({}))),
        &[],
    );
    let alice = setup.user("alice");
    for _ in 0..8 {
        assert_eq!(setup.result(&alice, "me")["isError"], true);
    }
    assert_eq!(setup.asked().len(), 5);
}

#[test]
fn a_token_that_the_api_refuses_is_exchanged_anew_once() {
    let issued = Arc::new(Mutex::new(0));
    let grants = move |request: &Received| {
        let mut issued = issued.lock().unwrap();
        *issued += 1;
        let word = if *issued == 1 { "old" } else { "new" };
        (
            200,
            json!({"access_token": format!("{word}-{}-{issued}", user_of(request)), "token_type": "Bearer"}),
        )
    };
    let setup = Setup::start(&json!({"grant": "token-exchange"}), Box::new(grants), &[]);
    let alice = setup.user("alice");
    for _ in 0..3 {
        assert_eq!(
            setup.result(&alice, "me")["structuredContent"]["user"],
            "alice"
        );
    }
    assert_eq!((setup.asked().len(), setup.sent()), (2, 4));
}

#[test]
fn tokens_that_are_not_those_of_the_api_are_not_used() {
    for (reply, said) in [
        (
            json!({"access_token": "t", "token_type": "N_A"}),
            "another type than Bearer",
        ),
        (
            json!({"access_token": "t", "token_type": "Bearer", "issued_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}),
            "not an access token",
        ),
        (json!({"token_type": "Bearer"}), "no `access_token`"),
    ] {
        let setup = Setup::start(
            &json!({"grant": "token-exchange"}),
            Box::new(move |_| (200, reply.clone())),
            &[],
        );
        let result = setup.result(&setup.user("alice"), "me");
        assert!(result.to_string().contains(said), "{result}");
        assert_eq!(setup.sent(), 0);
    }
}

#[test]
fn an_exchange_is_seen_in_the_audit_log_and_in_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl").display().to_string();
    let more = ["--audit-log", &log, "--metrics-bind", "127.0.0.1:0"];
    let setup = Setup::start(
        &json!({"grant": "token-exchange", "scopes": "a"}),
        Box::new(grant_all),
        &more,
    );
    let alice = setup.user("alice");
    setup.result(&alice, "me");
    setup.result(&alice, "me");
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_until("no two lines", || lines().lines().count() == 2);
    let exchanges: Vec<Value> = lines()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["exchange"].clone())
        .collect();
    let expected = |cached: bool| json!({"scheme": "accounts", "scope": "a", "cached": cached});
    assert_eq!(exchanges, [expected(false), expected(true)]);
    let metrics = setup.server.logged("metrics at");
    let address = metrics.split("metrics at http://").nth(1).unwrap();
    let page = scrape(address.split('/').next().unwrap());
    for (outcome, count) in [("ok", 1), ("cached", 1), ("refused", 0), ("failed", 0)] {
        let line = format!("openapi_mcp_exchanges_total{{outcome=\"{outcome}\"}} {count}");
        assert!(page.contains(&line), "{line}: {page}");
    }
}

/// A failure for one user does not affect others, and no reply reaches another one.
#[test]
fn p31_calls_of_many_users_to_several_apis_are_never_crossed() {
    assert_never_crossed(None);
}

#[test]
fn p31_with_shared_state_calls_of_many_users_are_never_crossed() {
    let Some(redis) = Redis::start() else { return };
    assert_never_crossed(Some(&redis));
}

fn assert_never_crossed(redis: Option<&Redis>) {
    const USERS: usize = 50;
    const CALLS: usize = 40;
    const THREADS: usize = 64;
    let key = Signer::rsa();
    let issuer = Issuer::start(vec![key.jwk("k")]);
    let count = Arc::new(Mutex::new(0_usize));
    let failing = move |request: &Received| {
        let mut count = count.lock().unwrap();
        *count += 1;
        if (*count).is_multiple_of(10) {
            (500, json!({}))
        } else {
            grant_all(request)
        }
    };
    let failing: Arc<Grants> = Arc::new(failing);
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("secret"), "gateway-s3cret").unwrap();
    let spec = spec();
    let mut upstreams = Vec::new();
    let mut apis = serde_json::Map::new();
    for number in 0..5 {
        let grants = Arc::clone(&failing);
        let api = authority(Box::new(move |request| grants(request)));
        let scheme = json!({"grant": "token-exchange", "token_url": format!("{}/token", api.url), "client_id": "gateway",
            "client_secret": {"file": "secret"}, "operation_scopes": true});
        let settings =
            json!({"spec": spec.path(), "base_url": api.url, "auth": {"accounts": scheme}});
        apis.insert(format!("a{number}"), settings);
        upstreams.push(api);
    }
    let mut config =
        json!({"apis": apis, "oauth_issuer": issuer.name(), "oauth_audience": ["gateway"]});
    if let Some(redis) = redis {
        let key = files.path().join("state-key");
        std::fs::write(&key, "11".repeat(32)).unwrap();
        config["shared_state"] = redis.url().into();
        config["shared_state_timeout"] = 10.into();
        config["state_key_file"] = key.display().to_string().into();
    }
    let path = files.path().join("config.yaml");
    std::fs::write(&path, config.to_string()).unwrap();
    let server = HttpServer::start(&["--config", &path.display().to_string()]);
    wait_for_keys(&issuer);
    let token = |user: usize, scope: &str| {
        let claims = json!({"iss": issuer.name(), "aud": "gateway", "exp": now() + 300, "sub": format!("user{user}"), "client_id": "app", "scope": scope});
        key.token(&json!({"alg": "RS256", "kid": "k"}), &claims)
    };
    // Two tokens of each user, one of which has fewer scopes.
    let tokens: Vec<[String; 2]> = (0..USERS)
        .map(|user| [token(user, "read"), token(user, "read write")])
        .collect();
    let failed = Mutex::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (server, tokens, failed) = (&server, &tokens, &failed);
            scope.spawn(move || {
                for number in 0..CALLS {
                    let step = thread * 7919 + number * 104_729;
                    let user = step % USERS;
                    let tool = format!(
                        "a{}_{}",
                        step / USERS % 5,
                        if number % 2 == 0 { "me" } else { "all" }
                    );
                    let authorization =
                        format!("Authorization: Bearer {}", tokens[user][step / 3 % 2]);
                    let (status, answer) =
                        server.send("POST", &[&authorization], &call(&tool, "{}"));
                    assert_eq!(status, 200, "{answer}");
                    let result: Value =
                        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
                    if result["result"]["isError"] == false {
                        assert_eq!(
                            result["result"]["structuredContent"]["user"],
                            format!("user{user}"),
                            "{answer}"
                        );
                    } else {
                        assert!(answer.contains("token endpoint"), "{answer}");
                        *failed.lock().unwrap() += 1;
                    }
                }
            });
        }
    });
    let failed = *failed.lock().unwrap();
    assert!(failed < THREADS * CALLS / 4, "{failed} calls failed");
    for api in &upstreams {
        for request in api
            .received()
            .iter()
            .filter(|request| request.path() == "/token")
        {
            assert!(field(request, "scope").starts_with("read"), "{request:?}");
        }
    }
}

#[test]
fn commands_say_what_is_called_as_the_user_and_one_call_can_be_made_as_one() {
    let setup = Setup::start(
        &json!({"grant": "token-exchange", "operation_scopes": true}),
        Box::new(grant_all),
        &[],
    );
    let config = setup.files.path().join("config.yaml").display().to_string();
    let text = std::fs::read_to_string(&config).unwrap();
    let mut settings: Value = serde_json::from_str(&text).unwrap();
    settings["transport"] = "http".into();
    std::fs::write(&config, settings.to_string()).unwrap();
    let explained = run(&["tools", "--config", &config, "--explain"]);
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(
        explained.contains("called as the user · `accounts`, scopes asked for: read write"),
        "{explained}"
    );
    let checked = run(&["check", "--config", &config]);
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.contains("`accounts`, of 1 tool asks for the scopes `read`"),
        "{checked}"
    );
    assert!(
        checked.contains("`accounts`, of 1 tool asks for no scopes"),
        "{checked}"
    );
    assert!(
        checked
            .contains("operations that allow `accounts` are called as the user and in no other way: the credential for `key` is not sent"),
        "{checked}"
    );

    let called = |token: &str| {
        let mut command = command(&[
            "call",
            "--config",
            &config,
            "--as-token-env",
            "MY_TOKEN",
            "me",
        ]);
        command.env("MY_TOKEN", token).output().unwrap()
    };
    let output = called(&setup.user("alice"));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("\"alice\""),
        "{output:?}"
    );
    let stranger = Signer::rsa().token(
        &json!({"alg": "RS256", "kid": "k"}),
        &json!({"iss": setup.issuer.name(), "aud": "gateway", "exp": now() + 300, "sub": "alice"}),
    );
    let output = called(&stranger);
    assert!(
        !output.status.success()
            && stderr(&output).contains("--as-token-env: the signature of the token is wrong"),
        "{output:?}"
    );
    settings["oauth_read_scope"] = json!(["api:use"]);
    std::fs::write(&config, settings.to_string()).unwrap();
    let output = called(&setup.user("alice"));
    let says = "--as-token-env: the token lacks a scope that this needs: api:use";
    assert!(
        !output.status.success() && stderr(&output).contains(says),
        "{output:?}"
    );
    let without = run(&["call", "--config", &config, "me"]);
    assert!(
        !without.status.success()
            && String::from_utf8_lossy(&without.stdout).contains("is called as the user"),
        "{without:?}"
    );
}

#[test]
fn p45_a_user_whose_exchange_fails_locks_out_nobody_else() {
    let grants = |request: &Received| match user_of(request).as_str() {
        "evil" => (500, json!({})),
        _ => grant_all(request),
    };
    let setup = Setup::start(&json!({"grant": "token-exchange"}), Box::new(grants), &[]);
    let evil = setup.user("evil");
    for number in 0..20 {
        assert_eq!(setup.result(&evil, "me")["isError"], true);
        let result = setup.result(&setup.user(&format!("user{number}")), "me");
        assert_eq!(result["isError"], false, "{result}");
    }
}

#[test]
fn p41_the_log_shows_no_part_of_what_an_endpoint_was_sent() {
    let grants = |request: &Received| {
        let (token, basic) = (
            field(request, "subject_token"),
            request
                .header("authorization")
                .unwrap_or_default()
                .to_owned(),
        );
        let (_, signature) = token.rsplit_once('.').unwrap();
        let echo = format!(
            "bad: {basic}, {}, {signature}",
            token.get(..token.len() - 6).unwrap()
        );
        (
            400,
            json!({"error": "invalid_scope", "error_description": echo}),
        )
    };
    let setup = Setup::start(&json!({"grant": "token-exchange"}), Box::new(grants), &[]);
    let alice = setup.user("alice");
    for _ in 0..5 {
        setup.result(&alice, "me");
    }
    let log = setup.server.logged("error_description: bad");
    for part in alice
        .split('.')
        .chain([BASE64_STANDARD.encode("gateway:gateway-s3cret").as_str()])
    {
        assert!(!log.contains(part.get(..20).unwrap()), "{part}: {log}");
    }
    assert_eq!(log.matches("error_description").count(), 1, "{log}");
}

#[test]
fn two_users_of_an_operation_that_refuses_all_tokens_cost_one_exchange_more_each() {
    let old = |request: &Received| {
        (
            200,
            json!({"access_token": format!("old-{}", user_of(request)), "token_type": "Bearer", "expires_in": 300}),
        )
    };
    let setup = Setup::start(&json!({"grant": "token-exchange"}), Box::new(old), &[]);
    let tokens = [setup.user("alice"), setup.user("bob")];
    for token in tokens.iter().cycle().take(12) {
        let result = setup.result(token, "me");
        assert!(
            result["isError"] == true && result.to_string().contains("401"),
            "{result}"
        );
    }
    assert_eq!(setup.asked().len(), 4);
}

#[test]
fn a_token_that_has_ended_leaves_the_one_challenge_for_what_a_user_must_do() {
    let refuse = |_: &Received| {
        (
            400,
            json!({"error": "interaction_required", "claims": "{}"}),
        )
    };
    let setup = Setup::start(&json!({"grant": "token-exchange"}), Box::new(refuse), &[]);
    for _ in 0..2 {
        let (status, answer) = setup.call(&setup.token(&json!({"exp": now() - 5})), "me");
        assert!(
            status == 401 && answer.contains("the token has expired"),
            "{answer}"
        );
    }
    let (status, answer) = setup.call(&setup.user("alice"), "me");
    assert!(
        status == 401 && answer.contains("insufficient_claims"),
        "{answer}"
    );
    assert_eq!(setup.call(&setup.token(&json!({"jti": "3"})), "me").0, 200);
}
