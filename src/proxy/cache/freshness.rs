//! The freshness of a reply by RFC 9111. `http-cache-semantics` decides it. That crate compares
//! directives with case, although section 5.2 ignores case, so they are folded first; its heuristic
//! freshness (section 4.2.2) is off.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use http::header::{
    AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, PRAGMA,
};
use http::request::Parts;
use http::{StatusCode, response};
use http_cache_semantics::{BeforeRequest, CacheOptions as PolicyOptions, CachePolicy};

use crate::proxy::response::Response;

/// Value that replaces a larger number of seconds (RFC 9111 section 1.2.2). Larger ones would
/// overflow in sums.
const MAX_SECONDS: u64 = 1 << 31;

/// The request of every reply: a `GET` without a URL and headers. The key of a kept reply
/// distinguishes these, so `Vary` is always met; and credentials in either must not be kept.
static REQUEST: LazyLock<Parts> = LazyLock::new(|| http::Request::new(()).into_parts().0);

/// Time that only goes forward: a wall clock that is set back must not make a reply younger.
pub(crate) struct CacheClock {
    started: Instant,
    at: SystemTime,
}

impl CacheClock {
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            at: SystemTime::now(),
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.at + self.started.elapsed()
    }
}

/// Freshness of a reply by its headers.
#[derive(Debug)]
pub(crate) struct Freshness {
    policy: CachePolicy,
    /// Its age when it stops being fresh.
    lifetime: Duration,
    /// Time after that for which it may be used if the API fails (RFC 5861 section 4).
    stale_if_error: Duration,
}

impl Freshness {
    /// Reads the freshness of a reply; `None` if it must not be stored.
    pub(crate) fn new(
        response: &Response,
        now: SystemTime,
        default_ttl: Option<Duration>,
    ) -> Option<Self> {
        let mut headers = fold_directives(&response.headers);
        headers.insert(AGE, HeaderValue::from(age_at_arrival(&headers, now)));
        let says_nothing = [CACHE_CONTROL, EXPIRES, PRAGMA]
            .iter()
            .all(|name| !headers.contains_key(name));
        if let Some(ttl) = default_ttl.filter(|_| says_nothing && response.status == StatusCode::OK)
        {
            let directive = HeaderValue::from_str(&format!("max-age={}", ttl.as_secs())).ok()?;
            headers.insert(CACHE_CONTROL, directive);
        }
        let names_any = headers
            .get_all(http::header::VARY)
            .iter()
            .any(|value| value.as_bytes().contains(&b'*'));
        let options = PolicyOptions {
            shared: false,
            cache_heuristic: 0.0,
            immutable_min_time_to_live: Duration::ZERO,
            ignore_cargo_cult: false,
        };
        let policy = CachePolicy::new_options(
            &*REQUEST,
            &response_parts(response.status, &headers),
            now,
            options,
        );
        let is_of_use = policy.is_storable() && !names_any;
        let must_revalidate = directive(&headers, "must-revalidate").is_some()
            || directive(&headers, "no-cache").is_some();
        let stale = directive(&headers, "stale-if-error").and_then(|seconds| seconds.parse().ok());
        is_of_use.then(|| Self {
            lifetime: policy.age(now).saturating_add(policy.time_to_live(now)),
            policy,
            stale_if_error: Duration::from_secs(stale.filter(|_| !must_revalidate).unwrap_or(0)),
        })
    }

