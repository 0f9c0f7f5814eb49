//! A call in three steps: `prepare` selects the credential and completes the arguments, `send` gets
//! the reply, and `finish` makes the result.
//!
//! The request is built in `send`, once for each try, because a body may consist of open files.
//! `finish` builds it to name embedded bytes by its path, and to compare it with a link to the next
//! page. If a call collects pages, each of them is prepared and sent like this (`call/page.rs`).

mod finish;
mod page;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crate::json::JsonObject;
use http::header::{COOKIE, HeaderMap, HeaderValue};

use super::arguments::property_names::with_wire_names;
use super::arguments::ruled::RuledCall;
use super::auth::authenticator::Authenticator;
use super::auth::forward::{self, Forwarding};
use super::auth::resolve::{Credential, OperationAccess};
use super::binding::BoundOperation;
use super::caller::Caller;
use super::caller::client_values::MASK;
use super::error::CallError;
use super::exchange::CallOptions;
use super::files::FilePlan;
use super::redact::Redactor;
use super::request::closed_paths::{ClosedPaths, PathGuard};
use super::request::fixed::check_fixed_arguments;
use super::request::target::BaseUrl;
use super::request::{self, ExpectedReply, Injected, Request, RequestTemplate};
use super::response::sandbox::Sandbox;
use super::route::CallRoute;
use super::tenants::{Tenant, Tenants};
use super::upstream::{OutgoingCall, Reply, Upstream};
use crate::observe::call::{note, record_begin};
use crate::spec::Document;
use crate::spec::operation::response_rule::ResponseRule;
use crate::text::{self, MIN_BYTES_PER_TOKEN};

/// Treatment of a preview if a credential is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissingCredential {
    /// Refuse it, as the call would be.
    Refuse,
    /// Show it without.
    Omit,
}

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

/// A call that can be sent.
pub(crate) struct PreparedCall<'c> {
    pub(super) target: &'c BoundOperation,
    pub(super) tenant: Option<&'c Tenant>,
    pub(super) base: &'c BaseUrl,
    pub(super) upstream: &'c Upstream,
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
    /// Limits of time and size.
    options: Cow<'c, CallOptions>,
}

impl PreparedCall<'_> {
    /// Keeps its path and the URLs of its replies from operations that its caller may not call.
    pub(super) fn guard(&self) -> Option<PathGuard<'_>> {
        self.paths.map(|paths| PathGuard {
            paths,
            shown: &self.caller.shown,
            reads_only: self.target.is_read_only,
        })
    }
}

