//! The list of items in the JSON of a page, and the one list that the pages become. Works on the
//! text, so that numbers keep their digits.

use bytes::Bytes;

use crate::caller::Caller;
use crate::caller::memory_budget::{HeldMemory, OutOfMemory};
use crate::json::is_json;
use crate::spec::node::Node;
use crate::spec::pointer;
use crate::text;

/// Number of bytes of a name that are shown.
const MAX_NAME_BYTES: usize = 60;

/// The place of the list in every page.
#[derive(PartialEq, Eq)]
pub(super) struct ListPlace {
    /// The member of the page; `None` if the page is the list.
    member: Option<String>,
    kind: ListKind,
}

/// The items of a list, the most useful kind first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ListKind {
    Objects,
    Others,
    Empty,
}

/// The items of the list of a page.
#[derive(Clone, Copy)]
pub(super) struct PageItems<'p> {
    /// The text of the page.
    page: &'p str,
    /// The text between the brackets.
    text: &'p str,
    /// The offset of its end in the page.
    end: usize,
    pub(super) count: usize,
}

impl ListPlace {
    /// Finds the list of a page: the page itself, or its only list of objects, or else its only
    /// list. `may_name` allows an error to name members.
    ///
    /// # Errors
    /// The reason for which there is none, after "because".
    pub(super) fn find(page: &str, may_name: bool) -> Result<Self, String> {
        if !is_json(page.as_bytes()) {
            return Err("it is not JSON".to_owned());
        }
        let root = Node::new(page);
        if let Some((kind, _)) = kind_of(root) {
            return Ok(Self { member: None, kind });
        }
        let members = root.object().unwrap_or_default();
        let lists = members
            .iter()
            .filter_map(|(name, node)| Some((kind_of(node)?.0, name)));
        let mut lists: Vec<(ListKind, &str)> = lists.collect();
        let kinds = lists.iter().map(|(kind, _)| *kind);
        let kind = kinds.min().ok_or("it has no list of items")?;
        lists.retain(|(other, _)| *other == kind);
        match lists.as_slice() {
            [(_, name)] => Ok(Self {
                member: Some((*name).to_owned()),
                kind,
            }),
            _ if !may_name => Err("it has several lists".to_owned()),
            several => {
                let names = several.iter().take(2).map(|(_, name)| shown_name(name));
                let more = several.get(2).map(|_| "and more".to_owned());
                let names: Vec<String> = names.chain(more).collect();
                Err(format!("it has several lists: {}", names.join(", ")))
            }
        }
    }

    /// The JSON Pointer of the list.
    pub(super) fn pointer(&self) -> String {
        let mut out = String::new();
        if let Some(member) = &self.member {
            pointer::push(&mut out, member);
        }
        out
    }

    /// Returns the items of another page, if it has a list of the same kind or an empty one in this
    /// place.
    pub(super) fn items<'p>(&self, page: &'p str) -> Option<PageItems<'p>> {
        // What follows a list would end the list of all pages.
        let root = Some(page)
            .filter(|page| is_json(page.as_bytes()))
            .map(Node::new)?;
        let list = match &self.member {
            Some(member) => root.object()?.get(member)?,
            None => root,
        };
        let (kind, count) = kind_of(list)?;
        if self.kind == ListKind::Objects && kind == ListKind::Others {
            return None;
        }
        let inside = list.text().trim().strip_prefix('[')?.strip_suffix(']')?;
        let text = inside.trim();
        let end = text.as_ptr() as usize - page.as_ptr() as usize + text.len();
        Some(PageItems {
            page,
            text,
            end,
            count,
        })
    }
}

/// Returns the kind of a list, and the number of its items; `None` if the value is not a list.
fn kind_of(node: Node<'_>) -> Option<(ListKind, usize)> {
    let (mut count, mut objects) = (0, 0);
    for item in node.items()? {
        count += 1;
        objects += usize::from(item.text().starts_with('{'));
    }
    let kind = match count {
        0 => ListKind::Empty,
        _ if count == objects => ListKind::Objects,
        _ => ListKind::Others,
    };
    Some((kind, count))
}

/// A name of a reply for a note.
pub(super) fn shown_name(name: &str) -> String {
    format!(
        "`{}`",
        text::truncate(&text::one_line(name), MAX_NAME_BYTES)
    )
}

/// The first page with the items of further pages in its list.
pub(super) struct MergedList {
    /// The first page up to the end of its list, and the items of further pages.
    head: Vec<u8>,
    /// The rest of the first page.
    tail: Box<[u8]>,
    /// Number of bytes of the items of the last page.
    last: usize,
    memory: HeldMemory,
}

