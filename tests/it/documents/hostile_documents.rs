//! Hostile and broken documents: nothing is read that the operator did not name, everything is
//! decided quickly and in little memory, and an operation that cannot be served costs itself only.

use std::time::Instant;

use serde_json::{Map, Value, json};

#[cfg(target_os = "linux")]
use crate::support::memory;
use crate::support::{
    Session, SpecFile, Upstream, command, petstore, reply, run, stderr, stdout, within,
};

const MARK: &str = "content-of-a-file-that-nobody-named";

#[test]
fn p17_no_reference_leads_out_of_the_documents_folder() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("spec");
    std::fs::create_dir(&folder).unwrap();
    let secret = root.path().join("secret.json");
    let stolen = json!({"type": "string", "description": MARK, "name": MARK, "in": "query", "get": {"operationId": MARK}});
    std::fs::write(&secret, stolen.to_string()).unwrap();
    std::fs::write(folder.join("secret.txt"), stolen.to_string()).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&secret, folder.join("link.json")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.path(), folder.join("up")).unwrap();
    let upstream = Upstream::start(Box::new(move |_| {
        reply(
            200,
            &["Content-Type: application/json"],
            stolen.to_string().as_bytes(),
        )
    }));
    let absolute = secret.display().to_string();
    let host = upstream.host().to_owned();
    let references = [
        absolute.clone(),
        format!("file://{absolute}"),
        format!("file:{absolute}"),
        format!("FILE://{absolute}"),
        format!("file://localhost{absolute}"),
        "../secret.json".into(),
        "./../secret.json".into(),
        "x/../../secret.json".into(),
        "..%2fsecret.json".into(),
        "%2e%2e/secret.json".into(),
        "%2e%2e%2fsecret.json".into(),
        "..\\secret.json".into(),
        "../secret.json?x=.json".into(),
        "../secret.json%00.json".into(),
        "link.json".into(),
        "up/secret.json".into(),
        "secret.txt".into(),
        "/proc/self/environ".into(),
        "file:///proc/self/environ".into(),
        "../../../../../../../../proc/self/environ".into(),
        "/etc/passwd".into(),
        "\\\\127.0.0.1\\share\\secret.json".into(),
        "//127.0.0.1/secret.json".into(),
        format!("{}/secret.json", upstream.url),
        format!("//{host}/secret.json"),
        format!("HTTP://{host}/secret.json"),
        "http://169.254.169.254/latest/meta-data/".into(),
        "ftp://127.0.0.1/secret.json".into(),
        "data:application/json,{}".into(),
        "${SECRET_OF_THE_TEST}".into(),
    ];
    assert!(references.len() * 3 >= 72);
    for reference in &references {
        for fragment in ["", "#/get"] {
            let reference = json!({"$ref": format!("{reference}{fragment}")});
            let document = json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {
                "/ok": {"get": {"operationId": "ok"}},
                "/schema": {"get": {"operationId": "schema", "parameters": [{"name": "p", "in": "query", "schema": reference}]}},
                "/parameter": {"get": {"operationId": "parameter", "parameters": [reference]}},
                "/item": reference,
            }});
            let path = folder.join("openapi.json");
            std::fs::write(&path, document.to_string()).unwrap();
            let path = path.display().to_string();
            let mut command = command(&["check", "--spec", &path, "--format", "json"]);
            let checked = command.env("SECRET_OF_THE_TEST", MARK).output().unwrap();
            let mut command = self::command(&["tools", "--spec", &path, "--format", "json"]);
            let listed = command.env("SECRET_OF_THE_TEST", MARK).output().unwrap();
            assert!(
                stdout(&listed).contains("\"ok\""),
                "{reference}: {}",
                stderr(&listed)
            );
            for output in [checked, listed] {
                let all = stdout(&output) + &stderr(&output);
                assert!(
                    !all.contains(MARK) && !all.contains("PATH=") && !all.contains("root:"),
                    "{reference}: {all}"
                );
                assert!(!all.contains("panicked"), "{reference}: {all}");
            }
        }
    }
    assert!(upstream.received().is_empty(), "{:?}", upstream.received());
}

