//! Settings of one API in a place where they would apply to all of several.

use crate::config::apis::about::AboutSettings;
use crate::config::forward::ForwardSettings;
use crate::config::layer::given_settings;
use crate::config::problems::Problems;
use crate::config::settings::{ApiSettings, CommonSettings};

/// Reports each flag (or variable) of one API that cannot be used with several: ignoring it would
/// surprise, and applying it to all would send what is meant for one to the others.
pub(crate) fn refuse_settings_of_one_api(
    api: &ApiSettings,
    forward: &ForwardSettings,
    problems: &mut Problems,
) {
    let own = ApiSettings {
        common: CommonSettings::default(),
        // The introduction of the whole server.
        about: AboutSettings::default(),
        ..api.clone()
    };
    for (name, key) in given_settings(&own)
        .into_iter()
        .chain(given_settings(forward))
    {
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
