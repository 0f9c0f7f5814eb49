//! One call of an operation. `begin` makes every decision before a byte leaves, `ask` gets a reply of
//! the API, `clean` takes secrets out and applies the operator's rules, and `finish` makes the
//! result. What asks several times, for pages or for a status, is a loop over `ask`.
//!
//! The request is built in `ask`, once for each attempt, because a body may consist of open files.
//! `clean` builds it to compare it with a link to the next page, `finish` to name files and embedded
//! bytes by its path, and a wait to compare it with the URL of a status.
//!
//! # Changing when a request is sent again
//!
//! - `pause` in `proxy/upstream.rs` decides after which outcome and after which pause;
//!   `Budget` there limits the share of retries.
//! - `MAX_ATTEMPTS` in `proxy/call/ask.rs` and the setting in `config/upstream.rs` limit how
//!   often.
//! - The hint `idempotentHint` decides for which tools. After a 401, `renews_credential` in
//!   `proxy/call/ask.rs` allows one more request of any tool.

pub(crate) mod ask;
mod finish;

use std::sync::Arc;
use std::time::Instant;

use http::header::{COOKIE, HeaderMap, HeaderValue};

use super::binding::BoundOperation;
use super::exchange::CallOptions;
use super::request::closed_paths::{ClosedPaths, PathGuard};
use super::request::target::BaseUrl;
use super::tenants::{Tenant, Tenants};
use super::upstream::Upstream;
use crate::call_error::CallError;
use crate::caller::Caller;
use crate::credentials::authenticator::{Authenticator, Injected};
use crate::credentials::forward;
use crate::credentials::forward::Forwarding;
use crate::credentials::resolve::Credential;
use crate::json::JsonObject;
use crate::outbound::request::Request;
use crate::proxy::tenants::MASK;
use crate::redact::Redactor;
use crate::results::Reply;
use crate::results::filter::Sandbox;
use crate::results::remarks::{PageReport, WaitRemark};
use crate::spec::Document;
use crate::spec::operation::response_rule::ResponseRule;

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

impl<'c> Call<'c> {
    /// The operator's rule for its replies.
    fn rule(&self) -> Option<&'c ResponseRule> {
        self.target.operation.rules.response.as_ref()
    }

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

/// Treatment of a preview if a credential is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissingCredential {
    /// Refuse it, as the call would be.
    Refuse,
    /// Show it without.
    Omit,
}

/// Destination and credential of a call: those decided for its operation at start, or those of its
/// client's tenant.
struct CallRoute<'c> {
    tenant: Option<&'c Tenant>,
    credential: Result<&'c Credential, CallError>,
    destination: Result<(&'c BaseUrl, &'c Upstream), CallError>,
}

fn no_server() -> CallError {
    CallError::Network {
        sentence: "no server is set",
        cause: String::new(),
    }
}

