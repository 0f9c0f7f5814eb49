//! The URLs of a wait's requests: those of a status, and that of the result.

use http::Method;
use serde_json::Value;
use url::Url;

use super::handle::{UrlRefusal, WaitState, path_and_query, read_url};
use super::status::{RESOURCE_LOCATION, StatusBody, StatusKind, header_url, settings};
use crate::credentials::authenticator::same_key;
use crate::json::JsonObject;
use crate::proxy::call::Call;
use crate::results::Reply;
use crate::spec::long_running::FinalState;
use crate::spec::operation::rules::{NamedRead, ResultPlace, StatusPlace, ValueSource};
use crate::spec::{Location, PathTemplate};

impl Call<'_> {
    /// The URL of an operation that a rule names, with the arguments that a reply has for it.
    /// Arguments of its path that the rule does not name are those of the call.
    pub(super) fn url_of_named(
        &self,
        named: &NamedRead,
        body: &StatusBody,
        of_call: &JsonObject,
    ) -> Option<Url> {
        let operation = self.target.operation.waits_by(&named.name)?;
        let mut arguments = JsonObject::new();
        for parameter in &operation.parameters {
            let said = named
                .arguments
                .iter()
                .find(|(location, name, _)| parameter.is(*location, name));
            let value = match said {
                Some((.., pointer)) => {
                    Some(body.pointer(pointer).filter(|value| !value.is_null())?)
                }
                None if parameter.location == Location::Path => of_call.get(&parameter.key),
                None => None,
            };
            if let Some(value) = value {
                arguments.insert(parameter.key.clone(), value.clone());
            }
        }
        // What the operator sends in every call of the named operation.
        for fixed in &operation.rules.fixed {
            if let Some(ValueSource::Literal(value)) = &fixed.source {
                arguments.insert(fixed.parameter.key.clone(), value.clone());
            }
        }
        self.bare_url(operation, &arguments)
    }

    /// The arguments of a call that its result needs: the filter, and those of the path of an
    /// operation that has the result.
    pub(super) fn arguments_of_result(&self) -> JsonObject {
        let operation = &self.target.operation;
        let filter = self.proxy.sandbox.is_some().then(|| operation.filter_key());
        let result = settings(operation).and_then(|settings| settings.result.as_ref());
        let named = match result {
            Some(ResultPlace::Operation(named)) => operation.waits_by(&named.name),
            _ => None,
        };
        let of_path = named
            .into_iter()
            .flat_map(|operation| &operation.parameters);
        let of_path = of_path
            .filter(|parameter| parameter.location == Location::Path)
            .map(|parameter| parameter.key.clone());
        let keys = filter.into_iter().chain(of_path);
        keys.filter_map(|key| Some((key.clone(), self.arguments.get(&key)?.clone())))
            .collect()
    }

    /// Returns the URL of the result of an operation that is done, whose last status is given, or
    /// the reason for which it is not requested; `None` if the status is the result.
    pub(super) fn result_url(
        &self,
        state: &WaitState,
        status: &StatusBody,
        from: &Url,
    ) -> Option<Result<(StatusKind, Url), UrlRefusal>> {
        let operation = &self.target.operation;
        let checked = |kind: StatusKind, text: &str| {
            let url = checked_url(self, text, from, kind);
            Some(url.map(|url| (kind, url)))
        };
        let original = || checked(StatusKind::Own, &state.original);
        let location = || match state.location.as_ref()? {
            Ok(url) => checked(StatusKind::Location, url),
            Err(refusal) => Some(Err(*refusal)),
        };
        let text_at = |place: &str| Some(status.pointer(place)?.as_str()?.to_owned());
        match settings(operation).and_then(|settings| settings.result.as_ref()) {
            Some(ResultPlace::Status) => return None,
            Some(ResultPlace::Location) => return location(),
            Some(ResultPlace::Original) => return original(),
            Some(ResultPlace::Field(field)) => {
                return checked(StatusKind::Named, &text_at(field)?);
            }
            Some(ResultPlace::Operation(named)) => {
                let url = self.url_of_named(named, status, &state.arguments);
                return checked(StatusKind::Result, &path_and_query(&url?));
            }
            None => {}
        }
        match (state.kind, operation.long_running.extension) {
            (StatusKind::Monitor, extension) => {
                if let Some(resource) = text_at(RESOURCE_LOCATION) {
                    return checked(StatusKind::Monitor, &resource);
                }
                match extension.unwrap_or(FinalState::Unsaid) {
                    FinalState::Status => None,
                    FinalState::Location => location(),
                    FinalState::Original => original(),
                    FinalState::Unsaid => match operation.method {
                        Method::PUT | Method::PATCH => original(),
                        Method::POST => location(),
                        _ => None,
                    },
                }
            }
            (StatusKind::Location, Some(FinalState::Original)) => original(),
            _ => None,
        }
    }

    /// Returns true if the state of a wait holds a secret, so that it may not become a handle.
    pub(super) fn holds_secret(&self, state: &WaitState) -> bool {
        let forwarded = self.forwarded.as_ref().map(|(_, redactor)| redactor);
        let redactors = std::iter::once(&self.proxy.redactor)
            .chain(self.tenant.map(|tenant| &tenant.redactor))
            .chain(forwarded);
        let arguments = Value::Object(state.arguments.clone()).to_string();
        let location = state.location.iter().flatten().map(String::as_str);
        let texts = [state.url.as_str(), &state.original, &arguments].into_iter();
        let texts = texts.chain(location);
        let mut joined: String = texts.flat_map(|text| [text, "\n"]).collect();
        let before = joined.clone();
        redactors.for_each(|redactor| redactor.redact_line(&mut joined));
        joined != before
    }

    /// Takes secrets out of a word of a reply.
    pub(super) fn without_secrets(&self, reply: &Reply, mut word: String) -> String {
        let of_reply = reply.redactors.iter().map(AsRef::as_ref);
        self.redactors()
            .chain(of_reply)
            .for_each(|redactor| redactor.redact_line(&mut word));
        word
    }
}

