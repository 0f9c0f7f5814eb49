//! The operator's credentials reach the operations that ask for them, and nothing and nobody else.

use serde_json::{Value, json};

use crate::support::{HttpServer, Received, Session, SpecFile, Upstream, command, reply, run, stderr, stdout};

/// A document with these schemes, and one operation, `call`, with that `security`.
pub fn document(schemes: &Value, security: &Value) -> SpecFile {
    SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "components": {"securitySchemes": schemes},
            "paths": {"/a": {"get": {"operationId": "call", "security": security}}}})
        .to_string(),
    )
}

/// A session with variables in its environment.
pub fn session(args: &[&str], variables: &[(&str, &str)]) -> Session {
    Session::start_with(args, variables)
}

pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Everything of a request that a credential could be in.
pub fn carried(request: &Received) -> Vec<String> {
    let names = ["authorization", "cookie", "x-key"];
    let headers = names.iter().filter_map(|name| Some(format!("{name}: {}", request.header(name)?)));
    let query = request.line.split(' ').nth(1).and_then(|target| target.split_once('?'));
    headers.chain(query.map(|(_, query)| format!("?{query}"))).collect()
}

#[test]
fn every_kind_of_scheme_is_sent_where_it_belongs() {
    let key = |place: &str, name: &str| json!({"type": "apiKey", "in": place, "name": name});
    for (scheme, variables, expected) in [
        (key("header", "X-Key"), &[("", "s3cret key")][..], "x-key: s3cret key"),
        (
            key("header", "Authorization"),
            &[("", "Token s3cret")],
            "authorization: Token s3cret",
        ),
        (key("query", "api key"), &[("", "a&b=c")], "?api%20key=a%26b%3Dc"),
        (key("cookie", "sid"), &[("", "s3cret")], "cookie: sid=s3cret"),
        (key("cookie", "sid"), &[("", "a; b")], "cookie: sid=a%3B%20b"),
        (
            json!({"type": "http", "scheme": "Basic"}),
            &[("", "ann:p:w")],
            "authorization: Basic YW5uOnA6dw==",
        ),
        (
            json!({"type": "http", "scheme": "basic"}),
            &[("_USERNAME", "ann"), ("_PASSWORD", "p:w")],
            "authorization: Basic YW5uOnA6dw==",
        ),
        (
            json!({"type": "http", "scheme": "bearer"}),
            &[("", "t0ken")],
            "authorization: Bearer t0ken",
        ),
        (
            json!({"type": "http", "scheme": "Bearer"}),
            &[("", "bearer t0ken")],
            "authorization: Bearer t0ken",
        ),
        (
            json!({"type": "http", "scheme": "GenieKey"}),
            &[("", "k")],
            "authorization: GenieKey k",
        ),
        (
            json!({"type": "oauth2", "flows": {}}),
            &[("", "ready")],
            "authorization: Bearer ready",
        ),
        (
            json!({"type": "openIdConnect", "openIdConnectUrl": "http://127.0.0.1:1/"}),
            &[("", "ready")],
            "authorization: Bearer ready",
        ),
    ] {
        let upstream = Upstream::echo();
        let spec = document(&json!({"myScheme-1": scheme}), &json!([{"myScheme-1": []}]));
        let names: Vec<(String, &str)> = variables
            .iter()
            .map(|(part, value)| (format!("OPENAPI_MCP_AUTH_MY_SCHEME_1{part}"), *value))
            .collect();
        let variables: Vec<(&str, &str)> = names.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let mut session = session(&["serve", "--spec", spec.path(), "--base-url", &upstream.url], &variables);
        let result = session.call("call", &json!({}));
        assert_eq!(result["isError"], false, "{scheme} {result}");
        assert_eq!(carried(&upstream.take_one()), [expected], "{scheme}");
    }
}

#[test]
fn the_variable_of_a_scheme_is_its_name_in_capitals() {
    for (scheme, variable) in [
        ("petKey", "PET_KEY"),
        ("petKey", "PETKEY"),
        ("OAuth2", "OAUTH2"),
        ("X-API-Key", "X_API_KEY"),
        ("api_key", "API_KEY"),
        ("a b.c", "A_B_C"),
    ] {
        let upstream = Upstream::echo();
        let spec = document(
            &json!({scheme: {"type": "apiKey", "in": "header", "name": "X-Key"}}),
            &json!([{scheme: []}]),
        );
        let name = format!("OPENAPI_MCP_AUTH_{variable}");
        let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
        session(&args, &[(&name, "k")]).call("call", &json!({}));
        assert_eq!(carried(&upstream.take_one()), ["x-key: k"], "{scheme} {variable}");
    }
}

