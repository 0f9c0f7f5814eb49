//! A rule of the operator that matches no operation protects nothing: it is an error, unless it is
//! marked as optional.

use serde_json::json;

use crate::support::{Session, SpecFile, petstore, run, stderr, stdout};

/// Flags, the configuration file, and the words of the errors, one list for each error line.
type Case<'c> = (&'c [&'c str], &'c str, &'c [&'c [&'c str]]);

fn run_with(command: &str, args: &[&str], file: &str) -> std::process::Output {
    let config = SpecFile::new(file);
    let spec = petstore();
    let mut all = vec![command, "--spec", &spec, "--config", config.path()];
    all.extend(args);
    run(&all)
}

#[test]
fn a_safety_rule_that_matches_nothing_is_an_error_that_quotes_it() {
    let cases: &[Case<'_>] = &[
        (
            &["--tool-exclude", "tag:stroe"],
            "",
            &[&[
                "--tool-exclude `tag:stroe` matches no operation",
                "did you mean `tag:store`?",
                "`?tag:stroe`",
            ]],
        ),
        (
            &["--tool-exclude", "get_pets"],
            "",
            &[&["`get_pets`", "did you mean `get_pet`?"]],
        ),
        (
            &["--tool-exclude", "store"],
            "",
            &[&["`store`", "did you mean `"]],
        ),
        (
            &["--tool-exclude", "put"],
            "",
            &[&["`put`", "did you mean `method:PUT`?"]],
        ),
        (
            &["--tool-exclude", "path:/pet/**"],
            "",
            &[&["`path:/pet/**`", "did you mean `path:/pets"]],
        ),
        (
            &[
                "--tool-exclude",
                "tag:users,tag:admin",
                "--hint",
                "nobody readOnly=false",
            ],
            "",
            &[
                &["--tool-exclude `tag:admin`"],
                &[
                    "--hint `nobody readOnly=false`: `nobody` matches no operation",
                    "`?nobody`",
                ],
            ],
        ),
        (
            &[],
            "overrides: [{match: {tag: users}, title: x}, {match: {tag: [store, admin]}, enabled: false}]",
            &[&[
                "`overrides[1]`: `tag:admin` matches no operation",
                "`optional: true`",
            ]],
        ),
        (
            &[],
            "overrides: [{match: {tag: users, path: '/pets'}, enabled: false}]",
            &[&["`overrides[0]`", "`tag:users` and `path:/pets` together"]],
        ),
        // What is selected does not matter: rules are judged against all operations of the
        // document.
        (
            &["--tool-include", "tag:pets", "--tool-exclude", "tag:store"],
            "",
            &[],
        ),
        (
            &[
                "--tool-exclude",
                "?tag:admin",
                "--hint",
                "?nobody readOnly=false",
            ],
            "",
            &[],
        ),
        (&["--tool-exclude", "?tag:users"], "", &[]),
        (
            &[],
            "overrides: [{match: {tag: admin}, optional: true, enabled: false}]",
            &[],
        ),
    ];
    for (args, file, expected) in cases {
        for command in ["tools", "check"] {
            let output = run_with(command, args, file);
            let told = stderr(&output);
            let code = if expected.is_empty() { 0 } else { 2 };
            assert_eq!(
                output.status.code(),
                Some(code),
                "{command} {args:?} {file}: {told}"
            );
            let errors: Vec<&str> = told
                .lines()
                .filter(|line| line.starts_with("error: "))
                .collect();
            assert_eq!(errors.len(), expected.len(), "{args:?} {file}: {told}");
            for (line, words) in errors.iter().zip(*expected) {
                assert!(
                    words.iter().all(|words| line.contains(words)),
                    "{words:?}: {line}"
                );
            }
        }
    }
    let excluded = stdout(&run_with("tools", &["--tool-exclude", "?tag:users"], ""));
    assert!(excluded.contains("15 tools"), "{excluded}");
}

#[test]
fn an_inclusion_that_matches_nothing_is_a_warning_and_a_check_of_no_tools_fails() {
    let output = run_with("tools", &["--tool-include", "tag:admin,tag:users"], "");
    assert!(
        output.status.success() && stderr(&output).contains("`tag:admin` matches no operation"),
        "{}",
        stderr(&output)
    );
    let output = run_with("tools", &["--tool-include", "?tag:admin,tag:users"], "");
    assert!(
        !stderr(&output).contains("matches no operation"),
        "{}",
        stderr(&output)
    );
    let output = run_with("check", &["--tool-include", "tag:admin"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("`tag:admin` matches no operation"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_changed_document_that_a_rule_no_longer_matches_is_not_served() {
    let document = |id: &str| {
        json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "http://127.0.0.1:1"}],
            "paths": {"/a": {"get": {"operationId": id}, "delete": {"operationId": "erase"}}}})
        .to_string()
    };
    let spec = SpecFile::new(&document("first"));
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--reload",
        "0.1",
        "--tool-exclude",
        "first",
    ];
    let mut session = Session::start(&args);
    assert_eq!(session.tools().len(), 1);
    std::fs::write(spec.path(), document("second")).unwrap();
    let logs = session.logged("the tools stay as they were");
    assert!(
        logs.contains("--tool-exclude `first` matches no operation"),
        "{logs}"
    );
    let tools = session.tools();
    assert!(tools.len() == 1 && tools[0]["name"] == "erase", "{tools:?}");
}
