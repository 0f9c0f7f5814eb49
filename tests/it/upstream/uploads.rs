//! Files that a call names by their path, and uploads that take their time; through the binary, to
//! an upstream that records.

use std::io::Write as _;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, reply, text};

fn spec() -> SpecFile {
    let file = json!({"type": "string", "format": "binary"});
    let multipart = json!({"type": "object", "properties": {"note": {"type": "string"}, "files": {"type": "array", "items": file}}});
    SpecFile::with_paths(&json!({
        "/bytes": {"put": {"operationId": "bytes", "requestBody": {"content": {"application/octet-stream": {"schema": file}}}}},
        "/form": {"post": {"operationId": "form", "requestBody": {"content": {"multipart/form-data": {"schema": multipart}}}}},
    }))
}

/// A folder with files, and one file beside it.
fn folder() -> (tempfile::TempDir, String) {
    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().join("outbox");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.bin"), b"one\r\n").unwrap();
    std::fs::write(root.join("large"), vec![7_u8; 3 << 20]).unwrap();
    std::fs::write(outside.path().join("secret"), b"s3cret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
    let root = root.display().to_string();
    (outside, root)
}

#[test]
fn p51_files_below_the_folder_are_sent_and_no_others() {
    let (upstream, spec, (_outside, root)) = (Upstream::echo(), spec(), folder());
    let mut session = Session::serving(&spec, &upstream, &["--allow-file-args", &root]);

    session.call("bytes", &json!({"body": {"path": "a.bin"}}));
    let received = upstream.take_one();
    assert_eq!(received.body, b"one\r\n");
    assert_eq!(received.header("content-length"), Some("5"));
    assert_eq!(received.header("transfer-encoding"), None);

    let files = json!([{"path": "a.bin", "mediaType": "text/plain"}, {"data": "aGk=", "filename": "b"}, {"path": "large"}]);
    session.call("form", &json!({"body": {"note": "n", "files": files}}));
    let received = upstream.take_one();
    let (head, boundary) = received
        .header("content-type")
        .unwrap()
        .split_once("; boundary=")
        .unwrap();
    assert_eq!(head, "multipart/form-data");
    let part = |filename: &str, kind: &str| {
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{filename}\"\r\nContent-Type: {kind}\r\n\r\n"
        )
    };
    let expected = [
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nn\r\n")
            .as_bytes(),
        part("a.bin", "text/plain").as_bytes(),
        b"one\r\n\r\n",
        part("b", "application/octet-stream").as_bytes(),
        b"hi\r\n",
        part("large", "application/octet-stream").as_bytes(),
        &vec![7_u8; 3 << 20],
        format!("\r\n--{boundary}--\r\n").as_bytes(),
    ]
    .concat();
    assert!(received.body == expected, "the body of the form differs");

    for path in ["../secret", "link", "none", "/etc/hostname", "."] {
        let result = session.call("bytes", &json!({"body": {"path": path}}));
        let said = text(&result);
        assert!(
            result["isError"] == true && said.contains("`path`"),
            "{path}: {said}"
        );
        assert!(!said.contains("outbox"), "{said}");
    }
    assert!(upstream.received().is_empty());
}

#[test]
fn p51_without_the_setting_no_file_is_read() {
    let (upstream, spec, (_outside, root)) = (Upstream::echo(), spec(), folder());
    let mut session = Session::serving(&spec, &upstream, &[]);
    let listed = session.tools();
    assert!(
        !json!(listed).to_string().contains("\"path\""),
        "{listed:?}"
    );
    let result = session.call("bytes", &json!({"body": {"path": format!("{root}/a.bin")}}));
    assert_eq!(result["isError"], true, "{result}");
    assert!(upstream.received().is_empty());
    let mut session = Session::serving(&spec, &upstream, &["--allow-file-args", &root]);
    let listed = json!(session.tools()).to_string();
    assert_eq!(listed.matches("\"path\"").count(), 2, "{listed}");
    assert!(!listed.contains(&root));
}