#[test]
fn p18_nothing_else_that_a_document_names_is_fetched() {
    let other = Upstream::echo();
    let at = |path: &str| format!("{}/{path}", other.url);
    let document = json!({
        "openapi": "3.1.0", "$schema": at("schema"), "jsonSchemaDialect": at("dialect"), "externalDocs": {"url": at("docs")},
        "info": {"title": "T", "version": "1", "termsOfService": at("terms"), "contact": {"url": at("contact")}, "license": {"name": "x", "url": at("license")}, "x-logo": {"url": at("logo")}},
        "tags": [{"name": "t", "externalDocs": {"url": at("tag")}}],
        "paths": {"/a": {"post": {
            "operationId": "send", "tags": ["t"], "externalDocs": {"url": at("operation")}, "security": [{"oidc": []}, {"oauth": []}, {}],
            "requestBody": {"content": {"application/json": {
                "schema": {"$id": at("id"), "$schema": at("inner"), "type": "object", "externalDocs": {"url": at("of-schema")}, "xml": {"namespace": at("xml")}},
                "examples": {"e": {"externalValue": at("example")}}}}},
            "callbacks": {"c": {at("callback"): {"post": {"responses": {}}}}},
            "responses": {"200": {"description": "d", "links": {"l": {"operationRef": at("link")}}}}}}},
        "webhooks": {"w": {"post": {"responses": {}}}},
        "components": {"securitySchemes": {
            "oidc": {"type": "openIdConnect", "openIdConnectUrl": at(".well-known/openid-configuration")},
            "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": at("token"), "scopes": {}}}}}},
    });
    let spec = SpecFile::new(&document.to_string());
    let upstream = Upstream::echo();
    let mut session =
        Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    assert_eq!(session.tools().len(), 1);
    assert_eq!(session.call("send", &json!({"body": {}}))["isError"], false);
    run(&["check", "--spec", spec.path()]);
    assert!(other.received().is_empty(), "{:?}", other.received());
}

/// The tools of two operations with the schema of that name in a JSON body and in a form, and the
/// bytes of their list.
fn weighed(schemas: &Value, name: &str) -> (Vec<Value>, usize) {
    let body = |id: &str, media: &str| {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        json!({"operationId": id, "requestBody": {"content": {media: {"schema": schema}}}})
    };
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {
            "/a": {"post": body("a", "application/json")}, "/b": {"post": body("b", "multipart/form-data")}},
            "components": {"schemas": schemas}})
        .to_string(),
    );
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:9",
    ]);
    let tools = session.tools();
    #[cfg(target_os = "linux")]
    assert!(memory(session.pid()) < 512);
    let bytes = serde_json::to_string(&tools).unwrap().len();
    (tools, bytes)
}

