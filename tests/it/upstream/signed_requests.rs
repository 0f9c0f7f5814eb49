//! Requests that are signed for AWS, through the binary: each signature is computed once more from
//! what came over the wire. `tests/signatures` does the same with the library of AWS.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use aws_lc_rs::{digest, hmac};
use serde_json::{Value, json};

use crate::support::{
    HttpServer, Received, Session, SpecFile, Upstream, call_message, command, reply, run, stderr,
    stdout, text, wait_until,
};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "IQoJb3JpZ2luX2VjEXAMPLE/token+with==";
const JSON: [&str; 1] = ["Content-Type: application/json"];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// AWS's `UriEncode`, with slashes kept if it is for a path.
fn uri_encode(bytes: &[u8], keeps_slashes: bool) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || keeps_slashes && *byte == b'/'
        {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

/// The authorization of a request: identifier of the key, scope, names of the signed headers, and
/// signature.
struct Authorization {
    key: String,
    scope: Vec<String>,
    signed: Vec<String>,
    signature: String,
}

fn authorization(request: &Received) -> Authorization {
    let text = request.header("authorization").expect("a signature");
    let parts = text
        .strip_prefix("AWS4-HMAC-SHA256 ")
        .expect("the algorithm");
    let part = |name: &str| {
        let found = parts.split(", ").find_map(|part| part.strip_prefix(name));
        found.expect("a part").to_owned()
    };
    let credential = part("Credential=");
    let (key, scope) = credential.split_once('/').unwrap();
    Authorization {
        key: key.into(),
        scope: scope.split('/').map(str::to_owned).collect(),
        signed: part("SignedHeaders=")
            .split(';')
            .map(str::to_owned)
            .collect(),
        signature: part("Signature="),
    }
}

/// The signature that a request must have, by "Create a signed AWS API request" of the reference of
/// IAM.
fn expected_signature(request: &Received, secret: &str) -> String {
    let Authorization { scope, signed, .. } = authorization(request);
    let [date, region, service, end] = scope.as_slice() else {
        panic!("{scope:?}")
    };
    assert_eq!(end, "aws4_request");
    let (method, rest) = request.line.split_once(' ').unwrap();
    let target = rest.split(' ').next().unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = if service == "s3" {
        path.to_owned()
    } else {
        uri_encode(path.as_bytes(), true)
    };
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let mut pairs: Vec<String> = pairs
        .map(|(name, value)| {
            format!(
                "{}={}",
                uri_encode(name.as_bytes(), false),
                uri_encode(value.as_bytes(), false)
            )
        })
        .collect();
    pairs.sort();
    let headers: String = signed
        .iter()
        .map(|name| {
            let value: Vec<&str> = request
                .header(name)
                .expect("a signed header")
                .split_whitespace()
                .collect();
            format!("{name}:{}\n", value.join(" "))
        })
        .collect();
    let canonical = format!(
        "{method}\n{path}\n{}\n{headers}\n{}\n{}",
        pairs.join("&"),
        signed.join(";"),
        sha256(&request.body)
    );
    let stamp = request.header("x-amz-date").unwrap();
    let text = format!(
        "AWS4-HMAC-SHA256\n{stamp}\n{}\n{}",
        scope.join("/"),
        sha256(canonical.as_bytes())
    );
    let mac = |key: &[u8], text: &str| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
            .as_ref()
            .to_vec()
    };
    let parts = [date.as_str(), region, service, end];
    let key = parts
        .iter()
        .fold(format!("AWS4{secret}").into_bytes(), |key, part| {
            mac(&key, part)
        });
    hex(&mac(&key, &text))
}

/// Returns true if a request has the signature that this secret key makes.
pub(crate) fn is_signed(request: &Received, secret: &str) -> bool {
    authorization(request).signature == expected_signature(request, secret)
}

fn assert_signed(request: &Received, secret: &str) -> Authorization {
    let found = authorization(request);
    let (line, headers) = (&request.line, &request.headers);
    assert_eq!(
        found.signature,
        expected_signature(request, secret),
        "{line} {headers:?}"
    );
    found
}

/// The scheme as API Gateway exports it.
fn scheme() -> Value {
    json!({"type": "apiKey", "name": "Authorization", "in": "header", "x-amazon-apigateway-authtype": "awsSigv4"})
}

