//! Integers that were written with a zero fraction or an exponent: `2.0` and `1e2` are integers in
//! JSON Schema (2020-12 core section 4.2.3), but many servers parse only digits.

use serde_json::{Number, Value};

use crate::json::JsonObject;
use crate::spec::schema::{gather_schemas, of_item, of_member};

/// Deeper than this no schema reaches.
const MAX_DEPTH: usize = 128;
/// A number with more digits stays as it was written.
const MAX_DIGITS: usize = 40;

/// Writes the numbers of `arguments` that the input schema `root` declares as `type: integer` as
/// digits alone. All other numbers, and integers of more than 40 digits, stay as they were written.
pub(crate) fn write_integers_plainly(arguments: &mut JsonObject, root: &JsonObject) {
    if arguments.values().any(holds_rewritable_number) {
        for (name, value) in arguments.iter_mut() {
            rewrite_value(value, &of_member(root, name), root, 0);
        }
    }
}

/// Most arguments hold no such number, and need no look at the schema.
fn holds_rewritable_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => plain_integer(number.as_str()).is_some(),
        Value::Array(items) => items.iter().any(holds_rewritable_number),
        Value::Object(members) => members.values().any(holds_rewritable_number),
        _ => false,
    }
}

fn rewrite_value(value: &mut Value, schemas: &[&JsonObject], root: &JsonObject, depth: usize) {
    if depth > MAX_DEPTH || !holds_rewritable_number(value) {
        return;
    }
    let mut all = Vec::new();
    schemas
        .iter()
        .for_each(|schema| gather_schemas(schema, root, &mut all, 0));
    match value {
        Value::Number(number) if is_integer_only(&all) => {
            if let Some(plain) = plain_integer(number.as_str()) {
                *number = Number::from_string_unchecked(plain);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner: Vec<_> = all
                    .iter()
                    .flat_map(|schema| of_item(schema, index))
                    .collect();
                rewrite_value(item, &inner, root, depth + 1);
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let inner: Vec<_> = all
                    .iter()
                    .flat_map(|schema| of_member(schema, name))
                    .collect();
                rewrite_value(member, &inner, root, depth + 1);
            }
        }
        _ => {}
    }
}

/// Returns true if a schema requires an integer, and none accepts any number.
fn is_integer_only(schemas: &[&JsonObject]) -> bool {
    let names = |kind: &str| {
        schemas.iter().any(|schema| match schema.get("type") {
            Some(Value::String(name)) => name == kind,
            Some(Value::Array(names)) => names.iter().any(|name| name == kind),
            _ => false,
        })
    };
    names("integer") && !names("number")
}

/// The digits of a number that has a zero fraction or an exponent and is an integer; `None` for
/// every other number.
fn plain_integer(number: &str) -> Option<String> {
    if !number.contains(['.', 'e', 'E']) {
        return None;
    }
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent
        .strip_prefix('+')
        .unwrap_or(exponent)
        .parse()
        .ok()?;
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    // Number of zeros after the digits, or, if it is negative, of digits after the point.
    let zeros = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    if zeros < 0 {
        let behind = usize::try_from(zeros.checked_neg()?).ok()?;
        let whole = significant
            .len()
            .checked_sub(behind)
            .filter(|length| *length > 0)?;
        let (integer, rest) = significant.split_at_checked(whole)?;
        return (integer.len() <= MAX_DIGITS && rest.bytes().all(|byte| byte == b'0'))
            .then(|| format!("{sign}{integer}"));
    }
    let zeros = usize::try_from(zeros).ok()?;
    let length = significant.len().checked_add(zeros)?;
    (length <= MAX_DIGITS).then(|| format!("{sign}{significant}{}", "0".repeat(zeros)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_lose_their_fraction_and_their_exponent() {
        for (written, expected) in [
            ("2.0", Some("2")),
            ("-2.000", Some("-2")),
            ("0.0", Some("0")),
            ("-0.0", Some("0")),
            ("1e2", Some("100")),
            ("1.50E+1", Some("15")),
            ("1500e-2", Some("15")),
            ("0.5e1", Some("5")),
            ("1e39", Some("1000000000000000000000000000000000000000")),
            ("1e40", None),
            ("1e400", None),
            ("1e99999999999999999999", None),
            ("2", None),
            ("2.5", None),
            ("1e-1", None),
            ("15e-2", None),
        ] {
            assert_eq!(plain_integer(written).as_deref(), expected, "{written}");
        }
    }

    proptest! {
        #[test]
        fn the_value_stays_the_same(number in -1_000_000_000_i64..1_000_000_000, zeros in 0_usize..6) {
            let written = format!("{number}.{}", "0".repeat(zeros + 1));
            prop_assert_eq!(plain_integer(&written), Some(number.to_string()));
            let shifted = format!("{number}{}e-{zeros}", "0".repeat(zeros));
            prop_assert_eq!(plain_integer(&shifted), Some(number.to_string()));
        }
    }
}
