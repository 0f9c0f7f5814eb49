//! One pass over the text of a file that shows each of its objects, with the kind of those that are
//! known. Opening a document level by level reads each text as often as it is deep.

use std::borrow::Cow;

use super::object_kind::{ObjectKind, is_extension};
use crate::spec::document::Version;
use crate::spec::members::{scalar_end, string_end};
use crate::spec::node::Node;
use crate::spec::{Span, pointer};

/// A member of an object: its key, and the position of its value.
#[derive(Debug)]
pub(super) struct WalkedMember<'t> {
    pub(super) key: Cow<'t, str>,
    start: usize,
    end: usize,
}

/// An object, shown when all of it was read.
pub(super) struct WalkedObject<'w, 't> {
    /// Its kind; `None` for an object that is not looked through, such as an example.
    pub(super) kind: Option<ObjectKind>,
    pub(super) members: &'w [WalkedMember<'t>],
    walk: &'w Walk<'t>,
    start: usize,
    end: usize,
}

/// Kind of the objects directly within an open object or array.
#[derive(Debug, Clone, Copy)]
enum Contents {
    /// Of unknown kind.
    Anything,
    /// The members of an object of this kind.
    Members(ObjectKind),
    /// Objects of this kind, below so many levels of names.
    Objects(ObjectKind, usize),
}

/// An object or an array that is not closed yet.
#[derive(Debug)]
struct Open {
    start: usize,
    is_object: bool,
    contents: Contents,
    /// Number of members that were open before it.
    outer_members: usize,
    /// The index of the current item.
    item: usize,
}

/// The state of the pass.
struct Walk<'t> {
    text: &'t str,
    file: u32,
    version: Version,
    open: Vec<Open>,
    /// The members of all open objects that were read so far, those of the outermost first.
    members: Vec<WalkedMember<'t>>,
}

/// Calls `visit` with each object of the text of a file, the inner ones first. The kind of its root
/// is given if it is known.
pub(super) fn each_object<'t>(
    (text, file): (&'t str, u32),
    root: Option<ObjectKind>,
    version: Version,
    visit: &mut impl FnMut(&WalkedObject<'_, 't>),
) {
    let walk = Walk {
        text,
        file,
        version,
        open: Vec::new(),
        members: Vec::new(),
    };
    // The text was checked to be JSON when the document was read.
    let _ = walk.run(root, visit);
}

impl<'t> Walk<'t> {
    fn run(
        mut self,
        root: Option<ObjectKind>,
        visit: &mut impl FnMut(&WalkedObject<'_, 't>),
    ) -> Option<()> {
        let bytes = self.text.as_bytes();
        let (mut at, mut awaits_key) = (0, false);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' | b':' => at += 1,
                b',' => {
                    let open = self.open.last_mut()?;
                    awaits_key = open.is_object;
                    open.item += 1;
                    at += 1;
                }
                b'{' | b'[' => {
                    self.begin_value(at);
                    let is_object = *byte == b'{';
                    let contents = self.contents(is_object, root);
                    self.open.push(Open {
                        start: at,
                        is_object,
                        contents,
                        outer_members: self.members.len(),
                        item: 0,
                    });
                    awaits_key = is_object;
                    at += 1;
                }
                b'}' | b']' => {
                    at += 1;
                    self.close(at, visit)?;
                    awaits_key = false;
                }
                b'"' => {
                    let end = string_end(bytes, at)?;
                    if awaits_key {
                        let key = key(self.text.get(at..end)?)?;
                        self.members.push(WalkedMember {
                            key,
                            start: end,
                            end,
                        });
                        awaits_key = false;
                    } else {
                        self.begin_value(at);
                        self.end_value(end);
                    }
                    at = end;
                }
                _ => {
                    let end = scalar_end(bytes, at);
                    self.begin_value(at);
                    self.end_value(end);
                    at = end.max(at + 1);
                }
            }
        }
        Some(())
    }

    /// Returns the kind of the contents of the object or array that begins here.
    fn contents(&self, is_object: bool, root: Option<ObjectKind>) -> Contents {
        let expected = match (self.open.last(), self.members.last()) {
            (None, _) => root.map(|kind| (kind, 0)),
            (Some(around), Some(member)) if around.is_object => match around.contents {
                Contents::Anything => None,
                Contents::Members(kind) => kind.below(&member.key, self.version).flatten(),
                Contents::Objects(kind, levels) => {
                    (!is_extension(&member.key)).then_some((kind, levels))
                }
            },
            (Some(around), _) => match around.contents {
                Contents::Objects(kind, levels) => Some((kind, levels)),
                Contents::Anything | Contents::Members(_) => None,
            },
        };
        match expected {
            Some((kind, 0)) if is_object => Contents::Members(kind),
            Some((kind, 0)) => Contents::Objects(kind, 0),
            Some((kind, levels)) if is_object => Contents::Objects(kind, levels - 1),
            _ => Contents::Anything,
        }
    }

    fn begin_value(&mut self, at: usize) {
        if let (
            Some(Open {
                is_object: true, ..
            }),
            Some(member),
        ) = (self.open.last(), self.members.last_mut())
        {
            member.start = at;
        }
    }

    fn end_value(&mut self, at: usize) {
        if let (
            Some(Open {
                is_object: true, ..
            }),
            Some(member),
        ) = (self.open.last(), self.members.last_mut())
        {
            member.end = at;
        }
    }

    /// Closes the innermost object or array, and shows an object.
    fn close(&mut self, end: usize, visit: &mut impl FnMut(&WalkedObject<'_, 't>)) -> Option<()> {
        let closed = self.open.last()?;
        let (outer_members, kind) = match closed.contents {
            Contents::Members(kind) => (closed.outer_members, Some(kind)),
            Contents::Anything | Contents::Objects(..) => (closed.outer_members, None),
        };
        if closed.is_object {
            visit(&WalkedObject {
                kind,
                members: self.members.get(outer_members..).unwrap_or_default(),
                walk: self,
                start: closed.start,
                end,
            });
        }
        self.open.pop();
        self.members.truncate(outer_members);
        self.end_value(end);
        Some(())
    }

    /// Returns the location of the innermost object, as a JSON Pointer fragment.
    fn place(&self) -> String {
        let mut place = "#".to_owned();
        for (open, inner) in self.open.iter().zip(self.open.iter().skip(1)) {
            let member = inner
                .outer_members
                .checked_sub(1)
                .and_then(|index| self.members.get(index));
            match member.filter(|_| open.is_object) {
                Some(member) => pointer::push(&mut place, &member.key),
                None => pointer::push_index(&mut place, open.item),
            }
        }
        place
    }

    fn node(&self, start: usize, end: usize) -> Node<'t> {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = Span {
            file: self.file,
            start: offset(start),
            end: offset(end),
        };
        Node::at(self.text, span)
    }
}