#[test]
fn p19_recursion_and_reference_bombs_are_decided_quickly() {
    let to = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let object = |members: Value| json!({"type": "object", "properties": members});
    let recursive: Vec<Value> = vec![
        json!({"A": to("A")}),
        json!({"A": to("B"), "B": to("A")}),
        json!({"A": to("B"), "B": to("C"), "C": to("A")}),
        json!({"A": object(json!({"child": to("A")}))}),
        json!({"A": object(json!({"list": {"type": "array", "items": to("A")}}))}),
        json!({"A": {"type": "object", "additionalProperties": to("A")}}),
        json!({"A": {"allOf": [to("A"), object(json!({"x": {"type": "string"}}))]}}),
        json!({"A": {"oneOf": [to("A"), {"type": "string"}]}}),
        json!({"A": {"anyOf": [to("B"), to("A")]}, "B": {"anyOf": [to("A"), to("B")]}}),
        json!({"A": {"not": to("A")}}),
        json!({"A": {"if": to("A"), "then": to("A"), "else": to("A")}}),
        json!({"A": {"type": "array", "prefixItems": [to("A"), to("A")], "items": to("A")}}),
        json!({"A": object(json!({"b": to("B")})), "B": object(json!({"a": to("A"), "b": to("B")}))}),
        json!({"A": {"patternProperties": {"^x": to("A")}, "propertyNames": to("B"), "dependentSchemas": {"x": to("A")}}, "B": {"type": "string"}}),
        json!({"A": object(json!({"x": {"$ref": "#/components/schemas/A/properties/x"}}))}),
    ];
    assert!(recursive.len() >= 14);
    for schemas in recursive {
        let (tools, _) = weighed(&schemas, "A");
        assert!(
            tools.len() == 2 && tools[0]["inputSchema"]["properties"]["body"].is_object(),
            "{schemas}: {tools:?}"
        );
    }
    let chain = |fan: usize, depth: usize, wrap: &dyn Fn(Vec<Value>) -> Value| -> Value {
        let mut schemas: Map<String, Value> = (0..depth)
            .map(|level| {
                (
                    format!("A{level}"),
                    wrap(vec![to(&format!("A{}", level + 1)); fan]),
                )
            })
            .collect();
        schemas.insert(format!("A{depth}"), json!({"type": "string"}));
        schemas.into()
    };
    let members = |inner: Vec<Value>| {
        let members: Map<String, Value> = inner
            .into_iter()
            .enumerate()
            .map(|(number, schema)| (format!("p{number}"), schema))
            .collect();
        object(members.into())
    };
    let branches = |count: usize| vec![to("A0"); count];
    let many: Map<String, Value> = (0..1500)
        .map(|number| {
            (
                format!("p{number}"),
                json!({"type": "string", "description": "x".repeat(1000)}),
            )
        })
        .collect();
    let into: Map<String, Value> = (0..1500)
        .map(|number| {
            (
                format!("q{number}"),
                to(&format!("Source/properties/p{number}")),
            )
        })
        .collect();
    let bombs: [(&str, Value); 8] = [
        (
            "300 branches into itself",
            json!({"A0": {"required": ["x"], "allOf": branches(300)}}),
        ),
        (
            "12 alternatives of itself",
            json!({"A0": {"oneOf": branches(12)}}),
        ),
        (
            "1,500 references into one schema",
            json!({"Source": object(many.into()), "A0": object(into.into())}),
        ),
        ("2^30 members", chain(2, 30, &members)),
        ("10^9 members", chain(10, 9, &members)),
        (
            "2^30 branches",
            chain(2, 30, &|inner| json!({"allOf": inner})),
        ),
        (
            "10^9 items",
            chain(
                10,
                9,
                &|inner| json!({"type": "array", "prefixItems": inner}),
            ),
        ),
        ("a chain of 5,000", chain(1, 5_000, &members)),
    ];
    for (what, schemas) in bombs {
        let started = Instant::now();
        let (tools, bytes) = weighed(&schemas, "A0");
        assert!(
            tools.len() == 2 && bytes < 8 << 20,
            "{what}: {} tools, {bytes} bytes",
            tools.len()
        );
        assert!(
            started.elapsed() < within(20),
            "{what}: {:?}",
            started.elapsed()
        );
    }
}