/// `OPENAPI_MCP_AUTH_TOKEN_FILE` says who may call us, and must not become what a document's scheme of that name is sent.
#[test]
fn a_setting_that_is_called_like_a_credential_is_none() {
    for (scheme, variable) in [
        ("token-file", "OPENAPI_MCP_AUTH_TOKEN_FILE"),
        ("token_env", "OPENAPI_MCP_AUTH_TOKEN_ENV"),
    ] {
        let upstream = Upstream::echo();
        let spec = document(
            &json!({scheme: {"type": "apiKey", "in": "header", "name": "X-Key"}}),
            &json!([{scheme: []}]),
        );
        let mut command = command(&["call", "--spec", spec.path(), "--base-url", &upstream.url, "call"]);
        let output = command.env(variable, "/run/tokens").output().unwrap();
        assert!(
            !output.status.success() && upstream.received().is_empty(),
            "{scheme}: {}",
            stderr(&output)
        );
    }
}

/// A document may call a scheme as it likes: `petsClientSecret` is not what makes the client secret of `pets` a key.
#[test]
fn a_part_of_one_schemes_credential_is_never_anothers_value() {
    let upstream = Upstream::echo();
    let schemes = json!({
        "pets": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "http://127.0.0.1:1/token", "scopes": {}}}},
        "petsClientSecret": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "petsRefreshToken": {"type": "http", "scheme": "bearer"},
        "login": {"type": "http", "scheme": "basic"},
        "loginPassword": {"type": "apiKey", "in": "query", "name": "p"},
        // Nobody's part.
        "otherClientId": {"type": "apiKey", "in": "header", "name": "X-Key"},
    });
    let variables = [
        ("OPENAPI_MCP_AUTH_PETS_CLIENT_ID", "client"),
        ("OPENAPI_MCP_AUTH_PETS_CLIENT_SECRET", "s3cret-of-client"),
        ("OPENAPI_MCP_AUTH_PETS_REFRESH_TOKEN", "s3cret-to-refresh"),
        ("OPENAPI_MCP_AUTH_LOGIN_USERNAME", "ann"),
        ("OPENAPI_MCP_AUTH_LOGIN_PASSWORD", "s3cret-of-ann"),
        ("OPENAPI_MCP_AUTH_OTHER_CLIENT_ID", "key-of-other"),
    ];
    for name in ["petsClientSecret", "petsRefreshToken", "loginPassword"] {
        let spec = document(&schemes, &json!([{name: []}]));
        let mut session = session(&["serve", "--spec", spec.path(), "--base-url", &upstream.url], &variables);
        let result = session.call("call", &json!({}));
        assert!(result["isError"] == true && upstream.received().is_empty(), "{name}: {result}");
        let logs = session.end();
        assert!(logs.contains("configuration file") && !logs.contains("s3cret"), "{name}: {logs}");
    }
    let spec = document(&schemes, &json!([{"otherClientId": []}]));
    let mut session = session(&["serve", "--spec", spec.path(), "--base-url", &upstream.url], &variables);
    assert_eq!(session.call("call", &json!({}))["isError"], false);
    assert_eq!(carried(&upstream.take_one()), ["x-key: key-of-other"]);
}

/// What is given and what is sent may differ: a word before a token, blanks around a key, an encoding.
#[test]
fn p41_a_credential_that_comes_back_as_it_was_sent_is_taken_out() {
    let key = |name: &str| json!({(name): {"type": "apiKey", "in": "header", "name": "X-Key"}});
    let bearer = json!({"t": {"type": "http", "scheme": "bearer"}});
    for (schemes, header, variable, value, echo) in [
        (bearer.clone(), false, "OPENAPI_MCP_AUTH_T", "Bearer s3cr3t-value", "s3cr3t-value"),
        (bearer, false, "OPENAPI_MCP_AUTH_T", "bearer  s3cr3t-value", "Bearer s3cr3t-value"),
        (
            key("k"),
            false,
            "OPENAPI_MCP_AUTH_K",
            " s3cr3t-value-of-key ",
            "s3cr3t-value-of-key",
        ),
        (
            key("xIbmClientId"),
            false,
            "OPENAPI_MCP_AUTH_X_IBM_CLIENT_ID",
            "s3cr3t-key",
            "s3cr3t-key",
        ),
        (key("k"), false, "OPENAPI_MCP_AUTH_K", "s3cr3t-ü", "s3cr3t-\u{c3}\u{bc}"),
        (json!({}), true, "X-K=HELD", "ab3de7x", "ab3de7x"),
        (json!({}), true, "X-K=HELD", "pass wd4 s3cr", "pass wd4 s3cr"),
        (
            json!({}),
            true,
            "Authorization=HELD",
            "Basic dXNlcjpodW50ZXIyaHVudGVyMg==",
            "hunter2hunter2",
        ),
        (json!({}), true, "Authorization=HELD", "Token ab3de7x", "ab3de7x"),
        (json!({}), true, "Cookie=HELD", "sid=s3cr3t; theme=dark", "s3cr3t"),
    ] {
        let said = echo.to_owned();
        let upstream = Upstream::start(Box::new(move |_| {
            reply(
                200,
                &["Content-Type: application/json"],
                json!({"echo": format!("<{said}>")}).to_string().as_bytes(),
            )
        }));
        let security: Vec<Value> = schemes.as_object().unwrap().keys().map(|name| json!({name: []})).collect();
        let spec = document(&schemes, &security.into());
        let mut args = vec!["serve", "--spec", spec.path(), "--base-url", &upstream.url];
        if header {
            args.extend(["--header-env", variable]);
        }
        let mut session = session(&args, &[(if header { "HELD" } else { variable }, value)]);
        let echoed = session.call("call", &json!({}))["structuredContent"]["echo"].to_string();
        assert!(
            echoed.contains("[redacted]") && !echoed.contains(echo),
            "{variable} {value:?}: {echoed}"
        );
    }
}

