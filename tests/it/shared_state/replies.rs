//! Replies that one replica keeps for the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::{Value, json};

use super::{PATIENT, assert_hidden, stdio_replica};
use crate::support::{Redis, Session, SpecFile, Upstream, reply, wait_until};

/// A list that says how often it was changed, and is fresh for a while.
fn list() -> (Upstream, SpecFile) {
    let changes = Arc::new(AtomicUsize::new(0));
    let upstream = Upstream::start(Box::new(move |request| {
        if request.line.starts_with("POST") {
            changes.fetch_add(1, SeqCst);
            return reply(201, &["Content-Type: application/json"], b"{}");
        }
        let body = json!({"text": "words-of-the-list", "changes": changes.load(SeqCst)});
        let headers = [
            "Content-Type: application/json",
            "Cache-Control: max-age=600",
        ];
        reply(200, &headers, body.to_string().as_bytes())
    }));
    let spec = SpecFile::with_paths(
        &json!({"/things": {"get": {"operationId": "list"}, "post": {"operationId": "add"}}}),
    );
    (upstream, spec)
}

fn replica(redis: &Redis, (upstream, spec): &(Upstream, SpecFile), key: &str) -> Session {
    let header = ["--header-env", "X-Tenant-Key=TENANT"];
    let more = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--cache",
        "1000000",
    ];
    stdio_replica(
        redis,
        &[&more[..], &header, &PATIENT].concat(),
        &[("TENANT", key)],
    )
}

fn changes(replica: &mut Session) -> (Value, bool) {
    let result = replica.call("list", &json!({}));
    assert_eq!(result["isError"], false, "{result}");
    let is_kept = result["_meta"]["openapi-mcp/cacheAge"].is_number();
    (result["structuredContent"]["changes"].clone(), is_kept)
}

fn asked(api: &(Upstream, SpecFile)) -> usize {
    api.0
        .received()
        .iter()
        .filter(|request| request.line.starts_with("GET"))
        .count()
}

#[test]
fn a_reply_is_kept_for_all_replicas_and_a_write_at_one_drops_it_for_all() {
    let Some(redis) = Redis::start() else { return };
    let api = list();
    let (mut first, mut second) = (
        replica(&redis, &api, "t0p-secret-key"),
        replica(&redis, &api, "t0p-secret-key"),
    );
    assert_eq!(changes(&mut first), (json!(0), false));
    wait_until("nothing is shared", || redis.keys().len() >= 2);
    assert_eq!(changes(&mut second), (json!(0), true));
    assert_eq!(changes(&mut second), (json!(0), true));
    assert_eq!(asked(&api), 1);
    assert_hidden(
        &redis,
        &[
            "words-of-the-list",
            "t0p-secret-key",
            "things",
            "127.0.0.1",
            "max-age",
        ],
    );

    for round in 1..4 {
        let (writer, reader) = if round % 2 == 0 {
            (&mut first, &mut second)
        } else {
            (&mut second, &mut first)
        };
        assert_eq!(writer.call("add", &json!({}))["isError"], false);
        assert_eq!(
            changes(reader),
            (json!(round), false),
            "the write is seen at once"
        );
    }
    // Another credential gets nothing of it.
    let before = asked(&api);
    assert!(!changes(&mut replica(&redis, &api, "another-tenants-key")).1);
    assert_eq!(asked(&api), before + 1);
}

#[test]
fn what_somebody_else_has_written_over_counts_as_nothing() {
    let Some(redis) = Redis::start() else { return };
    let api = list();
    let mut replica = replica(&redis, &api, "a-key-of-all");
    changes(&mut replica);
    wait_until("the reply and its generation are there", || {
        redis.keys().len() == 2
    });
    for key in redis.keys() {
        redis.run(&["SET", &key, "garbage"]);
    }
    assert!(!changes(&mut replica).1);
    assert!(changes(&mut replica).1);
    let logs = replica.end();
    assert!(!logs.contains("cannot be used"), "{logs}");
}

#[test]
fn without_redis_each_replica_keeps_replies_alone() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let api = list();
    let (mut first, mut second) = (
        replica(&redis, &api, "key-of-all"),
        replica(&redis, &api, "key-of-all"),
    );
    redis.kill();
    assert!(!changes(&mut first).1 && changes(&mut first).1);
    assert!(!changes(&mut second).1 && changes(&mut second).1);
    assert_eq!(first.call("add", &json!({}))["isError"], false);
    assert_eq!(changes(&mut first).0, 1);
    // Changes of the first one are reported once Redis answers again.
    redis.restart();
    wait_until("the other replica does not see the change", || {
        changes(&mut second).0 == 1
    });
}
