//! One refresh token for all replicas: one of them uses it at a time, and none without the lock.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{assert_hidden, stdio_replica};
use crate::support::{Redis, Session, SpecFile, Upstream, reply, text, wait_until};

pub const VARIABLES: [(&str, &str); 2] = [
    ("OPENAPI_MCP_AUTH_PETS_CLIENT_ID", "the-client-app"),
    ("OPENAPI_MCP_AUTH_PETS_REFRESH_TOKEN", "refresh-s3cret-0"),
];

/// A token endpoint that revokes all tokens if a refresh token comes twice (RFC 9700 section
/// 4.13.2), and an API that takes the newest access token alone.
pub struct Authority {
    pub upstream: Upstream,
    /// Number of tokens that were given.
    given: Arc<AtomicUsize>,
    is_revoked: Arc<AtomicBool>,
    /// Access tokens up to this one are refused.
    ended: Arc<AtomicUsize>,
    /// While it is held, the token endpoint does not answer.
    meta_tool: Arc<Mutex<()>>,
}

impl Authority {
    pub fn start() -> Self {
        let (given, is_revoked, ended) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let meta_tool = Arc::new(Mutex::new(()));
        let shared = (
            Arc::clone(&given),
            Arc::clone(&is_revoked),
            Arc::clone(&ended),
            Arc::clone(&meta_tool),
        );
        let turn = Mutex::new(());
        let upstream = Upstream::start(Box::new(move |request| {
            let (given, is_revoked, ended, meta_tool) = &shared;
            let json = |status, body: Value| {
                reply(
                    status,
                    &["Content-Type: application/json"],
                    body.to_string().as_bytes(),
                )
            };
            if request.path() != "/token" {
                let token = request
                    .header("authorization")
                    .unwrap_or_default()
                    .trim_start_matches("Bearer access-s3cret-");
                let is_good = token.parse().is_ok_and(|number: usize| {
                    number > ended.load(SeqCst) && !is_revoked.load(SeqCst)
                });
                return json(
                    if is_good { 200 } else { 401 },
                    json!({"text": "the-reply-of-the-api"}),
                );
            }
            drop(meta_tool.lock());
            let _turn = turn.lock();
            let number = given.load(SeqCst);
            let expected = format!("refresh_token=refresh-s3cret-{number}&");
            if is_revoked.load(SeqCst)
                || !format!("{}&", String::from_utf8_lossy(&request.body)).contains(&expected)
            {
                is_revoked.store(true, SeqCst);
                return json(400, json!({"error": "invalid_grant"}));
            }
            let number = given.fetch_add(1, SeqCst) + 1;
            json(
                200,
                json!({"access_token": format!("access-s3cret-{number}"), "refresh_token": format!("refresh-s3cret-{number}"), "expires_in": 3600}),
            )
        }));
        Self {
            upstream,
            given,
            is_revoked,
            ended,
            meta_tool,
        }
    }

    /// The access tokens that were given so far are refused from now on.
    pub fn end_tokens(&self) {
        self.ended.store(self.given.load(SeqCst), SeqCst);
    }

    fn asked(&self) -> usize {
        self.upstream
            .received()
            .iter()
            .filter(|request| request.path() == "/token")
            .count()
    }

    pub fn assert_rotations(&self, expected: usize) {
        assert!(
            !self.is_revoked.load(SeqCst),
            "a refresh token was used twice"
        );
        assert_eq!(
            (self.given.load(SeqCst), self.asked()),
            (expected, expected)
        );
    }

    fn replica(&self, redis: &Redis) -> Session {
        stdio_replica(
            redis,
            &[
                "--spec",
                document().path(),
                "--base-url",
                &self.upstream.url,
            ],
            &VARIABLES,
        )
    }
}

pub fn document() -> SpecFile {
    SpecFile::new(
        &json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"},
            "components": {"securitySchemes": {"pets": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/token", "scopes": {}}}}}},
            "paths": {"/pets": {"get": {"operationId": "pets", "security": [{"pets": []}]}}}})
        .to_string(),
    )
}

fn assert_works(replica: &mut Session) {
    let result = replica.call("pets", &json!({}));
    assert_eq!(result["isError"], false, "{result}\n{}", replica.logs());
}

