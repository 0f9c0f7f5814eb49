//! Masks take out all that they name, leave everything else, and leave JSON JSON.

use std::sync::LazyLock;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use crate::redact::Redactor;
use crate::redact::json::NumberMark;
use crate::results::Reply;
use crate::spec::mask::{Mask, has_masked};

/// A text, and the same after the masks.
type Masked = (String, String);

static MASKS: LazyLock<Vec<Mask>> = LazyLock::new(|| {
    let known = ["email", "card", "iban", "jwt"]
        .into_iter()
        .map(|name| serde_json::from_value(name.into()).unwrap());
    let own = Mask::of_pattern("order", "ORD-[0-9]{8}");
    known.chain(own).collect()
});
static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::for_masks(&MASKS));

/// The same text in groups of four.
fn in_groups(text: &str, separator: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let groups: Vec<String> = characters.chunks(4).map(String::from_iter).collect();
    groups.join(separator)
}

fn luhn_digit(digits: &str) -> char {
    let valid = ('0'..='9').find(|last| {
        let all = format!("{digits}{last}");
        let doubled = all.chars().rev().enumerate().map(|(index, digit)| {
            let digit = digit.to_digit(10).unwrap() * if index % 2 == 1 { 2 } else { 1 };
            digit / 10 + digit % 10
        });
        doubled.sum::<u32>() % 10 == 0
    });
    valid.unwrap()
}

fn card() -> impl Strategy<Value = String> {
    "[2-9][0-9]{11,17}".prop_map(|digits| format!("{digits}{}", luhn_digit(&digits)))
}

fn iban() -> impl Strategy<Value = String> {
    "[A-Z]{2}[A-Z0-9]{12,26}".prop_map(|text| {
        let (country, account) = text.split_at(2);
        let remainder = format!("{account}{country}00")
            .chars()
            .map(|digit| digit.to_digit(36).unwrap())
            .fold(0, |rest, digit| {
                (rest * if digit > 9 { 100 } else { 10 } + digit) % 97
            });
        format!("{country}{:02}{account}", 98 - remainder)
    })
}

fn value() -> impl Strategy<Value = Masked> {
    let named = |mark: &'static str| move |text: String| (text, format!("[{mark}]"));
    let grouped = |(text, separator): (String, &str)| in_groups(&text, separator);
    prop_oneof![
        "[a-z][a-z.+]{0,6}@[a-z]{2,6}(\\.[a-z]{2,4}){1,2}".prop_map(named("email")),
        (card(), select(vec!["", " ", "-"]))
            .prop_map(grouped)
            .prop_map(named("card")),
        (iban(), select(vec!["", " ", "-"]))
            .prop_map(grouped)
            .prop_map(named("iban")),
        "eyJ[a-zA-Z_]{4,9}\\.[a-zA-Z_]{0,9}\\.[a-zA-Z_]{0,9}".prop_map(named("jwt")),
        "ORD-[0-9]{8}".prop_map(named("order")),
    ]
}

fn harmless() -> impl Strategy<Value = Masked> {
    let text = prop_oneof![
        "[a-zA-Z \"\\\\/é😀]{0,12}",
        "[0-9]{1,12}",
        "1[67][0-9]{11}",
        "[0-9]{1,3}\\.[0-9]{1,17}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "[a-z]{1,8}@[a-z]{1,8}",
        "ORD-[0-9]{7}",
        "[2-9][0-9]{11,17}".prop_map(|digits| {
            let last = luhn_digit(&digits).to_digit(10).unwrap();
            format!("{digits}{}", (last + 1) % 10)
        }),
    ];
    text.prop_map(|text| (text.clone(), text))
}

/// Values and other texts, told apart by what belongs to none.
fn text() -> impl Strategy<Value = Masked> {
    prop::collection::vec(prop_oneof![value(), harmless()], 0..4).prop_map(|parts| {
        let (texts, clean): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        (texts.join(" | "), clean.join(" | "))
    })
}

fn json() -> impl Strategy<Value = (Value, Value)> {
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let leaf = prop_oneof![
        text().prop_map(|(text, clean)| (Value::from(text), Value::from(clean))),
        card().prop_map(move |card| (number(&card), Value::from("[card]"))),
        card().prop_map(move |card| {
            let (first, rest) = card.split_at(1);
            let digits = format!("{first}.{rest}e{}", rest.len());
            (number(&digits), Value::from("[card]"))
        }),
        "[1-9][0-9]{0,10}(\\.[0-9]{1,17})?".prop_map(move |text| (number(&text), number(&text))),
        select(vec![Value::Null, Value::from(true)]).prop_map(|value| (value.clone(), value)),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let name = prop_oneof![value(), "[a-z]{1,6}".prop_map(|name| (name.clone(), name))];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| {
                let (items, clean): (Vec<_>, Vec<_>) = items.into_iter().unzip();
                (Value::from(items), Value::from(clean))
            }),
            prop::collection::vec((name, inner), 0..5).prop_map(|members| {
                let (mut object, mut clean) = (Map::new(), Map::new());
                for ((name, clean_name), (value, clean_value)) in members {
                    if !object.contains_key(&name) && !clean.contains_key(&clean_name) {
                        object.insert(name, value);
                        clean.insert(clean_name, clean_value);
                    }
                }
                (Value::from(object), Value::from(clean))
            }),
        ]
    })
}

fn masked(media_type: &'static str, body: String) -> String {
    let mut reply = Reply {
        headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]),
        body: Bytes::from(body),
        ..Reply::default()
    };
    REDACTOR.redact(&mut reply, NumberMark::Text);
    String::from_utf8(reply.body.to_vec()).unwrap()
}

fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

proptest! {
    // Each case is four replies.
    #![proptest_config(ProptestConfig::with_cases(2_500))]

    #[test]
    fn p88_nothing_that_is_masked_remains_and_nothing_else_changes(
        (value, clean) in json(),
        (other, clean_other) in json(),
        (plain, clean_plain) in text(),
    ) {
        let json = masked("application/json", value.to_string());
        prop_assert_eq!(read(&json), clean.clone(), "{}", value);
        prop_assert!(!has_masked(&MASKS, &json), "{}", json);
        prop_assert_eq!(masked("application/json", json.clone()), json);

        let lines = masked("application/x-ndjson", format!("{value}\n{other}\n"));
        let lines: Vec<Value> = lines.lines().map(read).collect();
        prop_assert_eq!(&lines, &[clean.clone(), clean_other]);

        let event = masked("text/event-stream", format!("data: {value}\n\n"));
        let data: String = event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        prop_assert_eq!(read(&data), clean);

        // JSON as text stays JSON, so this is not.
        prop_assert_eq!(masked("text/plain", format!("# {plain}")), format!("# {clean_plain}"));
    }
}
