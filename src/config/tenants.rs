//! The tenants of an API: the source of their names, and the destination and the credentials of the
//! calls of each.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::auth::resolve_auth;
use super::headers::read_client_header;
use super::problems::{Problems, join_path};
use super::settings::{ApiSettings, TenantSettings};
use super::transport::Transport;
use super::values::{check_claim, read_base_url};
use crate::credentials::values::Credentials;
use crate::proxy::{TenantEntry, TenantOptions, TenantSource};
use crate::text;

/// The tenants of an API with their credentials; everything wrong with them is pushed to
/// `problems`. `headers` are those of every request.
pub(crate) fn resolve_tenants(
    api: &ApiSettings,
    headers: &HeaderMap,
    problems: &mut Problems,
) -> Option<TenantOptions> {
    let settings = api.tenants.as_ref()?;
    for (name, _) in headers.iter().filter(|(_, value)| value.is_sensitive()) {
        problems.push(format!(
            "the header `{name}` is a credential, and would be sent to each of the tenants; give it under `auth` of an entry of `tenants`"
        ));
    }
    let source = resolve_source(settings, problems);
    if settings.entries.is_empty() {
        problems.push("`tenants` has no entry, and every call would be refused; write `entries: { VALUE: { base_url: … } }`");
    }
    let mut entries = BTreeMap::new();
    for (value, entry) in &settings.entries {
        let place = join_path("tenants.entries", value);
        if value.trim() != value || value.is_empty() || value.chars().any(char::is_control) {
            problems.push(format!(
                "`{place}`: no header or claim of a tenant is empty or begins or ends with white space"
            ));
        }
        let setting = format!("`{}`", join_path(&place, "base_url"));
        if entry.base_url.contains(['{', '}']) {
            problems.push(format!(
                "{setting} holds braces, and no part of a URL is made of a claim or a header; write the whole URL of this tenant"
            ));
        }
        let base_url = read_base_url(&setting, &entry.base_url);
        let credentials = Credentials {
            optional: api.credentials.allow_missing_credentials.unwrap_or(false),
            tenant: Some(value.clone()),
            ..resolve_auth(&join_path(&place, "auth"), &entry.auth, problems)
        };
        if let Some((scheme, _)) = credentials
            .clients
            .iter()
            .find(|(_, client)| client.logs_in())
        {
            problems.push(format!(
                "`{place}.auth.{scheme}` has an address for logins: a login is that of one person, and tenants cannot have one"
            ));
        }
        match base_url {
            Ok(base_url) => {
                entries.insert(
                    value.clone(),
                    TenantEntry {
                        base_url,
                        credentials,
                    },
                );
            }
            Err(problem) => problems.push(problem),
        }
    }
    let with_credentials = settings
        .entries
        .values()
        .filter(|entry| !entry.auth.is_empty())
        .count();
    if settings.header.is_some() && with_credentials > 1 {
        problems.push(format!(
            "`tenants`: {with_credentials} tenants have credentials, and a header only says which one a client wants; with `claim`, its access token proves it"
        ));
    }
    Some(TenantOptions {
        source: source?,
        entries,
    })
}

fn resolve_source(settings: &TenantSettings, problems: &mut Problems) -> Option<TenantSource> {
    let claim = settings.claim.as_deref().map(str::trim);
    match (claim, &settings.header) {
        (Some(claim), None) => {
            let read = problems.ok("`tenants.claim`", check_claim(claim));
            read.map(|()| TenantSource::Claim(claim.to_owned()))
        }
        (None, Some(header)) => {
            let read = problems.ok("`tenants.header`", read_client_header(header));
            read.map(TenantSource::Header)
        }
        (Some(_), Some(_)) => {
            problems.push("`tenants` has both `claim` and `header`; keep one of them");
            None
        }
        (None, None) => {
            problems.push("`tenants` does not say what tells the tenant; add `claim: NAME`, or `header: NAME`");
            None
        }
    }
}

/// Checks that clients of the transport can name their tenant.
pub(crate) fn check_tenant_source(
    tenants: Option<&TenantOptions>,
    transport: &Transport,
) -> Option<String> {
    let is_claim = matches!(tenants?.source, TenantSource::Claim(_));
    let why = transport.lacks_value_of_client(is_claim)?;
    Some(format!("`tenants`: the source of the tenant is {why}"))
}

/// Describes the source of tenants, and each of them in a line: its value, the destination of its
/// calls, and the schemes that it has credentials for.
pub(crate) fn describe_tenants(tenants: &TenantOptions) -> Vec<String> {
    let source = format!(
        "calls go to the base URL of the client's tenant, whose name comes {}:",
        tenants.source.describe()
    );
    let line = |(value, entry): (&String, &TenantEntry)| {
        let schemes: Vec<String> = entry
            .credentials
            .schemes
            .keys()
            .map(|scheme| format!("`{}`", text::one_line(scheme)))
            .collect();
        let credentials = if schemes.is_empty() {
            "without credentials".to_owned()
        } else {
            format!("with {}", schemes.join(", "))
        };
        format!(
            "  {} -> {}, {credentials}",
            text::one_line(value),
            entry.base_url
        )
    };
    std::iter::once(source)
        .chain(tenants.entries.iter().map(line))
        .collect()
}
