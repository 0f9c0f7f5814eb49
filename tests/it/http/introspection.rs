//! HTTP clients with access tokens that are not JWTs, about which the issuer is asked (RFC 7662).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::auth_oauth::{Signer, now};
use crate::support::http_server::{answer_header, http_request};
use crate::support::{
    HttpServer, LIST, SpecFile, Upstream, call_message, petstore, reply, run, stderr, wait_until,
    within,
};

const SECRET: &str = "s3cret-of-the-gateway";
const AUDIENCE: &str = "https://mcp.example/mcp";

/// An issuer without keys that knows tokens by their text.
struct Issuer {
    server: Upstream,
    answers: Arc<Mutex<Value>>,
    is_down: Arc<AtomicBool>,
}

impl Issuer {
    fn start(answers: Value, takes_header: bool) -> Self {
        let answers = Arc::new(Mutex::new(answers));
        let is_down = Arc::new(AtomicBool::new(false));
        let (known, down) = (Arc::clone(&answers), Arc::clone(&is_down));
        let server = Upstream::start(Box::new(move |request| {
            if request.path() != "/introspect" {
                return reply(404, &[], b"");
            }
            if down.load(Ordering::SeqCst) {
                return reply(503, &[], b"");
            }
            let form: std::collections::HashMap<String, String> =
                form_urlencoded::parse(&request.body).into_owned().collect();
            let basic = format!(
                "Basic {}",
                BASE64_STANDARD.encode(format!("gateway:{SECRET}"))
            );
            let in_body = form
                .get("client_secret")
                .is_some_and(|secret| secret == SECRET);
            let is_client = if takes_header {
                request.header("authorization") == Some(&basic)
            } else {
                in_body
            };
            if !is_client {
                return reply(
                    401,
                    &["Content-Type: application/json"],
                    br#"{"error":"invalid_client"}"#,
                );
            }
            assert_eq!(form["token_type_hint"], "access_token");
            let answer = known.lock().unwrap().get(&form["token"]).cloned();
            let answer = answer.unwrap_or_else(|| json!({"active": false}));
            let text = answer
                .as_str()
                .map_or_else(|| answer.to_string(), str::to_owned);
            reply(200, &["Content-Type: application/json"], text.as_bytes())
        }));
        Self {
            server,
            answers,
            is_down,
        }
    }

    fn serve(&self, spec: &str, more: &[&str]) -> HttpServer {
        let endpoint = format!("{}/introspect", self.server.url);
        let args = [
            "--spec",
            spec,
            "--mock",
            "--public-url",
            AUDIENCE,
            "--oauth-issuer",
            &self.server.url,
            &format!("oauth_introspection_url: {endpoint}"),
            "oauth_client_id: gateway",
            "oauth_client_secret_env: GATEWAY_SECRET",
        ];
        HttpServer::start_with(&[&args[..], more].concat(), &[("GATEWAY_SECRET", SECRET)])
    }

    fn questions(&self) -> usize {
        let received = self.server.received();
        received
            .iter()
            .filter(|request| request.path() == "/introspect")
            .count()
    }
}

fn post(server: &HttpServer, token: &str, body: &str) -> (u16, String) {
    let authorization = format!("Authorization: Bearer {token}");
    server.send("POST", &["Host: mcp.example", &authorization], body)
}

