//! `openapi-mcp check`: one report of everything that serving a document would show.
//!
//! # Adding a finding
//!
//! - What `serve` reports as well is a `Diagnostic` of the code that reads the document; `check`
//!   shows all of them.
//! - Other findings are made by `of_document`, `of_client`, `of_hints` or `of_list` in
//!   `check/findings.rs`.
//! - A new field of `Finding` is written in `check/format.rs`.
//! - A test in `tests/it/documents/check_findings.rs`.

pub(crate) mod cost;
pub(crate) mod diff;
mod document_faults;
mod findings;
pub(crate) mod format;
mod walk;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::cost::{ClientCost, TagCost, ToolCost};
pub(crate) use self::findings::Finding;
use crate::annotate::ClientProfile;
use crate::api::Api;
use crate::credentials::scheme::scheme_setting;
use crate::spec::operation::security::{self, Requirements};
use crate::spec::{Diagnostic, SecurityScheme, Severity};
use crate::text::{counted, one_line};

/// Results of a check.
#[derive(Serialize)]
pub(crate) struct Report {
    /// Source of the document.
    pub(crate) source: String,
    /// Its title.
    pub(crate) title: String,
    /// Number of operations that became tools.
    pub(crate) tools: usize,
    /// Number of tools that are marked as read-only.
    pub(crate) read_only: usize,
    /// Number of bytes of the answer to `tools/list`.
    pub(crate) bytes: usize,
    /// Approximate number of tokens of that.
    pub(crate) tokens: usize,
    /// Approximate number of tokens that `describe: brief` would add.
    pub(crate) brief_tokens: usize,
    /// The tools that take the most bytes.
    pub(crate) largest: Vec<ToolCost>,
    /// Cost of the tools of each tag, the largest first.
    pub(crate) by_tag: Vec<TagCost>,
    /// Treatment of results by the client of `--client`, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    /// Effect of a long list on clients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) clients: Vec<ClientCost>,
    /// The credentials that the tools need.
    pub(crate) credentials: Vec<CredentialNeed>,
    /// Destinations and credentials of calls if there are tenants, in lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tenants: Vec<String>,
    /// Tools that are called as the user, in lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) as_user: Vec<String>,
    /// Warnings of `serve` at its start.
    pub(crate) warnings: Vec<String>,
    /// Errors first, then warnings, then notes; in each, first what looks more dangerous than it is
    /// served as.
    pub(crate) findings: Vec<Finding>,
}

/// A security scheme that tools use.
#[derive(Serialize)]
pub(crate) struct CredentialNeed {
    /// Its name in the document.
    pub(crate) scheme: String,
    /// Setting of the operator for it.
    pub(crate) setting: String,
    /// Number of tools that use it.
    pub(crate) tools: usize,
}

impl Report {
    /// Returns the number of findings of that severity.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.level == severity)
            .count()
    }
}

/// Looks at an API and at what was found while it was built, with the eyes of a client. The length
/// of the list is judged if the tools are listed, and not if the server `searches`.
pub(crate) fn check(
    source: String,
    api: &Api,
    diagnostics: &[Diagnostic],
    profile: &ClientProfile,
    searches: bool,
) -> Report {
    let tokens = cost::list_tokens(api);
    let tools = || api.tools().iter();
    let mut findings = findings::of_document(api.document(), diagnostics);
    for offered in api.tools() {
        findings.extend(findings::of_client(offered, profile));
        findings.extend(findings::of_hints(offered));
    }
    findings.extend(findings::of_restrictions(api));
    findings.extend(findings::of_masks(api));
    findings.extend(findings::of_missing_tools(api));
    if !searches {
        findings.extend(findings::of_list(api.tools().len(), tokens, profile));
    }
    let mut findings = findings::placed(findings, api);
    findings.sort_by_key(|finding| (Reverse(finding.level), !finding.is_understated));
    Report {
        source,
        title: one_line(api.document().title()),
        tools: api.tools().len(),
        read_only: tools()
            .filter(|offered| offered.hints.is_read_only())
            .count(),
        bytes: cost::list_bytes(api),
        tokens,
        brief_tokens: cost::brief_tokens(api),
        largest: cost::largest_tools(api),
        by_tag: cost::by_tag(api),
        client: profile.is_known().then(|| profile.results_in_words()),
        clients: if searches {
            Vec::new()
        } else {
            cost::client_costs(api.tools().len(), tokens)
        },
        credentials: credential_needs(api),
        tenants: Vec::new(),
        as_user: called_as_user(api),
        warnings: api.warnings().to_vec(),
        findings,
    }
}

/// Use of a security scheme by tools.
pub(crate) struct SchemeUse {
    /// Number of tools that use it.
    pub(crate) tools: usize,
    /// True if no tool can be called without it.
    pub(crate) is_always_required: bool,
}

/// The schemes of the document, and how tools use them, by name.
pub(crate) fn used_schemes(
    api: &Api,
) -> (
    BTreeMap<String, SecurityScheme>,
    BTreeMap<String, SchemeUse>,
) {
    // Their faults were reported when the API was built.
    let (schemes, mut told) = security::schemes(api.document());
    let mut requirements = Requirements::new(api.document(), &schemes, &mut told);
    let mut used: BTreeMap<String, SchemeUse> = BTreeMap::new();
    for offered in api.tools() {
        let needs = requirements.of(&offered.operation, &schemes, &mut told);
        let names: BTreeSet<&String> = needs.iter().flatten().map(|(name, _)| name).collect();
        for name in names {
            let new = || SchemeUse {
                tools: 0,
                is_always_required: true,
            };
            let usage = used.entry(name.clone()).or_insert_with(new);
            usage.tools += 1;
            usage.is_always_required &= needs
                .iter()
                .all(|alternative| alternative.iter().any(|(other, _)| other == name));
        }
    }
    for usage in used.values_mut() {
        usage.is_always_required &= usage.tools == api.tools().len();
    }
    (schemes, used)
}

/// Describes the tools that are called as the user, with their scopes.
fn called_as_user(api: &Api) -> Vec<String> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for asked in api.tools().iter().filter_map(|tool| tool.as_user()) {
        *counts.entry(asked).or_default() += 1;
    }
    let line = |((scheme, scopes), count): ((&str, Option<&str>), usize)| {
        let scopes = match scopes {
            Some(scopes) => format!("the scopes `{}`", one_line(scopes)),
            None => "no scopes: what the user's token then allows, the token endpoint decides"
                .to_owned(),
        };
        format!(
            "`{}`, of {} asks for {scopes}",
            one_line(scheme),
            counted(count, "tool")
        )
    };
    counts.into_iter().map(line).collect()
}

/// The security schemes of all tools, by name.
fn credential_needs(api: &Api) -> Vec<CredentialNeed> {
    let (schemes, used) = used_schemes(api);
    let need = |(name, usage): (String, SchemeUse)| CredentialNeed {
        setting: scheme_setting(&name, schemes.get(&name), &api.credential_place),
        scheme: one_line(&name),
        tools: usage.tools,
    };
    used.into_iter().map(need).collect()
}
