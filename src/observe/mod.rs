//! Observability of calls: metrics, traces and the audit log. The code that makes a call wraps it
//! in a [`call::CallObservation`]; events on the way are noted by one line where they happen.
//!
//! The observers belong to the process, as the log does. Without any, a note is one load and one
//! branch.

pub(crate) mod approval;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod metrics;
mod observers;
pub(crate) mod outcome;
pub(crate) mod record;
mod server_span;
pub(crate) mod traces;
pub(crate) mod upstream;

pub(crate) use self::observers::{
    Observers, audit, count_dropped_spans, count_lost_line, is_on, metrics, names_traces,
    refused_request, start, tracer,
};
