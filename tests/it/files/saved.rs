//! Replies that become files in the folder of `--save-files`; through the binary, over stdio.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{
    Received, Session, SpecFile, Upstream, command, project, reply, signal, stderr, stdout, text,
    wait_until,
};

const PDF: [&str; 2] = [
    "Content-Type: application/pdf",
    "Content-Disposition: attachment; filename=\"report.pdf\"",
];

/// A document with operations whose replies are files.
pub fn spec() -> SpecFile {
    let name =
        json!([{"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}]);
    let csv = json!({"200": {"description": "rows", "content": {"text/csv": {}}}});
    let rows = json!({"200": {"description": "rows", "content": {"application/json": {"schema": {"type": "object"}}}}});
    SpecFile::with_paths(&json!({
        "/export": {"get": {"operationId": "export"}},
        "/rows": {"get": {"operationId": "rows", "responses": csv}},
        "/json": {"get": {"operationId": "json", "responses": rows}},
        "/files/{name}": {"get": {"operationId": "file", "parameters": name}},
    }))
}

/// A configuration file with more than flags can say.
fn config(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.yaml");
    std::fs::write(&path, text).unwrap();
    (folder, path.display().to_string())
}

/// A folder that does not exist yet.
pub fn folder() -> (tempfile::TempDir, String) {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("saved").display().to_string();
    (outside, path)
}

/// The files of a folder.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Bytes that are no text.
pub fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| ((at * 31) >> 3).to_le_bytes()[0] | 0x80)
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn saved(result: &Value) -> &Value {
    assert_eq!(result["isError"], false, "{result}");
    &result["structuredContent"]["file"]
}

fn path_of(result: &Value) -> PathBuf {
    saved(result)["path"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .into()
}

#[test]
fn a_reply_that_does_not_fit_a_result_becomes_a_new_file() {
    let body = bytes(3 << 20);
    let sent = body.clone();
    let upstream = Upstream::start(Box::new(move |_| reply(200, &PDF, &sent)));
    let ((_outside, root), spec) = (folder(), spec());
    let mut session = Session::serving(&spec, &upstream, &["--save-files", &root]);
    let mut paths = Vec::new();
    for _ in 0..2 {
        let result = session.call("export", &json!({}));
        let file = saved(&result);
        assert_eq!(file["type"], "application/pdf");
        assert_eq!(file["bytes"], body.len());
        assert_eq!(file["sha256"], sha256(&body));
        let path = path_of(&result);
        assert!(std::fs::read(&path).unwrap() == body);
        let name = path.file_name().unwrap().to_str().unwrap();
        let letters = name
            .strip_prefix("export-")
            .and_then(|rest| rest.strip_suffix("-report.pdf"))
            .unwrap();
        assert!(
            letters.len() == 6 && letters.bytes().all(|letter| letter.is_ascii_lowercase()),
            "{name}"
        );
        assert!(text(&result).contains(name), "{result}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        paths.push(path);
    }
    assert_ne!(paths[0], paths[1], "nothing is overwritten");
    assert_eq!(files(&root).len(), 2);
}

#[test]
fn what_fits_a_result_stays_in_it() {
    let upstream = Upstream::start(Box::new(|request| match request.path() {
        "/files/image" => reply(200, &["Content-Type: image/png"], &bytes(200_000)),
        "/files/sound" => reply(200, &["Content-Type: audio/mpeg"], &bytes(2_000)),
        "/files/small" => reply(200, &["Content-Type: application/zip"], &bytes(2_000)),
        "/files/untyped" => reply(200, &[], "long text, ".repeat(20_000).as_bytes()),
        "/files/error" => reply(500, &["Content-Type: application/zip"], &bytes(200_000)),
        "/files/empty" => reply(200, &["Content-Type: application/zip"], b""),
        _ => reply(
            200,
            &["Content-Type: text/csv"],
            "1,2\n".repeat(50_000).as_bytes(),
        ),
    }));
    let ((_outside, root), spec) = (folder(), spec());
    let mut session = Session::serving(&spec, &upstream, &["--save-files", &root, "retries: 0"]);
    for (name, kind) in [
        ("image", "image"),
        ("sound", "audio"),
        ("small", "resource"),
    ] {
        let result = session.call("file", &json!({"name": name}));
        assert_eq!(result["content"][1]["type"], kind, "{result}");
    }
    for name in ["untyped", "table", "empty", "error"] {
        let result = session.call("file", &json!({"name": name}));
        assert!(
            result["structuredContent"]["file"].is_null(),
            "{name}: {result}"
        );
        assert_eq!(result["isError"], name == "error", "{name}: {result}");
    }
    assert_eq!(files(&root), Vec::<PathBuf>::new());
}

#[test]
fn what_does_not_fit_is_saved_whatever_its_type_is() {
    let upstream = Upstream::start(Box::new(|request| match request.path() {
        "/files/image" => reply(200, &["Content-Type: image/png"], &bytes(5 << 20)),
        "/files/sound" => reply(200, &["Content-Type: audio/mpeg"], &bytes(100_000)),
        _ => reply(200, &[], &bytes(12 << 20)),
    }));
    let ((_outside, root), spec) = (folder(), spec());
    let mut session = Session::serving(&spec, &upstream, &["--save-files", &root]);
    for (name, kind, length) in [
        ("image", "image/png", 5 << 20),
        ("sound", "audio/mpeg", 100_000),
        ("untyped", "application/octet-stream", 12 << 20),
    ] {
        let result = session.call("file", &json!({"name": name}));
        assert_eq!(
            (&saved(&result)["type"], &saved(&result)["bytes"]),
            (&json!(kind), &json!(length)),
            "{result}"
        );
        assert!(std::fs::read(path_of(&result)).unwrap() == bytes(length));
    }
}

#[test]
fn without_the_setting_the_result_names_it() {
    let upstream = Upstream::start(Box::new(|request| match request.path() {
        "/files/large" => reply(200, &["Content-Type: application/zip"], &bytes(11 << 20)),
        "/rows" => reply(200, &["Content-Type: text/csv"], b"1,2\n"),
        _ => reply(200, &["Content-Type: application/zip"], &bytes(200_000)),
    }));
    let spec = spec();
    let (_folder, config) =
        config("overrides: [{match: {operation: rows}, response: {file: true}}]\n");
    let mut session = Session::serving(&spec, &upstream, &["--config", &config]);
    session.logged(
        "there is no folder for files, so that these replies are left out: set --save-files DIR",
    );
    let result = session.call("export", &json!({}));
    let said = text(&result);
    assert!(
        said.contains("application/zip, 200000 bytes")
            && said.contains("--save-files DIR would deliver it as a file"),
        "{said}"
    );
    let result = session.call("file", &json!({"name": "large"}));
    let said = text(&result);
    assert!(
        said.contains("application/zip, 11534336 bytes") && said.contains("--save-files DIR"),
        "{said}"
    );
    let result = session.call("rows", &json!({}));
    let said = text(&result);
    assert!(
        said.contains("text/csv, 4 bytes")
            && said.contains("--save-files DIR")
            && !said.contains("1,2"),
        "{said}"
    );
}

#[test]
fn a_rule_makes_every_success_a_file_and_text_stays_as_it_is() {
    let csv = b"\xef\xbb\xbfid,name\r\n1,caf\xe9\r\n".repeat(10_000);
    let sent = csv.clone();
    let upstream = Upstream::start(Box::new(move |request| match request.path() {
        "/json" => reply(
            200,
            &["Content-Type: application/json"],
            b"{ \"a\" : 1.50 }",
        ),
        "/files/lines" => reply(
            200,
            &["Content-Type: application/x-ndjson"],
            &b"{\"a\":1}\n".repeat(3_000),
        ),
        "/files/none" => reply(
            404,
            &["Content-Type: application/json"],
            b"{\"why\":\"none\"}",
        ),
        _ => reply(200, &["Content-Type: text/csv; charset=latin1"], &sent),
    }));
    let ((_outside, root), spec) = (folder(), spec());
    let (_folder, config) = config("overrides: [{match: {path: '/**'}, response: {file: true}}]\n");
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--config", &config, "--save-files", &root],
    );
    let result = session.call("rows", &json!({}));
    assert_eq!(saved(&result)["type"], "text/csv");
    assert!(
        std::fs::read(path_of(&result)).unwrap() == csv,
        "no byte of it changes"
    );
    assert!(path_of(&result).display().to_string().ends_with("-rows"));
    let result = session.call("json", &json!({}));
    let path = path_of(&result).display().to_string();
    assert!(path.ends_with("-json.json"), "{path}");
    assert_eq!(
        std::fs::read(path_of(&result)).unwrap(),
        b"{ \"a\" : 1.50 }"
    );
    let result = session.call("file", &json!({"name": "lines"}));
    assert_eq!(saved(&result)["bytes"], 24_000, "no record is left out");
    let result = session.call("file", &json!({"name": "none"}));
    assert!(
        result["isError"] == true && text(&result).contains("none"),
        "{result}"
    );
    let output = session
        .tools()
        .into_iter()
        .find(|tool| tool["name"] == "json")
        .unwrap();
    assert!(output["outputSchema"].is_null(), "{output}");
}

#[test]
fn a_rule_that_removes_parts_of_replies_never_reaches_a_file() {
    let upstream = Upstream::start(Box::new(|_| reply(200, &PDF, &bytes(200_000))));
    let ((_outside, root), spec) = (folder(), spec());
    for rule in ["{drop: [ssn]}", "{fields: [id]}", "{jq: .id}"] {
        let (_folder, config) = config(&format!(
            "overrides: [{{match: {{operation: export}}, response: {rule}}}]\n"
        ));
        let mut session = Session::serving(
            &spec,
            &upstream,
            &["--config", &config, "--save-files", &root],
        );
        let result = session.call("export", &json!({}));
        assert!(text(&result).contains("is withheld"), "{rule}: {result}");
        assert_eq!(files(&root), Vec::<PathBuf>::new(), "{rule}");
    }
}

/// A secret is not saved, in whatever chunk of the reply it is.
#[test]
fn p41_secrets_are_taken_out_of_files() {
    let secret = "k/e+y\"123-of-the-operator";
    let upstream = Upstream::raw(move |request, stream| {
        let forms = [
            secret.to_owned(),
            r#"k\/e+y\"123-of-the-operator"#.into(),
            "k%2Fe%2By%22123-of-the-operator".into(),
        ];
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nConnection: close\r\n");
        let _ = write!(
            stream,
            "Content-Disposition: attachment; filename=\"k%2Fe%2By%22123-of-the-operator.csv\"\r\n\r\n"
        );
        assert_eq!(request.header("x-api-key"), Some(secret));
        for (number, form) in forms.iter().cycle().take(9).enumerate() {
            let (head, tail) = form.split_at(2 + number);
            let _ = stream
                .write_all(&vec![b'x'; 60_000])
                .and_then(|()| stream.write_all(head.as_bytes()));
            let _ = stream.flush();
            std::thread::yield_now();
            let _ = stream.write_all(tail.as_bytes());
        }
    });
    let ((_outside, root), spec) = (folder(), spec());
    let (_folder, config) = config(
        "header_env: [X-Api-Key=KEY]\noverrides: [{match: {operation: rows}, response: {file: true}}]\n",
    );
    let more = ["--config", config.as_str(), "--save-files", root.as_str()];
    let mut session = Session::serving_with(&spec, &upstream, &more, &[("KEY", secret)]);
    let result = session.call("rows", &json!({}));
    let path = path_of(&result);
    let saved = std::fs::read_to_string(&path).unwrap();
    assert_eq!(saved.matches("[redacted]").count(), 9);
    assert_eq!(saved.replace("[redacted]", "").len(), 9 * 60_000);
    assert!(
        !path.display().to_string().contains("of-the-operator"),
        "{path:?}"
    );
}

/// No decoding and no dropped character brings a secret into a name.
#[test]
fn p41_no_name_of_a_file_holds_a_secret() {
    let (first, second) = ("Zk3yS3cretTokenAbcdefZ", "p+a/ss wo\"rd=98765");
    let wide = |text: &str, before: &str, after: &str| -> String {
        text.bytes()
            .map(|byte| format!("{before}%{byte:02X}{after}"))
            .collect()
    };
    let names = [
        format!("filename=\"{first}.pdf\""),
        format!("filename*=UTF-8''{}.pdf", wide(first, "", "")),
        format!("filename*=UTF-16BE''{}", wide(first, "%00", "")),
        format!("filename*=utf-16le''{}", wide(second, "", "%00")),
        "filename=\"Zk3\\yS3cretTokenAbcdefZ\"".into(),
        "filename=\"Zk3yS 3cretTokenAbcdefZ\"".into(),
        "filename=\"Zk3yS/3cretTokenAbcdefZ\"".into(),
        format!("filename=\"{}{first}\"", "n".repeat(70)),
        "filename=passwo:rd98765.pdf".into(),
        format!("filename=\"{}\"", wide(first, "", "")),
        format!("filename*=UTF-8''{}", wide(second, "", "")),
    ];
    let sent = names.clone();
    let upstream = Upstream::start(Box::new(move |request| {
        let number: usize = request
            .path()
            .rsplit('/')
            .next()
            .unwrap()
            .parse()
            .unwrap_or_default();
        let disposition = format!("Content-Disposition: attachment; {}", sent[number]);
        reply(
            200,
            &["Content-Type: application/pdf", &disposition],
            &bytes(100_000),
        )
    }));
    let ((_outside, root), spec) = (folder(), spec());
    let (_folder, config) = config("header_env: [X-Api-Key=FIRST, X-Other-Key=SECOND]\n");
    let more = ["--config", config.as_str(), "--save-files", root.as_str()];
    let mut session = Session::serving_with(
        &spec,
        &upstream,
        &more,
        &[("FIRST", first), ("SECOND", second)],
    );
    for (number, name) in names.iter().enumerate() {
        let path = path_of(&session.call("file", &json!({"name": number.to_string()})));
        let path = path.display().to_string();
        assert!(
            path.ends_with("-file") && Path::new(&path).exists(),
            "{name}: {path}"
        );
    }
}

#[derive(Debug, Deserialize)]
struct NameCase {
    disposition: Option<String>,
    path: Option<String>,
    name: Option<String>,
    name_length: Option<usize>,
    long: Option<usize>,
    #[serde(default)]
    refused: bool,
}

/// No reply and no argument chooses a whole name.
#[test]
fn p51_hostile_names_stay_names_in_the_folder() {
    let cases: Vec<NameCase> = serde_yaml::from_str(
        &std::fs::read_to_string(project("tests/cases/files/names.yaml")).unwrap(),
    )
    .unwrap();
    for case in cases {
        let long = case
            .long
            .map(|length| format!("attachment; filename=\"{}.tar.gz\"", "n".repeat(length)));
        let disposition = case.disposition.clone().or(long);
        let upstream = Upstream::start(Box::new(move |_: &Received| {
            let mut head = vec!["Content-Type: application/zip".to_owned()];
            head.extend(
                disposition
                    .iter()
                    .map(|value| format!("Content-Disposition: {value}")),
            );
            reply(
                200,
                &head.iter().map(String::as_str).collect::<Vec<_>>(),
                &bytes(100_000),
            )
        }));
        let ((outside, root), spec) = (folder(), spec());
        let mut session = Session::serving(&spec, &upstream, &["--save-files", &root]);
        let result = match &case.path {
            Some(path) => session.call("file", &json!({"name": path})),
            None => session.call("export", &json!({})),
        };
        assert_eq!(
            std::fs::read_dir(outside.path()).unwrap().count(),
            1,
            "{case:?}"
        );
        if case.refused {
            assert!(
                result["isError"] == true && files(&root).is_empty(),
                "{case:?}: {result}"
            );
            continue;
        }
        let path = path_of(&result);
        assert_eq!(
            path.parent().unwrap(),
            Path::new(&root).canonicalize().unwrap(),
            "{case:?}"
        );
        assert!(files(&root) == std::slice::from_ref(&path), "{case:?}");
        let name = path.file_name().unwrap().to_str().unwrap();
        let (_, rest) = name.split_once('-').unwrap();
        let rest = rest.get(7..).unwrap();
        if let Some(expected) = &case.name {
            assert_eq!(rest, expected, "{case:?}");
        }
        if let Some(length) = case.name_length {
            assert!(
                rest.len() == length && path.extension().is_some_and(|extension| extension == "gz"),
                "{case:?}: {rest}"
            );
        }
    }
}

/// Whatever fails, the folder is empty and the result says what failed.
#[test]
fn nothing_is_left_of_a_reply_that_does_not_come_whole() {
    let upstream = Upstream::raw(|request, stream| {
        let head = |length: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nConnection: close\r\n{length}\r\n"
            )
        };
        let (head, pieces) = match request.path() {
            "/files/half" => (head("Content-Length: 300000\r\n"), 1),
            "/files/broken" => (head("Content-Encoding: gzip\r\n"), 1),
            "/files/announced" => (head("Content-Length: 3000000\r\n"), 1),
            _ => (head(""), 30),
        };
        let _ = stream.write_all(head.as_bytes());
        for _ in 0..pieces {
            if stream.write_all(&bytes(100_000)).is_err() {
                return;
            }
        }
        if request.path() == "/files/slow" {
            // Held open until the server gives up.
            let _ = std::io::Read::read(stream, &mut [0]);
        }
    });
    let ((_outside, root), spec) = (folder(), spec());
    let more = [
        "--save-files",
        &root,
        "max_file_bytes: 2000000",
        "retries: 0",
    ];
    let mut session = Session::serving(&spec, &upstream, &more);
    for (name, why) in [
        ("half", "broke before the reply was complete"),
        ("broken", "cannot be decompressed"),
        ("announced", "larger than 2000000 bytes"),
        ("long", "larger than 2000000 bytes"),
    ] {
        let result = session.call("file", &json!({"name": name}));
        assert!(
            result["isError"] == true && text(&result).contains(why),
            "{name}: {result}"
        );
        assert_eq!(files(&root), Vec::<PathBuf>::new(), "{name}");
    }
    let more = ["--save-files", &root, "--timeout", "1"];
    let mut session = Session::serving(&spec, &upstream, &more);
    let result = session.call("file", &json!({"name": "slow"}));
    assert!(
        text(&result).contains("did not answer within 1 s"),
        "{result}"
    );
    assert_eq!(files(&root), Vec::<PathBuf>::new());
}

/// An API whose file never ends.
fn endless() -> Upstream {
    Upstream::raw(|_, stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nConnection: close\r\n\r\n",
        );
        while stream.write_all(&bytes(100_000)).is_ok() {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
    })
}

