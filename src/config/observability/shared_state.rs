//! Settings of what replicas share, and of the keys that encrypt what is kept outside the process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::config::auth::references::{parse_secret, resolve_secret};
use crate::config::problems::Problems;
use crate::config::upstream::read_authorities;
use crate::shared_state::client::RedisServer;
use crate::shared_state::keys::StateKeys;
use crate::shared_state::state::SharedState;

const DEFAULT_PORT: u16 = 6379;
/// Enough for a server in the same place. One that is far away takes longer, and a call that waits
/// longer is slower than without it.
const DEFAULT_TIMEOUT: Duration = Duration::from_millis(50);

/// Settings of what replicas share.
#[derive(Clone, Default, Args, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct SharedStateSettings {
    /// Share limits, refresh tokens and confirmations with other replicas through this Redis or
    /// Valkey server; `rediss` encrypts the connection, as in `rediss://user@redis.example:6379/0`
    #[arg(long, value_name = "URL", help_heading = "Operations")]
    pub(crate) shared_state: Option<String>,

    /// An environment variable with the password for that server
    #[arg(long, value_name = "VARIABLE", help_heading = "Operations")]
    pub(crate) shared_state_password_env: Option<String>,

    /// A file with the password for that server
    #[arg(long, value_name = "FILE", help_heading = "Operations")]
    pub(crate) shared_state_password_file: Option<PathBuf>,

    /// Seconds for a request to that server that a call waits for, before it goes on without: 0.001
    /// to 10 [default: 0.05]
    #[arg(long, hide = true, value_name = "SECONDS", help_heading = "Operations")]
    pub(crate) shared_state_timeout: Option<f64>,

    /// An environment variable with the key that encrypts the shared state and the token store: 32
    /// bytes in hexadecimal digits or base64; of several keys, the first encrypts and all decrypt
    #[arg(long, value_name = "VARIABLE", help_heading = "Operations")]
    pub(crate) state_key_env: Option<String>,

    /// A file with that key
    #[arg(long, value_name = "FILE", help_heading = "Operations")]
    pub(crate) state_key_file: Option<PathBuf>,
}

/// The keys that encrypt what is kept outside the process, and the state that replicas share; what is
/// wrong with the settings is pushed to `problems`. The server's certificate may come from
/// `authority_files` as well.
pub(crate) fn resolve_shared_state(
    settings: &SharedStateSettings,
    authority_files: &[PathBuf],
    problems: &mut Problems,
) -> (Option<StateKeys>, Option<Arc<SharedState>>) {
    let keys = resolve_secret(
        ["--state-key-env", "--state-key-file"],
        settings.state_key_env.as_deref(),
        settings.state_key_file.as_deref(),
        StateKeys::parse,
        problems,
    );
    let password = resolve_secret(
        [
            "--shared-state-password-env",
            "--shared-state-password-file",
        ],
        settings.shared_state_password_env.as_deref(),
        settings.shared_state_password_file.as_deref(),
        parse_secret,
        problems,
    );
    let Some(text) = &settings.shared_state else {
        return (keys, None);
    };
    let timeout = settings.shared_state_timeout;
    let call_timeout = timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs_f64);
    let server = problems.ok("--shared-state", read_url(text));
    if keys.is_none() && settings.state_key_env.is_none() && settings.state_key_file.is_none() {
        problems.push("--shared-state needs a key that encrypts what is shared: name the variable that holds it with --state-key-env, or a file with --state-key-file; `openssl rand -hex 32` makes one");
    }
    // Files that cannot be read are reported as files of --ca-cert.
    let authorities = read_authorities("--ca-cert", authority_files, &mut Problems::default());
    let state = server.zip(keys.clone()).and_then(|(server, keys)| {
        let server = RedisServer { password, ..server };
        let state = SharedState::new(server, authorities, keys, call_timeout);
        problems.ok("--shared-state", state)
    });
    (keys, state.map(Arc::new))
}

/// Reads the URL, which may hold a password by mistake and is not repeated.
fn read_url(text: &str) -> Result<RedisServer, &'static str> {
    const FORM: &str = "it must be the URL of a Redis or Valkey server, as in redis://redis.example:6379 or rediss://user@redis.example:6379/0";
    let url = Url::parse(text).map_err(|_| FORM)?;
    let is_encrypted = match url.scheme() {
        "redis" => false,
        "rediss" => true,
        _ => return Err(FORM),
    };
    if url.password().is_some() {
        return Err(
            "it must not hold a password: command lines and settings are seen by others; name the variable that holds it with --shared-state-password-env, or a file with --shared-state-password-file",
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(FORM);
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(FORM)?;
    let database = match url.path().trim_matches('/') {
        "" => 0,
        number => number.parse::<u16>().map_err(|_| FORM)?.into(),
    };
    let user = percent_encoding::percent_decode_str(url.username())
        .decode_utf8()
        .map_err(|_| FORM)?;
    Ok(RedisServer {
        host: host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned(),
        port: url.port().unwrap_or(DEFAULT_PORT),
        database,
        user: (!user.is_empty()).then(|| user.into_owned()),
        password: None,
        is_encrypted,
        tls: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_server_and_never_holds_a_password() {
        for (text, expected) in [
            ("redis://h", Some(("h", 6379, 0, None, false))),
            (
                "rediss://u%40x@h:7000/3",
                Some(("h", 7000, 3, Some("u@x"), true)),
            ),
            ("redis://[::1]:7000/", Some(("::1", 7000, 0, None, false))),
            ("redis://:hunter2@h", None),
            ("redis://h/x", None),
            ("redis://h?protocol=3", None),
            ("http://h", None),
            ("redis://", None),
            ("h:6379", None),
        ] {
            let read = read_url(text);
            let shown = read.as_ref().ok();
            let shown = shown.map(|place| {
                (
                    place.host.as_str(),
                    place.port,
                    place.database,
                    place.user.as_deref(),
                    place.is_encrypted,
                )
            });
            assert_eq!(shown, expected, "{text}");
            assert!(!read.err().unwrap_or_default().contains("hunter2"));
        }
    }
}
