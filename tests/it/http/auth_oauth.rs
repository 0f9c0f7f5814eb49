//! HTTP clients with access tokens of an OAuth issuer, which the tests run themselves: which tokens
//! are accepted, and the answers to the others.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::http_server::answer_header;
use crate::support::{
    HttpServer, LIST, SpecFile, Upstream, call_message as call, petstore, reply, run, stderr,
    wait_until, within,
};

pub enum Signer {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    pub fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    fn ec() -> Self {
        Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Rsa(pair) => {
                let key = pair.public_key();
                let (n, e) = (key.modulus(), key.exponent());
                json!({"kty": "RSA", "use": "sig", "kid": id, "n": encode(n.big_endian_without_leading_zero()), "e": encode(e.big_endian_without_leading_zero())})
            }
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": id, "x": encode(&point[1..33]), "y": encode(&point[33..])})
            }
            Self::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(pair.public_key().as_ref())})
            }
        }
    }

    pub fn token(&self, header: &Value, claims: &Value) -> String {
        self.token_of_text(header, &claims.to_string())
    }

    fn token_of_text(&self, header: &Value, claims: &str) -> String {
        let message = format!(
            "{}.{}",
            encode(header.to_string().as_bytes()),
            encode(claims.as_bytes())
        );
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(
                    &RSA_PKCS1_SHA256,
                    &random,
                    message.as_bytes(),
                    &mut signature,
                )
                .unwrap();
                signature
            }
            Self::Ec(pair) => pair
                .sign(&random, message.as_bytes())
                .unwrap()
                .as_ref()
                .to_vec(),
            Self::Ed(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", encode(&signature))
    }
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn now_and(seconds: f64) -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
        + seconds
}

/// An issuer at `/tenant` of a port of its own.
pub struct Issuer {
    server: Upstream,
    keys: Arc<Mutex<Vec<Value>>>,
}

impl Issuer {
    pub fn start(keys: Vec<Value>) -> Self {
        let keys = Arc::new(Mutex::new(keys));
        let served = Arc::clone(&keys);
        let server = Upstream::start(Box::new(move |request| {
            let host = request.header("host").unwrap();
            let body = match request.path() {
                "/tenant/.well-known/openid-configuration" => {
                    json!({"issuer": format!("http://{host}/tenant"), "jwks_uri": format!("http://{host}/keys")})
                }
                "/keys" => json!({"keys": *served.lock().unwrap()}),
                _ => return reply(404, &["Content-Type: text/html"], b"<h1>no</h1>"),
            };
            reply(
                200,
                &["Content-Type: application/json"],
                body.to_string().as_bytes(),
            )
        }));
        Self { server, keys }
    }

    pub fn name(&self) -> String {
        format!("{}/tenant", self.server.url)
    }

    fn asked_for_keys(&self) -> usize {
        let received = self.server.received();
        received
            .iter()
            .filter(|request| request.line.starts_with("GET /keys "))
            .count()
    }

    fn claims(&self, server: &HttpServer) -> Value {
        json!({"iss": self.name(), "aud": server.url(), "exp": now() + 300, "nbf": now() - 10, "sub": "alice", "scope": "mcp read write"})
    }

    /// Returns the claims of a user who may only read at `https://mcp.example/mcp`.
    pub fn reading_claims(&self) -> Value {
        json!({"iss": self.name(), "aud": "https://mcp.example/mcp", "exp": now() + 300, "sub": "bob", "scope": "read"})
    }
}

/// The status of a message with this token, and the whole answer.
fn post(server: &HttpServer, token: &str, body: &str) -> (u16, String) {
    let authorization = format!("Authorization: Bearer {token}");
    let headers: &[&str] = if token.is_empty() {
        &[]
    } else {
        &[&authorization]
    };
    server.send("POST", headers, body)
}

fn challenge(answer: &str) -> &str {
    answer_header(answer, "www-authenticate").unwrap_or_else(|| panic!("{answer}"))
}

