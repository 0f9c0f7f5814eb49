//! The texts of the tools that were used last, if they are made on use.

use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use super::bound_tool::ToolText;

/// Number of tools that are kept, and of bytes that their JSON may take. Compiled validators take a
/// multiple.
const MAX_TOOLS: usize = 256;
const MAX_BYTES: usize = 4 << 20;

/// The texts of the tools that were used last, by their places in the API.
pub(super) struct RecentTexts(Mutex<LruCache<usize, Arc<ToolText>>>);

impl Default for RecentTexts {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl RecentTexts {
    pub(super) fn find(&self, place: usize) -> Option<Arc<ToolText>> {
        self.0.lock().get(&place).cloned()
    }

    pub(super) fn keep(&self, place: usize, text: &Arc<ToolText>) {
        let mut recent = self.0.lock();
        recent.put(place, Arc::clone(text));
        let mut bytes: usize = recent.iter().map(|(_, text)| text.json.len()).sum();
        while recent.len() > MAX_TOOLS || (recent.len() > 1 && bytes > MAX_BYTES) {
            let oldest = recent.pop_lru();
            bytes -= oldest.map_or(0, |(_, text)| text.json.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize) -> Arc<ToolText> {
        Arc::new(ToolText {
            json: vec![b' '; bytes].into(),
            ..ToolText::default()
        })
    }

    #[test]
    fn the_tools_used_last_stay() {
        let texts = RecentTexts::default();
        for place in 0..MAX_TOOLS {
            texts.keep(place, &text(1));
        }
        assert!(texts.find(0).is_some());
        texts.keep(MAX_TOOLS, &text(1));
        assert!(
            texts.find(0).is_some() && texts.find(1).is_none() && texts.find(MAX_TOOLS).is_some()
        );
        // One that is larger than all may be stays alone.
        texts.keep(7, &text(MAX_BYTES + 1));
        assert!(texts.find(7).is_some() && texts.find(0).is_none());
    }
}
