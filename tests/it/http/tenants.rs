//! Tenants: a claim or a header of the client chooses the destination and the credentials of its
//! calls, only among those that the operator lists.

use serde_json::{Value, json};

use super::auth_oauth::{Issuer, Signer, now, wait_for_keys};
use crate::support::{
    HttpServer, SpecFile, Upstream, call_message, command, reply, run, stderr, stdout,
};

const KEYS: [(&str, &str); 2] = [
    ("ACME_KEY", "the-key-of-acme"),
    ("GLOBEX_KEY", "the-key-of-globex"),
];

fn document() -> SpecFile {
    let item = |id: &str| json!({"operationId": id, "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}]});
    SpecFile::new(
        &json!({
            "openapi": "3.1.0",
            "info": {"title": "T", "version": "1"},
            "servers": [{"url": "https://{tenant}.example", "variables": {"tenant": {"default": "www"}}}],
            "components": {"securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
                "login": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/token", "scopes": {}}}},
            }},
            "security": [{"key": []}],
            "paths": {
                "/things": {"get": item("list_things"), "delete": item("remove_things")},
                "/open": {"get": {"operationId": "open", "security": []}},
                "/own": {"get": {"operationId": "own_server", "security": [], "servers": [{"url": "https://elsewhere.example"}]}},
                "/token-things": {"get": {"operationId": "token_things", "security": [{"login": []}]}},
            },
        })
        .to_string(),
    )
}

/// The same key for the settings of two tenants, each with a key of its own.
fn entries(acme: &str, globex: &str) -> Value {
    json!({
        "acme": {"base_url": acme, "auth": {"key": {"env": "ACME_KEY"}}},
        "globex": {"base_url": globex, "auth": {"key": {"env": "GLOBEX_KEY"}}},
    })
}

/// A server whose tenants are named by the claim `tenant`.
struct Served {
    server: HttpServer,
    issuer: Issuer,
    signer: Signer,
}

impl Served {
    fn start(entries: &Value, more: &[&str], settings: &Value) -> Self {
        let signer = Signer::rsa();
        let issuer = Issuer::start(vec![signer.jwk("r")]);
        let spec = document();
        let mut config = json!({"oauth_issuer": issuer.name(), "tenants": {"claim": "tenant", "entries": entries}});
        config
            .as_object_mut()
            .unwrap()
            .extend(settings.as_object().cloned().unwrap_or_default());
        let config = SpecFile::new(&config.to_string());
        let server = HttpServer::start_with(
            &[
                &["--spec", spec.path(), "--config", config.path()][..],
                more,
            ]
            .concat(),
            &KEYS,
        );
        wait_for_keys(&issuer);
        Self {
            server,
            issuer,
            signer,
        }
    }

    /// The header of a token with this claim; without it for null.
    fn token(&self, tenant: &Value) -> String {
        let mut claims = json!({"iss": self.issuer.name(), "aud": self.server.url(), "exp": now() + 300, "sub": "alice"});
        if !tenant.is_null() {
            claims["tenant"] = tenant.clone();
        }
        format!(
            "Authorization: Bearer {}",
            self.signer
                .token(&json!({"alg": "RS256", "kid": "r"}), &claims)
        )
    }

    fn call(&self, tenant: &Value, tool: &str, arguments: &str) -> String {
        self.server
            .post(&[&self.token(tenant)], &call_message(tool, arguments))
            .1
    }
}

#[test]
fn p67_a_verified_claim_chooses_the_base_url_and_the_credentials_of_its_tenant_alone() {
    let echo = || {
        Upstream::start(Box::new(|request| {
            let body = json!({"line": request.line, "key": request.header("x-key"), "all": ["the-key-of-acme", "the-key-of-globex"]});
            reply(
                200,
                &["Content-Type: application/json"],
                body.to_string().as_bytes(),
            )
        }))
    };
    let (acme, globex) = (echo(), echo());
    let served = Served::start(
        &entries(&format!("{}/v1", acme.url), &format!("{}/v2/", globex.url)),
        &[],
        &json!({}),
    );
    for _ in 0..20 {
        for (tenant, upstream, path, key) in [
            ("acme", &acme, "/v1", "the-key-of-acme"),
            ("globex", &globex, "/v2", "the-key-of-globex"),
        ] {
            let answer = served.call(&tenant.into(), "list_things", r#"{"q":"1"}"#);
            let received = upstream.take_one();
            assert_eq!(
                received.line,
                format!("GET {path}/things?q=1 HTTP/1.1"),
                "{answer}"
            );
            assert_eq!(received.header("x-key"), Some(key));
            assert!(
                received.header("authorization").is_none(),
                "the token ends here: {received:?}"
            );
            assert!(
                !answer.contains("the-key-of"),
                "neither secret comes back to anybody: {answer}"
            );
        }
    }
    // Nothing else is a tenant, whatever else the client says.
    let nothing = [
        json!(null),
        json!(""),
        json!("ACME"),
        json!("acme "),
        json!("acme/../globex"),
        json!("initech"),
        json!(["acme"]),
        json!({"acme": true}),
        json!(true),
        json!(1),
    ];
    for claim in nothing {
        let token = served.token(&claim);
        let headers = [token.as_str(), "tenant: acme", "X-Tenant: acme"];
        let (_, answer) = served
            .server
            .post(&headers, &call_message("list_things", "{}"));
        assert!(
            answer.contains("nothing was sent") && answer.contains("tenant"),
            "{claim}: {answer}"
        );
        assert!(
            !answer.contains("initech") && !answer.contains("127.0.0.1"),
            "{claim}: {answer}"
        );
    }
    // No argument chooses another one.
    for arguments in [
        r#"{"tenant":"globex"}"#,
        r#"{"base_url":"http://127.0.0.1:9"}"#,
        r#"{"headers":{"X-Key":"x"}}"#,
    ] {
        served.call(&"acme".into(), "list_things", arguments);
    }
    assert!(
        acme.take_all()
            .iter()
            .all(|request| request.header("x-key") == Some("the-key-of-acme"))
    );
    assert_eq!(globex.take_all().len(), 0);
    let log = served.server.logs();
    assert!(
        !log.contains("initech") && !log.contains("the-key-of"),
        "{log}"
    );
}

#[test]
fn p67_a_header_picks_a_tenant_only_where_at_most_one_has_credentials() {
    let (acme, globex) = (Upstream::echo(), Upstream::echo());
    let spec = document();
    let entries = json!({
        "acme": {"base_url": acme.url, "auth": {"key": {"env": "ACME_KEY"}}},
        "globex": {"base_url": globex.url},
    });
    let config =
        SpecFile::new(&json!({"tenants": {"header": "X-Tenant", "entries": entries}}).to_string());
    let server = HttpServer::start_with(&["--spec", spec.path(), "--config", config.path()], &KEYS);
    let (list, open) = (
        call_message("list_things", "{}"),
        call_message("open", "{}"),
    );
    server.post(&["X-Tenant: acme"], &list);
    assert_eq!(acme.take_one().header("x-key"), Some("the-key-of-acme"));
    let (_, answer) = server.post(&["X-Tenant: globex"], &open);
    assert_eq!(globex.take_one().header("x-key"), None, "{answer}");
    // The servers of an operation do not count either.
    let (_, answer) = server.post(&["X-Tenant: globex"], &call_message("own_server", "{}"));
    assert_eq!(globex.take_one().line, "GET /own HTTP/1.1", "{answer}");
    let (_, answer) = server.post(&["X-Tenant: globex"], &list);
    assert!(
        answer.contains("needs a credential") && answer.contains("of its tenant"),
        "the credential of another tenant is not this one's: {answer}"
    );
    for headers in [
        &[][..],
        &["X-Tenant: "],
        &["X-Tenant: Acme"],
        &["X-Tenant: acme, globex"],
        &["X-Tenant: acme", "X-Tenant: globex"],
        &["X-Tenant: acme", "X-Tenant: acme"],
        &["X-Tenant: acme", "Connection: x-tenant"],
        &["X-Tenant: acm\u{e9}"],
        &["X-Tenant-Id: acme"],
    ] {
        for message in [&open, &list] {
            let (_, answer) = server.post(headers, message);
            assert!(
                answer.contains("nothing was sent") && answer.contains("`x-tenant`"),
                "{headers:?}: {answer}"
            );
        }
    }
    assert_eq!((acme.take_all().len(), globex.take_all().len()), (0, 0));
    let log = server
        .logged("the tenant `globex`: 2 operations cannot be called: set `auth.key` of its tenant");
    assert!(!log.contains("the-key-of"), "{log}");
}

#[test]
fn p67_two_tenants_of_one_origin_share_no_limits() {
    let shared = Upstream::start(Box::new(|request| match request.header("x-key") {
        Some("the-key-of-acme") if request.line.starts_with("GET /v1/things?q=fail") => {
            reply(503, &[], b"")
        }
        key => {
            let body = json!({"of": key.unwrap_or_default().replace("the-key-of-", "")});
            reply(
                200,
                &["Content-Type: application/json"],
                body.to_string().as_bytes(),
            )
        }
    }));
    let base = format!("{}/v1", shared.url);
    let settings = json!({"breaker_failures": 1, "retries": 0});
    let served = Served::start(&entries(&base, &base), &[], &settings);
    for tenant in ["acme", "globex"] {
        let answer = served.call(&tenant.into(), "list_things", r#"{"q":"new"}"#);
        let other = if tenant == "acme" { "globex" } else { "acme" };
        assert!(
            answer.contains(tenant) && !answer.contains(other),
            "{tenant}: {answer}"
        );
    }
    served.call(&"acme".into(), "list_things", r#"{"q":"fail"}"#);
    let refused = served.call(&"acme".into(), "list_things", r#"{"q":"new"}"#);
    assert!(refused.contains("is left alone"), "{refused}");
    let fine = served.call(&"globex".into(), "list_things", r#"{"q":"new"}"#);
    assert!(
        fine.contains("globex"),
        "the breaker of another tenant is closed: {fine}"
    );
}

#[test]
fn p67_each_tenant_has_access_tokens_of_its_own() {
    // One origin is API and token endpoint of both; a token says for whom it was made.
    let upstream = Upstream::start(Box::new(|request| {
        let body = if request.path() == "/token" {
            let client = if request.header("authorization")
                == Some("Basic YWNtZS1hcHA6c2VjcmV0LW9mLWFjbWU=")
            {
                "acme"
            } else {
                "globex"
            };
            json!({"access_token": format!("token-of-{client}-app"), "token_type": "Bearer", "expires_in": 3600})
        } else {
            json!({"echo": request.header("authorization")})
        };
        reply(
            200,
            &["Content-Type: application/json"],
            body.to_string().as_bytes(),
        )
    }));
    let login = |id: &str, secret: &str| {
        json!({"base_url": upstream.url, "auth": {"login": {
            "client_id": {"env": id}, "client_secret": {"env": secret}, "token_url": format!("{}/token", upstream.url)}}})
    };
    let spec = document();
    let signer = Signer::rsa();
    let issuer = Issuer::start(vec![signer.jwk("r")]);
    let config = SpecFile::new(
        &json!({"oauth_issuer": issuer.name(), "tenants": {"claim": "tenant", "entries": {
            "acme": login("ACME_ID", "ACME_SECRET"), "globex": login("GLOBEX_ID", "GLOBEX_SECRET")}}})
        .to_string(),
    );
    let variables = [
        ("ACME_ID", "acme-app"),
        ("ACME_SECRET", "secret-of-acme"),
        ("GLOBEX_ID", "globex-app"),
        ("GLOBEX_SECRET", "secret-of-globex"),
    ];
    let server = HttpServer::start_with(
        &["--spec", spec.path(), "--config", config.path()],
        &variables,
    );
    wait_for_keys(&issuer);
    let served = Served {
        server,
        issuer,
        signer,
    };
    for tenant in ["acme", "globex", "acme", "globex"] {
        let answer = served.call(&tenant.into(), "token_things", "{}");
        let calls = upstream.take_all();
        let call = calls
            .iter()
            .find(|request| request.path() == "/token-things")
            .expect("a call");
        assert_eq!(
            call.header("authorization"),
            Some(&*format!("Bearer token-of-{tenant}-app"))
        );
        assert!(!answer.contains("token-of"), "{answer}");
    }
}

/// An answer counts for the tenant that was asked about, also where another one has the same base
/// URL.
#[test]
fn p67_a_confirmation_of_one_tenant_is_none_of_another() {
    let upstream = Upstream::echo();
    let spec = document();
    let entries = json!({
        "acme": {"base_url": upstream.url, "auth": {"key": {"env": "ACME_KEY"}}},
        "globex": {"base_url": upstream.url},
    });
    let config = json!({"allow_missing_credentials": true, "confirm": "destructive", "tenants": {"header": "X-Tenant", "entries": entries}});
    let config = SpecFile::new(&config.to_string());
    let server = HttpServer::start_with(&["--spec", spec.path(), "--config", config.path()], &KEYS);
    let post = |tenant: &str, state: Option<&Value>| -> Value {
        let mut parameters = json!({"arguments": {}});
        if let Some(state) = state {
            parameters["requestState"] = state.clone();
            parameters["inputResponses"] = json!({"confirm": {"action": "accept", "content": {}}});
        }
        let header = format!("X-Tenant: {tenant}");
        server.call_stateless_as(
            &[&header],
            "remove_things",
            parameters,
            &json!({"elicitation": {}}),
        )["result"]
            .clone()
    };
    let asked = post("globex", None);
    assert!(asked.to_string().contains(": DELETE /things?"), "{asked}");
    let again = post("acme", Some(&asked["requestState"]));
    assert!(again.to_string().contains(": DELETE /things?"), "{again}");
    let stranger = post("initech", None);
    assert!(
        stranger.to_string().contains("nothing was sent"),
        "nobody is asked in vain: {stranger}"
    );
    assert!(upstream.received().is_empty());
    assert_eq!(post("acme", Some(&again["requestState"]))["isError"], false);
    assert_eq!(upstream.take_one().header("x-key"), Some("the-key-of-acme"));
}

#[test]
fn p67_settings_of_tenants_that_could_mix_them_up_end_the_start() {
    let spec = document();
    let two = entries("http://127.0.0.1:9/a", "http://127.0.0.1:9/b");
    let one = json!({"acme": {"base_url": "http://127.0.0.1:9/a"}});
    let http = json!({"transport": "http", "bind": "127.0.0.1:0"});
    let by_header =
        |entries: &Value| json!({"tenants": {"header": "X-Tenant", "entries": entries}});
    for (settings, more, expected) in [
        (by_header(&one), json!({}), "there is only over HTTP"),
        (
            json!({"tenants": {"claim": "t", "entries": one}}),
            json!({}),
            "there is only over HTTP",
        ),
        (
            json!({"tenants": {"claim": "t", "entries": one}}),
            http.clone(),
            "--oauth-issuer",
        ),
        (
            by_header(&two),
            http.clone(),
            "a header only says which one",
        ),
        (
            json!({"tenants": {"entries": one}}),
            http.clone(),
            "does not say what tells the tenant",
        ),
        (
            json!({"tenants": {"claim": "t", "header": "X-T", "entries": one}}),
            http.clone(),
            "both `claim` and `header`",
        ),
        (
            json!({"tenants": {"header": "X-T"}}),
            http.clone(),
            "has no entry",
        ),
        (
            json!({"tenants": {"header": "Authorization", "entries": one}}),
            http.clone(),
            "is not forwarded",
        ),
        (
            json!({"tenants": {"header": "Cookie", "entries": one}}),
            http.clone(),
            "is not forwarded",
        ),
        (
            by_header(&json!({"a": {}})),
            http.clone(),
            "tenants.entries.a.base_url` is not a URL",
        ),
        (
            by_header(&json!({"a": {"base_url": "https://u:hunter2@h.example"}})),
            http.clone(),
            "tenants.entries.a.base_url",
        ),
        (
            by_header(&json!({"a": {"base_url": "file:///etc"}})),
            http.clone(),
            "tenants.entries.a.base_url",
        ),
        (
            by_header(&json!({" a": {"base_url": "http://h.example"}})),
            http.clone(),
            "white space",
        ),
        (
            by_header(&json!({"a": {"base_url": "http://{tenant}.example"}})),
            http.clone(),
            "holds braces",
        ),
        (
            by_header(&json!({"a": {"base_url": "http://h.example", "headers": {}}})),
            http.clone(),
            "entries.a.headers",
        ),
        (
            by_header(&json!({"a": {"base_url": "http://h.example", "auth": {"key": "hunter2"}}})),
            http.clone(),
            "tenants.entries.a.auth.key",
        ),
        (
            by_header(
                &json!({"a": {"base_url": "http://h.example", "auth": {"key": {"env": "NOT_SET"}}}}),
            ),
            http.clone(),
            "NOT_SET",
        ),
        (
            by_header(&one),
            json!({"base_url": "http://h.example"}),
            "--base-url",
        ),
        (
            by_header(&one),
            json!({"server_var": ["tenant=x"]}),
            "--server-var",
        ),
        (
            by_header(&one),
            json!({"auth": {"key": {"env": "ACME_KEY"}}}),
            "`auth`",
        ),
        (
            by_header(&one),
            json!({"header": ["Authorization: Bearer hunter2"]}),
            "`authorization` is a credential",
        ),
        (
            by_header(&one),
            json!({"header_env": ["X-Any=ACME_KEY"]}),
            "`x-any` is a credential",
        ),
        (json!({"tenants": []}), http.clone(), "`tenants`"),
        (
            json!({"tenants": {"by": "claim"}}),
            http.clone(),
            "tenants.by",
        ),
    ] {
        let mut config = settings.clone();
        config
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        assert_refused(&spec, &config, expected);
    }
}

/// The start ends with that problem, and shows no secret.
fn assert_refused(spec: &SpecFile, config: &Value, expected: &str) {
    let file = SpecFile::new(&config.to_string());
    let output = command(&["serve", "--spec", spec.path(), "--config", file.path()])
        .envs(KEYS)
        .output()
        .unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{config}: {text}");
    assert!(text.contains(expected), "{config}: {text}");
    assert!(
        !text.contains("hunter2") && !text.contains("the-key-of"),
        "{text}"
    );
}

#[test]
fn commands_know_the_tenants_of_an_api() {
    let (acme, globex) = (Upstream::echo(), Upstream::echo());
    let spec = document();
    let entries = json!({
        "acme": {"base_url": format!("{}/v1", acme.url), "auth": {"key": {"env": "ACME_KEY"}}},
        "globex": {"base_url": globex.url},
    });
    let config = SpecFile::new(
        &json!({"spec": spec.path(), "tenants": {"claim": "tenant", "entries": entries}})
            .to_string(),
    );
    let with = |args: &[&str]| {
        command(&[args, &["--config", config.path()]].concat())
            .envs(KEYS)
            .output()
            .unwrap()
    };
    let without = with(&["call", "list_things", "--dry-run"]);
    assert_eq!(without.status.code(), Some(2));
    assert!(
        stderr(&without).contains("choose one with --tenant VALUE: acme, globex"),
        "{}",
        stderr(&without)
    );
    let other = with(&["call", "list_things", "--tenant", "acne"]);
    assert!(
        stderr(&other).contains("did you mean `acme`?"),
        "{}",
        stderr(&other)
    );
    let shown = stdout(&with(&[
        "call",
        "list_things",
        "--tenant",
        "acme",
        "--dry-run",
        "q=1",
    ]));
    assert!(
        shown.starts_with(&format!(
            "GET /v1/things?q=1 HTTP/1.1\nhost: {}\n",
            acme.host()
        )),
        "{shown}"
    );
    assert!(shown.contains("x-key: ***"), "{shown}");
    let lacking = with(&["call", "list_things", "--tenant", "globex", "--dry-run"]);
    assert!(
        stderr(&lacking).contains("would not be sent"),
        "{}",
        stderr(&lacking)
    );
    with(&["call", "list_things", "--tenant", "acme"]);
    assert_eq!(acme.take_one().header("x-key"), Some("the-key-of-acme"));
    assert!(globex.received().is_empty());
    let lines = [
        "whose name comes from the claim `tenant` of the client's token".to_owned(),
        format!("acme -> {}/v1, with `key`", acme.url),
        format!("globex -> {}/, without credentials", globex.url),
    ];
    for output in [with(&["tools", "--explain"]), with(&["check"])] {
        let text = stdout(&output);
        for line in &lines {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
    let text = stdout(&with(&["check"]));
    assert!(
        text.contains("`auth.key` of its tenant in the configuration file"),
        "{text}"
    );
    let plain = run(&[
        "call",
        "--spec",
        spec.path(),
        "--tenant",
        "acme",
        "--mock",
        "open",
    ]);
    assert!(stderr(&plain).contains("--tenant"), "{}", stderr(&plain));
}
