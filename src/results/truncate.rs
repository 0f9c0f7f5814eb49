//! Replies that are longer than a model takes, cut so that they stay valid JSON and keep what is
//! most useful: lists and maps lose their tails before the members beside them are touched, short
//! values stay whole before long texts, and every loss is reported.
//!
//! Works on the text: a tree of a large reply takes many times its memory, and what is cut away is
//! never looked at.

use std::fmt;

use crate::spec::node::{Node, Object};
use crate::spec::pointer;

/// The smallest room, in bytes, in which the first item of a list is taken apart.
const MIN_BUDGET: usize = 64;
/// The smallest share of the room, in bytes, that the value of a member is cut to.
const MIN_SHARE: usize = 32;
/// Smallest number of bytes to which a value is cut.
const MIN_VALUE: usize = 8;
/// Smallest number of bytes of a member: `"":1,`.
const MIN_MEMBER: usize = 5;
/// The fewest members of a map, of one with members of different kinds, and how many of its largest
/// ones must fit.
const MIN_MAP_MEMBERS: usize = 16;
const MIN_MIXED_MEMBERS: usize = 64;
const MIN_WHOLE_MEMBERS: usize = 8;
/// Deeper than this nothing is taken apart.
const MAX_DEPTH: usize = 24;
/// Number of bytes of a pointer that are shown.
const MAX_POINTER_BYTES: usize = 60;
/// Number of losses that are listed one by one.
const MAX_LISTED_LOSSES: usize = 5;

/// A loss, and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loss {
    /// A JSON Pointer into the reply.
    pub(crate) pointer: String,
    /// Number that is left.
    pub(crate) kept: usize,
    /// Number before.
    pub(crate) of: usize,
    /// Items, members or characters.
    pub(crate) what: &'static str,
}

/// Cuts a JSON text to about `budget` bytes, and returns the losses; the same text if it fits.
/// `text` must be valid JSON. If an object has too many members, those that `first` names are
/// removed last, the first of them at the very last.
pub(crate) fn truncate_json(text: &str, budget: usize, first: &[String]) -> (String, Vec<Loss>) {
    let mut cutter = Cutter {
        first,
        place: String::new(),
        depth: 0,
        out: String::with_capacity(budget.min(text.len())),
        losses: Vec::new(),
    };
    cutter.write(Node::new(text), budget);
    // Those of the root first: they say the most.
    cutter
        .losses
        .sort_by_key(|loss| loss.pointer.matches('/').count());
    (cutter.out, cutter.losses)
}

/// Writes a JSON value within a budget.
struct Cutter<'f> {
    /// The names of the most useful members.
    first: &'f [String],
    /// The JSON Pointer of the value that is being written.
    place: String,
    /// Number of values around the current one.
    depth: usize,
    out: String,
    losses: Vec<Loss>,
}

