//! Annotations of tools, and what decides them: the method, the document, the configuration and
//! flags.

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, command, run, stderr, stdout};

/// A document that uses nearly every extension.
fn spec() -> SpecFile {
    SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "x-mcp": {"category": "shop", "annotations": {"openWorldHint": false}},
        "paths": {
            "/search": {"post": {"operationId": "searchGoods", "description": "Searches for goods.", "tags": ["goods", "find"]}},
            "/goods/{id}": {
                "x-mcp": {"annotations": {"idempotentHint": false}},
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "get": {"operationId": "getGood", "tags": ["goods"], "x-mcp": {"annotations": {"readOnlyHint": false, "safeHint": 1}, "title": "Look at it"}},
                "delete": {"operationId": "deleteGood", "x-mcp-annotations": {"destructiveHint": false, "readOnlyHint": true}},
                "put": {"operationId": "putGood", "x-mcp-name": "store good!", "x-mcp-description": "Stores\u{200b} it."}
            },
            "/hidden": {"get": {"operationId": "hidden", "x-mcp": false}},
            "/secret": {"get": {"operationId": "secret", "x-mcp-hidden": true}},
            "/spoken": {"get": {"operationId": "spoken", "x-speakeasy-mcp": {"disabled": false, "name": "say", "scopes": ["read"]}}},
            "/thing": {"trace": {"operationId": "traced"}}
        }})
        .to_string(),
    )
}

/// The tools by name, as `tools --format json` shows them.
fn tools(spec: &SpecFile, flags: &[&str]) -> serde_json::Map<String, Value> {
    let mut args = vec!["tools", "--spec", spec.path(), "--format", "json"];
    args.extend(flags);
    let output = run(&args);
    let tools: Vec<Value> =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let named = tools
        .into_iter()
        .map(|tool| (tool["tool"]["name"].as_str().unwrap().to_owned(), tool));
    named.collect()
}

/// `rdio`, with `-` for what is false and `?` for what is not written out.
fn hints(tool: &Value) -> String {
    let letters = [
        ("readOnlyHint", 'r'),
        ("destructiveHint", 'd'),
        ("idempotentHint", 'i'),
        ("openWorldHint", 'o'),
    ];
    let told = |(hint, letter)| match tool["tool"]["annotations"][hint].as_bool() {
        Some(true) => letter,
        Some(false) => '-',
        None => '?',
    };
    letters.map(told).iter().collect()
}

#[test]
fn p35_hints_of_a_document_can_only_make_a_tool_look_less_safe() {
    let tools = tools(&spec(), &[]);
    assert_eq!(
        tools["searchGoods"]["tool"]["_meta"]["openapi-mcp"]["category"],
        "shop"
    );
    assert_eq!(
        hints(&tools["getGood"]),
        "-d-o",
        "made more careful by operation and path item"
    );
    assert_eq!(hints(&tools["deleteGood"]), "-d-o", "not made harmless");
    assert_eq!(tools["getGood"]["tool"]["title"], "Look at it");
    assert_eq!(tools["store_good"]["tool"]["description"], "Stores it.");
    assert!(
        tools.contains_key("say") && !tools.contains_key("hidden") && !tools.contains_key("secret"),
        "{:?}",
        tools.keys()
    );
    assert_eq!(
        hints(&tools["traced"]),
        "????",
        "a word that changes nothing is not written out"
    );
    let report = stdout(&run(&["check", "--spec", spec().path()]));
    for expected in [
        "readOnly=true of DELETE",
        "destructive=false of DELETE",
        "`safeHint` is ignored",
        "`document_hints: trust`",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
}

#[test]
fn p35_hints_of_a_document_count_when_trusted_and_never_when_ignored() {
    let trusted = tools(&spec(), &["document_hints: trust"]);
    assert_eq!(hints(&trusted["deleteGood"]), "r---");
    assert_eq!(hints(&trusted["searchGoods"]), "----");
    let report = stdout(&run(&[
        "check",
        "--spec",
        spec().path(),
        "document_hints: trust",
    ]));
    assert!(
        report.contains("readOnly=true of `DELETE /goods/{id}`, and is trusted"),
        "{report}"
    );
    let ignored = tools(&spec(), &["document_hints: ignore"]);
    assert_eq!(hints(&ignored["getGood"]), "r-io");
    assert!(ignored.contains_key("hidden") && ignored.contains_key("putGood"));
    assert_eq!(ignored["searchGoods"]["category"], "goods");
}

#[test]
fn the_most_specific_extension_wins_in_every_place_and_order() {
    let extensions = r#""x-mcp-name": "b", "x-mcp-hidden": true, "x-speakeasy-mcp": {"disabled": false, "name": "c"}"#;
    let document = |of_root: &str, of_path: &str, of_operation: &str| {
        SpecFile::new(&format!(
            r#"{{"openapi": "3.1.0", {of_root} "paths": {{
                "/a": {{{of_path} "get": {{{of_operation} "operationId": "a"}}}},
                "/d": {{"get": {{"operationId": "d", "x-mcp": true}}}}}}}}"#
        ))
    };
    let extensions = format!("{extensions},");
    for spec in [
        document(&extensions, "", ""),
        document("", &extensions, ""),
        document("", "", &extensions),
    ] {
        assert_eq!(
            tools(&spec, &[]).keys().collect::<Vec<_>>(),
            ["d"],
            "`x-mcp-hidden` wins over `x-speakeasy-mcp`"
        );
    }
    let named = r#""x-mcp-name": "b", "x-speakeasy-mcp": {"name": "c"},"#;
    assert!(
        tools(&document("", "", named), &[]).contains_key("b"),
        "`x-mcp-name` wins over `x-speakeasy-mcp`"
    );
}

