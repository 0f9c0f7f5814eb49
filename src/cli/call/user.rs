//! A call as a user: with a token that is verified as the server would.

use url::Url;

use crate::caller::Caller;
use crate::caller::client_grant::ScopeDemand;
use crate::config::auth::references::{parse_secret, parse_variable};
use crate::config::{Config, Transport};
use crate::outbound::{self, OutboundOptions};
use crate::transport::http::verify_once;

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