fn spec() -> SpecFile {
    let header = |name: &str| json!({"name": name, "in": "header", "schema": {"type": "string"}});
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let file = json!({"type": "string", "format": "binary"});
    let form = json!({"type": "object", "properties": {"note": {"type": "string"}, "file": file}});
    SpecFile::new(
        &json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "components": {"securitySchemes": {"hmac": scheme()}},
            "security": [{"hmac": []}],
            "paths": {
                "/pets/{name}": {
                    "parameters": [header("X-Amz-Date"), header("x-amz-security-token"), header("X-Amz-Content-Sha256"), header("Authorization"),
                        query("X-Amz-Signature"), query("X-Amz-SignedHeaders"), header("X-Amz-Target"),
                        {"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}],
                    "get": {"operationId": "pet", "parameters": [
                        {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                        {"name": "more", "in": "query", "schema": {"type": "object", "additionalProperties": {"type": "string"}}}]},
                    "put": {"operationId": "put_file", "requestBody": {"content": {"application/octet-stream": {"schema": file}}}},
                    "post": {"operationId": "send_form", "requestBody": {"content": {"multipart/form-data": {"schema": form}}}}},
                "/free": {"get": {"operationId": "free", "security": []}}}})
        .to_string(),
    )
}

struct Setup {
    folder: tempfile::TempDir,
    spec: SpecFile,
}

impl Setup {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            spec: spec(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The configuration file of a server whose scheme has these settings.
    fn config(&self, url: &str, signature: &Value, more: &Value) -> String {
        let mut config = json!({"spec": self.spec.path(), "base_url": url, "auth": {"hmac": {"sigv4": signature}}});
        config
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        std::fs::write(self.path("config.yaml"), config.to_string()).unwrap();
        self.path("config.yaml")
    }
}

/// Keys by reference, and a session token.
fn by_reference() -> Value {
    json!({"region": "eu-central-1", "service": "execute-api", "access_key_id": {"env": "KEY_ID"},
        "secret_access_key": {"env": "KEY"}, "session_token": {"env": "SESSION"}})
}

const KEY_VARIABLES: [(&str, &str); 3] = [
    ("KEY_ID", "AKIDEXAMPLE"),
    ("KEY", SECRET),
    ("SESSION", TOKEN),
];
const AWS_VARIABLES: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT"),
    ("AWS_SECRET_ACCESS_KEY", SECRET),
    ("AWS_SESSION_TOKEN", TOKEN),
];

#[test]
fn p85_each_request_is_signed_as_it_leaves_and_nothing_of_the_credential_comes_back() {
    // Answers like AWS does to a signature that is wrong: with all of what was signed.
    let upstream = Upstream::start(Box::new(|request| {
        let said = json!({"Authorization": request.header("authorization"), "CanonicalString": request.headers.join("\n"), "Secret": SECRET});
        reply(200, &JSON, said.to_string().as_bytes())
    }));
    let setup = Setup::new();
    std::fs::write(setup.path("large"), vec![7_u8; 300_000]).unwrap();
    let config = setup.config(
        &format!("{}/stage", upstream.url),
        &by_reference(),
        &json!({"allow_file_args": setup.folder.path(), "log_level": "trace"}),
    );
    let mut session = Session::start_with(&["serve", "--config", &config], &KEY_VARIABLES);
    for (tool, arguments) in [
        (
            "pet",
            json!({"name": "a b:c(d)'é*", "tag": ["b", "a", "", "a b+c", "ü"], "more": {"q": "~%41"}}),
        ),
        ("put_file", json!({"name": "x", "body": {"path": "large"}})),
        ("put_file", json!({"name": "x", "body": {"data": ""}})),
        (
            "send_form",
            json!({"name": "x", "X-Amz-Target": "a  b", "body": {"note": "n", "file": {"path": "large"}}}),
        ),
    ] {
        let result = session.call(tool, &arguments);
        let request = upstream.take_one();
        let signed = assert_signed(&request, SECRET);
        assert_eq!(
            (signed.key.as_str(), &signed.scope[1..3]),
            (
                "AKIDEXAMPLE",
                &["eu-central-1".to_owned(), "execute-api".to_owned()][..]
            )
        );
        assert!(
            ["host", "x-amz-date", "x-amz-security-token"]
                .iter()
                .all(|name| signed.signed.iter().any(|own| own == name))
        );
        assert_eq!(request.header("x-amz-security-token"), Some(TOKEN));
        assert_eq!(request.header("x-amz-content-sha256"), None, "it is for S3");
        let shown = result.to_string();
        assert!(
            shown.contains("AKIDEXAMPLE") && shown.contains("[redacted]"),
            "{shown}"
        );
        for secret in [SECRET, TOKEN, &signed.signature] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    session.call("free", &json!({}));
    assert_eq!(upstream.take_one().header("authorization"), None);
    let logs = session.end();
    assert!(
        !logs.contains(SECRET) && !logs.contains(TOKEN) && !logs.contains("Signature="),
        "{logs}"
    );
}

#[test]
fn p85_what_a_signature_sets_is_no_argument_and_is_not_forwarded() {
    let (upstream, setup) = (Upstream::echo(), Setup::new());
    let more = json!({"transport": "http", "forward_authorization": true,
        "forward_header": ["Authorization", "X-Amz-Date", "X-Mine=X-Amz-Security-Token", "X-Amz-Trace"]});
    let mut signature = by_reference();
    signature.as_object_mut().unwrap().remove("session_token");
    let config = setup.config(&upstream.url, &signature, &more);
    let server = HttpServer::start_with(&["--config", &config], &KEY_VARIABLES);
    let list = server
        .send("POST", &[], crate::support::LIST)
        .1
        .to_ascii_lowercase();
    for name in [
        "x-amz-date",
        "x-amz-security-token",
        "x-amz-content-sha256",
        "x-amz-signature",
        "x-amz-signedheaders",
        "\"authorization",
    ] {
        assert!(!list.contains(name), "{name}: {list}");
    }
    assert!(list.contains("x-amz-target"), "{list}");
    let client = [
        "Authorization: Bearer theirs",
        "X-Amz-Date: 20000101T000000Z",
        "X-Mine: theirs",
        "X-Amz-Trace: t",
    ];
    server.send("POST", &client, &call_message("pet", r#"{"name":"x"}"#));
    let request = upstream.take_one();
    assert_signed(&request, SECRET);
    assert_eq!(request.header("x-amz-security-token"), None, "{request:?}");
    assert_eq!(request.header("x-amz-trace"), Some("t"));
    assert!(
        !request.header("x-amz-date").unwrap().starts_with("2000"),
        "{request:?}"
    );
    // A parameter without a fixed name must not bring a second signature.
    let (_, answer) = server.send(
        "POST",
        &[],
        &call_message(
            "pet",
            r#"{"name":"x","more":{"x-amz-CREDENTIAL":"theirs"}}"#,
        ),
    );
    assert!(answer.contains("is a part of the signature"), "{answer}");
    assert!(upstream.take_all().is_empty());
}

#[test]
fn a_dry_run_and_a_call_without_settings_say_what_is_signed() {
    let (upstream, setup) = (Upstream::echo(), Setup::new());
    let config = setup.config(&upstream.url, &by_reference(), &json!({}));
    let output = command(&["call", "--config", &config, "--dry-run", "pet", "name=x"])
        .envs(KEY_VARIABLES)
        .output()
        .unwrap();
    assert!(
        stdout(&output)
            .to_ascii_lowercase()
            .contains("x-amz-date: ***"),
        "{}",
        stdout(&output)
    );
    assert!(upstream.take_all().is_empty());

    let plain = ["--spec", setup.spec.path(), "--base-url", &upstream.url];
    let output = run(&[&["check"], &plain[..]].concat());
    assert!(
        stdout(&output)
            .contains("`auth.hmac.sigv4` in the configuration file (AWS Signature Version 4)"),
        "{}",
        stdout(&output)
    );
    let output = run(&[&["call"], &plain[..], &["pet", "name=x"]].concat());
    let said = [stdout(&output), stderr(&output)].concat();
    assert!(
        said.contains("`auth.hmac.sigv4` in the configuration file (AWS Signature Version 4)"),
        "{said}"
    );
    assert!(upstream.take_all().is_empty());
}

#[test]
fn s3_gets_the_hash_of_the_body_and_one_encoding_of_the_path() {
    let (upstream, setup) = (Upstream::echo(), Setup::new());
    let mut signature = by_reference();
    signature["service"] = "s3".into();
    let config = setup.config(&upstream.url, &signature, &json!({}));
    let mut session = Session::start_with(&["serve", "--config", &config], &KEY_VARIABLES);
    session.call(
        "put_file",
        &json!({"name": "a+b (c)&ä", "body": {"data": "aGk="}}),
    );
    let request = upstream.take_one();
    assert_signed(&request, SECRET);
    assert_eq!(request.path(), "/pets/a%2Bb%20%28c%29%26%C3%A4");
    assert_eq!(
        request.header("x-amz-content-sha256"),
        Some(sha256(b"hi").as_str())
    );
}

#[test]
fn a_retry_signs_again_and_bodies_with_files_too() {
    let asked = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |_| {
        let status = if asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            503
        } else {
            200
        };
        reply(status, &JSON, b"{}")
    }));
    let setup = Setup::new();
    std::fs::write(setup.path("f"), b"bytes of a file").unwrap();
    let more = json!({"allow_file_args": setup.folder.path(), "overrides": [{"match": {"operation": "send_form"}, "annotations": {"idempotentHint": true}}]});
    let config = setup.config(&upstream.url, &by_reference(), &more);
    let mut session = Session::start_with(&["serve", "--config", &config], &KEY_VARIABLES);
    for (tool, body) in [
        ("put_file", json!({"path": "f"})),
        ("send_form", json!({"file": {"path": "f"}})),
    ] {
        let result = session.call(tool, &json!({"name": "x", "body": body}));
        assert_eq!(result["isError"], false, "{result}");
        let requests = upstream.take_all();
        assert_eq!(requests.len(), 2, "{requests:?}");
        for request in &requests {
            assert!(String::from_utf8_lossy(&request.body).contains("bytes of a file"));
            assert_signed(request, SECRET);
        }
    }
}

#[test]
fn a_clock_that_is_off_is_named_and_nothing_is_sent_twice() {
    for (status, minutes, is_named) in [
        (403, 20, true),
        (400, -20, true),
        (403, 1, false),
        (404, 20, false),
    ] {
        let upstream = Upstream::start(Box::new(move |_| {
            let now = SystemTime::now();
            let offset = Duration::from_secs(60 * u64::from(i32::unsigned_abs(minutes)));
            let theirs = if minutes > 0 {
                now + offset
            } else {
                now - offset
            };
            let date = format!("Date: {}", httpdate::fmt_http_date(theirs));
            reply(
                status,
                &[JSON[0], &date],
                br#"{"message":"Signature expired"}"#,
            )
        }));
        let setup = Setup::new();
        let config = setup.config(&upstream.url, &by_reference(), &json!({}));
        let mut session = Session::start_with(&["serve", "--config", &config], &KEY_VARIABLES);
        let result = session.call("pet", &json!({"name": "x"})).to_string();
        let direction = if minutes > 0 { "behind" } else { "ahead of" };
        let minutes = minutes.abs();
        // A second may pass, or the date lose a fraction of one.
        let words = [minutes - 1, minutes].map(|minutes| {
            format!("The clock of this server is {minutes} minutes {direction} that of the API")
        });
        assert_eq!(
            words.iter().any(|words| result.contains(words)),
            is_named,
            "{result}"
        );
        upstream.take_one();
    }
}

#[test]
fn p85_the_environment_is_read_only_for_an_api_that_says_so() {
    let (upstream, setup) = (Upstream::echo(), Setup::new());
    let environment =
        json!({"region": "r-1", "service": "execute-api", "credentials": "environment"});
    let api = |signature: &Value| json!({"spec": setup.spec.path(), "base_url": upstream.url, "auth": {"hmac": {"sigv4": signature}}});
    let config = json!({"apis": {"one": api(&environment), "two": api(&by_reference()),
        "three": {"spec": setup.spec.path(), "base_url": upstream.url}}});
    std::fs::write(setup.path("apis.yaml"), config.to_string()).unwrap();
    let variables = [KEY_VARIABLES, AWS_VARIABLES].concat();
    let mut session =
        Session::start_with(&["serve", "--config", &setup.path("apis.yaml")], &variables);
    for (tool, key) in [("one_pet", "AKIDENVIRONMENT"), ("two_pet", "AKIDEXAMPLE")] {
        session.call(tool, &json!({"name": "x"}));
        assert_eq!(assert_signed(&upstream.take_one(), SECRET).key, key);
    }
    let result = session.call("three_pet", &json!({"name": "x"}));
    assert!(text(&result).contains("`auth.hmac.sigv4`"), "{result}");
    assert!(upstream.take_all().is_empty());
}

/// An endpoint that issues keys, and how often it was asked. Keys end after that many seconds; the
/// number of the request is in their name.
fn container(seconds: u64, token: &'static str) -> (Upstream, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let upstream = Upstream::start(Box::new(move |request| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        if request.header("authorization") != Some(token) {
            return reply(
                403,
                &JSON,
                br#"{"code":"AccessDenied","message":"not this token"}"#,
            );
        }
        let keys = json!({"AccessKeyId": format!("ASIA{number}"), "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": rfc3339(seconds)});
        reply(200, &JSON, keys.to_string().as_bytes())
    }));
    (upstream, asked)
}