impl ApiProxy {
    /// Returns the destination and the credential of a client's call.
    ///
    /// # Errors
    /// [`CallError::Setting`] if there are tenants, and the client belongs to none.
    pub(crate) fn route<'c>(
        &'c self,
        target: &'c BoundOperation,
        caller: &Caller,
    ) -> Result<CallRoute<'c>, CallError> {
        CallRoute::new(target, self.tenants.as_ref(), caller)
    }

    /// The request that a call would make, with `***` for the operator's credentials.
    ///
    /// # Errors
    /// The error with which the call would fail before a request is sent.
    pub(crate) fn preview(
        &self,
        route: CallRoute<'_>,
        target: &BoundOperation,
        arguments: JsonObject,
        on_missing: OnMissingCredential,
        guard: Option<PathGuard<'_>>,
    ) -> Result<Request, CallError> {
        let masked = match (route.access, on_missing) {
            (OperationAccess::Granted(credential), _) => credential.masked(),
            (OperationAccess::Missing(why), OnMissingCredential::Refuse) => {
                return Err(CallError::Credential(Arc::clone(why)));
            }
            (OperationAccess::Missing(_), OnMissingCredential::Omit) => Injected::default(),
        };
        let (base, _) = route.destination()?;
        let completed = target.complete_arguments(arguments, true, None)?;
        let mut request = self.request(target, base, &completed.arguments, &masked, guard)?;
        if target.rules.is_some() {
            show_masks(&mut request);
        }
        Ok(request)
    }

    /// A call with arguments that fit the input schema. Those of a handle are not `all` of them,
    /// and were checked with the others.
    ///
    /// # Errors
    /// [`CallError::Credential`] if a credential of the operator or the client is missing.
    pub(crate) fn prepare<'c>(
        &'c self,
        route: CallRoute<'c>,
        target: &'c BoundOperation,
        arguments: JsonObject,
        are_all: bool,
        caller: &'c Caller,
        paths: Option<&'c ClosedPaths>,
    ) -> Result<PreparedCall<'c>, CallError> {
        let started = Instant::now();
        let credential = route.credential()?;
        let (base, upstream) = route.destination()?;
        let RuledCall { arguments, secrets } =
            target.complete_arguments(arguments, are_all, Some(caller))?;
        Ok(PreparedCall {
            target,
            tenant: route.tenant,
            base,
            upstream,
            credential,
            arguments,
            client_secrets: (!secrets.is_empty())
                .then(|| Redactor::for_values(secrets.iter().map(String::as_bytes))),
            forwarded: self.forwarded(credential, caller)?,
            caller,
            paths,
            started,
            deadline: started + self.options.timeout,
            options: Cow::Borrowed(&self.options),
        })
    }

    /// The request of a call with everything but the `Authorization` that is made anew for each
    /// request.
    fn outgoing_request(&self, call: &PreparedCall<'_>) -> Result<Request, CallError> {
        let injected = &call.credential.fixed;
        let mut request = self.request(
            call.target,
            call.base,
            &call.arguments,
            injected,
            call.guard(),
        )?;
        if let Some((headers, _)) = &call.forwarded {
            request.headers.extend(
                headers
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
        }
        Ok(request)
    }

    /// The API's reply to a call. Its request is sent as often as its operation allows; dropping the
    /// future ends it.
    ///
    /// # Errors
    /// [`CallError`] if the request cannot be made or no complete reply comes.
    pub(crate) async fn send(&self, call: &PreparedCall<'_>) -> Result<Reply, CallError> {
        let outgoing = OutgoingCall {
            make: || self.outgoing_request(call),
            credential: call.credential,
            refused_tokens: &call.target.refused_tokens,
            repeats: call.target.repeats,
            options: &call.options,
            deadline: call.deadline,
            caller: call.caller,
            file: self.file_plan(call),
        };
        record_begin().await.map_err(|_| CallError::NotRecorded)?;
        let outcome = call.upstream.call(outgoing).await;
        let (tool, ms) = (&call.target.tool, call.started.elapsed().as_millis());
        match &outcome {
            Ok(reply) => {
                let (status, bytes) = (reply.response.status.as_u16(), reply.response.length());
                tracing::debug!(%tool, status, bytes, ms, "called");
                note(|record| (record.status, record.bytes) = (Some(status), Some(bytes)));
            }
            Err(error) if error.is_the_callers() => {}
            Err(error) => {
                let host = call.base.url().host_str().unwrap_or_default();
                let port = call.base.url().port_or_known_default().unwrap_or_default();
                let cause = self.log_cause(call, error);
                tracing::warn!(%tool, host, port, ms, "the call failed: {error}{cause}");
            }
        }
        outcome
    }

    /// Number of bytes that a result may have; 0 is no limit. A rule can only lower it.
    pub(super) fn max_result_bytes(&self, rule: Option<&ResponseRule>) -> usize {
        let max_bytes = self.options.max_result_bytes;
        match rule.and_then(|rule| rule.max_tokens) {
            Some(tokens) if max_bytes == 0 => tokens.saturating_mul(MIN_BYTES_PER_TOKEN),
            Some(tokens) => tokens.saturating_mul(MIN_BYTES_PER_TOKEN).min(max_bytes),
            None => max_bytes,
        }
    }

    /// The conditions under which the reply becomes a file. A rule that removes parts of replies
    /// does not reach into one.
    pub(super) fn file_plan<'p>(&'p self, call: &'p PreparedCall<'_>) -> Option<FilePlan<'p>> {
        let rule = call.target.operation.rules.response.as_ref();
        rule.is_none_or(|rule| !rule.withholds()).then(|| FilePlan {
            delivery: &self.options.delivery,
            tool: &call.target.tool,
            is_ruled: rule.is_some_and(|rule| rule.file == Some(true)),
            may_be_status: call.target.operation.may_wait(),
            max_result_bytes: self.max_result_bytes(rule),
            redactors: if self.options.delivery.destination.is_some() {
                self.redactors(call).collect()
            } else {
                Vec::new()
            },
        })
    }

    /// Returns the redactors for the result of a call: those of the operator's, its tenant's and
    /// the client's secrets.
    pub(super) fn redactors<'r>(
        &'r self,
        call: &'r PreparedCall<'_>,
    ) -> impl Iterator<Item = &'r Redactor> + Clone {
        let of_tenant = call.tenant.map(|tenant| &tenant.redactor);
        let forwarded = call.forwarded.as_ref().map(|(_, redactor)| redactor);
        let of_client = forwarded.into_iter().chain(&call.client_secrets);
        std::iter::once(&self.redactor)
            .chain(of_tenant)
            .chain(of_client)
    }

    /// The causes of an error for the log, in brackets and without secrets.
    pub(super) fn log_cause(&self, call: &PreparedCall<'_>, error: &CallError) -> String {
        let Some(cause) = error.cause() else {
            return String::new();
        };
        let mut cause = cause.to_owned();
        for redactor in self.redactors(call) {
            redactor.redact_line(&mut cause);
        }
        format!(" ({})", text::one_line(&cause))
    }

    fn request(
        &self,
        target: &BoundOperation,
        base: &BaseUrl,
        arguments: &JsonObject,
        injected: &Injected,
        guard: Option<PathGuard<'_>>,
    ) -> Result<Request, CallError> {
        let operation = &target.operation;
        let expected = target
            .expected
            .get_or_init(|| ExpectedReply::new(&self.document, operation));
        let template = RequestTemplate {
            document: &self.document,
            operation,
            base,
            expected,
            injected,
            files: self.options.files.as_ref(),
            guard,
        };
        let request = request::build(&template, arguments)?;
        check_fixed_arguments(&template, arguments, &request)?;
        Ok(request)
    }

    /// Returns the client's headers that are forwarded, except those that the operator sets, which
    /// take precedence.
    fn forwarded(
        &self,
        credential: &Credential,
        caller: &Caller,
    ) -> Result<Option<(HeaderMap, Redactor)>, CallError> {
        if self.forward.headers.is_empty() || !credential.forwards {
            return Ok(None);
        }
        let mut picked = self.forward.pick(&caller.headers);
        for name in credential.fixed.headers.keys() {
            picked.remove(name);
        }
        for name in credential
            .authenticator
            .iter()
            .flat_map(Authenticator::headers)
        {
            picked.remove(name);
        }
        if let Some((ours, _)) = credential
            .of_client
            .iter()
            .find(|(_, theirs)| !picked.contains_key(theirs))
        {
            let why = format!(
                "nothing was sent, because the API asks for a credential that the client has to send in its `{ours}` header"
            );
            return Err(CallError::Credential(why.into()));
        }
        let redactor = forward::redactor(&picked, &credential.of_client);
        Ok(Some((picked, redactor)))
    }
}