/// Files that are hostile or broken, and what each is.
fn broken_files() -> Vec<(&'static str, Vec<u8>)> {
    let paths = "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"T\",\"version\":\"1\"},\"paths\":{\"/a\":{\"get\":{\"operationId\":\"a\"}}}";
    let deep = |open: &str, close: &str| {
        format!(
            "{paths},\"x-deep\":{}1{}}}",
            open.repeat(100_000),
            close.repeat(100_000)
        )
    };
    let laughs: String = (1..12)
        .map(|level| {
            format!(
                "a{level}: &a{level} [{}]\n",
                vec![format!("*a{}", level - 1); 10].join(",")
            )
        })
        .collect();
    let yaml =
        "openapi: 3.1.0\ninfo: {title: T, version: '1'}\npaths: {/a: {get: {operationId: a}}}\n";
    let utf16 = |big: bool| -> Vec<u8> {
        let mark = std::iter::once(0xfeff_u16);
        let units = mark.chain(format!("{paths}}}").encode_utf16().collect::<Vec<_>>());
        units
            .flat_map(|unit| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            })
            .collect()
    };
    vec![
        ("objects 100,000 deep", deep("{\"a\":", "}").into()),
        ("arrays 100,000 deep", deep("[", "]").into()),
        ("YAML flow 100,000 deep", format!("{yaml}x-deep: {}", "[".repeat(100_000)).into()),
        (
            "YAML blocks 2,000 deep",
            format!(
                "{yaml}x-deep:\n{}",
                (1..2_000).map(|level| " ".repeat(level) + "a:\n").collect::<String>()
            )
            .into(),
        ),
        ("a billion laughs", format!("a0: &a0 lol\n{laughs}{yaml}").into()),
        (
            "a megabyte that is merged 400 times",
            format!(
                "{yaml}x-a: &a {{k: \"{}\"}}\nx-b:\n{}",
                "y".repeat(1 << 20),
                "  <<: *a\n".repeat(400)
            )
            .into(),
        ),
        ("an alias in itself", format!("x-a: &a [*a]\n{yaml}").into()),
        ("an alias of nothing", format!("{yaml}x-a: *nothing\n").into()),
        (
            "quadratic YAML",
            format!("{yaml}x-a: &a \"{}\"\nx-b: [{}]\n", "x".repeat(100_000), "*a,".repeat(5_000)).into(),
        ),
        (
            "a tag that makes an object",
            format!("{yaml}x-a: !!python/object/apply:os.system ['id']\n").into(),
        ),
        ("a tag of one's own", format!("{yaml}x-a: !include /etc/passwd\n").into()),
        ("a binary tag", format!("{yaml}x-a: !!binary {}\n", "A".repeat(1000)).into()),
        ("two documents", format!("{yaml}---\n{yaml}").into()),
        ("UTF-16, little end first", utf16(false)),
        ("UTF-16, big end first", utf16(true)),
        ("a mark of UTF-8", [b"\xef\xbb\xbf", paths.as_bytes(), b"}"].concat()),
        ("bytes that are no text", vec![0xff; 1000]),
        ("zero bytes", vec![0; 1000]),
        ("nothing", Vec::new()),
        ("blanks", vec![b' '; 100_000]),
        ("a page", b"<!DOCTYPE html><html><head><title>404</title></head></html>".to_vec()),
        (
            "XML",
            b"<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><x>&e;</x>".to_vec(),
        ),
        ("a program", b"\x7fELF\x02\x01\x01".to_vec()),
        ("an archive", b"PK\x03\x04".to_vec()),
        ("JSON that is cut", paths.as_bytes().to_vec()),
        ("JSON lines", format!("{paths}}}\n{paths}}}\n").into()),
        ("a list", b"[1,2,3]".to_vec()),
        ("a number", b"42".to_vec()),
        ("half a character", b"{\"openapi\":\"\\ud800\"}".to_vec()),
        ("a key of a megabyte", format!("{paths},\"{}\":1}}", "k".repeat(1 << 20)).into()),
        (
            "a hundred thousand keys",
            format!(
                "{paths},\"x-a\":{{{}\"z\":1}}}}",
                (0..100_000).map(|n| format!("\"k{n}\":1,")).collect::<String>()
            )
            .into(),
        ),
        (
            "the same key again and again",
            format!("{paths},{}\"x-a\":1}}", "\"x-a\":1,".repeat(10_000)).into(),
        ),
        (
            "numbers beyond all",
            format!("{paths},\"x-a\":[{},1e999999999]}}", "9".repeat(100_000)).into(),
        ),
        ("YAML tabs", b"openapi:\t3.1.0\n\tpaths: {}\n".to_vec()),
    ]
}

