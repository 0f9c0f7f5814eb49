//! `openapi-mcp demo`: the tools of an example document and one call, in words, with nothing to set
//! up.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use crate::api::{Api, ApiOptions};
use crate::caller::Caller;
use crate::cli::listing::{self, Shown};
use crate::cli::output;
use crate::config::variables;
use crate::error::Failure;
use crate::mock;
use crate::outbound::{self, OutboundOptions};
use crate::proxy::Destination;
use crate::spec::Document;
use crate::text::{one_line, shell_word};

/// The example document, inside the program.
const EXAMPLE: &[u8] = include_bytes!("../../../examples/petstore/petstore.yaml");

const NEXT_STEPS: &str = "
Next, with a document of your own (FILE may be a URL):
  openapi-mcp tools --spec FILE                    the tools that a client would see
  openapi-mcp check --spec FILE                    what is lost, and which credentials the API needs
  openapi-mcp install --client NAME --spec FILE    an entry for your MCP client; --list names those here
  openapi-mcp serve --spec FILE                    serves the tools to an MCP client
";

pub(crate) async fn run() -> Result<ExitCode, Failure> {
    let document = Document::parse(EXAMPLE.to_vec(), None).map_err(|error| Failure::Document {
        source_name: "the example".into(),
        error,
    })?;
    let document = Arc::new(document);
    let running = mock::start_mock(Arc::clone(&document)).await;
    let running =
        running.map_err(|error| Failure::Io("the mock cannot be started".into(), error))?;
    let options = ApiOptions {
        destination: Destination::Fixed(running.url.clone()),
        ..ApiOptions::default()
    };
    let outbound = OutboundOptions {
        tls: false,
        ..OutboundOptions::default()
    };
    let client = outbound::http_client(&outbound)?;
    let (api, _) = Api::build(document, options, client)?;
    let api = Arc::new(api);
    let tools: Vec<_> = api.tools().iter().collect();
    let shown = Shown {
        title: one_line(api.document().title()),
        tools: &tools,
    };
    let mut text = format!(
        "The OpenAPI document of \"{}\" as tools. The hints describe to a client the effect of a call:\n\n",
        shown.title
    );
    text.push_str(&listing::table(&shown, Some(100)));
    text.push_str("\nOne call, as a model makes it: get_pet with petId 7. The document's example answers:\n\n");
    let arguments = json!({ "petId": 7 }).as_object().cloned();
    let reply = api.call("get_pet", arguments, Caller::default()).await;
    let reply = reply
        .and_then(|result| result.structured_content())
        .unwrap_or_default();
    text.push_str(&format!("{reply:#}\n"));
    let program = shell_word(&variables::given_program());
    text.push_str(&NEXT_STEPS.replace("  openapi-mcp ", &format!("  {program} ")));
    output::print_result(&text)?;
    Ok(ExitCode::SUCCESS)
}
