//! The manifest of an MCP bundle (MCPB 0.3): what the host starts, asks the user for, and shows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use url::Url;

use crate::api::{Api, scheme_fields};
use crate::check::used_schemes;
use crate::cli::operating_system::OperatingSystem;
use crate::json::JsonObject;
use crate::spec::document::source::redacted;
use crate::spec::operation::server_template::ServerTemplate;
use crate::text::{clean, one_line, truncate};

/// More tools than this are not listed; the host asks the server.
const MAX_LISTED_TOOLS: usize = 100;
const MAX_DESCRIPTION: usize = 300;
const MAX_LONG_DESCRIPTION: usize = 4000;

/// The parts of a manifest.
pub(super) struct ManifestParts<'p> {
    pub(super) api: &'p Api,
    /// The file of its icon in the bundle, if hosts can show it.
    pub(super) icon: Option<&'p str>,
    pub(super) privacy_policies: &'p [Url],
    pub(super) name: &'p str,
    pub(super) version: &'p str,
    pub(super) platform: OperatingSystem,
    /// Variables that the settings name, each of which is a secret.
    pub(super) named_variables: &'p BTreeSet<String>,
    /// The server whose variables the user may fill in.
    pub(super) server: Option<&'p ServerTemplate>,
    /// Values of such variables that the settings give.
    pub(super) server_variables: &'p BTreeMap<String, String>,
    /// Day on which the document was fetched, if it comes from a URL.
    pub(super) fetched_on: Option<String>,
}

/// A key of `user_config`.
fn config_key(text: &str) -> String {
    text.to_ascii_lowercase()
        .replace(|character: char| !character.is_ascii_alphanumeric(), "_")
}

/// The manifest.
pub(super) fn manifest(parts: &ManifestParts<'_>) -> Value {
    let about = &parts.api.about;
    let title = parts.api.title();
    let description = about
        .description
        .clone()
        .unwrap_or_else(|| format!("{title}: its operations as tools, served by openapi-mcp"));
    let UserFields { asked, environment } = fields(parts);
    // Hosts show a PNG image or an address (MCPB 0.3, `icon`).
    let address = about.icon.as_ref().map(|icon| icon.src.as_str());
    let address = address.filter(|src| src.starts_with("https:"));
    let policies: Vec<&str> = parts.privacy_policies.iter().map(Url::as_str).collect();
    let has_more_tools = parts.api.tools().len() > MAX_LISTED_TOOLS;
    without_nulls(json!({
        "manifest_version": "0.3",
        "name": parts.name,
        "display_name": title,
        "version": parts.version,
        "description": truncate(&description, MAX_DESCRIPTION),
        "author": { "name": "openapi-mcp" },
        "server": {
            "type": "binary",
            "entry_point": format!("server/{}", parts.platform.binary()),
            "mcp_config": start(parts.platform, &environment),
        },
        "compatibility": { "platforms": [parts.platform.to_string()] },
        "icon": parts.icon.or(address),
        "homepage": about.website,
        "privacy_policies": (!policies.is_empty()).then_some(policies),
        "long_description": long_description(parts),
        "tools": tools(parts.api),
        "tools_generated": has_more_tools.then_some(true),
        "user_config": (!asked.is_empty()).then_some(asked),
    }))
}

/// An object without the members that have no value.
fn without_nulls(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    object
}