#[test]
fn nothing_is_left_of_a_command_that_is_interrupted() {
    let ((_outside, root), spec, upstream) = (folder(), spec(), endless());
    for name in ["INT", "TERM"] {
        let args = [
            "call",
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--save-files",
            &root,
            "export",
        ];
        let call = command(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("no file is written", || {
            Path::new(&root).exists() && !files(&root).is_empty()
        });
        signal(call.id(), name);
        let output = call.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("interrupted"),
            "{}",
            stderr(&output)
        );
        assert_eq!(files(&root), Vec::<PathBuf>::new(), "{name}");
    }
}

#[test]
fn nothing_is_left_of_a_call_that_is_cancelled() {
    let upstream = endless();
    let ((_outside, root), spec) = (folder(), spec());
    let mut session = Session::serving(&spec, &upstream, &["--save-files", &root]);
    let id = session.post("tools/call", &json!({"name": "export", "arguments": {}}));
    wait_until("no file is written", || {
        files(&root)
            .iter()
            .any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
    });
    let names = files(&root);
    assert!(
        names.iter().all(|name| name
            .extension()
            .is_some_and(|extension| extension == "part")),
        "{names:?}"
    );
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    wait_until("the file stays", || files(&root).is_empty());
}

#[cfg(unix)]
#[test]
fn nothing_is_left_on_a_full_disk() {
    let upstream = Upstream::start(Box::new(|_| reply(200, &PDF, &bytes(3 << 20))));
    let ((_outside, root), spec) = (folder(), spec());
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--save-files",
        &root,
    ];
    let mut session = Session::start_with_file_limit(2_000, &args, &[]);
    let result = session.call("export", &json!({}));
    let said = text(&result);
    assert!(
        result["isError"] == true
            && said.contains("could not be saved: it is larger than a file on this server may be"),
        "{said}"
    );
    assert!(!said.contains(&root), "{said}");
    assert_eq!(files(&root), Vec::<PathBuf>::new());
    session.logged("File too large");
}

