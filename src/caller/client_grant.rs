//! The scopes and claims that the token of a client grants, compared with the demands of
//! operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::scopes::Scopes;
use crate::json::{JsonObject, member_at};
use crate::spec::operation::rules::AccessDemand;

/// Scopes and claims that the token of a client grants.
#[derive(Clone)]
pub(crate) struct ClientGrant {
    pub(crate) scopes: Scopes,
    /// Claims of its verified access token.
    pub(crate) claims: Option<Arc<JsonObject>>,
    /// The token of `auth_tokens` that it is, if it is one.
    pub(crate) token: Option<Arc<TokenClaims>>,
}

/// Token of `auth_tokens`.
pub(crate) struct TokenClaims {
    /// Index among the tokens with names.
    pub(crate) place: usize,
    pub(crate) name: String,
    /// Claims for rules of `access` alone, because they are not signed.
    pub(crate) claims: JsonObject,
}

/// Grant of a caller without a token.
pub(crate) static NO_TOKEN: ClientGrant = ClientGrant {
    scopes: Scopes::All,
    claims: None,
    token: None,
};

impl ClientGrant {
    /// Returns what an access token with these claims grants.
    pub(crate) fn of_claims(claims: JsonObject) -> Self {
        Self {
            scopes: Scopes::Granted(Arc::new(scopes_of(&claims))),
            claims: Some(Arc::new(claims)),
            token: None,
        }
    }

    /// Returns the claims that rules of `access` compare.
    fn access_claims(&self) -> Option<&JsonObject> {
        match &self.token {
            Some(token) => Some(&token.claims),
            None => self.claims.as_deref(),
        }
    }

    /// Returns the scopes that rules of `access` compare; none for a static token without scopes.
    fn access_scopes(&self) -> Option<&BTreeSet<String>> {
        match &self.scopes {
            Scopes::All => None,
            Scopes::Granted(granted) => Some(granted),
        }
    }
}

/// Permission of a caller for an operation, the widest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Permission {
    /// The caller may list and call it.
    Granted,
    /// The caller needs a token with another scope. The operation is not listed.
    LacksScope,
    /// The operation does not exist for the caller.
    Denied,
}

impl AccessDemand {
    /// Returns the permission of a caller for operations with this demand.
    pub(crate) fn judge(&self, granted: &ClientGrant) -> Permission {
        let claims = granted.access_claims();
        let has_value = |(place, values): &(String, Vec<Value>)| {
            let found = claims.and_then(|claims| member_at(claims, place));
            found.is_some_and(|found| is_one_of(found, values))
        };
        if !self.claims.iter().all(has_value) {
            return Permission::Denied;
        }
        let scopes = granted.access_scopes();
        let has_scope = |scope: &String| scopes.is_some_and(|scopes| scopes.contains(scope));
        if self.scopes.is_empty() || self.scopes.iter().any(has_scope) {
            Permission::Granted
        } else {
            Permission::LacksScope
        }
    }
}

/// `scope` is a string (RFC 8693 section 4.2); some issuers write `scp`, and some an array.
pub(crate) fn scopes_of(claims: &JsonObject) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for claim in ["scope", "scp"] {
        match claims.get(claim) {
            Some(Value::String(text)) => {
                found.extend(text.split_ascii_whitespace().map(str::to_owned));
            }
            Some(Value::Array(items)) => {
                found.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => {}
        }
    }
    found
}

/// Returns true if a claim, or an element of it if it is a list, is one of the values. Types must
/// be the same, and numbers written alike.
fn is_one_of(claim: &Value, values: &[Value]) -> bool {
    match claim {
        Value::Array(elements) => elements
            .iter()
            .any(|element| is_text_or_number(element) && values.contains(element)),
        single => is_text_or_number(single) && values.contains(single),
    }
}

