//! The operator's credentials: the schemes that are sent, their settings, and their operations.

use serde_json::{Map, Value, json};

use crate::support::{
    Received, Session, SpecFile, Upstream, command, reply, run, stderr, stdout, text,
};

/// A document with these schemes, and one operation, `call`, with that `security`.
pub(super) fn document(schemes: &Value, security: &Value) -> SpecFile {
    SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "components": {"securitySchemes": schemes},
            "paths": {"/a": {"get": {"operationId": "call", "security": security}}}})
        .to_string(),
    )
}

/// A document with these schemes and an operation for each, called like it, that asks for nothing
/// else.
fn one_operation_per_scheme(schemes: &Value) -> SpecFile {
    let names = schemes.as_object().unwrap().keys();
    let operation = |name: &String| json!({"get": {"operationId": name, "security": [{name: []}]}});
    let paths: Map<String, Value> = names
        .enumerate()
        .map(|(number, name)| (format!("/{number}"), operation(name)))
        .collect();
    SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "components": {"securitySchemes": schemes}, "paths": paths})
            .to_string(),
    )
}

/// Everything of a request that a credential could be in.
pub(super) fn carried(request: &Received) -> Vec<String> {
    let names = ["authorization", "cookie", "x-key"];
    let headers = names
        .iter()
        .filter_map(|name| Some(format!("{name}: {}", request.header(name)?)));
    let query = request.path().split_once('?');
    headers
        .chain(query.map(|(_, query)| format!("?{query}")))
        .collect()
}

#[test]
fn p48_every_kind_of_scheme_is_sent_where_it_belongs() {
    let key = |place: &str, name: &str| json!({"type": "apiKey", "in": place, "name": name});
    let kinds = [
        (
            key("header", "X-Key"),
            &[("", "s3cret key")][..],
            "x-key: s3cret key",
        ),
        (
            key("header", "Authorization"),
            &[("", "Token s3cret")],
            "authorization: Token s3cret",
        ),
        (
            key("query", "api key"),
            &[("", "a&b=c")],
            "?api%20key=a%26b%3Dc",
        ),
        (
            key("cookie", "sid"),
            &[("", "s3cret")],
            "cookie: sid=s3cret",
        ),
        (
            key("cookie", "sid"),
            &[("", "a; b")],
            "cookie: sid=a%3B%20b",
        ),
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
    ];
    let upstream = Upstream::echo();
    let names: Vec<String> = (0..kinds.len())
        .map(|number| format!("kind{number}"))
        .collect();
    let schemes: Map<String, Value> = names
        .iter()
        .cloned()
        .zip(kinds.iter().map(|(scheme, ..)| scheme.clone()))
        .collect();
    let spec = one_operation_per_scheme(&schemes.into());
    let variables: Vec<(String, &str)> = kinds
        .iter()
        .enumerate()
        .flat_map(|(number, (_, parts, _))| {
            parts
                .iter()
                .map(move |(part, value)| (format!("OPENAPI_MCP_AUTH_KIND{number}{part}"), *value))
        })
        .collect();
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let mut session = Session::serving_with(&spec, &upstream, &[], &variables);
    for (name, (scheme, _, expected)) in names.iter().zip(&kinds) {
        let result = session.call(name, &json!({}));
        assert_eq!(result["isError"], false, "{scheme} {result}");
        assert_eq!(carried(&upstream.take_one()), [*expected], "{scheme}");
    }
}

#[test]
fn the_variable_of_a_scheme_is_its_name_in_capitals() {
    let variables = [
        ("petKey", "PET_KEY"),
        ("storeKey", "STOREKEY"),
        ("OAuth2", "OAUTH2"),
        ("X-API-Key", "X_API_KEY"),
        ("api_key", "API_KEY"),
        ("a b.c", "A_B_C"),
    ]
    .map(|(scheme, variable)| (scheme, format!("OPENAPI_MCP_AUTH_{variable}")));
    let key = json!({"type": "apiKey", "in": "header", "name": "X-Key"});
    let schemes: Map<String, Value> = variables
        .iter()
        .map(|(scheme, _)| ((*scheme).to_owned(), key.clone()))
        .collect();
    let (spec, upstream) = (one_operation_per_scheme(&schemes.into()), Upstream::echo());
    let set: Vec<(&str, &str)> = variables
        .iter()
        .map(|(scheme, name)| (name.as_str(), *scheme))
        .collect();
    let mut session = Session::serving_with(&spec, &upstream, &[], &set);
    let tools = session.tools();
    for ((scheme, name), tool) in variables.iter().zip(&tools) {
        session.call(tool["name"].as_str().unwrap(), &json!({}));
        assert_eq!(
            carried(&upstream.take_one()),
            [format!("x-key: {scheme}")],
            "{name}"
        );
    }
}

