//! The variables of the environment: which count as set, and which are unknown.

use std::collections::BTreeSet;

use clap::Command;

use crate::text;

const PREFIX: &str = "OPENAPI_MCP_";

/// The command line, on which a variable that is empty counts as one that is not set: compose files and unit files write
/// them so.
#[must_use]
pub(crate) fn without_empty(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let is_empty = argument
            .get_env()
            .is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()));
        if is_empty {
            argument.env(clap::builder::Resettable::Reset)
        } else {
            argument
        }
    });
    command.mut_subcommands(without_empty)
}

/// How a variable is named in an error. People sometimes give the value (`$TOKEN`) in place of the name; a value is not
/// repeated.
#[must_use]
pub(crate) fn called(name: &str) -> String {
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if name.len() <= 64 && name.bytes().all(is_name) {
        format!("the variable `{name}`")
    } else {
        "the variable (what is given looks like a value; give the variable's name)".into()
    }
}

/// A sentence for each variable that looks like a setting and is not one.
#[must_use]
pub(crate) fn unknown_variables(command: &Command) -> Vec<String> {
    let mut known = BTreeSet::new();
    gather_variables(command, &mut known);
    let set: BTreeSet<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().unwrap_or_default())))
        .collect();
    set.iter()
        .filter(|(name, value)| name.starts_with(PREFIX) && !known.contains(name) && !is_of_others(name, value))
        .map(|(name, _)| {
            let hint = text::nearest(name, known.iter().map(String::as_str), 0.9)
                .map(|nearest| format!("; did you mean `{nearest}`?"))
                .unwrap_or_default();
            format!("the variable `{name}` is not a setting and is ignored{hint}")
        })
        .collect()
}

/// Credentials have names of the operator's choice. Kubernetes names the ports of a Service `openapi-mcp` in this way.
fn is_of_others(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    rest.starts_with("AUTH_")
        || rest.starts_with("SERVICE_")
        || (rest.starts_with("PORT") && (rest.starts_with("PORT_") || value.contains("://")))
}

fn gather_variables(command: &Command, known: &mut BTreeSet<String>) {
    let names = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
    known.extend(names.map(str::to_owned));
    command.get_subcommands().for_each(|command| gather_variables(command, known));
}
