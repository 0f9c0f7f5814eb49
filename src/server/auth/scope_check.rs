//! Whether the scopes of a client allow the call that it asks for.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::{ClientAdmission, Refusal};
use crate::annotate::Effect;
use crate::observe::call::CallObservation;
use crate::observe::outcome::CallOutcome;
use crate::proxy::caller::AuthenticatedClient;
use crate::proxy::caller::scopes::Scopes;
use crate::server::catalog::Resolution;
use crate::server::endpoints::served_apis::ServedApis;
use crate::server::jsonrpc::{CallParameters, CalledMessage};
use crate::server::observed::{self, WaitingCall};

/// A call, search or refusal that the scopes of its client allow.
#[derive(Clone)]
pub(crate) struct AllowedCall(pub(crate) Arc<Resolution>);

/// The layer that checks scopes, behind the one that reads the body: the enforced effect of the tool decides whether a call needs the
/// scope for reading or the one for writing.
pub(crate) async fn demand_scope(
    State((admission, apis)): State<(Arc<ClientAdmission>, Arc<ServedApis>)>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let caller = request.extensions().get::<AuthenticatedClient>().cloned();
    let judge = admission
        .oauth
        .as_ref()
        .zip(admission.resources.at(path))
        .zip(apis.endpoints().at(path));
    let (Some(((oauth, resource), endpoint)), Some(caller)) = (judge, caller) else {
        return next.run(request).await;
    };
    let endpoint = Arc::clone(endpoint);
    if request.method() != Method::POST || matches!(caller.scopes, Scopes::All) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    // The body is in memory already.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Ok(message) = serde_json::from_slice::<CalledMessage<'_>>(&bytes) else {
        return (StatusCode::BAD_REQUEST, "the message cannot be read\n").into_response();
    };
    if message.is_call() {
        let Some(CallParameters { name, arguments }) = message.parameters() else {
            return (StatusCode::BAD_REQUEST, "the parameters of tools/call cannot be read\n").into_response();
        };
        let arguments = match arguments {
            Value::Null => Some(None),
            Value::Object(arguments) => Some(Some(arguments)),
            _ => None,
        };
        // Unknown names and arguments that are not an object are refused later, in the same way for every client.
        let waiting = WaitingCall::new(&parts);
        let catalog = match &arguments {
            Some(arguments) => endpoint.state.catalog_for(&name, arguments.as_ref()).await.ok(),
            None => None,
        };
        waiting.end();
        if let (Some(arguments), Some(catalog)) = (arguments, catalog)
            && let Some(resolution) = catalog.resolve(&name, arguments, Some(&caller.scopes))
        {
            // What is refused anyway, such as a call through the wrong gate, asks for no wider token.
            if let Resolution::Call(call) = &resolution
                && let reads = call.offered().enforcement.effect() == Effect::Read
                && let Some(needed) = oauth.lacking(&caller.scopes, call.scopes(), reads, resource)
            {
                observed::note_observed(&parts);
                CallObservation::begin(|| observed::early_arrival(&parts)).end(CallOutcome::ScopeMissing, |record| {
                    observed::name_operation(record, call);
                });
                return admission.refuse(&Refusal::Scope(needed), &endpoint.view.path);
            }
            parts.extensions.insert(AllowedCall(Arc::new(resolution)));
        }
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}
