//! Reading a part of the configuration file as a type, with all that is wrong with it.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::config::problems::{Disclosure, Problems, expected_by, join_path};

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// Elements that were taken out of lists: the list and the index, as they are in the file.
type TakenOut = Vec<(Vec<PathStep>, usize)>;

/// Reads the value at `path` in the file. Each fault is a problem with its place; the part that
/// holds it is taken out, and the rest is read again. `None` if nothing can be read.
pub(crate) fn read_all<T: DeserializeOwned>(
    path: &str,
    value: &Value,
    disclosure: Disclosure,
    problems: &mut Problems,
) -> Option<T> {
    let mut rest = value.clone();
    let mut taken_out = TakenOut::new();
    loop {
        // From a borrowed value, serde_json does not say which number it expected.
        let error = match serde_path_to_error::deserialize::<_, T>(rest.clone()) {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        let mut steps: Vec<PathStep> = error.path().iter().map_while(step_of).collect();
        // A member without a value, or of another type than the path says, is not there.
        while find(&mut rest, &steps).is_none() {
            steps.pop();
        }
        let (place, in_file) = describe_path(path, &steps, &taken_out);
        report(
            &place,
            &steps,
            error.inner(),
            find(&mut rest, &steps)?,
            disclosure,
            problems,
        );
        let last = steps.pop()?;
        match (find(&mut rest, &steps)?, last) {
            (Value::Object(members), PathStep::Key(key)) => {
                members.shift_remove(&key);
            }
            (Value::Array(items), PathStep::Index(index)) => {
                items.remove(index);
                if let Some((PathStep::Index(index), list)) = in_file.split_last() {
                    taken_out.push((list.to_vec(), *index));
                }
            }
            _ => return None,
        }
    }
}

/// Returns true if a value can be read as a type; all that is wrong with it is pushed to
/// `problems`.
pub(crate) fn can_be_read<T: DeserializeOwned>(
    path: &str,
    value: &Value,
    disclosure: Disclosure,
    problems: &mut Problems,
) -> bool {
    let before = problems.len();
    read_all::<T>(path, value, disclosure, problems).is_some() && problems.len() == before
}

fn step_of(segment: &Segment) -> Option<PathStep> {
    match segment {
        Segment::Map { key } | Segment::Enum { variant: key } => Some(PathStep::Key(key.clone())),
        Segment::Seq { index } => Some(PathStep::Index(*index)),
        Segment::Unknown => None,
    }
}

fn find<'v>(value: &'v mut Value, steps: &[PathStep]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get_mut(key),
        PathStep::Index(index) => value.get_mut(*index),
    })
}

/// The place of a part in words, and its steps, with the indices that the file has.
fn describe_path(path: &str, steps: &[PathStep], taken_out: &TakenOut) -> (String, Vec<PathStep>) {
    let (mut place, mut in_file) = (path.to_owned(), Vec::new());
    for step in steps {
        match step {
            PathStep::Key(key) => {
                place = join_path(&place, key);
                in_file.push(step.clone());
            }
            PathStep::Index(index) => {
                let mut before: Vec<usize> = taken_out
                    .iter()
                    .filter(|(list, _)| *list == in_file)
                    .map(|(_, index)| *index)
                    .collect();
                before.sort_unstable();
                let shifted = before
                    .into_iter()
                    .fold(*index, |index, before| index + usize::from(before <= index));
                place = format!("{place}[{shifted}]");
                in_file.push(PathStep::Index(shifted));
            }
        }
    }
    (place, in_file)
}

/// Reports what is wrong with the value at `place`.
fn report(
    place: &str,
    steps: &[PathStep],
    error: &serde_json::Error,
    found: &Value,
    disclosure: Disclosure,
    problems: &mut Problems,
) {
    let message = error.to_string();
    match steps.last() {
        // serde names all keys: "unknown field `x`, expected one of `env`, `file`, …".
        Some(PathStep::Key(key)) if message.starts_with("unknown field ") => {
            let parent = place.strip_suffix(&join_path("", key)).unwrap_or(place);
            let known = message.rsplit_once(", expected ").unwrap_or_default().1;
            let known = known.split('`').skip(1).step_by(2);
            problems.push_unknown_key(parent.trim_end_matches('.'), key, known);
        }
        _ if message.contains("expected ") || message == "invalid number" => {
            problems.push_wrong_value(place, found, &expected_by(error), disclosure);
        }
        _ => problems.push(format!("`{place}`: {message}")),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[derive(Default)]
    struct Shelf {
        name: String,
        sizes: Vec<u64>,
        value: Value,
        inner: Option<Box<Shelf>>,
    }

    fn read(value: &Value) -> (Option<Shelf>, Vec<String>) {
        let mut problems = Problems::default();
        let read = read_all("shelf", value, Disclosure::Shown, &mut problems);
        (read, problems.to_vec())
    }

    #[test]
    fn every_fault_has_its_place_and_the_rest_is_read() {
        let (shelf, problems) = read(&json!({
            "name": 7, "sizes": ["a", 1, -1, "b"], "naem": "x",
            "inner": {"name": "b", "sizes": {}, "inner": 3},
        }));
        let shelf = shelf.unwrap();
        assert_eq!(
            (shelf.sizes, shelf.inner.unwrap().name.as_str()),
            (vec![1], "b")
        );
        for expected in [
            "`shelf.name` is the number 7; expected a text",
            "`shelf.sizes[0]` is the text \"a\"; expected a whole number of at least 0",
            "`shelf.sizes[2]` is the number -1; expected a whole number of at least 0",
            "`shelf.sizes[3]` is the text \"b\"; expected a whole number of at least 0",
            "unknown key `shelf.naem`; did you mean `name`?",
            "`shelf.inner.sizes` is a mapping; expected a list",
            "`shelf.inner.inner` is the number 3; expected struct Shelf",
        ] {
            assert!(
                problems.contains(&expected.to_owned()),
                "{expected}: {problems:?}"
            );
        }
        assert_eq!(problems.len(), 7, "{problems:?}");
    }

    #[test]
    fn numbers_keep_their_digits() {
        let value: Value =
            serde_json::from_str(r#"{"value": {"a": [1.50, 12345678901234567890123]}}"#).unwrap();
        let (shelf, problems) = read(&value);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(
            shelf.unwrap().value.to_string(),
            r#"{"a":[1.50,12345678901234567890123]}"#
        );
    }
}
