//! Tools as the audit log, metrics and traces name them.

use std::sync::Arc;

use super::name::ApiName;
use super::{Api, ToolIndex};
use crate::observe::metrics::labels::ApiLabel;
use crate::observe::record::CalledOperation;

impl Api {
    /// The name that the operator gave it, else the title of its document.
    pub(crate) fn label(&self) -> &str {
        self.name
            .as_ref()
            .map_or_else(|| self.document().title(), ApiName::as_str)
    }

    /// Its label in metrics.
    pub(crate) fn metrics_label(&self) -> ApiLabel {
        ApiName::metrics_label(self.name.as_ref())
    }

    /// The name of a tool as metrics and logs have it: without the prefix of one of several APIs.
    pub(crate) fn tool_label(&self, index: ToolIndex) -> &str {
        let name = self.tool(index).name.as_ref();
        let prefix = self.name.as_ref().map_or("", |_| self.prefix());
        name.strip_prefix(prefix).unwrap_or(name)
    }

    /// The operation of a tool, with all its names. They are made when it is first called.
    pub(crate) fn called_operation(&self, index: ToolIndex) -> Arc<CalledOperation> {
        let tool = self.tool(index);
        let name = || {
            let operation = &tool.operation;
            Arc::new(CalledOperation {
                api: self.label().to_owned(),
                label: self.metrics_label(),
                tool: self.tool_label(index).to_owned(),
                method: operation.method.to_string(),
                path_template: operation.path.clone(),
                effect: tool.hints.effect().word(),
            })
        };
        Arc::clone(tool.called.get_or_init(name))
    }
}
