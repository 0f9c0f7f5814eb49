//! Search among tools by words, best match first.

/// What of a tool is searched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fields<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its category and tags.
    pub tags: &'a [&'a str],
    /// Its method and path.
    pub label: &'a str,
    /// Its description.
    pub description: &'a str,
}

/// How well a tool fits the query: `None` unless every word of it begins, or is, a word of some field. A whole word counts
/// more than its beginning, and a name more than a description.
#[must_use]
pub(crate) fn search_score(query: &str, fields: &Fields<'_>) -> Option<u32> {
    let tags = fields.tags.join(" ");
    let weighted = [
        (8, split_words(fields.name)),
        (6, split_words(fields.title)),
        (4, split_words(&tags)),
        (3, split_words(fields.label)),
        (1, split_words(fields.description)),
    ];
    let mut total = 0;
    // A query is words as a person types them: `MySQL` is one.
    let wanted: Vec<String> = query
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if wanted.is_empty() {
        return None;
    }
    for wanted in wanted {
        let fits = |word: &String| match word.strip_prefix(wanted.as_str()) {
            Some("") => 2,
            Some(_) => 1,
            None => 0,
        };
        let best = |(weight, found): &(u32, Vec<String>)| weight * found.iter().map(fits).max().unwrap_or_default();
        let gained: u32 = weighted.iter().map(best).sum();
        if gained == 0 {
            return None;
        }
        total += gained;
    }
    Some(total)
}

/// The words of a text, in lower case: `listPets` has `list`, `pets`, and itself, because `MySQL` is not two words.
fn split_words(text: &str) -> Vec<String> {
    use heck::ToSnakeCase as _;
    let mut words: Vec<String> = Vec::new();
    for whole in text
        .split(|character: char| !character.is_alphanumeric())
        .filter(|whole| !whole.is_empty())
    {
        let parts = whole.to_snake_case();
        words.extend(parts.split('_').filter(|part| !part.is_empty()).map(str::to_owned));
        words.push(whole.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_more_than_descriptions_and_every_word_must_be_found() {
        let named = Fields {
            name: "listPets",
            title: "List pets",
            tags: &["pets"],
            ..Fields::default()
        };
        let told = Fields {
            name: "getOwner",
            description: "An owner and the pets that are listed for them",
            ..Fields::default()
        };
        assert!(search_score("pets", &named) > search_score("pets", &told) && search_score("pets", &told).is_some());
        assert!(search_score("list pet", &named).is_some());
        assert_eq!(search_score("list cats", &named), None);
        assert_eq!(search_score("***", &named), None);
        let spelled = Fields {
            description: "On GitHub with OAuth and MySQL",
            ..Fields::default()
        };
        for query in ["mysql", "MySQL", "github", "OAuth", "git"] {
            assert!(search_score(query, &spelled).is_some(), "{query}");
        }
        assert!(search_score("PETS", &named) > search_score("pet", &named));
    }
}
