//! How clients reach the server, and who may.

use std::net::SocketAddr;

use url::Url;

use super::access;
use super::settings::{ServerSettings, TransportKind};
use crate::server::http::{Allowed, HttpOptions};

/// How clients reach the server.
#[derive(Debug, Clone)]
pub(crate) enum Transport {
    /// Over standard input and output.
    Stdio,
    /// Over streamable HTTP.
    Http {
        /// The address to listen on.
        bind: SocketAddr,
        /// Who may ask, and how much.
        options: Box<HttpOptions>,
    },
}

pub(crate) fn resolve_transport(settings: &ServerSettings, problems: &mut Vec<String>) -> Transport {
    if settings.transport.unwrap_or(TransportKind::Stdio) == TransportKind::Stdio {
        // Said on purpose, perhaps over a file that serves HTTP otherwise.
        if settings.transport.is_some() {
            return Transport::Stdio;
        }
        let idle = [
            ("--bind", settings.bind.is_some()),
            ("--allow-host", !settings.allow_host.is_empty()),
            ("--allow-origin", !settings.allow_origin.is_empty()),
        ];
        let idle = idle.iter().filter(|(_, given)| *given).map(|(flag, _)| *flag);
        for flag in idle.chain(settings.forward.given()).chain(settings.access.given()) {
            problems.push(format!("{flag} needs --transport http"));
        }
        return Transport::Stdio;
    }
    let mut allowed = Allowed {
        hosts: settings.allow_host.clone(),
        origins: settings.allow_origin.clone(),
    };
    for host in allowed.hosts.iter().filter(|host| !Allowed::is_host(host)) {
        problems.push(format!(
            "--allow-host: `{host}` is no host name; write it as clients ask for it, as in mcp.example or mcp.example:8443"
        ));
    }
    for origin in &allowed.origins {
        if Url::parse(origin).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.path() == "/" && url.query().is_none()) {
            continue;
        }
        problems.push(format!(
            "--allow-origin: `{origin}` is no origin; write scheme and name, as in https://app.example"
        ));
    }
    let limits = access::client_limits(&settings.access, problems);
    let tls = access::tls_files(&settings.access, problems);
    let text = settings.bind.as_deref().unwrap_or("127.0.0.1:8080");
    let address = text.replace("localhost:", "127.0.0.1:").parse::<SocketAddr>();
    let Ok(bind) = address else {
        problems.push(format!("--bind: `{text}` is no address with a port, as in 127.0.0.1:8080"));
        access::access(&settings.access, true, problems);
        return Transport::Stdio;
    };
    let access = access::access(&settings.access, bind.ip().is_loopback(), problems);
    // The name that clients use is one they may ask for.
    let public = access.public_url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    allowed
        .hosts
        .extend(public.map(|(name, port)| port.map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))));
    if !bind.ip().is_loopback() {
        if allowed.hosts.is_empty() {
            problems.push(format!(
                "--bind {bind} can be reached by others; name the hosts that clients ask for with --allow-host NAME, or --public-url URL"
            ));
        }
        if settings.access.is_open() && settings.allow_unauthenticated != Some(true) {
            problems.push(format!("--bind {bind} can be reached by others, and nobody has to prove who they are; give clients a token with --auth-token-env VARIABLE or --oauth-issuer URL, or, behind a proxy that asks them, add --allow-unauthenticated, or bind to 127.0.0.1"));
        }
    }
    if settings.forward.forward_authorization == Some(true) && !settings.access.is_open() {
        problems.push("--forward-authorization cannot be with --auth-token-env, --auth-token-file or --oauth-issuer: the token that opens this server is not the API's (MCP, \"Token Passthrough\")".into());
    }
    let options = Box::new(HttpOptions {
        allowed,
        access,
        limits,
        tls,
    });
    Transport::Http { bind, options }
}
