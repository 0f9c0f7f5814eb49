//! The decisions about a call before anything is sent: destination, credential, arguments of rules
//! and forwarded headers.

use std::sync::Arc;
use std::time::Instant;

use http::header::{COOKIE, HeaderMap, HeaderValue};

use super::{ApiProxy, Call};
use crate::call_error::CallError;
use crate::caller::Caller;
use crate::credentials::authenticator::Authenticator;
use crate::credentials::forward;
use crate::credentials::injected::Injected;
use crate::credentials::resolve::{Credential, OperationAccess};
use crate::json::JsonObject;
use crate::outbound::request::Request;
use crate::proxy::arguments::ruled::RuledCall;
use crate::proxy::binding::BoundOperation;
use crate::proxy::client_values::MASK;
use crate::proxy::request::closed_paths::{ClosedPaths, PathGuard};
use crate::proxy::request::target::BaseUrl;
use crate::proxy::tenants::Tenant;
use crate::proxy::upstream::Upstream;
use crate::redact::Redactor;

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
    access: &'c OperationAccess,
    destination: Option<(&'c BaseUrl, &'c Upstream)>,
}

impl<'c> CallRoute<'c> {
    fn credential(&self) -> Result<&'c Credential, CallError> {
        match self.access {
            OperationAccess::Granted(credential) => Ok(credential),
            OperationAccess::Missing(why) => Err(CallError::Credential(Arc::clone(why))),
        }
    }

    fn destination(&self) -> Result<(&'c BaseUrl, &'c Upstream), CallError> {
        self.destination.ok_or_else(no_server)
    }
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
        let Some(tenants) = &self.tenants else {
            return Ok(CallRoute {
                tenant: None,
                access: &target.access,
                destination: target.base.as_deref().zip(target.upstream.as_deref()),
            });
        };
        let tenant = tenants.of(caller)?;
        Ok(CallRoute {
            tenant: Some(tenant),
            access: tenant.access(target.requirements).ok_or_else(no_server)?,
            destination: Some((&tenant.base, &tenant.upstream)),
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
        self.route(target, caller)?.credential().map(drop)
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
        let credential = route.credential()?;
        let (base, upstream) = route.destination()?;
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
        let masked = match route.credential() {
            Ok(credential) => credential.masked(),
            Err(missing) if on_missing == OnMissingCredential::Refuse => return Err(missing),
            Err(_) => Injected::default(),
        };
        let (base, _) = route.destination()?;
        let completed = target.complete_arguments(arguments, true, None)?;
        let guard = paths.map(|paths| PathGuard {
            paths,
            shown: &caller.shown,
            reads_only: target.is_read_only,
        });
        let mut request = self.request(target, base, &completed.arguments, &masked, guard)?;
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
    /// The arguments of the request, with what rules of the operator put in.
    fn complete_arguments(
        &self,
        arguments: JsonObject,
        are_all: bool,
        caller: Option<&Caller>,
    ) -> Result<RuledCall, CallError> {
        match &self.rules {
            Some(rules) => rules.complete(&self.tool, arguments, are_all, caller),
            None => Ok(RuledCall {
                arguments,
                secrets: Vec::new(),
            }),
        }
    }

    /// The same for a caller, with a redactor of its values that rules send.
    pub(crate) fn completed(
        &self,
        arguments: JsonObject,
        are_all: bool,
        caller: &Caller,
    ) -> Result<(JsonObject, Option<Redactor>), CallError> {
        let RuledCall { arguments, secrets } =
            self.complete_arguments(arguments, are_all, Some(caller))?;
        let redactor = (!secrets.is_empty())
            .then(|| Redactor::for_values(secrets.iter().map(String::as_bytes)));
        Ok((arguments, redactor))
    }
}