/// `OPENAPI_MCP_AUTH_TOKEN_FILE` says who may call us, and must not become what a document's scheme
/// of that name is sent.
#[test]
fn p48_a_setting_that_is_named_like_a_credential_is_not_one() {
    for (scheme, variable) in [
        ("token-file", "OPENAPI_MCP_AUTH_TOKEN_FILE"),
        ("token_env", "OPENAPI_MCP_AUTH_TOKEN_ENV"),
    ] {
        let upstream = Upstream::echo();
        let spec = document(
            &json!({scheme: {"type": "apiKey", "in": "header", "name": "X-Key"}}),
            &json!([{scheme: []}]),
        );
        let mut command = command(&[
            "call",
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "call",
        ]);
        let output = command.env(variable, "/run/tokens").output().unwrap();
        assert!(
            !output.status.success() && upstream.received().is_empty(),
            "{scheme}: {}",
            stderr(&output)
        );
        let advice = format!("`auth.{scheme}` in the configuration file");
        assert!(
            stdout(&output).contains(&advice),
            "{scheme}: {}",
            stdout(&output)
        );
    }
}

/// A document chooses the names of schemes: one named `petsClientSecret` does not get the client
/// secret of `pets`.
#[test]
fn p48_a_part_of_one_schemes_credential_is_never_anothers_value() {
    let upstream = Upstream::echo();
    let schemes = json!({
        "pets": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "http://127.0.0.1:1/token", "scopes": {}}}},
        "petsClientSecret": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "petsRefreshToken": {"type": "http", "scheme": "bearer"},
        "login": {"type": "http", "scheme": "basic"},
        "loginPassword": {"type": "apiKey", "in": "query", "name": "p"},
        // Not a part of another scheme's credential.
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
    let spec = one_operation_per_scheme(&schemes);
    let mut session = Session::serving_with(&spec, &upstream, &[], &variables);
    let parts = ["petsClientSecret", "petsRefreshToken", "loginPassword"];
    for name in parts {
        let result = session.call(name, &json!({}));
        assert!(
            result["isError"] == true && upstream.received().is_empty(),
            "{name}: {result}"
        );
    }
    assert_eq!(session.call("otherClientId", &json!({}))["isError"], false);
    assert_eq!(carried(&upstream.take_one()), ["x-key: key-of-other"]);
    let logs = session.end();
    for name in parts {
        let told =
            |line: &str| line.contains(&format!("`{name}`")) && line.contains("configuration file");
        assert!(logs.lines().any(told), "{name}: {logs}");
    }
    assert!(!logs.contains("s3cret"), "{logs}");
}

#[test]
fn p48_security_is_an_or_of_ands_of_the_operation_over_the_document() {
    let upstream = Upstream::echo();
    let operation =
        |id: &str, security: Value| json!({"get": {"operationId": id, "security": security}});
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
    let mut session = Session::start_with(
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
        assert!(
            result["isError"] == true && text(&result).contains(expected),
            "{tool}: {result}"
        );
    }
    assert!(
        upstream.received().is_empty(),
        "a call without its credential is not sent"
    );
}

#[test]
fn an_operation_that_needs_http_digest_is_refused() {
    let upstream = Upstream::echo();
    let spec = document(
        &json!({"login": {"type": "http", "scheme": "Digest"}}),
        &json!([{"login": []}]),
    );
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let mut session = Session::start_with(&args, &[("OPENAPI_MCP_AUTH_LOGIN", "ann:pass-word")]);
    let result = session.call("call", &json!({}));
    let advice = "sets --base-url to a proxy that answers HTTP digest challenges (this server does not) for the security scheme `login`";
    assert!(text(&result).contains(advice), "{result}");
    assert!(upstream.received().is_empty());
}