fn rfc3339(seconds: u64) -> String {
    let end = jiff::Timestamp::try_from(SystemTime::now() + Duration::from_secs(seconds)).unwrap();
    end.round(jiff::Unit::Second).unwrap().to_string()
}

fn environment() -> Value {
    json!({"region": "eu-central-1", "service": "execute-api", "credentials": "environment"})
}

#[test]
fn the_endpoint_of_a_container_is_asked_once_for_all_calls_and_again_before_its_keys_end() {
    let setup = Setup::new();
    std::fs::write(setup.path("token"), "container-t0ken\n").unwrap();
    let file = setup.path("token");
    let tokens = [
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-t0ken"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file.as_str()),
    ];
    // Keys that end in more than five minutes are kept, others are renewed in the background.
    for (token, (seconds, is_renewed)) in tokens.into_iter().zip([(3600, false), (240, true)]) {
        let (keys, asked) = container(seconds, "container-t0ken");
        let upstream = Upstream::echo();
        let config = setup.config(&upstream.url, &environment(), &json!({}));
        let url = format!("{}/v1/credentials", keys.url);
        let variables = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()), token];
        let mut session = Session::start_with(&["serve", "--config", &config], &variables);
        assert_eq!(
            asked.load(Ordering::SeqCst),
            0,
            "keys are requested with the first call"
        );
        for number in 0..20 {
            session.send(
                &json!({"jsonrpc": "2.0", "id": format!("c{number}"), "method": "tools/call",
                "params": {"name": "pet", "arguments": {"name": "x"}}}),
            );
        }
        for _ in 0..20 {
            assert_eq!(session.receive()["result"]["isError"], false);
        }
        for request in upstream.take_all() {
            assert_eq!(assert_signed(&request, SECRET).key, "ASIA0");
            assert_eq!(request.header("x-amz-security-token"), Some(TOKEN));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        if is_renewed {
            wait_until("the keys were not renewed", || {
                session.call("pet", &json!({"name": "x"}));
                assert_signed(&upstream.take_one(), SECRET).key == "ASIA1"
            });
        }
    }
}