#[test]
fn p20_broken_and_hostile_files_are_served_or_refused_with_a_message() {
    let cases = broken_files();
    assert!(cases.len() >= 26);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spec");
    for (what, bytes) in cases {
        std::fs::write(&path, &bytes).unwrap();
        let started = Instant::now();
        let output = run(&["tools", "--spec", &path.display().to_string()]);
        let text = stderr(&output);
        match output.status.code() {
            Some(0) if what.contains("YAML flow") || what.contains("merged") => {
                panic!("{what} is served")
            }
            Some(0) => assert!(
                stdout(&output).contains("1 tool"),
                "{what}: {}",
                stdout(&output)
            ),
            Some(3) => assert!(
                text.starts_with("error: ") && text.len() < 2_000,
                "{what}: {text}"
            ),
            other => panic!("{what}: {other:?} {text}"),
        }
        assert!(!text.contains("panicked"), "{what}: {text}");
        assert!(
            started.elapsed() < within(10),
            "{what}: {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn p21_five_thousand_operations_are_loaded_quickly() {
    let paths: Map<String, Value> = (0..2_500)
        .map(|number| {
            let body = json!({"content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/S{}", number % 100)}}}});
            let parameter = json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
            let item = json!({
                "parameters": parameter, "get": {"operationId": format!("get_{number}"), "summary": "Get one"},
                "put": {"operationId": format!("put_{number}"), "requestBody": body}});
            (format!("/items{number}/{{id}}"), item)
        })
        .collect();
    let schemas: Map<String, Value> = (0..100)
        .map(|number| {
            let members: Map<String, Value> = (0..20)
                .map(|member| {
                    (
                        format!("m{member}"),
                        json!({"type": "string", "description": "A member"}),
                    )
                })
                .collect();
            (
                format!("S{number}"),
                json!({"type": "object", "properties": members}),
            )
        })
        .collect();
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths, "components": {"schemas": schemas}})
            .to_string(),
    );
    let started = Instant::now();
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:9",
    ]);
    assert_eq!(session.tools().len(), 5_000);
    assert!(started.elapsed() < within(30), "{:?}", started.elapsed());
    #[cfg(target_os = "linux")]
    assert!(memory(session.pid()) < 1024);
}

/// Looking for each value among all before took minutes.
#[test]
fn p21_an_enumeration_of_a_hundred_thousand_values_is_read_quickly() {
    let values: Vec<String> = (0..100_000)
        .map(|number| format!("value {number}"))
        .collect();
    let schema = json!({"type": "string", "enum": values});
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "a", "parameters": [
        {"name": "choice", "in": "query", "schema": schema}]}}}));
    let started = Instant::now();
    let output = run(&["tools", "--spec", spec.path(), "--format", "json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(started.elapsed() < within(20), "{:?}", started.elapsed());
}

#[test]
fn p33_p34_text_of_a_document_is_cleaned_and_cut() {
    let hidden = "Nice\u{202e}tool\u{200b}\u{e0041}\u{7} here";
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": hidden, "description": hidden}, "servers": [{"url": "http://127.0.0.1:1"}], "paths": {"/a": {"get": {
            "operationId": "a", "summary": hidden, "description": "x".repeat(5 << 20),
            "parameters": [{"name": "p", "in": "query", "description": hidden, "schema": {"type": "string", "description": hidden, "x-mcp-header": "X"}}]}}}})
        .to_string(),
    );
    let mut session = Session::start(&["serve", "--spec", spec.path()]);
    let tools = session.tools();
    let text = serde_json::to_string(&tools).unwrap();
    assert!(
        text.len() < 10_000 && text.contains("Nicetool here"),
        "{} bytes",
        text.len()
    );
    assert!(
        !text.contains(['\u{202e}', '\u{200b}', '\u{e0041}', '\u{7}'])
            && !text.contains("x-mcp-header")
    );
}

#[test]
fn p34_a_few_long_texts_do_not_fill_the_list() {
    // A document may take 128 MiB.
    let (longest, long) = (
        "An endless story. ".repeat((5 << 20) / 18),
        "x".repeat(1 << 20),
    );
    let parameter = json!([{"name": "p", "in": "query", "description": long, "schema": {"type": "string", "title": long}}]);
    let spec = SpecFile::with_paths(&json!({
        "/a": {"get": {"operationId": "a".repeat(100_000), "summary": long, "description": longest}},
        "/b": {"get": {"operationId": "b", "tags": [long, long], "parameters": parameter, "description": longest}},
    }));
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:9",
    ]);
    let tools = session.tools();
    assert!(tools.len() == 2 && serde_json::to_string(&tools).unwrap().len() < 1 << 20);
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(
            (1..=128).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
        );
    }
}

