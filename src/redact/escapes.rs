//! Decodes the escapes of JSON (RFC 8259 section 7), URLs (RFC 3986 section 2.1) and HTML
//! ("Character references") in a text of unknown format.

use memchr::memchr3;

/// Returns true if a text holds a character that escapes begin with.
pub(crate) fn has_escapes(text: &[u8]) -> bool {
    memchr3(b'\\', b'&', b'%', text).is_some()
}

/// The HTML character references of punctuation that occurs in credentials, and of the no-break
/// space.
const NAMES: [(&[u8], char); 30] = [
    (b"amp", '&'),
    (b"lt", '<'),
    (b"gt", '>'),
    (b"quot", '"'),
    (b"apos", '\''),
    (b"plus", '+'),
    (b"sol", '/'),
    (b"bsol", '\\'),
    (b"equals", '='),
    (b"colon", ':'),
    (b"semi", ';'),
    (b"period", '.'),
    (b"comma", ','),
    (b"lowbar", '_'),
    (b"num", '#'),
    (b"dollar", '$'),
    (b"percnt", '%'),
    (b"excl", '!'),
    (b"quest", '?'),
    (b"commat", '@'),
    (b"ast", '*'),
    (b"lpar", '('),
    (b"rpar", ')'),
    (b"lsqb", '['),
    (b"rsqb", ']'),
    (b"lcub", '{'),
    (b"rcub", '}'),
    (b"verbar", '|'),
    (b"Hat", '^'),
    (b"nbsp", '\u{a0}'),
];

/// A numeric reference has no more digits, leading zeros included.
const MAX_DIGITS: usize = 8;

/// A decoded text, with a mapping to the positions of its source.
pub(crate) struct Layer {
    /// The text.
    pub(crate) text: Vec<u8>,
    /// The position after each escape, in this text and in the source.
    jumps: Vec<(usize, usize)>,
}

impl Layer {
    /// The position in the source of a position in the text.
    pub(crate) fn source(&self, at: usize) -> usize {
        let before = self.jumps.partition_point(|(here, _)| *here <= at);
        let jump = before
            .checked_sub(1)
            .and_then(|index| self.jumps.get(index));
        jump.map_or(at, |(here, there)| there + (at - here))
    }
}

