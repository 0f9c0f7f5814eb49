//! Features that a server does not use unless its operator configures them.

use crate::support::{CALL, HttpServer, listening_sockets, petstore};

/// The names of the threads of a process, those of the runtime once.
fn threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let mut names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn without_settings_there_is_neither_a_listener_nor_a_thread_for_operators() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let served = |more: &[&str], variables: &[(&str, &str)]| {
        let server = HttpServer::start_with(
            &[
                &["--spec", &petstore(), "--base-url", "http://127.0.0.1:1"],
                more,
            ]
            .concat(),
            variables,
        );
        server.post(&[], CALL);
        (listening_sockets(server.pid()), threads(server.pid()))
    };
    let (listeners, plain) = served(&[], &[]);
    assert_eq!(listeners, 1);
    assert_eq!(plain, ["log", "openapi-mcp", "tokio-rt-worker"]);
    // Both are seen where they are asked for.
    let (listeners, threads) = served(
        &[
            "--metrics-bind",
            "127.0.0.1:0",
            "--audit-log",
            log.to_str().unwrap(),
        ],
        &[],
    );
    assert_eq!(listeners, 2);
    assert!(threads.contains(&"audit".to_owned()), "{threads:?}");
    let (listeners, threads) = served(
        &[],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")],
    );
    assert_eq!((listeners, threads), (1, plain), "spans are sent by a task");
}

/// A core dump would hold the credentials.
#[test]
fn no_core_is_dumped() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"))
        .unwrap();
    assert_eq!(
        core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(),
        ["0", "0"],
        "{core}"
    );
}
