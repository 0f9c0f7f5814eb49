//! Names as words in lower case.

use heck::ToSnakeCase as _;

/// The words of a name in any spelling, in lower case, with `_` between them.
pub(crate) fn snake_case(name: &str) -> String {
    if !name.is_ascii() {
        return name.to_snake_case();
    }
    // As heck splits ASCII: at what is not alphanumeric, before a capital after a small letter, and
    // before the last of several capitals that a small letter follows.
    let bytes = name.as_bytes();
    let mut words = String::with_capacity(bytes.len() + 8);
    let (mut is_lower, mut is_upper) = (false, false);
    for (index, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() {
            (is_lower, is_upper) = (false, false);
            if !words.ends_with('_') {
                words.push('_');
            }
            continue;
        }
        let next = bytes.get(index + 1).copied().unwrap_or(b' ');
        if byte.is_ascii_uppercase()
            && (is_lower || (is_upper && next.is_ascii_lowercase()))
            && !words.ends_with('_')
        {
            words.push('_');
        }
        words.push(char::from(byte.to_ascii_lowercase()));
        if byte.is_ascii_alphabetic() {
            (is_lower, is_upper) = (byte.is_ascii_lowercase(), byte.is_ascii_uppercase());
        }
    }
    words
}

/// The words of a name that [`snake_case`] has split.
pub(crate) fn words(snake: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    snake.split('_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_split_as_heck_splits_them(name in "[a-cA-C1_. -]{0,12}") {
            let (own, heck) = (snake_case(&name), name.to_snake_case());
            prop_assert_eq!(words(&own).collect::<Vec<_>>(), words(&heck).collect::<Vec<_>>());
        }
    }
}
