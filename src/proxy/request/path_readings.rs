//! How servers may read a path. They decode an encoded slash or keep it, take a backslash for a
//! slash, drop parameters of segments, empty segments, spaces and what is behind a NUL, and take
//! the name of a format for no part of the path.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::text;

/// How many times a path may be encoded, and how many segments it may have: its readings then take
/// bounded time.
const MAX_ROUNDS: usize = 4;
const MAX_SEGMENTS: usize = 64;
/// A longer path, in bytes, is refused by most servers.
const MAX_BYTES: usize = 8 << 10;

/// The longest name of a format, in bytes.
const MAX_FORMAT: usize = 16;
/// Represents any value in the path of a template. No template and no URL holds this character.
pub(super) const ANY_VALUE: &str = "\u{ffff}";

/// A segment of a path, in lower case.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) text: String,
    /// True if the slash before it is part of a value.
    pub(super) is_in_value: bool,
}

type Reading = Vec<Segment>;

/// Returns the readings of a path, without empty segments and in lower case; `None` if it is
/// encoded too many times or has too many segments. `in_value` is true for each slash that is part
/// of a value.
pub(super) fn path_readings(path: &str, in_value: &[bool]) -> Option<Vec<Reading>> {
    if path.len() > MAX_BYTES {
        return None;
    }
    let segments = path.split('/').skip(1).enumerate();
    let mut encoded: Reading = segments
        .map(|(index, text)| Segment {
            text: text.to_owned(),
            is_in_value: in_value.get(index).copied().unwrap_or_default(),
        })
        .collect();
    let mut readings = Vec::new();
    for _ in 0..=MAX_ROUNDS {
        let slashes = encoded
            .iter()
            .map(|segment| segment.text.matches(['/', '\\']).count() + 1);
        if slashes.sum::<usize>() > MAX_SEGMENTS {
            return None;
        }
        let decoded = changed(&encoded, decoded_once);
        for reading in readings_of(encoded) {
            if !readings.contains(&reading) {
                readings.push(reading);
            }
        }
        match decoded {
            Some(decoded) => encoded = decoded,
            None => return Some(readings),
        }
    }
    None
}

/// Returns the readings of a path that is not decoded further.
fn readings_of(path: Reading) -> Vec<Reading> {
    let steps: [fn(&Reading) -> Option<Reading>; 6] = [
        without_parameters,
        |reading| split(reading, &['/']),
        |reading| split(reading, &['/', '\\']),
        without_parameters,
        without_rest,
        trimmed,
    ];
    let mut readings = vec![path];
    for step in steps {
        let more: Vec<Reading> = readings.iter().filter_map(step).collect();
        readings.extend(more);
    }
    let open_ended: Vec<Reading> = readings.iter().filter_map(with_empty_end).collect();
    readings.extend(open_ended);
    for reading in &mut readings {
        reading.retain(|segment| !segment.text.is_empty());
        for segment in reading {
            segment.text = folded(&segment.text);
        }
    }
    let plain = |reading: &Reading| {
        let (last, before) = reading.split_last()?;
        let text = without_format(&last.text)?.to_owned();
        Some([before, &[Segment { text, ..*last }]].concat())
    };
    let plain: Vec<Reading> = readings.iter().filter_map(plain).collect();
    readings.extend(plain);
    readings
}

/// Returns the reading with other texts; `None` if they are the same.
fn changed(reading: &Reading, change: fn(&str) -> Cow<'_, str>) -> Option<Reading> {
    let is_same = |segment: &Segment| change(&segment.text) == segment.text;
    let change = |segment: &Segment| Segment {
        text: change(&segment.text).into_owned(),
        ..*segment
    };
    (!reading.iter().all(is_same)).then(|| reading.iter().map(change).collect())
}

/// Drops parameters of segments that have a name (RFC 3986 section 3.3).
fn without_parameters(reading: &Reading) -> Option<Reading> {
    changed(reading, |text| {
        let name = text.split(';').next().filter(|name| !name.is_empty());
        name.unwrap_or(text).into()
    })
}

fn split(reading: &Reading, slashes: &[char]) -> Option<Reading> {
    let holds = |segment: &Segment| segment.text.contains(slashes);
    let parts = |segment: &Segment| -> Reading {
        let texts = segment.text.split(slashes).enumerate();
        let part = |(index, text): (usize, &str)| Segment {
            text: text.to_owned(),
            is_in_value: index > 0 || segment.is_in_value,
        };
        texts.map(part).collect()
    };
    reading
        .iter()
        .any(holds)
        .then(|| reading.iter().flat_map(parts).collect())
}

/// Drops what is behind a NUL, at which texts of C end.
fn without_rest(reading: &Reading) -> Option<Reading> {
    let end = reading
        .iter()
        .position(|segment| segment.text.contains('\0'))?;
    let mut kept = reading.get(..=end)?.to_vec();
    let last = kept.last_mut()?;
    last.text = last.text.split('\0').next().unwrap_or_default().to_owned();
    Some(kept)
}

/// Drops dots, white space and control characters at the ends of segments: patterns of Python that
/// end with `$` match before a line feed.
fn trimmed(reading: &Reading) -> Option<Reading> {
    changed(reading, |text| {
        let is_odd = |letter: char| letter == '.' || letter.is_whitespace() || letter.is_control();
        text.trim_matches(is_odd).into()
    })
}

/// Gives a path that ends with a slash of a value a last segment that only a variable matches: some
/// variables take nothing.
fn with_empty_end(reading: &Reading) -> Option<Reading> {
    let (last, before) = reading.split_last()?;
    let end = Segment {
        text: ANY_VALUE.to_owned(),
        is_in_value: true,
    };
    (last.text.is_empty() && last.is_in_value).then(|| [before, &[end]].concat())
}

/// Folds the case of a text. U+0130 is then a letter `i`, without its dot above.
pub(super) fn folded(text: &str) -> String {
    text::without_case(text)
        .filter(|letter| *letter != '\u{307}')
        .collect()
}

/// Returns the text without the name of a format at its end, if it has one: some servers answer
/// `/reports.json` with what is at `/reports`.
pub(super) fn without_format(text: &str) -> Option<&str> {
    let (plain, format) = text.rsplit_once('.')?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_format = (1..=MAX_FORMAT).contains(&format.len()) && format.bytes().all(is_letter);
    is_format.then_some(plain)
}

fn decoded_once(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Decodes a text until nothing is encoded.
pub(crate) fn fully_decoded(text: &str) -> String {
    let mut decoded = text.to_owned();
    loop {
        let next = decoded_once(&decoded).into_owned();
        if next == decoded {
            return decoded;
        }
        decoded = next;
    }
}
