//! YAML → JSON text, in one pass over the parser's events and without a tree between.
//!
//! The parser is the maintained continuation of `serde_yaml`; what it leaves to the reader is
//! decided here: merge keys (`<<`) are applied, tags are ignored, numbers of any size keep their
//! digits, keys are strings as they are written (`200:` is `"200"`), infinity and NaN become
//! strings because JSON has none, and aliases may not blow the text up.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::positions::{Wanted, marks, without_complex_keys};
use crate::spec::diagnostic::Diagnostic;
use crate::spec::node::Node;
use crate::spec::pointer;

/// The JSON of a document, in which aliases are written out, may be this many times as long as its
/// YAML.
const MAX_GROWTH: usize = 64;
/// A limit by [`MAX_GROWTH`] is raised to this many bytes of JSON.
const MIN_CONVERTED_BYTES: usize = 1 << 20;
/// A limit by [`MAX_GROWTH`] is lowered to this many bytes of JSON, or to twice the length of the
/// YAML, whichever is more.
const MAX_CONVERTED_BYTES: usize = 64 << 20;

/// Error of the YAML parser, with line and column.
pub(crate) type YamlError = serde_yaml::Error;

/// A YAML text as JSON.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) json: String,
    /// The YAML text that was read, with blanks in place of what JSON cannot hold.
    pub(crate) yaml: String,
    /// Diagnostics about values that were read differently from how they are written.
    pub(crate) remarks: Vec<Diagnostic>,
}

/// Reads a YAML text.
///
/// # Errors
/// The error of the YAML parser, with line and column; or one about aliases that expand too far.
pub(crate) fn read_yaml(yaml: String) -> Result<Converted, YamlError> {
    let error = match convert(&yaml) {
        Ok(json) => return Ok(restore_scalars(json, yaml)),
        Err(error) => error,
    };
    let Some((blanked, places)) = without_complex_keys(&yaml).filter(|_| is_of_key(&error)) else {
        return Err(error);
    };
    let mut converted = restore_scalars(convert(&blanked).map_err(|_| error)?, blanked);
    for (line, column) in places {
        let text = format!(
            "the member at line {line}, column {column} has a key that is not text, and is left out"
        );
        converted.remarks.push(Diagnostic::warning("#", text));
    }
    Ok(converted)
}

/// Returns true if a text is a number that no float can hold: `1e400`.
fn is_beyond_floats(text: &str) -> bool {
    let numeric = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let may_be = text.ends_with(|end: char| end.is_ascii_digit())
        && text.len() > 4
        && text.bytes().all(numeric);
    may_be && text.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// A mapping or a list as a key (YAML 1.2.2 section 8.2.2).
fn is_of_key(error: &YamlError) -> bool {
    let text = error.to_string();
    text.contains("invalid type: sequence, expected a string")
        || text.contains("invalid type: map, expected a string")
}

/// A scalar that is not what its standard tag says (YAML 1.2.2 section 10.3): `!!bool 'yes'`.
fn is_of_tag(error: &impl fmt::Display) -> bool {
    error.to_string().contains("invalid value: string")
}

/// Puts the text of the YAML document in place of each [`ReplacedScalar`].
fn restore_scalars(json: Json, yaml: String) -> Converted {
    let Json {
        mut text, replaced, ..
    } = json;
    let mut remarks = Vec::new();
    if !replaced.is_empty() {
        let starts = replaced.iter().enumerate();
        let places: Vec<(usize, usize)> = starts
            .map(|(number, scalar)| (scalar.start, number))
            .collect();
        let wanted = Wanted::at(Node::new(&text), &places);
        let (marks, _) = marks(&yaml, &wanted, replaced.len());
        let written: Vec<_> = replaced
            .iter()
            .zip(marks)
            .map(|(replaced, mark)| {
                let is_plain = mark.as_ref().is_some_and(|mark| mark.is_plain);
                let scalar = mark.and_then(|mark| mark.scalar);
                if replaced.is_number {
                    // A hexadecimal number, for example, is not one in JSON.
                    let number = scalar
                        .filter(|_| is_plain)
                        .map(|scalar| scalar.trim_start_matches('+').to_owned());
                    return number.filter(|number| {
                        serde_json::from_str::<serde_json::Number>(number).is_ok()
                    });
                }
                let pointer = pointer::fragment(
                    pointer::path_to(Node::new(&text), replaced.start)
                        .iter()
                        .map(String::as_str),
                );
                let what = "this value is not what its tag says, and is read as text";
                remarks.push(Diagnostic::warning(pointer, what));
                serde_json::to_string(&scalar.unwrap_or_default()).ok()
            })
            .collect();
        for (replaced, written) in replaced.iter().zip(written).rev() {
            if let Some(written) = written {
                text.replace_range(replaced.start..replaced.end, &written);
            }
        }
    }
    Converted {
        json: text,
        yaml,
        remarks,
    }
}

fn convert(yaml: &str) -> Result<Json, YamlError> {
    if nests_deeply(yaml) {
        return Err(serde_yaml::Error::custom(
            "brackets nest deeper than 1000 levels",
        ));
    }
    let length = yaml.len();
    let highest = MAX_CONVERTED_BYTES.max(length.saturating_mul(2));
    let limit = length
        .saturating_mul(MAX_GROWTH)
        .clamp(MIN_CONVERTED_BYTES, highest);
    let mut json = Json {
        text: String::with_capacity(yaml.len()),
        limit,
        replaced: Vec::new(),
    };
    Write(&mut json).deserialize(serde_yaml::Deserializer::from_str(yaml))?;
    Ok(json)
}

/// Returns true if more than 1000 brackets are opened before one is closed: the scanner takes time
/// with the square of that.
fn nests_deeply(yaml: &str) -> bool {
    let mut open = 0_usize;
    yaml.bytes().any(|byte| {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = 0,
            _ => {}
        }
        open > 1000
    })
}