#[test]
fn no_file_is_read_for_bytes_that_are_sent_as_base64() {
    let (upstream, (_outside, root)) = (Upstream::echo(), folder());
    let icon =
        json!({"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"});
    let form = json!({"type": "object", "properties": {"icon": icon}});
    let spec = SpecFile::with_paths(&json!({
        "/png": {"put": {"operationId": "png", "requestBody": {"content": {"image/png": {"schema": icon}}}}},
        "/form": {"post": {"operationId": "form", "requestBody": {"content": {"multipart/form-data": {"schema": form}}}}},
    }));
    let mut session = Session::serving(&spec, &upstream, &["--allow-file-args", &root]);
    let listed = json!(session.tools()).to_string();
    assert!(!listed.contains("\"path\""), "{listed}");
    for (tool, body) in [
        ("png", json!({"path": "a.bin"})),
        ("form", json!({"icon": {"path": "a.bin"}})),
    ] {
        let result = session.call(tool, &json!({"body": body}));
        assert!(text(&result).contains("`data` is missing"), "{result}");
    }
    assert!(upstream.received().is_empty());
}

#[test]
fn a_file_is_read_anew_when_the_request_is_sent_again() {
    let spec = spec();
    let (_outside, root) = folder();
    let upstream = Upstream::start(Box::new(|_| reply(503, &["Retry-After: 0"], b"")));
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--allow-file-args", &root, "retries: 1"],
    );
    session.call("bytes", &json!({"body": {"path": "large"}}));
    let bodies: Vec<usize> = upstream
        .take_all()
        .iter()
        .map(|received| received.body.len())
        .collect();
    assert_eq!(bodies, [3 << 20, 3 << 20]);
}

#[test]
fn a_long_upload_is_told_as_it_goes() {
    let (upstream, spec, (_outside, root)) = (Upstream::echo(), spec(), folder());
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--allow-file-args", &root, "--timeout", "300"],
    );
    let mut told = |body: Value| {
        session.post(
            "tools/call",
            &json!({"name": "bytes", "arguments": {"body": body}, "_meta": {"progressToken": "up"}}),
        );
        let mut told = Vec::new();
        loop {
            let message = session.receive();
            if message["id"].is_number() {
                assert_ne!(message["result"]["isError"], true, "{message}");
                return told;
            }
            assert_eq!(message["params"]["progressToken"], "up");
            told.push((
                message["params"]["progress"].as_f64().unwrap(),
                message["params"]["total"].as_f64(),
            ));
        }
    };
    let length = f64::from(3 << 20);
    // Base64 of as many bytes in memory is reported as well.
    for body in [json!({"path": "large"}), json!("AAAA".repeat(1 << 20))] {
        let told = told(body);
        assert!(
            told.windows(2).all(|pair| pair[0].0 < pair[1].0),
            "progress grows: {told:?}"
        );
        assert!(
            told.iter().any(|(_, total)| *total == Some(length)),
            "{told:?}"
        );
        // The reply of eleven bytes comes on top.
        assert!(
            (told.last().unwrap().0 - length - 11.0).abs() < 0.5,
            "{told:?}"
        );
    }
    assert_eq!(upstream.take_all().len(), 2);
}

#[test]
fn a_reply_that_drips_is_told_now_and_then_and_at_its_end() {
    const LENGTH: u32 = 6000;
    let upstream = Upstream::raw(|_, stream| {
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {LENGTH}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        for _ in 0..LENGTH {
            stream.write_all(b"x").unwrap();
            // Another thread reads meanwhile.
            std::thread::yield_now();
        }
    });
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &["--timeout", "300"]);
    let started = Instant::now();
    session.post(
        "tools/call",
        &json!({"name": "form", "arguments": {"body": {}}, "_meta": {"progressToken": "down"}}),
    );
    let mut told = Vec::new();
    loop {
        let message = session.receive();
        if message["id"].is_number() {
            assert_ne!(message["result"]["isError"], true, "{message}");
            break;
        }
        told.push(message["params"]["progress"].as_f64().unwrap());
    }
    let most = 34 + started.elapsed().as_millis() / 100;
    assert!(
        told.len() as u128 <= most,
        "{} of at most {most}: {told:?}",
        told.len()
    );
    assert!(
        (told.last().unwrap() - f64::from(LENGTH)).abs() < 0.5,
        "{told:?}"
    );
}
