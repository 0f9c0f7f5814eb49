//! The client as which `openapi-mcp call` calls: one of a tenant, or a user with a token that is
//! verified as the server would verify it.

use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::caller::Caller;
use crate::caller::client_grant::ScopeDemand;
use crate::config::auth::references::{parse_secret, parse_variable};
use crate::config::{Config, Transport};
use crate::json::object_with;
use crate::outbound::{self, OutboundOptions};
use crate::proxy::{TenantOptions, TenantSource};
use crate::text::nearest;
use crate::transport::http::verify_once;

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

/// The scopes that a server with these settings needs for calls at an endpoint.
pub(super) fn scope_demand(config: &Config) -> ScopeDemand {
    let of_tools = match &config.process.transport {
        Transport::Http { options, .. } => options.access.oauth.as_ref(),
        Transport::Stdio => None,
    };
    ScopeDemand {
        of_tools: of_tools
            .map(|oauth| oauth.tool_scopes.clone())
            .unwrap_or_default(),
        ..ScopeDemand::default()
    }
}

/// The caller with the access token of a variable.
///
/// # Errors
/// A sentence: the settings name no issuer, or the token is not valid.
pub(super) async fn caller_of_token(variable: &str, config: &Config) -> Result<Caller, String> {
    let token = parse_variable(variable, parse_secret)
        .map_err(|problem| format!("--as-token-env: {problem}"))?;
    let Transport::Http { bind, options } = &config.process.transport else {
        return Err(
            "--as-token-env needs a configuration file with `transport: http` and `oauth_issuer`"
                .into(),
        );
    };
    let Some(oauth) = &options.access.oauth else {
        return Err("--as-token-env needs `oauth_issuer` in the configuration file, which says whose tokens are taken".into());
    };
    let own = Url::parse(&format!("{}://{bind}/mcp", options.scheme())).ok();
    let Some(url) = options.access.public_url.clone().or(own) else {
        return Err("--as-token-env needs `public_url` in the configuration file".into());
    };
    let of_one = config
        .apis
        .first()
        .map(|api| api.outbound.for_others())
        .unwrap_or_default();
    let client = outbound::http_client(&OutboundOptions {
        tls: true,
        ..of_one
    })
    .map_err(|error| format!("--as-token-env: {error}"))?;
    verify_once(&token, oauth, client, url)
        .await
        .map_err(|problem| format!("--as-token-env: {problem}"))
}