impl Cutter<'_> {
    /// Writes a value in at most `budget` bytes.
    fn write(&mut self, node: Node<'_>, budget: usize) {
        let text = node.text().trim_end();
        if text.len() <= budget {
            self.out.push_str(text);
        } else if let Some(string) = node.string() {
            if is_base64(&string) {
                self.lose(0, string.len(), "characters of base64");
                self.out
                    .push_str(&format!("\"[{} characters of base64]\"", string.len()));
            } else {
                self.write_text(&string, budget);
            }
        } else if self.depth < MAX_DEPTH && text.starts_with('[') {
            self.write_items(node, budget);
        } else if let Some(object) = node.object().filter(|_| self.depth < MAX_DEPTH) {
            self.write_members(&object, budget);
        } else {
            // Too deep, or a number of many digits: half of that would be another value.
            self.write_text(text, budget);
        }
    }

    fn write_text(&mut self, text: &str, budget: usize) {
        let kept = cut_string(text, budget);
        self.lose(kept.chars().count(), text.chars().count(), "characters");
        self.out
            .push_str(&serde_json::Value::String(format!("{kept}…")).to_string());
    }

    fn lose(&mut self, kept: usize, of: usize, what: &'static str) {
        let pointer = self.place.clone();
        self.losses.push(Loss {
            pointer,
            kept,
            of,
            what,
        });
    }

    /// Writes a value inside of the current one. `push` adds its place.
    fn descend(&mut self, push: impl FnOnce(&mut String), node: Node<'_>, budget: usize) {
        let length = self.place.len();
        push(&mut self.place);
        self.depth += 1;
        self.write(node, budget);
        self.depth -= 1;
        self.place.truncate(length);
    }

    /// The first items of a list, as many as there is room for. A list may have millions: none of
    /// them is kept.
    fn write_items(&mut self, node: Node<'_>, budget: usize) {
        let (mut kept, mut count, mut first) = (0_usize, 0_usize, None);
        let mut room = Some(budget.saturating_sub(2));
        self.out.push('[');
        for item in node.items().into_iter().flatten() {
            room = room.and_then(|room| room.checked_sub(item.text().len() + 1));
            first.get_or_insert(item);
            count += 1;
            if room.is_some() {
                if kept > 0 {
                    self.out.push(',');
                }
                self.out.push_str(item.text());
                kept += 1;
            }
        }
        // One item that is too long for all is better than none.
        if let Some(first) = first.filter(|_| kept == 0 && budget > MIN_BUDGET) {
            self.descend(|place| pointer::push_index(place, 0), first, budget - 2);
            kept = 1;
        }
        if kept < count {
            self.lose(kept, count, "items");
        }
        self.out.push(']');
    }

    /// The members of an object share the room: lists give way first, as long as an item of each
    /// stays whole, and then the large members alike. If even that is too long, members are
    /// removed; of a map, the first stay whole.
    fn write_members(&mut self, object: &Object<'_>, budget: usize) {
        let is_named = |key: &str| self.first.iter().any(|name| name == key);
        // However short they are, no more fit.
        let may_fit = object
            .iter()
            .enumerate()
            .filter(|(index, (key, _))| index * MIN_MEMBER < budget || is_named(key));
        let mut members: Vec<Member<'_>> = may_fit
            .map(|(_, (key, node))| Member::new(key, node))
            .collect();
        let room = budget.saturating_sub(2);
        let mut by_use: Vec<&mut Member<'_>> = members.iter_mut().collect();
        let rank = |key: &str| {
            self.first
                .iter()
                .position(|name| name == key)
                .unwrap_or(usize::MAX)
        };
        if !self.first.is_empty() {
            by_use.sort_by_key(|member| rank(member.key));
        }
        let is_map = is_map(&by_use, self.first, room);
        let mut left = room;
        by_use.retain_mut(|member| {
            let least = if is_map {
                member.size
            } else {
                member.size.min(MIN_SHARE)
            };
            let rest = left.checked_sub(framed(member.key) + least);
            // After the first members of a map, none is shown that just happens to be short.
            left = rest.unwrap_or(if is_map { 0 } else { left });
            if rest.is_none() {
                member.room = 0;
            }
            rest.is_some()
        });
        let keys: usize = by_use.iter().map(|member| framed(member.key)).sum();
        share(&mut by_use, room.saturating_sub(keys));
        self.out.push('{');
        let mut kept = 0;
        for member in &members {
            if member.room < member.size.min(MIN_VALUE) {
                continue;
            }
            if kept > 0 {
                self.out.push(',');
            }
            kept += 1;
            self.out
                .push_str(&serde_json::Value::String(member.key.to_owned()).to_string());
            self.out.push(':');
            self.descend(
                |place| pointer::push(place, member.key),
                member.node,
                member.room,
            );
        }
        if kept < object.len() {
            self.lose(kept, object.len(), "members");
        }
        self.out.push('}');
    }
}

/// A member of an object that is cut. Its key stays whole: half of it would be another one.
struct Member<'n> {
    key: &'n str,
    node: Node<'n>,
    /// The bytes of its value.
    size: usize,
    /// The bytes that its value may take.
    room: usize,
}

impl<'n> Member<'n> {
    fn new(key: &'n str, node: Node<'n>) -> Self {
        Self {
            key,
            node,
            size: node.text().trim_end().len(),
            room: usize::MAX,
        }
    }

    /// The bytes of a list with its first item alone; `None` for what is not a list, or one that is
    /// empty.
    fn least_list(&self) -> Option<usize> {
        let first = self.node.items()?.next()?;
        Some((3 + first.text().len()).min(self.size))
    }
}

