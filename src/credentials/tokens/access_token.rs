//! An access token, and how long it may be used.

use std::sync::Arc;
use std::time::Instant;

use http::header::HeaderValue;

use crate::credentials::sensitive_header;
use crate::redact::Redactor;

/// An access token.
pub(crate) struct AccessToken {
    /// `Authorization` with it.
    pub header: HeaderValue,
    /// Redacts the token in replies.
    pub redactor: Arc<Redactor>,
    pub(super) fresh_until: Option<Instant>,
    pub(super) expires: Option<Instant>,
}

impl AccessToken {
    /// A token that replies do not show, and neither what can renew it; `ends` are the times from
    /// when on it is renewed, and from when on it is not valid any more. `None` if no header can
    /// hold it.
    pub(super) fn new(
        access: &str,
        refresh: Option<&str>,
        ends: Option<[Instant; 2]>,
    ) -> Option<Self> {
        Some(Self {
            header: sensitive_header(format!("Bearer {access}").as_bytes()).ok()?,
            redactor: Arc::new(Redactor::for_tokens(std::iter::once(access).chain(refresh))),
            fresh_until: ends.map(|[fresh_until, _]| fresh_until),
            expires: ends.map(|[_, expires]| expires),
        })
    }

    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        self.fresh_until.is_none_or(|until| now < until)
    }

    /// The token itself.
    pub(super) fn bearer(&self) -> &str {
        let text = self.header.to_str().unwrap_or_default();
        text.strip_prefix("Bearer ").unwrap_or(text)
    }

    pub(super) fn is_good(&self, now: Instant) -> bool {
        self.expires.is_none_or(|until| now < until)
    }
}
