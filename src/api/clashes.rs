//! Tool names that two APIs of one server both have. Some clients compare names without case.

use std::collections::HashMap;

use super::Api;
use crate::text;

/// Number of clashes that are listed; of the others only their number is.
const MAX_SHOWN: usize = 10;

/// Returns a sentence for each name of `new` that one of the others has already, compared without
/// case, with the location of both.
pub(crate) fn clashes_with<'a>(new: &Api, others: impl Iterator<Item = &'a Api>) -> Vec<String> {
    let mut names: Option<HashMap<String, usize>> = None;
    let mut found = Vec::new();
    for other in others.filter(|other| may_clash(new.prefix(), other.prefix())) {
        let names = names.get_or_insert_with(|| lower_case_names(new));
        for theirs in other.tools() {
            let name = theirs.name.to_ascii_lowercase();
            let Some(ours) = names.get(&name).and_then(|index| new.tools().get(*index)) else {
                continue;
            };
            found.push(format!(
                "the tool name `{name}` would name {} of the API `{}` and {} of the API `{}`; set another `tool_prefix` for one of them, or a `name` in its `overrides`",
                text::one_line(&ours.operation.label()),
                shown_name(new),
                text::one_line(&theirs.operation.label()),
                shown_name(other),
            ));
        }
    }
    let more = found.len().saturating_sub(MAX_SHOWN);
    found.truncate(MAX_SHOWN);
    if more > 0 {
        found.push(format!("and {more} more names clash"));
    }
    found
}

/// Names that begin with different prefixes differ, unless one prefix is the beginning of the
/// other.
fn may_clash(one: &str, other: &str) -> bool {
    let shorter = one.len().min(other.len());
    let begin = |prefix: &str| prefix.get(..shorter).map(str::to_ascii_lowercase);
    begin(one) == begin(other)
}

fn lower_case_names(api: &Api) -> HashMap<String, usize> {
    let names = api.tools().iter().enumerate();
    names
        .map(|(index, tool)| (tool.name.to_ascii_lowercase(), index))
        .collect()
}

fn shown_name(api: &Api) -> &str {
    api.name().map_or("", |name| name.as_str())
}
