//! A call for one tenant of an API: made as a client of that tenant would make it.

use http::{HeaderMap, HeaderValue};

use crate::caller::Caller;
use crate::json::object_with;
use crate::proxy::{TenantOptions, TenantSource};
use crate::text::nearest;

/// More tenants than this are counted, not named.
const MAX_NAMED_TENANTS: usize = 20;

/// The caller that belongs to that tenant; any caller if the API has no tenants.
///
/// # Errors
/// A sentence if the API has tenants but not this one, or has none although one is given.
pub(super) fn caller_of_tenant(
    tenants: Option<&TenantOptions>,
    value: Option<&str>,
) -> Result<Caller, String> {
    let (tenants, value) = match (tenants, value) {
        (None, None) => return Ok(Caller::default()),
        (None, Some(_)) => {
            return Err(
                "--tenant: the API of this tool has no `tenants` in the configuration file".into(),
            );
        }
        (Some(tenants), None) => {
            return Err(format!(
                "the API of this tool has tenants; choose one with --tenant VALUE: {}",
                named(tenants)
            ));
        }
        (Some(tenants), Some(value)) => (tenants, value),
    };
    if !tenants.entries.contains_key(value) {
        let hint = match nearest(value, tenants.entries.keys().map(String::as_str), 0.8) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", named(tenants)),
        };
        return Err(format!(
            "--tenant: there is no tenant `{}`; {hint}",
            value.escape_debug()
        ));
    }
    match &tenants.source {
        TenantSource::Header(name) => {
            let value = HeaderValue::from_str(value)
                .map_err(|_| "--tenant: no header can hold this value".to_owned())?;
            Ok(Caller::default().with_headers(HeaderMap::from_iter([(name.clone(), value)])))
        }
        TenantSource::Claim(name) => {
            Ok(Caller::default().with_claims(object_with(name, value.into())))
        }
    }
}

fn named(tenants: &TenantOptions) -> String {
    let mut names: Vec<String> = tenants
        .entries
        .keys()
        .take(MAX_NAMED_TENANTS)
        .cloned()
        .collect();
    if tenants.entries.len() > MAX_NAMED_TENANTS {
        names.push(format!(
            "and {} more",
            tenants.entries.len() - MAX_NAMED_TENANTS
        ));
    }
    names.join(", ")
}