    /// Returns true if the reply may be used without asking.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        matches!(
            self.policy.before_request(&*REQUEST, now),
            BeforeRequest::Fresh(_)
        )
    }

    /// Returns the time for which the reply may be used without asking.
    pub(crate) fn time_left(&self, now: SystemTime) -> Duration {
        self.policy.time_to_live(now)
    }

    /// Returns true if the reply may be used because the API fails.
    pub(crate) fn may_be_stale_on_error(&self, now: SystemTime) -> bool {
        !self.stale_if_error.is_zero()
            && self.policy.age(now) <= self.lifetime.saturating_add(self.stale_if_error)
    }

    /// The headers that ask whether the reply is still good.
    pub(crate) fn conditions(&self, now: SystemTime) -> HeaderMap {
        let mut conditions = HeaderMap::new();
        if let BeforeRequest::Stale { request, .. } = self.policy.before_request(&*REQUEST, now) {
            for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
                if let Some(value) = request.headers.get(&name) {
                    conditions.insert(name, value.clone());
                }
            }
        }
        conditions
    }

    /// Returns the age of the reply (RFC 9111 section 4.2.3).
    pub(crate) fn age(&self, now: SystemTime) -> Duration {
        self.policy.age(now)
    }
}

fn response_parts(status: StatusCode, headers: &HeaderMap) -> response::Parts {
    let mut parts = http::Response::new(()).into_parts().0;
    parts.status = status;
    parts.headers = headers.clone();
    parts
}

/// The age of a reply that arrives now, in seconds: what `Age` says, and at least what `Date` says
/// (RFC 9111 section 4.2.3). Of several ages, the first counts (section 5.1).
fn age_at_arrival(headers: &HeaderMap, now: SystemTime) -> u64 {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let said = text(AGE).and_then(|age| age.split(',').next()?.trim().parse().ok());
    let date = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    let apparent = date
        .and_then(|date| now.duration_since(date).ok())
        .map(|age| age.as_secs());
    said.max(apparent).unwrap_or(0).min(MAX_SECONDS)
}

/// The headers with the directives of `Cache-Control` and `Pragma` in lower case, with no number of
/// seconds above the maximum, and with no directive inside of a quoted string.
fn fold_directives(headers: &HeaderMap) -> HeaderMap {
    let mut folded = headers.clone();
    for name in [CACHE_CONTROL, PRAGMA, AGE] {
        let values: Vec<HeaderValue> = headers
            .get_all(&name)
            .iter()
            .map(|value| without_quoted_lists(&value.as_bytes().to_ascii_lowercase()))
            .filter_map(|value| HeaderValue::from_bytes(&with_clamped_seconds(&value)).ok())
            .collect();
        folded.remove(&name);
        for value in values {
            folded.append(&name, value);
        }
    }
    for name in [EXPIRES, DATE] {
        if let Some(date) = headers.get(&name).map(preferred_date) {
            folded.insert(name, date);
        }
    }
    folded
}

/// The date in the preferred form (RFC 9110 section 5.6.7: a recipient takes all three); what is
/// none of them is over (RFC 9111 section 5.3).
fn preferred_date(value: &HeaderValue) -> HeaderValue {
    const OVER: HeaderValue = HeaderValue::from_static("0");
    let date = value
        .to_str()
        .ok()
        .and_then(|text| httpdate::parse_http_date(text.trim()).ok());
    date.and_then(|date| HeaderValue::from_str(&httpdate::fmt_http_date(date)).ok())
        .unwrap_or(OVER)
}

/// The same directives with each quoted string empty that is more than a token (RFC 9110 section
/// 5.6.4): it may hold what looks like a directive. What is malformed may have been meant to say
/// `no-store`, and does.
fn without_quoted_lists(directives: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(directives.len());
    let mut rest = directives;
    while let Some(start) = memchr::memchr(b'"', rest) {
        let (before, quoted) = rest.split_at(start);
        kept.extend_from_slice(before);
        let length = quoted_length(quoted).filter(|_| before.ends_with(b"="));
        let (quoted, behind) = quoted.split_at(length.unwrap_or(0));
        if length.is_none() || !matches!(behind.trim_ascii_start().first(), None | Some(b',')) {
            kept.extend_from_slice(b", no-store");
            return kept;
        }
        let is_token = quoted
            .iter()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b',' | b'=' | b'\\'));
        kept.extend_from_slice(if is_token { quoted } else { b"\"\"" });
        rest = behind;
    }
    kept.extend_from_slice(rest);
    // A parser of the directives would skip the whole line.
    if !kept
        .iter()
        .all(|byte| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t'))
    {
        return b"no-store".to_vec();
    }
    kept
}