#[test]
fn rules_and_flags_win_field_by_field_in_order() {
    let config = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    let rules = "overrides:
  - match: {method: [DELETE, put]}
    annotations: {idempotentHint: true, destructiveHint: false}
    category: writing
  - match: {operation: deleteG*}
    title: Throw it away
    annotations: {destructiveHint: true}
  - match: {path: '/thing'}
    annotations: {readOnlyHint: true, title: Trace it}
  - match: {tag: find, method: POST}
    enabled: false
  - match: {operation: hidden}
    enabled: true
";
    std::fs::write(config.path(), rules).unwrap();
    let path = config.path().to_str().unwrap().to_owned();
    let spec = spec();
    let shown = tools(
        &spec,
        &[
            "--config",
            &path,
            "--hint",
            "deleteGood readOnly=true",
            "--hint",
            "method:GET openWorld=false",
        ],
    );
    assert_eq!(hints(&shown["deleteGood"]), "-dio");
    assert_eq!(hints(&shown["store_good"]), "--io");
    assert_eq!(
        hints(&shown["traced"]),
        "r-io",
        "one hint set, and all are written out"
    );
    assert_eq!(shown["traced"]["tool"]["annotations"]["title"], "Trace it");
    assert_eq!(
        (
            shown["deleteGood"]["category"].as_str(),
            shown["deleteGood"]["tool"]["title"].as_str()
        ),
        (Some("writing"), Some("Throw it away"))
    );
    assert!(shown.contains_key("hidden") && !shown.contains_key("searchGoods"));
    let sources: Vec<&str> = [
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
    ]
    .map(|hint| {
        shown["deleteGood"]["hints"][hint]["source"]
            .as_str()
            .unwrap()
    })
    .into();
    assert_eq!(
        sources,
        ["command line", "config rule 2", "config rule 1", "method"]
    );
    for (hint, source) in [
        ("destructiveHint", "follows from readOnly=true"),
        ("idempotentHint", "follows from readOnly=true"),
        ("openWorldHint", "MCP default"),
    ] {
        assert_eq!(shown["traced"]["hints"][hint]["source"], source, "{hint}");
    }
    let output = run(&[
        "tools",
        "--spec",
        spec.path(),
        "--config",
        &path,
        "--explain",
    ]);
    assert!(
        stdout(&output).contains("destructive=true · config rule 2"),
        "{}",
        stdout(&output)
    );
    let report = stdout(&run(&[
        "check",
        "--spec",
        spec.path(),
        "--config",
        &path,
        "--hint",
        "deleteGood readOnly=true",
    ]));
    assert!(
        report.contains("read-only (command line) and destructive (config rule 2) at once"),
        "{report}"
    );
}

