//! The example of a configuration file: every key with its meaning, commented out. It is made of the
//! declarations of the settings, like the schema, `--help` and the pages of settings; `UPDATE=1`
//! writes it.

use clap::Arg;
use serde_json::Value;

use super::tests::{
    PAGES, choices_of, is_switch, meaning_of, range_of, section_of, write_or_compare,
};
use crate::cli::whole_command;
use crate::config::schema_tests::published_schema;
use crate::config::settings::is_key_alone;

const WIDTH: usize = 120;

const BEGINNING: &str = "# yaml-language-server: $schema=schema.json
#
# Every key of openapi-mcp, commented out, with its default or, where it has none, an example. Use this file with
# `openapi-mcp serve --config openapi-mcp.yaml`. Keys with a flag are variables as well: --base-url is OPENAPI_MCP_BASE_URL.
# A flag overrides a variable, and a variable overrides this file. A variable is unset if it is empty, or a placeholder that
# a client did not fill (`${X}`). An unknown key, a value of the wrong type (the only booleans are true and false) and a key
# without a value are errors. Relative paths start at this file's folder; those of flags and variables start at the working
# directory.
#
# `UPDATE=1 cargo test --locked --lib` writes this file.
";

/// The keys whose values no flag could hold, with their sections.
const STRUCTURED: [(&str, &[&str]); 5] = [
    ("Document", &["apis", "about"]),
    ("Credentials", &["auth", "tenants"]),
    ("Tools", &["overrides", "access"]),
    ("HTTP", &["openai_apps_challenge"]),
    ("Authentication", &["auth_tokens"]),
];

/// Examples for settings without a default that declare none, by the name of the value.
const EXAMPLES: [(&str, &str); 20] = [
    ("ADDRESS:PORT", "127.0.0.1:9464"),
    ("DIR", "/srv/files"),
    ("FILE", "/etc/openapi-mcp/KEY"),
    ("FILE|-", "audit.jsonl"),
    ("FILE|URL", "overlay.yaml"),
    ("FILE|URL|-", "petstore.yaml"),
    ("ID", "gateway"),
    ("NAME", "mcp.example"),
    ("NAME: VALUE", "X-Team: pets"),
    ("NAME=PATH", "Authorization=Bearer token.txt"),
    ("NAME=VALUE", "region=eu"),
    ("NAME=VARIABLE", "Authorization=Bearer PETSTORE_TOKEN"),
    ("NAME[=AS]", "X-Request-Id"),
    ("NUMBER", "10"),
    ("PATTERN", "tag:pets"),
    ("SCOPE", "KEY"),
    ("TEXT", "pets_"),
    ("URI", "https://mcp.example/mcp"),
    ("URL", "http://proxy.example:3128"),
    ("VARIABLE", "KEY"),
];

/// The structured keys of a section.
pub(super) fn structured_keys(section: &str) -> impl Iterator<Item = &'static str> {
    let of_section = STRUCTURED
        .into_iter()
        .filter(move |(own, _)| *own == section);
    of_section.flat_map(|(_, keys)| keys.iter().copied())
}

/// A key in the schema: its description, its example, and the keys below it.
struct DeclaredKey {
    about: String,
    example: String,
    below: Vec<(String, String)>,
}

fn description_of(schema: &Value) -> Option<String> {
    let text = schema["description"].as_str()?.replace('\n', " ");
    Some(text.trim_end_matches('.').to_owned())
}

fn declared_key(key: &str) -> DeclaredKey {
    let schema = published_schema();
    let property = &schema["properties"][key];
    let below = [
        property,
        &property["items"],
        &property["additionalProperties"],
    ]
    .into_iter()
    .find_map(|part| part["$ref"].as_str()?.strip_prefix('#'))
    .and_then(|pointer| schema.pointer(pointer)?["properties"].as_object());
    let below = below.into_iter().flatten();
    DeclaredKey {
        about: description_of(property).unwrap(),
        example: in_flow_style(&property["examples"][0]),
        below: below
            .filter_map(|(key, schema)| Some((key.clone(), description_of(schema)?)))
            .collect(),
    }
}