#[test]
fn what_belongs_to_the_clients_connection_or_to_a_digest_is_not_forwarded() {
    let upstream = Upstream::echo();
    let digest = document(&json!({"d": {"type": "http", "scheme": "digest"}}), &json!([{"d": []}]));
    let args = [
        "--spec",
        digest.path(),
        "--base-url",
        &upstream.url,
        "--forward-header=X-T",
        "--forward-authorization",
    ];
    let server = HttpServer::start_with(&args, &[("OPENAPI_MCP_AUTH_D", "ann:pass-word")]);
    let sent = [
        "MCP-Protocol-Version: 2025-11-25",
        "Authorization: Bearer of-the-client",
        "X-T: hop",
        "Connection: close, x-t",
    ];
    let (line, _) = server.post(&sent, CALL);
    let received = upstream.take_one();
    assert!(
        line.contains(" 200 ") && received.header("authorization").is_none() && received.header("x-t").is_none(),
        "{received:?}"
    );
    for name in ["Http2-Settings", "Set-Cookie"] {
        let refused = run(&["serve", "--spec", digest.path(), "--transport", "http", "--forward-header", name]);
        assert!(
            refused.status.code() == Some(2) && stderr(&refused).contains("stays here"),
            "{}",
            stderr(&refused)
        );
    }
}

#[test]
fn security_is_an_or_of_ands_of_the_operation_over_the_document() {
    let upstream = Upstream::echo();
    let operation = |id: &str, security: Value| json!({"get": {"operationId": id, "security": security}});
    let spec = SpecFile::new(
        &json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "security": [{"a": []}],
            "components": {"securitySchemes": {
                "a": {"type": "apiKey", "in": "header", "name": "X-Key"}, "b": {"type": "apiKey", "in": "query", "name": "b"},
                "none": {"type": "http", "scheme": "bearer"}, "other": {"type": "apiKey", "in": "cookie", "name": "c"}}},
            "paths": {
                "/root": {"get": {"operationId": "root"}}, "/nothing": operation("nothing", json!([])), "/empty": operation("empty", json!([{}])),
                "/both": operation("both", json!([{"a": [], "b": []}])), "/second": operation("second", json!([{"a": [], "none": []}, {"b": []}])),
                "/first": operation("first", json!([{"b": []}, {"a": []}])), "/optional": operation("optional", json!([{}, {"none": []}])),
                "/wanted": operation("wanted", json!([{}, {"a": []}])), "/missing": operation("missing", json!([{"a": [], "none": []}, {"other": []}])),
                "/unknown": operation("unknown", json!([{"nobody": []}]))}})
        .to_string(),
    );
    let mut session = session(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &[("OPENAPI_MCP_AUTH_A", "aaa"), ("OPENAPI_MCP_AUTH_B", "bbb")],
    );
    for (tool, expected) in [
        ("root", &["x-key: aaa"][..]),
        ("nothing", &[]),
        ("empty", &[]),
        ("both", &["x-key: aaa", "?b=bbb"]),
        ("second", &["?b=bbb"]),
        ("first", &["?b=bbb"]),
        ("optional", &[]),
        ("wanted", &["x-key: aaa"]),
    ] {
        assert_eq!(session.call(tool, &json!({}))["isError"], false, "{tool}");
        assert_eq!(carried(&upstream.take_one()), expected, "{tool}");
    }
    for (tool, expected) in [
        (
            "missing",
            "OPENAPI_MCP_AUTH_NONE for the security scheme `none`, or OPENAPI_MCP_AUTH_OTHER for the security scheme `other`",
        ),
        ("unknown", "`nobody`"),
    ] {
        let result = session.call(tool, &json!({}));
        assert!(result["isError"] == true && text(&result).contains(expected), "{tool}: {result}");
    }
    assert!(upstream.received().is_empty(), "a call without its credential is not sent");
}

