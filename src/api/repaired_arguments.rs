//! The arguments that a call of a tool is made with.

use std::sync::Arc;

use crate::json::JsonObject;

use super::{Api, ToolIndex};
use crate::proxy::{CallError, CheckedArguments, with_wire_names};
use crate::spec::schema::object_size;

/// Arguments of more bytes are checked on a thread that may block: it takes more than a few
/// milliseconds.
const MAX_SMALL_BYTES: usize = 64 << 10;

impl Api {
    /// Checks arguments like [`Api::wire_arguments`], within the time limit of a call. Much work is
    /// done on a separate thread.
    ///
    /// # Errors
    /// All that is wrong with them, or that it could not be found out in time.
    pub(super) async fn checked_arguments(
        self: &Arc<Self>,
        index: ToolIndex,
        arguments: JsonObject,
    ) -> Result<CheckedArguments, CallError> {
        if object_size(&arguments) <= MAX_SMALL_BYTES {
            return self.wire_arguments(index, arguments);
        }
        let (api, limit) = (Arc::clone(self), self.proxy.options.timeout);
        let checking = tokio::task::spawn_blocking(move || api.wire_arguments(index, arguments));
        match tokio::time::timeout(limit, checking).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(failed)) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(CallError::Arguments(
                    "The server ends; nothing was sent.".to_owned(),
                )),
            },
            Err(_) => Err(CallError::Arguments(format!(
                "The arguments of {} could not be checked within {} s; nothing was sent. Give less in one call.",
                self.at(index).0.name,
                limit.as_secs()
            ))),
        }
    }

    /// Returns the arguments of the tool at that index after repairs; unchanged if they are not
    /// valid.
    pub(crate) fn repaired_arguments(&self, index: ToolIndex, arguments: JsonObject) -> JsonObject {
        let (tool, bound) = self.at(index);
        let checked =
            bound.check_arguments(tool, self.finished(index).as_deref(), arguments.clone());
        checked.map_or(arguments, |checked| checked.arguments)
    }

    /// The arguments of the tool at that place, checked and repaired. Those of a tool that is made
    /// when it is used have the names on the wire, which the operation does not know then.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn wire_arguments(
        &self,
        index: ToolIndex,
        arguments: JsonObject,
    ) -> Result<CheckedArguments, CallError> {
        let (tool, bound) = self.at(index);
        let finished = self.finished(index);
        let checked = bound.check_arguments(tool, finished.as_deref(), arguments)?;
        let wire = finished
            .as_ref()
            .and_then(|finished| finished.wire.as_ref());
        Ok(CheckedArguments {
            arguments: with_wire_names(checked.arguments, wire),
            ..checked
        })
    }
}