#[test]
fn without_keys_nothing_is_sent_and_the_result_says_why() {
    let (keys, _) = container(3600, "another-t0ken");
    let upstream = Upstream::echo();
    let setup = Setup::new();
    let config = setup.config(&upstream.url, &environment(), &json!({}));
    let url = format!("{}/v1/credentials", keys.url);
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-t0ken"),
    ];
    let mut session = Session::start_with(&["serve", "--config", &config], &variables);
    let result = session.call("pet", &json!({"name": "x"}));
    assert_eq!(result["isError"], true);
    let said = "nothing was sent, because there are no AWS credentials for the security scheme `hmac`: the endpoint for credentials answered 403 (AccessDenied)";
    assert!(text(&result).contains(said), "{result}");
    assert!(upstream.take_all().is_empty());
    let logs = session.end();
    assert!(
        logs.contains("not this token") && !logs.contains("container-t0ken"),
        "{logs}"
    );
}

#[test]
fn an_endpoint_that_gives_no_keys_is_not_asked_by_every_call_and_asked_again_later() {
    let (keys, asked) = container(3600, "another-t0ken");
    let upstream = Upstream::echo();
    let setup = Setup::new();
    let config = setup.config(&upstream.url, &environment(), &json!({}));
    let url = format!("{}/v1/credentials", keys.url);
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-t0ken"),
    ];
    let mut session = Session::start_with(&["serve", "--config", &config], &variables);
    let mut calls = 0;
    wait_until("the endpoint is not asked again", || {
        calls += 1;
        let result = session.call("pet", &json!({"name": "x"}));
        assert!(
            text(&result).contains("the endpoint for credentials answered 403"),
            "{result}"
        );
        asked.load(Ordering::SeqCst) > 1
    });
    assert!(
        calls > 10 && asked.load(Ordering::SeqCst) == 2,
        "{calls} calls"
    );
}