impl MergedList {
    /// Begins with the first page. Memory is counted from here on.
    ///
    /// # Errors
    /// The client may not hold more.
    pub(super) fn new(
        first: PageItems<'_>,
        mut memory: HeldMemory,
        caller: &Caller,
    ) -> Result<Self, OutOfMemory> {
        memory.grow_to(first.page.len(), caller)?;
        let (head, tail) = first
            .page
            .split_at_checked(first.end)
            .unwrap_or((first.page, ""));
        Ok(Self {
            head: head.into(),
            tail: tail.as_bytes().into(),
            last: first.text.len(),
            memory,
        })
    }

    /// Returns true if a page has the same items as the one before.
    pub(super) fn ends_with(&self, items: PageItems<'_>) -> bool {
        self.last == items.text.len() && self.head.ends_with(items.text.as_bytes())
    }

    /// Adds the items of a page.
    ///
    /// # Errors
    /// The client may not hold more.
    pub(super) fn push(
        &mut self,
        items: PageItems<'_>,
        caller: &Caller,
    ) -> Result<(), OutOfMemory> {
        let text = items.text.as_bytes();
        self.memory
            .grow_to(self.head.len() + self.tail.len() + text.len() + 1, caller)?;
        self.head.push(b',');
        self.head.extend_from_slice(text);
        self.last = text.len();
        Ok(())
    }

    /// The JSON of all pages.
    pub(super) fn finish(mut self) -> Bytes {
        self.head.extend_from_slice(&self.tail);
        self.memory.keep_with(self.head.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::caller::memory_budget::MemoryBudget;

    fn merged(pages: &[&str]) -> Result<String, String> {
        let place = ListPlace::find(pages[0], true)?;
        let caller = Caller::default();
        let items = |page| place.items(page).ok_or("another list");
        let mut list =
            MergedList::new(items(pages[0])?, MemoryBudget::default().begin(), &caller).unwrap();
        for page in &pages[1..] {
            list.push(items(page)?, &caller).unwrap();
        }
        Ok(String::from_utf8(list.finish().to_vec()).unwrap())
    }

    proptest! {
        #[test]
        fn the_list_of_all_pages_has_the_items_of_each_in_their_order(
            pages in proptest::collection::vec(proptest::collection::vec(".{0,9}", 1..5), 1..5), is_member: bool, space in "[ \n]{0,2}"
        ) {
            let text = |items: &Vec<String>| {
                let list = format!("{space}[{space}{}{space}]{space}", items.iter().map(|item| json!({"]": item}).to_string()).collect::<Vec<_>>().join(","));
                if is_member { format!("{{\"a\":1,\"b\":{list},\"c\":[]}}") } else { list }
            };
            let texts: Vec<String> = pages.iter().map(text).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let merged: Value = serde_json::from_str(&merged(&texts).unwrap()).unwrap();
            let list = if is_member { &merged["b"] } else { &merged };
            let items: Vec<Value> = pages.iter().flatten().map(|item| json!({"]": item})).collect();
            prop_assert_eq!(list, &Value::from(items));
        }
    }

    #[test]
    fn the_list_of_all_pages_keeps_the_text_of_each() {
        for (pages, expected) in [
            (&["[1, 2]", "[3.0]"][..], Ok("[1, 2,3.0]")),
            (
                &[
                    " {\"n\" : 12345678901234567890.10, \"a\" : [ {\"b\":[1]} ] , \"z\":1} ",
                    r#"{"a":[{"b":2},{}]}"#,
                ],
                Ok(
                    " {\"n\" : 12345678901234567890.10, \"a\" : [ {\"b\":[1]},{\"b\":2},{} ] , \"z\":1} ",
                ),
            ),
            (
                &[
                    r#"{"ids":[1],"rows":[{}],"none":[]}"#,
                    r#"{"rows":[{"a":1}]}"#,
                ],
                Ok(r#"{"ids":[1],"rows":[{},{"a":1}],"none":[]}"#),
            ),
            (
                &[r#"{"ids":["a,]"],"none":[]}"#, r#"{"ids":["\"["]}"#],
                Ok(r#"{"ids":["a,]","\"["],"none":[]}"#),
            ),
            (
                &[r#"{"a":[{}],"b":[{}]}"#],
                Err("it has several lists: `a`, `b`"),
            ),
            (
                &[r#"{"a":[1],"b":[2],"c":[3]}"#],
                Err("it has several lists: `a`, `b`, and more"),
            ),
            (&[r#"{"a":{"b":[1]}}"#], Err("it has no list of items")),
            (&["7"], Err("it has no list of items")),
            (&["[{}]", "[1]"], Err("another list")),
            (&["[1]", "[2],[3]"], Err("another list")),
            (&["[1]", "[2]]"], Err("another list")),
            (&["[1]", "[2] x]"], Err("another list")),
            (&["[1", "[2]"], Err("it is not JSON")),
            (&["[{}]", r#"{"a":[{}]}"#], Err("another list")),
            (&[r#"{"a":[{}]}"#, r#"{"b":[{}]}"#], Err("another list")),
        ] {
            assert_eq!(
                merged(pages).as_deref().map_err(String::as_str),
                expected,
                "{pages:?}"
            );
        }
    }
}
