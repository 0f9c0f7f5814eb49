//! The operator's settings for traces, by the variables of OpenTelemetry, and the sampling of them.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rustls::pki_types::CertificateDer;
use url::Url;

use crate::outbound::Identity;

/// Destination of spans, and their sampling.
#[derive(Debug, Clone)]
pub(crate) struct TraceOptions {
    pub(crate) endpoint: Url,
    /// Headers of each request to the collector; their values are secrets.
    pub(crate) headers: HeaderMap,
    /// Time limit of one request.
    pub(crate) timeout: Duration,
    /// True if requests are compressed.
    pub(crate) gzip: bool,
    /// Time for which a span waits for others.
    pub(crate) schedule_delay: Duration,
    pub(crate) sampler: Sampler,
    /// Attributes of the process.
    pub(crate) resource: Vec<(String, String)>,
    /// Authorities that the collector's certificate may come from besides those of the system.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
    /// Identity for the collector, if it requests a client certificate.
    pub(crate) identity: Option<Arc<Identity>>,
}

/// Decision about the recorded traces: the samplers of OpenTelemetry's SDK by their names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// True if a parent that is recorded, or is not, decides.
    follows_parent: bool,
    /// Share of the other traces that is recorded, from 0 to 1.
    ratio: f64,
}

impl Sampler {
    /// Returns the sampler of `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`; `None` if there
    /// is none of that name.
    pub(crate) fn named(name: &str, argument: Option<f64>) -> Option<Self> {
        let (follows_parent, rest) = name
            .strip_prefix("parentbased_")
            .map_or((false, name), |rest| (true, rest));
        let ratio = match rest {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => argument.unwrap_or(1.0),
            _ => return None,
        };
        Some(Self {
            follows_parent,
            ratio,
        })
    }

    /// Returns true if a trace with that parent is recorded. The lower half of the trace's
    /// identifier decides, so all processes decide alike about one trace.
    pub(super) fn records(self, trace_id: u128, parent: Option<bool>) -> bool {
        /// The lower 63 bits.
        const MASK: u128 = (1 << 63) - 1;
        if let Some(parent) = parent.filter(|_| self.follows_parent) {
            return parent;
        }
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
        let share = (trace_id & MASK) as f64 / (MASK + 1) as f64;
        share < self.ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samplers_follow_the_parent_or_the_ratio() {
        let trace_ids = || {
            (1..=1000_u128)
                .map(|number| (number << 64) | (u128::from(u64::MAX >> 1) / 1000 * number))
        };
        for (name, argument, parent, recorded) in [
            ("always_on", None, Some(false), 1000),
            ("always_off", None, Some(true), 0),
            ("parentbased_always_on", None, None, 1000),
            ("parentbased_always_on", None, Some(false), 0),
            ("parentbased_always_off", None, Some(true), 1000),
            ("traceidratio", Some(0.25), Some(true), 249),
            ("parentbased_traceidratio", Some(0.5), None, 499),
            ("parentbased_traceidratio", None, None, 1000),
        ] {
            let sampler = Sampler::named(name, argument).unwrap();
            let count = trace_ids()
                .filter(|id| sampler.records(*id, parent))
                .count();
            assert!(count.abs_diff(recorded) <= 1, "{name}: {count}");
        }
        assert_eq!(Sampler::named("jaeger_remote", None), None);
    }
}