/// The first request waits for the keys, which are asked for at start.
pub fn wait_for_keys(issuer: &Issuer) {
    wait_until("the keys are not asked for", || issuer.asked_for_keys() > 0);
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "two tables: good tokens and bad ones"
)]
fn p55_p56_only_a_valid_token_of_the_issuer_for_this_server_is_accepted() {
    let (rsa, ec, stranger) = (Signer::rsa(), Signer::ec(), Signer::rsa());
    let ed = Signer::Ed(Ed25519KeyPair::generate().unwrap());
    let odd = json!({"kty": "XYZ", "kid": "odd"});
    let symmetric = json!({"kty": "oct", "kid": "secret", "k": encode(b"a symmetric key that is not ours to use")});
    let issuer = Issuer::start(vec![odd, rsa.jwk("r"), symmetric, ec.jwk("e"), ed.jwk("d")]);
    let upstream = Upstream::echo();
    let args = [
        "--spec",
        &petstore(),
        "--base-url",
        &upstream.url,
        "--oauth-issuer",
        &issuer.name(),
        "oauth_scope: [mcp]",
        "--log-level",
        "trace",
    ];
    let mut server = HttpServer::start(&args);
    wait_for_keys(&issuer);
    let claims = issuer.claims(&server);
    let with = |changes: Value| {
        let mut claims = claims.clone();
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        claims
    };
    let rs = |claims: &Value| {
        rsa.token(
            &json!({"alg": "RS256", "typ": "at+jwt", "kid": "r"}),
            claims,
        )
    };
    for (what, token) in [
        ("RS256", rs(&claims)),
        (
            "ES256",
            ec.token(&json!({"alg": "ES256", "typ": "JWT", "kid": "e"}), &claims),
        ),
        (
            "EdDSA",
            ed.token(&json!({"alg": "EdDSA", "kid": "d"}), &claims),
        ),
        ("no kid", rsa.token(&json!({"alg": "RS256"}), &claims)),
        (
            "several audiences",
            rs(&with(
                json!({"aud": ["https://other.example", server.url()]}),
            )),
        ),
        (
            "a slash more",
            rs(&with(json!({"aud": format!("{}/", server.url())}))),
        ),
        ("scp", rs(&with(json!({"scope": null, "scp": ["mcp"]})))),
        ("no nbf", rs(&with(json!({"nbf": null})))),
        (
            "times with fractions",
            rs(&with(json!({"exp": now_and(300.25), "nbf": now_and(-0.5)}))),
        ),
        (
            "clocks that differ",
            rs(&with(json!({"nbf": now() + 5, "exp": now() - 5}))),
        ),
    ] {
        let (status, answer) = post(&server, &token, LIST);
        assert_eq!(status, 200, "{what}: {answer}");
    }
    let good = rs(&claims);
    let [head, body, signature] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    let none = encode(json!({"alg": "none"}).to_string().as_bytes());
    // The classic: the public key as the secret of an HMAC.
    let public = rsa.jwk("r")["n"].as_str().unwrap().to_owned();
    let hs = format!(
        "{}.{body}",
        encode(json!({"alg": "HS256", "kid": "r"}).to_string().as_bytes())
    );
    let mac = aws_lc_rs::hmac::sign(
        &aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, public.as_bytes()),
        hs.as_bytes(),
    );
    let altered = encode(with(json!({"sub": "root"})).to_string().as_bytes());
    for (what, token) in [
        ("no JWT", "abc".to_owned()),
        ("two parts", format!("{head}.{body}")),
        ("four parts", format!("{good}.x")),
        ("no signature", format!("{head}.{body}.")),
        ("alg none", format!("{none}.{body}.")),
        (
            "alg none with a signature",
            format!("{none}.{body}.{signature}"),
        ),
        (
            "HS256 with the public key",
            format!("{hs}.{}", encode(mac.as_ref())),
        ),
        ("HS256 with a symmetric key of the set", {
            let header = json!({"alg": "HS256", "kid": "secret"});
            let message = format!("{}.{body}", encode(header.to_string().as_bytes()));
            let key = aws_lc_rs::hmac::Key::new(
                aws_lc_rs::hmac::HMAC_SHA256,
                b"a symmetric key that is not ours to use",
            );
            format!(
                "{message}.{}",
                encode(aws_lc_rs::hmac::sign(&key, message.as_bytes()).as_ref())
            )
        }),
        ("altered claims", format!("{head}.{altered}.{signature}")),
        (
            "another key under the same name",
            stranger.token(&json!({"alg": "RS256", "kid": "r"}), &claims),
        ),
        (
            "another key, unnamed",
            stranger.token(&json!({"alg": "RS256"}), &claims),
        ),
        (
            "the algorithm of another key",
            rsa.token(&json!({"alg": "ES256", "kid": "e"}), &claims),
        ),
        ("its own key", {
            let header = json!({"alg": "RS256", "jwk": stranger.jwk("x"), "jku": format!("{}/keys", upstream.url), "x5u": upstream.url});
            stranger.token(&header, &claims)
        }),
        (
            "what must be understood",
            rsa.token(
                &json!({"alg": "RS256", "kid": "r", "crit": ["exp"]}),
                &claims,
            ),
        ),
        (
            "another kind of token",
            rsa.token(
                &json!({"alg": "RS256", "kid": "r", "typ": "logout+jwt"}),
                &claims,
            ),
        ),
        ("a claim that is there twice", {
            let text = claims.to_string().replacen('{', r#"{"sub":"root","#, 1);
            rsa.token_of_text(&json!({"alg": "RS256", "kid": "r"}), &text)
        }),
        ("a member of a claim that is there twice", {
            let text = claims.to_string().replacen(
                '{',
                r#"{"realm_access":{"roles":["reader"],"roles":["admin"]},"#,
                1,
            );
            rsa.token_of_text(&json!({"alg": "RS256", "kid": "r"}), &text)
        }),
        ("a member that is there twice in a list", {
            let text = claims.to_string().replacen(
                '{',
                r#"{"grants":[1,[{"of":{"a":1,"b":2,"a":1}}]],"#,
                1,
            );
            rsa.token_of_text(&json!({"alg": "RS256", "kid": "r"}), &text)
        }),
        ("a claim that is nested too deeply", {
            let deep = [r#"{"deep":"#, &"[".repeat(3000), &"]".repeat(3000), ","].concat();
            rsa.token_of_text(
                &json!({"alg": "RS256", "kid": "r"}),
                &claims.to_string().replacen('{', &deep, 1),
            )
        }),
        ("the end twice", {
            let text = claims.to_string().replacen('{', r#"{"exp":1,"#, 1);
            rsa.token_of_text(&json!({"alg": "RS256", "kid": "r"}), &text)
        }),
        (
            "expired, with a fraction",
            rs(&with(json!({"exp": now_and(-60.5)}))),
        ),
        ("expired", rs(&with(json!({"exp": now() - 60})))),
        ("never expires", rs(&with(json!({"exp": null})))),
        (
            "an end that no clock reaches",
            rs(&with(json!({"exp": 9.3e18}))),
        ),
        ("expiry as a text", rs(&with(json!({"exp": "2999-01-01"})))),
        ("not yet", rs(&with(json!({"nbf": now() + 120})))),
        (
            "another issuer",
            rs(&with(json!({"iss": format!("{}/", issuer.name())}))),
        ),
        (
            "several issuers",
            rs(&with(
                json!({"iss": [issuer.name(), "https://other.example"]}),
            )),
        ),
        ("no issuer", rs(&with(json!({"iss": null})))),
        (
            "another audience",
            rs(&with(json!({"aud": "https://other.example/mcp"}))),
        ),
        ("no audience", rs(&with(json!({"aud": null})))),
        (
            "the audience of a prefix",
            rs(&with(
                json!({"aud": server.url().strip_suffix("/mcp").unwrap()}),
            )),
        ),
        (
            "endless",
            format!("{head}.{}.{signature}", "A".repeat(20_000)),
        ),
    ] {
        let (status, answer) = post(&server, &token, LIST);
        assert_eq!(status, 401, "{what}: {answer}");
        assert!(
            challenge(&answer).contains(r#"error="invalid_token""#),
            "{what}: {answer}"
        );
    }
    assert!(
        upstream.received().is_empty(),
        "a key is fetched from nowhere but the issuer"
    );
    let (status, _) = post(&server, &good, &call("list_pets", "{}"));
    assert_eq!(status, 200);
    assert!(upstream.take_one().header("authorization").is_none());
    let logs = server.end();
    assert!(
        !logs.contains(signature) && !logs.contains(body),
        "a token is in the log"
    );
}

#[test]
fn p55_clients_are_told_where_to_get_a_token_and_which_scopes() {
    let rsa = Signer::rsa();
    let issuer = Issuer::start(vec![rsa.jwk("r")]);
    let args = [
        "--spec",
        &petstore(),
        "--mock",
        "--oauth-issuer",
        &issuer.name(),
        "--public-url",
        "https://mcp.example/pets/mcp",
        "oauth_scope: [mcp]",
        "oauth_read_scope: [\"pets:read\"]",
        "oauth_write_scope: [\"pets:write\"]",
    ];
    let server = HttpServer::start(&args);
    wait_for_keys(&issuer);
    let metadata =
        r#"resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/pets/mcp""#;
    let (status, answer) = post(&server, "", LIST);
    assert_eq!(status, 401);
    assert!(
        challenge(&answer).contains(metadata)
            && challenge(&answer).contains(r#"scope="mcp pets:read""#),
        "{answer}"
    );
    assert!(!challenge(&answer).contains("error="), "{answer}");
    for (path, found) in [
        ("/.well-known/oauth-protected-resource", true),
        ("/.well-known/oauth-protected-resource/mcp", true),
        ("/.well-known/oauth-protected-resource/pets/mcp", true),
        ("/.well-known/oauth-protected-resource/other", false),
        ("/.well-known/openid-configuration", false),
    ] {
        // Under the public name, which needs no --allow-host, and without a token.
        let answer = server.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: mcp.example\r\nConnection: close\r\n\r\n"
        ));
        assert_eq!(
            answer.starts_with("HTTP/1.1 200 "),
            found,
            "{path}: {answer}"
        );
        if found {
            let body: Value =
                serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
            let expected = json!({"resource": "https://mcp.example/pets/mcp", "authorization_servers": [issuer.name()],
                "bearer_methods_supported": ["header"], "scopes_supported": ["mcp", "pets:read", "pets:write"]});
            assert_eq!(body, expected);
        }
    }
    let token = |scope: &str| {
        let claims = json!({"iss": issuer.name(), "aud": "https://mcp.example/pets/mcp", "exp": now() + 300, "sub": "bob", "scope": scope});
        rsa.token(&json!({"alg": "RS256", "kid": "r"}), &claims)
    };
    let read = call("list_pets", "{}");
    let write = call("delete_pet", r#"{"petId":7}"#);
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_pets","name":"delete_pet","arguments":{"petId":7}}}"#;
    let escaped = r#"{"jsonrpc":"2.0","id":1,"method":"tools\u002fcall","params":{"n\u0061me":"delete\u005fpet","arguments":{"petId":7}}}"#;
    for (scope, body, expected, needed) in [
        ("other", LIST, 403, "mcp"),
        ("", LIST, 403, "mcp"),
        ("mcp", LIST, 200, ""),
        ("mcp", &read, 403, "mcp pets:read"),
        ("mcp pets:read", &read, 200, ""),
        ("mcp pets:write", &read, 403, "mcp pets:read pets:write"),
        ("mcp pets:read", &write, 403, "mcp pets:read pets:write"),
        ("mcp pets:read", escaped, 403, "mcp pets:read pets:write"),
        ("mcp pets:read", twice, 400, ""),
        ("mcp pets:write", &write, 200, ""),
        ("mcp", &call("no_such_tool", "{}"), 200, ""),
    ] {
        let (status, answer) = post(&server, &token(scope), body);
        assert_eq!(status, expected, "{scope}: {body}: {answer}");
        if expected == 403 {
            let told = challenge(&answer);
            assert!(
                told.contains(r#"error="insufficient_scope""#) && told.contains(metadata),
                "{told}"
            );
            assert!(
                told.contains(&format!(r#"scope="{needed}""#)),
                "{scope}: {told}"
            );
        }
    }
}

#[test]
fn p55_p59_the_scope_for_reading_does_not_reach_a_get_whose_name_says_that_it_acts() {
    let rsa = Signer::rsa();
    let issuer = Issuer::start(vec![rsa.jwk("r")]);
    let spec = SpecFile::with_paths(&json!({
        "/orders": {"get": {"operationId": "listOrders"}},
        "/orders/cancel": {"get": {"operationId": "cancelOrders"}}
    }));
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--mock",
        "--oauth-issuer",
        &issuer.name(),
        "--public-url",
        "https://mcp.example/mcp",
        "oauth_read_scope: [read]",
        "oauth_write_scope: [write]",
    ]);
    wait_for_keys(&issuer);
    let token = rsa.token(
        &json!({"alg": "RS256", "kid": "r"}),
        &issuer.reading_claims(),
    );
    assert_eq!(post(&server, &token, &call("listOrders", "{}")).0, 200);
    let (status, answer) = post(&server, &token, &call("cancelOrders", "{}"));
    assert_eq!(status, 403, "{answer}");
    assert!(challenge(&answer).contains("write"), "{answer}");
}

#[test]
fn p55_keys_are_kept_and_asked_for_again_when_a_token_names_a_new_one() {
    let (old, new) = (Signer::rsa(), Signer::ec());
    let issuer = Issuer::start(vec![old.jwk("old")]);
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--oauth-issuer",
        &issuer.name(),
    ]);
    wait_for_keys(&issuer);
    let claims = issuer.claims(&server);
    let by_old = old.token(&json!({"alg": "RS256", "kid": "old"}), &claims);
    let by_new = new.token(&json!({"alg": "ES256", "kid": "new"}), &claims);
    for _ in 0..20 {
        assert_eq!(post(&server, &by_old, LIST).0, 200);
    }
    assert_eq!(issuer.asked_for_keys(), 1);
    *issuer.keys.lock().unwrap() = vec![new.jwk("new")];
    // Many at once: one asks, and all get the answer.
    std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| post(&server, &by_new, LIST).0))
            .collect();
        assert!(tasks.into_iter().all(|task| task.join().unwrap() == 200));
    });
    assert_eq!(issuer.asked_for_keys(), 2);
    let started = Instant::now();
    for number in 0..50 {
        let made_up = old.token(
            &json!({"alg": "RS256", "kid": format!("made up {number}")}),
            &claims,
        );
        let status = post(&server, &made_up, LIST).0;
        assert!(matches!(status, 401 | 503), "{status}");
    }
    let most = 3 + usize::try_from(started.elapsed().as_secs() / 5).unwrap();
    assert!(
        issuer.asked_for_keys() <= most,
        "made-up names make nobody ask more often than every 5 s"
    );
    // Invented keys do not hide the next rotation for long, and meanwhile no good token is called
    // invalid.
    *issuer.keys.lock().unwrap() = vec![old.jwk("old")];
    wait_until("the rotation is never noticed", || {
        let status = post(&server, &by_old, LIST).0;
        assert!(matches!(status, 200 | 503), "{status}");
        status == 200
    });
    assert!(started.elapsed() < within(10), "{:?}", started.elapsed());
    wait_until("the withdrawn key is never refused", || {
        post(&server, &by_new, LIST).0 == 401
    });
}