#[test]
fn policies_are_chosen_by_flag_variable_and_key() {
    let spec = spec();
    assert_eq!(hints(&tools(&spec, &[])["searchGoods"]), "---o");
    assert_eq!(
        hints(&tools(&spec, &["--annotation-policy", "infer"])["searchGoods"]),
        "r-io"
    );
    let mut command = command(&[
        "tools",
        "--spec",
        spec.path(),
        "--format",
        "json",
        "--read-only",
    ]);
    let output = command
        .env("OPENAPI_MCP_ANNOTATION_POLICY", "infer")
        .output()
        .unwrap();
    assert!(stdout(&output).contains("\"searchGoods\""));
    let config = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(config.path(), "annotation_policy: infer\n").unwrap();
    let by_key = tools(&spec, &["--config", config.path().to_str().unwrap()]);
    assert_eq!(hints(&by_key["searchGoods"]), "r-io");
    assert_eq!(
        by_key["searchGoods"]["hints"]["readOnlyHint"]["source"],
        "word `search`"
    );
}

#[test]
fn tools_are_filtered_by_the_hints_that_count_by_tag_and_by_question() {
    let spec = spec();
    let names = |flags: &[&str]| -> Vec<String> { tools(&spec, flags).keys().cloned().collect() };
    let list = tools(&spec, &[]);
    let effective = |name: &str, hint: &str| list[name]["hints"][hint]["value"] == true;
    let read_only = names(&["--read-only"]);
    let not_destructive = names(&["--no-destructive"]);
    assert!(!read_only.is_empty() && read_only.iter().all(|name| effective(name, "readOnlyHint")));
    assert!(
        !not_destructive.is_empty()
            && !not_destructive
                .iter()
                .any(|name| effective(name, "destructiveHint"))
    );
    // It has no hints, so MCP's defaults count.
    assert!(effective("traced", "destructiveHint") && !effective("traced", "idempotentHint"));
    assert_eq!(names(&["--tag", "FIND"]), ["searchGoods"]);
    let mut any = names(&["--tag", "find", "--tag", "goods"]);
    any.sort();
    assert_eq!(any, ["getGood", "searchGoods"]);
    assert_eq!(
        names(&["--search", "good search"])[0],
        "searchGoods",
        "the best answer comes first"
    );
    assert!(
        names(&["--search", "weather forecast tomorrow"]).is_empty(),
        "no tool answers"
    );
    let table = stdout(&run(&["tools", "--spec", spec.path(), "--tag", "find"]));
    assert!(table.contains("1 tool, 0 of them read-only"), "{table}");
}

#[test]
fn a_page_for_a_directory_says_why_each_hint_is_as_it_is() {
    let page = stdout(&run(&[
        "tools",
        "--spec",
        spec().path(),
        "--format",
        "markdown",
    ]));
    let row = page
        .lines()
        .find(|line| line.contains("`deleteGood`"))
        .unwrap();
    for expected in [
        "| Delete Good |",
        "destructive: DELETE: removes",
        "openWorld: the API is outside",
        "idempotent: the document's author says so",
    ] {
        assert!(row.contains(expected), "{expected}: {row}");
    }
    assert_eq!(row.matches("<br>").count(), 3);
}

#[test]
fn what_is_hidden_can_neither_be_seen_nor_called() {
    let upstream = Upstream::echo();
    let spec = spec();
    for (flags, gone) in [
        (&["--read-only"][..], "deleteGood"),
        (&["--no-destructive"], "deleteGood"),
        (&["--no-destructive"], "traced"),
        (&[], "secret"),
    ] {
        let mut args = vec!["serve", "--spec", spec.path(), "--base-url", &upstream.url];
        args.extend(flags);
        let mut session = Session::start(&args);
        assert!(
            session.tools().iter().all(|tool| tool["name"] != gone),
            "{flags:?} {gone}"
        );
        let answer = session.request(
            "tools/call",
            &json!({"name": gone, "arguments": {"id": "1"}}),
        );
        assert_eq!(
            answer["error"]["code"], -32602,
            "{flags:?} {gone}: {answer}"
        );
    }
    assert!(upstream.received().is_empty());
}

