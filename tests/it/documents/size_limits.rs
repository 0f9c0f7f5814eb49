//! How much is read of a document.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{SpecFile, Upstream, command, reply, run, stderr, stdout};

/// The most that is read.
const LIMIT: usize = 128 << 20;

fn document() -> Vec<u8> {
    br#"{"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {"/a": {"get": {"operationId": "listed"}}}}"#.to_vec()
}

/// Lists the tools of a document: the exit code, and everything that was written.
fn list(spec: &str) -> (Option<i32>, String) {
    let output = run(&["tools", "--spec", spec]);
    (output.status.code(), stdout(&output) + &stderr(&output))
}

#[test]
fn a_document_larger_than_the_limit_is_refused() {
    let spec = SpecFile::new("");
    let file = std::fs::File::options()
        .write(true)
        .open(spec.path())
        .unwrap();
    file.set_len(LIMIT as u64 + 1).unwrap();
    let (code, said) = list(spec.path());
    assert!(
        code == Some(3) && said.contains("is larger than 134217728 bytes, the most that is read"),
        "{code:?} {said}"
    );

    let mut child = command(&["tools", "--spec", "-"])
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
        .write_all(&vec![b' '; LIMIT + 1]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("standard input is larger than 134217728 bytes"),
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
    // A gzip may have several members (RFC 1952 section 2.2).
    let spaces = pack(&vec![b' '; 1 << 20]);
    let small = [pack(&document()), spaces.clone()].concat();
    let large = [pack(&document()), spaces.repeat(128)].concat();
    assert!(large.len() < 1 << 20);
    let upstream = Upstream::start(Box::new(move |request| {
        let packed = if request.path() == "/large.json" {
            &large
        } else {
            &small
        };
        reply(
            200,
            &["Content-Type: application/json", "Content-Encoding: gzip"],
            packed,
        )
    }));
    let (code, said) = list(&format!("{}/small.json", upstream.url));
    assert!(code == Some(0) && said.contains("listed"), "{said}");
    let (code, said) = list(&format!("{}/large.json", upstream.url));
    assert!(
        code == Some(3) && said.contains("is larger than 134217728 bytes"),
        "{code:?} {said}"
    );
}
