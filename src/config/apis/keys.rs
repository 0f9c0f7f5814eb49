//! Settings of one API in a place where they would apply to all of several.

use crate::config::apis::about::AboutSettings;
use crate::config::forward::ForwardSettings;
use crate::config::layer::given_names;
use crate::config::settings::{ApiSettings, CommonSettings};

/// Reports each flag (or variable) of one API that cannot be used with several: ignored it would be
/// a surprise, and used for all it would send what is meant for one to the others.
pub(crate) fn refuse_settings_of_one_api(
    api: &ApiSettings,
    forward: &ForwardSettings,
    problems: &mut Vec<String>,
) {
    let own = ApiSettings {
        common: CommonSettings::default(),
        // The introduction of the whole server.
        about: AboutSettings::default(),
        ..api.clone()
    };
    for name in given_names(&own).into_iter().chain(given_names(forward)) {
        let key = name.trim_start_matches("--").replace(['-', '`'], "_");
        let key = key.trim_matches('_');
        let variable = if name.starts_with("--") {
            format!(" (or OPENAPI_MCP_{})", key.to_ascii_uppercase())
        } else {
            String::new()
        };
        problems.push(format!(
            "{name}{variable} concerns one API, and there are several; put `{key}` under the API's name in `apis`"
        ));
    }
}
