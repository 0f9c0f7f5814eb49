//! `openapi-mcp diff`.

use crate::support::{SpecFile, petstore, project, run, stderr, stdout};

#[test]
fn a_new_version_is_compared_as_the_tools_that_clients_see() {
    let same = run(&["diff", &petstore(), &petstore()]);
    assert_eq!(same.status.code(), Some(0), "{}", stderr(&same));
    assert!(
        stdout(&same).contains("20 tools before, 20 after: 0 breaking changes, 0 risks, 0 changes in all"),
        "{}",
        stdout(&same)
    );
    let text = std::fs::read_to_string(project("examples/petstore/petstore.yaml")).unwrap();
    let changed = SpecFile::new(
        &text
            .replace("operationId: getPet\n", "operationId: fetchPet\n")
            .replace("operationId: get_pet\n", "operationId: fetch_pet\n"),
    );
    let output = run(&["diff", &petstore(), changed.path()]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(
        stdout(&output).contains("breaking") && stdout(&output).contains("was called get_pet"),
        "{}",
        stdout(&output)
    );
    let output = run(&["diff", &petstore(), changed.path(), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["breaking"], 1);
    // What is left out by the settings does not count.
    let output = run(&[
        "diff",
        &petstore(),
        changed.path(),
        "--tool-include",
        "tag:users",
        "--format",
        "markdown",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let output = run(&["diff", &petstore(), "/nowhere.yaml"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}
