//! Pages that one call collects: which arguments get the next one, when it is enough, and the reply
//! that they become. Nothing is sent here, and no URL of a reply is followed: a page is a call with
//! the arguments that a reply without it would have named.

mod list;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{ETAG, LAST_MODIFIED, LINK};

use self::list::{ListPlace, MergedList, shown_name};
use crate::call_error::CallError;
use crate::caller::memory_budget::MemoryBudget;
use crate::caller::{Caller, ReportProgress};
use crate::json::JsonObject;
use crate::observe::call::note;
use crate::results::Reply;
use crate::results::pagination::{NextPage, declared_count};
use crate::results::remarks::{CollectedPage, PageReport};
use crate::spec::Operation;
use crate::spec::operation::response_rule::ResponseRule;
use crate::spec::paging::is_of_paging;
use crate::text::{self, counted};

/// A call that collects pages, before its first reply.
pub(crate) struct RequestedPages<'c> {
    operation: &'c Operation,
    most: usize,
    /// The arguments of the call.
    given: JsonObject,
    progress: Option<Arc<SummedProgress>>,
}

/// The pages of a call so far.
pub(crate) struct CollectedPages<'c> {
    request: RequestedPages<'c>,
    caller: &'c Caller,
    /// Number of bytes that all pages may have together.
    max_bytes: usize,
    bytes: usize,
    /// The first page. Its body is in `merged` once there is a second one.
    first: Reply,
    place: Option<ListPlace>,
    merged: Option<MergedList>,
    memory: MemoryBudget,
    pages: Vec<CollectedPage>,
    /// The page after the last one. Its arguments are all that differ from those of the call.
    next: Option<NextPage>,
    stop: Option<Stop>,
    /// The number of items that the API counts, with its name.
    declared: Option<(String, u64)>,
}

/// Reason for which no further page is collected.
enum Stop {
    /// The first page has no list, for this reason.
    NoList(String),
    End,
    Empty,
    Circle,
    Repeated,
    OtherShape,
    /// It would change an argument of the call.
    ChangesCall(String),
    Size(usize),
    Time,
    Refused(String),
    Failed(String),
}

impl<'c> RequestedPages<'c> {
    /// Takes the number of pages out of the arguments of a call, and adds up the progress of their
    /// requests; `None` if the call does not say how many.
    pub(crate) fn take(
        operation: &'c Operation,
        arguments: &mut JsonObject,
        caller: &mut Caller,
    ) -> Option<Self> {
        let offered = operation.rules.max_pages;
        let asked = (offered > 0).then(|| arguments.shift_remove(&operation.pages_key()))??;
        // A schema that cannot be compiled has not checked it.
        let most = asked
            .as_u64()
            .and_then(|pages| usize::try_from(pages).ok())
            .unwrap_or(1)
            .clamp(1, offered);
        let progress = caller.progress.take().map(SummedProgress::new);
        caller.progress = progress.as_ref().map(SummedProgress::reporter);
        Some(Self {
            operation,
            most,
            given: arguments.clone(),
            progress,
        })
    }

    /// Begins with the first page, and what it says about the next one.
    pub(crate) fn begin(
        self,
        caller: &'c Caller,
        first: Reply,
        next: Option<NextPage>,
        max_bytes: usize,
        memory: &MemoryBudget,
    ) -> CollectedPages<'c> {
        let json = first.json();
        let found = json
            .ok_or_else(|| "it is not JSON".to_owned())
            .and_then(|json| {
                // A rule may drop a member, and its name with it.
                let withholds = self
                    .operation
                    .rules
                    .response
                    .as_ref()
                    .is_some_and(ResponseRule::withholds);
                let place = ListPlace::find(json, !withholds)?;
                let items = place.items(json).map_or(0, |items| items.count);
                Ok((place, items))
            });
        let (place, stop, items) = match found {
            Ok((place, items)) => (Some(place), (items == 0).then_some(Stop::Empty), items),
            Err(why) => (None, Some(Stop::NoList(why)), 0),
        };
        let mut pages = CollectedPages {
            request: self,
            caller,
            max_bytes,
            bytes: first.body.len(),
            declared: declared_count(&first),
            first,
            place,
            merged: None,
            memory: memory.clone(),
            pages: vec![CollectedPage {
                items,
                arguments: JsonObject::new(),
            }],
            next: None,
            stop,
        };
        pages.next = next.map(|next| pages.with_changes_of(&JsonObject::new(), next));
        pages
    }
}