#[test]
fn what_is_missing_is_told_once_at_start() {
    let spec = SpecFile::new(
        &json!({"swagger": "2.0", "info": {"title": "T", "version": "1"}, "host": "127.0.0.1:1", "schemes": ["http"], "security": [{"petKey": []}],
            "securityDefinitions": {"petKey": {"type": "apiKey", "in": "query", "name": "key"}, "login": {"type": "basic"}},
            "paths": {"/a": {"get": {"operationId": "a"}, "post": {"operationId": "b"}}, "/c": {"get": {"operationId": "c", "security": [{"login": ["x"]}, {"login": ["y"]}]}}}})
        .to_string(),
    );
    let mut session = session(
        &["serve", "--spec", spec.path()],
        &[("OPENAPI_MCP_AUTH_PETSKEY", "s3cret"), ("OPENAPI_MCP_AUTH_LOGIN", "no-colon-here")],
    );
    let logs = session.end();
    for expected in [
        "2 operations cannot be called: set OPENAPI_MCP_AUTH_PET_KEY for the security scheme `petKey`\n",
        "1 operation cannot be called: set OPENAPI_MCP_AUTH_LOGIN (as `user:password`) for the security scheme `login`, because its value has no colon\n",
        "OPENAPI_MCP_AUTH_PETSKEY belongs to no security scheme of the document; it has `login`, `petKey`\n",
    ] {
        assert_eq!(logs.matches(expected).count(), 1, "{expected}: {logs}");
    }
    assert!(!logs.contains("s3cret") && !logs.contains("no-colon-here"), "{logs}");
}

#[test]
fn values_come_from_the_file_by_reference_and_never_as_they_are() {
    let upstream = Upstream::echo();
    let schemes = json!({"key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "login": {"type": "http", "scheme": "basic"}});
    let spec = document(&schemes, &json!([{"key": [], "login": []}]));
    let folder = tempfile::tempdir().unwrap();
    let (secret, config) = (folder.path().join("secret"), folder.path().join("config.yaml"));
    std::fs::write(&secret, "from-file\n").unwrap();
    let path = config.display().to_string();
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url, "--config", &path];
    std::fs::write(
        &config,
        format!(
            "auth:\n  key: {{ file: {} }}\n  login: {{ username: {{ env: NAME_OF_USER }}, password: {{ env: PASSWORD_OF_USER }} }}\n",
            secret.display()
        ),
    )
    .unwrap();
    let mut session = session(&args, &[("NAME_OF_USER", "ann"), ("PASSWORD_OF_USER", "pass")]);
    session.call("call", &json!({}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Basic YW5uOnBhc3M=", "x-key: from-file"]
    );

    // What the file names lies where the file does.
    std::fs::write(&config, "auth: { key: { file: secret }, login: { file: secret } }").unwrap();
    std::fs::write(&secret, "a:b").unwrap();
    self::session(&args, &[]).call("call", &json!({}));
    assert_eq!(carried(&upstream.take_one()), ["authorization: Basic YTpi", "x-key: a:b"]);

    std::fs::write(&config, "auth: { key: hunter2 }").unwrap();
    let output = run(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`{ env: VARIABLE }`") && !stderr(&output).contains("hunter2"));

    std::fs::write(
        &config,
        "auth: { key: { env: NOT_SET_ANYWHERE }, login: { file: /no/such/file }, both: { env: A, file: b } }",
    )
    .unwrap();
    let output = command(&args).env("OPENAPI_MCP_AUTH_KEY", "\n").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    for expected in [
        "`NOT_SET_ANYWHERE`",
        "/no/such/file",
        "both `env` and `file`",
        "OPENAPI_MCP_AUTH_KEY is empty",
    ] {
        assert!(stderr(&output).contains(expected), "{expected}: {}", stderr(&output));
    }
}

#[test]
fn a_parameter_that_a_scheme_sets_is_no_argument() {
    let upstream = Upstream::echo();
    let schemes = json!({
        "header": {"type": "apiKey", "in": "header", "name": "X-Key"}, "query": {"type": "apiKey", "in": "query", "name": "key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"}});
    let parameter = |place: &str, name: &str| json!({"name": name, "in": place, "required": true, "schema": {"type": "string"}});
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "components": {"securitySchemes": schemes}, "security": [{"header": [], "query": [], "cookie": []}],
            "paths": {"/a": {"get": {"operationId": "a", "parameters": [
                parameter("header", "x-key"), parameter("query", "key"), parameter("cookie", "sid"), parameter("cookie", "lang"),
                {"name": "filter", "in": "query", "schema": {"type": "object"}}, {"name": "crumbs", "in": "cookie", "schema": {"type": "object"}}]}}}})
        .to_string(),
    );
    let variables = [
        ("OPENAPI_MCP_AUTH_HEADER", "hhh"),
        ("OPENAPI_MCP_AUTH_QUERY", "qqq"),
        ("OPENAPI_MCP_AUTH_COOKIE", "ccc"),
    ];
    let mut session = session(&["serve", "--spec", spec.path(), "--base-url", &upstream.url], &variables);
    let schema = session.tools()[0]["inputSchema"].clone();
    let names: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        (names, &schema["required"]),
        (vec!["lang", "filter", "crumbs"], &json!(["lang"])),
        "{schema}"
    );
    for arguments in [
        json!({"lang": "en", "x-key": "mine"}),
        json!({"lang": "en", "key": "mine"}),
        json!({"lang": "en", "filter": {"key": "mine"}}),
        json!({"lang": "en", "crumbs": {"sid": "mine"}}),
    ] {
        assert_eq!(session.call("a", &arguments)["isError"], true, "{arguments}");
    }
    assert!(upstream.received().is_empty());
    session.call("a", &json!({"lang": "en", "filter": {"other": "x"}}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["cookie: lang=en; sid=ccc", "x-key: hhh", "?other=x&key=qqq"]
    );
}

