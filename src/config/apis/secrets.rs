//! The static secrets of all APIs together, which are taken out of the replies, errors and logs of
//! each: an API that keeps logs may echo what another one's requests carried.

use secrecy::{ExposeSecret as _, SecretString};

use crate::config::ApiConfig;
use crate::credentials::values::{Credentials, basic_forms};
use crate::redact::words_of_secret_header;

/// The shortest secret of another API that is looked for, in bytes. Shorter ones would be found in
/// data that has nothing to do with them.
const MIN_FOREIGN_SECRET_BYTES: usize = 12;

/// Gives each of several APIs the secrets of all, those of their tenants included.
pub(crate) fn share_secrets(apis: &mut [ApiConfig]) {
    if apis.len() < 2 && apis.iter().all(|api| api.options.tenants.is_none()) {
        return;
    }
    let mut all: Vec<Vec<u8>> = apis.iter().flat_map(static_secrets).collect();
    all.retain(|secret| secret.len() >= MIN_FOREIGN_SECRET_BYTES);
    all.sort_unstable();
    all.dedup();
    let secrets: Vec<SecretString> = all
        .into_iter()
        .filter_map(|secret| String::from_utf8(secret).ok().map(SecretString::from))
        .collect();
    for api in apis {
        api.options.secrets_of_all.clone_from(&secrets);
    }
}

/// Returns the secrets of the operator's settings of one API, in each form in which they are sent.
fn static_secrets(api: &ApiConfig) -> Vec<Vec<u8>> {
    let tenants = api
        .options
        .tenants
        .iter()
        .flat_map(|tenants| tenants.entries.values());
    let all = api
        .options
        .credentials
        .iter()
        .chain(tenants.map(|tenant| &tenant.credentials));
    let given = all.flat_map(Credentials::exposed);
    let headers = api.options.headers.iter().chain(&api.document.headers);
    let of_headers = headers
        .filter(|(_, value)| value.is_sensitive())
        .flat_map(|(name, value)| words_of_secret_header(name, value));
    let proxy = api
        .outbound
        .proxy
        .iter()
        .filter_map(|proxy| proxy.credential.as_ref());
    let of_proxy = proxy.flat_map(|pair| {
        let pair = pair.expose_secret();
        let encoded = basic_forms(pair)
            .into_iter()
            .flatten()
            .map(String::into_bytes);
        std::iter::once(pair.as_bytes().to_vec()).chain(encoded)
    });
    given.chain(of_headers).chain(of_proxy).collect()
}
