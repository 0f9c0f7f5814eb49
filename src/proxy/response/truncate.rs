//! Replies that are longer than a model takes, cut so that they stay valid JSON: lists lose their tails, texts their ends,
//! and every loss is told.
//!
//! Works on the text: a tree of a large reply takes many times its memory, and what is cut away is never looked at.

use std::fmt;

use crate::spec::node::Node;
use crate::spec::pointer;

/// Less than this no item is taken apart for.
const MIN_BUDGET: usize = 64;
/// Deeper than this nothing is taken apart.
const MAX_DEPTH: usize = 24;
/// How much of a pointer is told.
const MAX_POINTER_BYTES: usize = 200;
/// How many losses are told one by one.
const MAX_LISTED_LOSSES: usize = 8;

/// What was lost, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loss {
    /// A JSON Pointer into the reply.
    pub pointer: String,
    /// How many are left.
    pub kept: usize,
    /// Of how many.
    pub of: usize,
    /// Items, members or characters.
    pub what: &'static str,
}

/// A JSON text of at most about `budget` bytes, and what it lost; the same text where it fits. `text` must be valid JSON.
#[must_use]
pub(crate) fn truncate_json(text: &str, budget: usize) -> (String, Vec<Loss>) {
    let mut losses = Vec::new();
    let mut out = String::with_capacity(budget.min(text.len()));
    write_node(Node::new(text), budget, 0, &mut String::new(), &mut out, &mut losses);
    (out, losses)
}

fn write_node(node: Node<'_>, budget: usize, depth: usize, place: &mut String, out: &mut String, losses: &mut Vec<Loss>) {
    let text = node.text().trim_end();
    if text.len() <= budget {
        out.push_str(text);
        return;
    }
    let mut lost = |kept, of, what| {
        losses.push(Loss {
            pointer: place.clone(),
            kept,
            of,
            what,
        });
    };
    if let Some(string) = node.string() {
        let kept = cut_string(&string, budget);
        lost(kept.chars().count(), string.chars().count(), "characters");
        out.push_str(&serde_json::Value::String(format!("{kept}…")).to_string());
    } else if depth >= MAX_DEPTH {
        lost(0, 1, "values");
        out.push_str("null");
    } else if text.starts_with('[') {
        write_items(node, budget, depth, place, out, losses);
    } else if let Some(object) = node.object() {
        write_members(&object, budget, depth, place, out, losses);
    } else {
        // A number of many digits: half of it would be another number.
        lost(0, 1, "values");
        out.push_str("null");
    }
}

/// The first items of a list, as many as there is room for. A list may have millions: none of them is kept.
fn write_items(node: Node<'_>, budget: usize, depth: usize, place: &mut String, out: &mut String, losses: &mut Vec<Loss>) {
    let (mut kept, mut count, mut first) = (0_usize, 0_usize, None);
    let mut room = Some(budget.saturating_sub(2));
    out.push('[');
    node.each_item(|item| {
        let text = item.text().trim_end();
        room = room.and_then(|room| room.checked_sub(text.len() + 1));
        if count == 0 {
            first = Some(item);
        }
        count += 1;
        if room.is_some() {
            if kept > 0 {
                out.push(',');
            }
            out.push_str(text);
            kept += 1;
        }
    });
    // One item that is too long for all is better than none.
    if let Some(first) = first.filter(|_| kept == 0 && budget > MIN_BUDGET) {
        let length = place.len();
        pointer::push_index(place, 0);
        write_node(first, budget - 2, depth + 1, place, out, losses);
        place.truncate(length);
        kept = 1;
    }
    if kept < count {
        losses.push(Loss {
            pointer: place.clone(),
            kept,
            of: count,
            what: "items",
        });
    }
    out.push(']');
}

/// The members of an object share the room: what is small stays whole, the large ones give way alike.
fn write_members(
    object: &crate::spec::node::Object<'_>,
    budget: usize,
    depth: usize,
    place: &mut String,
    out: &mut String,
    losses: &mut Vec<Loss>,
) {
    let members: Vec<(&str, Node<'_>, usize)> = object
        .iter()
        .map(|(key, node)| (key, node, framed(key) + node.text().trim_end().len()))
        .collect();
    let room = budget.saturating_sub(2);
    // Where even the smallest share is too much, the last members go.
    let fitting = (room / MIN_BUDGET).max(1);
    let total: usize = members.iter().map(|(.., size)| *size).sum();
    let kept = if total > room && members.len() > fitting {
        fitting
    } else {
        members.len()
    };
    let mut sizes: Vec<usize> = members.iter().take(kept).map(|(.., size)| *size).collect();
    sizes.sort_unstable();
    let (mut left, mut cap) = (room, usize::MAX);
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index);
        if *size > share {
            cap = share;
            break;
        }
        left -= size;
    }
    out.push('{');
    let mut dropped = members.len() - kept;
    let mut first = true;
    for (key, node, _) in members.iter().take(kept) {
        // A key cannot be cut: it would be another one.
        if framed(key) >= cap {
            dropped += 1;
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        out.push_str(&serde_json::Value::String((*key).to_owned()).to_string());
        out.push(':');
        let length = place.len();
        pointer::push(place, key);
        write_node(*node, cap.saturating_sub(framed(key)), depth + 1, place, out, losses);
        place.truncate(length);
    }
    if dropped > 0 {
        losses.push(Loss {
            pointer: place.clone(),
            kept: members.len() - dropped,
            of: members.len(),
            what: "members",
        });
    }
    out.push('}');
}