/// Writes the document's description of itself, and the day on which it was fetched if it comes
/// from a URL.
fn long_description(parts: &ManifestParts<'_>) -> Option<String> {
    let document = parts.api.document();
    let said = document
        .description()
        .map(|text| truncate(&clean(text), MAX_LONG_DESCRIPTION));
    let copied = parts.fetched_on.as_ref().zip(document.url.as_ref());
    let copied = copied.map(|(date, url)| {
        format!(
            "The document is a copy of {}, fetched on {date}.",
            redacted(url)
        )
    });
    let all: Vec<String> = said.into_iter().chain(copied).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

/// Returns the command that the host starts. Hosts have unpacked binaries without their executable
/// bit (modelcontextprotocol/mcpb#294); a script that the shell reads does not need it.
fn start(platform: OperatingSystem, environment: &JsonObject) -> Value {
    match platform {
        OperatingSystem::Win32 => json!({
            "command": format!("${{__dirname}}/server/{}", platform.binary()),
            "args": ["serve", "--config", "${__dirname}/server/openapi-mcp.json"],
            "env": environment,
        }),
        OperatingSystem::Darwin | OperatingSystem::Linux => json!({
            "command": "/bin/sh",
            "args": ["${__dirname}/server/start.sh"],
            "env": environment,
        }),
    }
}

/// Values that the user is asked for, and the variables that carry them.
#[derive(Default)]
struct UserFields {
    asked: JsonObject,
    environment: JsonObject,
}

impl UserFields {
    /// A key that no field has yet.
    fn free_key(&self, wanted: &str) -> String {
        let mut key = wanted.to_owned();
        let mut number = 1;
        while self.asked.contains_key(&key) {
            number += 1;
            key = format!("{wanted}_{number}");
        }
        key
    }

    /// Asks for the value of a variable. Two schemes can have one variable: then one field asks for
    /// both, and it is as secret and as required as the stricter of them.
    fn ask(&mut self, wanted: &str, variable: &str, field: Value) {
        let known = self.environment.get(variable).and_then(Value::as_str);
        let known = known.and_then(|text| text.strip_prefix("${user_config.")?.strip_suffix('}'));
        let Some(earlier) = known
            .and_then(|key| self.asked.get_mut(key))
            .and_then(Value::as_object_mut)
        else {
            let key = self.free_key(wanted);
            self.environment.insert(
                variable.to_owned(),
                format!("${{user_config.{key}}}").into(),
            );
            self.asked.insert(key, field);
            return;
        };
        if field.get("sensitive").is_some() {
            earlier.insert("sensitive".into(), true.into());
        }
        if field.get("required") == Some(&Value::Bool(true)) {
            earlier.insert("required".into(), true.into());
            earlier.remove("default");
        }
        if let (Some(Value::String(title)), Some(more)) = (
            earlier.get_mut("title"),
            field.get("title").and_then(Value::as_str),
        ) {
            title.push_str(&format!("; {more}"));
        }
    }
}

/// A field of text.
fn text_field(title: &str, description: &str, is_secret: bool, is_required: bool) -> Value {
    without_nulls(json!({
        "type": "string",
        "title": title,
        "description": description,
        "required": is_required,
        "sensitive": is_secret.then_some(true),
        // Without it, hosts pass the placeholder of a field that was left blank.
        "default": (!is_required).then_some(""),
    }))
}

/// Returns the values that the user is asked for. No value is ever an argument, which a list of
/// processes would show.
fn fields(parts: &ManifestParts<'_>) -> UserFields {
    let mut fields = UserFields::default();
    let (schemes, used) = used_schemes(parts.api);
    for (name, used) in &used {
        for field in scheme_fields(&parts.api.credential_place, name, schemes.get(name)) {
            let key = config_key(field.variable.trim_start_matches("OPENAPI_MCP_AUTH_"));
            let shown = one_line(name);
            let asked = text_field(
                &format!("{shown}: {}", field.label),
                &format!("The {} of the security scheme {shown}", field.label),
                field.is_secret,
                used.is_always_required,
            );
            fields.ask(&key, &field.variable, asked);
        }
    }
    for variable in parts.named_variables {
        let asked = text_field(variable, &format!("The value of {variable}"), true, true);
        fields.ask(&config_key(variable), variable, asked);
    }
    let base_url = text_field(
        "Base URL",
        "Where requests go, if not to the server that the document names",
        false,
        false,
    );
    fields.ask("base_url", "OPENAPI_MCP_BASE_URL", base_url);
    let mut pairs = Vec::new();
    for (name, variable) in parts.server.iter().flat_map(|server| &server.variables) {
        let default = parts
            .server_variables
            .get(name)
            .or(variable.default.as_ref());
        let allowed = if variable.allowed.is_empty() {
            String::new()
        } else {
            format!(": one of {}", one_line(&variable.allowed.join(", ")))
        };
        let description = format!("A part of the API's address{allowed}");
        let mut field = text_field(&one_line(name), &description, false, default.is_none());
        if let (Some(default), Some(members)) = (default, field.as_object_mut()) {
            members.insert("default".into(), default.clone().into());
        }
        let key = fields.free_key(&format!("server_{}", config_key(name)));
        fields.asked.insert(key.clone(), field);
        pairs.push(format!("{name}=${{user_config.{key}}}"));
    }
    if !pairs.is_empty() {
        fields
            .environment
            .insert("OPENAPI_MCP_SERVER_VAR".into(), pairs.join(",").into());
    }
    fields
}

/// Name and description of each tool; the format has no title, so that the title begins the
/// description.
fn tools(api: &Api) -> Value {
    let tool = |offered: &crate::api::BoundTool| {
        let whole: Value = serde_json::from_str(offered.text()).unwrap_or_default();
        let description = whole
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let title = &*offered.title;
        let text = if description.starts_with(title) {
            description.to_owned()
        } else {
            format!("{title}. {description}")
        };
        json!({ "name": offered.name, "description": truncate(&one_line(&text), MAX_DESCRIPTION) })
    };
    api.tools()
        .iter()
        .take(MAX_LISTED_TOOLS)
        .map(tool)
        .collect()
}
