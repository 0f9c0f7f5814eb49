//! Secrets of digits in the spellings in which a reply may write them: as a number with an exponent or a fraction, and in groups.

/// What stands between groups of digits: `1234-5678-9012`.
const SEPARATORS: [u8; 6] = *b" -,._'";
/// An exponent of more digits belongs to a number that no secret is equal to.
const MAX_EXPONENT_DIGITS: usize = 9;

/// The secrets that consist of digits alone.
#[derive(Debug, Default)]
pub(super) struct DigitSecrets(Vec<DigitSecret>);

#[derive(Debug)]
struct DigitSecret {
    digits: Vec<u8>,
    /// `None` with leading zeros, which no number has.
    magnitude: Option<Magnitude>,
}

/// A number without its sign.
#[derive(Debug, PartialEq, Eq)]
struct Magnitude {
    /// Its digits without zeros at both ends.
    significant: Vec<u8>,
    /// The power of ten behind them.
    exponent: i64,
}

impl Magnitude {
    /// Reads a number as JSON writes it (RFC 8259 section 6); `None` for anything else.
    fn read(number: &[u8]) -> Option<Self> {
        let number = number.strip_prefix(b"-").unwrap_or(number);
        let end = number.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(number.len());
        let (mantissa, exponent) = number.split_at_checked(end)?;
        let point = mantissa.iter().position(|byte| *byte == b'.');
        let (whole, fraction) = match point {
            Some(point) => (
                mantissa.get(..point)?,
                mantissa.get(point + 1..).filter(|fraction| !fraction.is_empty())?,
            ),
            None => (mantissa, &[][..]),
        };
        let mut digits = [whole, fraction].concat();
        if whole.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let written = digits.len();
        digits.truncate(digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1));
        let power = i64::try_from(written - digits.len()).ok()? - i64::try_from(fraction.len()).ok()?;
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        Some(Self {
            significant: digits.split_off(leading),
            exponent: power + read_exponent(exponent)?,
        })
    }
}

/// `e+11` and the like; nothing is 0.
fn read_exponent(text: &[u8]) -> Option<i64> {
    let Some((_, signed)) = text.split_first() else { return Some(0) };
    let digits = signed.strip_prefix(b"-").or_else(|| signed.strip_prefix(b"+")).unwrap_or(signed);
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let significant = digits.get(zeros..)?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) || significant.len() > MAX_EXPONENT_DIGITS {
        return None;
    }
    let value = significant.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if signed.starts_with(b"-") { -value } else { value })
}

impl DigitSecrets {
    pub(super) fn new<'s>(secrets: impl Iterator<Item = &'s [u8]>) -> Self {
        let secret = |digits: &[u8]| DigitSecret {
            magnitude: Magnitude::read(digits).filter(|_| !digits.starts_with(b"0")),
            digits: digits.to_vec(),
        };
        Self(
            secrets
                .filter(|secret| !secret.is_empty() && secret.iter().all(u8::is_ascii_digit))
                .map(secret)
                .collect(),
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a number, with any sign, has the value of a secret.
    pub(super) fn are_number(&self, number: &[u8]) -> bool {
        !self.0.is_empty() && Magnitude::read(number).is_some_and(|magnitude| self.are_magnitude(&magnitude))
    }

    fn are_magnitude(&self, magnitude: &Magnitude) -> bool {
        self.0.iter().any(|secret| secret.magnitude.as_ref() == Some(magnitude))
    }

    /// Where a text spells a secret as a number, or in groups of digits.
    pub(super) fn ranges(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let mut ranges = Vec::new();
        if self.0.is_empty() {
            return ranges;
        }
        let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
        let mut at = 0;
        while let Some(next) = text.get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_digit)) {
            let start = at + next;
            // A run of groups holds every number that begins in it, but for its exponent.
            let digits = grouped_digits(text, start);
            at = digits.last().copied().unwrap_or(start) + 1;
            for begin in digits.iter().copied().filter(|begin| *begin == start || !is_digit(begin - 1)) {
                let end = begin + number_length(text.get(begin..).unwrap_or_default());
                if self.are_number(text.get(begin..end).unwrap_or_default()) {
                    ranges.push((begin, end));
                    at = at.max(end);
                }
            }
            ranges.extend(self.0.iter().flat_map(|secret| secret.groups(text, &digits)));
        }
        ranges
    }
}

