//! Replies that become files in the folder of `file_store`, and the links to them; through the
//! binary, over HTTP.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use super::saved::{bytes, files, folder, spec};
use crate::support::http_server::{answer_header, http_request};
use crate::support::{
    HttpServer, SpecFile, Upstream, call_message, reply, run, stderr, text, wait_until,
};

const ZIP: [&str; 2] = [
    "Content-Type: application/zip",
    "Content-Disposition: attachment; filename=\"../a table.zip\"",
];

fn upstream(length: usize) -> Upstream {
    Upstream::start(Box::new(move |_| reply(200, &ZIP, &bytes(length))))
}

fn export(server: &HttpServer, version: &str, headers: &[&str]) -> Value {
    let version = format!("MCP-Protocol-Version: {version}");
    let headers = [&[version.as_str()], headers].concat();
    let (status, answer) = server.post(&headers, &call_message("export", "{}"));
    let answer: Value =
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{status}: {answer}"));
    answer["result"].clone()
}

/// The URL in a result, and its path.
fn link(result: &Value) -> (String, String) {
    let url = result["structuredContent"]["file"]["url"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"));
    let path = url.splitn(4, '/').nth(3).unwrap();
    (url.to_owned(), format!("/{path}"))
}

/// A request without credentials; the head and the body of the answer.
fn fetch(server: &HttpServer, method: &str, path: &str, headers: &[&str]) -> (String, Vec<u8>) {
    let mut stream = server.connect();
    let more: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let host = if headers.iter().any(|line| line.starts_with("Host:")) {
        String::new()
    } else {
        format!("Host: {}\r\n", server.address)
    };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\n{host}{more}Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let body = answer.split_off(end + 4);
    (String::from_utf8(answer).unwrap(), body)
}

#[test]
fn a_reply_that_does_not_fit_a_result_becomes_a_link_that_works_more_than_once() {
    let (upstream, spec, (_outside, root)) = (upstream(3 << 20), spec(), folder());
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("file_store: {root}"),
        "--auth-token-env",
        "TOKEN",
    ];
    let server = HttpServer::start_with(&args, &[("TOKEN", "t0ken-of-a-client")]);
    let result = export(
        &server,
        "2025-11-25",
        &["Authorization: Bearer t0ken-of-a-client"],
    );
    let file = &result["structuredContent"]["file"];
    let (url, path) = link(&result);
    assert!(
        url.starts_with(&format!("http://{}/files/", server.address)),
        "{url}"
    );
    assert_eq!(
        (
            &file["type"],
            &file["bytes"],
            &file["name"],
            &file["expires_in_seconds"]
        ),
        (
            &json!("application/zip"),
            &json!(3 << 20),
            &json!("atable.zip"),
            &json!(600)
        )
    );
    assert!(
        text(&result).contains(&url),
        "both forms have the URL: {result}"
    );
    let block = json!({"type": "resource_link", "uri": url, "name": "atable.zip", "mimeType": "application/zip", "size": 3 << 20});
    assert_eq!(result["content"][1], block);
    for _ in 0..2 {
        let (head, body) = fetch(&server, "GET", &path, &[]);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(body == bytes(3 << 20));
    }
    let (head, body) = fetch(&server, "HEAD", &path, &[]);
    assert!(
        head.starts_with("HTTP/1.1 200") && body.is_empty(),
        "{head}"
    );
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-length", "3145728"),
        ("content-disposition", "attachment; filename=atable.zip"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(answer_header(&head, name), Some(value), "{head}");
    }
    assert_eq!(files(&root).len(), 1);
    let name = files(&root)[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        name.len() == 32 && name.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "{name}"
    );
    let token = path.rsplit('/').next().unwrap();
    let logs = server.logs();
    assert!(!logs.contains(token) && !logs.contains(&name), "{logs}");
}

