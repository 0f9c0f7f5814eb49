//! Failures that end the program, their audience and their exit codes.

use std::fmt::Write as _;
use std::process::ExitCode;

use thiserror::Error;

use crate::config::Problems;
use crate::outbound::OutboundError;

use crate::spec::operation::server_template::ServerError;
use crate::spec::{LoadError, ReadError};
use crate::text::{self, counted};

/// A failure that ends the program.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Wrong settings, all of them.
    #[error(transparent)]
    Settings(#[from] Problems),
    /// The address cannot be bound.
    #[error("cannot listen on {0}; choose another address, or port 0 for a free port")]
    Bind(String, #[source] std::io::Error),
    /// The document cannot be had.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The document cannot be read.
    #[error("{source_name} cannot be served")]
    Document {
        /// Source of the document.
        source_name: String,
        /// Error.
        #[source]
        error: LoadError,
    },
    /// An overlay cannot be applied.
    #[error("the overlay {source_name} could not be applied")]
    Overlay {
        /// Source of the overlay.
        source_name: String,
        /// Error.
        #[source]
        error: LoadError,
    },
    /// `strict`, and something was found.
    #[error("{source_name} is not served because of `strict`: {}; `openapi-mcp check` lists them", counted(*findings, "finding"))]
    Strict {
        /// Source of the document.
        source_name: String,
        /// Number of findings.
        findings: usize,
    },
    /// Too few of several APIs can be served; what each of them lacks is logged.
    #[error("{served} of {all} APIs can be served; the lines above say why{}", if *served > 0 { ", and `require_all` asks for all of them" } else { "" })]
    TooFew {
        /// Number of APIs that can be served.
        served: usize,
        /// Number of all APIs.
        all: usize,
    },
    /// There is no server for requests.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// No client can be made.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// Other failure of this machine.
    #[error("{0}")]
    Io(String, #[source] std::io::Error),
}

impl Failure {
    /// One thing that is wrong with the settings, in a sentence.
    pub(crate) fn setting(problem: String) -> Self {
        Self::Settings(vec![problem].into())
    }

    /// The exit code: 2 for settings, 3 for documents, 1 for the rest.
    pub(crate) fn code(&self) -> ExitCode {
        let code = match self {
            Self::Settings(_)
            | Self::Bind(..)
            | Self::Server(_)
            | Self::Outbound(OutboundError::Identity(_)) => 2,
            Self::Read(_)
            | Self::Document { .. }
            | Self::Strict { .. }
            | Self::Overlay { .. }
            | Self::TooFew { .. } => 3,
            Self::Outbound(_) | Self::Io(..) => 1,
        };
        ExitCode::from(code)
    }

    /// Describes the failure for clients of a server that has answered their handshake already,
    /// without details of the machine.
    pub(crate) fn for_clients(&self) -> &'static str {
        match self {
            Self::Read(_) => {
                "there are no tools: the API's document could not be fetched; the server's log says why"
            }
            Self::Document { .. } => {
                "there are no tools: the API's document could not be read; the server's log says why"
            }
            Self::Overlay { .. } => {
                "there are no tools: an overlay of the API's document could not be applied; the server's log says why"
            }
            Self::Strict { .. } => {
                "there are no tools: the API's document has flaws and `strict` refuses it; the server's log names them"
            }
            Self::TooFew { .. } => {
                "there are no tools: the documents of the APIs could not be read; the server's log says why"
            }
            Self::Server(_) => {
                "there are no tools: the API's document does not say where the API is; the server's log says what to do"
            }
            Self::Settings(_) | Self::Bind(..) | Self::Outbound(_) | Self::Io(..) => {
                "there are no tools: the server could not start; its log says why"
            }
        }
    }

    /// The failure and its causes, in lines for standard error.
    pub(crate) fn report(&self) -> String {
        let mut report = String::new();
        for line in self.to_string().lines() {
            let _ = writeln!(report, "error: {line}");
        }
        for cause in text::error_causes(self) {
            report.truncate(report.trim_end().len());
            let _ = writeln!(report, ": {cause}");
        }
        report
    }
}