#[test]
fn a_web_identity_assumes_its_role_at_the_token_service() {
    let service = Upstream::start(Box::new(|request| {
        let form: BTreeMap<String, String> = url::form_urlencoded::parse(&request.body)
            .into_owned()
            .collect();
        let expected = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("RoleArn", "arn:aws:iam::123456789012:role/reader"),
            ("RoleSessionName", "reports"),
            ("Version", "2011-06-15"),
            ("WebIdentityToken", "the.web.token"),
        ];
        let is_expected = form
            == expected
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        let (status, inside) = if is_expected {
            (
                200,
                format!(
                    "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAWEB</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{TOKEN}</SessionToken><Expiration>{}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>",
                    rfc3339(3600)
                ),
            )
        } else {
            (
                400,
                "<Error><Code>InvalidIdentityToken</Code><Message>No: the.web.token</Message></Error>".to_owned(),
            )
        };
        let body = format!(
            "<Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n{inside}\n</Response>"
        );
        reply(status, &["Content-Type: text/xml"], body.as_bytes())
    }));
    let upstream = Upstream::echo();
    let setup = Setup::new();
    std::fs::write(setup.path("token"), "the.web.token\n").unwrap();
    let config = setup.config(&upstream.url, &environment(), &json!({}));
    let file = setup.path("token");
    let role = |name: &'static str| {
        [
            ("AWS_WEB_IDENTITY_TOKEN_FILE", file.as_str()),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader"),
            ("AWS_ROLE_SESSION_NAME", name),
            ("AWS_ENDPOINT_URL_STS", service.url.as_str()),
        ]
    };
    let mut session = Session::start_with(&["serve", "--config", &config], &role("reports"));
    let result = session.call("pet", &json!({"name": "x"}));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(assert_signed(&upstream.take_one(), SECRET).key, "ASIAWEB");

    let mut session = Session::start_with(&["serve", "--config", &config], &role("others"));
    let result = session.call("pet", &json!({"name": "x"}));
    assert!(
        text(&result).contains("answered 400 (InvalidIdentityToken)"),
        "{result}"
    );
    assert!(!session.end().contains("the.web.token"));
    assert!(upstream.take_all().is_empty());
}

