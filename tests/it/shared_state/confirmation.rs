//! A question of one replica that is answered at another.

use serde_json::{Value, json};

use super::http_replica;
use crate::support::{HttpServer, Redis, SpecFile, Upstream};

fn call(replica: &HttpServer, state: Option<&Value>) -> Value {
    let mut parameters = json!({"arguments": {}});
    if let Some(state) = state {
        parameters["requestState"] = state.clone();
        parameters["inputResponses"] = json!({"confirm": {"action": "accept", "content": {}}});
    }
    replica.call_stateless("tidy", parameters, &json!({"elicitation": {}}))["result"].clone()
}

#[test]
fn an_answer_counts_at_every_replica_once_and_without_redis_a_person_is_asked_again() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let upstream = Upstream::echo();
    let spec = SpecFile::with_paths(&json!({"/old": {"delete": {"operationId": "tidy"}}}));
    let more = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--confirm",
        "destructive",
    ];
    let (first, second) = (
        http_replica(&redis, &more, &[]),
        http_replica(&redis, &more, &[]),
    );
    let asked = call(&first, None);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(upstream.received().is_empty());
    let done = call(&second, Some(&asked["requestState"]));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(upstream.take_one().line, "DELETE /old HTTP/1.1");
    for replica in [&first, &second] {
        let again = call(replica, Some(&asked["requestState"]));
        assert_eq!(again["resultType"], "input_required", "{again}");
    }
    let asked = call(&first, None);
    redis.run(&["FLUSHALL"]);
    let again = call(&second, Some(&asked["requestState"]));
    assert_eq!(
        again["resultType"], "input_required",
        "the server has lost the question: {again}"
    );
    let done = call(&second, Some(&again["requestState"]));
    assert_eq!(done["isError"], false, "{done}");
    redis.run(&["FLUSHALL"]);
    let again = call(&first, Some(&again["requestState"]));
    assert_eq!(
        again["resultType"], "input_required",
        "an answer counts once: {again}"
    );
    assert_eq!(upstream.take_all().len(), 1);
    let asked = call(&first, None);
    redis.kill();
    let again = call(&second, Some(&asked["requestState"]));
    assert_eq!(
        again["resultType"], "input_required",
        "nobody knows whether it was answered: {again}"
    );
    assert!(upstream.received().is_empty());

    let alone = HttpServer::start(&more);
    alone.logged("sticky routing");
    let again = call(&alone, Some(&asked["requestState"]));
    assert_eq!(
        again["resultType"], "input_required",
        "a replica without the key: {again}"
    );
}
