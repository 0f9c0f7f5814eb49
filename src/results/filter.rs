//! Filters of replies: jq programs that a model writes, run over a reply's JSON.
//!
//! The language can ask for more time and memory than there is, so a program only runs in a
//! separate process, with limits that the system enforces; see [`super::sandbox`]. `JMESPath` is
//! not offered: the library for it reads number literals wrongly if numbers keep all their digits.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars, data, unwrap_valr};
use jaq_json::{Val, read};

/// Exit code of a process whose standard output is the complaint of [`run`]; no other output of a
/// failed process is shown.
pub(crate) const REJECTED: u8 = 65;

/// Returns the output of the program for the JSON, as JSON; several outputs as a list.
///
/// # Errors
/// The fault of the program, or its error, in words for a model.
pub(crate) fn run_filter(program: &str, json: &str) -> Result<String, String> {
    let input = read::parse_single(json.as_bytes())
        .map_err(|error| format!("the reply cannot be read: {error}"))?;
    let filter = compile_program(program)?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let outputs: Vec<Val> = filter
        .id
        .run((context, input))
        .map(unwrap_valr)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    match outputs.as_slice() {
        [only] => Ok(only.to_string()),
        several => Ok(format!(
            "[{}]",
            several
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(",")
        )),
    }
}

/// Returns true if a text is a jq program.
///
/// # Errors
/// The fault.
pub(crate) fn check_program(program: &str) -> Result<(), String> {
    compile_program(program).map(|_| ())
}

fn compile_program(program: &str) -> Result<Filter<data::JustLut<Val>>, String> {
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let functions = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(
            &arena,
            File {
                code: program,
                path: (),
            },
        )
        .map_err(|errors| wrong(&format!("{errors:?}")))?;
    Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .map_err(|errors| wrong(&format!("{errors:?}")))
}

/// Describes errors of jaq, which are values, by what they name.
fn wrong(errors: &str) -> String {
    let names: Vec<&str> = errors
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|name| !name.trim().is_empty())
        .collect();
    match names.last() {
        Some(name) => format!("it is not a jq program: look at `{name}`"),
        None => "it is not a jq program".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str =
        r#"{"total":12345678901234567890123,"items":[{"id":1,"name":"a"},{"id":2,"name":"b"}]}"#;

    #[test]
    fn jq_projects_and_keeps_numbers() {
        for (program, expected) in [
            (".items[].name", r#"["a","b"]"#),
            ("[.items[] | {id}]", r#"[{"id":1},{"id":2}]"#),
            (".total", "12345678901234567890123"),
            ("empty", "[]"),
            (".items | length", "2"),
        ] {
            assert_eq!(
                run_filter(program, JSON).as_deref(),
                Ok(expected),
                "{program}"
            );
        }
        for wrong in [".items[", "nosuchthing", ".total.name", "input"] {
            assert!(run_filter(wrong, JSON).is_err(), "{wrong}");
        }
    }
}
