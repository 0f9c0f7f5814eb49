//! URLs in settings.

use url::Url;

use crate::outbound::is_encrypted_or_local;
use crate::spec::operation::server;

/// Parts that a URL of a setting may have besides scheme, host, port and path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlForm {
    /// None, not even a path.
    Origin,
    /// None.
    Base,
    /// A query.
    Address,
    /// A query, and something secret is sent there: it is encrypted, or on this machine.
    Confidential,
}

/// The http(s) URL of a setting, without user and password, which would be shown with it.
pub(crate) fn plain_url(text: &str, form: UrlForm) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_right = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && match form {
            UrlForm::Origin => url.path() == "/" && url.query().is_none(),
            UrlForm::Base => url.query().is_none(),
            UrlForm::Address => true,
            UrlForm::Confidential => is_encrypted_or_local(&url),
        };
    is_right.then_some(url)
}

/// The URL that a setting gives for requests.
pub(crate) fn read_base_url(setting: &str, text: &str) -> Result<Url, String> {
    // `localhost:3000` parses as a URL with the scheme `localhost`.
    let host = text
        .split_once(':')
        .filter(|(_, port)| port.starts_with(|first: char| first.is_ascii_digit()));
    if host.is_some() {
        return Err(format!(
            "{setting} is not a URL: it has no scheme; did you mean http://{text}?"
        ));
    }
    let url = Url::parse(text)
        .map_err(|error| format!("{setting} is not a URL: {error}; write it with its scheme, as in https://api.example/v1"))?;
    server::usable(url).map_err(|error| format!("{setting}: {error}"))
}