#[test]
fn p45_tokens_that_name_nobody_are_limited_one_by_one() {
    let signer = Signer::rsa();
    let issuer = Issuer::start(vec![signer.jwk("one")]);
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--oauth-issuer",
        &issuer.name(),
        // One request in 100 s: no machine is so slow that the second one is due.
        "client_rate_limit: 0.01",
    ]);
    wait_for_keys(&issuer);
    let nameless = |id: &str| {
        let mut claims = issuer.claims(&server);
        claims.as_object_mut().unwrap().remove("sub");
        claims["jti"] = json!(id);
        signer.token(&json!({"alg": "RS256", "kid": "one"}), &claims)
    };
    let (first, second) = (nameless("1"), nameless("2"));
    assert_eq!(post(&server, &first, LIST).0, 200);
    assert_eq!(
        post(&server, &first, LIST).0,
        429,
        "the client has used its share"
    );
    assert_eq!(
        post(&server, &second, LIST).0,
        200,
        "another token is another client"
    );
}

#[test]
fn p45_a_token_of_an_application_does_not_count_as_the_user_of_the_same_name() {
    let signer = Signer::rsa();
    let issuer = Issuer::start(vec![signer.jwk("one")]);
    let audit = tempfile::NamedTempFile::new().unwrap();
    let log = audit.path().display().to_string();
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--oauth-issuer",
        &issuer.name(),
        "client_rate_limit: 0.01",
        "--audit-log",
        &log,
    ]);
    wait_for_keys(&issuer);
    let list = call("list_pets", "{}");
    for claim in ["sub", "client_id", "azp"] {
        let mut claims = issuer.claims(&server);
        claims.as_object_mut().unwrap().remove("sub");
        claims[claim] = json!("alice");
        let token = signer.token(&json!({"alg": "RS256", "kid": "one"}), &claims);
        assert_eq!(
            post(&server, &token, &list).0,
            200,
            "{claim}: another client"
        );
        assert_eq!(
            post(&server, &token, &list).0,
            429,
            "{claim}: the same client"
        );
    }
    let names = || {
        let lines = std::fs::read_to_string(&log).unwrap();
        let names = lines.lines().filter_map(|line| {
            serde_json::from_str::<Value>(line).ok()?["client"]
                .as_str()
                .map(str::to_owned)
        });
        names.collect::<std::collections::BTreeSet<String>>()
    };
    let of = |prefix: &str| format!("{prefix}{} alice", issuer.name());
    let expected = [of(""), of("client_id:"), of("azp:")].into_iter().collect();
    wait_until("each has a name of its own in the audit log", || {
        names() == expected
    });
}