impl ApiProxy {
    fn route<'c>(
        &'c self,
        target: &'c BoundOperation,
        caller: &Caller,
    ) -> Result<CallRoute<'c>, CallError> {
        let tenants = self.tenants.as_ref();
        let tenant = tenants.map(|tenants| tenants.of(caller)).transpose()?;
        let (access, destination) = if let Some(tenant) = tenant {
            let access = tenant.access.get(target.requirements);
            let destination = (tenant.base.as_ref(), tenant.upstream.as_ref());
            (access.ok_or_else(no_server)?, Some(destination))
        } else {
            let destination = target.base.as_deref().zip(target.upstream.as_deref());
            (&target.access, destination)
        };
        Ok(CallRoute {
            tenant,
            credential: access
                .as_deref()
                .map_err(|why| CallError::Credential(Arc::clone(why))),
            destination: destination.ok_or_else(no_server),
        })
    }

    /// Makes sure that a client's call has a credential.
    ///
    /// # Errors
    /// [`CallError::Credential`] with what is missing; [`CallError::Setting`] if there are tenants,
    /// and the client belongs to none.
    pub(crate) fn require_credential(
        &self,
        target: &BoundOperation,
        caller: &Caller,
    ) -> Result<(), CallError> {
        self.route(target, caller)?.credential.map(drop)
    }

    /// Begins a call with arguments that fit the input schema. Those of a handle are not `all` of
    /// them, and were checked with the others.
    ///
    /// # Errors
    /// As [`Self::require_credential`], and if values of rules or headers of the client are missing.
    pub(crate) fn begin<'c>(
        &'c self,
        target: &'c BoundOperation,
        arguments: JsonObject,
        are_all: bool,
        caller: &'c Caller,
        paths: Option<&'c ClosedPaths>,
    ) -> Result<Call<'c>, CallError> {
        let started = Instant::now();
        let route = self.route(target, caller)?;
        let credential = route.credential?;
        let (base, upstream) = route.destination?;
        let (arguments, client_secrets) = target.completed(arguments, are_all, caller)?;
        Ok(Call {
            proxy: self,
            target,
            tenant: route.tenant,
            base,
            upstream,
            credential,
            arguments,
            client_secrets,
            forwarded: self.forwarded(credential, caller)?,
            caller,
            paths,
            started,
            deadline: started + self.options.timeout,
            max_bytes: self.options.max_response_bytes,
        })
    }

    /// The request that a call would make, with `***` for the operator's credentials.
    ///
    /// # Errors
    /// The error with which the call would fail before a request is sent.
    pub(crate) fn preview(
        &self,
        target: &BoundOperation,
        arguments: JsonObject,
        on_missing: OnMissingCredential,
        caller: &Caller,
        paths: Option<&ClosedPaths>,
    ) -> Result<Request, CallError> {
        let route = self.route(target, caller)?;
        let masked = match route.credential {
            Ok(credential) => credential.masked(),
            Err(missing) if on_missing == OnMissingCredential::Refuse => return Err(missing),
            Err(_) => Injected::default(),
        };
        let (base, _) = route.destination?;
        let (arguments, _) = target.complete_arguments(arguments, true, None)?;
        let guard = paths.map(|paths| PathGuard {
            paths,
            shown: &caller.shown,
            reads_only: target.is_read_only,
        });
        let mut request = self.request(target, base, &arguments, &masked, guard)?;
        if target.rules.is_some() {
            show_masks(&mut request);
        }
        Ok(request)
    }

    /// Returns the client's headers that are forwarded, except those that the operator sets, which
    /// take precedence.
    pub(super) fn forwarded(
        &self,
        credential: &Credential,
        caller: &Caller,
    ) -> Result<Option<(HeaderMap, Redactor)>, CallError> {
        if self.forward.headers.is_empty() || !credential.forwards {
            return Ok(None);
        }
        let mut picked = self.forward.pick(&caller.headers);
        let authenticator = credential.authenticator.iter();
        for name in authenticator.flat_map(Authenticator::headers) {
            picked.remove(name);
        }
        for name in credential.fixed.headers.keys() {
            picked.remove(name);
        }
        let mut of_client = credential.of_client.iter();
        if let Some((ours, _)) = of_client.find(|(_, theirs)| !picked.contains_key(theirs)) {
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
    let query = request.url.query();
    let query = query.map(|query| query.replace(ENCODED, MASK));
    request.url.set_query(query.as_deref());
    let cookies = request.headers.get_mut(COOKIE);
    if let Some(cookies) = cookies
        && let Ok(text) = cookies.to_str()
        && let Ok(shown) = HeaderValue::from_str(&text.replace(ENCODED, MASK))
    {
        *cookies = shown;
    }
}

impl BoundOperation {
    /// The arguments of the request, with what rules of the operator put in, and the client's values
    /// in them.
    fn complete_arguments(
        &self,
        arguments: JsonObject,
        are_all: bool,
        caller: Option<&Caller>,
    ) -> Result<(JsonObject, Vec<String>), CallError> {
        match &self.rules {
            Some(rules) => rules.complete(&self.tool, arguments, are_all, caller),
            None => Ok((arguments, Vec::new())),
        }
    }

    /// The same for a caller, with a redactor of its values that rules send.
    pub(crate) fn completed(
        &self,
        arguments: JsonObject,
        are_all: bool,
        caller: &Caller,
    ) -> Result<(JsonObject, Option<Redactor>), CallError> {
        let (arguments, secrets) = self.complete_arguments(arguments, are_all, Some(caller))?;
        let redactor = (!secrets.is_empty()).then(|| Redactor::for_values(secrets));
        Ok((arguments, redactor))
    }
}
