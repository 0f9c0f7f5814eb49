//! What a call of a tool would be made with.

use rmcp::model::JsonObject;

use super::{Api, ToolIndex};
use crate::proxy::{CallError, CheckedArguments, OwnNames, ToolNames, with_wire_names};

impl Api {
    /// The arguments of the tool at that place after repairs; as they are where they are not valid.
    pub(crate) fn repaired_arguments(&self, index: ToolIndex, arguments: JsonObject) -> JsonObject {
        let (tool, bound) = self.at(index);
        let checked = bound.check_arguments(tool, self.finished(index).as_deref(), arguments.clone(), &OwnNames);
        checked.map_or(arguments, |checked| checked.arguments)
    }

    /// The arguments of the tool at that place, checked and repaired; `names` are those by which the caller knows the tools. Those of
    /// a tool that is made when it is used have the names on the wire, which the operation does not know then.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn wire_arguments(
        &self,
        index: ToolIndex,
        arguments: JsonObject,
        names: &dyn ToolNames,
    ) -> Result<CheckedArguments, CallError> {
        let (tool, bound) = self.at(index);
        let finished = self.finished(index);
        let checked = bound.check_arguments(tool, finished.as_deref(), arguments, names)?;
        let wire = finished.as_ref().and_then(|finished| finished.wire.as_ref());
        Ok(CheckedArguments {
            arguments: with_wire_names(checked.arguments, wire),
            ..checked
        })
    }
}
