//! The state that replicas share for each tenant of an API: its refresh token and its kept replies,
//! and nothing of another tenant.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::{Value, json};

use super::refresh::{Authority, VARIABLES, document};
use super::{PATIENT, assert_hidden, http_replica};
use crate::support::{HttpServer, Redis, SpecFile, Upstream, call_message, reply, wait_until};

fn replicas(redis: &Redis, spec: &SpecFile, settings: &Value) -> [HttpServer; 2] {
    let config = SpecFile::new(&settings.to_string());
    [(), ()].map(|()| {
        http_replica(
            redis,
            &[
                &["--spec", spec.path(), "--config", config.path()],
                &PATIENT[..],
            ]
            .concat(),
            &VARIABLES,
        )
    })
}

fn call(replica: &HttpServer, tenant: &str, tool: &str) -> Value {
    let (_, answer) = replica.post(&[&format!("X-Tenant: {tenant}")], &call_message(tool, "{}"));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        answer["result"]["isError"],
        false,
        "{answer}\n{}",
        replica.logs()
    );
    answer["result"].clone()
}

#[test]
fn p82_the_refresh_token_of_a_tenant_is_used_by_one_replica_at_a_time() {
    let Some(redis) = Redis::start() else { return };
    let authority = Authority::start();
    let login =
        json!({"client_id": {"env": VARIABLES[0].0}, "refresh_token": {"env": VARIABLES[1].0}});
    let settings = json!({"tenants": {"header": "X-Tenant", "entries": {
        "acme-corp": {"base_url": authority.upstream.url, "auth": {"pets": login}},
    }}});
    let replicas = replicas(&redis, &document(), &settings);
    for rotation in 1..=3 {
        for replica in replicas.iter().chain(&replicas) {
            call(replica, "acme-corp", "pets");
        }
        authority.assert_rotations(rotation);
        authority.end_tokens();
    }
    assert_hidden(
        &redis,
        &[
            "s3cret",
            "acme-corp",
            "the-client-app",
            "/token",
            "127.0.0.1",
        ],
    );
}

#[test]
fn p67_replicas_share_the_kept_replies_of_a_tenant_and_of_no_other() {
    let Some(redis) = Redis::start() else { return };
    let count = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |_| {
        let body = json!({"reply": count.fetch_add(1, SeqCst)});
        let headers = [
            "Content-Type: application/json",
            "Cache-Control: max-age=600",
        ];
        reply(200, &headers, body.to_string().as_bytes())
    }));
    let spec = SpecFile::with_paths(&json!({"/things": {"get": {"operationId": "list"}}}));
    let entry = json!({"base_url": upstream.url});
    let settings = json!({"cache": 1_000_000, "tenants": {"header": "X-Tenant", "entries": {"acme": entry, "globex": entry}}});
    let [first, second] = replicas(&redis, &spec, &settings);
    let reply_of = |replica: &HttpServer, tenant: &str| {
        call(replica, tenant, "list")["structuredContent"]["reply"].clone()
    };
    assert_eq!(reply_of(&first, "acme"), 0);
    wait_until("nothing is shared", || redis.keys().len() >= 2);
    assert_eq!(reply_of(&second, "acme"), 0, "the other replica has it");
    assert_eq!(
        reply_of(&second, "globex"),
        1,
        "another tenant asks for itself"
    );
    assert_eq!(reply_of(&first, "acme"), 0);
    assert_eq!(upstream.received().len(), 2);
}
