//! `--max-spec-bytes`: how much is read of a document, and of the files that it refers to.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::support::{SpecFile, Upstream, command, reply, run, stderr, stdout};

/// A document of one operation that takes exactly so many bytes.
fn document_of(bytes: usize) -> String {
    let empty = json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1", "description": ""}, "paths": {"/a": {"get": {"operationId": "listed"}}}});
    let text = empty.to_string();
    text.replace(
        r#""description":"""#,
        &format!(r#""description":"{}""#, "x".repeat(bytes - text.len())),
    )
}

/// Lists the tools of a document under the limit: the exit code, and everything that was written.
fn list(spec: &str, max_bytes: usize) -> (Option<i32>, String) {
    let output = run(&[
        "tools",
        "--spec",
        spec,
        "--max-spec-bytes",
        &max_bytes.to_string(),
    ]);
    (output.status.code(), stdout(&output) + &stderr(&output))
}

#[test]
fn a_document_larger_than_the_limit_is_refused_with_the_name_of_the_setting() {
    let spec = SpecFile::new(&document_of(3000));
    assert_eq!(list(spec.path(), 3000).0, Some(0));
    let (code, said) = list(spec.path(), 2999);
    assert!(
        code == Some(3)
            && said.contains("is larger than 2999 bytes; --max-spec-bytes sets another limit"),
        "{code:?} {said}"
    );

    let mut child = command(&["tools", "--spec", "-", "--max-spec-bytes", "2999"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It may stop reading before the end.
    let _ = child
        .stdin
        .take()
        .unwrap()
        .write_all(document_of(3000).as_bytes());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("standard input is larger than 2999 bytes"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_limit_of_a_document_from_a_url_counts_after_decompression() {
    let pack = |part: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    let document = document_of(1 << 20);
    // A gzip may have several members (RFC 1952 section 2.2).
    let packed: Vec<u8> = document.as_bytes().chunks(600_000).flat_map(pack).collect();
    assert!(packed.len() < 10_000);
    let upstream = Upstream::start(Box::new(move |_| {
        reply(
            200,
            &["Content-Type: application/json", "Content-Encoding: gzip"],
            &packed,
        )
    }));
    let url = format!("{}/openapi.json", upstream.url);
    let (code, said) = list(&url, 1 << 20);
    assert!(code == Some(0) && said.contains("listed"), "{said}");
    let (code, said) = list(&url, (1 << 20) - 1);
    assert!(
        code == Some(3) && said.contains("is larger than 1048575 bytes"),
        "{code:?} {said}"
    );
}

#[test]
fn the_files_that_a_document_refers_to_may_together_take_twice_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let paths: serde_json::Map<_, _> = (1..=4)
        .map(|number| {
            (
                format!("/p{number}"),
                json!({"$ref": format!("p{number}.json")}),
            )
        })
        .collect();
    write(
        "openapi.json",
        &json!({"openapi": "3.1.0", "paths": paths}).to_string(),
    );
    let item = |number: usize, bytes: usize| {
        let text =
            json!({"get": {"operationId": format!("op{number}"), "description": ""}}).to_string();
        text.replace(
            r#":"""#,
            &format!(r#":"{}""#, "x".repeat(bytes - text.len())),
        )
    };
    for (number, bytes) in [(1, 1001), (2, 900), (3, 900), (4, 201)] {
        write(&format!("p{number}.json"), &item(number, bytes));
    }
    let spec = folder.path().join("openapi.json");
    let (code, said) = list(spec.to_str().unwrap(), 1000);
    assert_eq!(code, Some(0), "{said}");
    for (operation, is_served) in [("op1", false), ("op2", true), ("op3", true), ("op4", false)] {
        assert_eq!(said.contains(operation), is_served, "{operation}: {said}");
    }
    assert!(
        said.contains("`p1.json` is not read") && said.contains("is larger than 1000 bytes"),
        "{said}"
    );
    assert!(
        said.contains("`p4.json` is not read: the files that the document refers to are larger than 2000 bytes together"),
        "{said}"
    );
    let (code, said) = list(spec.to_str().unwrap(), 2000);
    assert!(
        code == Some(0) && said.contains("op1") && said.contains("op4"),
        "{said}"
    );
}

#[test]
fn a_limit_that_no_document_can_have_is_refused() {
    let spec = SpecFile::new(&document_of(3000));
    for bytes in [0, (1 << 30) + 1] {
        let (code, said) = list(spec.path(), bytes);
        assert!(
            code == Some(2) && said.contains("--max-spec-bytes must be between 1 and 1073741824"),
            "{said}"
        );
    }
}
