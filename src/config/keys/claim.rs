//! The place of a claim in a token.

/// Checks the place of a claim in a token: its name, or its JSON Pointer (RFC 6901).
///
/// # Errors
/// A sentence that says why it is not valid.
pub(crate) fn check_claim(place: &str) -> Result<(), String> {
    if place.is_empty() || place == "/" {
        return Err("the name of a claim is missing".into());
    }
    let escapes = place.split('~').skip(1);
    if place.starts_with('/')
        && escapes
            .into_iter()
            .any(|rest| !rest.starts_with(['0', '1']))
    {
        return Err(format!(
            "`{}` is not a JSON Pointer: in one, `~` is written `~0`, and `/` within a name `~1`",
            place.escape_debug()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_a_name_or_a_pointer() {
        for place in [
            "groups",
            "https://acme.example/roles",
            "a.b",
            "~",
            "/realm_access/roles",
            "/a~1b/c~0d",
            "//",
        ] {
            assert_eq!(check_claim(place), Ok(()), "{place}");
        }
        for place in ["", "/", "/a~", "/a~2b", "/~x"] {
            assert!(check_claim(place).is_err(), "{place}");
        }
    }
}
