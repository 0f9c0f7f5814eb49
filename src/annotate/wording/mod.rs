//! The effect of an operation by its requirements, which are evidence, and by its words. A word is
//! a guess, so the policies `careful` and `strict` let words only make a tool look more dangerous
//! than its method does; `infer` also lets them make it look less so.

mod caution;
mod evidence;
pub(crate) mod lexicon;
pub(crate) mod operation_id;
mod operation_verbs;

use http::Method;

use self::caution::{Strictness, caution};
pub(crate) use self::evidence::apply_evidence;
use self::operation_verbs::OperationVerbs;
use super::annotations::{Hint, Hints, Reason};
use crate::spec::Operation;

/// Hints of the words of an operation.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wording {
    /// Reason for which it is more dangerous than its method says, for the policy `careful`.
    careful: Option<Reason>,
    /// The same for the policy `strict`.
    pub(crate) strict: Option<Reason>,
    /// The word that says that a POST reads, and whether its description says so as well.
    reads: Option<(&'static str, bool)>,
    /// The word that says that a repeated call changes nothing more.
    sets: Option<&'static str>,
    /// The word that names a local thing.
    near: Option<&'static str>,
}

impl Wording {
    pub(crate) fn of(operation: &Operation) -> Self {
        let is_post = operation.method == Method::POST;
        let is_partial = is_post || operation.method == Method::PATCH;
        let words = OperationVerbs::of(operation);
        let strict = caution(&words, operation, Strictness::Strict);
        Self {
            careful: caution(&words, operation, Strictness::Careful),
            strict,
            reads: evidence::reading_word(&words).filter(|_| is_post && strict.is_none()),
            sets: evidence::setting_word(&words).filter(|_| is_partial),
            near: evidence::near_word(&words),
        }
    }

    /// The hint that the policy `infer` would set although it makes the tool look harmless, and the
    /// word for it.
    pub(crate) fn guess(&self) -> Option<(Hint, &'static str)> {
        let reads = self.reads.map(|(word, _)| (Hint::ReadOnly, word));
        reads.or(self.sets.map(|word| (Hint::Idempotent, word)))
    }

    /// Returns hints as the policy `strict` would have them; those of the operator stay.
    pub(crate) fn strictly(&self, served: &Hints) -> Hints {
        let mut hints = *served;
        let is_operators = |hint| served.get(hint).is_some_and(|by| by.reason.is_operator());
        // What follows from the operator's `readOnlyHint: true` is the operator's as well.
        let reads = served.effective(Hint::ReadOnly) && is_operators(Hint::ReadOnly);
        for (hint, value) in [(Hint::ReadOnly, false), (Hint::Destructive, true)] {
            if let Some(reason) = self.strict.filter(|_| !reads && !is_operators(hint))
                && served.effective(hint) != value
            {
                hints.set(hint, value, reason);
            }
        }
        hints
    }

    /// A method that is safe by its definition is read as by `strict`; what only that marks is not
    /// destructive.
    pub(crate) fn apply_careful(&self, hints: &mut Hints) {
        let is_safe = hints.effective(Hint::ReadOnly);
        match self.strict.filter(|_| is_safe && self.careful.is_none()) {
            Some(reason) => {
                hints.set(Hint::ReadOnly, false, reason);
                hints.set(Hint::Destructive, false, Reason::Method);
            }
            None => apply_caution(hints, self.careful),
        }
    }

    pub(crate) fn apply_strict(&self, hints: &mut Hints) {
        apply_caution(hints, self.strict);
    }

    pub(crate) fn apply_inference(&self, hints: &mut Hints) {
        // A value that is already known keeps its reason.
        let mut say = |hint: Hint, value: bool, word| {
            if hints.get(hint).map(|sourced| sourced.value) != Some(value) {
                hints.set(hint, value, Reason::Word(word));
            }
        };
        if let Some(word) = self.near {
            say(Hint::OpenWorld, false, word);
        }
        if let Some((word, true)) = self.reads {
            say(Hint::ReadOnly, true, word);
            say(Hint::Destructive, false, word);
            say(Hint::Idempotent, true, word);
        } else if let Some(word) = self.sets {
            // A word does not undo that a precondition makes a repeated call fail.
            let reason = hints.get(Hint::Idempotent).map(|sourced| sourced.reason);
            let is_proven = matches!(reason, Some(Reason::Evidence(_)));
            if !is_proven && !hints.effective(Hint::Idempotent) {
                hints.set(Hint::Idempotent, true, Reason::Word(word));
            }
        }
    }
}

