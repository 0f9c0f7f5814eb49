//! One call of an operation. `begin` makes every decision before a byte leaves, `ask` gets a reply of
//! the API, `clean` takes secrets out and applies the operator's rules, and `finish` makes the
//! result. What asks several times, for pages or for a status, is a loop over `ask`.
//!
//! The request is built in `ask`, once for each attempt, because a body may consist of open files.
//! `clean` builds it to compare it with a link to the next page, and `finish` to name embedded bytes
//! by its path.
//!
//! # Changing when a request is sent again
//!
//! - `pause` in `proxy/upstream/retry.rs` decides after which outcome and after which pause;
//!   `Budget` there limits the share of retries.
//! - `MAX_ATTEMPTS` in `proxy/call/attempts.rs` and the setting in `config/upstream.rs` limit how
//!   often.
//! - The hint `idempotentHint` decides for which tools. After a 401, `renews_credential` in
//!   `proxy/call/attempts.rs` allows one more request of any tool.

pub(crate) mod ask;
mod attempts;
pub(crate) mod begin;
mod clean;
mod finish;
mod next_page;

use std::sync::Arc;
use std::time::Instant;

use http::header::HeaderMap;

use super::binding::BoundOperation;
use super::exchange::CallOptions;
use super::request::closed_paths::{ClosedPaths, PathGuard};
use super::request::target::BaseUrl;
use super::tenants::{Tenant, Tenants};
use super::upstream::Upstream;
use crate::caller::Caller;
use crate::credentials::forward::Forwarding;
use crate::credentials::resolve::Credential;
use crate::json::JsonObject;
use crate::redact::Redactor;
use crate::results::Reply;
use crate::results::page_report::PageReport;
use crate::results::sandbox::Sandbox;
use crate::results::wait_remark::WaitRemark;
use crate::spec::Document;

/// State that the calls of all operations of one API share.
pub(crate) struct ApiProxy {
    pub(crate) document: Arc<Document>,
    pub(crate) options: CallOptions,
    pub(crate) forward: Forwarding,
    /// Takes the operator's secrets out of replies.
    pub(crate) redactor: Redactor,
    /// Sandbox that runs filters of replies, if they are offered.
    pub(crate) sandbox: Option<Sandbox>,
    /// The tenants to which calls go, if the operator lists them.
    pub(crate) tenants: Option<Tenants>,
}

/// One call of one operation, with all that was decided about it.
pub(crate) struct Call<'c> {
    pub(super) proxy: &'c ApiProxy,
    pub(super) target: &'c BoundOperation,
    pub(super) tenant: Option<&'c Tenant>,
    pub(super) base: &'c BaseUrl,
    upstream: &'c Upstream,
    pub(super) credential: &'c Credential,
    pub(super) caller: &'c Caller,
    /// The paths of all operations, if a value or the URL of a reply could be one of them.
    pub(crate) paths: Option<&'c ClosedPaths>,
    /// Arguments with the names on the wire.
    pub(super) arguments: JsonObject,
    /// The client's headers that go upstream, and what takes them out of the reply.
    pub(super) forwarded: Option<(HeaderMap, Redactor)>,
    /// Redactor of the client's values that rules send.
    client_secrets: Option<Redactor>,
    pub(super) started: Instant,
    deadline: Instant,
    /// The largest reply.
    max_bytes: usize,
}

/// End of what a call asks for.
pub(crate) enum Ending {
    /// The reply to its request.
    Reply(Reply),
    /// The replies to the requests of several pages as one.
    Pages(Reply, PageReport),
    /// The last reply about an operation that takes long, if there is one.
    Waited(Option<Reply>, WaitRemark),
}

impl Call<'_> {
    /// Keeps its path and the URLs of its replies from operations that its caller may not call.
    pub(super) fn guard(&self) -> Option<PathGuard<'_>> {
        Some(PathGuard {
            paths: self.paths?,
            shown: &self.caller.shown,
            reads_only: self.target.is_read_only,
        })
    }

    /// Returns the redactors for texts that are made of a reply: those of secrets, and that of what
    /// rules mask.
    pub(super) fn redactors(&self) -> impl Iterator<Item = &Redactor> + Clone {
        self.secret_redactors().chain(self.target.masks.as_deref())
    }

    /// Returns the redactors of the operator's, its tenant's and the client's secrets.
    pub(super) fn secret_redactors(&self) -> impl Iterator<Item = &Redactor> + Clone {
        let of_tenant = self.tenant.map(|tenant| &tenant.redactor);
        let forwarded = self.forwarded.as_ref().map(|(_, redactor)| redactor);
        std::iter::once(&self.proxy.redactor)
            .chain(of_tenant)
            .chain(forwarded)
            .chain(&self.client_secrets)
    }
}
