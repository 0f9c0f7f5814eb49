//! The text around the list of servers keeps its bytes: comments, blank lines and line ends, also if the file
//! was changed meanwhile.

use super::{Home, read};
use crate::support::stderr;

/// Installs, changes the file, uninstalls, and gives the file after the first and after the last.
fn come_and_go(
    client: &str,
    file: &str,
    before: &str,
    change: &dyn Fn(&str) -> String,
) -> (String, String) {
    let home = Home::new();
    let path = home.write(file, before);
    let output = home.install(client, &["--write"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{client}: {}",
        stderr(&output)
    );
    let installed = read(&path);
    std::fs::write(&path, change(&installed)).unwrap();
    let output = home.uninstall(client, "petstore");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{client}: {}",
        stderr(&output)
    );
    (installed, read(&path))
}

const TOML: [&str; 5] = [
    "# mine\n[mcp_servers.other]\ncommand = 'x' # keep\n# about the end\n",
    "model = \"x\"",
    "# only a comment\n",
    "[mcp_servers.other]\r\ncommand = 'x'\r\n\n# mixed\r\n[profiles.a]\nb = 1\r\n",
    "[mcp_servers]\n\n[mcp_servers.other]\ncommand = 'x'\n\n\n# far below\n",
];

#[test]
fn a_table_of_toml_comes_and_goes_and_every_other_byte_stays() {
    let file = ".codex/config.toml";
    for before in TOML {
        let (installed, left) = come_and_go("codex", file, before, &str::to_owned);
        assert!(installed.contains("[mcp_servers.petstore]"), "{installed}");
        let ended = if before.ends_with('\n') {
            before.to_owned()
        } else {
            format!("{before}\n")
        };
        assert_eq!(left, ended);
        for line in before.lines() {
            assert!(installed.contains(line), "{before:?}: {installed:?}");
        }
        let (_, left) = come_and_go("codex", file, before, &|text| {
            format!("{text}\n[later]\nadded = true # new\n")
        });
        assert_eq!(
            left,
            format!("{ended}\n[later]\nadded = true # new\n"),
            "{before:?}"
        );
    }
    // What a client adds below the entry belongs to it.
    let (_, left) = come_and_go("codex", file, TOML[1], &|text| {
        format!(
            "{text}\n[mcp_servers.petstore.tools.get_pet]\napproval_mode = \"approve\"\n\n[later]\n"
        )
    });
    assert_eq!(left, format!("{}\n\n[later]\n", TOML[1]));
}

#[test]
fn mixed_line_ends_of_json_stay_where_they_are() {
    let before = "{\r\n  \"theme\": \"x\",\n  \"mcpServers\": {\r\n    \"other\": { \"command\": \"x\" }\r\n  },\n  \"last\": 1\r\n}";
    for (client, file) in [
        ("cursor", ".cursor/mcp.json"),
        ("gemini", ".gemini/settings.json"),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
        ),
    ] {
        let (installed, left) = come_and_go(client, file, before, &str::to_owned);
        assert_eq!(left, before, "{client}");
        assert!(
            installed.starts_with("{\r\n  \"theme\": \"x\",\n"),
            "{client}: {installed:?}"
        );
        assert!(
            installed.ends_with("  },\n  \"last\": 1\r\n}"),
            "{client}: {installed:?}"
        );
        let lines = installed
            .split_inclusive('\n')
            .filter(|line| !line.ends_with("\r\n"));
        assert_eq!(lines.count(), 3, "{client}: {installed:?}");
        let (_, left) = come_and_go(client, file, before, &|text| {
            text.replace("\"last\": 1", "\"last\": 2")
        });
        assert_eq!(
            left,
            before.replace("\"last\": 1", "\"last\": 2"),
            "{client}"
        );
    }
}

/// An object of JSON before and after an entry came, and after it went, if that is another text.
const OBJECTS: [(&str, &str, Option<&str>); 7] = [
    (
        "{ \"servers\": {} }",
        "{ \"servers\": {\n    \"p\": ENTRY\n  } }",
        None,
    ),
    (
        "{ \"servers\": { // mine\n  } }",
        "{ \"servers\": { // mine\n    \"p\": ENTRY\n  } }",
        None,
    ),
    (
        "{ \"servers\": { \"a\": {} /* { */ } }",
        "{ \"servers\": {\n    \"a\": {}, /* { */\n    \"p\": ENTRY\n  } }",
        Some("{ \"servers\": {\n    \"a\": {} /* { */\n  } }"),
    ),
    (
        "{ \"servers\": { \"a\": {}, \"b\": \"}\" // last\n  // end\n  } }",
        "{ \"servers\": { \"a\": {}, \"b\": \"}\", // last\n    \"p\": ENTRY\n  // end\n  } }",
        None,
    ),
    (
        "{\n\t\"servers\": {\n\t\t\"a\": {},\n\t\t\"b\": {}}\n}",
        "{\n\t\"servers\": {\n\t\t\"a\": {},\n\t\t\"b\": {},\n\t\t\"p\": ENTRY}\n}",
        Some("{\n\t\"servers\": {\n\t\t\"a\": {},\n\t\t\"b\": {}\n}\n}"),
    ),
    (
        "// empty\n",
        "// empty\n{\n  \"servers\": {\n    \"p\": ENTRY\n  }\n}\n",
        Some("// empty\n{\n  \"servers\": {}\n}\n"),
    ),
    (
        "{ \"servers\": { \"a\": {}, // first\n    \"p\": { \"command\": \"openapi-mcp\" }, // ours\n    \"z\": {} } }",
        "{ \"servers\": { \"a\": {}, // first\n    \"p\": ENTRY, // ours\n    \"z\": {} } }",
        Some("{ \"servers\": { \"a\": {}, // first\n    \"z\": {} } }"),
    ),
];

#[test]
fn objects_of_json_keep_their_layout_and_comments() {
    for (before, with, left) in OBJECTS {
        let home = Home::new();
        let path = home.write(".config/Code/User/mcp.json", before);
        let address = ["--url", "https://h.example", "--name", "p", "--write"];
        let output = home.run(
            &[&["install", "--client", "vscode"][..], &address].concat(),
            &[],
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{before:?}: {}",
            stderr(&output)
        );
        let installed = read(&path);
        let (start, rest) = installed.split_once("\"p\": ").unwrap();
        let (members, end) = rest.split_once('}').unwrap();
        let entry: serde_json::Value = serde_json::from_str(&format!("{members}}}")).unwrap();
        assert_eq!(entry["url"], "https://h.example");
        assert_eq!(format!("{start}\"p\": ENTRY{end}"), with);
        let output = home.uninstall("vscode", "p");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{before:?}: {}",
            stderr(&output)
        );
        assert_eq!(read(&path), left.unwrap_or(before));
    }
}

#[test]
fn servers_in_a_form_that_cannot_be_edited_are_refused() {
    for before in [
        "mcp_servers = { other = { command = 'x' } }\n",
        "[mcp_servers]\npetstore = { command = 'openapi-mcp' }\n",
        "[mcp_servers]\npetstore.command = 'openapi-mcp'\n",
    ] {
        let home = Home::new();
        let path = home.write(".codex/config.toml", before);
        let output = home.install("codex", &["--write"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{before}: {said}");
        assert!(
            said.contains("is not changed: ") && said.contains("--print shows the entry"),
            "{said}"
        );
        assert_eq!(read(&path), before);
    }
}