#[test]
fn p55_an_issuer_that_is_not_ready_is_asked_again_and_the_reason_is_logged() {
    let rsa = Signer::rsa();
    // It answers with the name of another one.
    let wrong = Upstream::start(Box::new(|_| {
        let body = br#"{"issuer":"https://other.example","jwks_uri":"https://other.example/keys"}"#;
        reply(200, &["Content-Type: application/json"], body)
    }));
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--oauth-issuer",
        &wrong.url,
    ]);
    let token = rsa.token(
        &json!({"alg": "RS256", "kid": "r"}),
        &json!({"exp": now() + 60}),
    );
    let (status, answer) = post(&server, &token, LIST);
    assert!(
        status == 503 && answer.to_ascii_lowercase().contains("retry-after: 5"),
        "{answer}"
    );
    server.logged("must be the same to the letter");
    assert_eq!(
        post(&server, "", LIST).0,
        401,
        "who has no token is told so all the same"
    );
    // One that stutters at start.
    let jwk = json!({"keys": [rsa.jwk("r")]}).to_string();
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let late = Upstream::start(Box::new(move |_| {
        if count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            return reply(500, &[], b"");
        }
        reply(200, &["Content-Type: application/json"], jwk.as_bytes())
    }));
    let keys = format!("{}/keys", late.url);
    let args = [
        "--spec",
        &petstore(),
        "--mock",
        "--oauth-issuer",
        "https://login.example/t",
        &format!("oauth_jwks_url: {keys}"),
        "--oauth-audience",
        "api://pets,other",
    ];
    let server = HttpServer::start(&args);
    let claims = json!({"iss": "https://login.example/t", "aud": "api://pets", "exp": now() + 300});
    let token = rsa.token(&json!({"alg": "RS256", "kid": "r"}), &claims);
    wait_until("the token is never good", || {
        post(&server, &token, LIST).0 == 200
    });
}

