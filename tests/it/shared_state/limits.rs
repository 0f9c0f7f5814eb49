//! Limits that hold for all replicas together.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{PATIENT, assert_hidden, http_replica, stdio_replica};
use crate::support::{CALL, HttpServer, Redis, Session, SpecFile, Upstream, petstore, reply};

fn spec() -> SpecFile {
    SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "a"}}}))
}

/// An API that notes when requests come.
fn noting() -> (Upstream, Arc<Mutex<Vec<Instant>>>) {
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let upstream = Upstream::start(Box::new(move |_| {
        noted.lock().unwrap().push(Instant::now());
        reply(200, &["Content-Type: application/json"], b"{\"ok\":true}")
    }));
    (upstream, times)
}

fn replicas(
    redis: &Redis,
    spec: &SpecFile,
    upstream: &Upstream,
    rate: &str,
    more: &[&str],
) -> Vec<Session> {
    let own = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("rate_limit: {rate}"),
    ];
    let more = [&own[..], more].concat();
    (0..3).map(|_| stdio_replica(redis, &more, &[])).collect()
}

/// Makes so many calls at each replica, all at once.
fn call_all(replicas: &mut [Session], calls: usize) {
    for replica in replicas.iter_mut() {
        for _ in 0..calls {
            replica.post("tools/call", &json!({"name": "a", "arguments": {}}));
        }
    }
    for replica in replicas.iter() {
        for _ in 0..calls {
            let answer = replica.receive();
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
    }
}

/// Returns the time from the first request to the last one.
fn span(times: &Mutex<Vec<Instant>>) -> Duration {
    let mut times = std::mem::take(&mut *times.lock().unwrap());
    times.sort();
    *times.last().unwrap() - times[0]
}

#[test]
fn three_replicas_together_keep_the_rate_of_one() {
    let Some(redis) = Redis::start() else { return };
    let ((upstream, times), spec) = (noting(), spec());
    let mut replicas = replicas(&redis, &spec, &upstream, "50", &PATIENT);
    // The scripts are there, and connections are made.
    call_all(&mut replicas, 1);
    times.lock().unwrap().clear();
    call_all(&mut replicas, 40);
    // 120 requests at 50 a second.
    let expected = Duration::from_millis(119 * 20);
    let took = span(&times);
    assert!(
        took >= expected.mul_f64(0.9),
        "{took:?}: more than 50 a second"
    );
    assert!(took <= expected * 3, "{took:?}: far less than 50 a second");
    assert_hidden(&redis, &["127.0.0.1", &upstream.url]);
}

#[test]
fn without_redis_each_replica_keeps_the_rate_alone_and_no_call_fails() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let ((upstream, times), spec) = (noting(), spec());
    let mut replicas = replicas(&redis, &spec, &upstream, "50", &[]);
    call_all(&mut replicas, 1);
    for outage in ["killed", "hanging"] {
        if outage == "killed" {
            redis.kill();
        } else {
            redis.restart();
            for replica in &replicas {
                replica.logged("cannot be used");
            }
            call_all(&mut replicas, 1);
            redis.signal("STOP");
        }
        times.lock().unwrap().clear();
        call_all(&mut replicas, 40);
        // 40 of each at 50 a second; with a limit for all they would need three times as long.
        let took = span(&times);
        assert!(
            took >= Duration::from_millis(39 * 20).mul_f64(0.9),
            "{outage}, {took:?}: no limit at all"
        );
    }
    for mut replica in replicas {
        let logs = replica.end();
        assert!(logs.matches("cannot be used").count() <= 3, "{logs}");
    }
}

#[test]
fn a_limit_that_somebody_else_has_written_over_begins_anew() {
    let Some(redis) = Redis::start() else { return };
    let ((upstream, _), spec) = (noting(), spec());
    // One use in ten seconds, for which Redis knows of it.
    let mut replicas = replicas(&redis, &spec, &upstream, "0.1", &PATIENT);
    let (first, others) = replicas.split_at_mut(1);
    call_all(first, 1);
    let key = redis.keys().pop().expect("a limit");
    redis.run(&["SET", &key, "garbage"]);
    call_all(&mut others[..1], 1);
    let due: String = redis::cmd("GET")
        .arg(&key)
        .query(&mut redis.connection())
        .unwrap();
    assert!(due.parse::<u64>().is_ok(), "{due}");
}

#[test]
fn a_full_redis_costs_the_limit_of_all_and_no_call() {
    let Some(redis) = Redis::start_with(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"])
    else {
        return;
    };
    let ((upstream, _), spec) = (noting(), spec());
    let mut replicas = replicas(&redis, &spec, &upstream, "500", &PATIENT);
    call_all(&mut replicas, 3);
    for replica in &replicas {
        replica.logged("its memory is full");
    }
}

/// Requests of a client at each replica in turn; gives how many were let in.
fn let_in(replicas: &[HttpServer], requests: usize) -> f64 {
    let answers = (0..requests).map(|number| {
        replicas[number % replicas.len()].post(&["MCP-Protocol-Version: 2025-11-25"], CALL)
    });
    answers
        .filter(|(status, answer)| {
            assert!(
                status.contains("200") || status.contains("429"),
                "{status} {answer}"
            );
            status.contains("200")
        })
        .map(|_| 1.0)
        .sum()
}

#[test]
fn a_client_has_one_limit_at_all_replicas_and_its_address_stays_hidden() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let more = [
        "--spec",
        &petstore(),
        "--mock",
        "client_rate_limit: 20",
        "--metrics-bind",
        "127.0.0.1:0",
    ];
    let replicas: Vec<HttpServer> = (0..3)
        .map(|_| http_replica(&redis, &[&more[..], &PATIENT].concat(), &[]))
        .collect();
    let started = Instant::now();
    let count = let_in(&replicas, 90);
    let allowed = 20.0 + 20.0 * started.elapsed().as_secs_f64();
    assert!(
        count <= allowed * 1.1,
        "{count} of {allowed} in {:?}",
        started.elapsed()
    );
    assert!(count >= 20.0, "{count}");
    assert_hidden(&redis, &["127.0.0.1"]);

    redis.kill();
    let started = Instant::now();
    let count = let_in(&replicas, 90);
    let allowed = 3.0 * (20.0 + 20.0 * started.elapsed().as_secs_f64());
    assert!(
        count <= allowed * 1.1,
        "{count} of {allowed}: each replica has its own limit"
    );
    let log = replicas[0].logged("cannot be used");
    let (_, metrics) = log.split_once("metrics at http://").unwrap();
    let address = metrics.split('/').next().unwrap();
    let scrape = crate::http::metrics::scrape(address);
    let counted = scrape.lines().find_map(|line| {
        line.strip_prefix("openapi_mcp_shared_state_errors_total{what=\"limit\"} ")
    });
    assert!(counted.is_some_and(|count| count != "0"), "{scrape}");
}
