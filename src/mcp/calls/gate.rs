//! What happens before anything leaves this process. Every call of an operation by a client passes
//! here, and only what passes can be made: it takes an [`Admitted`], which nothing else makes.
//!
//! A plan names only tools that exist for its caller. Then, in this order: the scopes of the caller;
//! the arguments, once; and if a person must agree, the request with masked credentials, and the
//! consent. So nobody is asked about a call that would fail.

use std::sync::Arc;

use super::approval::{Approver, Asking};
use super::by_link::Links;
use super::plan::{NotAdmitted, OperationCall};
use crate::api::CallStart;
use crate::caller::Caller;
use crate::caller::client_grant::ScopeDemand;
use crate::proxy::OnMissingCredential;

/// Decides about the calls of a server.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    /// Scopes that calls need at the endpoint of the server.
    pub(crate) demand: Option<Arc<ScopeDemand>>,
    /// Asks for the consent of a person, if some calls need it.
    pub(crate) approver: Option<Arc<Approver>>,
}

/// A call that may be made.
pub(crate) struct Admitted {
    pub(super) call: OperationCall,
    pub(super) caller: Caller,
    pub(super) start: CallStart,
}

impl Gate {
    /// The questions that links lead to.
    pub(crate) fn links(&self) -> Option<&Arc<Links>> {
        self.approver.as_ref()?.links.as_ref()
    }

    /// Decides about a call; without `asking`, for the command line, whose user is the operator:
    /// nobody is asked.
    ///
    /// # Errors
    /// [`NotAdmitted`].
    pub(crate) async fn admit(
        &self,
        mut call: OperationCall,
        mut caller: Caller,
        asking: Option<Asking<'_>>,
    ) -> Result<Box<Admitted>, NotAdmitted> {
        call.note();
        let missing = self.missing_scopes(&call, &caller);
        if !missing.is_empty() {
            return Err(NotAdmitted::Scopes(missing));
        }
        caller.shown = call.shown_tools();
        let start = if let Some(wait) = call.wait.take() {
            // A call that goes on was agreed to when it began, and its arguments were checked then.
            CallStart::Wait(wait)
        } else {
            let question = asking.filter(|_| call.offered().must_confirm);
            let question = self.approver.as_ref().zip(question);
            let checked = call.check(&caller, question.is_some()).await?;
            if let Some((approver, asking)) = question {
                let agreement = async {
                    let (api, tool) = (&call.seen.api, call.tool);
                    let (arguments, refuse) = (&checked.arguments, OnMissingCredential::Refuse);
                    let prepared = api.preview_checked(tool, arguments.clone(), refuse, &caller)?;
                    let sent = api.completed_arguments(tool, arguments.clone(), &caller)?;
                    approver.ask(&call, &prepared, &sent, &caller, asking).await
                };
                caller.agreement = Box::pin(agreement).await?;
            }
            CallStart::Checked(checked)
        };
        Ok(Box::new(Admitted {
            call,
            caller,
            start,
        }))
    }

    /// The scopes that a caller has to ask for; none if it lacks none.
    pub(crate) fn missing_scopes(&self, call: &OperationCall, caller: &Caller) -> Vec<String> {
        let of_api = call.lacking_scopes(caller);
        match &self.demand {
            Some(demand) => {
                let is_read_only = call.offered().hints.is_read_only();
                demand.missing(&caller.granted().scopes, &of_api, is_read_only)
            }
            None => of_api.into_iter().map(str::to_owned).collect(),
        }
    }
}