#[test]
fn p5_credentials_go_to_the_apis_own_origin_only() {
    let (own, other) = (Upstream::echo(), Upstream::echo());
    let document = json!({"openapi": "3.1.0", "info": {"title": "T"}, "servers": [{"url": own.url}], "security": [{"key": []}],
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "paths": {
            "/own": {"get": {"operationId": "own", "servers": [{"url": format!("{}/below", own.url)}]}},
            "/steal": {"get": {"operationId": "steal", "servers": [{"url": other.url}]}},
            "/public": {"get": {"operationId": "public", "security": [], "servers": [{"url": other.url}]}}}});
    let spec = SpecFile::new(&document.to_string());
    let variables = [("OPENAPI_MCP_AUTH_KEY", "s3cret"), ("AUTHORIZATION", "Bearer operator")];
    let args = ["serve", "--spec", spec.path(), "--header-env", "Authorization=AUTHORIZATION"];
    let mut first = session(&args, &variables);
    assert_eq!(first.call("own", &json!({}))["isError"], false);
    assert_eq!(carried(&own.take_one()), ["authorization: Bearer operator", "x-key: s3cret"]);
    let refused = first.call("steal", &json!({}));
    assert!(
        refused["isError"] == true && text(&refused).contains("--credential-origin"),
        "{refused}"
    );
    assert!(other.received().is_empty());
    assert_eq!(first.call("public", &json!({}))["isError"], false);
    assert_eq!(carried(&other.take_one()), Vec::<String>::new(), "not even the operator's headers");

    let allowed = [&args[..], &["--credential-origin", &other.url]].concat();
    session(&allowed, &variables).call("steal", &json!({}));
    assert_eq!(carried(&other.take_one()), ["authorization: Bearer operator", "x-key: s3cret"]);
    let to_one = [&args[..], &["--base-url", &own.url]].concat();
    session(&to_one, &variables).call("steal", &json!({}));
    assert_eq!(carried(&own.take_one()), ["authorization: Bearer operator", "x-key: s3cret"]);
    assert!(other.received().is_empty());

    // Where only operations have servers, the first one's is the API's own.
    let mut rootless = document;
    rootless.as_object_mut().unwrap().remove("servers");
    let spec = SpecFile::new(&rootless.to_string());
    let mut session = session(&["serve", "--spec", spec.path()], &variables);
    assert_eq!(session.call("steal", &json!({}))["isError"], true);
    session.call("own", &json!({}));
    assert_eq!(carried(&own.take_one()), ["x-key: s3cret"]);
    assert!(other.received().is_empty());
}

#[test]
fn a_header_of_the_operators_stands_in_for_a_credential_and_a_scheme_is_stronger() {
    let upstream = Upstream::echo();
    let schemes = json!({"token": {"type": "http", "scheme": "bearer"}, "sid": {"type": "apiKey", "in": "cookie", "name": "sid"}});
    let spec = document(&schemes, &json!([{"token": [], "sid": []}]));
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--header",
        "Authorization: Bearer header",
        "--header",
        "Cookie: a=1; sid=header",
    ];
    session(&args, &[]).call("call", &json!({}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Bearer header", "cookie: a=1; sid=header"]
    );
    session(&args, &[("OPENAPI_MCP_AUTH_TOKEN", "scheme")]).call("call", &json!({}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Bearer scheme", "cookie: a=1; sid=header"]
    );
}

#[test]
fn a_refusal_by_the_api_names_the_scheme_and_its_setting() {
    let upstream = Upstream::start(Box::new(|request| {
        reply(if request.line.contains("/forbidden") { 403 } else { 401 }, &[], b"")
    }));
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "security": [{"token": ["pets:read"]}],
            "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
            "paths": {"/a": {"get": {"operationId": "a"}}, "/forbidden": {"get": {"operationId": "forbidden"}}, "/open": {"get": {"operationId": "open", "security": [{}, {"token": []}]}}}})
        .to_string(),
    );
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let mut with = session(&args, &[("OPENAPI_MCP_AUTH_TOKEN", "s3cret-token")]);
    let refused = with.call("a", &json!({}));
    assert_eq!(
        text(&refused),
        "401 Unauthorized from GET /a\nThe API did not accept the credential that whoever runs this server has set for `token` (OPENAPI_MCP_AUTH_TOKEN)."
    );
    let refused = with.call("forbidden", &json!({}));
    assert!(
        text(&refused).ends_with("for `token` (OPENAPI_MCP_AUTH_TOKEN) does not allow this call. It asks for the scopes pets:read."),
        "{refused}"
    );

    let mut without = session(&args, &[]);
    assert!(text(&without.call("open", &json!({}))).contains("sets OPENAPI_MCP_AUTH_TOKEN for the security scheme `token`"));
    assert!(text(&without.call("a", &json!({}))).contains("nothing was sent"));
    let mut loose = session(&[&args[..], &["--allow-missing-credentials"]].concat(), &[]);
    assert!(text(&loose.call("a", &json!({}))).contains("401 Unauthorized"));
}

