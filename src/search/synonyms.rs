//! Words that mean the same to people who use APIs: general ones and abbreviations, none of any one
//! API.

use std::sync::LazyLock;

use foldhash::HashMap;

use super::words::stem;

/// Groups of synonyms: in each line, a word, or two joined by `_`, and its synonyms. Of a synonym
/// that is joined by `_`, each word counts.
const GROUPS: &str = include_str!("synonyms.txt");

static TABLE: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut table: HashMap<String, Vec<String>> = HashMap::default();
    for line in GROUPS.lines() {
        let mut words = line.split_whitespace();
        let key: Vec<_> = words
            .next()
            .unwrap_or_default()
            .split('_')
            .map(stem)
            .collect();
        let synonyms = words
            .flat_map(|word| word.split('_'))
            .map(|word| stem(word).into_owned());
        table.entry(key.join("_")).or_default().extend(synonyms);
    }
    table
});

/// The synonyms of a stem, or of two stems joined by `_`, as stems.
pub(crate) fn synonyms_of(stem: &str) -> &'static [String] {
    TABLE.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_knows_abbreviations_and_pairs_of_words() {
        let has =
            |key: &str, word: &str| synonyms_of(key).iter().any(|found| found == &*stem(word));
        assert!(has("repo", "repository") && has("turn_off", "disable") && has("bill", "invoice"));
        assert!(has("pr", "pull") && has("pr", "request"));
        assert!(synonyms_of("xyzzy").is_empty());
    }
}