/// The template of the operation that a rule names for the status or the result.
fn named_template<'c>(call: &'c Call<'_>, kind: StatusKind) -> Option<&'c PathTemplate> {
    let settings = settings(&call.target.operation)?;
    let named = match (kind, &settings.status, &settings.result) {
        (StatusKind::Operation, Some(StatusPlace::Operation(named)), _)
        | (StatusKind::Result, _, Some(ResultPlace::Operation(named))) => Some(named),
        _ => None,
    };
    let operation = call.target.operation.waits_by(&named?.name)?;
    Some(&operation.template)
}

/// Checks a URL of a reply to the request for `from`.
///
/// # Errors
/// [`UrlRefusal`]
pub(super) fn checked_url(
    call: &Call<'_>,
    text: &str,
    from: &Url,
    kind: StatusKind,
) -> Result<Url, UrlRefusal> {
    let mut url = read_url(
        text,
        from,
        call.base,
        named_template(call, kind),
        !call.target.operation.servers.is_empty(),
        call.guard(),
    )?;
    // A reply may repeat what the operator adds to each request.
    let injected = &call.credential.fixed.query;
    let is_added = |pair: &str| {
        let key = pair.split('=').next().unwrap_or_default();
        injected
            .iter()
            .any(|(name, _)| same_key(name, key) || same_key(key, name))
    };
    if let Some(query) = url.query()
        && query.split('&').any(is_added)
    {
        let kept: Vec<&str> = query.split('&').filter(|pair| !is_added(pair)).collect();
        let kept = kept.join("&");
        url.set_query(Some(kept.as_str()).filter(|query| !query.is_empty()));
    }
    Ok(url)
}

/// Path and query of the URL in `Location`, or the reason for which it is not requested.
pub(super) fn location_of(
    call: &Call<'_>,
    response: &Reply,
    from: &Url,
) -> Option<Result<String, UrlRefusal>> {
    let location = header_url(StatusKind::Location, response)?;
    let url = checked_url(call, &location, from, StatusKind::Location);
    Some(url.map(|url| path_and_query(&url)))
}
