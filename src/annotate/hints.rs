//! The verb table: what an HTTP method says about a tool. The whole mapping lives here and knows nothing of tools.

use http::Method;
use rmcp::model::ToolAnnotations;

/// The hints for a method, all four written out, or `None` for a method that says nothing (TRACE and any unknown one):
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
/// The method compares without case. The annotations' own `title` stays empty: the title is the tool's.
#[must_use]
pub fn for_method(method: &Method) -> Option<ToolAnnotations> {
    let (read_only, destructive, idempotent) = match method.as_str().to_ascii_uppercase().as_str() {
        // RFC 9110 section 9.2.1 calls these safe, 9.2.2 makes every safe method idempotent. QUERY is both by its draft.
        "GET" | "HEAD" | "OPTIONS" | "QUERY" => (true, false, true),
        // Creates: a repeat creates again, and what exists stays as it is.
        "POST" => (false, false, false),
        // Replaces what was there; the same request leaves the same state (RFC 9110 section 9.3.4).
        "PUT" => (false, true, true),
        // Changes what was there; RFC 5789 section 2 does not promise that a repeat changes nothing more.
        "PATCH" => (false, true, false),
        // Removes; that a second answer says 404 does not change the state again (RFC 9110 section 9.3.5).
        "DELETE" => (false, true, true),
        _ => return None,
    };
    // An API is an external system to this server, even where its data is internal.
    Some(ToolAnnotations::from_raw(
        None,
        Some(read_only),
        Some(destructive),
        Some(idempotent),
        Some(true),
    ))
}

/// Whether the hints say that a tool only reads; a tool without hints does not.
#[must_use]
pub fn is_read_only(hints: Option<&ToolAnnotations>) -> bool {
    hints.and_then(|hints| hints.read_only_hint) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: &str) -> Option<[Option<bool>; 4]> {
        let hints = for_method(&Method::from_bytes(method.as_bytes()).unwrap())?;
        assert_eq!(hints.title, None, "the title is the tool's");
        Some([
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        ])
    }

    const READ: Option<[Option<bool>; 4]> = Some([Some(true), Some(false), Some(true), Some(true)]);

    #[test]
    fn a1_get_reads() {
        assert_eq!(row("GET"), READ);
    }
    #[test]
    fn a2_post_adds() {
        assert_eq!(row("POST"), Some([Some(false), Some(false), Some(false), Some(true)]));
    }
    #[test]
    fn a3_put_replaces() {
        assert_eq!(row("PUT"), Some([Some(false), Some(true), Some(true), Some(true)]));
    }
    #[test]
    fn a4_patch_changes() {
        assert_eq!(row("PATCH"), Some([Some(false), Some(true), Some(false), Some(true)]));
    }
    #[test]
    fn a5_delete_removes() {
        assert_eq!(row("DELETE"), Some([Some(false), Some(true), Some(true), Some(true)]));
    }
    #[test]
    fn a6_head_options_and_query_read() {
        assert_eq!((row("HEAD"), row("OPTIONS"), row("QUERY")), (READ, READ, READ));
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
