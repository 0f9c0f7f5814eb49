//! The configuration file: its faults are reported at start, and no part of it is served.

use serde::Deserialize;

use crate::support::{command, petstore, project, run, stderr};

#[derive(Deserialize)]
struct FileProblem {
    name: String,
    file: String,
    problems: Vec<Vec<String>>,
}

#[test]
fn whatever_is_wrong_in_the_configuration_file_is_an_error_at_start() {
    let text = std::fs::read_to_string(project("tests/cases/settings/file_problems.yaml")).unwrap();
    let cases: Vec<FileProblem> = serde_yaml::from_str(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mcp.yaml").display().to_string();
    for FileProblem {
        name,
        file,
        problems,
    } in cases
    {
        std::fs::write(&config, file).unwrap();
        let output = run(&["serve", "--mock", "--config", &config]);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {told}");
        let mut lines: Vec<&str> = told
            .lines()
            .filter(|line| line.starts_with("error: "))
            .collect();
        for problem in &problems {
            let tells = |line: &&str| {
                let mut rest = *line;
                line.contains(&config)
                    && problem.iter().all(|words| {
                        let after = rest.split_once(words.as_str()).map(|(_, after)| after);
                        rest = after.unwrap_or_default();
                        after.is_some()
                    })
            };
            let found = lines.iter().position(tells);
            assert!(found.is_some(), "{name}: no line tells {problem:?}: {told}");
            lines.remove(found.unwrap_or_default());
        }
        assert!(lines.is_empty(), "{name}: more is told: {lines:?}");
        assert!(!told.contains("hunter2"), "{name}: {told}");
    }
}

#[test]
fn whatever_the_file_names_is_relative_to_its_folder_and_whatever_a_flag_names_to_the_working_directory()
 {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = folder.path().join("mcp.yaml").display().to_string();
    let settings = "spec: api.yaml\ntransport: http\nca_cert: [ca.pem]\nclient_cert: client.pem\nclient_key: client.key
auth: {one: {file: one.secret}, two: {username: {env: PATH}, password: {file: two.secret}}, claims: {file: three.secret}}
auth_token_file: [tokens]\ntls_cert: tls.pem\ntls_key: tls.key\nallow_file_args: uploads\n";
    std::fs::write(&config, settings).unwrap();
    let run_in_elsewhere = |args: &[&str]| {
        command(args)
            .current_dir(elsewhere.path())
            .output()
            .unwrap()
    };
    let told = stderr(&run_in_elsewhere(&["serve", "--config", &config]));
    for name in [
        "ca.pem",
        "client.pem",
        "client.key",
        "one.secret",
        "two.secret",
        "three.secret",
        "tokens",
        "tls.pem",
        "uploads",
    ] {
        let path = folder.path().join(name).display().to_string();
        assert!(told.contains(&path), "{path}: {told}");
    }
    let told = stderr(&run_in_elsewhere(&[
        "serve",
        "--config",
        &config,
        "--ca-cert",
        "ca.pem",
        "--allow-file-args",
        "sent",
    ]));
    assert!(
        told.contains("`ca.pem`") && told.contains("`sent`"),
        "{told}"
    );
    std::fs::write(&config, "spec: api.yaml\noverlay: [overlay.yaml]\n").unwrap();
    std::fs::copy(petstore(), folder.path().join("api.yaml")).unwrap();
    let told = stderr(&run_in_elsewhere(&["tools", "--config", &config]));
    assert!(
        told.contains(&folder.path().join("overlay.yaml").display().to_string()),
        "{told}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_the_only_problem_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.yaml").display().to_string();
    let broken = folder.path().join("broken.yaml").display().to_string();
    std::fs::write(&broken, "spec: [1").unwrap();
    for config in [missing, broken] {
        let told = stderr(&run(&["serve", "--config", &config]));
        assert!(
            told.contains(&config) && !told.contains("no document is given"),
            "{told}"
        );
        assert_eq!(
            told.lines()
                .filter(|line| line.starts_with("error: "))
                .count(),
            1,
            "{told}"
        );
    }
}