#[test]
fn what_is_missing_is_told_once_at_start() {
    let spec = SpecFile::new(
        &json!({"swagger": "2.0", "info": {"title": "T", "version": "1"}, "host": "127.0.0.1:1", "schemes": ["http"], "security": [{"petKey": []}],
            "securityDefinitions": {"petKey": {"type": "apiKey", "in": "query", "name": "key"}, "login": {"type": "basic"}},
            "paths": {"/a": {"get": {"operationId": "a"}, "post": {"operationId": "b"}}, "/c": {"get": {"operationId": "c", "security": [{"login": ["x"]}, {"login": ["y"]}]}}}})
        .to_string(),
    );
    let mut session = Session::start_with(
        &["serve", "--spec", spec.path()],
        &[
            ("OPENAPI_MCP_AUTH_PETSKEY", "s3cret"),
            ("OPENAPI_MCP_AUTH_LOGIN", "no-colon-here"),
        ],
    );
    let logs = session.end();
    for expected in [
        "2 operations cannot be called: set OPENAPI_MCP_AUTH_PET_KEY for the security scheme `petKey`; if the API takes calls without a credential, --allow-missing-credentials sends them\n",
        "1 operation cannot be called: set OPENAPI_MCP_AUTH_LOGIN (as `user:password`) for the security scheme `login`, because its value has no colon; if",
        "OPENAPI_MCP_AUTH_PETSKEY belongs to no security scheme of the document; it has `login`, `petKey`\n",
    ] {
        assert_eq!(logs.matches(expected).count(), 1, "{expected}: {logs}");
    }
    assert!(
        !logs.contains("s3cret") && !logs.contains("no-colon-here"),
        "{logs}"
    );
}

#[test]
fn a_credential_that_occurs_in_replies_by_chance_is_warned_of() {
    let schemes = json!({"petKey": {"type": "apiKey", "in": "header", "name": "X-Key"}});
    let spec = document(&schemes, &json!([{"petKey": []}]));
    for (value, is_common) in [
        ("dummykey", true),
        ("sk-1234", true),
        ("Dummy-Key", true),
        ("anything", true),
        ("x", false),
        ("q8Zr41-0kDf2", false),
    ] {
        let mut session = Session::start_with(
            &[
                "serve",
                "--base-url",
                "http://127.0.0.1:1",
                "--spec",
                spec.path(),
            ],
            &[("OPENAPI_MCP_AUTH_PET_KEY", value)],
        );
        let logs = session.end();
        let told = "the value of OPENAPI_MCP_AUTH_PET_KEY is short or a plain word";
        assert_eq!(logs.contains(told), is_common, "{value}: {logs}");
        assert!(value.len() < 6 || !logs.contains(value), "{logs}");
    }
}

