//! `check`, `--strict`, client profiles, budgets and output schemas, through the command line and a
//! session.

use serde_json::{Value, json};

use crate::support::{
    Session, SpecFile, Upstream, command, petstore, project, reply, run, stderr, stdout,
};

/// `serve` needs to know where the API is.
const AT_HOME: [&str; 2] = ["--base-url", "http://127.0.0.1:1"];

const BROKEN: &str = "openapi: 3.0.3\ninfo: {title: Broken, version: '1'}\npaths:\n  /a:\n    get:\n      parameters:\n        - $ref: '#/components/parameters/None'\n  /b:\n    post: nonsense\n  /search:\n    post: {operationId: search}\n  /c: {get: {}}\n  /c: {get: {}}\n";

#[test]
fn a_report_names_place_loss_cost_and_advice() {
    let spec = SpecFile::new(BROKEN);
    let output = run(&[&["check", "--spec", spec.path()], &AT_HOME[..]].concat());
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for expected in [
        "spec.json:9:11 #/paths/~1b/post: POST /b is left out: it is not an object",
        "points to nothing; the tool is served without that parameter",
        "spec.json:13:7 #/paths/~1c: this key is written twice",
        "spec.json:11:11 #/paths/~1search/post: `POST /search` looks read-only (word `search`), and is served as readOnly=false, idempotent=false\n",
        "\n1 rule for these hints: --format rules prints them\n",
        "spec.json:6:7 #/paths/~1a/get: ",
        "spec.json:13:13 #/paths/~1c/get: ",
        "tokens",
        "\n1 error, ",
    ] {
        assert!(text.contains(expected), "`{expected}` is not in:\n{text}");
    }
    assert!(
        text.trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("1 error, "),
        "{text}"
    );
    let rules = stdout(&run(&["check", "--spec", spec.path(), "--format", "rules"]));
    let rule = "overrides:\n- {match: {method: \"POST\", path: \"/search\"}, annotations: {readOnlyHint: true, idempotentHint: true}}\n";
    assert!(rules.ends_with(rule), "{rules}");
}