/// A value as YAML in one line.
fn in_flow_style(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_flow_style).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let member = |(key, value)| format!("{key}: {}", in_flow_style(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::String(text) => {
            let is_word = |text: &str| {
                text.starts_with(|first: char| first == '/' || first.is_ascii_alphabetic())
                    && text
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"_-./ ".contains(&byte))
            };
            if is_word(text) {
                text.clone()
            } else {
                value.to_string()
            }
        }
        other => other.to_string(),
    }
}

/// A structured key on a page of settings.
pub(super) fn structured_key(key: &str) -> String {
    let DeclaredKey {
        about,
        example,
        below,
    } = declared_key(key);
    let about = in_the_file(&about)
        .split_inclusive(['(', ')'])
        .map(|part| match part.strip_suffix(".md)") {
            Some(path) => {
                let page = path.replace("docs/reference/", "").replace("docs/", "../");
                format!("[{}]({page}.md))", page.rsplit('/').next().unwrap())
            }
            None => part.to_owned(),
        })
        .collect::<String>();
    let mut part = format!("`{key}`\n:   {about}.  \n    Key only, as in `{key}: {example}`\n\n");
    for (key, about) in &below {
        part.push_str(&format!("    - `{key}`: {about}\n"));
    }
    if !below.is_empty() {
        part.push('\n');
    }
    part
}

/// Lines of comments. None begins with a word and a colon, which would be a key.
fn comment(text: &str, indentation: &str) -> String {
    let (mut lines, mut line) = (String::new(), format!("# {indentation}"));
    // What is in backticks stays in one line.
    let parts = text
        .split('`')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            1 if part.len() < 40 => part.replace(' ', "\u{a0}"),
            _ => part.to_owned(),
        });
    let text = parts.collect::<Vec<_>>().join("`").replace(": ", ":\u{a0}");
    let (mut words, hanging) = (text.split(' ').peekable(), format!("#  {indentation}"));
    let hanging = if indentation.is_empty() {
        "#"
    } else {
        &hanging
    };
    line.push_str(words.next().unwrap());
    for word in words {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&format!("{line}\n"));
            line = hanging.to_owned();
        }
        line = format!("{line} {word}");
    }
    format!("{lines}{line}\n").replace('\u{a0}', " ")
}

/// The description of a key, without the remark that only the file can have it.
fn in_the_file(about: &str) -> &str {
    about.trim_end_matches(". Only in the configuration file")
}

/// A text about flags as one about keys: `--tools auto` is `tools: auto` in the file.
fn in_words_of_the_file(text: &str, settings: &[&Arg]) -> String {
    let text = text.replace("(repeatable", "(a list").replace("&lt;", "<");
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for index in 0..words.len() {
        let word = words[index].clone();
        let Some((before, flag)) = word.split_once("--") else {
            continue;
        };
        let flag_end = flag
            .find(|character: char| character != '-' && !character.is_ascii_lowercase())
            .unwrap_or(flag.len());
        let (flag, after) = flag.split_at(flag_end);
        let Some(argument) = settings.iter().find(|one| one.get_long() == Some(flag)) else {
            continue;
        };
        let key = argument.get_id();
        let value = words
            .get(index + 1)
            .map_or("", |next| next.trim_end_matches([',', ';', ')', ']', '.']));
        let names = argument.get_value_names().unwrap_or_default();
        let takes = choices_of(argument)
            .iter()
            .any(|(choice, _)| choice == value)
            || names
                .iter()
                .any(|name| name.split('|').any(|part| part == value));
        let colon = if takes && after.is_empty() { ":" } else { "" };
        words[index] = format!("{before}{key}{colon}{after}");
    }
    words.join(" ")
}