#[test]
fn p43_values_come_from_the_file_by_reference_and_never_as_they_are() {
    let upstream = Upstream::echo();
    let schemes = json!({"key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "login": {"type": "http", "scheme": "basic"}});
    let spec = document(&schemes, &json!([{"key": [], "login": []}]));
    let folder = tempfile::tempdir().unwrap();
    let (secret, config) = (
        folder.path().join("secret"),
        folder.path().join("config.yaml"),
    );
    std::fs::write(&secret, "from-file\n").unwrap();
    let path = config.display().to_string();
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--config",
        &path,
    ];
    std::fs::write(
        &config,
        format!(
            "auth:\n  key: {{ file: {} }}\n  login: {{ username: {{ env: NAME_OF_USER }}, password: {{ env: PASSWORD_OF_USER }} }}\n",
            secret.display()
        ),
    )
    .unwrap();
    let mut session = Session::start_with(
        &args,
        &[("NAME_OF_USER", "ann"), ("PASSWORD_OF_USER", "pass")],
    );
    session.call("call", &json!({}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Basic YW5uOnBhc3M=", "x-key: from-file"]
    );

    // What the file names lies where the file does.
    std::fs::write(
        &config,
        "auth: { key: { file: secret }, login: { file: secret } }",
    )
    .unwrap();
    std::fs::write(&secret, "a:b").unwrap();
    Session::start_with(&args, &[]).call("call", &json!({}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Basic YTpi", "x-key: a:b"]
    );

    std::fs::write(&config, "auth: { key: hunter2 }").unwrap();
    let output = run(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("`{ env: VARIABLE }`") && !stderr(&output).contains("hunter2")
    );

    std::fs::write(
        &config,
        "auth: { key: { env: NOT_SET_ANYWHERE }, login: { file: /no/such/file }, both: { env: A, file: b } }",
    )
    .unwrap();
    let output = command(&args)
        .env("OPENAPI_MCP_AUTH_KEY", "\n")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    for expected in [
        "`NOT_SET_ANYWHERE`",
        "/no/such/file",
        "both `env` and `file`",
        "OPENAPI_MCP_AUTH_KEY is empty",
    ] {
        assert!(
            stderr(&output).contains(expected),
            "{expected}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn p48_a_parameter_that_a_scheme_sets_is_not_an_argument() {
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
    let mut session = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &variables,
    );
    let schema = session.tools()[0]["inputSchema"].clone();
    let names: Vec<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
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
        assert_eq!(
            session.call("a", &arguments)["isError"],
            true,
            "{arguments}"
        );
    }
    assert!(upstream.received().is_empty());
    session.call("a", &json!({"lang": "en", "filter": {"other": "x"}}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["cookie: lang=en; sid=ccc", "x-key: hhh", "?other=x&key=qqq"]
    );
}

#[test]
fn p46_credentials_go_to_the_apis_own_origin_only() {
    let (own, other) = (Upstream::echo(), Upstream::echo());
    let document = json!({"openapi": "3.1.0", "info": {"title": "T"}, "servers": [{"url": own.url}], "security": [{"key": []}],
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "paths": {
            "/own": {"get": {"operationId": "own", "servers": [{"url": format!("{}/below", own.url)}]}},
            "/steal": {"get": {"operationId": "steal", "servers": [{"url": other.url}]}},
            "/public": {"get": {"operationId": "public", "security": [], "servers": [{"url": other.url}]}}}});
    let spec = SpecFile::new(&document.to_string());
    let variables = [
        ("OPENAPI_MCP_AUTH_KEY", "s3cret"),
        ("AUTHORIZATION", "Bearer operator"),
    ];
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--header-env",
        "Authorization=AUTHORIZATION",
    ];
    let mut first = Session::start_with(&args, &variables);
    assert_eq!(first.call("own", &json!({}))["isError"], false);
    assert_eq!(
        carried(&own.take_one()),
        ["authorization: Bearer operator", "x-key: s3cret"]
    );
    let refused = first.call("steal", &json!({}));
    assert!(
        refused["isError"] == true && text(&refused).contains("`credential_origin`"),
        "{refused}"
    );
    assert!(other.received().is_empty());
    assert_eq!(first.call("public", &json!({}))["isError"], false);
    assert_eq!(
        carried(&other.take_one()),
        Vec::<String>::new(),
        "not even the operator's headers"
    );

    let origin = format!("credential_origin: [\"{}\"]", other.url);
    let allowed = [&args[..], &[&origin]].concat();
    Session::start_with(&allowed, &variables).call("steal", &json!({}));
    assert_eq!(
        carried(&other.take_one()),
        ["authorization: Bearer operator", "x-key: s3cret"]
    );
    let to_one = [&args[..], &["--base-url", &own.url]].concat();
    Session::start_with(&to_one, &variables).call("steal", &json!({}));
    assert_eq!(
        carried(&own.take_one()),
        ["authorization: Bearer operator", "x-key: s3cret"]
    );
    assert!(other.received().is_empty());

    // Where only operations have servers, the first one's is the API's own.
    let mut rootless = document;
    rootless.as_object_mut().unwrap().remove("servers");
    let spec = SpecFile::new(&rootless.to_string());
    let mut session = Session::start_with(&["serve", "--spec", spec.path()], &variables);
    assert_eq!(session.call("steal", &json!({}))["isError"], true);
    session.call("own", &json!({}));
    assert_eq!(carried(&own.take_one()), ["x-key: s3cret"]);
    assert!(other.received().is_empty());
}

#[test]
fn the_value_of_a_header_is_read_from_a_file_and_stays_a_secret() {
    let upstream = Upstream::echo();
    let spec = document(&json!({}), &json!([]));
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("token.txt", "s3cret-token\n"), ("my key", "s3cret-key")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    // A path of the configuration file begins at its folder.
    let config = folder.path().join("c.yaml");
    let settings = json!({"spec": spec.path(), "base_url": upstream.url, "header_file": ["Authorization=Bearer token.txt", "X-Key=./my key"]});
    std::fs::write(&config, settings.to_string()).unwrap();
    let mut session = Session::start(&["serve", "--config", config.to_str().unwrap()]);
    let result = session.call("call", &json!({}));
    let sent = upstream.take_one();
    assert_eq!(
        carried(&sent),
        ["authorization: Bearer s3cret-token", "x-key: s3cret-key"]
    );
    assert!(!result.to_string().contains("s3cret"), "{result}");
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
    Session::start_with(&args, &[]).call("call", &json!({}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Bearer header", "cookie: a=1; sid=header"]
    );
    Session::start_with(&args, &[("OPENAPI_MCP_AUTH_TOKEN", "scheme")]).call("call", &json!({}));
    assert_eq!(
        carried(&upstream.take_one()),
        ["authorization: Bearer scheme", "cookie: a=1; sid=header"]
    );
}

#[test]
fn a_refusal_by_the_api_names_the_scheme_and_its_setting() {
    let upstream = Upstream::start(Box::new(|request| {
        reply(
            if request.line.contains("/forbidden") {
                403
            } else {
                401
            },
            &[],
            b"",
        )
    }));
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "security": [{"token": ["pets:read"]}],
            "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
            "paths": {"/a": {"get": {"operationId": "a"}}, "/forbidden": {"get": {"operationId": "forbidden"}}, "/open": {"get": {"operationId": "open", "security": [{}, {"token": []}]}}}})
        .to_string(),
    );
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let mut with = Session::start_with(&args, &[("OPENAPI_MCP_AUTH_TOKEN", "s3cret-token")]);
    let refused = with.call("a", &json!({}));
    assert_eq!(
        text(&refused),
        "401 Unauthorized from GET /a\nThe API did not accept the credential that whoever runs this server has set for `token` (OPENAPI_MCP_AUTH_TOKEN)."
    );
    let refused = with.call("forbidden", &json!({}));
    assert!(
        text(&refused).ends_with("for `token` (OPENAPI_MCP_AUTH_TOKEN) may not allow this call. It asks for the scopes pets:read."),
        "{refused}"
    );

    let mut without = Session::start_with(&args, &[]);
    assert!(
        text(&without.call("open", &json!({})))
            .contains("sets OPENAPI_MCP_AUTH_TOKEN for the security scheme `token`")
    );
    assert!(text(&without.call("a", &json!({}))).contains("nothing was sent"));
    let mut loose =
        Session::start_with(&[&args[..], &["--allow-missing-credentials"]].concat(), &[]);
    assert!(text(&loose.call("a", &json!({}))).contains("401 Unauthorized"));
}

#[test]
fn p9_p15_no_redirect_takes_a_credential_along_and_no_cookie_replaces_one() {
    let thief = Upstream::echo();
    let location = format!("Location: {}/steal?", thief.url);
    let upstream = Upstream::start(Box::new(move |request| {
        match request
            .path()
            .strip_prefix("/to/")
            .and_then(|rest| rest.split('?').next()?.parse().ok())
        {
            Some(status) => reply(status, &[&location, "Set-Cookie: sid=evil; Path=/"], b""),
            None => reply(
                200,
                &["Content-Type: application/json", "Set-Cookie: sid=evil"],
                b"{}",
            ),
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
    let mut session = Session::start_with(
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &variables,
    );
    for status in ["301", "302", "303", "307", "308"] {
        assert_eq!(
            session.call("away", &json!({"status": status}))["isError"],
            true,
            "{status}"
        );
        assert_eq!(session.call("a", &json!({}))["isError"], false);
    }
    for request in upstream.take_all() {
        assert_eq!(
            carried(&request),
            ["cookie: sid=own-cookie", "?key=own-key"]
        );
    }
    let refused = session.call("b", &json!({}));
    assert!(
        text(&refused).contains("the token endpoint answered 307"),
        "{refused}"
    );
    assert!(thief.received().is_empty(), "{:?}", thief.received());
}

/// Only one of them can be sent, and the operator must know.
#[test]
fn two_schemes_that_an_operation_needs_together_in_one_header_are_reported() {
    let document = json!({"openapi": "3.1.0", "servers": [{"url": "https://api.example"}],
        "components": {"securitySchemes": {
            "user": {"type": "http", "scheme": "bearer"},
            "gateway": {"type": "http", "scheme": "basic"},
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "paths": {
            "/both": {"get": {"operationId": "both", "security": [{"user": [], "gateway": []}]}},
            "/apart": {"get": {"operationId": "apart", "security": [{"user": [], "key": []}]}}}});
    let spec = SpecFile::new(&document.to_string());
    let variables = [
        ("OPENAPI_MCP_AUTH_USER", "s3cret-of-user"),
        ("OPENAPI_MCP_AUTH_GATEWAY", "ann:s3cret-pass"),
        ("OPENAPI_MCP_AUTH_KEY", "s3cret-key"),
    ];
    let mut session = Session::start_with(&["serve", "--spec", spec.path()], &variables);
    session.tools();
    let logs = session.logged("together");
    let clash = "operations need `gateway` and `user` together, and both are sent in the header `authorization`: one of them is not sent";
    assert_eq!(logs.matches("together").count(), 1, "{logs}");
    assert!(
        logs.contains(clash)
            || logs.contains(&clash.replace("`gateway` and `user`", "`user` and `gateway`")),
        "{logs}"
    );
}
