//! What an operator sets about tools.

use super::confirm::Confirm;
use super::files::Files;
use super::layers::Layers;
use super::names::NameOptions;
use super::output::OutputSchemas;
use super::richer::DescriptionDetail;
use super::selection::{Pattern, Selection};
use crate::spec::schema::SchemaOptions;

/// What an operator sets about the look of tools.
#[derive(Debug, Clone)]
pub struct AnnotateOptions {
    /// How tools are named.
    pub names: NameOptions,
    /// Which operations become tools.
    pub selection: Selection,
    /// Which calls a person is asked about first.
    pub confirm: Confirm,
    /// The sources of hints and texts.
    pub layers: Layers,
    /// Whether tools have an argument that filters their replies.
    pub filter: bool,
    /// How much descriptions say.
    pub describe: DescriptionDetail,
    /// How input schemas are made self-contained, and how much each may take.
    pub schemas: SchemaOptions,
    /// How files may be given.
    pub files: Files,
    /// Which output schemas are offered.
    pub output: OutputSchemas,
    /// How many characters a result may have, if tools say so.
    pub(crate) max_result_chars: Option<usize>,
    /// How many bytes the list may take for `auto` to offer output schemas.
    pub output_budget: usize,
    /// Which tools are listed: the input schemas of the others are made when they are used, once those made at the start take
    /// [`AnnotateOptions::output_budget`].
    pub(crate) extent: ListExtent,
}

/// Which tools are listed, as far as that is known before they are made.
#[derive(Debug, Clone, Default)]
pub(crate) enum ListExtent {
    /// All of them.
    #[default]
    All,
    /// Those that match, and tools that find and call the others.
    Pinned(Vec<Pattern>),
    /// All of them if the list takes no more than so many bytes, else those that match.
    Within(usize, Vec<Pattern>),
}

impl Default for AnnotateOptions {
    fn default() -> Self {
        Self {
            names: NameOptions::default(),
            selection: Selection::default(),
            confirm: Confirm::default(),
            layers: Layers::default(),
            filter: false,
            describe: DescriptionDetail::Plain,
            schemas: SchemaOptions {
                budget: 64 << 10,
                inline_all: false,
            },
            files: Files::Inline,
            output: OutputSchemas::Auto,
            max_result_chars: None,
            output_budget: 1 << 20,
            extent: ListExtent::All,
        }
    }
}
