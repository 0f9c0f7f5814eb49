//! Request headers that carry credentials, by their names.

use http::header::HeaderName;

/// The last words of names that credentials are sent under: `Authorization`, `Proxy-Authorization`,
/// `Cookie`, `X-Api-Key`, `PRIVATE-TOKEN`, `X-Auth`, `X-Client-Secret` and the like.
const ENDINGS: [&str; 9] = [
    "authorization",
    "auth",
    "cookie",
    "credential",
    "credentials",
    "key",
    "password",
    "secret",
    "token",
];

/// Returns true if a header of that name carries a credential: its name ends with one of a few
/// words, in any case.
pub(crate) fn carries_credential(name: &HeaderName) -> bool {
    // A `HeaderName` is in lower case.
    ENDINGS.iter().any(|ending| name.as_str().ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_the_ends_of_header_names() {
        let carries = |name: &str| carries_credential(&name.parse().unwrap());
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "X-Api-Key",
            "apikey",
            "DD-API-KEY",
            "Ocp-Apim-Subscription-Key",
            "PRIVATE-TOKEN",
            "X-Amz-Security-Token",
            "X-Auth",
            "CF-Access-Client-Secret",
        ] {
            assert!(carries(name), "{name}");
        }
        for name in [
            "Accept",
            "User-Agent",
            "Notion-Version",
            "X-GitHub-Api-Version",
            "X-Tenant",
            "X-Account-Id",
        ] {
            assert!(!carries(name), "{name}");
        }
    }
}