/// The value of a setting: its example, its default, or an example by the name of its value.
fn value_of(argument: &Arg) -> String {
    if is_switch(argument) {
        return "false".into();
    }
    let (key, meaning) = (argument.get_id().as_str(), meaning_of(argument));
    let choices = choices_of(argument);
    let name = argument.get_value_names().unwrap().join(" ");
    let schema = &published_schema()["properties"][key];
    let is_list = schema["type"] == "array";
    let is_number = ["number", "integer"]
        .iter()
        .any(|kind| schema["type"] == *kind);
    let shown = |text: &str| {
        let value = if is_number {
            text.to_owned()
        } else {
            in_flow_style(&text.into())
        };
        if is_list { format!("[{value}]") } else { value }
    };
    if let Some(example) = schema["examples"][0].as_str() {
        return shown(example);
    }
    if let Some((_, default)) = meaning.split_once("[default: ") {
        let default = default.trim_end_matches(']');
        let word = default.split([' ', ',']).next().unwrap();
        let is_choice = choices.iter().any(|(choice, _)| choice == word)
            || name.split('|').any(|part| part == word);
        if is_choice || !default.contains(' ') {
            return default.split([' ', ',']).next().unwrap().to_owned();
        }
    }
    let quoted = ["as in `", "as in \""].iter().find_map(|beginning| {
        let (_, rest) = meaning.split_once(beginning)?;
        rest.split(['`', '"']).next()
    });
    if let Some(example) = quoted {
        return shown(example);
    }
    let example = EXAMPLES.iter().find(|(known, _)| *known == name);
    let (_, example) = example.unwrap_or_else(|| {
        panic!("`{key}` has no default: write an example into its text, as in `x`, or one for {name} here")
    });
    let own = match name.as_str() {
        "VARIABLE" => key.trim_end_matches("_env").to_ascii_uppercase(),
        "FILE" => key.trim_end_matches("_file").replace('_', "-"),
        _ => key
            .trim_start_matches("oauth_")
            .trim_end_matches("_scope")
            .to_owned(),
    };
    shown(&example.replace("KEY", &own))
}

fn example_file() -> String {
    let cli = whole_command();
    let serve = cli.find_subcommand("serve").unwrap();
    let settings: Vec<&Arg> = serve
        .get_arguments()
        .filter(|argument| argument.get_env().is_some())
        .collect();
    let mut text = BEGINNING.to_owned();
    let sections = PAGES.iter().flat_map(|(_, _, sections)| sections.iter());
    for section in sections.filter(|section| **section != "Configuration file") {
        let title = format!("# --- {section} ");
        text.push_str(&format!("\n{title:-<WIDTH$}\n"));
        let of_section = settings
            .iter()
            .filter(|one| section_of(one) == Some(section) && one.get_id() != "api");
        for argument in of_section {
            let key = argument.get_id().as_str();
            let flag = if is_key_alone(argument) {
                String::new()
            } else {
                format!(" Flag: --{}.", argument.get_long().unwrap())
            };
            let about = in_words_of_the_file(&meaning_of(argument), &settings);
            text.push_str(&format!(
                "\n{}",
                comment(&format!("{about}.{}{flag}", range_of(key)), "")
            ));
            for (choice, about) in choices_of(argument) {
                text.push_str(&comment(&format!("{choice}: {about}"), "  "));
            }
            text.push_str(&format!("# {key}: {}\n", value_of(argument)));
        }
        for key in structured_keys(section) {
            let declared = declared_key(key);
            text.push_str(&format!(
                "\n{}",
                comment(&format!("{}.", in_the_file(&declared.about)), "")
            ));
            for (key, about) in declared.below {
                text.push_str(&comment(&format!("{key}: {about}"), "  "));
            }
            text.push_str(&format!("# {key}: {}\n", declared.example));
        }
    }
    text
}

#[test]
fn the_example_file_is_as_fresh_as_the_schema() {
    write_or_compare("config/openapi-mcp.yaml", &example_file());
}
