//! Words that mean the same to people who use APIs: general ones and abbreviations, none of any one API.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::stem;

/// In each line, a word and what it may stand for. A phrase of several words is joined by `_`; as an alternative it stands for
/// its words.
const GROUPS: &str = include_str!("synonyms.txt");

/// The other words that a word, or a phrase joined by `_`, may stand for: each alternative is one or more stems.
type Alternatives = HashMap<String, Vec<Vec<String>>>;

static TABLE: LazyLock<Alternatives> = LazyLock::new(|| {
    let mut table: Alternatives = HashMap::new();
    for line in GROUPS.lines() {
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { continue };
        let words: Vec<&str> = words.collect();
        // An abbreviation and its word may each stand for the other.
        if let [only] = words.as_slice()
            && !only.contains('_')
        {
            let known = table.entry(stems_of(only)).or_default();
            known.push(key.split('_').map(|part| stem(part).into_owned()).collect());
        }
        let alternatives = words
            .iter()
            .map(|word| word.split('_').map(|part| stem(part).into_owned()).collect());
        let known = table.entry(stems_of(key)).or_default();
        for alternative in alternatives {
            if !known.contains(&alternative) {
                known.push(alternative);
            }
        }
    }
    table
});

fn stems_of(key: &str) -> String {
    key.split('_').map(stem).collect::<Vec<_>>().join("_")
}

/// What a stem, or stems of a phrase joined by `_`, may stand for.
#[must_use]
pub(crate) fn alternatives_of(stem: &str) -> &'static [Vec<String>] {
    TABLE.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_knows_abbreviations_and_phrases() {
        let has = |key: &str, word: &str| alternatives_of(key).iter().any(|stems| stems.join(" ") == stem(word));
        assert!(has("repo", "repository") && has("turn_off", "disable") && has("bill", "invoice"));
        assert!(alternatives_of("pr").contains(&vec!["pull".to_owned(), "request".to_owned()]));
        assert!(alternatives_of("xyzzy").is_empty());
    }
}