/// Returns true if an object is a map: its members are many, alike in kind unless they are very
/// many, not large, and the document names none of them.
fn is_map(members: &[&mut Member<'_>], named: &[String], room: usize) -> bool {
    let kind = |member: &&mut Member<'_>| {
        member
            .node
            .text()
            .chars()
            .next()
            .filter(|begin| "{[\"".contains(*begin))
    };
    let is_null = |member: &&&mut Member<'_>| member.node.text().starts_with("null");
    let mut kinds = members.iter().filter(|member| !is_null(member)).map(kind);
    let is_alike = kinds
        .next()
        .is_none_or(|first| kinds.all(|kind| kind == first));
    let is_of_map = |member: &&mut Member<'_>| {
        member.size <= room / MIN_WHOLE_MEMBERS && !named.iter().any(|name| name == member.key)
    };
    members.len() >= MIN_MAP_MEMBERS
        && members.iter().all(is_of_map)
        && (members.len() >= MIN_MIXED_MEMBERS || is_alike)
}

/// Divides the room among members.
fn share(members: &mut [&mut Member<'_>], room: usize) {
    let lists: Vec<Option<usize>> = members.iter().map(|member| member.least_list()).collect();
    // What each member has in any case: all of it, or the first item of a list.
    let least = |(member, list): (&&mut Member<'_>, &Option<usize>)| list.unwrap_or(member.size);
    let needed: usize = members.iter().zip(&lists).map(least).sum();
    if needed > room || lists.iter().all(Option::is_none) {
        let cap = largest_share(members.iter().map(|member| member.size).collect(), room);
        members.iter_mut().for_each(|member| member.room = cap);
        return;
    }
    let more = members
        .iter()
        .zip(&lists)
        .filter_map(|(member, list)| Some(member.size - (*list)?));
    let cap = largest_share(more.collect(), room - needed);
    for (member, list) in members.iter_mut().zip(lists) {
        member.room = list.map_or(member.size, |least| least.saturating_add(cap));
    }
}

/// The most that one member may take, so that all of them fit: those that are smaller leave their
/// room to the others.
fn largest_share(mut sizes: Vec<usize>, room: usize) -> usize {
    sizes.sort_unstable();
    let mut left = room;
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

/// Returns the number of bytes of a key with its quotes, its colon, and the comma after its value.
fn framed(key: &str) -> usize {
    4 + key.chars().map(escaped_len).sum::<usize>()
}

/// Returns the number of bytes of a character in JSON.
fn escaped_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// Returns as many characters as fit into a JSON string of `budget` bytes with its quotes and the
/// mark of a cut.
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

/// Returns true if a text is base64, or a `data` URL of it: a part of that is of no use.
fn is_base64(text: &str) -> bool {
    let data = text
        .strip_prefix("data:")
        .and_then(|url| url.split_once(";base64,"));
    let data = data.map_or(text, |(_, data)| data);
    let has = |is: fn(&u8) -> bool| data.bytes().any(|byte| is(&byte));
    data.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(&byte))
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// Returns at most `budget` bytes of a text, cut between lines, or between characters if a line is
/// long, and what it lost.
pub(crate) fn truncate_text(text: &str, budget: usize) -> (&str, Option<Loss>) {
    if text.len() <= budget {
        return (text, None);
    }
    let kept = text
        .get(..text.floor_char_boundary(budget))
        .unwrap_or_default();
    let line_end = kept.rfind('\n').filter(|end| *end * 2 > kept.len());
    let kept = line_end.and_then(|end| kept.get(..end)).unwrap_or(kept);
    let loss = Loss {
        pointer: String::new(),
        kept: kept.chars().count(),
        of: text.chars().count(),
        what: "characters",
    };
    (kept, Some(loss))
}

/// All losses in one sentence.
pub(crate) fn describe_losses(losses: &[Loss]) -> String {
    let told: Vec<String> = losses
        .iter()
        .take(MAX_LISTED_LOSSES)
        .map(ToString::to_string)
        .collect();
    let more = losses.len().saturating_sub(MAX_LISTED_LOSSES);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", told.join("; "))
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(
                f,
                "`{}`: ",
                crate::text::truncate(&self.pointer, MAX_POINTER_BYTES)
            )?;
        }
        write!(f, "{} of {} {}", self.kept, self.of, self.what)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn cut(value: &Value, budget: usize) -> (Value, String) {
        let (text, losses) = truncate_json(&value.to_string(), budget, &[]);
        (
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")),
            describe_losses(&losses),
        )
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(
            cut(&json!({"a": [1, 2]}), 100),
            (json!({"a": [1, 2]}), String::new())
        );
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
        assert!(
            told.starts_with("`/a`: ") && told.ends_with("of 100 characters"),
            "{told}"
        );
    }

    #[test]
    fn many_short_members_use_the_room() {
        let members: serde_json::Map<String, Value> = (0..5000)
            .map(|number| (format!("k{number:04}"), 1.into()))
            .collect();
        let (text, losses) = truncate_json(&Value::Object(members).to_string(), 6000, &[]);
        assert!((5900..=6000).contains(&text.len()), "{}", text.len());
        assert_eq!((losses[0].kept, losses[0].of), (599, 5000));
    }

    #[test]
    fn members_share_the_room_to_the_byte() {
        for (sizes, room, share) in [
            (vec![10, 10, 10], 30, usize::MAX),
            (vec![10, 10, 11], 30, 10),
            (vec![64, 65], 128, 64),
            (vec![1000, 20, 1000], 220, 100),
            (vec![1000], 10, 10),
        ] {
            assert_eq!(largest_share(sizes.clone(), room), share, "{sizes:?}");
        }
        let value = json!({"a": "x".repeat(1000), "n": 1, "b": "y".repeat(1000)});
        let (text, _) = truncate_json(&value.to_string(), 206, &[]);
        assert!((204..=206).contains(&text.len()), "{} {text}", text.len());
    }

    #[test]
    fn an_item_is_taken_apart_above_the_smallest_share_only() {
        let list = json!(["x".repeat(500)]).to_string();
        assert_eq!(truncate_json(&list, MIN_BUDGET, &[]).0, "[]");
        assert!(
            truncate_json(&list, MIN_BUDGET + 1, &[])
                .0
                .starts_with("[\"xxx")
        );
    }

    #[test]
    fn a_first_item_that_is_too_long_is_cut_itself() {
        let (value, told) = cut(
            &json!([{"id": 1, "text": "x".repeat(1000)}, {"id": 2}]),
            200,
        );
        assert_eq!(value[0]["id"], 1);
        assert!(
            told.contains("`/0/text`") && told.contains("1 of 2 items"),
            "{told}"
        );
    }

    #[test]
    fn a_list_gives_way_before_the_members_beside_it_and_keeps_an_item() {
        let items: Vec<Value> = (0..100).map(|id| json!({"id": id})).collect();
        let (value, told) = cut(&json!({"items": items, "summary": "x".repeat(300)}), 400);
        assert_eq!(value["summary"].as_str().map(str::len), Some(300), "{told}");
        assert!(
            told.starts_with("`/items`: ") && !told.contains("summary"),
            "{told}"
        );
        let (value, told) = cut(
            &json!({"items": [{"text": "y".repeat(200)}, 1], "summary": "x".repeat(300)}),
            400,
        );
        assert!(
            value["items"]
                .as_array()
                .is_some_and(|items| !items.is_empty()),
            "{told}"
        );
    }

    #[test]
    fn the_members_that_the_document_lists_first_stay_last() {
        let members: serde_json::Map<String, Value> = (0..200)
            .map(|number| (format!("k{number:03}"), 1.into()))
            .collect();
        let first = ["k199".to_owned(), "k100".to_owned()];
        let (text, _) = truncate_json(&Value::Object(members).to_string(), 300, &first);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(
            value["k199"] == 1 && value["k100"] == 1 && value["k000"] == 1,
            "{text}"
        );
        assert!(value.get("k198").is_none() && text.len() <= 300, "{text}");
    }

    #[test]
    fn a_map_keeps_its_first_members_whole() {
        let map = |key: fn(usize) -> String, value: fn(usize) -> Value| {
            let members = (0..2000).map(|number| (key(number), value(number)));
            Value::Object(members.collect())
        };
        let url = |number| format!("https://api.example/articles/2024/01/{number:04}/title");
        let long = |number| format!("{number:04}").repeat(16);
        for map in [
            map(
                url,
                |number| json!({"status": 200, "title": format!("Title {number}")}),
            ),
            map(url, |number| format!("sha{number}").into()),
            map(long, Value::from),
            map(
                |number| format!("id{number}"),
                |number| json!({"name": number, "text": "x".repeat(200)}),
            ),
            map(url, |number| json!([number, "x".repeat(100)])),
            map(url, |number| {
                if number % 3 == 0 {
                    Value::Null
                } else {
                    json!({"text": "x".repeat(100)})
                }
            }),
            map(url, |number| {
                if number % 3 == 0 {
                    "x".repeat(50).into()
                } else {
                    json!({"text": "x".repeat(100)})
                }
            }),
        ] {
            let (value, told) = cut(&map, 9000);
            let members = value.as_object().unwrap();
            assert!(members.len() >= 30, "{told}");
            assert!(
                members
                    .iter()
                    .zip(map.as_object().unwrap())
                    .all(|(shown, whole)| shown == whole),
                "{value}"
            );
            assert_eq!(told, format!("{} of 2000 members", members.len()));
            let (value, told) = cut(&json!({"tree": map, "truncated": false}), 9000);
            assert_eq!(
                (
                    value["truncated"].clone(),
                    told.matches("of 2000 members").count()
                ),
                (json!(false), 1),
                "{told}"
            );
        }
    }

    #[test]
    fn a_cut_value_is_never_null_and_the_loss_of_the_root_comes_first() {
        let (value, told) = cut(
            &json!([{"id": 1, "text": "x".repeat(1000)}, {"id": 2}]),
            200,
        );
        assert!(
            told.starts_with("1 of 2 items; `/0/text`: ") && value[0]["id"] == 1,
            "{told}"
        );
        let number: Value = serde_json::from_str(&"1".repeat(500)).unwrap();
        let (value, told) = cut(&json!({"a": number, "b": 1}), 200);
        assert!(
            value["a"]
                .as_str()
                .is_some_and(|text| text.ends_with("11…"))
                && value["b"] == 1,
            "{value}"
        );
        assert!(told.ends_with("of 500 characters"), "{told}");
    }

    #[test]
    fn base64_is_whole_or_left_out() {
        let data = "QUJDRGVmZ2gx".repeat(100);
        let (value, told) = cut(
            &json!({"name": "a.bin", "content": data, "image": format!("data:image/png;base64,{data}")}),
            300,
        );
        assert_eq!(value["name"], "a.bin");
        assert_eq!(value["content"], "[1200 characters of base64]");
        assert!(
            told.contains("`/content`: 0 of 1200 characters of base64"),
            "{told}"
        );
        assert_eq!(value["image"], "[1222 characters of base64]");
    }

    #[test]
    fn a_text_is_cut_between_lines_unless_a_line_is_long() {
        assert_eq!(truncate_text("one\ntwo\nthree", 10).0, "one\ntwo");
        assert_eq!(truncate_text("a\nbbbbbbbbbbbb", 10).0, "a\nbbbbbbbb");
    }

    #[test]
    fn deep_and_wide_values_are_cut_quickly() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let (text, _) = truncate_json(&deep, 1000, &[]);
        assert!(text.len() <= 1000 && serde_json::from_str::<Value>(&text).is_ok());
        let wide = format!("[{}0]", "0,".repeat(2_000_000));
        let (text, losses) = truncate_json(&wide, 1000, &[]);
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
                proptest::collection::hash_map(".{0,12}", inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_cut_stays_json_and_short_and_every_loss_is_told(value in any_json(), budget in 256_usize..2000) {
            let text = value.to_string();
            let (cut, losses) = truncate_json(&text, budget, &[]);
            let read: Value = serde_json::from_str(&cut).unwrap();
            prop_assert!(cut.len() <= budget, "{} of {budget}", cut.len());
            prop_assert_eq!(read != value, !losses.is_empty());
        }
    }
}