/// A reply of many times the allowed memory.
#[cfg(target_os = "linux")]
#[test]
fn p12_a_file_takes_no_memory() {
    const LENGTH: usize = 256 << 20;
    let upstream = Upstream::raw(|_, stream| {
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: {LENGTH}\r\n\r\n"
        );
        let piece = bytes(1 << 20);
        (0..LENGTH >> 20).all(|_| stream.write_all(&piece).is_ok());
    });
    let ((_outside, root), spec) = (folder(), spec());
    let more = [
        "--save-files",
        &root,
        "--max-memory",
        "33554432",
        "--timeout",
        "300",
    ];
    let mut session = Session::serving(&spec, &upstream, &more);
    let before = crate::support::memory(session.pid());
    let result = session.call("export", &json!({}));
    assert_eq!(saved(&result)["bytes"], LENGTH, "{result}");
    let most = crate::support::peak_memory(session.pid());
    // Pages of the program itself count as well.
    assert!(most < before + 80, "{before} MiB became {most}");
}

#[test]
fn progress_is_reported_while_a_file_is_received() {
    let upstream = Upstream::start(Box::new(|_| reply(200, &PDF, &bytes(3 << 20))));
    let ((_outside, root), spec) = (folder(), spec());
    let mut session = Session::serving(&spec, &upstream, &["--save-files", &root]);
    let id = session.post(
        "tools/call",
        &json!({"name": "export", "arguments": {}, "_meta": {"progressToken": "p"}}),
    );
    let mut last = json!(0);
    loop {
        let message = session.receive();
        if message["id"] == id {
            break;
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        last = message["params"]["progress"].clone();
    }
    assert_eq!(last.as_f64(), Some(f64::from(3 << 20)));
}

/// A folder in which others could replace files is refused, and one that is replaced by a link
/// later gets nothing.
#[cfg(target_os = "linux")]
#[test]
fn p51_files_go_to_the_folder_that_was_opened_and_to_no_other() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let upstream = Upstream::start(Box::new(|_| reply(200, &PDF, &bytes(100_000))));
    let ((outside, root), spec) = (folder(), spec());
    let mut session = Session::serving(&spec, &upstream, &["--save-files", &root]);
    let (moved, other) = (outside.path().join("moved"), outside.path().join("other"));
    std::fs::create_dir(&other).unwrap();
    std::fs::rename(&root, &moved).unwrap();
    symlink(&other, &root).unwrap();
    session.call("export", &json!({}));
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(&moved).unwrap().count(), 1);
    for mode in [0o770, 0o707] {
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(mode)).unwrap();
        let args = [
            "serve",
            "--spec",
            spec.path(),
            "--save-files",
            &other.display().to_string(),
        ];
        let output = crate::support::run(&args);
        let said = crate::support::stderr(&output);
        assert!(
            output.status.code() == Some(2) && said.contains("can be written by other users"),
            "{said}"
        );
    }
}

