//! The verb table: what an HTTP method says about a tool. The whole mapping lives here and knows
//! nothing of tools.

use http::Method;

/// The hints for a method, or `None` for a method that says nothing (TRACE and any unknown one):
/// then MCP's defaults apply, which are the careful ones.
///
/// | method | readOnly | destructive | idempotent | openWorld |
/// |---|---|---|---|---|
/// | GET, HEAD, OPTIONS, QUERY | true | false | true | true |
/// | POST | false | false | false | true |
/// | PUT | false | true | true | true |
/// | PATCH | false | true | false | true |
/// | DELETE | false | true | true | true |
///
/// The method compares without case. The text is the reason of the row, for readers.
pub(crate) fn for_method(method: &Method) -> Option<([bool; 4], &'static str)> {
    let (read_only, destructive, idempotent, because) =
        match method.as_str().to_ascii_uppercase().as_str() {
            // RFC 9110 section 9.2.1 calls these safe, 9.2.2 makes every safe method idempotent.
            // QUERY is both by its draft.
            "GET" | "QUERY" => (true, false, true, "a safe, idempotent read"),
            "HEAD" => (true, false, true, "a read without a body"),
            "OPTIONS" => (true, false, true, "asks what is possible"),
            // Creates: a repeat creates again, and what exists stays as it is.
            "POST" => (
                false,
                false,
                false,
                "creates; what exists stays as it is, a repeat creates again",
            ),
            // Replaces what was there; the same request leaves the same state (RFC 9110 section
            // 9.3.4).
            "PUT" => (
                false,
                true,
                true,
                "replaces what was there; a repeat leaves the same state",
            ),
            // Changes what was there; RFC 5789 section 2 does not promise that a repeat changes
            // nothing more.
            "PATCH" => (
                false,
                true,
                false,
                "changes what was there; a repeat may change it again",
            ),
            // Removes; that a second answer says 404 does not change the state again (RFC 9110
            // section 9.3.5).
            "DELETE" => (false, true, true, "removes; a repeat removes nothing more"),
            _ => return None,
        };
    // An API is an external system to this server, even if its data is internal.
    let open_world = true;
    Some(([read_only, destructive, idempotent, open_world], because))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: &str) -> Option<[bool; 4]> {
        let (hints, because) = for_method(&Method::from_bytes(method.as_bytes()).unwrap())?;
        assert!(!because.is_empty());
        Some(hints)
    }

    const READ: Option<[bool; 4]> = Some([true, false, true, true]);

    #[test]
    fn a1_get_reads() {
        assert_eq!(row("GET"), READ);
    }
    #[test]
    fn a2_post_adds() {
        assert_eq!(row("POST"), Some([false, false, false, true]));
    }
    #[test]
    fn a3_put_replaces() {
        assert_eq!(row("PUT"), Some([false, true, true, true]));
    }
    #[test]
    fn a4_patch_changes() {
        assert_eq!(row("PATCH"), Some([false, true, false, true]));
    }
    #[test]
    fn a5_delete_removes() {
        assert_eq!(row("DELETE"), Some([false, true, true, true]));
    }
    #[test]
    fn a6_head_options_and_query_read() {
        assert_eq!(
            (row("HEAD"), row("OPTIONS"), row("QUERY")),
            (READ, READ, READ)
        );
    }
    #[test]
    fn a7_an_unknown_method_says_nothing() {
        assert_eq!((row("TRACE"), row("PURGE")), (None, None));
    }
    #[test]
    fn a9_the_method_compares_without_case() {
        assert_eq!((row("get"), row("Delete")), (READ, row("DELETE")));
    }
}
