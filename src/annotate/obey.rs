//! Hints that are kept, not only told: what this server itself does only because a tool's hints allow it.

use rmcp::model::ToolAnnotations;

/// Whether a request may be sent again where the first one failed: only what is idempotent, or only reads.
#[must_use]
pub fn may_retry(hints: Option<&ToolAnnotations>) -> bool {
    hints.is_some_and(|hints| hints.idempotent_hint == Some(true) || hints.read_only_hint == Some(true))
}

/// Whether a reply may be kept for the next call: only of what only reads.
#[must_use]
pub fn may_cache(hints: Option<&ToolAnnotations>) -> bool {
    hints.is_some_and(|hints| hints.read_only_hint == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::hints::for_method;
    use http::Method;

    #[test]
    fn only_what_is_idempotent_is_repeated_and_only_reads_are_kept() {
        for (method, retry, cache) in [
            ("GET", true, true),
            ("HEAD", true, true),
            ("OPTIONS", true, true),
            ("QUERY", true, true),
            ("PUT", true, false),
            ("DELETE", true, false),
            ("POST", false, false),
            ("PATCH", false, false),
            ("TRACE", false, false),
        ] {
            let hints = for_method(&Method::from_bytes(method.as_bytes()).unwrap());
            assert_eq!((may_retry(hints.as_ref()), may_cache(hints.as_ref())), (retry, cache), "{method}");
        }
    }
}
