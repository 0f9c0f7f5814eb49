//! Handles: the sealed state of a wait, with which any replica that has the same key goes on, and
//! the times at which the status is asked for.
//!
//! A URL that a reply names is checked before it becomes part of that state: it must not lead to
//! another host, or to what the operator closed.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::status::StatusKind;
use crate::caller::{Caller, ClientKey};
use crate::json::JsonObject;
use crate::proxy::request::closed_paths::{AskedPath, PathGuard};
use crate::proxy::request::path_readings::fully_decoded;
use crate::proxy::request::target::BaseUrl;
use crate::proxy::upstream;
use crate::redact::secrets::MARK;
use crate::results::Reply;
use crate::shared_state::keys::StateKeys;
use crate::spec::PathTemplate;
use crate::spec::operation::template::has_dot_segment;

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
    pub(super) expires: u64,
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
        let state = || -> Option<Self> {
            let handle = Some(handle.trim()).filter(|handle| handle.len() <= MAX_HANDLE_LENGTH)?;
            let sealed = URL_SAFE_NO_PAD.decode(handle).ok()?;
            let text = state_keys()?.open(&scope.name(), &sealed).ok()?;
            serde_json::from_slice(&text).ok()
        };
        match state() {
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

/// The longest URL, in bytes.
const MAX_BYTES: usize = 4096;
/// The longest path of one, in bytes.
const MAX_PATH_BYTES: usize = 2048;

/// Returns path and query of a URL.
pub(crate) fn path_and_query(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Reason for which a URL of a reply is not requested, as the end of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UrlRefusal {
    Malformed,
    TooLong,
    Elsewhere,
    BesideBase,
    Climbs,
    Closed,
    HiddenEnd,
    Redacted,
}

impl UrlRefusal {
    /// Describes it for the model, without the URL.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Malformed => {
                "it is not a plain URL: it has a user, a fragment, a backslash or a control character, or cannot be read"
            }
            Self::TooLong => "it has more than 4096 bytes, or its path more than 2048",
            Self::Elsewhere => "it leads to another scheme, host or port than the API has",
            Self::BesideBase => "it leads out of the base path of the API",
            Self::HiddenEnd => {
                "its path has an encoded question mark, number sign or control character, or a space at the end of a segment"
            }
            Self::Redacted => "it holds a secret of this server",
            Self::Climbs => "it has a dot segment",
            Self::Closed => "it is the path of an operation that is not served to you",
        }
    }
}

/// Reads a URL or a relative reference (RFC 3986 section 4.2) of the reply to a request.
/// `named` is the template of the operation that a rule names for it.
///
/// # Errors
/// [`UrlRefusal`]; nothing may be sent then.
pub(super) fn read_url(
    text: &str,
    request: &Url,
    base: &BaseUrl,
    named: Option<&PathTemplate>,
    has_own_base: bool,
    guard: Option<PathGuard<'_>>,
) -> Result<Url, UrlRefusal> {
    if text.len() > MAX_BYTES {
        return Err(UrlRefusal::TooLong);
    }
    // URL parsers drop white space and control characters, and read a backslash as a slash.
    let is_odd = |character: char| {
        character.is_control() || character.is_whitespace() || matches!(character, '\\' | '#')
    };
    if fully_decoded(text).contains(MARK) {
        return Err(UrlRefusal::Redacted);
    }
    if text.is_empty() || text.contains(is_odd) {
        return Err(UrlRefusal::Malformed);
    }
    if has_dot_segment(text.split('?').next().unwrap_or_default()) {
        return Err(UrlRefusal::Climbs);
    }
    let url = request.join(text).map_err(|_| UrlRefusal::Malformed)?;
    let own = base.url();
    if url.scheme() != own.scheme()
        || url.host() != own.host()
        || url.port_or_known_default() != own.port_or_known_default()
    {
        return Err(UrlRefusal::Elsewhere);
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(UrlRefusal::Malformed);
    }
    if url.as_str().len() > MAX_BYTES || url.path().len() > MAX_PATH_BYTES {
        return Err(UrlRefusal::TooLong);
    }
    if has_dot_segment(url.path()) {
        return Err(UrlRefusal::Climbs);
    }
    let root = own.path().trim_end_matches('/');
    let below = url.path().strip_prefix(root);
    below
        .filter(|below| below.starts_with('/'))
        .ok_or(UrlRefusal::BesideBase)?;
    if has_hidden_end(url.path()) {
        return Err(UrlRefusal::HiddenEnd);
    }
    let asked = AskedPath {
        full: url.path(),
        base: root.len(),
        has_own_base,
        in_value: None,
    };
    if guard.is_none_or(|guard| guard.refuses_url(&asked, named)) {
        return Err(UrlRefusal::Closed);
    }
    Ok(url)
}

