//! A request as text, for people.

use super::request::Request;
use crate::text::{counted, shell_word};

impl Request {
    /// The headers in the order in which they are sent, but for those that the client itself
    /// writes.
    pub(crate) fn header_texts(&self) -> impl Iterator<Item = (&str, String)> {
        let value_text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        self.headers
            .iter()
            .map(move |(name, value)| (name.as_str(), value_text(value)))
    }

    /// The body, if it is text and in memory.
    pub(crate) fn body_text(&self) -> Option<&str> {
        std::str::from_utf8(self.body.as_ref()?.bytes()?).ok()
    }

    /// The request as an HTTP/1.1 message. It holds no credential if the request was made without
    /// one; see [`crate::api::Api::preview`].
    pub(crate) fn http_text(&self) -> String {
        let url = &self.url;
        let query = url
            .query()
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        let host = url.authority();
        let mut out = format!(
            "{} {}{query} HTTP/1.1\nhost: {host}\n",
            self.method,
            url.path()
        );
        for (name, value) in self.header_texts() {
            out.push_str(&format!("{name}: {value}\n"));
        }
        if let Some(body) = &self.body {
            out.push_str(&format!("content-length: {}\n\n", body.length()));
            match self.body_text() {
                Some(text) => out.push_str(text),
                None => out.push_str(&format!(
                    "({} that are not text)",
                    counted(usize::try_from(body.length()).unwrap_or(usize::MAX), "byte")
                )),
            }
        }
        out.trim_end().to_owned()
    }

    /// The request as a command for a shell. It holds no credential if the request was made
    /// without one; see [`crate::api::Api::preview`].
    pub(crate) fn curl_text(&self) -> String {
        let method = match self.method.as_str() {
            // `-X HEAD` would wait for a body that never comes.
            "HEAD" => "--head".to_owned(),
            method => format!("--request {}", shell_word(method)),
        };
        let mut out = format!("curl {method} {}", shell_word(self.url.as_str()));
        for (name, value) in self.header_texts() {
            out.push_str(&format!(
                " \\\n  --header {}",
                shell_word(&format!("{name}: {value}"))
            ));
        }
        if self.body.is_some() {
            match self.body_text() {
                Some(text) => out.push_str(&format!(" \\\n  --data-raw {}", shell_word(text))),
                None => out.push_str(" \\\n  --data-binary @FILE"),
            }
        }
        out
    }
}