#[test]
fn p33_p34_titles_and_names_of_a_document_are_cut_and_still_match_patterns() {
    let long = "A\nB ".to_owned() + &"Z".repeat(100_000);
    let spec = SpecFile::with_paths(&json!({
        "/a": {"get": {"x-mcp": {"annotations": {"title": long}, "title": long}}},
        "/pets": {"delete": {"x-mcp-name": "tidy"}, "get": {"x-mcp-name": "\u{1f642}", "x-mcp-frob": 1}}
    }));
    let list = tools(&spec, &[]);
    let told = list["get_a"]["tool"]["annotations"]["title"]
        .as_str()
        .unwrap();
    assert!(told.starts_with("A B Z") && told.len() < 200, "{told}");
    // Known by the name that it has, and by the one that it was given.
    for pattern in ["tidy", "delete_*"] {
        assert!(
            !tools(&spec, &["--tool-exclude", pattern]).contains_key("tidy"),
            "{pattern}"
        );
        let hinted = tools(&spec, &["--hint", &format!("{pattern} openWorld=false")]);
        assert_eq!(hints(&hinted["tidy"]), "-di-", "{pattern}");
    }
    let report = stdout(&run(&["check", "--spec", spec.path()]));
    for expected in ["has no letter or digit", "`x-mcp-frob` is unknown"] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
}

/// A person pastes the rule that `check` prints.
#[test]
fn the_rule_that_check_prints_has_the_effect_that_it_says() {
    let spec = SpecFile::with_paths(&json!({
        "/v1/*/search": {"post": {"operationId": "searchAll"}},
        "/v1/accounts/search": {"post": {"operationId": "deleteMatching"}},
        "/m[e]/find": {"post": {"operationId": "findMe"}}
    }));
    let report = stdout(&run(&["check", "--spec", spec.path(), "--format", "rules"]));
    let (_, block) = report.split_once("\noverrides:\n").unwrap();
    let rules: Vec<&str> = block
        .lines()
        .filter(|rule| rule.contains("readOnlyHint: true"))
        .collect();
    assert_eq!(rules.len(), 2, "{report}");
    let config = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(config.path(), format!("overrides:\n{}\n", rules.join("\n"))).unwrap();
    let path = config.path().to_str().unwrap().to_owned();
    let shown = tools(&spec, &["--config", &path]);
    let told = ["searchAll", "deleteMatching", "findMe"].map(|name| hints(&shown[name]));
    assert_eq!(told, ["r-io", "-d-o", "r-io"]);
    let report = stdout(&run(&["check", "--spec", spec.path(), "--config", &path]));
    assert!(!report.contains("looks read-only"), "{report}");
}

/// `path:/x/**` is how people write "this folder".
#[test]
fn a_pattern_takes_a_folder_with_what_is_below_it_and_alternatives() {
    let operation = |id: &str| json!({"post": {"operationId": id}});
    let spec = SpecFile::with_paths(&json!({
        "/v1/customers": operation("create"),
        "/v1/customers/{customer}": operation("update"),
        "/v1/customers_export": operation("other"),
        "/v1/refunds": operation("refund"),
        "/v1/prices": operation("price")
    }));
    let names = |pattern: &str| -> Vec<String> {
        tools(&spec, &["--tool-include", pattern])
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(names("path:/v1/customers/**"), ["create", "update"]);
    assert_eq!(
        names("path:/v1/{customers,refunds}/**"),
        ["create", "update", "refund"]
    );
    assert_eq!(names("path:/v1/customers/{customer}"), ["update"]);
    assert_eq!(names("{price,refund}"), ["refund", "price"]);
}

#[test]
fn arguments_that_differ_only_in_punctuation_can_be_told_apart() {
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "description": "A date"}});
    let names = ["DateSent", "DateSent<", "DateSent>", "filter[id]", "limit!"];
    let parameters: Vec<Value> = names.into_iter().map(parameter).collect();
    let spec = SpecFile::with_paths(
        &json!({"/a": {"get": {"operationId": "list", "parameters": parameters}}}),
    );
    let shown = tools(&spec, &[]);
    let properties = shown["list"]["tool"]["inputSchema"]["properties"]
        .as_object()
        .unwrap();
    let told: Vec<(&str, &str)> = properties
        .iter()
        .map(|(key, property)| (key.as_str(), property["description"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("DateSent", "A date"),
            ("DateSent_lt", "A date. Sent as `DateSent<`."),
            ("DateSent_gt", "A date. Sent as `DateSent>`."),
            ("filter_id", "A date"),
            ("limit", "A date. Sent as `limit!`."),
        ]
    );
    let upstream = Upstream::echo();
    let mut session = Session::serving(&spec, &upstream, &[]);
    session.call(
        "list",
        &json!({"DateSent_lt": "2026-01-01", "DateSent_gt": "2025-01-01"}),
    );
    assert_eq!(
        upstream.take_one().path(),
        "/a?DateSent%3C=2026-01-01&DateSent%3E=2025-01-01"
    );
}
