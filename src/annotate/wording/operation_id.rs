//! Names as words in lower case, and the parts that frameworks add to the names of functions to make
//! an operationId.

use heck::ToSnakeCase as _;
use http::Method;

/// An operationId without the path and the method that a framework glued on: `list_items` of
/// `list_items_v1_items__get` (`FastAPI`), `DeleteStack` of `GET_DeleteStack`, `listPets` of
/// `listPetsUsingGET_1` (springfox). What is not recognized stays, and so does a name that consists
/// of nothing else.
pub(crate) fn without_glue<'i>(id: &'i str, method: &Method, path: &str) -> &'i str {
    let rest = function_name(id, method, path).or_else(|| mounted_function_name(id, method, path));
    let method = method.as_str();
    let rest = rest
        .or_else(|| strip_ending(id, method, &["_", "-"]))
        .or_else(|| without_using(id, method))
        .or_else(|| id.strip_prefix(method)?.strip_prefix(['_', '-']))
        .unwrap_or(id);
    if rest.is_empty() { id } else { rest }
}

/// Returns the function's name in `{function}{path}_{method}`, where each character of the path
/// that is not a letter or a digit became `_`, as `FastAPI` makes an operationId.
pub(crate) fn function_name<'i>(id: &'i str, method: &Method, path: &str) -> Option<&'i str> {
    without_path(strip_ending(id, method.as_str(), &["_"])?, path)
}

/// The same with the end of a path: a server may mount the function below another path than it
/// knows.
fn mounted_function_name<'i>(id: &'i str, method: &Method, path: &str) -> Option<&'i str> {
    let named = strip_ending(id, method.as_str(), &["_"])?;
    let path = path
        .strip_suffix('/')
        .filter(|path| !path.is_empty())
        .unwrap_or(path);
    let starts = path.match_indices('/').map(|(start, _)| start);
    starts
        .filter_map(|start| path.get(start..))
        .find_map(|end| without_path(named, end))
}

/// Returns the part before the path.
fn without_path<'i>(named: &'i str, path: &str) -> Option<&'i str> {
    let slug = |byte: u8| {
        if byte.is_ascii_alphanumeric() {
            byte
        } else {
            b'_'
        }
    };
    let at = named.len().checked_sub(path.len()).filter(|at| *at > 0)?;
    let is_path = named
        .as_bytes()
        .get(at..)?
        .iter()
        .zip(path.as_bytes())
        .all(|(a, b)| *a == slug(*b));
    named.get(..at).filter(|_| is_path)
}

/// Returns the name before the method, in upper or lower case, and the separator between them.
fn strip_ending<'i>(id: &'i str, method: &str, between: &[&str]) -> Option<&'i str> {
    let at = id.len().checked_sub(method.len())?;
    let (name, ending) = (id.get(..at)?, id.get(at..)?);
    let name = between
        .iter()
        .find_map(|separator| name.strip_suffix(separator))?;
    // `Pets_Get` ends with a verb of the author's.
    let is_method = ending == method || ending == method.to_ascii_lowercase();
    is_method.then_some(name)
}

/// The name in `{name}UsingGET_1`.
fn without_using<'i>(id: &'i str, method: &str) -> Option<&'i str> {
    let numberless = id.trim_end_matches(|last: char| last.is_ascii_digit());
    let id = numberless.strip_suffix('_').unwrap_or(id);
    id.strip_suffix(method)?.strip_suffix("Using")
}

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
    use super::*;

    #[test]
    fn what_frameworks_glue_on_is_no_part_of_the_name() {
        for (id, method, path, expected) in [
            (
                "count_flows_flows_count_post",
                "POST",
                "/flows/count",
                "count_flows",
            ),
            (
                "read_item_items__item_id__get",
                "GET",
                "/items/{item_id}",
                "read_item",
            ),
            (
                "read_item_items__item_id__get",
                "GET",
                "/api/items/{item_id}",
                "read_item",
            ),
            ("list_items__get", "GET", "/", "list_items"),
            ("list_items_items__get", "GET", "/items/", "list_items"),
            ("root__get", "GET", "/", "root"),
            ("GET_DeleteStack", "GET", "/a", "DeleteStack"),
            ("deletePadUsingGET", "GET", "/a", "deletePad"),
            (
                "createSnapshotsUsingPOST_1",
                "POST",
                "/a",
                "createSnapshots",
            ),
            ("Estimate_Get", "GET", "/a", "Estimate_Get"),
            ("post_get", "GET", "/post", "post"),
            ("_post", "POST", "/a", "_post"),
            ("getPost", "POST", "/a", "getPost"),
            ("listBlogPost", "POST", "/a", "listBlogPost"),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(without_glue(id, &method, path), expected, "{id}");
        }
    }
}

#[cfg(test)]
mod split_tests {
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