#[test]
fn clients_of_older_versions_get_the_url_as_text_alone() {
    let (upstream, spec, (_outside, root)) = (upstream(100_000), spec(), folder());
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("file_store: {root}"),
    ]);
    for (version, blocks) in [("2025-03-26", 1), ("2025-06-18", 2), ("2025-11-25", 2)] {
        let result = export(&server, version, &[]);
        assert_eq!(
            result["content"].as_array().unwrap().len(),
            blocks,
            "{version}: {result}"
        );
        let (url, path) = link(&result);
        assert!(text(&result).contains(&url));
        assert!(
            fetch(&server, "GET", &path, &[]).1 == bytes(100_000),
            "{version}"
        );
    }
}

/// An HTML page with a script is a download and nothing else, and no page of another origin can
/// read it.
#[test]
fn p26_a_file_is_never_shown_as_a_page_of_this_server() {
    let page = format!("<script>fetch('/mcp')</script>{}", " ".repeat(100_000));
    let upstream = Upstream::start(Box::new(move |_| {
        let head = [
            "Content-Type: text/html",
            "Content-Disposition: inline; filename=\"a.html\"",
            "Set-Cookie: a=b",
        ];
        reply(200, &head, page.as_bytes())
    }));
    let (spec, (outside, root)) = (spec(), folder());
    let config = outside.path().join("c.yaml");
    std::fs::write(
        &config,
        "overrides: [{match: {operation: export}, response: {file: true}}]\n",
    )
    .unwrap();
    let config = config.display().to_string();
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("file_store: {root}"),
        "--config",
        &config,
    ];
    let server =
        HttpServer::start(&[&args[..], &["allow_origin: [\"https://app.example\"]"]].concat());
    let result = export(&server, "2025-11-25", &[]);
    assert_eq!(result["structuredContent"]["file"]["type"], "text/html");
    let (_, path) = link(&result);
    for origin in [&[][..], &["Origin: https://app.example"]] {
        let (head, _) = fetch(&server, "GET", &path, origin);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(
            answer_header(&head, "content-type"),
            Some("application/octet-stream")
        );
        assert_eq!(
            answer_header(&head, "content-disposition"),
            Some("attachment; filename=a.html")
        );
        for absent in ["access-control-allow-origin", "set-cookie", "location"] {
            assert_eq!(answer_header(&head, absent), None, "{head}");
        }
    }
    for refused in [["Origin: https://evil.example"], ["Host: evil.example"]] {
        let (head, _) = fetch(&server, "GET", &path, &refused);
        assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let (head, _) = fetch(&server, method, &path, &["Content-Length: 0"]);
        assert!(
            head.starts_with("HTTP/1.1 405") && answer_header(&head, "allow") == Some("GET, HEAD"),
            "{head}"
        );
    }
}

