//! OpenAPI Overlays 1.0 and 1.1, which change a document without editing its file.

use enumset::EnumSet;
use roas_overlay::apply::{Apply, ApplyReport};
use roas_overlay::{v1_0, v1_1};
use serde::Deserialize as _;
use serde_json::Value;

use super::error::LoadError;
use super::file::DocumentFile;
use crate::spec::diagnostic::Diagnostic;

/// Applies all overlays, one after the other; returns the new text, and a diagnostic for every
/// action that matched nothing. Positions in later messages refer to the result, not to the
/// original text.
///
/// # Errors
/// [`LoadError`] of the first overlay that fails, with its name.
pub(crate) fn apply_overlays(
    document: Vec<u8>,
    overlays: Vec<(String, Vec<u8>)>,
) -> Result<(Vec<u8>, Vec<Diagnostic>), (String, LoadError)> {
    let mut target = read_overlay("the document", document)
        .map_err(|error| ("the document".to_owned(), error))?;
    let mut diagnostics = Vec::new();
    for (name, bytes) in overlays {
        let report = read_overlay(&name, bytes)
            .and_then(|overlay| apply_one(&overlay, &mut target))
            .map_err(|error| (name.clone(), error))?;
        for action in report.actions.iter().filter(|action| action.matched == 0) {
            let what = format!(
                "the overlay {name} has an action for `{}`, which matches nothing",
                action.target
            );
            diagnostics.push(Diagnostic::warning("#", what));
        }
    }
    Ok((target.to_string().into_bytes(), diagnostics))
}

fn apply_one(overlay: &Value, target: &mut Value) -> Result<ApplyReport, LoadError> {
    let version = overlay
        .get("overlay")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let other = |why: String| LoadError::new(format!("it is not an OpenAPI Overlay: {why}"));
    let read: Result<v1_1::Overlay, _> = if version.starts_with("1.1") {
        v1_1::Overlay::deserialize(overlay)
    } else if version.starts_with("1.0") {
        v1_0::Overlay::deserialize(overlay).map(Into::into)
    } else {
        let why = format!("its `overlay` member is `{version}`, and 1.0 and 1.1 are known");
        return Err(other(why));
    };
    read.map_err(|error| other(error.to_string()))?
        .apply(target, EnumSet::default())
        .map_err(|error| LoadError::new(format!("it cannot be applied: {error}")))
}

fn read_overlay(name: &str, bytes: Vec<u8>) -> Result<Value, LoadError> {
    let read = DocumentFile::parse(0, name, bytes)
        .and_then(|file| crate::json::parse_text(file.text()).map_err(LoadError::not_json));
    read.map_err(|error| LoadError::of("it cannot be read", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "openapi: 3.1.0\ninfo: {title: T}\npaths:\n  /a: {get: {operationId: a}, delete: {}}\n  /b: {get: {}}\n";

    fn applied(overlay: &str) -> Result<(Value, usize), String> {
        let overlays = vec![("overlay.yaml".to_owned(), overlay.as_bytes().to_vec())];
        let (bytes, diagnostics) = apply_overlays(DOCUMENT.as_bytes().to_vec(), overlays)
            .map_err(|(name, error)| format!("{name}: {error}"))?;
        Ok((serde_json::from_slice(&bytes).unwrap(), diagnostics.len()))
    }

    #[test]
    fn overlays_update_and_remove() {
        let (document, idle) = applied("overlay: 1.0.0\ninfo: {title: O, version: '1'}\nactions:\n- {target: '$.paths[\"/a\"].get', update: {operationId: renamed, x-n: 12345678901234567890}}\n- {target: '$.paths.*.delete', remove: true}\n- {target: '$.nothing', update: {a: 1}}").unwrap();
        assert_eq!(
            document["paths"]["/a"].to_string(),
            r#"{"get":{"operationId":"renamed","x-n":12345678901234567890}}"#
        );
        assert_eq!(idle, 1);
    }

    #[test]
    fn what_is_no_overlay_is_told_so() {
        for (overlay, expected) in [
            ("", "cannot be read"),
            ("openapi: 3.1.0", "not an OpenAPI Overlay"),
            ("overlay: 2.0.0", "1.0 and 1.1"),
            (
                "overlay: 1.0.0\ninfo: {title: O, version: '1'}\nactions: [{target: '][', remove: true}]",
                "overlay.yaml",
            ),
        ] {
            let error = applied(overlay).unwrap_err();
            assert!(error.contains(expected), "{overlay}: {error}");
        }
    }
}
