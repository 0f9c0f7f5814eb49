//! Failures of requests without a reply, or with an incomplete one.

use std::error::Error as StdError;
use std::io;

use reqwest::Error as HttpError;

use crate::text;

/// A failed exchange. The source is the whole chain of causes, without the URL.
pub(crate) struct OutboundFailure {
    /// Stage that the exchange reached.
    pub(crate) stage: Stage,
    /// True if the connection is made through a proxy.
    pub(crate) has_proxy: bool,
    cause: HttpError,
}

/// Stage that an exchange reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No connection was made.
    Connect,
    /// No head of a reply came.
    Request,
    /// The body did not come whole.
    Body,
    /// The body came, but cannot be decompressed.
    Decode,
}

impl OutboundFailure {
    pub(super) fn of_request(error: HttpError, has_proxy: bool) -> Self {
        let stage = if error.is_connect() {
            Stage::Connect
        } else {
            Stage::Request
        };
        Self {
            has_proxy,
            ..Self::new(stage, error)
        }
    }

    pub(crate) fn of_body(error: HttpError) -> Self {
        // reqwest calls a body that breaks off a decoding error as well; hyper, below it, knows
        // better.
        let is_broken = error.is_body()
            || !error.is_decode()
            || with_causes(&error).any(<dyn StdError>::is::<hyper::Error>);
        Self::new(
            if is_broken {
                Stage::Body
            } else {
                Stage::Decode
            },
            error,
        )
    }

    fn new(stage: Stage, error: HttpError) -> Self {
        Self {
            stage,
            has_proxy: false,
            cause: error.without_url(),
        }
    }

    /// The first of the causes.
    pub(crate) fn cause(&self) -> &(dyn StdError + 'static) {
        &self.cause
    }

    /// All causes, from the nearest to the deepest.
    pub(crate) fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        with_causes(self.cause())
    }

    /// Returns true if a limit of time was reached.
    pub(crate) fn is_timeout(&self) -> bool {
        self.causes().any(|cause| {
            cause
                .downcast_ref::<HttpError>()
                .is_some_and(HttpError::is_timeout)
                || cause
                    .downcast_ref::<hyper::Error>()
                    .is_some_and(hyper::Error::is_timeout)
                || cause
                    .downcast_ref::<io::Error>()
                    .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
        })
    }
}

fn with_causes<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::once(error).chain(text::error_causes(error))
}
