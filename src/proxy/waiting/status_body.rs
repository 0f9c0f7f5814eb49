//! The members of a status that decide about a wait. A body may be as long as a reply may be, and
//! is asked for again and again: only its beginning is read, and no tree is made of it.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::string_length;
use crate::results::{Reply, strip_bom};
use crate::spec::node::Node;
use crate::spec::operation::rules::{FieldValues, ResultPlace, StatusPlace, WaitSettings};
use crate::spec::pointer;

/// Number of bytes of a body that are read.
const MAX_STATUS_BYTES: usize = 1 << 20;
/// A longer value is not read: a status has words, numbers and URLs.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// Members that hold a word for the state.
pub(super) const STATES: [&str; 4] = [
    "/status",
    "/state",
    "/provisioningState",
    "/properties/provisioningState",
];
/// Members that say how much is done, in percent.
pub(super) const PERCENTS: [&str; 2] = ["/percentComplete", "/progress"];
/// Member with the URL of the result (Azure REST API guidelines, long-running operations).
pub(super) const RESOURCE_LOCATION: &str = "/resourceLocation";

/// The members of a status that decide about a wait, by their JSON Pointers. A body that is not a
/// JSON object has none.
#[derive(Default)]
pub(crate) struct StatusBody(Vec<(String, Value)>);

impl StatusBody {
    /// Reads the beginning of a body in any charset: the members that an operation's rule names,
    /// and the usual ones.
    pub(super) fn read(response: &Reply, settings: Option<&WaitSettings>) -> Self {
        let is_cut = response.body.len() > MAX_STATUS_BYTES;
        let beginning = response
            .body
            .slice(..response.body.len().min(MAX_STATUS_BYTES));
        let members = members(&beginning, is_cut, settings).or_else(|| {
            let mut response = Reply {
                body: beginning,
                ..response.clone()
            };
            response.decode_charset();
            members(&response.body, is_cut, settings)
        });
        Self(members.unwrap_or_default())
    }

    /// Returns the member at a JSON Pointer.
    pub(super) fn pointer(&self, place: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| known == place);
        found.map(|(_, value)| value)
    }
}

fn members(
    body: &[u8],
    is_cut: bool,
    settings: Option<&WaitSettings>,
) -> Option<Vec<(String, Value)>> {
    let body = strip_bom(body);
    let text = match std::str::from_utf8(body) {
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(body.get(..error.valid_up_to())?).ok()
        }
        text => text.ok(),
    }?;
    let text = if is_cut {
        closed(text).into()
    } else {
        Cow::Borrowed(text)
    };
    let root = Node::new(&text).object()?;
    let value_at = |place: &str| {
        let steps = place.split('/').skip(1);
        let steps: Vec<String> = steps.map(pointer::unescaped_token).collect();
        let (first, rest) = steps.split_first()?;
        let found = pointer::target(root.get(first)?, rest)?;
        (found.text().len() <= MAX_VALUE_BYTES).then(|| found.value())?
    };
    Some(
        places(settings)
            .filter_map(|place| Some((place.to_owned(), value_at(place)?)))
            .collect(),
    )
}

/// The places of members that decide about a wait.
fn places(settings: Option<&WaitSettings>) -> impl Iterator<Item = &str> {
    let usual = STATES
        .into_iter()
        .chain(PERCENTS)
        .chain([RESOURCE_LOCATION]);
    let of_rule = settings.into_iter().flat_map(|settings| {
        let values = settings
            .done
            .iter()
            .chain(&settings.failed)
            .map(|FieldValues { field, .. }| field);
        let status = match &settings.status {
            Some(StatusPlace::Field(field)) => Some(field),
            _ => None,
        };
        let result = match &settings.result {
            Some(ResultPlace::Field(field)) => Some(field),
            _ => None,
        };
        let of_named = settings.named_reads().flat_map(|named| &named.arguments);
        values
            .chain(status)
            .chain(result)
            .chain(of_named.map(|(.., place)| place))
    });
    usual.chain(of_rule.map(String::as_str))
}

/// JSON whose end is missing, cut after the last value that is whole and closed there.
fn closed(text: &str) -> String {
    let (mut open, mut whole) = (Vec::new(), (0, 0));
    let mut at = 0;
    while let Some(rest) = text.as_bytes().get(at..) {
        match rest.first() {
            None => break,
            Some(b'"') => match string_length(rest) {
                Some(length) => at += length - 1,
                None => break,
            },
            Some(b'{') => open.push('}'),
            Some(b'[') => open.push(']'),
            Some(b'}' | b']') => {
                open.pop();
                whole = (at + 1, open.len());
            }
            Some(b',') => whole = (at, open.len()),
            Some(_) => {}
        }
        at += 1;
    }
    let (end, depth) = whole;
    let mut closed = text.get(..end).unwrap_or_default().to_owned();
    closed.extend(open.iter().take(depth).rev());
    closed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_without_its_end_is_closed_after_the_last_whole_value() {
        for (text, expected) in [
            (
                r#"{"status":"Running","rows":[1,2"#,
                r#"{"status":"Running","rows":[1]}"#,
            ),
            (r#"{"a":{"b":[1,2],"c":"x"#, r#"{"a":{"b":[1,2]}}"#),
            (r#"{"a":[{"b":1},{"c":"x, {"#, r#"{"a":[{"b":1}]}"#),
            (r#"{"a":[1,2]"#, r#"{"a":[1,2]}"#),
            (r#"{"a":"b"#, ""),
        ] {
            assert_eq!(closed(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn json_that_is_cut_anywhere_is_json_again(at in 0_usize..80) {
            let text = r#"{"a":[1,{"b":"x\",]}é"},[],{}],"c":{"d":{"e":null,"f":[[2]]}},"g":true}"#;
            let cut = closed(text.get(..text.floor_char_boundary(at)).unwrap());
            prop_assert!(cut.is_empty() || serde_json::from_str::<Value>(&cut).is_ok(), "{}", cut);
        }
    }
}
