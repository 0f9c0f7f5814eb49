//! Tools whose input schemas were made when they were used. Those that were used last stay.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::proxy::ArgumentChecks;
use crate::spec::schema::NewNames;

/// Number of tools that are kept, and of bytes that their JSON may take. Compiled validators take a
/// multiple.
const MAX_TOOLS: usize = 256;
const MAX_BYTES: usize = 4 << 20;

/// A tool that was made when it was used.
pub(crate) struct FinishedTool {
    /// The tool as JSON.
    pub(crate) json: String,
    /// Compiled when it is called.
    pub(super) checks: OnceLock<Option<ArgumentChecks>>,
    /// The names of properties that had to be changed.
    pub(super) names: Option<NewNames>,
}

/// Tools by their place in the API, in the order in which they were used, the latest at the end.
type RecentTools = VecDeque<(usize, Arc<FinishedTool>)>;

/// Tools that were used last.
#[derive(Default)]
pub(super) struct FinishedTools {
    recent: Mutex<RecentTools>,
}

impl FinishedTools {
    fn lock(&self) -> MutexGuard<'_, RecentTools> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, index: usize) -> Option<Arc<FinishedTool>> {
        let mut recent = self.lock();
        let place = recent.iter().position(|(known, _)| *known == index)?;
        let used = recent.remove(place)?;
        let found = Arc::clone(&used.1);
        recent.push_back(used);
        Some(found)
    }

    pub(super) fn keep(&self, index: usize, tool: &Arc<FinishedTool>) {
        let mut recent = self.lock();
        recent.retain(|(known, _)| *known != index);
        recent.push_back((index, Arc::clone(tool)));
        let mut bytes: usize = recent.iter().map(|(_, tool)| tool.json.len()).sum();
        while recent.len() > MAX_TOOLS || (recent.len() > 1 && bytes > MAX_BYTES) {
            let oldest = recent.pop_front();
            bytes -= oldest.map_or(0, |(_, tool)| tool.json.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(bytes: usize) -> Arc<FinishedTool> {
        Arc::new(FinishedTool {
            json: " ".repeat(bytes),
            checks: OnceLock::new(),
            names: None,
        })
    }

    #[test]
    fn the_tools_used_last_stay() {
        let tools = FinishedTools::default();
        for index in 0..MAX_TOOLS {
            tools.keep(index, &tool(1));
        }
        assert!(tools.find(0).is_some());
        tools.keep(MAX_TOOLS, &tool(1));
        assert!(
            tools.find(0).is_some() && tools.find(1).is_none() && tools.find(MAX_TOOLS).is_some()
        );
        // One that is larger than all may be stays alone.
        tools.keep(7, &tool(MAX_BYTES + 1));
        assert!(tools.find(7).is_some() && tools.find(0).is_none());
    }
}
