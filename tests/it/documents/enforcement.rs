//! All settings go by the hints that tools have. With `--no-destructive` or `--confirm destructive`,
//! these are those of the policy `strict`, unless the operator says otherwise. The operations are those of Docker's and GitHub's documents.

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, reply, run, stderr, stdout, text};

fn spec() -> SpecFile {
    let operation = |id: &str| json!({"post": {"operationId": id}});
    let if_match =
        json!({"name": "If-Match", "in": "header", "required": true, "schema": {"type": "string"}});
    SpecFile::with_paths(&json!({
        "/containers/json": {"get": {"operationId": "ContainerList"}},
        "/containers/create": operation("ContainerCreate"),
        "/containers/{id}/kill": {
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
            "post": {"operationId": "ContainerKill"}
        },
        "/containers/{id}/stop": {
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
            "post": {"operationId": "ContainerStop"}
        },
        "/containers/prune": operation("ContainerPrune"),
        "/images/prune": operation("ImagePrune"),
        "/networks/prune": operation("NetworkPrune"),
        "/volumes/prune": operation("VolumePrune"),
        "/build/prune": operation("BuildPrune"),
        "/credentials/revoke": {"post": {"operationId": "credentials/revoke", "x-mcp": {"annotations": {"destructiveHint": false, "readOnlyHint": true}}}},
        "/logout": {"get": {"operationId": "logout"}},
        "/config": {"put": {"operationId": "ConfigUpdate", "parameters": [if_match]}}
    }))
}

const HARMFUL: [&str; 8] = [
    "ContainerKill",
    "ContainerStop",
    "ContainerPrune",
    "ImagePrune",
    "NetworkPrune",
    "VolumePrune",
    "BuildPrune",
    "credentials_revoke",
];

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn p59_no_destructive_leaves_out_what_a_name_calls_destructive() {
    let (spec, upstream) = (spec(), Upstream::echo());
    let mut session = Session::serving(&spec, &upstream, &["--no-destructive"]);
    assert_eq!(
        names(&session.tools()),
        ["ContainerList", "ContainerCreate"]
    );
    for tool in HARMFUL {
        let answer = session.request(
            "tools/call",
            &json!({"name": tool, "arguments": {"id": "1"}}),
        );
        assert_eq!(answer["error"]["code"], -32602, "{tool}: {answer}");
    }
    assert!(upstream.received().is_empty());
    let log = session.end();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("left out because of their words"))
        .collect();
    assert_eq!(lines.len(), 1, "one line: {log}");
    for expected in [
        "9 tools",
        "`ContainerKill` (POST /containers/{id}/kill)",
        "`kill`",
        "--hint 'ContainerKill destructive=false'",
    ] {
        assert!(lines[0].contains(expected), "{expected}: {}", lines[0]);
    }
    // A policy that the operator names is obeyed, and what `strict` would hold back is counted.
    for (policy, is_offered, line) in [
        ("strict", false, "9 tools left out because of their words"),
        (
            "careful",
            false,
            "1 tool: --annotation-policy strict would leave out or ask about it",
        ),
        (
            "method",
            true,
            "9 tools: --annotation-policy strict would leave out or ask about them",
        ),
    ] {
        let flags = ["--no-destructive", "--annotation-policy", policy];
        let mut session = Session::serving(&spec, &upstream, &flags);
        let tools = session.tools();
        assert_eq!(
            names(&tools).contains(&"ContainerKill"),
            is_offered,
            "{policy}"
        );
        let log = session.end();
        assert!(log.contains(line), "{policy}: {log}");
    }
}

#[test]
fn p59_what_is_published_is_what_every_setting_goes_by() {
    let (spec, upstream) = (spec(), Upstream::echo());
    for flags in [
        &[][..],
        &["--confirm", "destructive"],
        &["--annotation-policy", "strict"],
        &["--annotation-policy", "infer"],
        &["--annotation-policy", "method"],
        &["document_hints: trust"],
    ] {
        let published = Session::serving(&spec, &upstream, flags).tools();
        let hint = |tool: &Value, hint: &str| tool["annotations"][hint] == true;
        for (flag, is_kept) in [
            (
                "--read-only",
                &(|tool: &Value| hint(tool, "readOnlyHint")) as &dyn Fn(&Value) -> bool,
            ),
            ("--no-destructive", &|tool| !hint(tool, "destructiveHint")),
        ] {
            if flag == "--no-destructive"
                && !flags
                    .iter()
                    .any(|flag| flag.contains("confirm") || flag.contains("policy"))
            {
                // This setting alone decides that the policy is `strict`.
                continue;
            }
            let kept: Vec<&str> = published
                .iter()
                .filter(|tool| is_kept(tool))
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            let offered = Session::serving(&spec, &upstream, &[flags, &[flag]].concat()).tools();
            assert_eq!(names(&offered), kept, "{flags:?} {flag}");
        }
    }
}

