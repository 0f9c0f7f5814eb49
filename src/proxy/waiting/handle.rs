//! Handles: the sealed state of a wait, with which any replica that has the same key goes on, and
//! the times at which the status is asked for.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::status::StatusKind;
use super::status_url::UrlRefusal;
use crate::caller::{Caller, ClientKey};
use crate::json::JsonObject;
use crate::proxy::upstream;
use crate::results::Reply;
use crate::shared_state::keys::StateKeys;

/// The longest handle, in characters: a model has to repeat it.
const MAX_HANDLE_LENGTH: usize = 4096;
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

/// State of a call that goes on.
#[derive(Clone)]
pub(crate) struct OpenedWait {
    pub(crate) state: WaitState,
    /// True if the status is asked for once.
    pub(crate) is_look: bool,
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

/// The shortest pause, in seconds, whatever the API says.
const MIN_PAUSE: u64 = 1;
/// The pause up to which pauses double, in seconds.
const MAX_DOUBLED_PAUSE: u64 = 30;
/// The longest pause that counts, in seconds: a longer one is one of an API that cannot count.
const MAX_PAUSE: u64 = 24 * 3600;

/// The pauses between requests for a status.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Schedule {
    /// Seconds before the next request if the API names none.
    pause: u64,
    /// Time of the next request, in milliseconds since 1970.
    due: u64,
    /// True if the API named the time.
    #[serde(default)]
    is_wanted: bool,
}

impl Schedule {
    /// A schedule that begins with this reply. `interval` is the operator's pause in seconds.
    pub(crate) fn begin(interval: Option<u64>, reply: &Reply, now: SystemTime) -> Self {
        let mut schedule = Self {
            pause: interval.unwrap_or(MIN_PAUSE).max(MIN_PAUSE),
            due: 0,
            is_wanted: false,
        };
        schedule.advance(Some(reply), now);
        schedule
    }

    /// Continues after a reply, or after none: at `Retry-After`, else after a pause that doubles.
    pub(crate) fn advance(&mut self, reply: Option<&Reply>, now: SystemTime) {
        let wanted = reply.and_then(|reply| upstream::wanted(reply, now));
        self.is_wanted = wanted.is_some();
        let pause = if let Some(wanted) = wanted {
            wanted.as_secs() + u64::from(wanted.subsec_nanos() > 0)
        } else {
            let pause = self.pause;
            self.pause = pause.max(pause.saturating_mul(2).min(MAX_DOUBLED_PAUSE));
            pause
        };
        let pause = Duration::from_secs(pause.clamp(MIN_PAUSE, MAX_PAUSE));
        self.due = milliseconds(now + pause);
    }

    /// The next request may be sent at once.
    pub(crate) fn at_once(&mut self) {
        self.due = 0;
        self.is_wanted = false;
    }

    /// The time until the next request, of a call that may wait so long: a pause of our own ends
    /// with it, if it is not too short.
    ///
    /// # Errors
    /// The next request is later than that.
    pub(crate) fn left_within(
        &self,
        budget: Duration,
        now: SystemTime,
    ) -> Result<Duration, Duration> {
        let left = self.left(now);
        if left < budget {
            Ok(left)
        } else if self.is_wanted || budget < Duration::from_secs(MIN_PAUSE) {
            Err(left)
        } else {
            Ok(budget)
        }
    }

    /// The time that the API wants to pass before the next request.
    pub(crate) fn wanted(&self, now: SystemTime) -> Option<Duration> {
        self.is_wanted.then(|| self.left(now))
    }

    /// The time until the next request.
    pub(crate) fn left(&self, now: SystemTime) -> Duration {
        let left = self.due.saturating_sub(milliseconds(now));
        Duration::from_millis(left).min(Duration::from_secs(MAX_PAUSE))
    }
}

/// Whole seconds since 1970.
pub(crate) fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH)
        .map(|since| since.as_secs())
        .unwrap_or_default()
}

fn milliseconds(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::header::RETRY_AFTER;

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

    fn reply(after: Option<&str>) -> Reply {
        let mut reply = Reply::default();
        after.map(|after| reply.headers.insert(RETRY_AFTER, after.parse().unwrap()));
        reply
    }

    fn pauses(interval: Option<u64>, after: &[Option<&str>]) -> Vec<u64> {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let mut schedule = Schedule::begin(interval, &reply(after[0]), now);
        let mut pauses = vec![schedule.left(now).as_secs()];
        for after in &after[1..] {
            schedule.advance(Some(&reply(*after)), now);
            pauses.push(schedule.left(now).as_secs());
        }
        pauses
    }

    #[test]
    fn pauses_double_up_to_half_a_minute_and_the_api_may_name_another() {
        assert_eq!(pauses(None, &[None; 8]), [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(pauses(Some(5), &[None; 5]), [5, 10, 20, 30, 30]);
        assert_eq!(pauses(Some(90), &[None; 3]), [90, 90, 90]);
        assert_eq!(
            pauses(None, &[Some("7"), None, Some("0"), None]),
            [7, 1, 1, 2]
        );
        assert_eq!(pauses(None, &[Some("Mon, 12 Jan 1970 13:46:50 GMT")]), [10]);
        assert_eq!(pauses(None, &[Some("Mon, 12 Jan 1970 13:46:30 GMT")]), [1]);
        assert_eq!(pauses(None, &[Some("99999999999999999999")]), [MAX_PAUSE]);
        assert_eq!(pauses(None, &[Some("/bar"), Some("-1")]), [1, 2]);
    }

    #[test]
    fn a_pause_of_our_own_ends_with_the_time_of_a_call_and_one_of_the_api_does_not() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let second = Duration::from_secs(1);
        let own = Schedule::begin(Some(30), &reply(None), now);
        assert_eq!(own.left_within(31 * second, now), Ok(30 * second));
        assert_eq!(own.left_within(28 * second, now), Ok(28 * second));
        assert_eq!(own.left_within(second / 2, now), Err(30 * second));
        let wanted = Schedule::begin(Some(1), &reply(Some("30")), now);
        assert_eq!(wanted.left_within(31 * second, now), Ok(30 * second));
        assert_eq!(wanted.left_within(28 * second, now), Err(30 * second));
        assert_eq!(
            (own.wanted(now), wanted.wanted(now)),
            (None, Some(30 * second))
        );
    }
}
