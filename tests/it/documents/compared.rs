//! `openapi-mcp diff`, and documents that are found behind the address of a site.

use crate::support::{SpecFile, Upstream, command, petstore, project, reply, run, stderr, stdout};

const DOCUMENT: &str = r#"{"openapi":"3.1.0","info":{"title":"Found","version":"1"},"servers":[{"url":"/"}],"paths":{"/a":{"get":{"operationId":"found_it"}}}}"#;

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

#[test]
fn a_document_behind_the_address_of_a_site_is_found_on_its_origin_alone() {
    let page = |links: &str| format!("<!doctype html><html><head>{links}</head><body>API</body></html>");
    let other = Upstream::echo();
    let elsewhere = format!("<link rel=\"service-desc\" href=\"{}/openapi.json\">", other.url);
    let site = Upstream::start(Box::new(move |request| match request.path() {
        "/" | "/openapi.json" => reply(200, &["Content-Type: text/html"], page(&elsewhere).as_bytes()),
        "/v3/api-docs" => reply(200, &["Content-Type: application/json"], DOCUMENT.as_bytes()),
        _ => reply(404, &[], b""),
    }));
    let output = command(&["tools", "--spec", &site.url]).env("NO_COLOR", "1").output().unwrap();
    assert!(stdout(&output).contains("found_it"), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("/v3/api-docs"), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("another origin, which is not fetched"),
        "{}",
        stderr(&output)
    );
    assert!(other.received().is_empty());
    assert!(site.received().len() <= 11, "{}", site.received().len());
    let output = run(&["tools", "--strict", "--spec", &site.url]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
}

#[test]
fn a_catalog_and_a_link_name_the_document() {
    for name in ["catalog", "header", "element"] {
        let site = Upstream::start(Box::new(move |request| match (request.path(), name) {
            ("/docs", "header") => reply(200, &["Link: </deep/api.yaml>; rel=\"service-desc\""], b"<html></html>"),
            ("/docs", "element") => reply(200, &[], b"<html><link rel=\"service-desc\" href='/deep/api.yaml'></html>"),
            ("/docs", _) => reply(200, &[], b"<html></html>"),
            ("/.well-known/api-catalog", "catalog") => reply(
                200,
                &[],
                br#"{"linkset":[{"anchor":"/","service-desc":[{"href":"/deep/api.yaml"}]}]}"#,
            ),
            ("/deep/api.yaml", _) => reply(200, &[], DOCUMENT.as_bytes()),
            _ => reply(404, &[], b""),
        }));
        let output = run(&["tools", "--spec", &format!("{}/docs", site.url)]);
        assert!(stdout(&output).contains("found_it"), "{name}: {}", stderr(&output));
    }
}
