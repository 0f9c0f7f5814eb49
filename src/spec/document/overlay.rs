//! OpenAPI Overlays 1.0 and 1.1, which change a document without editing its file.

use enumset::EnumSet;
use roas_overlay::apply::{Apply, ApplyReport};
use roas_overlay::{v1_0, v1_1};
use serde_json::Value;
use thiserror::Error;

use super::error::LoadError;
use super::file::DocumentFile;
use crate::spec::diagnostic::Diagnostic;

/// Reason for which an overlay cannot be applied.
#[derive(Debug, Error)]
pub(crate) enum OverlayError {
    /// The overlay, or the document it is for, cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[source] LoadError),
    /// The text is valid JSON or YAML, but not an overlay.
    #[error("it is not an OpenAPI Overlay: {0}")]
    NotAnOverlay(String),
    /// An action fails.
    #[error("it cannot be applied: {0}")]
    Failed(String),
}

/// Applies all overlays, one after the other; returns the new text, and a diagnostic for every
/// action that matched nothing. Positions in later messages refer to the result, not to the
/// original text.
///
/// # Errors
/// [`OverlayError`] of the first overlay that fails, with its name.
pub(crate) fn apply_overlays(
    document: Vec<u8>,
    overlays: Vec<(String, Vec<u8>)>,
) -> Result<(Vec<u8>, Vec<Diagnostic>), (String, OverlayError)> {
    let mut target = read_overlay("the document", document)
        .map_err(|error| ("the document".to_owned(), OverlayError::Unreadable(error)))?;
    let mut diagnostics = Vec::new();
    for (name, bytes) in overlays {
        let report = read_overlay(&name, bytes)
            .map_err(OverlayError::Unreadable)
            .and_then(|overlay| apply_one(&overlay, &mut target))
            .map_err(|error| (name.clone(), error))?;
        for action in report.actions.iter().filter(|action| action.matched == 0) {
            diagnostics.push(Diagnostic::warning(
                "#",
                format!(
                    "the overlay {name} has an action for `{}`, which matches nothing",
                    action.target
                ),
            ));
        }
    }
    Ok((target.to_string().into_bytes(), diagnostics))
}

fn apply_one(overlay: &Value, target: &mut Value) -> Result<ApplyReport, OverlayError> {
    let version = overlay
        .get("overlay")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let no_overlay = |error: serde_json::Error| OverlayError::NotAnOverlay(error.to_string());
    let overlay: v1_1::Overlay = if version.starts_with("1.1") {
        serde_json::from_value(overlay.clone()).map_err(no_overlay)?
    } else if version.starts_with("1.0") {
        serde_json::from_value::<v1_0::Overlay>(overlay.clone())
            .map_err(no_overlay)?
            .into()
    } else {
        return Err(OverlayError::NotAnOverlay(format!(
            "its `overlay` member is `{version}`, and 1.0 and 1.1 are known"
        )));
    };
    overlay
        .apply(target, EnumSet::default())
        .map_err(|error| OverlayError::Failed(error.to_string()))
}

fn read_overlay(name: &str, bytes: Vec<u8>) -> Result<Value, LoadError> {
    let file = DocumentFile::parse(0, name, bytes)?;
    crate::json::parse_text(file.text()).map_err(LoadError::NotJson)
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
