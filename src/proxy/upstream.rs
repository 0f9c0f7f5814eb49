//! One call of the API, with all that may take more than one request: a token that has to be fetched, or was refused.

use http::StatusCode;
use http::header::AUTHORIZATION;

use super::access::Credential;
use super::client::{self, CallOptions, Progress, Response};
use super::error::CallError;
use super::request::Request;

/// Makes the request as often as needed, within one deadline, and takes the credential out of the reply.
///
/// # Errors
/// As [`client::exchange`]; [`CallError::Timeout`] where it all takes too long.
pub async fn call(
    client: &reqwest::Client,
    make: impl Fn() -> Result<Request, CallError>,
    credential: &Credential,
    options: &CallOptions,
    progress: Option<Progress<'_>>,
) -> Result<Response, CallError> {
    let attempts = async {
        let Some(source) = &credential.token else {
            return client::exchange(client, make()?, options, progress).await;
        };
        // Arguments that cannot be sent need no token.
        let mut request = make()?;
        let mut token = source.token(None).await?;
        let mut refused = false;
        loop {
            request.headers.insert(AUTHORIZATION, token.header.clone());
            let mut response = client::exchange(client, request, options, progress).await?;
            // A token may be revoked before its time. A request that is refused for its token was not acted on.
            if response.status == StatusCode::UNAUTHORIZED && !std::mem::replace(&mut refused, true) {
                token = source.token(Some(&token)).await?;
                request = make()?;
                continue;
            }
            token.redactor.redact(&mut response);
            return Ok(response);
        }
    };
    // One deadline for everything: a read time-out alone would never stop a reply that comes drop by drop.
    match tokio::time::timeout(options.timeout, attempts).await {
        Ok(result) => result,
        Err(_) => Err(CallError::Timeout(options.timeout)),
    }
}
