//! The values that rules and tenants take from the client that calls: its headers, and the claims
//! of its verified token.

use serde_json::Value;

use crate::call_error::CallError;
use crate::caller::Caller;
use crate::json::member_at;
use crate::outbound::request::is_of_connection;
use crate::spec::operation::rules::ValueSource;

/// Text that replaces a secret value in previews.
pub(crate) const MASK: &str = "***";

impl ValueSource {
    /// The text that a caller gives for it; [`MASK`] without a caller, if a request is only shown.
    ///
    /// # Errors
    /// [`CallError::Setting`] unless there is exactly one that is not empty.
    pub(crate) fn client_text(&self, caller: Option<&Caller>) -> Result<String, CallError> {
        let Some(caller) = caller else {
            return Ok(MASK.to_owned());
        };
        let found = match self {
            Self::Forward(name) => {
                let mut values = caller.headers.get_all(name).iter();
                let value = values.next().filter(|_| {
                    values.next().is_none() && !is_of_connection(&caller.headers, name)
                });
                value
                    .and_then(|value| value.to_str().ok())
                    .map(str::to_owned)
            }
            Self::Claim(name) => {
                caller
                    .claims()
                    .and_then(|claims| match member_at(claims, name)? {
                        Value::String(text) => Some(text.clone()),
                        Value::Number(number) => Some(number.to_string()),
                        Value::Bool(value) => Some(value.to_string()),
                        _ => None,
                    })
            }
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