#[test]
fn p41_a_credential_is_in_no_log_no_answer_no_list_and_no_process_list() {
    // It echoes all it gets, in a body, in headers, and as JSON.
    let upstream = Upstream::start(Box::new(|request| {
        let all = format!("{} {}", request.line, request.headers.join(" "));
        let json = json!({"echo": all, "escaped": all.replace('/', "\\/")}).to_string();
        let target = request.line.split(' ').nth(1).unwrap_or_default();
        let location = format!("Location: {target}");
        match target.split('?').next().unwrap_or_default() {
            "/redirect" => reply(302, &[&location], all.as_bytes()),
            "/empty" => reply(201, &[&location], b""),
            "/denied" => reply(401, &["Content-Type: application/json"], json.as_bytes()),
            "/broken" => b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\nConnection: close\r\n\r\nx".to_vec(),
            _ => reply(200, &["Content-Type: application/json"], json.as_bytes()),
        }
    }));
    let paths: serde_json::Map<String, Value> = ["/json", "/redirect", "/empty", "/denied", "/broken"]
        .iter()
        .map(|path| ((*path).to_owned(), json!({"post": {"operationId": path.trim_start_matches('/')}})))
        .collect();
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "paths": paths, "security": [{"query": [], "login": [], "sid": [], "head": []}],
            "components": {"securitySchemes": {
                "query": {"type": "apiKey", "in": "query", "name": "key"}, "login": {"type": "http", "scheme": "basic"},
                "sid": {"type": "apiKey", "in": "cookie", "name": "sid"}, "head": {"type": "apiKey", "in": "header", "name": "X-Key"}}}})
        .to_string(),
    );
    let variables = [
        ("OPENAPI_MCP_AUTH_QUERY", "qu/ery+s3cret\"é"),
        ("OPENAPI_MCP_AUTH_LOGIN", "ann:pass/w0rd"),
        ("OPENAPI_MCP_AUTH_SID", "sid s3cret"),
        ("OPENAPI_MCP_AUTH_HEAD", "head-s3cret"),
    ];
    let secrets = [
        "qu/ery",
        "qu\\/ery",
        "qu%2Fery",
        "s3cret",
        "pass/w0rd",
        "pass\\/w0rd",
        "YW5uOnBhc3MvdzByZA",
    ];
    let clean = |what: &str, text: &str| {
        for secret in secrets {
            assert!(!text.contains(secret), "{what} shows {secret}: {text}");
        }
    };
    for level in ["trace", "debug", "info"] {
        let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url, "--log-level", level];
        let mut session = session(&args, &variables);
        clean("tools/list", &Value::from(session.tools()).to_string());
        for tool in ["json", "redirect", "empty", "denied", "broken"] {
            clean(tool, &session.call(tool, &json!({})).to_string());
        }
        let ps = std::process::Command::new("ps")
            .args(["-o", "args=", "-p", &session.pid().to_string()])
            .output();
        if let Ok(ps) = ps {
            clean("ps", &String::from_utf8_lossy(&ps.stdout));
        }
        clean("the log", &session.end());
    }
    assert_eq!(upstream.received().len(), 15);
    let help = run(&["serve", "--help"]);
    clean("--help", &stdout(&help));
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call","arguments":{}}}"#;

