//! Handles: the sealed state of a wait, with which any replica that has the same key goes on.

use std::sync::OnceLock;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::recognize::StatusKind;
use super::schedule::{Schedule, seconds};
use super::status_url::UrlRefusal;
use crate::caller::Caller;
use crate::caller::client_key::ClientKey;
use crate::json::JsonObject;
use crate::shared_state::keys::StateKeys;

/// The longest handle, in characters: a model has to repeat it.
pub(crate) const MAX_HANDLE_LENGTH: usize = 4096;
/// Seconds after which a handle is refused.
const LIFETIME: u64 = 24 * 3600;

/// The keys that seal handles: those of the operator, else keys of this process.
static KEYS: OnceLock<Option<StateKeys>> = OnceLock::new();

/// State of a wait. It has no host, no token and no header.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WaitState {
    /// The name of the tool whose call waits.
    pub(crate) tool: String,
    /// Path and query of the next request.
    pub(super) url: String,
    pub(super) kind: StatusKind,
    /// True if the operation is done, and `url` is that of its result.
    pub(super) is_done: bool,
    /// Path and query of the request of the call.
    pub(super) original: String,
    /// Path and query of the newest URL of `Location`, or the reason for which it is not requested.
    pub(super) location: Option<Result<String, UrlRefusal>>,
    pub(super) schedule: Schedule,
    /// Time of the call, in seconds since 1970.
    pub(super) started: u64,
    /// Time after which the handle is refused, in seconds since 1970.
    expires: u64,
    /// Arguments of the call that its result needs.
    pub(crate) arguments: JsonObject,
}

/// Holder and place of a handle: it is good for the same client at the same API, tenant and
/// endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandleScope<'s> {
    /// The name of the API, if a server has several.
    pub(crate) api: Option<&'s str>,
    /// The value of the caller's tenant.
    pub(crate) tenant: Option<&'s str>,
    /// The path of the endpoint.
    pub(crate) endpoint: &'s str,
    /// The caller, if clients authenticate.
    pub(crate) caller: &'s Caller,
}

/// Reason for which a handle is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandleError {
    /// It was not made here for this client, or was changed.
    Foreign,
    Expired,
}

/// Seals handles with the operator's keys, if there are some, and identifies clients by them.
/// Called once, before the first client.
pub(crate) fn seal_handles_with(keys: Option<&StateKeys>) {
    if let Some(keys) = keys {
        let _ = KEYS.set(Some(keys.clone()));
    }
    if let Some(key) = state_keys().and_then(|keys| keys.hash_key("clients")) {
        ClientKey::share(key);
    }
}

fn state_keys() -> Option<&'static StateKeys> {
    KEYS.get_or_init(StateKeys::random).as_ref()
}

impl WaitState {
    /// State of a wait that begins.
    pub(super) fn new(
        tool: &str,
        url: String,
        kind: StatusKind,
        original: String,
        schedule: Schedule,
        now: SystemTime,
    ) -> Self {
        Self {
            tool: tool.to_owned(),
            url,
            kind,
            is_done: false,
            original,
            location: None,
            schedule,
            started: seconds(now),
            expires: 0,
            arguments: JsonObject::new(),
        }
    }

    /// The handle; `None` if it would be too long, or there is no randomness.
    pub(crate) fn seal(&mut self, scope: HandleScope<'_>, now: SystemTime) -> Option<String> {
        self.expires = seconds(now).saturating_add(LIFETIME);
        let text = serde_json::to_vec(self).ok()?;
        let sealed = state_keys()?.seal(&scope.name(), &text)?;
        let handle = URL_SAFE_NO_PAD.encode(sealed);
        (handle.len() <= MAX_HANDLE_LENGTH).then_some(handle)
    }

    /// Opens a handle.
    ///
    /// # Errors
    /// [`HandleError`]
    pub(crate) fn open(
        handle: &str,
        scope: HandleScope<'_>,
        now: SystemTime,
    ) -> Result<Self, HandleError> {
        let sealed = Some(handle.trim()).filter(|handle| handle.len() <= MAX_HANDLE_LENGTH);
        let sealed = sealed.and_then(|handle| URL_SAFE_NO_PAD.decode(handle).ok());
        let text = sealed.and_then(|sealed| state_keys()?.open(&scope.name(), &sealed).ok());
        let state: Option<Self> = text.and_then(|text| serde_json::from_slice(&text).ok());
        match state {
            Some(state) if state.expires >= seconds(now) => Ok(state),
            Some(_) => Err(HandleError::Expired),
            None => Err(HandleError::Foreign),
        }
    }
}

impl HandleScope<'_> {
    /// The name under which a handle is sealed.
    fn name(&self) -> String {
        let client = self
            .caller
            .client
            .as_ref()
            .map(|client| format!("{:016x}", client.key.0));
        json!([
            "wait_operation",
            self.api,
            self.tenant,
            self.endpoint,
            client
        ])
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn scope(caller: &Caller) -> HandleScope<'_> {
        HandleScope {
            api: Some("a"),
            tenant: Some("t"),
            endpoint: "/mcp",
            caller,
        }
    }

    #[test]
    fn a_handle_opens_in_its_scope_unchanged_and_for_a_day() {
        let now = SystemTime::now();
        let schedule = Schedule::begin(None, &crate::results::Reply::default(), now);
        let mut state = WaitState::new(
            "tool",
            "/status/1?a=b".into(),
            StatusKind::Location,
            "/exports".into(),
            schedule,
            now,
        );
        let caller = Caller::default();
        let of = scope(&caller);
        let handle = state.seal(of, now).unwrap();
        assert!(!handle.contains("status") && handle.len() <= MAX_HANDLE_LENGTH);
        assert_eq!(
            WaitState::open(&handle, of, now).unwrap().url,
            "/status/1?a=b"
        );
        let other = Caller::default().with_claims(JsonObject::new());
        for foreign in [
            HandleScope {
                api: Some("b"),
                ..of
            },
            HandleScope { api: None, ..of },
            HandleScope { tenant: None, ..of },
            HandleScope {
                tenant: Some("u"),
                ..of
            },
            HandleScope {
                endpoint: "/mcp/readonly",
                ..of
            },
            HandleScope {
                caller: &other,
                ..of
            },
        ] {
            assert_eq!(
                WaitState::open(&handle, foreign, now).err(),
                Some(HandleError::Foreign),
                "{foreign:?}"
            );
        }
        let changed = |index: usize| {
            let mut changed = handle.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            String::from_utf8(changed).unwrap()
        };
        for forged in (0..handle.len()).map(changed).chain([
            String::new(),
            "x".into(),
            "A".repeat(5000),
            handle.replacen('A', "", 1),
        ]) {
            let opened = WaitState::open(&forged, of, now).err();
            assert!(opened == Some(HandleError::Foreign), "{forged}");
        }
        let later = now + Duration::from_secs(LIFETIME + 1);
        assert_eq!(
            WaitState::open(&handle, of, later).err(),
            Some(HandleError::Expired)
        );
        state.url = "a".repeat(4000);
        assert_eq!(state.seal(of, now), None);
    }
}