/// Makes hints as dangerous as a reason says.
fn apply_caution(hints: &mut Hints, reason: Option<Reason>) {
    let Some(reason) = reason else { return };
    if hints.effective(Hint::ReadOnly) {
        hints.set(Hint::ReadOnly, false, reason);
    }
    hints.set(Hint::Destructive, true, reason);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::{Document, operations};

    /// `rdi`, with `-` for what is false, of the operation with that name, method, path and
    /// description.
    fn hints_of(
        apply: fn(&Wording, &mut Hints),
        method: &str,
        path: &str,
        id: &str,
        description: &str,
    ) -> String {
        let id = Some(id).filter(|id| !id.is_empty());
        let operation = json!({ "operationId": id, "description": description });
        let text = json!({"openapi": "3.1.0", "paths": { path: { method: operation } }})
            .to_string()
            .replace(r#""operationId":null,"#, "");
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        let mut hints = Hints::of_method(&operations[0].method);
        apply(&Wording::of(&operations[0]), &mut hints);
        let letters = Hint::ALL.into_iter().zip("rdi".chars());
        letters
            .map(|(hint, letter)| if hints.effective(hint) { letter } else { '-' })
            .collect()
    }

    fn careful(method: &str, path: &str, id: &str, description: &str) -> String {
        hints_of(Wording::apply_careful, method, path, id, description)
    }

    fn strict(method: &str, path: &str, id: &str, description: &str) -> String {
        hints_of(Wording::apply_strict, method, path, id, description)
    }

    fn inferred(method: &str, path: &str, id: &str, description: &str) -> String {
        hints_of(
            |wording, hints| {
                wording.apply_inference(hints);
                wording.apply_strict(hints);
            },
            method,
            path,
            id,
            description,
        )
    }

    #[test]
    fn a_post_that_removes_ends_or_moves_something_is_destructive() {
        for (path, id, description) in [
            ("/volumes/prune", "VolumePrune", ""),
            ("/v3/kv/deleterange", "KV_DeleteRange", ""),
            ("/pads/{id}/move", "", ""),
            ("/a", "archiveFeatures", ""),
            ("/a", "toggleFeatureEnvironmentOff", ""),
            ("/images/{name}/untag", "ImageUntag", ""),
            ("/orders/{id}/cancellation", "", ""),
            ("/orders/{id}:cancel", "", ""),
            ("/a", "bulkRemoveItems", ""),
            ("/a", "issues/close", ""),
            ("/a", "Issues_Close", ""),
            ("/a", "collection_delete", ""),
            ("/tasks/{id}/reject/", "tasks_reject_create", ""),
            (
                "/contents/{path}/checkpoints/{id}",
                "",
                "Restore a file to a particular checkpointed state",
            ),
            ("/a", "deleteuser", ""),
            ("/a", "killall", ""),
            ("/flows/{id}/drain", "drain_flows__id__drain_post", ""),
            ("/sql", "execute", "Runs SQL"),
            ("/branches/{id}/push", "forcePush", ""),
            (
                "/v2/apps/{app_id}/rollback",
                "apps_create_rollback",
                "Rollback an app to a previous deployment.",
            ),
        ] {
            assert_eq!(
                careful("post", path, id, description),
                "-d-",
                "{path} {id} {description}"
            );
            assert_eq!(
                strict("post", path, id, description),
                "-d-",
                "{path} {id} {description}"
            );
        }
    }

    #[test]
    fn a_post_that_names_a_thing_or_computes_stays_what_it_is() {
        for (path, id, description) in [
            ("/archives", "postArchives", "Creates an archive."),
            (
                "/reverse",
                "reverse",
                "Performs a reverse geocoding search.",
            ),
            (
                "/v2/apps/{id}/rollback/validate",
                "apps_validate_rollback",
                "",
            ),
            ("/droplets", "createDroplet", ""),
            ("/banners", "createBanner", ""),
            ("/a", "createDeletionRequest", ""),
            (
                "/settings/bcc_email_archives",
                "BCCEmailArchive_PostBCCEmailArchive",
                "Creates a BCC email archive.",
            ),
            ("/login", "login", ""),
            ("/users", "createUsers_users_post", ""),
            ("/orders", "orders_create", ""),
        ] {
            assert_eq!(careful("post", path, id, description), "---", "{path} {id}");
            assert_eq!(strict("post", path, id, description), "---", "{path} {id}");
        }
        assert_eq!(careful("post", "/a", "listResetTokens", ""), "---");
        assert_eq!(
            strict("post", "/a", "listResetTokens", ""),
            "-d-",
            "no position excuses it"
        );
    }

    #[test]
    fn strictly_a_post_that_changes_something_or_says_nothing_is_destructive() {
        for (path, id, description) in [
            ("/a", "updateUser", ""),
            ("/a", "bulk_set_state", ""),
            ("/vectors/upsert", "", ""),
            ("/kv/put", "KV_Put", ""),
            ("/kv/txn", "KV_Txn", ""),
            ("/change-password", "", ""),
            (
                "/v1/credit_notes/{id}",
                "PostCreditNotesId",
                "Updates an existing credit note.",
            ),
            (
                "/alerts",
                "postSilences",
                "Post a new silence or update an existing one",
            ),
            ("/rates", "taxRates", "Create or update tax rate"),
            ("/logout", "logout", ""),
            ("/things", "", ""),
        ] {
            assert_eq!(careful("post", path, id, description), "---", "{path} {id}");
            assert_eq!(strict("post", path, id, description), "-d-", "{path} {id}");
        }
    }

    #[test]
    fn c_a_get_that_harms_is_neither_a_read_nor_harmless() {
        for (path, id) in [
            ("/users/{id}/delete", ""),
            ("/users/{id}/delete", "userAction"),
            ("/a", "restartServer"),
            ("/a", "resetPassword"),
            ("/a", "serverTerminate"),
            ("/a", "getAndDelete"),
            ("/a", "get_and_then_delete_user"),
            ("/a", "UsersController_deleteUser"),
            ("/a", "adminDeleteUser"),
            ("/a", "bulkRemoveItems"),
            ("/a6/{id}:delete", ""),
            ("/a8/{id}/delete/", ""),
            ("/a", "GET_DeleteStack"),
            ("/deletePad", "deletePadUsingGET"),
            ("/setText", "setTextUsingGET"),
            ("/sendClientsMessage", "sendClientsMessageUsingGET"),
            ("/createUser", ""),
            ("/appendText", "appendTextUsingGET"),
            ("/integrations/productsSync", ""),
            ("/health/drain", "drain_health_drain_get"),
            ("/users/{id}/cancel", ""),
            ("/dropwebhook", "dropwebhook"),
            ("/a/{id}", "Removeallpersonaldata"),
            ("/killall", "op"),
            ("/#Action=DeleteStack", "op"),
            ("/#Action=RunInstances", "op"),
            ("/a", "users.create"),
            ("/a", "getOrCreateUser"),
            ("/emptyTrash", ""),
            ("/user/unlink", ""),
            ("/user/rm", ""),
            ("/user/del", ""),
            ("/d%65lete/{id}", "op"),
        ] {
            let strict = strict("get", path, id, "");
            assert_eq!(strict, "-d-", "{path} {id}");
        }
        for (path, id) in [
            ("/users/delete/{id}", ""),
            ("/session", "logout"),
            ("/login", ""),
            ("/a", "getDelete"),
            ("/v1/Logout/{id}/now", "op"),
        ] {
            assert_eq!(strict("get", path, id, ""), "-d-", "{path} {id}");
        }
        assert_eq!(
            careful("get", "/session", "logout", ""),
            "---",
            "what only `strict` marks is not destructive"
        );
    }

    #[test]
    fn a_get_that_names_a_thing_reads() {
        for (path, id, description) in [
            ("/deleted", "listDeleted", ""),
            ("/a", "listResetTokens", ""),
            ("/dropdown", "dropdownItems", ""),
            ("/routes/stop/{id}", "Departures_GetForStop", ""),
            ("/tokens", "getByCancelReason", ""),
            ("/worklog/deleted", "getDeletedSince", ""),
            ("/deletedcertificates", "GetDeletedCertificates", ""),
            ("/deleteddevices", "op", ""),
            ("/cancellations", "op", ""),
            ("/rejectedSenders", "op", ""),
            ("/evictionpolicy", "op", ""),
            ("/suppression/unsubscribes", "op", ""),
            ("/clearances", "op", ""),
            ("/droplets", "op", ""),
            ("/bankaccounts", "op", ""),
            ("/stopwatches", "op", ""),
            ("/stop/{id}/departures", "op", ""),
            ("/a", "UpdateLocations_Get", ""),
            ("/a", "UpdateLocations_ListByGroup", ""),
            ("/a", "settings.sendAs.get", ""),
            ("/a", "Get earnings by start date", ""),
            ("/a", "Get_Earning_by_Code_and_Start_Date", ""),
            ("/a", "orderInfo", ""),
            ("/a", "getTermsAndConditions", ""),
            ("/recipe/autocomplete", "Recipe_AutoComplete", ""),
            ("/change-log", "", ""),
            ("/archives", "", ""),
            ("/send/saveData", "", "Download the data"),
            ("/repos/{id}/lock", "Lock_GetRepoLock", ""),
            ("/guilds/{id}/prune", "preview_prune_guild", ""),
            ("/invites/{code}", "invite_resolve", ""),
            ("/studies/{id}/archive", "", "Create ZIP archive"),
            ("/studies/{id}/media", "", "Create DICOMDIR media"),
            ("/csrf-token", "create_csrf_token", ""),
            (
                "/check_for_update",
                "",
                "Clubhouse uses this to check for updates",
            ),
            (
                "/v1/system/update/deployments",
                "update_deployments_list",
                "List all update deployments",
            ),
            ("/createDiffHTML", "createDiffHTMLUsingGET", ""),
            ("/stops/{id}", "", ""),
            ("/archive", "", ""),
            ("/trash", "", ""),
            ("/ban", "", ""),
            ("/order/{id}/cancel-policy", "", ""),
            ("/items", "", "Ignores deleted items and returns the rest"),
            (
                "/v1/log-drains/{id}",
                "getConfigurableLogDrain",
                "Retrieves a Configurable Log Drain",
            ),
            (
                "/events",
                "SystemEvents",
                "Monitor events.\n\nContainers report these events: `attach`",
            ),
            ("/instance/migrate/status", "instance_migrate_status", ""),
            (
                "/v3/runs/{run_ref}",
                "Runs_ForRun",
                "View all trip/service runs for a specific run_ref",
            ),
        ] {
            assert_eq!(strict("get", path, id, description), "r-i", "{path} {id}");
        }
    }

    #[test]
    fn c_a_post_that_reads_is_a_read() {
        for (path, id, description) in [
            ("/pets/search", "", "Search the pets."),
            ("/pets", "searchPets", "Searches for pets"),
            ("/pets", "pets/list-all", "Lists all pets"),
            ("/a", "get_pet", "Returns a pet"),
            ("/a", "findPet", "This method finds a pet"),
            ("/a", "exportPets", "Download the pets"),
            (
                "/flows/count",
                "count_flows_flows_count_post",
                "Count flows.",
            ),
            ("/a", "calculatePrice", "Calculates the price"),
        ] {
            let expected = if id == "exportPets" { "---" } else { "r-i" };
            assert_eq!(
                inferred("post", path, id, description),
                expected,
                "{path} {id}"
            );
        }
        for (id, description) in [
            ("searchPets", ""),
            ("searchPets", "Pets and more"),
            ("graphqlQuery", ""),
            ("sqlQuery", "Runs a statement"),
            ("emptyList", "Empties the list"),
            ("getAndDelete", "Gets and deletes"),
            ("createSearch", "Search the pets"),
            ("findPet", "Finds a pet or updates it"),
        ] {
            assert!(
                inferred("post", "/a", id, description).starts_with('-'),
                "{id} {description}"
            );
        }
        assert_eq!(
            inferred(
                "post",
                "/messages/{id}/translate",
                "translateMessage",
                "Translates a message"
            ),
            "---"
        );
    }

    #[test]
    fn c_what_sets_something_is_idempotent_and_destructive() {
        for id in [
            "setName",
            "updatePet",
            "configurePet",
            "putPet",
            "upsertPet",
            "replacePet",
        ] {
            assert_eq!(inferred("post", "/a", id, ""), "-di", "{id}");
            assert_eq!(inferred("patch", "/a", id, ""), "-di", "{id}");
            assert_eq!(inferred("put", "/a", id, ""), "-di", "{id}");
        }
    }

    #[test]
    fn c_nothing_that_may_harm_becomes_harmless() {
        for (method, path, id, expected) in [
            ("delete", "/a", "getA", "-di"),
            ("delete", "/a", "updateA", "-di"),
            ("put", "/a", "setAndReset", "-di"),
            ("post", "/a", "getAndDelete", "-d-"),
            ("post", "/a/{id}/revoke", "searchTokens", "-d-"),
            ("patch", "/a", "updateAndRemove", "-d-"),
            ("post", "/a", "purge", "-d-"),
            ("post", "/a", "cancelOrder", "-d-"),
            ("trace", "/a", "searchPets", "-d-"),
            ("trace", "/a", "purge", "-d-"),
        ] {
            assert_eq!(
                inferred(method, path, id, "Gets it"),
                expected,
                "{method} {path} {id}"
            );
        }
    }

    #[test]
    fn c_near_things_are_closed() {
        let text =
            r#"{"openapi":"3.1.0","paths":{"/session":{"get":{"operationId":"getSession"}}}}"#;
        let (operations, _) = operations(&Document::parse(text.as_bytes().to_vec(), None).unwrap());
        let mut hints = Hints::of_method(&operations[0].method);
        Wording::of(&operations[0]).apply_inference(&mut hints);
        assert!(!hints.effective(Hint::OpenWorld));
    }
}
