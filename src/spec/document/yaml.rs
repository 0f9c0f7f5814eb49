//! YAML → JSON text, in one pass over the parser's events and without a tree between.
//!
//! The parser is the maintained continuation of `serde_yaml`; what it leaves to the reader is
//! decided here: merge keys (`<<`) are applied, tags without a meaning in OpenAPI are ignored, keys
//! are strings as they are written (`200:` is `"200"`), infinity and NaN become strings because
//! JSON has none, and aliases may not blow the text up.

use std::collections::HashSet;
use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use crate::spec::node::{Node, Object};

/// The JSON of a document, in which aliases are written out, may be this many times as long as its
/// YAML.
const MAX_GROWTH: usize = 64;
/// A limit by [`MAX_GROWTH`] is raised to this many bytes of JSON.
const MIN_CONVERTED_BYTES: usize = 1 << 20;
/// A limit by [`MAX_GROWTH`] is lowered to this many bytes of JSON, or to twice the length of the
/// YAML, whichever is more.
const MAX_CONVERTED_BYTES: usize = 64 << 20;

/// Converts a YAML text to JSON.
///
/// # Errors
/// The error of the YAML parser, with line and column; or one about a key that is not text, a value
/// that is not what its tag says, or aliases that expand too far.
pub(crate) fn yaml_to_json(yaml: &str) -> serde_yaml::Result<String> {
    if nests_deeply(yaml) {
        return Err(serde_yaml::Error::custom(
            "brackets nest deeper than 1000 levels",
        ));
    }
    let highest = MAX_CONVERTED_BYTES.max(yaml.len().saturating_mul(2));
    let limit = yaml.len().saturating_mul(MAX_GROWTH);
    let mut json = Json {
        text: String::with_capacity(yaml.len()),
        limit: limit.clamp(MIN_CONVERTED_BYTES, highest),
    };
    Write(&mut json).deserialize(serde_yaml::Deserializer::from_str(yaml))?;
    Ok(json.text)
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

/// Writes the next key of a mapping to the JSON text, unless it merges the value that follows
/// (`<<`); the result is whether it does.
struct MappingKey<'j>(&'j mut Json);

impl<'de> DeserializeSeed<'de> for MappingKey<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for MappingKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text as a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        if key == "<<" {
            return Ok(true);
        }
        self.0.key(key).map(|()| false)
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
        let mut end = self.0.text.len();
        while seq.next_element_seed(Write(&mut *self.0))?.is_some() {
            end = self.0.text.len();
            self.0.raw(",")?;
        }
        self.0.text.truncate(end);
        self.0.raw("]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let start = self.0.text.len();
        self.0.raw("{")?;
        let mut merged = Vec::new();
        while let Some(is_merge) = map.next_key_seed(MappingKey(&mut *self.0))? {
            if is_merge {
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
            map.next_value_seed(Write(&mut *self.0))?;
        }
        if !merged.is_empty() {
            let own = format!("{}}}", self.0.text.get(start..).unwrap_or_default());
            let own = Node::new(&own).object().unwrap_or_default();
            let mut keys: HashSet<String> = own.iter().map(|(key, _)| key.to_owned()).collect();
            for source in merged.iter().flat_map(|text| sources(text)) {
                for (key, value) in source.iter() {
                    if keys.insert(key.to_owned()) {
                        self.0.key(key)?;
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

/// The mappings that a merge key names: one, or a list of which the earlier ones win (YAML merge
/// key type, 1.1).
fn sources(json: &str) -> impl Iterator<Item = Object<'_>> {
    let node = Node::new(json);
    let nodes = node.array().unwrap_or_else(|| vec![node]);
    nodes.into_iter().filter_map(Node::object)
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
                "a: [1e400, .inf, '1e400', 0.1234567890123]",
                r#"{"a":["1e400","inf","1e400",0.1234567890123]}"#,
            ),
            ("a: []\nb: {}", r#"{"a":[],"b":{}}"#),
            ("a: 1.50\nt: true", r#"{"a":1.5,"t":true}"#),
        ] {
            assert_eq!(yaml_to_json(yaml).unwrap(), json, "{yaml}");
        }
    }

    #[test]
    fn what_json_cannot_hold_is_an_error_with_its_place() {
        for (yaml, expected) in [
            ("a: 1\nb: [1, !!int x, 2]", "line 2 column"),
            ("a: !!bool 'yes'", "line 1 column"),
            (
                "a:\n  ? [x, y]\n  : {z: 1}\n",
                "text as a key at line 2 column",
            ),
            ("a: 1\n{b: c}: d\ne: f", "text as a key at line 2 column"),
            ("a: *none", "line 1 column"),
        ] {
            let error = yaml_to_json(yaml).unwrap_err().to_string();
            assert!(error.contains(expected), "{yaml}: {error}");
        }
    }

    #[test]
    fn aliases_may_not_expand_beyond_measure() {
        let bomb = format!(
            "a: &a \"{}\"\nb: [{}]",
            "x".repeat(100_000),
            vec!["*a"; 20_000].join(", ")
        );
        assert!(
            yaml_to_json(&bomb)
                .unwrap_err()
                .to_string()
                .contains("aliases expand")
        );
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        assert!(
            yaml_to_json("a: 1\nb: [1, 2")
                .unwrap_err()
                .to_string()
                .contains("line")
        );
    }
}
