//! Settings of connections to the API: certificates, proxies and limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

use super::auth::references::{parse_secret, parse_variable};
use super::problems::Problems;
use super::values::{UrlForm, plain_url};
use crate::outbound::{Identity, OutboundOptions, Proxy};
use crate::proxy::UpstreamOptions;

/// Settings of connections to the API.
#[derive(Clone, Default, Args, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct UpstreamSettings {
    /// A PEM file of further authorities, or of a server's own certificate (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "FILE",
        help_heading = "Upstream"
    )]
    pub(crate) ca_cert: Vec<PathBuf>,

    /// A PEM file with the client certificate for the API, and its chain
    #[arg(long, hide = true, value_name = "FILE", help_heading = "Upstream")]
    pub(crate) client_cert: Option<PathBuf>,

    /// A PEM file with the key of that certificate [default: the file of the certificate]
    #[arg(long, hide = true, value_name = "FILE", help_heading = "Upstream")]
    pub(crate) client_key: Option<PathBuf>,

    /// Do not check the API's certificate: an attacker on the network can then read and change
    /// every call
    #[arg(long, help_heading = "Upstream")]
    pub(crate) insecure_upstream: Option<bool>,

    /// An HTTP proxy for all outgoing connections; the proxy variables of the environment are
    /// ignored
    #[arg(long, value_name = "URL", help_heading = "Upstream")]
    pub(crate) proxy: Option<String>,

    /// An environment variable with `user:password` for the proxy
    #[arg(long, hide = true, value_name = "VARIABLE", help_heading = "Upstream")]
    pub(crate) proxy_auth_env: Option<String>,

    /// The maximum number of calls in flight to one upstream; four times as many wait, and further
    /// calls are refused at once [default: 256]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "Upstream")]
    pub(crate) max_concurrency: Option<usize>,

    /// The maximum number of requests per second to one upstream; further requests wait [default:
    /// no limit]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "Upstream")]
    pub(crate) rate_limit: Option<f64>,

    /// Number of times that a request of an idempotent tool is repeated if the API is busy or
    /// cannot be reached, 0 to 3 [default: 2]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "Upstream")]
    pub(crate) retries: Option<u32>,

    /// After this many failures in a row, calls to that upstream are refused for a while; 0 means
    /// never [default: 20]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "Upstream")]
    pub(crate) breaker_failures: Option<u32>,

    /// Time for which such calls are refused, in seconds [default: 30]
    #[arg(long, hide = true, value_name = "SECONDS", help_heading = "Upstream")]
    pub(crate) breaker_pause: Option<f64>,
}

/// Reads the settings of connections and their files; faults are pushed to `problems`.
pub(crate) fn outbound(settings: &UpstreamSettings, problems: &mut Problems) -> OutboundOptions {
    let authorities = read_authorities("--ca-cert", &settings.ca_cert, problems);
    let identity = match (&settings.client_cert, &settings.client_key) {
        (None, _) => None,
        (Some(certificate), key) => {
            let key = key.as_ref().unwrap_or(certificate);
            read_identity(
                ["`client_cert`", "`client_key`"],
                certificate,
                key,
                problems,
            )
        }
    };
    let proxy = settings
        .proxy
        .as_deref()
        .and_then(|text| proxy(text, settings, problems));
    OutboundOptions {
        authorities,
        identity,
        insecure: settings.insecure_upstream.unwrap_or(false),
        proxy,
        ..OutboundOptions::default()
    }
}

/// A client certificate with its chain and its key; what is wrong with the files is pushed to
/// `problems`, after the names of the settings that name them.
pub(crate) fn read_identity(
    names: [&str; 2],
    certificate: &Path,
    key: &Path,
    problems: &mut Problems,
) -> Option<Arc<Identity>> {
    let [of_certificate, of_key] = names;
    let chain = problems.ok(of_certificate, certificates(certificate));
    let read = PrivateKeyDer::from_pem_file(key);
    let key = problems.ok(
        of_key,
        read.map_err(|error| describe_pem_error(key, &error)),
    );
    chain
        .zip(key)
        .map(|(chain, key)| Arc::new(Identity { chain, key }))
}

/// The limits of an upstream.
pub(crate) fn upstream_limits(settings: &UpstreamSettings) -> UpstreamOptions {
    let usual = UpstreamOptions::default();
    UpstreamOptions {
        rate: settings.rate_limit,
        concurrency: settings.max_concurrency.unwrap_or(usual.concurrency),
        retries: settings.retries.unwrap_or(usual.retries),
        breaker_failures: settings.breaker_failures.unwrap_or(usual.breaker_failures),
        breaker_pause: settings
            .breaker_pause
            .map_or(usual.breaker_pause, Duration::from_secs_f64),
        ..usual
    }
}

fn proxy(text: &str, settings: &UpstreamSettings, problems: &mut Problems) -> Option<Proxy> {
    let url = problems.some(plain_url(text, UrlForm::Address), || {
        "--proxy must be the URL of an HTTP proxy without user and password, as in http://proxy.example:3128; `proxy_auth_env` is the name of a variable with them"
    })?;
    let credential = settings.proxy_auth_env.as_deref().and_then(|name| {
        let credential = parse_variable(name, parse_secret);
        problems.ok("`proxy_auth_env`", credential)
    });
    Some(Proxy { url, credential })
}

/// The certificates of authorities; what is wrong with a file is pushed to `problems`, after the
/// name of the setting that names it.
pub(crate) fn read_authorities(
    name: &str,
    paths: &[impl AsRef<Path>],
    problems: &mut Problems,
) -> Vec<CertificateDer<'static>> {
    let files = paths.iter();
    let read = files.filter_map(|path| problems.ok(name, certificates(path.as_ref())));
    read.flatten().collect()
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, PemError> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match read {
        Ok(read) if read.is_empty() => Err(format!(
            "the file `{}` contains no certificate in PEM form",
            path.display()
        )),
        Ok(read) => Ok(read),
        Err(error) => Err(describe_pem_error(path, &error)),
    }
}

fn describe_pem_error(path: &Path, error: &PemError) -> String {
    let why = match error {
        PemError::Io(error) => format!("cannot be read: {error}"),
        PemError::NoItemsFound => "contains no such item in PEM form".into(),
        // The other errors may quote the file.
        _ => "is not valid PEM".into(),
    };
    format!("the file `{}` {why}", path.display())
}
