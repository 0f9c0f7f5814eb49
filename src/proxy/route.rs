//! The destination and the credential of a call: those decided for its operation at start, or those
//! of its client's tenant.

use std::sync::Arc;

use super::auth::resolve::{Credential, OperationAccess};
use super::binding::BoundOperation;
use super::caller::Caller;
use super::error::CallError;
use super::request::target::BaseUrl;
use super::tenants::{Tenant, Tenants};
use super::upstream::Upstream;

/// Destination and credential of a call.
#[derive(Clone, Copy)]
pub(crate) struct CallRoute<'c> {
    pub(super) tenant: Option<&'c Tenant>,
    pub(super) access: &'c OperationAccess,
    base: Option<&'c BaseUrl>,
    upstream: Option<&'c Upstream>,
}

impl<'c> CallRoute<'c> {
    /// The route of a client's call.
    ///
    /// # Errors
    /// Those of [`Tenants::of`], if there are tenants.
    pub(crate) fn new(
        target: &'c BoundOperation,
        tenants: Option<&'c Tenants>,
        caller: &Caller,
    ) -> Result<Self, CallError> {
        let Some(tenants) = tenants else {
            return Ok(Self {
                tenant: None,
                access: &target.access,
                base: target.base.as_deref(),
                upstream: target.upstream.as_deref(),
            });
        };
        let tenant = tenants.of(caller)?;
        let access = tenant.access(target.requirements).ok_or_else(no_server)?;
        Ok(Self {
            tenant: Some(tenant),
            access,
            base: Some(&tenant.base),
            upstream: Some(&tenant.upstream),
        })
    }

    /// The operator's credentials.
    ///
    /// # Errors
    /// [`CallError::Credential`] with what is missing.
    pub(crate) fn credential(&self) -> Result<&'c Credential, CallError> {
        match self.access {
            OperationAccess::Granted(credential) => Ok(credential),
            OperationAccess::Missing(why) => Err(CallError::Credential(Arc::clone(why))),
        }
    }

    pub(super) fn destination(&self) -> Result<(&'c BaseUrl, &'c Upstream), CallError> {
        self.base.zip(self.upstream).ok_or_else(no_server)
    }
}

fn no_server() -> CallError {
    CallError::Network {
        sentence: "no server is set",
        cause: String::new(),
    }
}
