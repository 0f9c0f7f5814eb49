//! YAML → JSON text, in one pass over the parser's events and without a tree between.
//!
//! The parser is the maintained continuation of `serde_yaml`; what it leaves to the reader is decided here: merge keys
//! (`<<`) are applied, tags are ignored, integers of any size keep their digits, keys are strings as they are written
//! (`200:` is `"200"`), non-finite numbers become strings because JSON has none, and aliases may not blow the text up.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::node::Node;

/// A document may grow this many times when its aliases are written out, or to `SMALLEST_LIMIT`, whichever is more.
const GROWTH_LIMIT: usize = 64;
/// 64 MiB.
const SMALLEST_LIMIT: usize = 64 << 20;

/// The document as JSON text.
///
/// # Errors
/// What the YAML parser found, with line and column in its words; or aliases that expand beyond all measure.
pub(super) fn to_json(yaml: &str) -> Result<String, serde_yaml::Error> {
    if nests_deeply(yaml) {
        return Err(serde_yaml::Error::custom("brackets nest deeper than 1000 levels"));
    }
    let limit = yaml
        .len()
        .saturating_mul(GROWTH_LIMIT)
        .clamp(1 << 20, SMALLEST_LIMIT.max(yaml.len().saturating_mul(2)));
    let mut json = Json {
        text: String::with_capacity(yaml.len()),
        limit,
    };
    Write(&mut json).deserialize(serde_yaml::Deserializer::from_str(yaml))?;
    Ok(json.text)
}

/// Whether more than 1000 brackets are opened before one is closed: the scanner takes time with the square of that.
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
}

impl Json {
    fn string<E: de::Error>(&mut self, string: &str) -> Result<(), E> {
        let quoted = serde_json::to_string(string).map_err(E::custom)?;
        self.raw(&quoted)
    }

    fn raw<E: de::Error>(&mut self, text: &str) -> Result<(), E> {
        if self.text.len() + text.len() > self.limit {
            return Err(E::custom(format_args!("aliases expand the document beyond {} bytes", self.limit)));
        }
        self.text.push_str(text);
        Ok(())
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
        match serde_json::Number::from_f64(value) {
            Some(number) => self.0.raw(&number.to_string()),
            None => self.0.string(&value.to_string()),
        }
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
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
            if seq.next_element_seed(Write(&mut *self.0))?.is_none() {
                self.0.text.truncate(before);
                break;
            }
            first = false;
        }
        self.0.raw("]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.raw("{")?;
        let mut keys = HashSet::new();
        let mut merged = Vec::new();
        let mut first = true;
        while let Some(key) = map.next_key::<String>()? {
            if key == "<<" {
                // What is merged counts like what is written.
                let mut inner = Json {
                    text: String::new(),
                    limit: self.0.limit.saturating_sub(self.0.text.len()),
                };
                map.next_value_seed(Write(&mut inner))?;
                self.0.limit = self.0.limit.saturating_sub(inner.text.len());
                merged.push(inner.text);
                continue;
            }
            if !first {
                self.0.raw(",")?;
            }
            first = false;
            self.0.string(&key)?;
            self.0.raw(":")?;
            map.next_value_seed(Write(&mut *self.0))?;
            keys.insert(key);
        }
        for text in &merged {
            for mapping in sources(text) {
                for (key, value) in mapping {
                    if keys.insert(key.clone().into_owned()) {
                        if !first {
                            self.0.raw(",")?;
                        }
                        first = false;
                        self.0.string(&key)?;
                        self.0.raw(":")?;
                        self.0.raw(value.text())?;
                    }
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

/// Line and column, both from 1, of the value that the tokens lead to. Reads the text anew and stops there, because the
/// parser tells its position only in errors.
pub(super) fn locate(yaml: &str, tokens: &[String]) -> Option<(usize, usize)> {
    let error = Locate(tokens).deserialize(serde_yaml::Deserializer::from_str(yaml)).err()?;
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

/// The mappings that a merge key names: one, or a list of which the earlier ones win (YAML merge key type, 1.1).
fn sources(json: &str) -> Vec<Vec<(Cow<'_, str>, Node<'_>)>> {
    let node = Node::new(json);
    let nodes = node.array().unwrap_or_else(|| vec![node]);
    nodes
        .into_iter()
        .filter_map(Node::object)
        .map(|object| object.iter().map(|(key, value)| (Cow::Owned(key.to_owned()), value)).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_reads_as_its_author_meant_it() {
        for (yaml, json) in [
            ("on: yes\nno: [n, y, off]", r#"{"on":"yes","no":["n","y","off"]}"#),
            ("200: ok\n0200: other", r#"{"200":"ok","0200":"other"}"#),
            ("a: 2024-01-01\nb: 08\nc: 0x10", r#"{"a":"2024-01-01","b":"08","c":16}"#),
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
            ("a: []\nb: {}", r#"{"a":[],"b":{}}"#),
            ("a: 1.50\nt: true", r#"{"a":1.5,"t":true}"#),
        ] {
            assert_eq!(to_json(yaml).unwrap(), json, "{yaml}");
        }
    }

    #[test]
    fn aliases_may_not_expand_beyond_measure() {
        let bomb = format!("a: &a \"{}\"\nb: [{}]", "x".repeat(100_000), vec!["*a"; 20_000].join(", "));
        assert!(to_json(&bomb).unwrap_err().to_string().contains("aliases expand"));
    }

    #[test]
    fn a_value_is_found_by_its_pointer() {
        let yaml = "openapi: 3.0.0\npaths:\n  /a:\n    get:\n      tags: [x,\n        y]\n    post: 7\n";
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
        assert!(to_json("a: 1\nb: [1, 2").unwrap_err().to_string().contains("line"));
    }
}