#[test]
fn a_reference_that_leads_nowhere_is_told_once_wherever_it_stands() {
    let missing = |kind: &str, name: &str| json!({ "$ref": format!("#/components/{kind}/{name}") });
    let json_of = |schema: &Value| json!({"content": {"application/json": {"schema": schema}}});
    let spec = SpecFile::new(
        &json!({
            "openapi": "3.0.3",
            "info": {"title": "T", "version": "1"},
            "paths": {"/a": {"post": {
                "requestBody": json_of(&missing("schemas", "NoBody")),
                "responses": {
                    "200": json_of(&missing("schemas", "Pet")),
                    "201": json_of(&json!({"type": "array", "items": missing("schemas", "NoItem")})),
                    "202": json_of(&json!({"type": "object", "properties": {"$ref": {"type": "string"}}})),
                    "404": missing("responses", "NoReply"),
                    "409": json_of(&missing("schemas", "NoItem")),
                }}}},
            "components": {"schemas": {
                "Pet": {"type": "object", "properties": {"owner": missing("schemas", "NoOwner")}, "example": missing("schemas", "AsData")},
            }},
        })
        .to_string(),
    );
    let format = ["--format", "json"];
    let output = run(&[&["check", "--spec", spec.path()], &format[..], &AT_HOME].concat());
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let dangling = findings.iter().filter(|finding| {
        finding["message"]
            .as_str()
            .unwrap()
            .contains("points to nothing")
    });
    let mut told: Vec<(&str, &str)> = dangling
        .map(|finding| {
            let message = finding["message"].as_str().unwrap();
            assert!(
                finding["level"] == "warning" && finding["line"] == 1,
                "{finding}"
            );
            (
                message.split('`').nth(1).unwrap(),
                finding["pointer"].as_str().unwrap(),
            )
        })
        .collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            (
                "#/components/responses/NoReply",
                "#/paths/~1a/post/responses/404/$ref"
            ),
            ("#/components/schemas/NoBody", "#/paths/~1a/post"),
            (
                "#/components/schemas/NoItem",
                "#/paths/~1a/post/responses/201/content/application~1json/schema/items/$ref"
            ),
            (
                "#/components/schemas/NoOwner",
                "#/components/schemas/Pet/properties/owner/$ref"
            ),
        ]
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn findings_are_grouped_by_kind_and_dangerous_hints_come_first() {
    let paths: serde_json::Map<String, Value> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]
        .map(|name| {
            (
                format!("/{name}/search"),
                json!({"post": {"operationId": format!("search_{name}")}}),
            )
        })
        .into_iter()
        .chain([(
            "/volumes/prune".to_owned(),
            json!({"post": {"operationId": "pruneVolumes"}}),
        )])
        .collect();
    let spec = SpecFile::with_paths(&Value::Object(paths));
    let text = stdout(&run(&[
        "check",
        "--spec",
        spec.path(),
        "--annotation-policy",
        "method",
    ]));
    let notes: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("note: "))
        .collect();
    assert!(
        text.starts_with("T: 10 tools"),
        "the size comes first: {text}"
    );
    let is_finding = |line: &&str| line.contains(": #/paths/") || line.contains(" #/paths/");
    let first = text.lines().find(is_finding).unwrap();
    assert!(
        first.starts_with("warning: ") && first.contains("`POST /volumes/prune` looks destructive"),
        "{text}"
    );
    assert!(
        notes.len() == 1
            && notes[0].contains("(and 8 more like this: ")
            && notes[0].ends_with(", …)"),
        "{text}"
    );
    let format = ["--annotation-policy", "method", "--format", "rules"];
    let rules = stdout(&run(
        &[&["check", "--spec", spec.path()], &format[..]].concat()
    ));
    let rules: Value = serde_yaml::from_str(&rules).unwrap();
    assert_eq!(rules["overrides"].as_array().unwrap().len(), 10, "{text}");
    assert_eq!(rules["overrides"][0]["match"]["path"], "/volumes/prune");
}

#[test]
fn a_report_names_credentials_and_the_warnings_of_the_start() {
    let spec = SpecFile::new(
        r#"{"openapi":"3.1.0","info":{"title":"T"},"paths":{"/a":{"get":{"security":[{"apiKey":[]}]}},"/b":{"get":{}}},"components":{"securitySchemes":{"apiKey":{"type":"apiKey","in":"header","name":"X-Key"}}}}"#,
    );
    let check = |variable: &str| {
        let output = command(&[&["check", "--spec", spec.path()], &AT_HOME[..]].concat())
            .env(variable, "s3cret-0f-some-length")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        stdout(&output)
    };
    let text = check("OTHER");
    assert!(
        text.contains("\n  `apiKey`, of 1 tool: OPENAPI_MCP_AUTH_API_KEY\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "serve would warn: 1 operation cannot be called: set OPENAPI_MCP_AUTH_API_KEY"
        ),
        "{text}"
    );
    let text = check("OPENAPI_MCP_AUTH_API_KEY");
    assert!(
        text.contains("`apiKey`, of 1 tool")
            && !text.contains("serve would warn")
            && !text.contains("s3cret-0f-some-length"),
        "{text}"
    );
}

#[test]
fn a_report_names_how_long_results_for_a_client_are() {
    let shown = |flags: &[&str]| {
        let petstore = petstore();
        let args = [&["check", "--spec", &petstore], flags].concat();
        stdout(&command(&args).output().unwrap())
    };
    for (flags, said) in [
        (
            &["--client", "codex"][..],
            "results for Codex have up to 9000 tokens",
        ),
        (
            &["--client", "codex", "--max-result-tokens", "5000"],
            "results for Codex have up to 5000 tokens",
        ),
        (
            &["--client", "cursor"],
            "results for Cursor have up to 20000 tokens",
        ),
        (
            &["--client", "cursor", "--max-result-tokens", "0"],
            "results for Cursor have no limit",
        ),
    ] {
        let text = shown(flags);
        assert!(text.contains(said), "{flags:?}: {text}");
    }
}