#[test]
fn p59_read_only_leaves_out_a_get_whose_name_says_that_it_acts() {
    let (spec, upstream) = (spec(), Upstream::echo());
    let mut session = Session::serving(&spec, &upstream, &["--read-only"]);
    assert_eq!(names(&session.tools()), ["ContainerList"]);
    let log = session.end();
    assert!(
        log.contains("1 tool left out because of their words")
            && log.contains("--hint 'logout readOnly=true'"),
        "{log}"
    );
}

#[test]
fn p59_only_the_operator_frees_a_tool_from_what_its_name_says() {
    let spec = spec();
    let offered = |flags: &[&str]| {
        let output = run(&[
            &[
                "tools",
                "--spec",
                spec.path(),
                "--format",
                "json",
                "--no-destructive",
            ],
            flags,
        ]
        .concat());
        let tools: Vec<Value> = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|_| panic!("{}", stderr(&output)));
        tools
            .iter()
            .map(|tool| tool["tool"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let base = ["ContainerList", "ContainerCreate"];
    assert_eq!(
        offered(&[]),
        base,
        "not the document, unless the operator trusts it"
    );
    assert_eq!(
        offered(&["document_hints: trust"]),
        ["ContainerList", "ContainerCreate", "credentials_revoke"]
    );
    for policy in ["strict", "infer"] {
        assert_eq!(offered(&["--annotation-policy", policy]), base, "{policy}");
    }
    for policy in ["method", "spec"] {
        let offered = offered(&["--annotation-policy", policy]);
        assert!(
            offered.contains(&"ContainerKill".to_owned()),
            "{policy} knows no words: {offered:?}"
        );
    }
    for hint in ["destructive=false", "readOnly=true"] {
        let freed = offered(&["--hint", &format!("ContainerKill {hint}")]);
        assert_eq!(
            freed,
            ["ContainerList", "ContainerCreate", "ContainerKill"],
            "{hint}"
        );
    }
    let config = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    let rule = "overrides: [{match: {path: '/*/prune'}, annotations: {destructiveHint: false}}]";
    std::fs::write(config.path(), rule).unwrap();
    let freed = offered(&["--config", config.path().to_str().unwrap()]);
    assert_eq!(
        freed.iter().filter(|name| name.ends_with("Prune")).count(),
        5,
        "{freed:?}"
    );
    let freed = offered(&["--hint", "ContainerKill idempotent=true"]);
    assert_eq!(freed, base, "another hint frees nothing");
}

#[test]
fn p59_confirm_asks_about_what_a_name_calls_destructive() {
    let (spec, upstream) = (spec(), Upstream::echo());
    for (level, asked, free) in [
        (
            "destructive",
            [&HARMFUL[..], &["logout"]].concat(),
            vec!["ContainerList", "ContainerCreate"],
        ),
        (
            "write",
            [&HARMFUL[..], &["logout", "ContainerCreate"]].concat(),
            vec!["ContainerList"],
        ),
    ] {
        let mut session = Session::serving(&spec, &upstream, &["--confirm", level]);
        for tool in asked {
            let arguments = if tool.starts_with("ContainerK") || tool.starts_with("ContainerS") {
                json!({"id": "1"})
            } else {
                json!({})
            };
            let result = session.call(tool, &arguments);
            assert!(
                text(&result).contains("Nothing was sent"),
                "{level} {tool}: {result}"
            );
        }
        assert!(upstream.received().is_empty(), "{level}");
        for tool in free {
            assert_eq!(
                session.call(tool, &json!({}))["isError"],
                false,
                "{level} {tool}"
            );
            upstream.take_one();
        }
        let log = session.end();
        assert!(
            log.contains("called only after the user agrees because of their words"),
            "{level}: {log}"
        );
    }
}

#[test]
fn p59_a_request_is_not_repeated_where_the_operation_says_that_a_repeat_fails() {
    let spec = spec();
    let upstream = Upstream::start(Box::new(|_| reply(503, &["Retry-After: 0"], b"")));
    let mut session = Session::serving(&spec, &upstream, &[]);
    for (tool, arguments, requests) in [
        ("ContainerList", json!({}), 3),
        ("logout", json!({}), 1),
        ("ConfigUpdate", json!({"If-Match": "\"1\""}), 1),
    ] {
        session.call(tool, &arguments);
        assert_eq!(upstream.take_all().len(), requests, "{tool}");
    }
    let hints = [
        "--hint",
        "logout idempotent=true",
        "--hint",
        "ConfigUpdate idempotent=true",
    ];
    let mut session = Session::serving(&spec, &upstream, &hints);
    for (tool, arguments) in [
        ("logout", json!({})),
        ("ConfigUpdate", json!({"If-Match": "\"1\""})),
    ] {
        session.call(tool, &arguments);
        assert_eq!(upstream.take_all().len(), 3, "{tool}");
    }
}

#[test]
fn check_warns_of_names_that_are_enforced() {
    let spec = spec();
    for flags in [&[][..], &["--no-destructive"], &["document_hints: trust"]] {
        let report = stdout(&run(&[&["check", "--spec", spec.path()], flags].concat()));
        for word in ["kill", "prune", "revoke"] {
            let named = report
                .lines()
                .any(|line| line.contains(&format!("`{word}`")));
            assert!(named, "{flags:?} {word}: {report}");
        }
    }
    let report = stdout(&run(&[
        "check",
        "--spec",
        spec.path(),
        "--annotation-policy",
        "method",
    ]));
    let prune = report
        .lines()
        .find(|line| line.contains("(word `prune`)"))
        .unwrap();
    assert!(
        prune.starts_with("warning: ")
            && prune.contains("looks destructive")
            && prune.contains("(and 4 more like this: "),
        "{prune}"
    );
    let freed = [
        "--no-destructive",
        "--hint",
        "path:/** destructive=false",
        "--hint",
        "logout readOnly=false",
    ];
    let report = stdout(&run(
        &[&["check", "--spec", spec.path()], &freed[..]].concat()
    ));
    assert!(!report.contains("is left out"), "{report}");
}

/// Under POST no position in a name excuses a harmful word: only the operator can say that it names
/// a thing.
#[test]
fn p59_a_post_whose_name_or_path_says_harm_anywhere_is_held_back() {
    let post = |id: &str| json!({"post": {"operationId": id}});
    let spec = SpecFile::with_paths(&json!({
        "/a": post("addOnRemove"), "/b": post("exportJobCancelById"), "/c": post("readReplicaDeleteV2"), "/d": post("JobsKill2"),
        "/jobs/kill/all": post("op5"), "/vms/stop/{id}": {"post": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {}}]}},
        "/kept": post("createOrder"), "/stops/{id}": {"get": {"operationId": "getForStop", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {}}]}},
    }));
    let output = run(&[
        "tools",
        "--spec",
        spec.path(),
        "--format",
        "json",
        "--no-destructive",
    ]);
    let tools: Vec<Value> =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let mut names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["tool"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["createOrder", "getForStop"]);
}

