//! The values that rules and tenants take from the client that calls: its headers, and the claims of its verified token.

use http::header::HeaderMap;
use rmcp::model::JsonObject;
use serde_json::Value;

use super::connection_header::is_of_connection;
use super::error::CallError;
use crate::spec::operation::rules::ValueSource;

/// What is shown in place of a secret value.
pub(crate) const MASK: &str = "***";

/// What a client says of itself.
#[derive(Clone, Copy)]
pub(crate) enum ClientValues<'c> {
    /// Nothing yet: the request is only shown, with `***` for what is secret.
    Masked,
    /// The headers of its HTTP request, and the claims of its verified token.
    Given {
        headers: Option<&'c HeaderMap>,
        claims: Option<&'c JsonObject>,
    },
}

impl ValueSource {
    /// The text that a client gives for it.
    ///
    /// # Errors
    /// [`CallError::Setting`] where there is not exactly one that is not empty.
    pub(crate) fn client_text(&self, client: ClientValues<'_>) -> Result<String, CallError> {
        let ClientValues::Given { headers, claims } = client else {
            return Ok(MASK.to_owned());
        };
        let found = match self {
            Self::Forward(name) => headers.and_then(|headers| {
                let mut values = headers.get_all(name).iter();
                let value = values.next().filter(|_| values.next().is_none())?;
                value.to_str().ok().filter(|_| !is_of_connection(headers, name)).map(str::to_owned)
            }),
            Self::Claim(name) => claims.and_then(|claims| match claims.get(name)? {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(value) => Some(value.to_string()),
                _ => None,
            }),
            Self::Literal(_) | Self::Secret { .. } => None,
        };
        found.filter(|text| !text.is_empty()).ok_or_else(|| {
            CallError::Setting(format!(
                "nothing was sent, because this call needs a value {}, and there is not exactly one",
                self.describe()
            ))
        })
    }
}