#[test]
fn p31_a_client_sends_on_what_the_operator_lists_and_nothing_else() {
    let upstream = Upstream::start(Box::new(|request| {
        reply(
            200,
            &["Content-Type: application/json"],
            serde_json::to_string(&request.headers).unwrap().as_bytes(),
        )
    }));
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "call", "parameters": [
        {"name": "x-tenant", "in": "header", "required": true, "schema": {"type": "string"}}]}}}));
    let base = ["--spec", spec.path(), "--base-url", &upstream.url, "--header", "X-Own: operator"];
    let more = [
        "--forward-header",
        "X-Tenant",
        "--forward-header",
        "X-User=X-Remote-User",
        "--forward-header",
        "X-Own",
    ];
    let server = HttpServer::start(&[&base[..], &more].concat());
    let sent = [
        "MCP-Protocol-Version: 2025-11-25",
        "X-Tenant: acme-tenant",
        "X-User: ann",
        "X-Own: client",
        "Authorization: Bearer client-s3cret",
        "Cookie: c=1",
        "X-Other: no",
    ];
    let (line, answer) = server.post(&sent, CALL);
    assert!(line.contains(" 200 ") && answer.contains("acme-tenant"), "{line} {answer}");
    let received = upstream.take_one();
    for (name, expected) in [
        ("x-tenant", Some("acme-tenant")),
        ("x-remote-user", Some("ann")),
        ("x-user", None),
        ("x-own", Some("operator")),
        ("authorization", None),
        ("cookie", None),
        ("x-other", None),
        ("mcp-protocol-version", None),
    ] {
        assert_eq!(received.header(name), expected, "{name}");
    }
    server.logged("the header `x-own` is forwarded from clients, and set here as well");

    let server = HttpServer::start(
        &[
            &base[..],
            &["--forward-header=X-Tenant", "--forward-authorization", "--log-level=trace"],
        ]
        .concat(),
    );
    let (_, answer) = server.post(&sent, CALL);
    assert_eq!(upstream.take_one().header("authorization"), Some("Bearer client-s3cret"));
    assert!(!answer.contains("client-s3cret") && answer.contains("[redacted]"), "{answer}");
    assert!(!server.logs().contains("client-s3cret"), "{}", server.logs());
}

#[test]
fn a_forwarded_credential_meets_a_scheme_and_its_absence_is_told() {
    let upstream = Upstream::echo();
    let spec = document(&json!({"token": {"type": "http", "scheme": "bearer"}}), &json!([{"token": []}]));
    let args = ["--spec", spec.path(), "--base-url", &upstream.url, "--forward-authorization"];
    let server = HttpServer::start(&args);
    server.post(&["MCP-Protocol-Version: 2025-11-25", "Authorization: Bearer mine"], CALL);
    assert_eq!(upstream.take_one().header("authorization"), Some("Bearer mine"));
    let (_, answer) = server.post(&["MCP-Protocol-Version: 2025-11-25"], CALL);
    assert!(
        answer.contains("\"isError\":true") && answer.contains("`authorization` header"),
        "{answer}"
    );
    assert!(upstream.received().is_empty());
}

#[test]
fn headers_that_cannot_be_forwarded_are_refused_at_start() {
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {}}}));
    let args = ["serve", "--spec", spec.path(), "--base-url", "http://127.0.0.1:1"];
    for name in [
        "Host",
        "Connection",
        "X-A=Transfer-Encoding",
        "Cookie",
        "Content-Length",
        "TE",
        "Mcp-Session-Id",
        "a b",
        "Authorization",
    ] {
        let output = run(&[&args[..], &["--transport", "http", "--forward-header", name]].concat());
        assert!(
            output.status.code() == Some(2) && stderr(&output).contains("--forward-header"),
            "{name}"
        );
    }
    let output = run(&[&args[..], &["--forward-authorization"]].concat());
    assert!(output.status.code() == Some(2) && stderr(&output).contains("--forward-authorization needs --transport http"));
}

#[test]
fn p9_no_redirect_takes_a_credential_along_and_p15_no_cookie_replaces_one() {
    let thief = Upstream::echo();
    let location = format!("Location: {}/steal?", thief.url);
    let upstream = Upstream::start(Box::new(move |request| {
        let target = request.line.split(' ').nth(1).unwrap_or_default();
        match target.strip_prefix("/to/").and_then(|rest| rest.split('?').next()?.parse().ok()) {
            Some(status) => reply(status, &[&location, "Set-Cookie: sid=evil; Path=/"], b""),
            None => reply(200, &["Content-Type: application/json", "Set-Cookie: sid=evil"], b"{}"),
        }
    }));
    let schemes = json!({
        "sid": {"type": "apiKey", "in": "cookie", "name": "sid"}, "key": {"type": "apiKey", "in": "query", "name": "key"},
        "token": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/to/307"}}}});
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "components": {"securitySchemes": schemes}, "security": [{"sid": [], "key": []}],
            "paths": {"/to/{status}": {"get": {"operationId": "away"}}, "/a": {"get": {"operationId": "a"}}, "/b": {"get": {"operationId": "b", "security": [{"token": []}]}}}})
        .to_string(),
    );
    let variables = [
        ("OPENAPI_MCP_AUTH_SID", "own-cookie"),
        ("OPENAPI_MCP_AUTH_KEY", "own-key"),
        ("OPENAPI_MCP_AUTH_TOKEN_CLIENT_ID", "client"),
        ("OPENAPI_MCP_AUTH_TOKEN_CLIENT_SECRET", "client-s3cret"),
    ];
    let mut session = session(&["serve", "--spec", spec.path(), "--base-url", &upstream.url], &variables);
    for status in ["301", "302", "303", "307", "308"] {
        assert_eq!(session.call("away", &json!({"status": status}))["isError"], true, "{status}");
        assert_eq!(session.call("a", &json!({}))["isError"], false);
    }
    for request in upstream.take_all() {
        assert_eq!(carried(&request), ["cookie: sid=own-cookie", "?key=own-key"]);
    }
    let refused = session.call("b", &json!({}));
    assert!(text(&refused).contains("the token endpoint answered 307"), "{refused}");
    assert!(thief.received().is_empty(), "{:?}", thief.received());
}