/// How many bytes a key takes with its quotes, its colon, and the comma after its value.
fn framed(key: &str) -> usize {
    4 + key.chars().map(escaped_len).sum::<usize>()
}

/// How many bytes JSON writes for a character.
fn escaped_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// As many characters as fit into a JSON string of `budget` bytes with its quotes and the mark of a cut.
fn cut_string(text: &str, budget: usize) -> &str {
    const FRAME: usize = 2 + '…'.len_utf8();
    let mut room = budget.saturating_sub(FRAME);
    let end = text
        .char_indices()
        .find(|(_, character)| {
            let size = escaped_len(*character);
            let full = size > room;
            room = room.saturating_sub(size);
            full
        })
        .map_or(text.len(), |(index, _)| index);
    text.get(..end).unwrap_or_default()
}

/// At most `budget` bytes of a text, cut between characters, and what it lost.
#[must_use]
pub(crate) fn truncate_text(text: &str, budget: usize) -> (&str, Option<Loss>) {
    if text.len() <= budget {
        return (text, None);
    }
    let kept = text.get(..text.floor_char_boundary(budget)).unwrap_or_default();
    let loss = Loss {
        pointer: String::new(),
        kept: kept.chars().count(),
        of: text.chars().count(),
        what: "characters",
    };
    (kept, Some(loss))
}

/// All losses in one sentence.
#[must_use]
pub(crate) fn describe_losses(losses: &[Loss]) -> String {
    let told: Vec<String> = losses.iter().take(MAX_LISTED_LOSSES).map(ToString::to_string).collect();
    let more = losses.len().saturating_sub(MAX_LISTED_LOSSES);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", told.join("; "))
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "`{}`: ", crate::text::truncate(&self.pointer, MAX_POINTER_BYTES))?;
        }
        write!(f, "{} of {} {}", self.kept, self.of, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn cut(value: &Value, budget: usize) -> (Value, String) {
        let (text, losses) = truncate_json(&value.to_string(), budget);
        (
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")),
            describe_losses(&losses),
        )
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(cut(&json!({"a": [1, 2]}), 100), (json!({"a": [1, 2]}), String::new()));
    }

    #[test]
    fn lists_lose_their_tails_and_texts_their_ends() {
        let items: Vec<u32> = (100..200).collect();
        let (value, told) = cut(&json!({"total": 100, "items": items}), 160);
        assert_eq!(value["total"], 100);
        let kept = value["items"].as_array().unwrap().len();
        assert!((20..40).contains(&kept), "{value}");
        assert_eq!(told, format!("`/items`: {kept} of 100 items"));
        let (value, told) = cut(&json!({"a": "é".repeat(100), "b": 1}), 150);
        assert!(value["a"].as_str().unwrap().ends_with("é…"), "{value}");
        assert!(told.starts_with("`/a`: ") && told.ends_with("of 100 characters"), "{told}");
    }

    #[test]
    fn a_first_item_that_is_too_long_is_cut_itself() {
        let (value, told) = cut(&json!([{"id": 1, "text": "x".repeat(1000)}, {"id": 2}]), 200);
        assert_eq!(value[0]["id"], 1);
        assert!(told.contains("`/0/text`") && told.contains("1 of 2 items"), "{told}");
    }

    #[test]
    fn deep_and_wide_values_are_cut_quickly() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let (text, _) = truncate_json(&deep, 1000);
        assert!(text.len() < 1000 && serde_json::from_str::<Value>(&text).is_ok());
        let wide = format!("[{}0]", "0,".repeat(2_000_000));
        let (text, losses) = truncate_json(&wide, 1000);
        assert!(text.len() <= 1000);
        assert_eq!(losses[0].of, 2_000_001);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            ".{0,80}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 80, 8, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                proptest::collection::hash_map(".{0,12}", inner, 0..8).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_cut_stays_json_and_short_and_every_loss_is_told(value in any_json(), budget in 256_usize..2000) {
            let text = value.to_string();
            let (cut, losses) = truncate_json(&text, budget);
            let read: Value = serde_json::from_str(&cut).unwrap();
            prop_assert!(cut.len() <= budget, "{} of {budget}", cut.len());
            prop_assert_eq!(read != value, !losses.is_empty());
        }
    }
}
