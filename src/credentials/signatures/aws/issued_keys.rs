//! Access keys that an endpoint issues for some time, beside those that never change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::timeout;

use super::access_keys::{AccessKeys, KeyEndpoint, last};
use crate::credentials::{Flight, begin_flight};
use crate::outbound::HttpClient;

/// Keys are renewed this long before they end.
const EXPIRY_MARGIN: Duration = Duration::from_mins(5);
/// Time limit of one request for keys.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest time between two requests for keys while the present ones are valid.
const ATTEMPT_PAUSE: Duration = Duration::from_secs(5);
/// Time for which calls get the failure of the last request for keys.
const FAILURE_PAUSE: Duration = Duration::from_secs(2);

/// The present keys of a scheme.
pub(super) enum PresentKeys {
    /// Keys that never change.
    Fixed(AccessKeys),
    /// Keys that are renewed.
    Issued(Arc<IssuedKeys>),
}

impl PresentKeys {
    /// Keys that are valid now.
    ///
    /// # Errors
    /// The end of a sentence if the endpoint gives none.
    pub(super) async fn get(&self) -> Result<AccessKeys, Arc<str>> {
        match self {
            Self::Fixed(keys) => Ok(keys.clone()),
            Self::Issued(issued) => issued.get().await,
        }
    }
}

/// Keys of an endpoint, requested with the first call and renewed by one task at a time.
pub(super) struct IssuedKeys {
    endpoint: KeyEndpoint,
    http: HttpClient,
    kept: Mutex<KeptKeys>,
}

#[derive(Default)]
struct KeptKeys {
    present: Option<AccessKeys>,
    renewal: Option<Renewal>,
    asked: Option<Instant>,
    failed: Option<(Instant, Arc<str>)>,
}

/// A request for keys that all calls without keys wait for.
type Renewal = Flight<Result<AccessKeys, Arc<str>>>;

impl IssuedKeys {
    /// Makes a source without keys.
    pub(super) fn new(endpoint: KeyEndpoint, http: HttpClient) -> Self {
        Self {
            endpoint,
            http,
            kept: Mutex::default(),
        }
    }

    async fn get(self: &Arc<Self>) -> Result<AccessKeys, Arc<str>> {
        let renewal = {
            let mut kept = self.kept.lock();
            let present = kept.present.clone();
            let present = present.filter(|keys| last(keys, Duration::ZERO));
            let is_pausing = || {
                kept.asked
                    .is_some_and(|asked| asked.elapsed() < ATTEMPT_PAUSE)
            };
            if let Some(keys) = &present
                && (last(keys, EXPIRY_MARGIN) || is_pausing())
            {
                return Ok(keys.clone());
            }
            if let Some((at, problem)) = &kept.failed
                && present.is_none()
                && at.elapsed() < FAILURE_PAUSE
            {
                return Err(Arc::clone(problem));
            }
            let begun = kept.renewal.clone();
            let begun = begun.filter(|renewal| renewal.peek().is_none());
            let renewal = begun.unwrap_or_else(|| self.begin_renewal());
            kept.renewal = Some(renewal.clone());
            kept.asked = Some(Instant::now());
            match present {
                // The task renews them for later calls.
                Some(keys) => return Ok(keys),
                None => renewal,
            }
        };
        renewal.await
    }

    fn begin_renewal(self: &Arc<Self>) -> Renewal {
        let source = Arc::clone(self);
        let renewing = async move {
            let asked = timeout(ATTEMPT_TIMEOUT, source.endpoint.ask(&source.http)).await;
            let asked =
                asked.unwrap_or_else(|_| Err("the endpoint for credentials took too long".into()));
            let asked = match asked {
                Ok(keys) if last(&keys, Duration::ZERO) => Ok(keys),
                Ok(_) => Err("the credentials that the endpoint gave have ended already; check the clock of this machine".into()),
                Err(problem) => Err(Arc::<str>::from(problem)),
            };
            let mut kept = source.kept.lock();
            match &asked {
                Ok(keys) => kept.present = Some(keys.clone()),
                Err(problem) => kept.failed = Some((Instant::now(), Arc::clone(problem))),
            }
            asked.clone()
        };
        begin_flight(
            renewing,
            || Err("the request for credentials failed".into()),
        )
    }
}