#[test]
fn p81_three_replicas_refresh_once_for_200_calls_and_nothing_can_be_read_in_redis() {
    let Some(redis) = Redis::start() else { return };
    let authority = Authority::start();
    let mut replicas: Vec<Session> = (0..3).map(|_| authority.replica(&redis)).collect();
    for rotation in 1..=3 {
        for replica in &mut replicas {
            for _ in 0..67 {
                replica.post("tools/call", &json!({"name": "pets", "arguments": {}}));
            }
        }
        for replica in &replicas {
            for _ in 0..67 {
                let answer = replica.receive();
                assert_eq!(
                    answer["result"]["isError"],
                    false,
                    "{answer}\n{}",
                    replica.logs()
                );
            }
        }
        authority.assert_rotations(rotation);
        authority.end_tokens();
    }
    assert_hidden(
        &redis,
        &[
            "s3cret",
            "the-client-app",
            "the-reply",
            "/token",
            "pets",
            "Bearer",
            "127.0.0.1",
        ],
    );
    for mut replica in replicas {
        assert!(!replica.end().contains("s3cret"));
    }
}

#[test]
fn a_replica_that_starts_later_takes_the_token_that_is_there() {
    let Some(redis) = Redis::start() else { return };
    let authority = Authority::start();
    assert_works(&mut authority.replica(&redis));
    assert_works(&mut authority.replica(&redis));
    authority.assert_rotations(1);
}

#[test]
fn p82_without_redis_no_refresh_token_is_used_and_a_valid_access_token_is() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let authority = Authority::start();
    let mut replica = authority.replica(&redis);
    assert_works(&mut replica);
    redis.kill();
    assert_works(&mut replica);
    authority.end_tokens();
    for _ in 0..3 {
        let refused = replica.call("pets", &json!({}));
        assert!(text(&refused).contains("without its lock"), "{refused}");
    }
    authority.assert_rotations(1);
    // It comes back empty, and the replica has the only copy of the refresh token.
    redis.restart();
    wait_until("the replica does not find Redis again", || {
        replica.call("pets", &json!({}))["isError"] == false
    });
    authority.assert_rotations(2);
    let mut late = authority.replica(&redis);
    assert_works(&mut late);
    authority.assert_rotations(2);
}

#[test]
fn a_redis_that_hangs_or_is_full_lets_nobody_use_a_refresh_token() {
    let Some(redis) = Redis::start() else { return };
    let authority = Authority::start();
    let mut replica = authority.replica(&redis);
    assert_works(&mut replica);
    authority.end_tokens();
    redis.signal("STOP");
    assert_eq!(replica.call("pets", &json!({}))["isError"], true);
    redis.signal("CONT");
    redis.run(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = replica.call("pets", &json!({}));
    assert!(text(&refused).contains("without its lock"), "{refused}");
    authority.assert_rotations(1);
    redis.run(&["CONFIG", "SET", "maxmemory", "0"]);
    wait_until("the replica does not go on", || {
        replica.call("pets", &json!({}))["isError"] == false
    });
    authority.assert_rotations(2);
}

#[test]
fn what_redis_loses_is_offered_again_by_a_replica_that_has_it() {
    let Some(redis) = Redis::start() else { return };
    let authority = Authority::start();
    let (mut first, mut second) = (authority.replica(&redis), authority.replica(&redis));
    assert_works(&mut first);
    redis.run(&["FLUSHALL"]);
    // The second one knows the token of the settings alone, which was used already.
    assert_works(&mut second);
    authority.assert_rotations(1);
    authority.end_tokens();
    assert_works(&mut second);
    assert_works(&mut first);
    authority.assert_rotations(2);
}

#[cfg(unix)]
#[test]
fn the_lock_of_a_killed_replica_ends_by_itself() {
    let Some(redis) = Redis::start() else { return };
    let authority = Authority::start();
    let (mut holder, mut other) = (authority.replica(&redis), authority.replica(&redis));
    let closed = authority.meta_tool.lock().unwrap();
    holder.post("tools/call", &json!({"name": "pets", "arguments": {}}));
    wait_until("the holder does not ask", || authority.asked() == 1);
    let lock = redis
        .keys()
        .into_iter()
        .find(|key| key.ends_with(":lock"))
        .expect("a lock");
    let left: i64 = redis::cmd("PTTL")
        .arg(&lock)
        .query(&mut redis.connection())
        .unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
    let _ = std::process::Command::new("kill")
        .args(["-9", &holder.pid().to_string()])
        .status();

    let id = other.post("tools/call", &json!({"name": "pets", "arguments": {}}));
    // Nobody uses the refresh token while the lock lasts.
    std::thread::park_timeout(Duration::from_millis(500));
    assert_eq!(authority.asked(), 1);
    // It lasts a minute; the test does not wait for that.
    redis.run(&["PEXPIRE", &lock, "1"]);
    wait_until("nobody else asks", || authority.asked() == 2);
    drop(closed);
    let answer = other.receive();
    assert!(
        answer["id"] == id && answer["result"].is_object(),
        "{answer}"
    );
}
