//! What the token of a client grants: its scopes and claims, compared with the demands of
//! operations, and the tools that it may list.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

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
    pub(crate) fn of_claims(claims: Arc<JsonObject>) -> Self {
        Self {
            scopes: Scopes::Granted(Arc::new(scopes_of(&claims))),
            claims: Some(claims),
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
        let has_scope = |scope: &String| granted.scopes.names(scope);
        if self.scopes.is_empty() || self.scopes.iter().any(has_scope) {
            Permission::Granted
        } else {
            Permission::LacksScope
        }
    }
}

/// `scope` is a string (RFC 8693 section 4.2); some issuers write `scp`, and some an array.
fn scopes_of(claims: &JsonObject) -> BTreeSet<String> {
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
    let is_one = |value: &Value| {
        matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
            && values.contains(value)
    };
    match claim {
        Value::Array(elements) => elements.iter().any(is_one),
        single => is_one(single),
    }
}

/// Scopes of a client.
#[derive(Clone)]
pub(crate) enum Scopes {
    /// All scopes: static tokens have none of their own.
    All,
    /// The scopes that the issuer granted.
    Granted(Arc<BTreeSet<String>>),
}

impl Scopes {
    /// Returns true if the issuer granted that scope.
    pub(crate) fn names(&self, scope: &str) -> bool {
        matches!(self, Self::Granted(granted) if granted.contains(scope))
    }
}

/// Scopes that calls need by what their tools do. Of several, one is enough: a broader one may
/// imply a narrower one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolScopes {
    /// Scopes of read-only tools.
    pub read: Vec<String>,
    /// Scopes of all other tools.
    pub write: Vec<String>,
}

/// Scopes that calls at an endpoint need of a token of the issuer.
#[derive(Clone, Default)]
pub(crate) struct ScopeDemand {
    /// Scopes of the whole server, by what its tools do.
    pub(crate) of_tools: ToolScopes,
    /// Scopes of every call, which a client asks for again with others.
    pub(crate) of_all: Vec<String>,
    /// All scopes that a client may ask for, in order; empty if there is nobody to ask.
    pub(crate) offered: Vec<String>,
}

impl ScopeDemand {
    /// Returns all scopes to request if a client lacks one: a new token replaces the old one, so
    /// those that it has are among them (MCP, "Scope Challenge Handling"). `of_api` are those that
    /// it lacks for the API.
    pub(crate) fn missing(
        &self,
        scopes: &Scopes,
        of_api: &[&str],
        is_read_only: bool,
    ) -> Vec<String> {
        let of_server = self.of_tools.lacking(scopes, is_read_only);
        let wanted: Vec<&str> = of_server
            .into_iter()
            .chain(of_api.iter().copied())
            .collect();
        if wanted.is_empty() || self.offered.is_empty() {
            return wanted.into_iter().map(str::to_owned).collect();
        }
        self.all_with(scopes, &wanted)
    }

    /// The scopes of every call, these, and those that the client has.
    pub(crate) fn all_with(&self, scopes: &Scopes, wanted: &[&str]) -> Vec<String> {
        let needed = |scope: &&String| {
            self.of_all.contains(scope) || wanted.contains(&scope.as_str()) || scopes.names(scope)
        };
        self.offered.iter().filter(needed).cloned().collect()
    }
}

impl ToolScopes {
    /// Returns true if no scope is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }

    /// Returns the scope to request if a call has none of those that it needs.
    pub(crate) fn lacking(&self, scopes: &Scopes, is_read_only: bool) -> Option<&str> {
        let needed = if is_read_only {
            &self.read
        } else {
            &self.write
        };
        let is_met =
            matches!(scopes, Scopes::All) || needed.iter().any(|scope| scopes.names(scope));
        needed.first().filter(|_| !is_met).map(String::as_str)
    }
}

/// The tools of an API that a caller may list at an endpoint; all of them by default.
#[derive(Clone, Default)]
pub(crate) struct ShownTools {
    /// The permission for each tool, by its place; `None` if all are granted.
    pub(crate) permissions: Option<Arc<[Permission]>>,
    /// True if the endpoint serves only tools that count as read-only.
    pub(crate) reads_only: bool,
    /// The names of the meta-tools that call what reads, what writes and what is destructive; `None`
    /// if each tool is called by its own name.
    pub(crate) meta_tools: Option<Arc<[String; 3]>>,
}

/// A tool, as far as it decides who may list it and how it is called.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct NamedTool {
    /// The name of the tool.
    pub(crate) name: Arc<str>,
    /// Its place among the tools of its API.
    pub(crate) place: usize,
    pub(crate) is_read_only: bool,
    pub(crate) is_destructive: bool,
}

impl ShownTools {
    /// Returns true if the tool at that place is one of them.
    pub(crate) fn has(&self, place: usize, is_read_only: bool) -> bool {
        let is_granted =
            |permissions: &Arc<[Permission]>| permissions.get(place) == Some(&Permission::Granted);
        (!self.reads_only || is_read_only) && self.permissions.as_ref().is_none_or(is_granted)
    }

    /// Returns how the caller calls a tool; `None` if it may not list it.
    pub(crate) fn call_of(&self, tool: &NamedTool) -> Option<String> {
        if !self.has(tool.place, tool.is_read_only) {
            return None;
        }
        let Some(meta_tools) = &self.meta_tools else {
            return Some(tool.name.to_string());
        };
        let [reads, writes, destroys] = &**meta_tools;
        let meta_tool = match (tool.is_read_only, tool.is_destructive) {
            (true, _) => reads,
            (false, false) => writes,
            (false, true) => destroys,
        };
        Some(format!("`{meta_tool}` with operation `{}`", tool.name))
    }
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