#[test]
fn the_host_of_the_api_gives_region_and_service() {
    let setup = Setup::new();
    let keys = json!({"access_key_id": {"env": "KEY_ID"}, "secret_access_key": {"env": "KEY"}});
    let config = setup.config(
        "https://abc.execute-api.eu-central-1.amazonaws.com/stage",
        &keys,
        &json!({}),
    );
    let output = command(&["call", "--config", &config, "--dry-run", "pet", "name=x"])
        .envs(KEY_VARIABLES)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn p85_a_tenant_signs_with_its_own_keys() {
    let (acme, other, setup) = (Upstream::echo(), Upstream::echo(), Setup::new());
    let entries = json!({"acme": {"base_url": acme.url, "auth": {"hmac": {"sigv4": by_reference()}}}, "other": {"base_url": other.url}});
    let config = json!({"spec": setup.spec.path(), "transport": "http", "tenants": {"header": "X-Tenant", "entries": entries}});
    std::fs::write(setup.path("tenants.yaml"), config.to_string()).unwrap();
    let server = HttpServer::start_with(&["--config", &setup.path("tenants.yaml")], &KEY_VARIABLES);
    let call = call_message("pet", r#"{"name":"x"}"#);
    server.send("POST", &["X-Tenant: acme"], &call);
    assert_signed(&acme.take_one(), SECRET);
    let (_, answer) = server.send("POST", &["X-Tenant: other"], &call);
    assert!(
        answer.contains("`auth.hmac.sigv4` of its tenant"),
        "{answer}"
    );
    assert!(other.take_all().is_empty());
}
