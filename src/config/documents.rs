//! Settings of the document of an API: its source, its overlays, and how they and the files that it
//! refers to are read.

use clap::Args;
use http::header::HeaderMap;
use serde::{Deserialize, Serialize};
use url::Url;

use super::headers::{read_headers, warn_about_missing_scheme};
use super::problems::Problems;
use crate::api::about::ApiName;
use crate::outbound::HttpClient;
use crate::spec::{ExternalReferences, Source, SourceReader};

/// Settings of the document.
#[derive(Clone, Default, Args, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct DocumentSettings {
    /// The OpenAPI document: a file, an http(s) URL, or - for standard input
    #[arg(long, value_name = "FILE|URL|-", help_heading = "Document")]
    pub(crate) spec: Option<String>,

    /// A header for fetching the document from a URL (a list; for secrets, use
    /// --spec-header-env)
    #[arg(
        long,
        hide = true,
        value_delimiter = '\n',
        value_name = "NAME: VALUE",
        help_heading = "Document"
    )]
    pub(crate) spec_header: Vec<String>,

    /// A header for fetching the document, with its value in an environment variable (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME=VARIABLE",
        help_heading = "Document"
    )]
    pub(crate) spec_header_env: Vec<String>,

    /// An OpenAPI Overlay that is applied to the document: a file or an http(s) URL (a list)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "FILE|URL",
        help_heading = "Document"
    )]
    pub(crate) overlay: Vec<String>,

    /// References into other files that are followed [default: local]
    #[arg(long, hide = true, value_name = "WHICH", help_heading = "Document")]
    pub(crate) external_refs: Option<ExternalReferences>,
}

/// The document of an API, and how it is read.
#[derive(Clone)]
pub(crate) struct DocumentOptions {
    pub(crate) source: Source,
    /// Headers for fetching the document, marked as sensitive.
    pub(crate) headers: HeaderMap,
    /// Overlays, in the order in which they are applied.
    pub(crate) overlays: Vec<Source>,
    /// The references into other files that are followed.
    pub(crate) external_references: ExternalReferences,
}

impl DocumentOptions {
    /// The reader of the document.
    pub(crate) fn reader(&self, client: &HttpClient) -> SourceReader {
        SourceReader::new(client.clone(), self.headers.clone())
    }

    /// Returns true if a connection may be made to read it; one to its own URL, only if that
    /// `counts`.
    pub(crate) fn may_connect(&self, counts: impl Fn(&Url) -> bool) -> bool {
        self.external_references == ExternalReferences::Any
            || self.overlays.iter().any(|overlay| overlay.url().is_some())
            || self.source.url().as_ref().is_some_and(counts)
    }
}

/// Resolves the settings of the document; what is wrong with them is pushed to `problems`, and what
/// is most likely not meant to `warnings`. `None` if there is no document.
pub(crate) fn resolve_document(
    settings: &DocumentSettings,
    name: Option<&ApiName>,
    warnings: &mut Vec<String>,
    problems: &mut Problems,
) -> Option<DocumentOptions> {
    let source = resolve_source(settings.spec.as_deref(), name, problems);
    let overlays = settings
        .overlay
        .iter()
        .filter(|overlay| !overlay.trim().is_empty());
    let overlays = overlays
        .filter_map(|overlay| problems.ok("`overlay`", Source::parse(overlay)))
        .collect();
    let flags = ["`spec_header`", "--spec-header-env"];
    let headers = read_headers(
        flags,
        &settings.spec_header,
        &settings.spec_header_env,
        problems,
    );
    warnings.extend(warn_about_missing_scheme(flags, &headers));
    Some(DocumentOptions {
        source: source?,
        headers,
        overlays,
        external_references: settings.external_refs.unwrap_or_default(),
    })
}

fn resolve_source(
    spec: Option<&str>,
    name: Option<&ApiName>,
    problems: &mut Problems,
) -> Option<Source> {
    let Some(spec) = spec.filter(|spec| !spec.trim().is_empty()) else {
        if name.is_some() {
            problems.push("no document is given; add `spec`, with a file or a URL");
        } else if !problems
            .iter()
            .any(|problem| problem.starts_with("the configuration file "))
        {
            // Otherwise, what of the file could not be read may be what names the document.
            problems.push("no document is given; add --spec FILE, --spec URL, or --spec - (standard input, if no client needs it)");
        }
        return None;
    };
    let source = problems.ok("--spec", Source::parse(spec))?;
    if name.is_some() && source == Source::Stdin {
        problems
            .push("`spec` is `-`, and standard input cannot be the document of one API of several");
        return None;
    }
    Some(source)
}
