//! Words of the same origin that have other stems: `pay` and `payment`, `usergroup` and `user group`.

use super::words::stem;

/// Shorter stems have too many relatives by chance.
const MIN_STEM_BYTES: usize = 3;
/// Endings that make a word of the same origin, and leave another stem.
const ENDINGS: [&str; 10] = ["ment", "ship", "eri", "er", "or", "al", "i", "e", "r", "ion"];
/// Ends of stems that change when a word becomes a noun: `subscribe` and `subscription`.
const CHANGES: [[&str; 2]; 5] = [
    ["scrib", "script"],
    ["duc", "duct"],
    ["mit", "miss"],
    ["yz", "ysi"],
    ["sell", "sale"],
];

/// Stems that a word of the same origin may have; most of them are no words, which no index has.
pub(crate) fn derived_stems(stemmed: &str) -> impl Iterator<Item = String> {
    let longer = ENDINGS.into_iter().map(|ending| stem(&format!("{stemmed}{ending}")).into_owned());
    let shorter = ENDINGS.into_iter().filter_map(|ending| stemmed.strip_suffix(ending));
    let shorter = shorter
        .filter(|rest| rest.len() >= MIN_STEM_BYTES)
        .map(|rest| stem(rest).into_owned());
    let both_ways = CHANGES.into_iter().flat_map(|[from, to]| [[from, to], [to, from]]);
    let changed = both_ways.filter_map(|[from, to]| Some(format!("{}{to}", stemmed.strip_suffix(from)?)));
    let is_long = stemmed.is_ascii() && stemmed.len() >= MIN_STEM_BYTES;
    let mut found: Vec<String> = if is_long {
        longer.chain(shorter).chain(changed).collect()
    } else {
        Vec::new()
    };
    found.sort_unstable();
    found.dedup();
    found.into_iter().filter(move |other| other != stemmed)
}

/// The two words that a word consists of, where both are known: `usergroup` of `user` and `group`.
pub(crate) fn glued_parts<T>(word: &str, known: impl Fn(&str) -> Option<T>) -> Option<[T; 2]> {
    let splits = MIN_STEM_BYTES..=word.len().saturating_sub(MIN_STEM_BYTES);
    splits.into_iter().find_map(|at| {
        let (first, second) = word.split_at_checked(at)?;
        Some([known(first)?, known(second)?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_same_origin_are_found_both_ways() {
        for (word, other) in [
            ("pay", "payment"),
            ("ship", "shipment"),
            ("member", "membership"),
            ("subscribe", "subscription"),
            ("notify", "notification"),
            ("deliver", "delivery"),
            ("analyze", "analysis"),
        ] {
            let has = |from: &str, to: &str| derived_stems(&stem(from)).any(|found| found == stem(to));
            assert!(
                has(word, other),
                "{word} -> {other}: {:?}",
                derived_stems(&stem(word)).collect::<Vec<_>>()
            );
            assert!(
                has(other, word),
                "{other} -> {word}: {:?}",
                derived_stems(&stem(other)).collect::<Vec<_>>()
            );
        }
        assert_eq!(derived_stems("\u{732b}").count(), 0);
    }

    #[test]
    fn a_word_of_two_known_words_is_taken_apart() {
        let known = |word: &str| ["user", "group", "s"].contains(&word).then(|| word.to_owned());
        assert_eq!(glued_parts("usergroup", known), Some(["user".to_owned(), "group".to_owned()]));
        assert_eq!(glued_parts("users", known), None);
        assert_eq!(glued_parts("größe", known), None);
    }
}