struct Json {
    text: String,
    limit: usize,
    /// Scalars whose text in the YAML document is needed, in the order of the text.
    replaced: Vec<ReplacedScalar>,
}

/// Position in the JSON text of a placeholder for a scalar. The parser does not return the scalar's
/// own text.
struct ReplacedScalar {
    start: usize,
    end: usize,
    /// A number that lost digits; else something that is not what its tag says.
    is_number: bool,
}

impl Json {
    fn string<E: de::Error>(&mut self, string: &str) -> Result<(), E> {
        if string
            .bytes()
            .any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
        {
            let quoted = serde_json::to_string(string).map_err(E::custom)?;
            return self.raw(&quoted);
        }
        self.raw("\"")?;
        self.raw(string)?;
        self.raw("\"")
    }

    /// The next key of an object, after what separates it from the one before.
    fn key<E: de::Error>(&mut self, key: &str) -> Result<(), E> {
        if !self.text.ends_with('{') {
            self.raw(",")?;
        }
        self.string(key)?;
        self.raw(":")
    }

    /// Writes a placeholder for a scalar until [`restore_scalars`] has the scalar's own text.
    fn replaced<E: de::Error>(&mut self, text: &str, is_number: bool) -> Result<(), E> {
        let start = self.text.len();
        self.raw(text)?;
        self.replaced.push(ReplacedScalar {
            start,
            end: self.text.len(),
            is_number,
        });
        Ok(())
    }

    /// Accepts a scalar that is not what its tag says: of it nothing was written, and the parser
    /// has gone past it. Whether there was a value.
    fn accept_wrong_tag<E: de::Error>(
        &mut self,
        result: Result<bool, E>,
        start: usize,
    ) -> Result<bool, E> {
        match result {
            Err(error) if self.text.len() == start && is_of_tag(&error) => {
                self.replaced("null", false).map(|()| true)
            }
            result => result,
        }
    }

    fn raw<E: de::Error>(&mut self, text: &str) -> Result<(), E> {
        if self.text.len() + text.len() > self.limit {
            return Err(E::custom(format_args!(
                "aliases expand the document beyond {} bytes",
                self.limit
            )));
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// True if a key merges the value that follows (`<<`).
#[derive(PartialEq)]
enum Merge {
    Wanted,
    No,
}

/// Writes the next key of a mapping to the JSON text, unless it is one for merging.
struct MappingKey<'j>(&'j mut Json);

impl<'de> DeserializeSeed<'de> for MappingKey<'_> {
    type Value = Merge;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Merge, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for MappingKey<'_> {
    type Value = Merge;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Merge, E> {
        if key == "<<" {
            return Ok(Merge::Wanted);
        }
        self.0.key(key).map(|()| Merge::No)
    }
}

/// Writes the next value of the deserializer to the JSON text.
struct Write<'j>(&'j mut Json);