/// The name of a GET is understood in every spelling: the first four are in real documents.
#[test]
fn p59_a_get_whose_name_says_in_any_spelling_that_it_acts_is_held_back() {
    let get = |id: &str| json!({"get": {"operationId": id}});
    let spec = SpecFile::with_paths(&json!({
        "/dropwebhook": get("dropwebhook"), "/archive/delete/network": get("network"), "/#Action=DeleteStack": get("GET_DeleteStack"),
        "/createAuthor": get("createAuthorUsingGET"), "/rpc?action=killSession": get("rpc"), "/clearcache": get("op"),
        "/deletedcertificates": get("GetDeletedCertificates"), "/stop/departures": get("departures"), "/#Action=ListStacks": get("GET_ListStacks"),
    }));
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--mock", "--read-only"]);
    let mut tools = session.tools();
    tools.sort_by_key(|tool| tool["name"].to_string());
    assert_eq!(
        names(&tools),
        ["GET_ListStacks", "GetDeletedCertificates", "departures"]
    );
    let log = session.end();
    assert!(
        log.contains("6 tools left out because of their words"),
        "{log}"
    );
}

#[test]
fn p59_a_trusted_document_is_obeyed_unless_it_contradicts_itself() {
    let harmless = json!({"annotations": {"readOnlyHint": true}});
    let both = json!({"annotations": {"readOnlyHint": true, "destructiveHint": false}});
    let spec = SpecFile::with_paths(&json!({"/pets/{id}": {
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
        "get": {"operationId": "show"},
        "delete": {"operationId": "pet", "x-mcp": harmless},
        "put": {"operationId": "look", "x-mcp": both},
    }}));
    let offered = |flags: &[&str]| {
        let output = run(&[
            &[
                "tools",
                "--spec",
                spec.path(),
                "--format",
                "json",
                "document_hints: trust",
            ],
            flags,
        ]
        .concat());
        let tools: Vec<Value> = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|_| panic!("{}", stderr(&output)));
        tools.len()
    };
    assert_eq!(offered(&[]), 3);
    assert_eq!(offered(&["--read-only"]), 2);
    assert_eq!(offered(&["--no-destructive"]), 2);
    assert_eq!(
        offered(&["--read-only", "--hint", "pet readOnly=true"]),
        3,
        "the operator frees it"
    );
}