#[test]
fn p42_neither_arguments_nor_replies_are_logged_and_forwarded_headers_stay_on_the_apis_origin() {
    let upstream = Upstream::start(Box::new(|_| reply(200, &["Content-Type: text/plain"], b"what-the-api-said")));
    let other = Upstream::echo();
    let parameter = json!([{"name": "q", "in": "query", "schema": {"type": "string"}}]);
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "servers": [{"url": upstream.url}], "paths": {
            "/a": {"get": {"operationId": "call", "parameters": parameter}},
            "/b": {"get": {"operationId": "away", "servers": [{"url": other.url}]}}}})
        .to_string(),
    );
    let server = HttpServer::start(&["--spec", spec.path(), "--forward-header", "X-User", "--log-level", "debug"]);
    let call = |name: &str, arguments: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#);
        server.post(&["MCP-Protocol-Version: 2025-11-25", "X-User: ann-s3cret"], &body).1
    };
    assert!(call("call", r#"{"q":"what-the-model-asked"}"#).contains("what-the-api-said"));
    assert!(call("call", r#"{"q":["what-the-model-asked"],"r":"what-the-model-asked"}"#).contains("isError\":true"));
    call("away", "{}");
    assert_eq!(upstream.take_one().header("x-user"), Some("ann-s3cret"));
    assert_eq!(other.take_one().header("x-user"), None);
    let logs = server.logged("tool=away");
    for secret in ["what-the-api-said", "what-the-model-asked", "ann-s3cret"] {
        assert!(!logs.contains(secret), "{secret}: {logs}");
    }
}

#[test]
fn p41_a_credential_that_comes_back_escaped_or_in_another_charset_is_taken_out() {
    let upstream = Upstream::start(Box::new(|request| {
        let json = r#"{"authorization":"Bearer QWxh\u002bZGRpb\u002fjpvcGVuI\u003d\u003d","QWxh\u002bZGRpb/jpvcGVuI==":1}"#;
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let page = b"<h1>Bearer QWxh&#43;ZGRpb&#x2F;jpvcGVuI&#61;&equals;</h1>";
        match request.line.split(' ').nth(1).unwrap_or_default() {
            "/json" => reply(200, &["Content-Type: application/json"], json.as_bytes()),
            "/wide" => reply(
                200,
                &["Content-Type: text/plain; charset=utf-16"],
                &wide("Bearer QWxh+ZGRpb/jpvcGVuI=="),
            ),
            "/wide-json" => reply(200, &["Content-Type: application/json"], &wide(json)),
            "/parts" => {
                let head = b"--x\r\nContent-Type: text/plain; charset=utf-16le\r\n\r\n";
                let body = [head, &wide("QWxh+ZGRpb/jpvcGVuI==")[..], b"\r\n--x--"].concat();
                reply(200, &["Content-Type: multipart/mixed; boundary=x"], &body)
            }
            "/page" => reply(200, &["Content-Type: text/html"], page),
            _ => reply(500, &["Content-Type: text/html"], page),
        }
    }));
    let tools = ["json", "wide", "wide-json", "parts", "page", "error-page"];
    let paths: serde_json::Map<String, Value> = tools
        .iter()
        .map(|tool| (format!("/{tool}"), json!({"post": {"operationId": tool}})))
        .collect();
    let spec = SpecFile::with_paths(&Value::Object(paths));
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--header-env",
        "Authorization=TOK",
    ];
    let mut session = session(&args, &[("TOK", "Bearer QWxh+ZGRpb/jpvcGVuI==")]);
    for tool in tools {
        let said = session.call(tool, &json!({})).to_string();
        assert!(said.contains("[redacted]"), "{tool}: {said}");
        for part in ["QWxh", "ZGRpb", "jpvcGVuI", "Z\\u0000G"] {
            assert!(!said.contains(part), "{tool}: {said}");
        }
    }
}
