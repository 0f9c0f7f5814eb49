//! Secrets that come back: they are taken out of replies, and appear in no log, list, error or
//! process list.

use serde_json::{Map, Value, json};

use crate::support::{Session, SpecFile, Upstream, reply, run, stdout};

/// The given and the sent credential may differ: a word before a token, blanks around a key, an
/// encoding.
#[test]
fn p41_a_credential_that_comes_back_as_it_was_sent_is_taken_out() {
    let key = || json!({"type": "apiKey", "in": "header", "name": "X-Key"});
    let bearer = || json!({"type": "http", "scheme": "bearer"});
    // Scheme, variable, value, and the part of it that comes back.
    let schemes = [
        (
            "one",
            bearer(),
            "OPENAPI_MCP_AUTH_ONE",
            "Bearer s3cr3t-value",
            "s3cr3t-value",
        ),
        (
            "two",
            bearer(),
            "OPENAPI_MCP_AUTH_TWO",
            "bearer  an0ther-value",
            "Bearer an0ther-value",
        ),
        (
            "three",
            key(),
            "OPENAPI_MCP_AUTH_THREE",
            " a-key-with-bl4nks ",
            "a-key-with-bl4nks",
        ),
        (
            "xIbmClientId",
            key(),
            "OPENAPI_MCP_AUTH_X_IBM_CLIENT_ID",
            "a-client-1d",
            "a-client-1d",
        ),
        (
            "five",
            key(),
            "OPENAPI_MCP_AUTH_FIVE",
            "uml4ut-ü",
            "uml4ut-\u{c3}\u{bc}",
        ),
    ];
    let headers = [
        ("X-A=HELD_A", "HELD_A", "ab3de7x", "ab3de7x"),
        ("X-B=HELD_B", "HELD_B", "pass wd4 s3cr", "pass wd4 s3cr"),
        (
            "Cookie=HELD_C",
            "HELD_C",
            "sid=c00kie; theme=dark",
            "c00kie",
        ),
        (
            "Authorization=HELD_D",
            "HELD_D",
            "Basic dXNlcjpodW50ZXIyaHVudGVyMg==",
            "hunter2hunter2",
        ),
    ];
    let echoes: Vec<&str> = schemes
        .iter()
        .map(|row| row.4)
        .chain(headers.iter().map(|row| row.3))
        .collect();
    let said: Vec<String> = echoes
        .iter()
        .map(|echo| json!({"echo": format!("<{echo}>")}).to_string())
        .collect();
    let upstream = Upstream::start(Box::new(move |request| {
        let number: usize = request.path().trim_start_matches('/').parse().unwrap();
        reply(
            200,
            &["Content-Type: application/json"],
            said[number].as_bytes(),
        )
    }));
    let components: Map<String, Value> = schemes
        .iter()
        .map(|row| (row.0.to_owned(), row.1.clone()))
        .collect();
    let operation = |number: usize| {
        let security = schemes
            .get(number)
            .map_or_else(|| json!([]), |row| json!([{row.0: []}]));
        (
            format!("/{number}"),
            json!({"get": {"operationId": format!("call_{number}"), "security": security}}),
        )
    };
    let paths: Map<String, Value> = (0..echoes.len()).map(operation).collect();
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "components": {"securitySchemes": components}, "paths": paths})
            .to_string(),
    );
    let flags: Vec<&str> = headers
        .iter()
        .flat_map(|row| ["--header-env", row.0])
        .collect();
    let variables: Vec<(&str, &str)> = schemes
        .iter()
        .map(|row| (row.2, row.3))
        .chain(headers.iter().map(|row| (row.1, row.2)))
        .collect();
    let mut session = Session::serving_with(&spec, &upstream, &flags, &variables);
    for (number, echo) in echoes.iter().enumerate() {
        let echoed =
            session.call(&format!("call_{number}"), &json!({}))["structuredContent"]["echo"]
                .to_string();
        assert!(
            echoed.contains("[redacted]") && !echoed.contains(echo),
            "{echo}: {echoed}"
        );
    }
}

#[test]
fn p41_the_authorization_header_of_the_operator_is_taken_out_of_a_reply() {
    let upstream = Upstream::start(Box::new(|request| {
        let headers = serde_json::to_string(&request.headers).unwrap();
        reply(200, &["Content-Type: application/json"], headers.as_bytes())
    }));
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "call"}}}));
    for (flags, value, shown) in [
        (
            ["--header-env", "Authorization=HELD"],
            "Token ab3de7x",
            "ab3de7x",
        ),
        (
            ["--header", "Authorization: Bearer s3cret-token"],
            "",
            "s3cret-token",
        ),
    ] {
        let result = Session::serving_with(&spec, &upstream, &flags, &[("HELD", value)])
            .call("call", &json!({}))
            .to_string();
        assert!(
            upstream
                .take_one()
                .header("authorization")
                .unwrap()
                .ends_with(shown)
        );
        assert!(
            !result.contains(shown) && result.contains("[redacted]"),
            "{result}"
        );
    }
}

