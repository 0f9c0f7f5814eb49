//! The state that replicas share for each tenant of an API: its refresh token.

use serde_json::{Value, json};

use super::refresh::{Authority, VARIABLES, document};
use super::{PATIENT, assert_hidden, http_replica};
use crate::support::{HttpServer, Redis, SpecFile, call_message};

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