fn claims(more: &Value) -> Value {
    let mut claims = json!({"active": true, "aud": AUDIENCE, "exp": now() + 300, "sub": "alice"});
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

#[test]
fn p55_a_token_that_is_not_a_jwt_is_good_if_the_issuer_says_so() {
    let without_audience = json!({"active": true, "exp": now() + 300, "sub": "alice"});
    let answers = json!({
        "good": claims(&json!({})),
        "list": claims(&json!({"aud": ["other", AUDIENCE]})),
        "endless": {"active": true, "aud": AUDIENCE, "client_id": "robot"},
        "text": claims(&json!({"active": "true"})),
        "stranger": claims(&json!({"iss": "https://other.example"})),
        "elsewhere": claims(&json!({"aud": "https://other.example"})),
        "nowhere": without_audience,
        "old": claims(&json!({"exp": now() - 60})),
        "early": claims(&json!({"nbf": now() + 600})),
        "beyond": claims(&json!({"exp": 9.3e18})),
        "bearer": claims(&json!({"token_type": "Bearer"})),
        "refresh": claims(&json!({"token_type": "refresh_token"})),
        "offline": claims(&json!({"typ": "Offline"})),
        "identity": claims(&json!({"token_use": "id_token"})),
        "three.parts.opaque": claims(&json!({})),
    });
    for takes_header in [true, false] {
        let issuer = Issuer::start(answers.clone(), takes_header);
        let server = issuer.serve(&petstore(), &[]);
        for (token, expected, why) in [
            ("good", 200, ""),
            ("list", 200, ""),
            ("endless", 200, ""),
            ("text", 401, "the token is not active"),
            ("unknown", 401, "the token is not active"),
            ("stranger", 401, "another issuer"),
            ("elsewhere", 401, "another audience"),
            ("nowhere", 401, "for which audience"),
            ("old", 401, "expired"),
            ("early", 401, "not valid yet"),
            ("beyond", 401, "lacks a valid exp"),
            ("bearer", 200, ""),
            ("refresh", 401, "not an access token"),
            ("offline", 401, "not an access token"),
            ("identity", 401, "not an access token"),
            ("three.parts.opaque", 200, ""),
        ] {
            let (status, answer) = post(&server, token, LIST);
            assert_eq!(status, expected, "{token}: {answer}");
            assert!(answer.contains(why), "{token}: {answer}");
        }
        // Answers are kept: none of the same tokens is asked about again.
        let asked = issuer.questions();
        (0..5).for_each(|_| assert_eq!(post(&server, "good", LIST).0, 200));
        assert_eq!(post(&server, "unknown", LIST).0, 401);
        assert_eq!(issuer.questions(), asked);
        assert!(!server.logs().contains(SECRET));
    }
}

#[test]
fn p55_no_jwt_is_asked_about_and_no_answer_lets_nobody_in() {
    let twice = r#"{"active":true,"active":true,"aud":"https://mcp.example/mcp"}"#;
    let issuer = Issuer::start(
        json!({"good": claims(&json!({})), "twice": twice, "later": claims(&json!({}))}),
        true,
    );
    let server = issuer.serve(&petstore(), &[]);
    // The issuer has no keys, so that no JWT can be verified; it is not asked about one either.
    let jwt = Signer::rsa().token(
        &json!({"alg": "RS256"}),
        &claims(&json!({"iss": issuer.server.url})),
    );
    issuer.answers.lock().unwrap()[&jwt] = claims(&json!({}));
    assert_eq!(post(&server, &jwt, LIST).0, 503);
    // Nor about one whose header cannot be read.
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"HS999"}"#,
        r#"{"typ":"JWT"}"#,
        "{}",
        "{ \"alg\": 5 }",
        r#"{"alg"#,
    ] {
        let rest = jwt.split_once('.').unwrap().1;
        for header in [
            BASE64_URL_SAFE_NO_PAD.encode(header),
            BASE64_STANDARD.encode(header),
        ] {
            for token in [format!("{header}.{rest}"), format!("{header}.a.b.c.d")] {
                issuer.answers.lock().unwrap()[&token] = claims(&json!({}));
                let (status, answer) = post(&server, &token, LIST);
                assert_eq!(status, 401, "{token}: {answer}");
                assert!(
                    answer.contains("whose header cannot be read"),
                    "{token}: {answer}"
                );
            }
        }
    }
    assert_eq!(issuer.questions(), 0);
    assert_eq!(post(&server, "good", LIST).0, 200);
    assert_eq!(post(&server, "twice", LIST).0, 503);
    issuer.is_down.store(true, Ordering::SeqCst);
    assert_eq!(
        post(&server, "good", LIST).0,
        200,
        "what is kept counts until its end"
    );
    let (status, answer) = post(&server, "later", LIST);
    assert_eq!(status, 503, "{answer}");
    assert_eq!(answer_header(&answer, "retry-after"), Some("5"), "{answer}");
    for number in 0..5 {
        assert_eq!(post(&server, &format!("stranger-{number}"), LIST).0, 503);
    }
    let log = "the introspection endpoint answered 503";
    assert_eq!(server.logged(log).matches(log).count(), 1);
}

/// An issuer that answers a question about a made-up token when it is told to, and others at once.
struct SlowIssuer {
    issuer: Issuer,
    release: Sender<()>,
}

impl SlowIssuer {
    fn start() -> Self {
        let (release, released) = channel();
        let released = Mutex::new(released);
        let server = Upstream::start(Box::new(move |request| {
            if request.path() != "/introspect" {
                return reply(404, &[], b"");
            }
            let form: std::collections::HashMap<String, String> =
                form_urlencoded::parse(&request.body).into_owned().collect();
            let is_good = form["token"].starts_with("good");
            if !is_good {
                let _ = released.lock().unwrap().recv();
            }
            let answer = if is_good {
                claims(&json!({"sub": form["token"]}))
            } else {
                json!({"active": false})
            };
            reply(
                200,
                &["Content-Type: application/json"],
                answer.to_string().as_bytes(),
            )
        }));
        let issuer = Issuer {
            server,
            answers: Arc::default(),
            is_down: Arc::default(),
        };
        Self { issuer, release }
    }
}