#[test]
fn p41_a_credential_is_in_no_log_no_answer_no_list_and_no_process_list() {
    // It echoes all it gets, in a body, in headers, and as JSON.
    let upstream = Upstream::start(Box::new(|request| {
        let all = format!("{} {}", request.line, request.headers.join(" "));
        let json = json!({"echo": all, "escaped": all.replace('/', "\\/")}).to_string();
        let target = request.path();
        let location = format!("Location: {target}");
        match target.split('?').next().unwrap_or_default() {
            "/redirect" => reply(302, &[&location], all.as_bytes()),
            "/empty" => reply(201, &[&location], b""),
            "/denied" => reply(401, &["Content-Type: application/json"], json.as_bytes()),
            "/broken" => {
                b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\nConnection: close\r\n\r\nx".to_vec()
            }
            _ => reply(200, &["Content-Type: application/json"], json.as_bytes()),
        }
    }));
    let paths: serde_json::Map<String, Value> =
        ["/json", "/redirect", "/empty", "/denied", "/broken"]
            .iter()
            .map(|path| {
                (
                    (*path).to_owned(),
                    json!({"post": {"operationId": path.trim_start_matches('/')}}),
                )
            })
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
        ("HELD", "held-s3cret"),
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
        let flags = ["--log-level", level, "--header-env", "X-Held=HELD"];
        let mut session = Session::serving_with(&spec, &upstream, &flags, &variables);
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
    let received = upstream.take_all();
    assert_eq!(received.len(), 15);
    assert!(
        received
            .iter()
            .all(|request| request.header("x-held") == Some("held-s3cret"))
    );
    let help = run(&["serve", "--help"]);
    clean("--help", &stdout(&help));
}

#[test]
fn p41_a_credential_that_comes_back_escaped_or_in_another_charset_is_taken_out() {
    let upstream = Upstream::start(Box::new(|request| {
        let json = r#"{"authorization":"Bearer QWxh\u002bZGRpb\u002fjpvcGVuI\u003d\u003d","QWxh\u002bZGRpb/jpvcGVuI==":1}"#;
        let wide = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>()
        };
        let page = b"<h1>Bearer QWxh&#43;ZGRpb&#x2F;jpvcGVuI&#61;&equals;</h1>";
        match request.path() {
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
    let mut session = Session::start_with(&args, &[("TOK", "Bearer QWxh+ZGRpb/jpvcGVuI==")]);
    for tool in tools {
        let said = session.call(tool, &json!({})).to_string();
        assert!(said.contains("[redacted]"), "{tool}: {said}");
        for part in ["QWxh", "ZGRpb", "jpvcGVuI", "Z\\u0000G"] {
            assert!(!said.contains(part), "{tool}: {said}");
        }
    }
}

/// A plain header is not a secret: its words are those of replies as well.
#[test]
fn p41_the_values_of_plain_headers_stay_in_replies() {
    let said = r#"{"created":"2022-06-28T10:00:00Z","tenant":"platform","acct":123456789012,"url":"https://h/platform"}"#;
    let upstream = Upstream::start(Box::new(|_| {
        reply(200, &["Content-Type: application/json"], said.as_bytes())
    }));
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "call"}}}));
    let flags = [
        "--header",
        "Accept: application/json",
        "--header",
        "Notion-Version: 2022-06-28",
        "--header",
        "X-Tenant: platform",
        "--header",
        "X-Account-Id: 123456789012",
    ];
    let result = Session::serving_with(&spec, &upstream, &flags, &[]).call("call", &json!({}));
    assert_eq!(result["content"][0]["text"], said, "{result}");
    assert_eq!(
        upstream.take_one().header("notion-version"),
        Some("2022-06-28")
    );
}

#[test]
fn p41_a_secret_header_never_changes_how_a_reply_is_read() {
    let upstream = Upstream::start(Box::new(|_| {
        let body = br#"{"type":"application/json","acct":123456789012,"id":123456789012345,"123456789012":1}"#;
        reply(200, &["Content-Type: application/json"], body)
    }));
    let schema = json!({"type": "object", "properties": {"acct": {"type": "integer"}}});
    let response =
        json!({"200": {"description": "", "content": {"application/json": {"schema": schema}}}});
    let spec = SpecFile::with_paths(
        &json!({"/a": {"get": {"operationId": "call", "responses": response}}}),
    );
    let flags = [
        "--header-env",
        "X-Type=TYPE",
        "--header-env",
        "X-Account=ACCOUNT",
    ];
    let variables = [("TYPE", "application/json"), ("ACCOUNT", "123456789012")];
    for (schemas, number) in [("lenient", json!("[redacted]")), ("strict", json!(0))] {
        let key = format!("output_schemas: {schemas}");
        let flags = [&flags[..], &[&key]].concat();
        let result =
            Session::serving_with(&spec, &upstream, &flags, &variables).call("call", &json!({}));
        let expected = json!({"type": "[redacted]", "acct": number, "id": 123_456_789_012_345_u64, "[redacted]": 1});
        let expected = if schemas == "strict" {
            json!({"result": expected})
        } else {
            expected
        };
        assert_eq!(result["structuredContent"], expected, "{result}");
        assert_eq!(result["content"][0]["text"], expected.to_string());
    }
}

#[test]
fn p41_a_plain_header_is_secret_where_its_name_or_the_document_says_so() {
    let upstream = Upstream::start(Box::new(|request| {
        let headers = serde_json::to_string(&request.headers).unwrap();
        reply(200, &["Content-Type: application/json"], headers.as_bytes())
    }));
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {"/a": {"get": {"operationId": "call"}}},
            "components": {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Tenant-Pin"}}}})
        .to_string(),
    );
    for name in [
        "X-Api-Key",
        "PRIVATE-TOKEN",
        "X-Client-Secret",
        "X-Auth",
        "Cookie",
        "X-Tenant-Pin",
    ] {
        let flag = format!("{name}: abc-12345");
        let result = Session::serving_with(&spec, &upstream, &["--header", &flag], &[])
            .call("call", &json!({}));
        let said = result.to_string();
        assert!(
            said.contains("[redacted]") && !said.contains("abc-12345"),
            "{name}: {said}"
        );
    }
}