/// Returns the length of the quoted string that the bytes begin with; `None` if it does not end.
fn quoted_length(bytes: &[u8]) -> Option<usize> {
    let mut index = 1;
    loop {
        match bytes.get(index)? {
            b'"' => return Some(index + 1),
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
}

/// The same bytes with `MAX_SECONDS` in place of each larger number.
fn with_clamped_seconds(bytes: &[u8]) -> Vec<u8> {
    let mut clamped = Vec::with_capacity(bytes.len());
    for run in bytes.chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit()) {
        let is_number = run.first().is_some_and(u8::is_ascii_digit);
        let number = std::str::from_utf8(run)
            .ok()
            .and_then(|text| text.parse::<u64>().ok());
        if is_number && number.is_none_or(|number| number > MAX_SECONDS) {
            clamped.extend_from_slice(MAX_SECONDS.to_string().as_bytes());
        } else {
            clamped.extend_from_slice(run);
        }
    }
    clamped
}

/// Returns the value of a directive of `Cache-Control`; empty if it has none.
fn directive<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let values = headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).find_map(|part| {
        let (directive, value) = part.split_once('=').unwrap_or((part, ""));
        (directive.trim() == name).then(|| value.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_date_counts_and_no_other() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:00 GMT").unwrap();
        for (expires, is_fresh) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", true),
            ("Sunday, 06-Nov-94 08:49:37 GMT", true),
            ("Sun Nov  6 08:49:37 1994", true),
            ("Sun, 06 Nov 1994 08:48:37 GMT", false),
            ("Sun,  06 Nov 1994 08:49:37 GMT", false),
            ("0", false),
        ] {
            let mut response = Response {
                status: StatusCode::OK,
                ..Response::default()
            };
            response
                .headers
                .insert(EXPIRES, HeaderValue::from_static(expires));
            response.headers.insert(
                DATE,
                HeaderValue::from_static("Sunday, 06-Nov-94 08:49:00 GMT"),
            );
            let freshness = Freshness::new(&response, now, None);
            let found =
                freshness.is_some_and(|freshness| freshness.is_fresh(now + Duration::from_secs(1)));
            assert_eq!(found, is_fresh, "{expires}");
        }
    }

    #[test]
    fn no_number_of_seconds_overflows() {
        let now = SystemTime::now();
        for headers in [
            &[
                ("age", "18446744073709551615"),
                ("cache-control", "max-age=1000"),
            ][..],
            &[("age", "18446744073709551614"), ("etag", "\"1\"")],
            &[
                ("age", "99999999999999999999999999"),
                ("cache-control", "max-age=18446744073709551615"),
            ],
            &[(
                "cache-control",
                "max-age=1, stale-if-error=18446744073709551615",
            )],
            &[(
                "cache-control",
                "private=\"x\", max-age=1, stale-if-error=\"18446744073709551615\"",
            )],
            &[
                (
                    "cache-control",
                    "max-age=18446744073709551615, stale-while-revalidate=18446744073709551615",
                ),
                ("age", "7"),
            ],
        ] {
            let mut response = Response {
                status: StatusCode::OK,
                ..Response::default()
            };
            for (name, value) in headers {
                response
                    .headers
                    .append(*name, HeaderValue::from_static(value));
            }
            let freshness = Freshness::new(&response, now, None);
            for seconds in [0, 1, 2, 1 << 31, 1 << 33] {
                let later = now + Duration::from_secs(seconds);
                if let Some(freshness) = &freshness {
                    freshness.is_fresh(later);
                    freshness.may_be_stale_on_error(later);
                    freshness.age(later);
                    freshness.time_left(later);
                    freshness.conditions(later);
                }
            }
        }
    }
}