/// Writes the masks of secret values unencoded.
fn show_masks(request: &mut Request) {
    const ENCODED: &str = "%2A%2A%2A";
    let path = request.url.path().replace(ENCODED, MASK);
    request.url.set_path(&path);
    let query = request
        .url
        .query()
        .map(|query| query.replace(ENCODED, MASK));
    request.url.set_query(query.as_deref());
    let cookies = request
        .headers
        .get(COOKIE)
        .and_then(|cookies| cookies.to_str().ok());
    if let Some(Ok(shown)) =
        cookies.map(|cookies| HeaderValue::from_str(&cookies.replace(ENCODED, MASK)))
    {
        request.headers.insert(COOKIE, shown);
    }
}

impl BoundOperation {
    /// The arguments of the request: with what rules of the operator put in, and with the names on
    /// the wire.
    fn complete_arguments(
        &self,
        arguments: JsonObject,
        are_all: bool,
        caller: Option<&Caller>,
    ) -> Result<RuledCall, CallError> {
        let completed = match &self.rules {
            Some(rules) => rules.complete(&self.tool, arguments, are_all, caller)?,
            None => RuledCall {
                arguments,
                secrets: Vec::new(),
            },
        };
        Ok(RuledCall {
            arguments: with_wire_names(completed.arguments, self.wire.as_deref()),
            ..completed
        })
    }
}
