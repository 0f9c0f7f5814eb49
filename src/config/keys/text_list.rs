//! A key of the file that is a list of texts, or one text.

use serde::{Deserialize, Deserializer};

/// A list of texts, or one text: `confirm: destructive`.
pub(crate) fn one_or_several<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum Texts {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Texts::deserialize(deserializer)? {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    })
}
