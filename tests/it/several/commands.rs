//! `tools`, `check` and `call` with several APIs.

use serde_json::{Value, json};

use super::{KEYS, Setup, pets_and_bills};
use crate::support::{Upstream, command, run, stderr, stdout};

fn two() -> (Setup, String, Upstream, Upstream) {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.document("bills");
    let config = setup.config(&pets_and_bills(&pets, &bills));
    (setup, config, pets, bills)
}

#[test]
fn tools_shows_all_apis_or_the_chosen_one() {
    let (_setup, config, ..) = two();
    let shown = |more: &[&str]| {
        let output = command(&[&["tools", "--config", &config, "--format", "json"], more].concat())
            .envs(KEYS)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let tools: Vec<Value> = serde_json::from_str(&stdout(&output)).unwrap();
        tools
            .iter()
            .map(|tool| tool["tool"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&[]),
        [
            "bills_list_things",
            "bills_create_thing",
            "pets_list_things",
            "pets_create_thing"
        ]
    );
    assert_eq!(
        shown(&["--api", "pets"]),
        ["pets_list_things", "pets_create_thing"]
    );
    // Flags of one API apply to the chosen one.
    assert_eq!(
        shown(&["--api", "pets", "--read-only"]),
        ["pets_list_things"]
    );
    let wrong = command(&["tools", "--config", &config, "--api", "pet"])
        .envs(KEYS)
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("there is no API `pet`; did you mean `pets`?"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn check_reports_on_each_api_in_every_format() {
    let (_setup, config, ..) = two();
    let report = |format: &str| {
        let output = command(&["check", "--config", &config, "--format", format])
            .envs(KEYS)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let text = report("text");
    assert!(
        text.contains("API bills") && text.contains("The pets API"),
        "{text}"
    );
    assert!(text.contains("OPENAPI_MCP_AUTH_PETS_KEY"), "{text}");
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    assert_eq!(json["apis"]["pets"]["tools"], 2, "{json}");
    let sarif: Value = serde_json::from_str(&report("sarif")).unwrap();
    assert_eq!(sarif["runs"].as_array().map(Vec::len), Some(2), "{sarif}");
    report("github");
}

#[test]
fn call_finds_the_api_by_the_name_of_the_tool() {
    let (_setup, config, pets, bills) = two();
    let call = |tool: &str| {
        command(&["call", "--config", &config, tool])
            .envs(KEYS)
            .output()
            .unwrap()
    };
    assert_eq!(call("pets_list_things").status.code(), Some(0));
    let sent = pets.take_one();
    assert_eq!(sent.header("x-key"), Some("the-key-of-pets"));
    assert_eq!(bills.received().len(), 0);
    let unknown = call("pets_list_thing");
    assert!(
        stderr(&unknown).contains("did you mean `pets_list_things`?"),
        "{}",
        stderr(&unknown)
    );
    assert!(stderr(&call("dogs_list")).contains("(bills, pets)"));
}

#[test]
fn documents_on_the_command_line_need_no_file() {
    let (setup, _config, ..) = two();
    let spec = |name: &str| format!("{name}={}", setup.folder.path().join("pets.json").display());
    let output = command(&[
        "tools",
        "--mock",
        "--api",
        &spec("one"),
        "--api",
        &spec("two"),
    ])
    .output()
    .unwrap();
    let told = stdout(&output);
    assert!(
        told.contains("one_list_things") && told.contains("two_create_thing"),
        "{told}{}",
        stderr(&output)
    );
}

#[test]
fn a_document_that_cannot_be_read_costs_its_own_api_and_the_exit_code_says_so() {
    let (setup, config, ..) = two();
    setup.write("bills.json", "{");
    for (command_line, words) in [("tools", "pets_list_things"), ("check", "The pets API")] {
        let output = command(&[command_line, "--config", &config])
            .envs(KEYS)
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(3),
            "{command_line}: {}",
            stderr(&output)
        );
        assert!(stdout(&output).contains(words), "{}", stdout(&output));
        assert!(stderr(&output).contains("`bills`"), "{}", stderr(&output));
    }
    let none = setup.config(&json!({"mock": true, "apis": {"bills": {"spec": "bills.json"}}}));
    assert_eq!(
        command(&["tools", "--config", &none])
            .output()
            .unwrap()
            .status
            .code(),
        Some(3)
    );
}

#[test]
fn a_bundle_holds_one_api_and_says_how_to_choose_it() {
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    let api =
        |spec: &str| json!({"spec": spec, "base_url": "http://127.0.0.1:9", "read_only": true});
    let config =
        setup.config(&json!({"apis": {"pets": api("pets.json"), "bills": api("bills.json")}}));
    let path = |name: &str| setup.folder.path().join(name).display().to_string();
    let (binary, bundle) = (setup.write("binary", "#!/bin/sh\n"), path("pets.mcpb"));
    let base = [
        "bundle",
        "--config",
        &config,
        "--binary",
        &binary,
        "--platform",
        "linux",
        "--output",
        &bundle,
    ];
    let refused = run(&base);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    for words in [
        "a bundle holds one API, and the settings have 2 (bills, pets)",
        "choose one with --api NAME",
        "`openapi-mcp install --config FILE`",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let unknown = run(&[&base[..], &["--api", "pest"]].concat());
    assert!(
        stderr(&unknown).contains("did you mean `pets`?"),
        "{}",
        stderr(&unknown)
    );
    let made = run(&[&base[..], &["--api", "pets"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let unpacked = path("unpacked");
    let unzipped = std::process::Command::new("python3")
        .args(["-m", "zipfile", "-e", &bundle, &unpacked])
        .status();
    if !unzipped.is_ok_and(|status| status.success()) {
        eprintln!("python3 is not here, and the bundle is not unpacked");
        return;
    }
    // Inside, it is the only API, and its tools keep their names, which rules match.
    let listed = run(&[
        "tools",
        "--config",
        &format!("{unpacked}/server/openapi-mcp.json"),
    ]);
    let text = stdout(&listed);
    assert!(
        text.contains("pets_list_things") && !text.contains("create_thing"),
        "{text}{}",
        stderr(&listed)
    );
}
