//! Claims and scopes of tokens as the configuration file names and compares them.

use serde_json::{Map, Value};

use crate::config::keys::claim::check_claim;
use crate::config::problems::{Disclosure, Problems, join_path};

/// RFC 6749 section 3.3; any other character would break the challenge that names them.
pub(super) fn check_scopes<'s>(scopes: impl Iterator<Item = &'s String>, problems: &mut Problems) {
    let legal = |scope: &str| {
        !scope.is_empty()
            && scope
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    };
    for scope in scopes.filter(|scope| !legal(scope)) {
        problems.push(format!("`{}` is not an OAuth scope", scope.escape_debug()));
    }
}

/// Reads the claims of a rule, each with the values of which a token must have one.
pub(super) fn read_wanted_claims(
    path: &str,
    claims: Map<String, Value>,
    problems: &mut Problems,
) -> Vec<(String, Vec<Value>)> {
    let mut wanted = Vec::new();
    for (place, values) in claims {
        let path = join_path(path, &place);
        if let Err(problem) = check_claim(&place) {
            problems.push(format!("`{path}`: {problem}"));
        }
        let several = match values {
            Value::Array(values) if !values.is_empty() => values,
            Value::Array(_) => {
                problems.push(format!(
                    "`{path}` is an empty list, which no token meets; list the values of which one is needed"
                ));
                continue;
            }
            single => vec![single],
        };
        for value in several
            .iter()
            .filter(|value| value.is_object() || value.is_array())
        {
            problems.push_wrong_value(
                &path,
                value,
                "texts, numbers or booleans, of which one is needed",
                Disclosure::Shown,
            );
        }
        wanted.push((place, several));
    }
    wanted
}
