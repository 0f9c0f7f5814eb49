//! What a call of a tool would be made with.

use rmcp::model::JsonObject;

use super::{Api, ToolIndex};
use crate::proxy::OwnNames;

impl Api {
    /// The arguments of the tool at that place after repairs; as they are where they are not valid.
    pub(crate) fn repaired_arguments(&self, index: ToolIndex, arguments: JsonObject) -> JsonObject {
        let (tool, bound) = self.at(index);
        let checked = bound.check_arguments(tool, arguments.clone(), &OwnNames);
        checked.map_or(arguments, |checked| checked.arguments)
    }
}