#[test]
fn a_list_that_costs_much_is_told_to_every_client_with_the_tags_that_cost_less() {
    let operation = |tag: &str, number: usize| {
        let text = format!("{number} ").repeat(400);
        json!({"get": {"operationId": format!("get{number}"), "tags": [tag], "description": text}})
    };
    let tags = ["cats", "it's [big]", "it's [big]"];
    let paths = (0..120).map(|number| (format!("/a{number}"), operation(tags[number % 3], number)));
    let spec = SpecFile::with_paths(&Value::Object(paths.collect()));
    for client in [
        "generic", "claude", "openai", "vscode", "cursor", "gemini", "codex",
    ] {
        let text = stdout(&run(&["check", "--spec", spec.path(), "--client", client]));
        assert!(
            text.contains("tokens of a model's context"),
            "{client}: {text}"
        );
    }
    let text = stdout(&run(&["check", "--spec", spec.path()]));
    let flag = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("--tool-include '"))
        .unwrap();
    let (flag, cost) = flag
        .split_once("': 80 tools, about ")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(cost.ends_with(" tokens"), "{text}");
    let pattern = flag.replace("'\\''", "'");
    let tools = stdout(&run(&[
        "tools",
        "--spec",
        spec.path(),
        "--tool-include",
        &pattern,
    ]));
    assert!(tools.contains("80 tools"), "{pattern}: {tools}");

    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--mock",
        "--client",
        "cursor",
        "--tools",
        "all",
    ];
    let logs = Session::start(&args).end();
    let told = |text: &str| {
        logs.lines()
            .filter(|line| line.contains("WARN") && line.contains(text))
            .count()
    };
    assert_eq!(
        told("Cursor takes at most 80 tools, and these are 120"),
        1,
        "{logs}"
    );
    assert_eq!(told("tokens of a model's context"), 1, "{logs}");
}

#[test]
fn a_report_has_four_formats() {
    let spec = SpecFile::new(BROKEN);
    let format = |format: &str| stdout(&run(&["check", "--spec", spec.path(), "--format", format]));
    let report: Value = serde_json::from_str(&format("json")).unwrap();
    assert_eq!(
        (
            report["findings"][0]["level"].as_str(),
            report["findings"][0]["line"].as_u64()
        ),
        (Some("error"), Some(9))
    );
    let sarif: Value = serde_json::from_str(&format("sarif")).unwrap();
    assert_eq!(
        (
            sarif["version"].as_str(),
            sarif["runs"][0]["results"][0]["level"].as_str()
        ),
        (Some("2.1.0"), Some("error"))
    );
    assert!(format("github").starts_with("::error file="));
}

#[test]
fn a_finding_in_another_file_has_its_place_there() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("api.yaml"),
        "openapi: 3.1.0\npaths:\n  /a: {$ref: 'my%20paths.yaml#/a'}\n",
    )
    .unwrap();
    std::fs::write(
        directory.path().join("my paths.yaml"),
        "# a comment\na:\n  get: {}\n  post: nonsense\n",
    )
    .unwrap();
    let path = directory.path().join("api.yaml").display().to_string();
    let text = stdout(&run(&["check", "--spec", &path]));
    assert!(
        text.contains("my paths.yaml:4:9 #/paths/~1a/post"),
        "{text}"
    );
    let sarif: Value = serde_json::from_str(&stdout(&run(&[
        "check", "--spec", &path, "--format", "sarif",
    ])))
    .unwrap();
    let uri = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        .as_str()
        .unwrap();
    assert!(uri.ends_with("my%20paths.yaml"), "{uri}");
}