impl<'t> WalkedObject<'_, 't> {
    /// Returns its location, as a JSON Pointer fragment.
    pub(super) fn place(&self) -> String {
        self.walk.place()
    }

    /// The place of one of its members.
    pub(super) fn place_of(&self, key: &str) -> String {
        let mut place = self.place();
        pointer::push(&mut place, key);
        place
    }

    pub(super) fn node(&self) -> Node<'t> {
        self.walk.node(self.start, self.end)
    }

    pub(super) fn value(&self, member: &WalkedMember<'_>) -> Node<'t> {
        self.walk.node(member.start, member.end)
    }

    /// The value of a key: of one that is written twice, the last.
    pub(super) fn get(&self, key: &str) -> Option<Node<'t>> {
        let member = self.members.iter().rev().find(|member| member.key == key)?;
        Some(self.value(member))
    }
}

/// A key as it is meant, without quotes and escapes.
fn key(quoted: &str) -> Option<Cow<'_, str>> {
    let key = quoted.get(1..quoted.len().checked_sub(1)?)?;
    if key.contains('\\') {
        return Some(Cow::Owned(serde_json::from_str(quoted).ok()?));
    }
    Some(Cow::Borrowed(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_shown_with_its_place_and_kind() {
        let text = r#"{"info": {"a\"b": [[], {"x": 1}]}, "paths": {"/a": {"get": {"parameters": [{"schema": {"type": "string"}}], "responses": {"x-y": {}, "200": {}}}}},
            "components": {"schemas": {"A": {"items": [{"type": 1}]}}}}"#;
        let mut seen = Vec::new();
        each_object(
            (text, 0),
            Some(ObjectKind::ROOT),
            Version::V3_1,
            &mut |object| {
                seen.push(format!(
                    "{} {}",
                    object.place(),
                    object.kind.map_or("-", ObjectKind::name)
                ));
                let keys: Vec<&str> = object
                    .members
                    .iter()
                    .map(|member| member.key.as_ref())
                    .collect();
                let opened: Vec<String> = object
                    .node()
                    .object()
                    .unwrap()
                    .iter()
                    .map(|(key, _)| key.to_owned())
                    .collect();
                assert_eq!(keys, opened);
                for member in object.members {
                    assert_eq!(
                        object.value(member).text(),
                        object
                            .node()
                            .object()
                            .unwrap()
                            .get(&member.key)
                            .unwrap()
                            .text()
                    );
                }
            },
        );
        let expected = [
            "#/info/a\"b/1 -",
            "#/info -",
            "#/paths/~1a/get/parameters/0/schema a schema",
            "#/paths/~1a/get/parameters/0 a parameter",
            "#/paths/~1a/get/responses/x-y -",
            "#/paths/~1a/get/responses/200 a response",
            "#/paths/~1a/get/responses -",
            "#/paths/~1a/get an operation",
            "#/paths/~1a a path item",
            "#/paths -",
            "#/components/schemas/A/items/0 a schema",
            "#/components/schemas/A a schema",
            "#/components/schemas -",
            "#/components the components",
            "# the document",
        ];
        assert_eq!(seen, expected);
    }
}
