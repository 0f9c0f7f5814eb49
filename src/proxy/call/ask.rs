//! What a call asks the API: the request, and what becomes of its outcome in metrics and logs.

use std::time::{Duration, Instant};

use http::Method;
use http::header::{ACCEPT, COOKIE, HeaderMap, HeaderValue};
use url::Url;

use super::{ApiProxy, Call};
use crate::call_error::CallError;
use crate::credentials::injected::Injected;
use crate::files::FilePlan;
use crate::json::JsonObject;
use crate::observe::call::note;
use crate::outbound::request::Request;
use crate::proxy::binding::BoundOperation;
use crate::proxy::request::closed_paths::PathGuard;
use crate::proxy::request::fixed::check_fixed_arguments;
use crate::proxy::request::target::BaseUrl;
use crate::proxy::request::{self, ExpectedReply, RequestTemplate};
use crate::results::Reply;
use crate::spec::operation::request_body::BODY;
use crate::spec::operation::response_rule::ResponseRule;
use crate::spec::{Location, Operation};
use crate::text::{self, MIN_BYTES_PER_TOKEN};

/// Time of a call that is left after its last request for a status.
const LAST_REQUEST: Duration = Duration::from_secs(1);
/// A status is most often JSON, and a result may be anything.
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, */*;q=0.8");

/// Request of a call.
#[derive(Clone, Copy)]
pub(crate) enum Ask<'u> {
    /// The request of its operation.
    Operation,
    /// A GET of the status of an operation that takes long.
    Status(&'u Url),
    /// A GET of its result.
    Result(&'u Url),
}

impl Call<'_> {
    /// Asks the API, as often as allowed, and returns its reply. Dropping the future ends the
    /// request. The wait for an operation has its own pauses: its requests are sent once.
    ///
    /// # Errors
    /// [`CallError`] if the request cannot be made or no complete reply comes.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Reply, CallError> {
        let is_of_wait = !matches!(ask, Ask::Operation);
        let mut outcome = self.exchange(ask).await;
        let (tool, ms) = (&self.target.tool, self.started.elapsed().as_millis());
        match &mut outcome {
            Ok(reply) => {
                reply.is_of_wait = is_of_wait;
                let (status, bytes) = (reply.status.as_u16(), reply.length());
                if is_of_wait {
                    tracing::debug!(%tool, status, "asked for the status of an operation");
                } else {
                    tracing::debug!(%tool, status, bytes, ms, "called");
                }
                note(|record| (record.status, record.bytes) = (Some(status), Some(bytes)));
            }
            Err(error) if is_of_wait => {
                tracing::debug!(%tool, "the status of an operation could not be asked for: {error}");
            }
            Err(error) if error.is_the_callers() => {}
            Err(error) => {
                let host = self.base.url().host_str().unwrap_or_default();
                let port = self.base.url().port_or_known_default().unwrap_or_default();
                let cause = self.log_cause(error);
                tracing::warn!(%tool, host, port, ms, "the call failed: {error}{cause}");
            }
        }
        outcome
    }

    /// The request, with everything but the headers that are made anew for each attempt.
    ///
    /// # Errors
    /// The arguments make no request.
    pub(super) fn request(&self, ask: Ask<'_>) -> Result<Request, CallError> {
        let injected = &self.credential.fixed;
        let mut request = match ask {
            Ask::Operation => self.proxy.request(
                self.target,
                self.base,
                &self.arguments,
                injected,
                self.guard(),
            )?,
            Ask::Status(url) | Ask::Result(url) => return Ok(self.status_request(url)),
        };
        if let Some((headers, _)) = &self.forwarded {
            let headers = headers.iter();
            let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
            request.headers.extend(headers);
        }
        Ok(request)
    }

    /// Deadline of the reply.
    pub(super) fn deadline_of(&self, ask: Ask<'_>) -> Instant {
        let timeout = self.proxy.options.timeout;
        match ask {
            Ask::Operation => self.deadline,
            Ask::Status(_) | Ask::Result(_) => {
                self.started + timeout.saturating_sub(LAST_REQUEST.min(timeout / 4))
            }
        }
    }

    /// The conditions under which the reply becomes a file while it is received. A rule that removes
    /// parts of replies does not reach into one, what is masked becomes one later, and a status that
    /// becomes one could not be read.
    pub(super) fn file_plan(&self, ask: Ask<'_>) -> Option<FilePlan<'_>> {
        let rule = self.target.operation.rules.response.as_ref();
        let is_whole = rule.is_none_or(|rule| !rule.withholds() && rule.masks.is_empty());
        is_whole.then(|| self.plan_of_file(ask))
    }

    /// The conditions under which a reply becomes a file.
    pub(super) fn plan_of_file(&self, ask: Ask<'_>) -> FilePlan<'_> {
        let rule = self.target.operation.rules.response.as_ref();
        let delivery = &self.proxy.options.delivery;
        FilePlan {
            delivery,
            tool: &self.target.tool,
            is_ruled: rule.is_some_and(|rule| rule.file == Some(true))
                && !matches!(ask, Ask::Status(_)),
            may_be_status: match ask {
                Ask::Operation => self.target.operation.may_wait(),
                Ask::Status(_) => true,
                Ask::Result(_) => false,
            },
            max_result_bytes: self.max_result_bytes(rule),
            redactors: if delivery.destination.is_some() {
                self.secret_redactors().collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Number of bytes that a result may have; 0 is no limit. A rule can only lower it.
    pub(super) fn max_result_bytes(&self, rule: Option<&ResponseRule>) -> usize {
        let max_bytes = self.proxy.options.max_result_bytes;
        match rule.and_then(|rule| rule.max_tokens) {
            Some(tokens) if max_bytes == 0 => tokens.saturating_mul(MIN_BYTES_PER_TOKEN),
            Some(tokens) => tokens.saturating_mul(MIN_BYTES_PER_TOKEN).min(max_bytes),
            None => max_bytes,
        }
    }

    /// The causes of an error for the log, in brackets and without secrets.
    pub(super) fn log_cause(&self, error: &CallError) -> String {
        let Some(cause) = error.cause() else {
            return String::new();
        };
        let mut cause = cause.to_owned();
        for redactor in self.redactors() {
            redactor.redact_line(&mut cause);
        }
        format!(" ({})", text::one_line(&cause))
    }

    /// The URL of the request of a call, without the operator's additions.
    pub(crate) fn original_url(&self) -> Option<Url> {
        let mut arguments = self.arguments.clone();
        arguments.remove(BODY);
        self.bare_url(&self.target.operation, &arguments)
    }

    /// The URL of an operation with these arguments, without the operator's additions.
    pub(crate) fn bare_url(&self, operation: &Operation, arguments: &JsonObject) -> Option<Url> {
        let template = RequestTemplate {
            document: &self.proxy.document,
            operation,
            base: self.base,
            expected: &ExpectedReply::new(&self.proxy.document, operation),
            injected: &Injected::default(),
            files: None,
            guard: None,
        };
        request::build(&template, arguments)
            .ok()
            .map(|request| request.url)
    }

    /// The request for a status or a result of the operation at that URL.
    fn status_request(&self, url: &Url) -> Request {
        let injected = &self.credential.fixed;
        let mut url = url.clone();
        if !injected.query.is_empty() {
            let added = injected
                .query
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let pairs: Vec<String> = url
                .query()
                .map(str::to_owned)
                .into_iter()
                .chain(added)
                .collect();
            url.set_query(Some(&pairs.join("&")));
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, ACCEPTED);
        if let Ok(cookies) = HeaderValue::from_str(&injected.cookies.join("; "))
            && !injected.cookies.is_empty()
        {
            headers.insert(COOKIE, cookies);
        }
        for fixed in &self.target.operation.rules.fixed {
            let parameter = &fixed.parameter;
            let value = self
                .arguments
                .get(&parameter.key)
                .or(parameter.default.as_ref());
            if let Some(value) = value.filter(|_| parameter.location == Location::Header) {
                // What cannot be sent was refused with the request of the self.
                let _ = request::header(parameter, value, &mut headers);
            }
        }
        // A header that is there is replaced, and each of several values stays.
        headers.extend(injected.headers.clone());
        headers.extend(
            self.forwarded
                .iter()
                .flat_map(|(headers, _)| headers.clone()),
        );
        Request {
            method: Method::GET,
            url,
            headers,
            body: None,
            may_stream: false,
        }
    }
}

impl ApiProxy {
    pub(super) fn request(
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
}