#[test]
fn p28_forged_foreign_and_unknown_links_get_one_answer() {
    let (upstream, spec, (_outside, root), (_other_outside, other_root)) =
        (upstream(100_000), spec(), folder(), folder());
    let start = |root: &str, key: &str| {
        let args = [
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            &format!("file_store: {root}"),
            "--state-key-env",
            "KEY",
        ];
        HttpServer::start_with(&args, &[("KEY", key)])
    };
    let (key, other_key) = ("ab".repeat(32), "cd".repeat(32));
    let (server, replica, foreign) = (
        start(&root, &key),
        start(&root, &key),
        start(&other_root, &other_key),
    );
    let (_, path) = link(&export(&server, "2025-11-25", &[]));
    let (_, foreign_path) = link(&export(&foreign, "2025-11-25", &[]));
    assert!(
        fetch(&replica, "GET", &path, &[]).1 == bytes(100_000),
        "a replica with the folder and the key serves it"
    );
    let (begin, first) = path.split_at(path.len() - 40);
    let flipped = format!(
        "{begin}{}{}",
        if first.starts_with('A') { "B" } else { "A" },
        first.get(1..).unwrap()
    );
    let (_, expected) = fetch(&server, "GET", "/files/x", &[]);
    let name = files(&root)[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let long = "A".repeat(5_000);
    for wrong in [
        begin,
        &flipped,
        &foreign_path,
        &format!("/files/{name}"),
        &format!("/files/{long}"),
        "/files/%2e%2e%2fd.json",
    ] {
        for method in ["GET", "HEAD"] {
            let (head, body) = fetch(&server, method, wrong, &[]);
            assert!(head.starts_with("HTTP/1.1 404"), "{wrong}: {head}");
            assert!(
                body == if method == "GET" {
                    expected.clone()
                } else {
                    Vec::new()
                }
            );
            assert_eq!(answer_header(&head, "cache-control"), Some("no-store"));
        }
    }
    std::fs::remove_file(&files(&root)[0]).unwrap();
    assert_eq!(fetch(&server, "GET", &path, &[]).1, expected);
}

#[test]
fn p45_a_client_holds_at_most_half_of_the_bytes_that_others_leave_free() {
    let (upstream, spec, (_outside, root)) = (upstream(1 << 20), spec(), folder());
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("file_store: {root}"),
        "file_store_bytes: 6291456",
    ];
    let more = ["--auth-token-env", "ONE,OTHER", "retries: 0"];
    let server = HttpServer::start_with(
        &[&args[..], &more].concat(),
        &[
            ("ONE", "t0ken-of-client-one"),
            ("OTHER", "t0ken-of-client-other"),
        ],
    );
    let (one, other) = (
        "Authorization: Bearer t0ken-of-client-one",
        "Authorization: Bearer t0ken-of-client-other",
    );
    for _ in 0..3 {
        link(&export(&server, "2025-11-25", &[one]));
    }
    let refused = export(&server, "2025-11-25", &[one]);
    assert!(
        text(&refused).contains("as many files for you as `file_store_bytes` allows"),
        "{refused}"
    );
    assert_eq!(files(&root).len(), 3, "nothing is left of the refused one");
    link(&export(&server, "2025-11-25", &[other]));
}

#[test]
fn p45_small_files_and_those_of_other_processes_take_their_place_too() {
    let (upstream, spec, (_outside, root)) = (upstream(5), spec(), folder());
    let rule = SpecFile::new(&json!({"overrides": [{"response": {"file": true}}]}).to_string());
    let start = || {
        HttpServer::start(&[
            "--config",
            rule.path(),
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "retries: 0",
            &format!("file_store: {root}"),
            "file_store_bytes: 1048576",
        ])
    };
    let fill = |server: &HttpServer| {
        let results = std::iter::repeat_with(|| export(server, "2025-11-25", &[]));
        results
            .take_while(|result| result["structuredContent"]["file"].is_object())
            .take(200)
            .count()
    };
    // 128 blocks, of which a client holds half of what others leave.
    assert_eq!((fill(&start()), files(&root).len()), (64, 64));
    assert_eq!((fill(&start()), files(&root).len()), (32, 96));
}

#[test]
fn files_count_for_the_rate_of_their_client() {
    let (upstream, spec, (_outside, root)) = (upstream(100_000), spec(), folder());
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("file_store: {root}"),
        "client_rate_limit: 0.01",
    ];
    let server = HttpServer::start(&args);
    let (_, path) = link(&export(&server, "2025-11-25", &[]));
    let (head, _) = fetch(&server, "GET", &path, &[]);
    assert!(
        head.starts_with("HTTP/1.1 429") && answer_header(&head, "retry-after").is_some(),
        "{head}"
    );
}

#[test]
fn nothing_is_left_in_the_store_of_a_reply_that_breaks_off_or_is_cancelled() {
    let upstream = Upstream::raw(|request, stream| {
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nConnection: close\r\nContent-Length: 9000000\r\n\r\n");
        let _ = stream.write_all(&bytes(1_000_000));
        if request.path() == "/export" {
            return;
        }
        let _ = stream.read(&mut [0]);
    });
    let (spec, (_outside, root)) = (spec(), folder());
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("file_store: {root}"),
    ]);
    let result = export(&server, "2025-11-25", &[]);
    assert!(
        text(&result).contains("broke before the reply was complete"),
        "{result}"
    );
    assert_eq!(files(&root).len(), 0);
    let mut stream = server.connect();
    let file = call_message("file", "{\"name\":\"a.zip\"}");
    let request = http_request(
        &server.address,
        "POST",
        &["MCP-Protocol-Version: 2025-11-25"],
        &file,
    );
    stream.write_all(request.as_bytes()).unwrap();
    wait_until("no file is written", || files(&root).len() == 1);
    drop(stream);
    wait_until("the file stays", || files(&root).is_empty());
}