#[test]
fn p37_no_pattern_takes_more_than_its_time_and_no_bad_one_costs_a_tool() {
    let catastrophic = [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^(.*a){25}$",
        "^([a-zA-Z]+)*$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "^(?=(a+)+b)a*$",
        "(x+x+)+y",
    ];
    let invalid = [
        "(",
        ")",
        "[",
        "*",
        "+",
        "?",
        "a**",
        "(?<n>a)(?<n>b)",
        "[z-a]",
        "\\",
        "(?",
        "(?P<x>a)",
        "(?i)a",
        "\\p{Nope}",
        "a{2,1}",
        "a{99999999999}",
        "\\u{110000}",
        "[[:alpha:]]",
    ];
    assert!(catastrophic.len() >= 7 && invalid.len() >= 16);
    let paths: Map<String, Value> = catastrophic
        .iter()
        .chain(&invalid)
        .enumerate()
        .map(|(number, pattern)| {
            let parameter = json!([{"name": "x", "in": "query", "schema": {"type": "string", "pattern": pattern}}]);
            (
                format!("/{number}"),
                json!({"get": {"operationId": format!("op_{number}"), "parameters": parameter}}),
            )
        })
        .collect();
    let upstream = Upstream::echo();
    let spec = SpecFile::with_paths(&paths.into());
    let mut session =
        Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    assert_eq!(session.tools().len(), catastrophic.len() + invalid.len());
    for value in [format!("{}!", "a".repeat(50_000)), "x".repeat(50_000)] {
        let asked: Vec<u64> = (0..catastrophic.len())
            .map(|number| {
                session.post(
                    "tools/call",
                    &json!({"name": format!("op_{number}"), "arguments": {"x": value}}),
                )
            })
            .collect();
        let started = Instant::now();
        let neighbour = session.post(
            "tools/call",
            &json!({"name": format!("op_{}", catastrophic.len()), "arguments": {}}),
        );
        for _ in 0..=asked.len() {
            let answer = session.receive();
            let limit = within(if answer["id"] == neighbour { 3 } else { 6 });
            assert!(
                started.elapsed() < limit,
                "{answer}: {:?}",
                started.elapsed()
            );
        }
    }
    for number in catastrophic.len()..catastrophic.len() + invalid.len() {
        assert_eq!(
            session.call(&format!("op_{number}"), &json!({"x": "anything"}))["isError"],
            false,
            "{number}"
        );
    }
}

#[test]
fn p18_a_document_cannot_name_what_the_environment_holds() {
    let text = std::fs::read_to_string(petstore()).unwrap().replace(
        "title: Petstore",
        "title: \"${SECRET_OF_THE_TEST} $SECRET_OF_THE_TEST %SECRET_OF_THE_TEST%\"",
    );
    let spec = SpecFile::new(&text);
    let mut command = command(&["tools", "--spec", spec.path(), "--format", "json"]);
    let output = command.env("SECRET_OF_THE_TEST", MARK).output().unwrap();
    assert!(output.status.success() && !stdout(&output).contains(MARK));
}

#[test]
fn p20_a_report_on_deeply_nested_lists_takes_linear_time() {
    const DEPTH: usize = 49_000;
    let nested = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    for place in [
        r#""paths": {"/a": {"get": {"operationId": "a", "x-lists": NESTED}}}"#,
        r#""paths": {"/a": {"get": {"operationId": "a", "parameters": NESTED}}}"#,
        r#""paths": {"/a": {"get": {"operationId": "a"}}}, "components": {"schemas": NESTED}"#,
    ] {
        let members = place.replace("NESTED", &nested);
        let spec = SpecFile::new(&format!(
            r#"{{"openapi": "3.1.0", "info": {{"title": "T", "version": "1"}}, {members}}}"#
        ));
        let start = std::time::Instant::now();
        let output = run(&["check", "--spec", spec.path()]);
        assert!(
            output.status.code().is_some(),
            "{place}: {}",
            stderr(&output)
        );
        assert!(
            start.elapsed() < std::time::Duration::from_secs(10),
            "{place}: {:?}",
            start.elapsed()
        );
    }
}