impl<'de> DeserializeSeed<'de> for Write<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Write<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.raw("null")
    }
    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.0.raw("null")
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.0.raw(if value { "true" } else { "false" })
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.0.raw(&value.to_string())
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.0.raw(&value.to_string())
    }
    fn visit_i128<E: de::Error>(self, value: i128) -> Result<(), E> {
        self.0.raw(&value.to_string())
    }
    fn visit_u128<E: de::Error>(self, value: u128) -> Result<(), E> {
        self.0.raw(&value.to_string())
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        /// A number of no more digits is what it was written as.
        const SURE_DIGITS: usize = 15;
        match serde_json::Number::from_f64(value) {
            Some(number) => {
                let text = number.to_string();
                if text.bytes().filter(u8::is_ascii_digit).count() <= SURE_DIGITS {
                    self.0.raw(&text)
                } else {
                    self.0.replaced(&text, true)
                }
            }
            None => self.0.string(&value.to_string()),
        }
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        // Numbers beyond all floats come as text, and so does what is written in quotes.
        if is_beyond_floats(value) {
            return self.0.replaced(&format!("\"{value}\""), true);
        }
        self.0.string(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.raw("[")?;
        let mut first = true;
        loop {
            let before = self.0.text.len();
            if !first {
                self.0.raw(",")?;
            }
            let start = self.0.text.len();
            let next = seq
                .next_element_seed(Write(&mut *self.0))
                .map(|value| value.is_some());
            if !self.0.accept_wrong_tag(next, start)? {
                self.0.text.truncate(before);
                break;
            }
            first = false;
        }
        self.0.raw("]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let start = self.0.text.len();
        self.0.raw("{")?;
        let mut merged = Vec::new();
        while let Some(key) = map.next_key_seed(MappingKey(&mut *self.0))? {
            if key == Merge::Wanted {
                // What is merged counts like what is written.
                let mut inner = Json {
                    text: String::new(),
                    limit: self.0.limit.saturating_sub(self.0.text.len()),
                    replaced: Vec::new(),
                };
                map.next_value_seed(Write(&mut inner))?;
                self.0.limit = self.0.limit.saturating_sub(inner.text.len());
                merged.push(inner.text);
                continue;
            }
            let start = self.0.text.len();
            let value = map.next_value_seed(Write(&mut *self.0)).map(|()| true);
            self.0.accept_wrong_tag(value, start)?;
        }
        if !merged.is_empty() {
            let own = format!("{}}}", self.0.text.get(start..).unwrap_or_default());
            let mut keys: HashSet<String> = sources(&own)
                .into_iter()
                .flatten()
                .map(|(key, _)| key.into_owned())
                .collect();
            for (key, value) in merged.iter().flat_map(|text| sources(text)).flatten() {
                if keys.insert(key.clone().into_owned()) {
                    self.0.key(&key)?;
                    self.0.raw(value.text())?;
                }
            }
        }
        self.0.raw("}")
    }

    /// A tagged value (`!custom text`): the tag means nothing to OpenAPI, the value does.
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<(), A::Error> {
        let (_tag, variant): (IgnoredAny, _) = access.variant().map_err(A::Error::custom)?;
        variant.newtype_variant_seed(self)
    }
}

/// Returns line and column, both from 1, of the value that the tokens lead to. Reads the text anew
/// and stops there, because the parser reports its position only in errors.
pub(crate) fn locate(yaml: &str, tokens: &[String]) -> Option<(usize, usize)> {
    let error = Locate(tokens)
        .deserialize(serde_yaml::Deserializer::from_str(yaml))
        .err()?;
    let location = error.location()?;
    Some((location.line(), location.column()))
}

/// Walks down the tokens and fails at their end.
struct Locate<'t>(&'t [String]);