#[test]
fn p55_settings_of_an_issuer_that_cannot_be_safe_are_all_told_at_start() {
    let spec = petstore();
    let told = |more: &[&str]| {
        let mut args = vec!["serve", "--spec", &spec, "--mock", "--transport", "http"];
        args.extend(more);
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let text = told(&[
        "--oauth-issuer",
        "http://login.example",
        "oauth_scope: [a b, '\"']",
        "--bind",
        "0.0.0.0:0",
        "oauth_jwks_url: ftp://x",
    ]);
    for expected in [
        "must be an https URL",
        "`a b`",
        "--public-url",
        "`oauth_jwks_url`",
        "--allow-host",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let text = told(&[
        "--oauth-issuer",
        "https://me:s3cret@login.example",
        "oauth_jwks_url: https://me:s3cret@login.example/keys",
    ]);
    assert!(
        text.contains("--oauth-issuer")
            && text.contains("`oauth_jwks_url`")
            && !text.contains("s3cret"),
        "{text}"
    );
    let text = told(&[
        "oauth_scope: [a]",
        "--oauth-audience",
        "b",
        "--public-url",
        "mcp.example",
    ]);
    for expected in [
        "`oauth_scope` needs --oauth-issuer",
        "--oauth-audience needs",
        "--public-url is not a plain URL",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_claim_of_a_verified_token_is_sent_where_a_rule_says_so() {
    let ec = Signer::ec();
    let issuer = Issuer::start(vec![ec.jwk("e")]);
    let upstream = Upstream::echo();
    let rules = SpecFile::new(
        &json!({"overrides": [{"match": {"operation": "list_pets"}, "arguments": {"query:limit": {"value": {"claim": "rows"}}}}]})
            .to_string(),
    );
    let name = issuer.name();
    let args = [
        "--spec",
        &petstore(),
        "--base-url",
        &upstream.url,
        "--config",
        rules.path(),
        "--oauth-issuer",
        &name,
    ];
    let server = HttpServer::start(&args);
    wait_for_keys(&issuer);
    let token = |rows: Value| {
        let mut claims = issuer.claims(&server);
        claims["rows"] = rows;
        ec.token(&json!({"alg": "ES256", "kid": "e"}), &claims)
    };
    for rows in [json!(7), json!("7")] {
        let (status, answer) = post(&server, &token(rows), &call("list_pets", "{}"));
        assert_eq!(status, 200, "{answer}");
        assert!(upstream.take_one().line.contains("limit=7"), "{answer}");
    }
    for (rows, arguments) in [
        (json!(null), "{}"),
        (json!([7]), "{}"),
        (json!("many"), "{}"),
        (json!(7), r#"{"limit":9}"#),
    ] {
        let (status, answer) = post(&server, &token(rows.clone()), &call("list_pets", arguments));
        assert!(
            status == 200 && answer.contains(r#""isError":true"#),
            "{rows}: {answer}"
        );
        assert!(upstream.received().is_empty(), "{rows} {arguments}");
    }
    // Without an issuer no token is verified.
    let open = run(&[
        "serve",
        "--transport",
        "http",
        "--bind",
        "127.0.0.1:0",
        "--spec",
        &petstore(),
        "--base-url",
        &upstream.url,
        "--config",
        rules.path(),
    ]);
    assert!(
        !open.status.success() && stderr(&open).contains("without --oauth-issuer"),
        "{}",
        stderr(&open)
    );
}