#[test]
fn leftovers_go_at_the_start_and_nothing_of_another_name() {
    let (upstream, spec, (_outside, root)) = (upstream(100), spec(), folder());
    std::fs::create_dir(&root).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_mins(21);
    let (left, fresh, other) = ("0".repeat(32), "1".repeat(32), "notes.txt");
    for (name, changed) in [
        (left.as_str(), Some(old)),
        (&fresh, None),
        (other, Some(old)),
    ] {
        let file = std::fs::File::create(std::path::Path::new(&root).join(name)).unwrap();
        if let Some(changed) = changed {
            file.set_modified(changed).unwrap();
        }
    }
    #[cfg(unix)]
    std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let _server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("file_store: {root}"),
    ]);
    wait_until("the leftover stays", || files(&root).len() == 2);
    assert!(files(&root).iter().all(|file| !file.ends_with(&left)));
}

/// Who could fetch links without a token, or a folder in which others write, ends the start.
#[test]
fn p54_a_store_needs_clients_that_authenticate_and_a_url() {
    let (spec, (outside, root)) = (spec(), folder());
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:9",
    ];
    for (more, words) in [
        (
            &["--transport", "stdio"][..],
            &["`file_store` needs --transport http"][..],
        ),
        (&[], &["`file_store` needs --transport http"]),
        (
            &[
                "--transport",
                "http",
                "--bind",
                "0.0.0.0:0",
                "--allow-host",
                "mcp.example",
                "--allow-unauthenticated",
            ],
            &[
                "`file_store` needs clients that authenticate",
                "`file_store` needs --public-url URL",
            ],
        ),
        (
            &[
                "--transport",
                "http",
                "--bind",
                "127.0.0.1:0",
                "file_store_bytes: 5000000",
                "max_file_bytes: 4000000",
            ],
            &["`max_file_bytes` must be at most half of `file_store_bytes`"],
        ),
    ] {
        let store = format!("file_store: {root}");
        let output = run(&[&args[..], &[&store], more].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    #[cfg(unix)]
    {
        let open = outside.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
        let open = format!("file_store: {}", open.display());
        let output = run(&[
            &args[..],
            &[&open, "--transport", "http", "--bind", "127.0.0.1:0"],
        ]
        .concat());
        assert!(
            stderr(&output).contains("can be written by other users"),
            "{}",
            stderr(&output)
        );
    }
    drop(outside);
}

#[test]
fn the_start_says_what_links_need_with_several_replicas() {
    let (spec, (_outside, root)) = (spec(), folder());
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:9",
        &format!("file_store: {root}"),
    ];
    let more = [
        "--shared-state",
        "redis://127.0.0.1:9",
        "--state-key-env",
        "KEY",
    ];
    let server = HttpServer::start_with(&[&args[..], &more].concat(), &[("KEY", &"ab".repeat(32))]);
    server.logged(
        "route each client to one of them, or give all of them one folder and one state key",
    );
}

#[test]
fn links_begin_with_the_public_url() {
    let (upstream, spec, (_outside, root)) = (upstream(100_000), spec(), folder());
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        &format!("file_store: {root}"),
    ];
    for (public, begin) in [
        ("https://mcp.example", "https://mcp.example/files/"),
        (
            "https://mcp.example/tools/mcp",
            "https://mcp.example/tools/files/",
        ),
    ] {
        let server = HttpServer::start(&[&args[..], &["--public-url", public]].concat());
        let (url, _) = link(&export(&server, "2025-11-25", &[]));
        let token = url.strip_prefix(begin).unwrap_or_else(|| panic!("{url}"));
        let (head, body) = fetch(
            &server,
            "GET",
            &format!("/files/{token}"),
            &["Host: mcp.example"],
        );
        assert!(body == bytes(100_000), "{head}");
    }
}