#[test]
fn a_tool_that_the_settings_leave_out_is_named_so_and_the_opposite_is_never_suggested() {
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "DNS", "version": "1"}, "paths": {
            "/zones": {"post": {"operationId": "dns_createZone"}, "get": {"operationId": "dns_listZones"}},
            "/zones/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "delete": {"operationId": "dns_deleteZone"}
            }
        }})
        .to_string(),
    );
    for tools in ["all", "search"] {
        let mut session = Session::start(&[
            "serve",
            "--mock",
            "--no-destructive",
            "--tools",
            tools,
            "--spec",
            spec.path(),
        ]);
        let mut told = |name: &str| {
            if tools == "all" {
                session.request("tools/call", &json!({"name": name, "arguments": {}}))["error"]["message"].to_string()
            } else {
                session.call("call_read", &json!({"operation": name}))["content"][0]["text"]
                    .to_string()
            }
        };
        let hidden = told("dns_deleteZone");
        assert!(
            hidden.contains("settings of this server leave it out")
                && !hidden.contains("createZone"),
            "{hidden}"
        );
        let removed = told("dns_removeZone");
        assert!(!removed.contains("dns_createZone"), "{removed}");
        let near = told("dns_listZone");
        assert!(near.contains("id you mean dns_listZones?"), "{near}");
    }
}

#[test]
fn the_length_of_a_list_that_is_not_listed_is_no_finding() {
    let path = |index: usize| {
        (
            format!("/a{index}"),
            json!({"get": {"operationId": format!("a{index}")}}),
        )
    };
    let paths: serde_json::Map<String, Value> = (0..200).map(path).collect();
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "http://a.test"}], "paths": paths})
            .to_string(),
    );
    for (flags, is_told) in [
        (&["--client", "vscode", "--tools", "all"][..], true),
        (&["--client", "vscode", "--tools", "search"], false),
        (&["--client", "vscode"], true),
    ] {
        let args = [&["check", "--format", "json", "--spec", spec.path()], flags].concat();
        let report: Value = serde_json::from_str(&stdout(&run(&args))).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let told = findings.iter().any(|finding| {
            finding["message"]
                .as_str()
                .unwrap()
                .contains("takes at most 128 tools")
        });
        assert_eq!(told, is_told, "{flags:?}: {findings:?}");
        assert_eq!(report["clients"].is_array(), is_told, "{flags:?}");
    }
}

#[test]
fn p59_what_commands_list_is_what_a_server_with_the_same_file_lists() {
    let spec = SpecFile::with_paths(&json!({
        "/a/{id}/password": {"post": {"operationId": "setPassword", "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}},
    }));
    let config = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(config.path(), "confirm: [destructive]\nmock: true\n").unwrap();
    let flags = [
        "--config",
        config.path().to_str().unwrap(),
        "--spec",
        spec.path(),
    ];
    let output = run(&[&["tools", "--format", "json"][..], &flags].concat());
    let listed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let mut session = Session::start(&[&["serve"][..], &flags].concat());
    let served = &session.tools()[0];
    assert_eq!(served["annotations"]["destructiveHint"], true);
    assert_eq!(listed[0]["tool"]["annotations"], served["annotations"]);
}

#[test]
fn p59_a_tool_that_reads_does_not_reach_an_operation_that_acts() {
    let upstream = Upstream::echo();
    let id = json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
    let spec = SpecFile::with_paths(&json!({
        "/users/{id}": {"get": {"operationId": "get_user", "parameters": id}},
        "/users/{id}/delete": {"get": {"operationId": "delete_user", "parameters": id}},
    }));
    let mut session = Session::serving(&spec, &upstream, &["--tools", "search"]);
    let arguments = json!({"operation": "get_user", "arguments": {"id": "7/delete"}});
    let result = session.call("call_read", &arguments);
    assert!(text(&result).contains("another operation"), "{result}");
    assert!(upstream.received().is_empty());
}