impl CollectedPages<'_> {
    /// The arguments of the next page, and how many bytes it may have; `None` if there is none to
    /// be collected.
    pub(crate) fn next_call(&mut self) -> Option<(JsonObject, usize)> {
        if self.stop.is_some() || (self.pages.len() >= self.request.most && self.next.is_some()) {
            return None;
        }
        let stop = match &self.next {
            None => Stop::End,
            Some(NextPage::Unreachable) => return None,
            Some(NextPage::Arguments(changes)) => {
                let mut changed = changes
                    .keys()
                    .filter(|key| self.request.given.contains_key(*key));
                let left = self.max_bytes.saturating_sub(self.bytes);
                if let Some(key) = changed.find(|key| !self.is_of_paging(key)) {
                    Stop::ChangesCall(shown_name(key))
                } else if self.pages.iter().any(|page| page.arguments == *changes) {
                    self.next = None;
                    Stop::Circle
                } else if left == 0 {
                    Stop::Size(self.max_bytes)
                } else {
                    let mut arguments = self.request.given.clone();
                    arguments.extend(
                        changes
                            .iter()
                            .map(|(key, value)| (key.clone(), value.clone())),
                    );
                    if let Some(progress) = &self.request.progress {
                        progress.begin_page();
                    }
                    return Some((arguments, left));
                }
            }
        };
        self.stop = Some(stop);
        None
    }

    /// Adds a page, and what it says about the one after it.
    pub(crate) fn add(&mut self, reply: &Reply, next: Option<NextPage>) {
        let Some(NextPage::Arguments(arguments)) = &self.next else {
            return;
        };
        let arguments = arguments.clone();
        self.first.keep_redactors(&reply.redactors);
        let next = next.map(|next| self.with_changes_of(&arguments, next));
        match self.merge(reply) {
            Ok(items) => {
                self.bytes += reply.body.len();
                self.pages.push(CollectedPage { items, arguments });
                self.next = next;
            }
            Err(stop) => {
                match stop {
                    Stop::Empty => self.next = next,
                    Stop::Repeated => self.next = None,
                    _ => {}
                }
                self.stop = Some(stop);
            }
        }
    }

    /// Adds the items of a page to the list, and returns their number.
    fn merge(&mut self, reply: &Reply) -> Result<usize, Stop> {
        let place = self.place.as_ref().ok_or(Stop::OtherShape)?;
        let json = reply.json().ok_or(Stop::OtherShape)?;
        let items = place.items(json).ok_or(Stop::OtherShape)?;
        if items.count == 0 {
            return Err(Stop::Empty);
        }
        if reply.body.len() > self.max_bytes.saturating_sub(self.bytes) {
            return Err(Stop::Size(self.max_bytes));
        }
        let no_memory = |_| Stop::Failed(CallError::NoMemory.to_string());
        let merged = match &mut self.merged {
            Some(merged) => merged,
            none => {
                let first = self.first.json().and_then(|first| place.items(first));
                let begun = MergedList::new(
                    first.ok_or(Stop::OtherShape)?,
                    self.memory.begin(),
                    self.caller,
                );
                none.insert(begun.map_err(no_memory)?)
            }
        };
        if merged.ends_with(items) {
            return Err(Stop::Repeated);
        }
        merged.push(items, self.caller).map_err(no_memory)?;
        self.first.body = Bytes::new();
        Ok(items.count)
    }

    /// Ends with an error of the next page.
    pub(crate) fn fail(&mut self, error: &CallError) {
        self.stop = Some(match error {
            CallError::Timeout(_) => Stop::Time,
            CallError::TooLarge { .. } => Stop::Size(self.max_bytes),
            CallError::Arguments(problem) => Stop::Refused(problem.clone()),
            other => Stop::Failed(other.to_string()),
        });
    }

    /// Ends with a reply to the next page that is not a success, and its description.
    pub(crate) fn refuse(&mut self, reply: &Reply, description: String) {
        self.first.keep_redactors(&reply.redactors);
        self.stop = Some(Stop::Failed(description));
    }

    /// The reply with the items of all pages, and the report on them.
    pub(crate) fn finish(self) -> (Reply, PageReport) {
        let Self {
            mut first,
            merged,
            pages,
            ..
        } = self;
        let number = pages.len();
        let items: usize = pages.iter().map(|page| page.items).sum();
        note(|record| record.pages = u32::try_from(number).ok());
        if let Some(merged) = merged.filter(|_| number > 1) {
            first.body = merged.finish();
            note(|record| record.bytes = Some(self.bytes));
            // They are those of one page.
            for name in [ETAG, LAST_MODIFIED, LINK] {
                first.headers.remove(name);
            }
        }
        let list = self
            .place
            .as_ref()
            .map(ListPlace::pointer)
            .unwrap_or_default();
        let of_all = self
            .declared
            .filter(|(_, all)| usize::try_from(*all).is_ok_and(|all| all >= items));
        let of_all = of_all
            .map(|(name, all)| format!(" of {all} ({})", shown_name(&name)))
            .unwrap_or_default();
        let place = if list.is_empty() {
            String::new()
        } else {
            format!(" in {}", shown_name(&list))
        };
        let mut summary = match (&self.stop, number) {
            (Some(Stop::NoList(why)), _) => format!("Only one page was requested, because {why}."),
            (_, 1) => format!(
                "1 page was collected: {}{of_all}{place}.",
                counted(items, "item")
            ),
            _ => {
                let rest = if list.is_empty() {
                    ""
                } else {
                    "; everything else is of the first page"
                };
                format!(
                    "{number} pages were collected: {}{of_all}{place}{rest}.",
                    counted(items, "item")
                )
            }
        };
        if let Some(stop) = &self.stop {
            summary.push_str(&stop.sentence(if items == 0 { 1 } else { number + 1 }));
        }
        let report = PageReport {
            pages,
            list,
            summary,
            next: self.next,
        };
        (first, report)
    }

    /// Returns true if an argument says which page comes, or how long it is.
    fn is_of_paging(&self, key: &str) -> bool {
        let mut parameters = self.request.operation.parameters.iter();
        parameters.any(|parameter| parameter.key == key && is_of_paging(&parameter.name))
    }

    /// The arguments that differ from those of the call, for the page after one that differs by
    /// those `before`.
    fn with_changes_of(&self, before: &JsonObject, next: NextPage) -> NextPage {
        let NextPage::Arguments(changes) = next else {
            return next;
        };
        let mut all = before.clone();
        all.extend(changes);
        all.retain(|key, value| self.request.given.get(key) != Some(value));
        NextPage::Arguments(all)
    }
}