#[test]
fn every_finding_has_its_place_in_every_file() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write(
        "api.json",
        "{\"openapi\": \"3.1.0\",\n \"paths\": {\"/a\": {\"$ref\": \"paths.yaml#/a\"},\n  \"/search\": {\"post\":\n    {\"summary\": \"é\", \"summary\": \"x\"}}}}\n",
    );
    write(
        "paths.yaml",
        "base: &base {get: {description: once}}\na:\n  <<: *base\n  post: {tags: [a], tags: [b],\n    operationId: search_all}\n",
    );
    let path = directory.path().join("api.json").display().to_string();
    let text = stdout(&run(&["check", "--spec", &path]));
    for expected in [
        "api.json:4:33 #/paths/~1search/post/summary",
        "paths.yaml:4:27 #/a/post/tags",
        ": this key is written twice; the last one counts (and 1 more like this: ",
        "paths.yaml:4:9 #/paths/~1a/post",
        "` looks read-only (word `search`), and is served as",
        "(and 1 more like this: ",
        "api.json:4:5 #/paths/~1search/post",
    ] {
        assert!(text.contains(expected), "`{expected}` is not in:\n{text}");
    }
}

#[test]
fn exit_codes_tell_how_bad_it_is() {
    let petstore = petstore();
    assert_eq!(run(&["check", "--spec", &petstore]).status.code(), Some(0));
    assert_eq!(
        run(&["check", "--spec", "/nonexistent"]).status.code(),
        Some(3)
    );
    let loose = SpecFile::with_paths(&json!({"/a/{x}": {"get": {}}}));
    let check = |more: &[&str]| {
        let output = run(&[&["check", "--spec", loose.path()], more].concat());
        output.status.code()
    };
    assert_eq!(check(&AT_HOME), Some(0));
    assert_eq!(check(&[&AT_HOME[..], &["--strict"]].concat()), Some(1));
    assert_eq!(check(&[]), Some(1), "`serve` does not start");
    let output = run(&["serve", "--spec", loose.path(), "--mock", "strict: true"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("`strict`"), "{}", stderr(&output));
}

#[test]
fn clients_that_do_not_support_references_get_none() {
    let tree = json!({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {"/a": {"post": {"operationId": "grow_a_very_long_tool_name_that_is_longer_than_forty_eight_characters", "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}}}}},
        "components": {"schemas": {"Tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}}}}});
    let spec = SpecFile::new(&tree.to_string());
    let tools = |client: &str| -> Value {
        serde_json::from_str(&stdout(&run(&[
            "tools",
            "--spec",
            spec.path(),
            "--format",
            "json",
            "--client",
            client,
        ])))
        .unwrap()
    };
    assert!(tools("generic")[0]["tool"]["inputSchema"]["$defs"]["Tree"].is_object());
    let gemini = tools("gemini")[0]["tool"].clone();
    let text = gemini["inputSchema"].to_string();
    assert!(
        !text.contains("$ref") && text.contains("left out because"),
        "{text}"
    );
    assert!(gemini["name"].as_str().unwrap().len() <= 48);
}

#[test]
fn what_is_too_long_is_cut_where_it_is_deepest() {
    let petstore = petstore();
    let tools = |flags: &[&str]| -> Vec<Value> {
        let mut args = vec![
            "tools",
            "--spec",
            &petstore,
            "--format",
            "json",
            "output_schemas: off",
        ];
        args.extend(flags);
        serde_json::from_str(&stdout(&run(&args))).unwrap()
    };
    for tool in tools(&["max_schema_bytes: 700"]) {
        let schema = &tool["tool"]["inputSchema"];
        assert!(schema.to_string().len() < 1500, "{schema}");
        jsonschema::meta::validate(schema).unwrap();
    }
}

/// A client that checks lenient output schemas accepts all replies of a real API.
#[test]
fn a_lenient_output_schema_never_makes_a_good_reply_fail() {
    let answers = [
        ("/object", "application/json", r#"{"id":null,"extra":[1]}"#),
        ("/list", "application/json", "[1,\"x\",null]"),
        ("/scalar", "application/json", "null"),
        ("/text", "text/plain", "hello"),
        ("/image", "image/png", "x"),
        ("/nothing", "", ""),
    ];
    let upstream = Upstream::start(Box::new(move |request| {
        let path = request.line.split(' ').nth(1).unwrap();
        let (_, content_type, body) = answers.iter().find(|(known, ..)| *known == path).unwrap();
        if body.is_empty() {
            reply(204, &[], b"")
        } else {
            reply(
                200,
                &[&format!("Content-Type: {content_type}")],
                body.as_bytes(),
            )
        }
    }));
    let schema = json!({"200": {"content": {"application/json": {"schema": {"type": "object", "required": ["id"], "additionalProperties": false, "properties": {"id": {"type": "integer", "format": "int64"}}}}}}});
    let paths: serde_json::Map<_, _> = answers
        .iter()
        .map(|(path, ..)| {
            (
                (*path).to_owned(),
                json!({"get": {"operationId": path.trim_start_matches('/'), "responses": schema}}),
            )
        })
        .collect();
    let spec = SpecFile::with_paths(&Value::Object(paths));
    let mut session =
        Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    for tool in session.tools() {
        let schema = &tool["outputSchema"];
        assert_eq!(schema["type"], "object", "{tool}");
        let result = session.call(tool["name"].as_str().unwrap(), &json!({}));
        assert_eq!(result["isError"], false, "{result}");
        assert!(
            result["structuredContent"].is_object()
                && jsonschema::is_valid(schema, &result["structuredContent"]),
            "{schema} {result}"
        );
    }
}

/// A reply that a client with strict output schemas would reject is an error that holds the whole
/// reply.
#[test]
fn a_reply_that_cannot_be_structured_breaks_no_strict_promise() {
    // A key is repeated, so that it would take a tree.
    let large = format!(
        "[{{\"id\":\"{}\",\"size\":1,\"size\":2}}]",
        "x".repeat(3 << 20)
    );
    let upstream = Upstream::start(Box::new(move |request| {
        let body = if request.line.contains("/large") {
            large.as_str()
        } else {
            "[{\"id\":\"a\"}]"
        };
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }));
    let responses = json!({"200": {"content": {"application/json": {"schema": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}}}}});
    let operation = |id: &str| json!({"get": {"operationId": id, "responses": responses}});
    let spec =
        SpecFile::with_paths(&json!({"/small": operation("small"), "/large": operation("large")}));
    let flags = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "output_schemas: strict",
    ];
    // Cut, it may not fit any more.
    let cut = Session::start(&flags).call("large", &json!({}));
    assert_eq!(
        (&cut["isError"], cut.get("structuredContent")),
        (&json!(true), None)
    );
    assert!(
        cut["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("The reply was cut")
    );
    let mut session = Session::start(&[&flags[..], &["--max-result-tokens", "0"]].concat());
    let schema = session.tools()[0]["outputSchema"].clone();
    let small = session.call("small", &json!({}));
    assert!(
        small["isError"] == false && jsonschema::is_valid(&schema, &small["structuredContent"]),
        "{small}"
    );
    let large = session.call("large", &json!({}));
    assert_eq!(
        (&large["isError"], large.get("structuredContent")),
        (&json!(true), None)
    );
    let said = large["content"][0]["text"].as_str().unwrap();
    assert!(
        said.starts_with("GET /large answered 200 OK, but not with JSON that can be given"),
        "{}",
        said.chars().take(100).collect::<String>()
    );
    assert!(said.len() > 1000 && said.contains("only 2097152 are structured"));
}

/// A property for requests only is in no reply, as the document says; a reply that holds it all the
/// same still fits.
#[test]
fn a_strict_output_schema_allows_what_is_declared_for_requests_only() {
    let upstream = Upstream::start(Box::new(|_| {
        reply(
            200,
            &["Content-Type: application/json"],
            br#"{"id":1,"pin":"1234"}"#,
        )
    }));
    let properties =
        json!({"id": {"type": "integer"}, "pin": {"type": "string", "writeOnly": true}});
    let schema = json!({"type": "object", "required": ["id", "pin"], "properties": properties, "additionalProperties": false});
    let responses =
        json!({"200": {"description": "", "content": {"application/json": {"schema": schema}}}});
    let spec = SpecFile::with_paths(
        &json!({"/a": {"get": {"operationId": "get", "responses": responses}}}),
    );
    let mut session = Session::serving(&spec, &upstream, &["output_schemas: strict"]);
    let schema = session.tools()[0]["outputSchema"].clone();
    let result = session.call("get", &json!({}));
    assert!(
        jsonschema::is_valid(&schema, &result["structuredContent"]),
        "{schema} {result}"
    );
    assert!(
        jsonschema::is_valid(
            &schema,
            &json!({"result": {"id": 1}, "_notes": ["A note."]})
        ),
        "{schema}"
    );
    assert!(
        !jsonschema::is_valid(&schema, &json!({"result": {"id": 1, "other": 2}})),
        "{schema}"
    );
}

#[test]
fn output_schemas_are_offered_as_asked() {
    let petstore = petstore();
    let count = |flags: &[&str]| {
        let mut args = vec!["tools", "--spec", &petstore, "--format", "json"];
        args.extend(flags);
        let tools: Vec<Value> = serde_json::from_str(&stdout(&run(&args))).unwrap();
        tools
            .iter()
            .filter(|tool| tool["tool"]["outputSchema"].is_object())
            .count()
    };
    assert_eq!(count(&["output_schemas: off"]), 0);
    assert_eq!(count(&[]), count(&["output_schemas: lenient"]));
    assert!(count(&[]) > 8 && count(&["output_schemas: strict"]) > 5);
}

#[test]
fn swagger_2_and_other_files_are_read() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("api.yaml"),
        "swagger: '2.0'\ninfo: {title: S, version: '1'}\nhost: api.example\npaths:\n  /a: {$ref: 'a.yaml'}\n",
    )
    .unwrap();
    std::fs::write(
        directory.path().join("a.yaml"),
        "get:\n  operationId: from_another_file\n",
    )
    .unwrap();
    let path = directory.path().join("api.yaml").display().to_string();
    assert!(stdout(&run(&["tools", "--spec", &path])).contains("from_another_file"));
    assert!(stderr(&run(&["tools", "--spec", &path, "external_refs: none"])).contains("left out"));
    assert!(project("examples").exists());
}

#[test]
fn an_operation_id_that_is_used_twice_is_told_with_both_places() {
    let spec = SpecFile::new(
        "openapi: 3.1.0\ninfo: {title: T, version: '1'}\npaths:\n  /a: {get: {operationId: same, summary: ' '}}\n  /b: {get: {operationId: same}}\n",
    );
    let text = stdout(&run(&["check", "--spec", spec.path()]));
    let expected = "spec.json:5:13 #/paths/~1b/get: GET /b has the operationId `same` of GET /a (#/paths/~1a/get); neither tool has that name";
    assert!(text.contains(expected), "{text}");
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--mock"]);
    let tools = session.tools();
    let shown: Vec<_> = tools
        .iter()
        .map(|tool| {
            (
                tool["name"].as_str().unwrap(),
                tool["title"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(shown, [("get_a", "Same"), ("get_b", "Same")]);
}

#[test]
fn a_long_list_is_told_for_each_client_with_the_setting_that_helps() {
    let many = |count: usize| {
        let paths: serde_json::Map<String, Value> = (0..count)
            .map(|number| (format!("/r{number}"), json!({"get": {}})))
            .collect();
        SpecFile::with_paths(&paths.into())
    };
    let report = |spec: &SpecFile| stdout(&run(&["check", "--spec", spec.path()]));
    let told = report(&many(90));
    for line in [
        "  Claude Code: --tools all",
        "  Codex: --tools all",
        "  Cursor: takes 80 of these tools; --client cursor",
        "  VS Code: --client vscode",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(
        !report(&many(3)).contains("what clients make"),
        "a short list suits all"
    );
}
