//! Which settings concern one API, and which the whole process.

use crate::config::forward::ForwardSettings;
use crate::config::layer::given_flags;
use crate::config::settings::ApiSettings;
use crate::config::wrong_value::FileProblems;

/// Settings that every command takes and that concern the whole process.
pub(crate) const PROCESS_KEYS: [&str; 9] = [
    "shared_state",
    "shared_state_password_env",
    "shared_state_password_file",
    "shared_state_timeout",
    "instance",
    "state_key_env",
    "state_key_file",
    "log_level",
    "log_format",
];

/// Settings that may stand at the top of several APIs, where they count for each of them, and under each.
pub(crate) const KEYS_OF_BOTH: [&str; 5] = ["client", "mock", "max_result_tokens", "tools", "max_list_tokens"];

/// Says of each flag (or variable) of one API that it cannot be used with several: ignored it would be a surprise, and used for
/// all it would send what is meant for one to the others.
pub(crate) fn refuse_settings_of_one_api(api: &ApiSettings, forward: &ForwardSettings, problems: &mut Vec<String>) {
    let is_of_process = |flag: &String| {
        let key = flag.trim_start_matches("--").replace('-', "_");
        PROCESS_KEYS.contains(&key.as_str()) || KEYS_OF_BOTH.contains(&key.as_str())
    };
    let given = given_flags(api).into_iter().filter(|flag| !is_of_process(flag));
    for flag in given.chain(given_flags(forward)) {
        let key = flag.trim_start_matches("--").replace('-', "_");
        let variable = key.to_ascii_uppercase();
        problems.push(format!(
            "{flag} (or OPENAPI_MCP_{variable}) concerns one API, and there are several; put `{key}` under the API's name in `apis`"
        ));
    }
}

/// Says of each key of one API that it does not belong beside `apis`.
pub(crate) fn refuse_keys_beside(keys: &[String], problems: &mut FileProblems<'_>) {
    for key in keys {
        problems.push(format!(
            "`{key}` concerns one API and is not inherited; with `apis`, put it under the name of the API that it is for"
        ));
    }
}