impl Stop {
    /// The reason in a sentence about the page of that number.
    fn sentence(&self, page: usize) -> String {
        match self {
            Self::NoList(_) => String::new(),
            Self::End => " The last one names no next page.".into(),
            Self::Empty => format!(" Page {page} is empty."),
            Self::Circle => format!(
                " Page {page} was not requested, because its arguments are those of a page before it."
            ),
            Self::Repeated => {
                format!(" Page {page} was left out, because it repeats the page before it.")
            }
            Self::OtherShape => format!(" Page {page} was left out, because it has no such list."),
            Self::ChangesCall(key) => format!(
                " Page {page} was not requested, because the API would change {key}, which this call gave."
            ),
            Self::Size(limit) => format!(
                " Page {page} was left out, because all pages may have {limit} bytes together."
            ),
            Self::Time => format!(" The time for the call was over before page {page} came."),
            Self::Refused(problem) => {
                format!(" Page {page} was not requested: {}", shown_problem(problem))
            }
            Self::Failed(problem) => format!(" Page {page} failed: {}", shown_problem(problem)),
        }
    }
}

/// A problem as the end of a sentence of a note, which is shown whole or not at all.
fn shown_problem(problem: &str) -> String {
    const MAX_BYTES: usize = 300;
    let problem = text::truncate(&text::one_line(problem), MAX_BYTES);
    format!("{}.", problem.trim_end_matches('.'))
}

/// Adds up what the requests for pages report.
struct SummedProgress {
    report: ReportProgress,
    /// Bytes of the pages before.
    before: AtomicU64,
}

impl SummedProgress {
    pub(super) fn new(report: ReportProgress) -> Arc<Self> {
        Arc::new(Self {
            report,
            before: AtomicU64::new(0),
        })
    }

    /// The reporter for each request. How much comes in all is not known.
    fn reporter(self: &Arc<Self>) -> ReportProgress {
        let sum = Arc::clone(self);
        ReportProgress::new(move |done, _| {
            let done = sum.before.load(Ordering::Relaxed).saturating_add(done);
            if done > sum.report.last() {
                sum.report.report(done, None);
            }
        })
    }

    /// Counts the next request on top of what was reported.
    fn begin_page(&self) {
        self.before.store(self.report.last(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn the_sum_of_several_requests_only_grows() {
        let reports: Arc<Mutex<Vec<u64>>> = Arc::default();
        let seen = Arc::clone(&reports);
        let sum = SummedProgress::new(ReportProgress::new(move |done, total| {
            assert_eq!(total, None);
            seen.lock().push(done);
        }));
        let report = sum.reporter();
        report.report(10, Some(20));
        report.report(20, Some(20));
        sum.begin_page();
        // A request that is sent again begins anew.
        for done in [5, 3, 8] {
            report.report(done, None);
        }
        assert_eq!(*reports.lock(), [10, 20, 25, 28]);
    }
}
