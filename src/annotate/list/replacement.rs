//! The tools that take the place of deprecated ones, where they are offered.

use foldhash::HashSet;

use crate::annotate::Annotated;
use crate::annotate::richer::split_at_replacement;

/// Takes out of each description the tool that takes the place of a deprecated one, where that is not among the tools.
pub(crate) fn forget_replacements_left_out(tools: &mut [Annotated]) {
    if tools.iter().all(|annotated| annotated.replacement.is_none()) {
        return;
    }
    let offered: HashSet<String> = tools.iter().map(|annotated| annotated.tool.name.to_string()).collect();
    for annotated in tools {
        let left_out = annotated.replacement.take_if(|name| !offered.contains(name));
        let description = &mut annotated.parts.description;
        if let Some(split) = left_out.and_then(|name| split_at_replacement(description, &name)) {
            *description = [split.before_words, split.after_words].concat();
        }
    }
}