#[test]
fn a_call_of_the_command_line_saves_files_too() {
    let body = bytes(3 << 20);
    let sent = body.clone();
    let upstream = Upstream::start(Box::new(move |_| reply(200, &PDF, &sent)));
    let ((_outside, root), spec) = (folder(), spec());
    let call = |more: &[&str]| {
        let args = [
            &[
                "call",
                "--spec",
                spec.path(),
                "--base-url",
                &upstream.url,
                "export",
            ],
            more,
        ]
        .concat();
        let output = command(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let shown: Value = serde_json::from_str(&call(&["--save-files", &root])).unwrap();
    let path = shown["file"]["path"]
        .as_str()
        .unwrap_or_else(|| panic!("{shown}"));
    assert!(std::fs::read(path).unwrap() == body);
    // The settings of a server over HTTP give no link here, because no server answers it.
    let store = folder();
    let settings = json!({"transport": "http", "file_store": store.1, "max_file_bytes": 5_000_000});
    let (_kept, config) = config(&settings.to_string());
    let said = call(&["--config", &config]);
    assert!(
        said.contains("--save-files DIR would deliver it as a file"),
        "{said}"
    );
    assert!(!Path::new(&store.1).exists());
}

#[test]
fn the_result_of_an_operation_that_takes_long_becomes_a_file_and_its_status_does_not() {
    let upstream = Upstream::start(Box::new(|request| {
        match (request.line.starts_with("POST"), request.path()) {
            (true, _) => reply(
                202,
                &["Location: /status", "Content-Type: application/json"],
                b"{\"state\":\"accepted\"}",
            ),
            (_, "/status") => reply(303, &["Location: /result"], b""),
            _ => reply(200, &["Content-Type: text/csv"], b"id,name\n1,Rex\n"),
        }
    }));
    let spec = SpecFile::with_paths(
        &json!({"/exports": {"post": {"operationId": "create", "responses": {"202": {"description": "later"}}}}}),
    );
    let (_outside, root) = folder();
    let rules =
        json!({"overrides": [{"match": {"operation": "create"}, "response": {"file": true}}]});
    let (_kept, config) = config(&rules.to_string());
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--save-files", &root, "--config", &config],
    );
    let result = session.call("create", &json!({}));
    assert_eq!(
        std::fs::read(path_of(&result)).unwrap(),
        b"id,name\n1,Rex\n"
    );
    assert_eq!(files(&root).len(), 1, "{result}");
}

/// A rule that makes replies files does not hide the status of an operation, and its JSON result is
/// a file wherever it comes from.
#[test]
fn an_operation_whose_results_are_files_is_awaited_after_any_first_reply() {
    let json = |status: u16, body: &str| {
        reply(status, &["Content-Type: application/json"], body.as_bytes())
    };
    let state = |state: &str| format!("{{\"properties\":{{\"provisioningState\":\"{state}\"}}}}");
    let upstream = Upstream::start(Box::new(move |request| {
        let is_read = request.line.starts_with("GET");
        match (is_read, request.path()) {
            (false, "/exports") => json(200, "{\"id\":7,\"state\":\"queued\"}"),
            (true, "/exports/7") => json(200, "{\"state\":\"ready\",\"rows\":[1]}"),
            (false, "/own/1") => json(200, &state("Creating")),
            (true, "/own/1") => json(200, &state("Succeeded")),
            (false, "/own/done") => json(201, &state("Succeeded")),
            (false, _) => json(200, &format!("{{\"rows\":\"{}\"}}", "x".repeat(2 << 20))),
            _ => json(404, "{}"),
        }
    }));
    let id = json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
    let spec = SpecFile::with_paths(&json!({
        "/exports": {"post": {"operationId": "create"}},
        "/exports/{id}": {"get": {"operationId": "get_export", "parameters": id}},
        "/own/{id}": {"put": {"operationId": "own", "parameters": id, "x-ms-long-running-operation": true}},
    }));
    let (_outside, root) = folder();
    let wait = json!({"status": {"operation": "get_export", "arguments": {"path:id": "/id"}}, "interval": 1,
        "done": {"field": "/state", "values": ["ready"]}});
    let rules = json!({"overrides": [
        {"match": {"operation": "create"}, "wait": wait, "response": {"file": true}},
        {"match": {"operation": "own"}, "response": {"file": true}},
    ]});
    let (_kept, config) = config(&rules.to_string());
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--save-files", &root, "--config", &config],
    );
    let result = session.call("create", &json!({}));
    assert_eq!(
        std::fs::read_to_string(path_of(&result)).unwrap(),
        "{\"state\":\"ready\",\"rows\":[1]}"
    );
    assert!(text(&result).contains("this is its result"), "{result}");
    for (id, requests) in [("1", 2), ("done", 1)] {
        let before = upstream.received().len();
        let result = session.call("own", &json!({"id": id}));
        assert_eq!(
            std::fs::read_to_string(path_of(&result)).unwrap(),
            state("Succeeded"),
            "{id}"
        );
        assert_eq!(upstream.received().len() - before, requests, "{id}");
    }
    let result = session.call("own", &json!({"id": "large"}));
    assert_eq!(
        saved(&result)["bytes"],
        (2 << 20) + "{\"rows\":\"\"}".len(),
        "{result}"
    );
    assert_eq!(files(&root).len(), 4);
}

#[test]
fn a_tool_whose_replies_are_files_collects_no_pages() {
    let spec = SpecFile::with_paths(
        &json!({"/rows": {"get": {"operationId": "rows", "parameters": [
        {"name": "page", "in": "query", "schema": {"type": "integer"}}]}}}),
    );
    let tools = |rule: &str| {
        let (_kept, config) = config(&format!(
            "collect_pages: 5\noverrides: [{{match: {{operation: rows}}, response: {rule}}}]"
        ));
        stdout(
            &command(&[
                "tools",
                "--spec",
                spec.path(),
                "--config",
                &config,
                "--explain",
            ])
            .output()
            .unwrap(),
        )
    };
    assert!(tools("{max_items: 5}").contains("collect_pages"));
    assert!(!tools("{file: true}").contains("collect_pages"));
}