/// Decodes one layer of escapes; `None` if there are none.
pub(crate) fn unescape(source: &[u8]) -> Option<Layer> {
    let mut layer: Option<Layer> = None;
    let (mut from, mut at) = (0, 0);
    while let Some(next) = memchr3(b'\\', b'&', b'%', source.get(at..).unwrap_or_default()) {
        let start = at + next;
        let Some((character, length)) = escape(source.get(start..).unwrap_or_default()) else {
            at = start + 1;
            continue;
        };
        let layer = layer.get_or_insert_with(|| Layer {
            text: Vec::with_capacity(source.len()),
            jumps: Vec::new(),
        });
        layer
            .text
            .extend_from_slice(source.get(from..start).unwrap_or_default());
        match character {
            Escaped::Byte(byte) => layer.text.push(byte),
            Escaped::Character(character) => layer
                .text
                .extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        at = start + length;
        from = at;
        layer.jumps.push((layer.text.len(), at));
    }
    if let Some(layer) = &mut layer {
        layer
            .text
            .extend_from_slice(source.get(from..).unwrap_or_default());
    }
    layer
}

enum Escaped {
    Byte(u8),
    Character(char),
}

/// Reads an escape at the start of the text: its character, and its length.
fn escape(text: &[u8]) -> Option<(Escaped, usize)> {
    match text {
        [b'%', high, low, ..] => Some((
            Escaped::Byte(u8::try_from(read_code_point(&[*high, *low], 16)?).ok()?),
            3,
        )),
        [b'\\', byte @ (b'"' | b'\\' | b'/' | b'\''), ..] => Some((Escaped::Byte(*byte), 2)),
        [b'\\', letter @ (b'b' | b'f' | b'n' | b'r' | b't'), ..] => {
            let byte = match letter {
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                _ => b'\t',
            };
            Some((Escaped::Byte(byte), 2))
        }
        [b'\\', b'x', high, low, ..] => Some((
            Escaped::Character(char::from_u32(read_code_point(&[*high, *low], 16)?)?),
            4,
        )),
        [b'\\', b'u', rest @ ..] => {
            let first = read_code_point(rest.get(..4)?, 16)?;
            if let Some(character) = char::from_u32(first) {
                return Some((Escaped::Character(character), 6));
            }
            let second = rest.get(4..).and_then(|rest| rest.strip_prefix(b"\\u"))?;
            let units = [first, read_code_point(second.get(..4)?, 16)?]
                .map(|unit| u16::try_from(unit).unwrap_or_default());
            Some((
                Escaped::Character(char::decode_utf16(units).next()?.ok()?),
                12,
            ))
        }
        [b'&', ..] => {
            let (character, length) = read_html_reference(text)?;
            Some((Escaped::Character(character), length))
        }
        _ => None,
    }
}

/// Reads an HTML character reference at the start of the text: its character, and its length.
fn read_html_reference(text: &[u8]) -> Option<(char, usize)> {
    let rest = text.strip_prefix(b"&")?;
    if let [b'#', number @ ..] = rest {
        let (before, radix) = match number {
            [b'x' | b'X', ..] => (1, 16),
            _ => (0, 10),
        };
        let number = number.get(before..)?;
        let length = number
            .iter()
            .take(MAX_DIGITS)
            .take_while(|digit| char::from(**digit).is_digit(radix))
            .count();
        let character = char::from_u32(read_code_point(number.get(..length)?, radix)?)?;
        // WHATWG HTML section 13.2.5.80: a numeric reference counts without its semicolon as well.
        let end = usize::from(number.get(length) == Some(&b';'));
        return Some((character, "&#".len() + before + length + end));
    }
    let end = rest.iter().take(10).position(|byte| *byte == b';')?;
    let name = rest.get(..end)?;
    let character = NAMES.iter().find(|(known, _)| *known == name)?.1;
    Some((character, end + 2))
}

/// An HTML text with its character references read, each once; unknown ones stay as they are.
pub(crate) fn unescape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('&') {
        out.push_str(before);
        rest = rest.get(before.len()..).unwrap_or_default();
        let (character, length) = read_html_reference(rest.as_bytes()).unwrap_or(('&', 1));
        out.push(character);
        rest = rest.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn read_code_point(digits: &[u8], radix: u32) -> Option<u32> {
    let is_number = !digits.is_empty()
        && digits
            .iter()
            .all(|digit| char::from(*digit).is_digit(radix));
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_unescaped_once() {
        assert_eq!(
            unescape_html("a &amp;lt; b &#39;c&#x27; &none; & d&nbsp;é&"),
            "a &lt; b 'c' &none; & d\u{a0}é&"
        );
    }

    #[test]
    fn escapes_come_off_and_places_are_known() {
        for (source, text) in [
            (r"a\u002bb\/\\c\ud83d\ude00", "a+b/\\c😀"),
            ("%2B%c3%a9%%zz", "+é%%zz"),
            ("&#43;&#x2F;&amp;&plus;&none;&", "+/&+&none;&"),
        ] {
            assert_eq!(
                String::from_utf8(unescape(source.as_bytes()).unwrap().text).unwrap(),
                text
            );
        }
        let layer = unescape(br"ab\u002bcd").unwrap();
        assert_eq!([0, 2, 3, 5].map(|at| layer.source(at)), [0, 2, 8, 10]);
        for plain in [r"a\", r"\u12", r"\ud800x", "%", "&#;", "&#99999999;", "abc"] {
            assert!(unescape(plain.as_bytes()).is_none(), "{plain}");
        }
    }

    #[test]
    fn a_numeric_reference_counts_without_its_semicolon() {
        assert_eq!(
            unescape_html("&#115&#x33;&#99r&#x65t &#; &#x &#xZZ &#9999999999"),
            "s3cret &#; &#x &#xZZ &#9999999999"
        );
        assert_eq!(unescape(b"&#115x").unwrap().text, b"sx");
    }
}