impl<'de> DeserializeSeed<'de> for Locate<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Locate<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what the pointer names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((first, rest)) = self.0.split_first() else {
            return Err(A::Error::custom("here"));
        };
        while let Some(key) = map.next_key::<String>()? {
            if key == *first {
                return map.next_value_seed(Locate(rest));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Err(A::Error::custom("not there"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some((first, rest)) = self.0.split_first() else {
            return Err(A::Error::custom("here"));
        };
        for _ in 0..first.parse::<usize>().unwrap_or(0) {
            seq.next_element::<IgnoredAny>()?;
        }
        seq.next_element_seed(Locate(rest))?;
        Err(A::Error::custom("not there"))
    }
}

/// The mappings that a merge key names: one, or a list of which the earlier ones win (YAML merge
/// key type, 1.1).
fn sources(json: &str) -> Vec<Vec<(Cow<'_, str>, Node<'_>)>> {
    let node = Node::new(json);
    let nodes = node.array().unwrap_or_else(|| vec![node]);
    nodes
        .into_iter()
        .filter_map(Node::object)
        .map(|object| {
            object
                .iter()
                .map(|(key, value)| (Cow::Owned(key.to_owned()), value))
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_reads_as_its_author_meant_it() {
        for (yaml, json) in [
            (
                "on: yes\nno: [n, y, off]",
                r#"{"on":"yes","no":["n","y","off"]}"#,
            ),
            ("200: ok\n0200: other", r#"{"200":"ok","0200":"other"}"#),
            (
                "a: 2024-01-01\nb: 08\nc: 0x10",
                r#"{"a":"2024-01-01","b":"08","c":16}"#,
            ),
            (
                "n: -9223372036854776000\nu: 18446744073709551616",
                r#"{"n":-9223372036854776000,"u":18446744073709551616}"#,
            ),
            (
                "base: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}",
                r#"{"base":{"x":1,"y":2},"c":{"y":3,"x":1}}"#,
            ),
            ("c: {<<: [{x: 1}, {x: 2, z: 3}]}", r#"{"c":{"x":1,"z":3}}"#),
            ("a: !custom text\nb: !!str 5", r#"{"a":"text","b":"5"}"#),
            ("a: .nan\nb: ~\nc:", r#"{"a":"NaN","b":null,"c":null}"#),
            (
                "a: [1e400, -1E+400, .inf, '1e400']\nb: {c: 340282366920938463463374607431768211456123, d: 0.12345678901234567890}",
                r#"{"a":[1e400,-1E+400,"inf","1e400"],"b":{"c":340282366920938463463374607431768211456123,"d":0.12345678901234567890}}"#,
            ),
            ("a: []\nb: {}", r#"{"a":[],"b":{}}"#),
            ("a: 1.50\nt: true", r#"{"a":1.5,"t":true}"#),
        ] {
            assert_eq!(read_yaml(yaml.into()).unwrap().json, json, "{yaml}");
        }
    }

    #[test]
    fn what_json_cannot_hold_costs_itself() {
        for (yaml, json, remark) in [
            (
                "a: !!bool 'yes'\nb: [1, !!int x, 2]",
                r#"{"a":"yes","b":[1,"x",2]}"#,
                "#/a",
            ),
            (
                "a: {b: !!null x}\nc: 1",
                r#"{"a":{"b":"x"},"c":1}"#,
                "#/a/b",
            ),
            (
                "a:\n  ? [x, y]\n  : {z: 1}\n  b: 1\n",
                r#"{"a":{"b":1}}"#,
                "line 2, column 5",
            ),
            (
                "a: 1\n{b: c}: d\ne: f",
                r#"{"a":1,"e":"f"}"#,
                "line 2, column 1",
            ),
        ] {
            let converted = read_yaml(yaml.into()).unwrap();
            assert_eq!(converted.json, json, "{yaml}");
            let first = converted.remarks.first().unwrap();
            assert!(
                format!("{} {}", first.pointer, first.message).contains(remark),
                "{yaml}: {first:?}"
            );
        }
        // A number that is not there is still an error.
        assert!(read_yaml("a: *none".into()).is_err());
    }

    #[test]
    fn aliases_may_not_expand_beyond_measure() {
        let bomb = format!(
            "a: &a \"{}\"\nb: [{}]",
            "x".repeat(100_000),
            vec!["*a"; 20_000].join(", ")
        );
        assert!(
            read_yaml(bomb)
                .unwrap_err()
                .to_string()
                .contains("aliases expand")
        );
    }

    #[test]
    fn a_value_is_found_by_its_pointer() {
        let yaml =
            "openapi: 3.0.0\npaths:\n  /a:\n    get:\n      tags: [x,\n        y]\n    post: 7\n";
        for (tokens, expected) in [
            (vec!["paths", "/a", "get"], (5, 7)),
            (vec!["paths", "/a", "post"], (7, 11)),
            (vec!["paths", "/a", "get", "tags", "1"], (6, 9)),
        ] {
            let tokens: Vec<String> = tokens.into_iter().map(String::from).collect();
            assert_eq!(locate(yaml, &tokens), Some(expected), "{tokens:?}");
        }
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        assert!(
            read_yaml("a: 1\nb: [1, 2".into())
                .unwrap_err()
                .to_string()
                .contains("line")
        );
    }
}
