//! Policy `spec`: what is written in the operation itself and speaks against its method's row. Evidence, never a guess.

use http::Method;

use super::annotations::{Hint, Hints, Reason};
use crate::spec::{Location, Operation, Parameter};

/// Corrects the hints of the method by what the operation says it needs.
pub(crate) fn apply_evidence(hints: &mut Hints, operation: &Operation) {
    if !hints.is_set() || hints.effective(Hint::ReadOnly) {
        return;
    }
    let required = |matches: &dyn Fn(&Parameter) -> bool| {
        operation
            .parameters
            .iter()
            .any(|parameter| parameter.required && matches(parameter))
    };
    let header = |name: &'static str| {
        move |parameter: &Parameter| parameter.location == Location::Header && parameter.name.eq_ignore_ascii_case(name)
    };
    // The API remembers the key: the same key has the same effect, once.
    if matches!(operation.method, Method::POST | Method::PATCH) && required(&header("Idempotency-Key")) {
        hints.set(Hint::Idempotent, true, Reason::Evidence("a required `Idempotency-Key` header"));
    }
    // RFC 9110 section 13.1: the same arguments fail the second time, because the version moved on. Looked at last, because
    // it is the more careful word of the two.
    let evidence = if required(&header("If-Match")) {
        "a required `If-Match` header"
    } else if required(&header("If-Unmodified-Since")) {
        "a required `If-Unmodified-Since` header"
    } else if required(&|parameter| parameter.precondition) {
        "a required precondition (`x-mcp-precondition`)"
    } else {
        return;
    };
    hints.set(Hint::Idempotent, false, Reason::Evidence(evidence));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    fn idempotent(method: &str, parameters: &str) -> bool {
        let text = format!(r#"{{"openapi":"3.1.0","paths":{{"/a":{{"{method}":{{"parameters":[{parameters}]}}}}}}}}"#);
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        let mut hints = Hints::of_method(&operations[0].method);
        apply_evidence(&mut hints, &operations[0]);
        hints.effective(Hint::Idempotent)
    }

    const SCHEMA: &str = r#""in":"header","schema":{"type":"string"}"#;

    #[test]
    fn b1_a_required_precondition_ends_idempotency() {
        for (method, header, expected) in [
            ("put", "If-Match", false),
            ("delete", "if-match", false),
            ("put", "If-Unmodified-Since", false),
            ("put", "If-None-Match", true),
        ] {
            let parameter = format!(r#"{{"name":"{header}","required":true,{SCHEMA}}}"#);
            assert_eq!(idempotent(method, &parameter), expected, "{method} {header}");
        }
        let declared = r#"{"name":"version","in":"query","required":true,"x-mcp-precondition":true,"schema":{"type":"string"}}"#;
        assert!(!idempotent("put", declared));
    }

    #[test]
    fn b1_an_optional_precondition_proves_nothing() {
        assert!(idempotent("put", &format!(r#"{{"name":"If-Match",{SCHEMA}}}"#)));
    }

    #[test]
    fn b2_a_required_idempotency_key_makes_a_post_idempotent() {
        let key = |required: bool| format!(r#"{{"name":"idempotency-KEY","required":{required},{SCHEMA}}}"#);
        assert!(idempotent("post", &key(true)) && idempotent("patch", &key(true)));
        assert!(!idempotent("post", &key(false)));
    }

    #[test]
    fn b3_put_and_delete_without_a_precondition_stay_idempotent() {
        assert!(idempotent("put", "") && idempotent("delete", ""));
    }

    #[test]
    fn b4_of_two_that_disagree_the_more_careful_one_wins() {
        let both = format!(r#"{{"name":"Idempotency-Key","required":true,{SCHEMA}}},{{"name":"If-Match","required":true,{SCHEMA}}}"#);
        assert!(!idempotent("patch", &both));
    }

    #[test]
    fn b5_a_read_with_a_precondition_is_still_a_read() {
        assert!(idempotent("get", &format!(r#"{{"name":"If-Match","required":true,{SCHEMA}}}"#)));
    }
}
