//! Percent-encoding of the pieces of a request (RFC 3986 section 2.1).

/// The characters that are not percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Only unreserved characters (RFC 3986 section 2.3).
    Unreserved,
    /// Reserved ones and percent-encoded triples too, as `allowReserved` asks for in the value of a
    /// query. Encoded are `#`, which ends the query, `&`, which ends the pair, `+`, which forms
    /// read as a space, `'`, which URL parsers encode in a query, and `[` and `]`, which RFC 3986
    /// section 3.4 does not allow there. `?` and `=` are legal in a value: a pair is split at its
    /// first `=`.
    Reserved,
    /// In a path with `allowReserved` of 3.2: the characters that RFC 3986 section 3.3 allows in a
    /// segment, but `;` and `=`, which would start a parameter of the segment.
    Segment,
    /// In a cookie of the style `form` with `allowReserved` of 3.2: the characters that a cookie
    /// may hold (RFC 6265 section 4.1.1), but `&`, which ends a pair of that style, and `+`.
    FormCookie,
    /// In a cookie of the style `cookie` of 3.2, which encodes nothing: all that cannot end a
    /// cookie, and commas.
    Cookie,
    /// Everything: header values are not percent-encoded.
    All,
}

/// Percent-encodes what `keep` does not keep.
#[must_use]
pub fn percent_encode(text: &str, keep: Keep) -> String {
    let mut encoded = String::with_capacity(text.len());
    push_encoded(&mut encoded, text, keep);
    encoded
}

/// Percent-encodes each segment between slashes by itself, and says how many there are.
pub(crate) fn percent_encode_segments(text: &str, keep: Keep) -> (String, usize) {
    let segments: Vec<String> = text
        .split('/')
        .map(|segment| percent_encode(segment, keep))
        .collect();
    (segments.join("/"), segments.len())
}

/// Appends the text to `out`, encoded like [`percent_encode`].
pub(crate) fn push_encoded(out: &mut String, text: &str, keep: Keep) {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if keep == Keep::All || text.bytes().all(is_unreserved) {
        out.push_str(text);
        return;
    }
    let bytes = text.as_bytes();
    let reserved: &[u8] = match keep {
        Keep::Reserved => b":/?@!$()*,;=",
        Keep::Segment => b":@!$&'()*+,",
        Keep::FormCookie => b":/?@!$'()*=#[]",
        Keep::Cookie => b":/?@!$&'()*+,=#[]%^`{|}<>",
        Keep::Unreserved | Keep::All => b"",
    };
    let is_triple = |index: usize| {
        let digits = bytes.get(index + 1..index + 3);
        keep != Keep::Unreserved
            && digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    for (index, byte) in bytes.iter().copied().enumerate() {
        let stays =
            is_unreserved(byte) || reserved.contains(&byte) || (byte == b'%' && is_triple(index));
        if stays {
            out.push(char::from(byte));
        } else {
            out.push_str(percent_encoding::percent_encode_byte(byte));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn allow_reserved_never_changes_the_structure_of_a_query() {
        assert_eq!(percent_encode("a/b:c,d", Keep::Reserved), "a/b:c,d");
        assert_eq!(
            percent_encode("a&b=c#d?e+f[g] %", Keep::Reserved),
            "a%26b=c%23d?e%2Bf%5Bg%5D%20%25"
        );
    }

    proptest! {
        #[test]
        fn encoding_decodes_to_what_it_was(text in ".*") {
            for keep in [Keep::Unreserved, Keep::Reserved] {
                let encoded = percent_encode(&text, keep);
                let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
                // Text that is encoded already stays if reserved characters do.
                let meant = if keep == Keep::Reserved { decoded(&text) } else { text.as_bytes().to_vec() };
                prop_assert_eq!(decoded(&encoded), meant);
                prop_assert!(!encoded.contains(['#', '&', '+', ' ']));
                prop_assert!(keep == Keep::Reserved || !encoded.contains(['=', '?']));
            }
        }
    }
}
