//! Settings of one API in a place where they would apply to all of several.

use crate::config::apis::about::AboutSettings;
use crate::config::forward::ForwardSettings;
use crate::config::layer::given_flags;
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
    for flag in given_flags(&own).into_iter().chain(given_flags(forward)) {
        let key = flag.trim_start_matches("--").replace('-', "_");
        let variable = key.to_ascii_uppercase();
        problems.push(format!(
            "{flag} (or OPENAPI_MCP_{variable}) concerns one API, and there are several; put `{key}` under the API's name in `apis`"
        ));
    }
}