/// Returns true if servers may read a path as a shorter one: up to a character that ends paths or
/// texts, or without spaces.
fn has_hidden_end(path: &str) -> bool {
    let path = fully_decoded(path);
    let mut segments = path.split(['/', '\\', ';']);
    path.contains(|character: char| character.is_control() || matches!(character, '?' | '#'))
        || segments.any(|segment| segment.trim() != segment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::client_grant::ShownTools;
    use crate::proxy::request::closed_paths::{ClosedPaths, DeclaredOperation};
    use http::Method;
    use http::header::RETRY_AFTER;
    use std::time::Duration;

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
        let mut state = WaitState {
            tool: "tool".into(),
            url: "/status/1?a=b".into(),
            kind: StatusKind::Location,
            is_done: false,
            original: "/exports".into(),
            location: None,
            schedule,
            started: seconds(now),
            expires: 0,
            arguments: JsonObject::new(),
        };
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

    fn read(base: &str, text: &str) -> Result<String, UrlRefusal> {
        let base = BaseUrl::new(Url::parse(base).unwrap());
        let request = base.url().join("exports").unwrap();
        let template = PathTemplate::parse("/secret").unwrap();
        let secret = DeclaredOperation {
            method: Method::GET,
            template: &template,
            slashes: Vec::new(),
            has_own_base: false,
            tool: None,
        };
        let guard = PathGuard {
            reads_only: false,
            paths: &ClosedPaths::new(std::iter::once(secret)),
            shown: &ShownTools::default(),
        };
        read_url(text, &request, &base, None, false, Some(guard)).map(|url| path_and_query(&url))
    }

    #[test]
    fn a_url_of_the_api_below_its_base_path_is_taken() {
        for (base, text, expected) in [
            (
                "https://h.example/",
                "https://h.example/status/1",
                "/status/1",
            ),
            (
                "https://h.example/",
                "https://H.EXAMPLE:443/status/1?a=b#".trim_end_matches('#'),
                "/status/1?a=b",
            ),
            ("https://h.example/", "//h.example/status/1", "/status/1"),
            (
                "https://h.example/",
                "/status/1?next=../x",
                "/status/1?next=../x",
            ),
            ("https://h.example/v1/", "status/1", "/v1/status/1"),
            ("https://h.example/v1/", "?id=1", "/v1/exports?id=1"),
            (
                "http://127.0.0.1:8080/v1",
                "http://127.0.0.1:8080/v1/s",
                "/v1/s",
            ),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1/s", "/v1/s"),
        ] {
            assert_eq!(read(base, text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn p1_a_url_that_leads_elsewhere_climbs_or_is_closed_is_refused() {
        use UrlRefusal::{
            BesideBase, Climbs, Closed, Elsewhere, HiddenEnd, Malformed, Redacted, TooLong,
        };
        let long = format!("/v1/{}", "a".repeat(4096));
        for (text, expected) in [
            ("https://evil.example/v1/s", Elsewhere),
            ("//evil.example/v1/s", Elsewhere),
            ("http://h.example/v1/s", Elsewhere),
            ("https://h.example:8443/v1/s", Elsewhere),
            ("https://h.example.evil.example/v1/s", Elsewhere),
            ("https://h.example@evil.example/v1/s", Elsewhere),
            ("file:///v1/s", Elsewhere),
            ("data:text/plain,x", Elsewhere),
            ("javascript:alert(1)", Elsewhere),
            ("https://169.254.169.254/v1/s", Elsewhere),
            ("https://user@h.example/v1/s", Malformed),
            ("https://user:password@h.example/v1/s", Malformed),
            ("/v1/s#fragment", Malformed),
            ("/v1/s\\..\\x", Malformed),
            ("\\\\evil.example\\v1", Malformed),
            ("/v1/s\tx", Malformed),
            ("/v1/s\r\nHost: evil.example", Malformed),
            (" /v1/s", Malformed),
            ("", Malformed),
            ("https://", Malformed),
            ("https://[::1/v1/s", Malformed),
            ("/v1/../admin", Climbs),
            ("../admin", Climbs),
            ("/v1/%2e%2e/admin", Climbs),
            ("/v1/%252e%252e/admin", Climbs),
            ("/v1/..;x/admin", Climbs),
            ("/v1/a%2f..%2fadmin", Climbs),
            ("/v1/a%5c..%5cadmin", Climbs),
            ("/v1/./s", Climbs),
            ("/admin", BesideBase),
            ("/v1", BesideBase),
            ("/v10/s", BesideBase),
            ("/v1%2Fs", BesideBase),
            ("//h.example", BesideBase),
            ("/v1/secret", Closed),
            ("/v1/keys%00", HiddenEnd),
            ("/v1/keys%09", HiddenEnd),
            ("/v1/keys%20", HiddenEnd),
            ("/v1/keys%2520/7", HiddenEnd),
            ("/v1/keys%C2%A0", HiddenEnd),
            ("/v1/keys%20%2F7", HiddenEnd),
            ("/v1/keys%3Fx", HiddenEnd),
            ("/v1/keys%2523x", HiddenEnd),
            ("/v1/keys?token=[redacted]", Redacted),
            ("/v1/keys/%5Bredacted%255D", Redacted),
            (&long, TooLong),
        ] {
            assert_eq!(read("https://h.example/v1/", text), Err(expected), "{text}");
        }
    }
}
