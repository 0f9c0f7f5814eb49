//! Settings that go with `--confirm-by link`.

use serde_json::json;

use crate::several::Setup;
use crate::support::{command, stderr};

#[test]
fn p89_links_need_somebody_who_may_agree() {
    let approver = json!([{"name": "boss", "env": "APPROVER", "approve": true}]);
    let whole = json!({
        "spec": "office.json", "transport": "http", "bind": "127.0.0.1:0",
        "confirm": "write", "confirm_by": "link", "auth_token_env": ["CLIENT"], "auth_tokens": approver,
    });
    for (keys, problem) in [
        (json!({"confirm": null}), "--confirm-by needs --confirm"),
        (json!({"auth_tokens": null}), "needs somebody who may agree"),
        (json!({"confirm_by": null}), "need --confirm-by link"),
        (
            json!({"bind": "0.0.0.0:0", "allow_host": ["mcp.example"]}),
            "--confirm-by link needs --public-url",
        ),
        (
            json!({"bind": "0.0.0.0:0", "public_url": "https://mcp.example/mcp", "auth_token_env": null, "allow_unauthenticated": true}),
            "--confirm-by link needs clients that authenticate",
        ),
        (
            json!({"approver_scope": "approve"}),
            "`approver_scope` needs --oauth-issuer",
        ),
        (
            json!({"approver_scope": "admin", "oauth_issuer": "https://login.example", "oauth_write_scope": ["admin"]}),
            "is a scope that calls need too",
        ),
        (
            json!({"auth_tokens": [{"name": "boss", "env": "APPROVER", "approve": true, "read_only": true}]}),
            "`auth_tokens[0]`: a token with `approve: true` calls nothing",
        ),
        (json!({"confirm_by": "mail"}), "confirm_by"),
    ] {
        let setup = Setup::new();
        setup.write("office.json", &super::document().to_string());
        let mut config = whole.clone();
        for (key, value) in keys.as_object().unwrap() {
            config.as_object_mut().unwrap().remove(key);
            if !value.is_null() {
                config[key] = value.clone();
            }
        }
        let config = setup.config(&config);
        let output = command(&["serve", "--config", &config])
            .envs(super::VARIABLES)
            .output()
            .unwrap();
        assert_ne!(output.status.code(), Some(0), "{keys}");
        assert!(
            stderr(&output).contains(problem),
            "{keys}: {}",
            stderr(&output)
        );
    }
}