/// Sends a request that comes from an address of this machine.
#[cfg(target_os = "linux")]
fn send_from(server: &HttpServer, address: [u8; 4], token: &str) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((address, 0).into())?;
        socket
            .connect(server.address.parse().unwrap())
            .await?
            .into_std()
    });
    let mut stream = stream.unwrap();
    stream.set_nonblocking(false).unwrap();
    let authorization = format!("Authorization: Bearer {token}");
    let request = http_request(
        "mcp.example",
        "POST",
        &[&authorization, "Connection: close"],
        LIST,
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[cfg(target_os = "linux")]
fn status_of(mut stream: TcpStream) -> Option<u16> {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

#[cfg(target_os = "linux")]
#[test]
fn p45_made_up_tokens_do_not_keep_out_a_new_client() {
    const MADE_UP: usize = 200;
    let SlowIssuer { issuer, release } = SlowIssuer::start();
    let server = issuer.serve(&petstore(), &[]);
    std::thread::scope(|scope| {
        let (server, issuer) = (&server, &issuer);
        for number in 0..MADE_UP {
            scope.spawn(move || {
                status_of(send_from(
                    server,
                    [127, 0, 0, 1],
                    &format!("made-up-{number}"),
                ))
            });
        }
        wait_until("the address has all of its questions", || {
            issuer.questions() == 8
        });
        let asked = Instant::now();
        assert_eq!(
            status_of(send_from(server, [127, 0, 0, 2], "good-new")),
            Some(200)
        );
        assert!(asked.elapsed() < within(1), "{:?}", asked.elapsed());
        assert_eq!(
            issuer.questions(),
            9,
            "no more are asked for the other address"
        );
        // Of those that wait at one address, the newest is asked first.
        let newest = send_from(server, [127, 0, 0, 1], "good-at-the-same-address");
        let newest = scope.spawn(move || status_of(newest));
        let (questions, mut answered) = (issuer.questions(), 0);
        wait_until("the newest is never asked", || {
            // Each answer makes room for one question, which is waited for.
            if issuer.questions() >= questions + answered {
                answered += 1;
                release.send(()).unwrap();
            }
            newest.is_finished()
        });
        assert_eq!(newest.join().unwrap(), Some(200));
        assert!(answered < MADE_UP / 2, "{answered}");
        drop(release);
    });
}

#[test]
fn p58_a_token_that_must_be_asked_about_counts_for_its_address_before_it_is() {
    let issuer = Issuer::start(json!({"good": claims(&json!({}))}), true);
    let server = issuer.serve(&petstore(), &["client_rate_limit: 0.01"]);
    assert_eq!(post(&server, "made-up", LIST).0, 401);
    for number in 0..5 {
        let (status, answer) = post(&server, &format!("made-up-{number}"), LIST);
        assert_eq!(status, 429, "{answer}");
        assert!(answer_header(&answer, "retry-after").is_some(), "{answer}");
    }
    assert_eq!(issuer.questions(), 1);
}

#[test]
fn scopes_and_claims_of_an_introspected_token_count_like_those_of_a_jwt() {
    let issuer = Issuer::start(
        json!({
            "reader": claims(&json!({"scope": "read"})),
            "writer": claims(&json!({"scope": "read write", "groups": ["ops"]})),
        }),
        true,
    );
    let config = SpecFile::new(
        &json!({"access": [{"match": {"operation": "delete_pet"}, "claims": {"groups": ["ops"]}}]})
            .to_string(),
    );
    let server = issuer.serve(
        &petstore(),
        &[
            "oauth_read_scope: [read]",
            "oauth_write_scope: [write]",
            "--config",
            config.path(),
            "--allow-missing-credentials",
        ],
    );
    let delete = call_message("delete_pet", r#"{"petId":1}"#);
    let create = call_message("create_pet", r#"{"body":{"name":"x","photoUrls":[]}}"#);
    assert!(post(&server, "writer", LIST).1.contains("delete_pet"));
    assert!(!post(&server, "reader", LIST).1.contains("delete_pet"));
    assert_eq!(post(&server, "writer", &delete).0, 200);
    assert!(post(&server, "reader", &delete).1.contains("Unknown tool"));
    let (status, answer) = post(&server, "reader", &create);
    assert_eq!(status, 403, "{answer}");
    assert!(answer.contains("insufficient_scope"), "{answer}");
}

#[test]
fn p55_settings_of_an_introspection_that_cannot_be_safe_are_all_reported_at_start() {
    let spec = petstore();
    let start = [
        "serve",
        "--spec",
        &spec,
        "--mock",
        "--transport",
        "http",
        "--oauth-issuer",
        "https://login.example",
    ];
    let url = ["oauth_introspection_url: http://me:s3cret@login.example/introspect"];
    for (more, expected) in [
        (
            &url[..],
            &[
                "not an https URL without user",
                "needs `oauth_client_id`",
                "needs `oauth_client_secret_env`",
            ][..],
        ),
        (
            &["oauth_client_id: gateway"],
            &["needs `oauth_introspection_url`"],
        ),
        (
            &[
                "oauth_introspection_url: https://login.example/introspect",
                "oauth_client_id: ' '",
            ],
            &["`oauth_introspection_url` needs `oauth_client_id`"],
        ),
        (
            &["oauth_client_secret_env: NOT_SET_ANYWHERE"],
            &["needs `oauth_introspection_url`", "NOT_SET_ANYWHERE"],
        ),
    ] {
        let output = run(&[&start[..], more].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for words in expected {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!said.contains("s3cret"), "{said}");
    }
}
