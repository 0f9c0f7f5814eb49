//! The decision that a reply becomes a file, and its way into that file.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, HeaderMap};

use crate::call_error::CallError;
use crate::caller::Caller;
use crate::files::{FileDestination, FilePlan, FileWriter, ReceivedFile, is_in_names, safe_name};
use crate::redact::StreamRedactor;
use crate::results::media::max_embedded_bytes;
use crate::results::records::Framing;
use crate::results::{Reply, reply_kind};
use crate::spec::MediaKind;
use crate::spec::media_type::content_type;

/// Number of bytes of JSON up to which it may be a status.
const MAX_FIRST_STATUS_BYTES: usize = 1 << 20;

/// Takes the body of one reply if it becomes a file.
pub(super) struct FileSink<'c> {
    destination: &'c FileDestination,
    plan: &'c FilePlan<'c>,
    /// Caller for which the bytes of a store are counted.
    caller: &'c Caller,
    redaction: StreamRedactor<'c>,
    /// Number of bytes up to which the reply stays in memory; `None` if it is known to be text.
    most: Option<usize>,
    /// True if the reply goes to the file whatever it is.
    pub(super) is_ruled: bool,
    /// True if only the bytes can say if it is text.
    is_untyped: bool,
    disposition: String,
    /// True if its media type is that of JSON.
    is_json: bool,
    path: String,
    writer: Option<FileWriter>,
    /// Redacted bytes on their way to the file.
    clean: Vec<u8>,
    /// Number of bytes that it was given.
    pub(super) received: usize,
}

impl<'c> FileSink<'c> {
    /// The sink for a success; `None` if it does not become a file. `path` is that of the request,
    /// and a reply has at most `most_in_memory` bytes in memory.
    pub(super) fn new(
        plan: &'c FilePlan<'c>,
        caller: &'c Caller,
        reply: &reqwest::Response,
        path: String,
        most_in_memory: usize,
    ) -> Option<Box<Self>> {
        let destination = plan
            .delivery
            .destination
            .as_ref()
            .filter(|_| reply.status().is_success())?;
        let content_type = content_type(reply.headers());
        let is_untyped = content_type.trim().is_empty();
        // The content of a 202 is a status (RFC 9110 section 15.3.3).
        let is_ruled = plan.is_ruled && reply.status() != StatusCode::ACCEPTED;
        let may_be_status = plan.may_be_status && MediaKind::of(content_type) == MediaKind::Json;
        let most = if is_ruled && may_be_status {
            MAX_FIRST_STATUS_BYTES.min(most_in_memory)
        } else if is_ruled {
            0
        } else if Framing::of(content_type).is_some() {
            return None;
        } else {
            let typed = if is_untyped {
                "application/octet-stream"
            } else {
                content_type
            };
            max_embedded_bytes(&reply_kind(typed, b""), plan.max_result_bytes)?
        };
        Some(Box::new(Self {
            most: Some(most),
            is_ruled,
            is_untyped: is_untyped && !is_ruled,
            ..Self::to(destination, plan, caller, reply.headers(), path)
        }))
    }

    /// The sink that takes every byte.
    fn to(
        destination: &'c FileDestination,
        plan: &'c FilePlan<'c>,
        caller: &'c Caller,
        headers: &HeaderMap,
        path: String,
    ) -> Self {
        let disposition = headers
            .get(CONTENT_DISPOSITION)
            .map(http::HeaderValue::as_bytes);
        Self {
            destination,
            plan,
            caller,
            redaction: StreamRedactor::new(plan.redactors.iter().copied()),
            most: Some(0),
            is_ruled: true,
            is_untyped: false,
            disposition: String::from_utf8_lossy(disposition.unwrap_or_default()).into_owned(),
            is_json: MediaKind::of(content_type(headers)) == MediaKind::Json,
            path,
            writer: None,
            clean: Vec::new(),
            received: 0,
        }
    }

    /// Refuses a reply that announces more bytes than a file may have.
    pub(super) fn check_length(&self, declared: u64) -> Result<(), CallError> {
        let limit = self.plan.delivery.max_bytes;
        if declared > limit {
            return Err(CallError::FileTooLarge { limit });
        }
        Ok(())
    }

    /// Returns true if the body goes to the file from here on; `body` is what came before this
    /// chunk.
    pub(super) fn takes(&mut self, body: &[u8], chunk: &[u8]) -> bool {
        if self.writer.is_some() {
            return true;
        }
        let is_too_long = self
            .most
            .is_some_and(|most| body.len().saturating_add(chunk.len()) > most);
        if is_too_long
            && self.is_untyped
            && is_text_so_far(if body.is_empty() { chunk } else { body })
        {
            self.most = None;
            return false;
        }
        is_too_long
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// [`CallError::FileTooLarge`], [`CallError::NotSaved`].
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        self.received += bytes.len();
        self.redaction.feed(bytes, &mut self.clean);
        self.write_clean().await
    }

    /// The file, if there is one.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(super) async fn finish(mut self) -> Result<Option<ReceivedFile>, CallError> {
        if self.received == 0 {
            return Ok(None);
        }
        self.redaction.finish(&mut self.clean);
        self.write_clean().await?;
        match self.writer {
            Some(writer) => writer.finish().await.map(Some),
            None => Ok(None),
        }
    }

    async fn write_clean(&mut self) -> Result<(), CallError> {
        let writer = if let Some(writer) = &mut self.writer {
            writer
        } else {
            let (name, max_bytes) = (self.name(), self.plan.delivery.max_bytes);
            let created = FileWriter::create(self.destination, self.plan.tool, &name, max_bytes)?;
            self.writer.insert(created)
        };
        writer.write(&self.clean, self.caller).await?;
        self.clean.clear();
        Ok(())
    }

    /// The name of the file, without secrets.
    fn name(&self) -> String {
        let holds_secret = |text: &str| {
            self.plan
                .redactors
                .iter()
                .any(|redactor| redactor.finds_in_name(text, is_in_names))
        };
        let name = safe_name(&self.disposition, &self.path, holds_secret);
        if self.is_json && self.is_ruled && !name.contains('.') {
            return name + ".json";
        }
        name
    }
}

/// Saves a reply that is in memory because only its bytes say that it is a result, if a rule makes
/// it a file. `path` is that of the request.
///
/// # Errors
/// As [`FileSink::write`]; the reply is as it was.
pub(crate) async fn save_reply(
    plan: &FilePlan<'_>,
    caller: &Caller,
    response: &mut Reply,
    path: String,
) -> Result<(), CallError> {
    let is_result = response.status.is_success() && response.status != StatusCode::ACCEPTED;
    let is_in_memory = response.file.is_none() && !response.body.is_empty();
    if let Some(destination) = &plan.delivery.destination
        && plan.is_ruled
        && is_result
        && is_in_memory
    {
        let mut sink = FileSink::to(destination, plan, caller, &response.headers, path);
        sink.write(&response.body).await?;
        response.file = sink.finish().await?.map(Arc::new);
    }
    Ok(())
}

/// Returns true if bytes are the beginning of a text.
fn is_text_so_far(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}