impl DigitSecret {
    /// Where whole groups make up the secret, among the digits at these places of the text.
    fn groups(&self, text: &[u8], places: &[usize]) -> Vec<(usize, usize)> {
        let is_digit = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_digit);
        let spells = |window: &&[usize]| {
            window
                .iter()
                .zip(&self.digits)
                .all(|(place, digit)| text.get(*place) == Some(digit))
        };
        let range = |window: &[usize]| Some((*window.first()?, *window.last()? + 1));
        let found = places.windows(self.digits.len()).filter(spells).filter_map(range);
        found
            .filter(|(start, end)| !is_digit(start.checked_sub(1)) && !is_digit(Some(*end)))
            .collect()
    }
}

/// The places of the digits from `start` on, with at most one separator between two of them.
fn grouped_digits(text: &[u8], start: usize) -> Vec<usize> {
    let mut places = vec![start];
    let mut at = start + 1;
    loop {
        match (text.get(at), text.get(at + 1)) {
            (Some(digit), _) if digit.is_ascii_digit() => places.push(at),
            (Some(separator), Some(digit)) if SEPARATORS.contains(separator) && digit.is_ascii_digit() => {
                at += 1;
                places.push(at);
            }
            _ => return places,
        }
        at += 1;
    }
}

/// The length of the number that a text begins with: digits, a fraction, an exponent.
fn number_length(text: &[u8]) -> usize {
    let digits_from = |at: usize| {
        text.get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut end = digits_from(0);
    if text.get(end) == Some(&b'.') {
        let fraction = digits_from(end + 1);
        end += if fraction > 0 { fraction + 1 } else { 0 };
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits_from(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_compared_by_its_value() {
        let secrets = DigitSecrets::new([&b"123456789012"[..], b"120000000000", b"012345678901", b"not digits"].into_iter());
        for number in [
            "123456789012",
            "-123456789012",
            "123456789012.000",
            "1.23456789012e11",
            "1.23456789012E+0011",
            "12345678901200e-2",
            "0.123456789012e12",
            "1.2e11",
            "12e10",
        ] {
            assert!(secrets.are_number(number.as_bytes()), "{number}");
        }
        for number in [
            "123456789012.5",
            "1.23456789012e12",
            "1234567890123",
            "12345678901",
            "0",
            "1.2e99999999999",
            "1.2e",
            "1.e11",
            "",
            "-",
            "e5",
        ] {
            assert!(!secrets.are_number(number.as_bytes()), "{number}");
        }
    }

    #[test]
    fn a_text_may_spell_a_secret_in_groups_or_with_an_exponent() {
        let secrets = DigitSecrets::new([&b"123456789012"[..]].into_iter());
        for (text, expected) in [
            ("card 1234 5678 9012.", Some("1234 5678 9012")),
            ("123,456,789,012", Some("123,456,789,012")),
            ("5 123-456-789-012 7", Some("123-456-789-012")),
            ("v=1.23456789012e11;", Some("1.23456789012e11")),
            ("1 1.23456789012e11 1", Some("1.23456789012e11")),
            // Its digits are there, whatever the value is.
            ("1.23456789012e12", Some("1.23456789012")),
            ("9123 4567 8901 2", None),
            ("1234  5678 9012", None),
        ] {
            let found = secrets
                .ranges(text.as_bytes())
                .into_iter()
                .filter_map(|(from, to)| text.get(from..to));
            assert_eq!(found.max_by_key(|found| found.len()), expected, "{text}");
        }
    }
}