fn is_text_or_number(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn granted(claims: &str) -> ClientGrant {
        ClientGrant {
            scopes: Scopes::Granted(Arc::new(BTreeSet::from(["read".to_owned()]))),
            claims: Some(Arc::new(serde_json::from_str(claims).unwrap())),
            token: None,
        }
    }

    #[test]
    fn a_claim_is_compared_by_type_and_value() {
        for (claims, place, value, expected) in [
            (r#"{"groups": "ops"}"#, "groups", json!("ops"), true),
            (
                r#"{"groups": ["dev", "ops"]}"#,
                "groups",
                json!("ops"),
                true,
            ),
            (
                r#"{"groups": ["dev", "ops"]}"#,
                "groups",
                json!("op"),
                false,
            ),
            (r#"{"groups": "ops dev"}"#, "groups", json!("ops"), false),
            (r#"{"groups": "OPS"}"#, "groups", json!("ops"), false),
            (r#"{"groups": [["ops"]]}"#, "groups", json!("ops"), false),
            (
                r#"{"groups": {"ops": true}}"#,
                "groups",
                json!("ops"),
                false,
            ),
            (r#"{"groups": null}"#, "groups", json!("null"), false),
            (r#"{"groups": []}"#, "groups", json!("ops"), false),
            ("{}", "groups", json!("ops"), false),
            (r#"{"level": 3}"#, "level", json!(3), true),
            (r#"{"level": 3.0}"#, "level", json!(3), false),
            (r#"{"level": "3"}"#, "level", json!(3), false),
            (r#"{"level": 3}"#, "level", json!("3"), false),
            (
                r#"{"level": 9007199254740993}"#,
                "level",
                json!(9_007_199_254_740_992_i64),
                false,
            ),
            (r#"{"staff": true}"#, "staff", json!(true), true),
            (r#"{"staff": "true"}"#, "staff", json!(true), false),
            (r#"{"staff": 1}"#, "staff", json!(true), false),
            (
                r#"{"https://acme.example/roles": ["a"]}"#,
                "https://acme.example/roles",
                json!("a"),
                true,
            ),
            (
                r#"{"realm": {"roles": ["a"]}}"#,
                "/realm/roles",
                json!("a"),
                true,
            ),
            (
                r#"{"realm": {"roles": ["a"]}}"#,
                "realm.roles",
                json!("a"),
                false,
            ),
            (
                r#"{"realm": [{"role": "a"}]}"#,
                "/realm/0/role",
                json!("a"),
                true,
            ),
            (r#"{"a/b": {"c~d": "x"}}"#, "/a~1b/c~0d", json!("x"), true),
            (r#"{"/x": "y"}"#, "/~1x", json!("y"), true),
            (r#"{"/x": "y"}"#, "/x", json!("y"), false),
        ] {
            let demand = AccessDemand {
                scopes: Vec::new(),
                claims: vec![(place.to_owned(), vec![json!("other"), value])],
            };
            let expected = if expected {
                Permission::Granted
            } else {
                Permission::Denied
            };
            assert_eq!(demand.judge(&granted(claims)), expected, "{claims} {place}");
            assert_eq!(demand.judge(&NO_TOKEN), Permission::Denied, "{place}");
        }
    }

    #[test]
    fn of_scopes_one_is_enough_and_a_claim_that_is_missing_weighs_more() {
        let demand = |scopes: &[&str], group: Option<&str>| AccessDemand {
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            claims: group
                .map(|group| ("groups".to_owned(), vec![json!(group)]))
                .into_iter()
                .collect(),
        };
        let granted = granted(r#"{"groups": ["ops"]}"#);
        for (demand, expected) in [
            (demand(&["admin", "read"], None), Permission::Granted),
            (demand(&["admin"], None), Permission::LacksScope),
            (demand(&["admin"], Some("ops")), Permission::LacksScope),
            (demand(&["admin"], Some("sre")), Permission::Denied),
            (demand(&["read"], Some("ops")), Permission::Granted),
        ] {
            assert_eq!(demand.judge(&granted), expected, "{demand:?}");
        }
        assert_eq!(
            demand(&["read"], None).judge(&NO_TOKEN),
            Permission::LacksScope
        );
    }
}
