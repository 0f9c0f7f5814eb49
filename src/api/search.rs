//! Search among the tools of an API. The index is built on the first search, once however many ask
//! at the same time.

use std::time::Instant;

use super::{Api, ToolIndex};
use crate::annotate::Tool;
use crate::search::{Ranking, SearchIndex, names_exactly, says_name};

/// Among so many of the best hits, one whose name has the words of the question comes first.
const NEAREST: usize = 10;

/// A value that a tool needs, and the tool that yields it.
pub(crate) struct NeededValue<'a> {
    /// The argument.
    pub(crate) argument: &'a str,
    /// The tool that yields it.
    pub(crate) source: ToolIndex,
}

impl Api {
    /// All tools, in the order of the document.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = ToolIndex> + use<> {
        (0..self.tools.len()).map(ToolIndex)
    }

    /// The tools among the `admitted` that answer a question, best first. A tool whose name,
    /// operationId, path, or method and path the question is to the letter comes first. Words count
    /// as if the API had only the tools that are `listed`; `None` means all.
    pub(crate) fn search(
        &self,
        question: &str,
        listed: Option<&dyn Fn(ToolIndex) -> bool>,
        admitted: &dyn Fn(ToolIndex) -> bool,
    ) -> Ranking<ToolIndex> {
        let is_listed = |operation| listed.is_none_or(|is_listed| is_listed(ToolIndex(operation)));
        let index = self.search_index();
        let exact: Vec<ToolIndex> = self
            .indexes()
            .filter(|index| names_exactly(question, self.tool(*index)) && admitted(*index))
            .collect();
        let ranking = index.rank(
            question,
            listed.is_some().then_some(&is_listed as _),
            &|operation| admitted(ToolIndex(operation)),
        );
        let others = ranking
            .hits
            .into_iter()
            .map(ToolIndex)
            .filter(|hit| !exact.contains(hit));
        let mut others: Vec<ToolIndex> = others.collect();
        let nearest = others.len().min(NEAREST);
        if let Some(nearest) = others.get_mut(..nearest) {
            nearest.sort_by_cached_key(|hit| !says_name(question, &self.tool(*hit).name));
        }
        let is_exact = !exact.is_empty();
        Ranking {
            is_known: is_exact || ranking.is_known,
            has_words: is_exact || ranking.has_words,
            fit: if is_exact { f32::MAX } else { ranking.fit },
            good: ranking.good.max(exact.len()),
            hits: exact.into_iter().chain(others).collect(),
        }
    }

    /// Returns the sources of the values that a tool needs, best source first.
    pub(crate) fn needed_values(&self, index: ToolIndex) -> impl Iterator<Item = NeededValue<'_>> {
        let parameters = &self.tool(index).operation.parameters;
        self.search_index()
            .needs(index.0)
            .iter()
            .filter_map(|need| {
                Some(NeededValue {
                    argument: &parameters.get(usize::from(need.parameter))?.key,
                    source: ToolIndex(need.operation as usize),
                })
            })
    }

    /// Returns the number of bytes that a result may take.
    pub(crate) fn max_result_bytes(&self) -> usize {
        self.proxy.options.max_result_bytes
    }

    /// Returns the index, built if it does not exist yet, which takes some time for a large API.
    pub(crate) fn search_index(&self) -> &SearchIndex {
        self.search_index.get_or_init(|| {
            let begun = Instant::now();
            let tools: Vec<&Tool> = self.tools.iter().map(|tool| &**tool).collect();
            let index = SearchIndex::build(self.document(), &tools);
            tracing::debug!(
                "the search index of {} operations was built in {:.1} ms",
                index.len(),
                begun.elapsed().as_secs_f64() * 1e3
            );
            index
        })
    }
}
