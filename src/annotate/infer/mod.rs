//! Policy `infer`: what the words of an operation's name suggest. A name is a guess, so the hints follow it only if the operator
//! asks for that, and where it disagrees with another rule the more careful one wins. What is enforced always counts the
//! dangerous words (`enforcement`).

mod caution;
pub(crate) mod evidence;
mod operation_name;
mod words;

use http::Method;

pub(crate) use self::caution::apply_caution;
use self::operation_name::NameText;
use self::words::WordList;
pub(crate) use self::words::is_verb;
use super::annotations::{Hint, Hints, Reason};
use crate::spec::Operation;

/// Corrects the hints by the words of the operation's name. `local`: the operator says that the API deals with nothing outside.
pub(crate) fn apply_inference(hints: &mut Hints, operation: &Operation, local: bool) {
    let text = NameText::of(operation);
    let name = text.name();
    // A value that is already known keeps its reason.
    let mut say = |hint: Hint, value: bool, word| {
        if hints.get(hint).map(|sourced| sourced.value) != Some(value) {
            hints.set(hint, value, Reason::Word(word));
        }
    };
    if local && let Some(word) = name.any(WordList::Near) {
        say(Hint::OpenWorld, false, word);
    }
    if let Some(word) = name.harms(|word| word.is_in(WordList::Harms)) {
        say(Hint::ReadOnly, false, word);
        say(Hint::Destructive, true, word);
        return;
    }
    let is_open = matches!(operation.method, Method::POST | Method::PUT | Method::PATCH);
    if !is_open || name.any(WordList::Writes).is_some() || name.joins_unknown_word() {
        return;
    }
    let read = name
        .reads()
        .filter(|_| operation.method == Method::POST && name.any(WordList::Changes).is_none());
    let set = name.begins(WordList::Sets);
    // An operation whose name hints at harm stays as careful as its method.
    if (read.is_none() && set.is_none()) || name.hints_at_harm() {
        return;
    }
    if let Some(word) = read {
        say(Hint::ReadOnly, true, word);
        say(Hint::Destructive, false, word);
        say(Hint::Idempotent, true, word);
    } else if let Some(word) = set {
        // A word does not undo that the method replaces what was there (MCP: only additive updates are not destructive), nor
        // that a precondition makes a repeated call fail.
        let proven = hints
            .get(Hint::Idempotent)
            .is_some_and(|idempotent| matches!(idempotent.reason, Reason::Evidence(_)));
        if !proven && !hints.effective(Hint::Idempotent) {
            hints.set(Hint::Idempotent, true, Reason::Word(word));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    /// `rdio`, with `-` for what is false.
    fn inferred(method: &str, path: &str, id: &str, local: bool) -> String {
        let id = if id.is_empty() {
            String::new()
        } else {
            format!(r#""operationId":"{id}""#)
        };
        let text = format!(r#"{{"openapi":"3.1.0","paths":{{"{path}":{{"{method}":{{{id}}}}}}}}}"#);
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        let mut hints = Hints::of_method(&operations[0].method);
        apply_inference(&mut hints, &operations[0], local);
        let letters = Hint::ALL.into_iter().zip("rdio".chars());
        letters
            .map(|(hint, letter)| if hints.effective(hint) { letter } else { '-' })
            .collect()
    }

    #[test]
    fn c_a_post_that_reads_is_a_read() {
        for (path, id) in [
            ("/pets/search", ""),
            ("/pets", "searchPets"),
            ("/pets", "pets/list-all"),
            ("/a", "showPet"),
            ("/a", "get_pet"),
            ("/a", "readPet"),
            ("/a", "findPet"),
            ("/a", "queryPets"),
            ("/a", "lookupPet"),
            ("/a", "countPets"),
            ("/a", "exportPets"),
            ("/a", "downloadPet"),
            ("/reports/search", "reportsSearchPost"),
            ("/a", "listDeletedNot"),
        ] {
            let expected = if id == "listDeletedNot" || id == "reportsSearchPost" {
                "---o"
            } else {
                "r-io"
            };
            assert_eq!(inferred("post", path, id, false), expected, "{path} {id}");
        }
    }

    #[test]
    fn c_what_sets_something_is_idempotent_and_as_destructive_as_its_method() {
        for id in ["setName", "updatePet", "configurePet", "putPet", "upsertPet", "replacePet"] {
            assert_eq!(inferred("post", "/a", id, false), "--io", "{id}");
            assert_eq!(inferred("patch", "/a", id, false), "-dio", "{id}");
            assert_eq!(inferred("put", "/a", id, false), "-dio", "{id}");
        }
    }

    #[test]
    fn c_nothing_that_may_harm_becomes_harmless() {
        for (method, path, id, expected) in [
            ("delete", "/a", "getA", "-dio"),
            ("delete", "/a", "updateA", "-dio"),
            ("put", "/a", "setAndReset", "-dio"),
            ("post", "/a", "getAndDelete", "-d-o"),
            ("post", "/a/revoke", "searchTokens", "-d-o"),
            ("post", "/a", "searchdeleteall", "---o"),
            ("patch", "/a", "updateRemovedItems", "-d-o"),
            ("post", "/a", "updateRemovedItems", "---o"),
            ("post", "/a", "purge", "-d-o"),
            ("post", "/a", "cancelOrder", "-d-o"),
        ] {
            assert_eq!(inferred(method, path, id, false), expected, "{method} {path} {id}");
        }
    }

    #[test]
    fn c_a_get_that_harms_is_neither_a_read_nor_harmless() {
        for (path, id) in [
            ("/users/{id}/delete", ""),
            ("/users/{id}/delete", "userAction"),
            ("/session", "logout"),
            ("/a", "restartServer"),
            ("/a", "resetPassword"),
            ("/a", "serverTerminate"),
            ("/a", "getAndDelete"),
            ("/a", "get_and_then_delete_user"),
            ("/users/delete/{id}", ""),
            ("/a", "UsersController_deleteUser"),
            ("/a", "adminDeleteUser"),
            ("/a", "bulkRemoveItems"),
            ("/a6/{id}:delete", ""),
            ("/a8/{id}/delete/", ""),
            ("/a", "getDelete"),
            ("/a", "GET_DeleteStack"),
        ] {
            assert_eq!(inferred("get", path, id, false), "-d-o", "{path} {id}");
        }
        for (path, id) in [
            ("/deleted", "listDeleted"),
            ("/a", "listResetTokens"),
            ("/dropdown", "dropdownItems"),
            ("/routes/stop/{id}", "Departures_GetForStop"),
            ("/tokens", "getByCancelReason"),
        ] {
            assert_eq!(inferred("get", path, id, false), "r-io", "{path} {id}");
        }
    }

    #[test]
    fn c_a_write_that_also_names_a_read_stays_a_write() {
        for id in [
            "createSearch",
            "startExport",
            "markAsRead",
            "addToList",
            "getOrCreate",
            "sendDownload",
            "updateList",
        ] {
            assert!(inferred("post", "/a", id, false).starts_with("--"), "{id}");
        }
    }

    #[test]
    fn c_a_word_that_and_joins_to_a_reading_one_ends_its_harmlessness() {
        for id in [
            "showAndHide",
            "fetchAndAck",
            "getAndConsume",
            "findAndTag",
            "find_pets_and_tag_them",
            "listThenArchive",
            "searchOrDo",
            "updateAndPing",
        ] {
            assert_eq!(inferred("post", "/a", id, false), "---o", "{id}");
        }
        assert_eq!(inferred("post", "/search-and-tag", "searchPets", false), "---o");
        for id in ["findAndCount", "searchAndThenExport"] {
            assert_eq!(inferred("post", "/a", id, false), "r-io", "{id}");
        }
    }

    #[test]
    fn c_near_things_are_closed_only_where_the_operator_says_that_the_api_is_local() {
        assert_eq!(inferred("get", "/session", "getSession", true), "r-i-");
        assert_eq!(inferred("get", "/session", "getSession", false), "r-io");
        assert_eq!(inferred("get", "/pets", "getPets", true), "r-io");
    }

    #[test]
    fn c_a_method_that_says_nothing_learns_only_what_is_careful() {
        assert_eq!(inferred("trace", "/a", "searchPets", false), "-d-o");
        assert_eq!(inferred("trace", "/a", "purge", false), "-d-o");
    }
}
