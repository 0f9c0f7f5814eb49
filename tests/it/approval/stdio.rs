//! Links over stdio: a listener of this machine, opened at the first question.

use serde_json::json;

use super::{ask, body_of, link, link_url};
use crate::support::{Session, SpecFile, Upstream, listening_sockets};

fn session(
    spec: &SpecFile,
    upstream: &Upstream,
    by: &str,
    capabilities: &serde_json::Value,
) -> Session {
    Session::start_able(
        &[
            "serve",
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--confirm",
            "write",
            "--confirm-by",
            by,
        ],
        capabilities,
    )
}

#[test]
fn p53_over_stdio_the_first_question_opens_a_listener_of_this_machine() {
    let upstream = Upstream::echo();
    let spec = SpecFile::new(&super::document().to_string());
    let mut session = session(&spec, &upstream, "client,link", &json!({}));
    assert!(!session.tools().is_empty());
    assert_eq!(listening_sockets(session.pid()), 0);
    let asked = session.call("remove", &json!({"id": "1"}));
    let url = link_url(&asked);
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{url}");
    assert_eq!(listening_sockets(session.pid()), 1);
    let path = link(&asked);
    let port = address.rsplit(':').next().unwrap();
    for (path, headers, expected) in [
        (path.as_str(), vec![], 200),
        ("/mcp", vec![], 404),
        ("/", vec![], 404),
        (&path, vec![format!("Host: localhost:{port}")], 403),
        (&path, vec!["Host: 127.0.0.1".to_owned()], 403),
        (&path, vec![format!("Host: evil.example:{port}")], 403),
    ] {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        assert_eq!(
            ask(&address, path, "GET", &headers, "").0,
            expected,
            "{path} {headers:?}"
        );
    }
    let (status, shown) = ask(&address, &path, "GET", &["Accept: application/json"], "");
    assert_eq!(status, 200, "the link is all that is needed: {shown}");
    let shown = body_of(&shown);
    assert_eq!(shown["question"]["caller"], "local");
    let body = json!({"hash": shown["hash"], "agree": true}).to_string();
    let json_type = "Content-Type: application/json";
    assert_eq!(
        ask(&address, &path, "POST", &[json_type], &body).0,
        403,
        "no origin"
    );
    let origin = format!("Origin: http://{address}");
    assert_eq!(
        ask(&address, &path, "POST", &[json_type, &origin], &body).0,
        204
    );
    assert_eq!(
        session.call("remove", &json!({"id": "1"}))["isError"],
        false
    );
    assert_eq!(upstream.take_one().line, "DELETE /things/1 HTTP/1.1");
    link(&session.call("remove", &json!({"id": "1"})));
    assert_eq!(listening_sockets(session.pid()), 1, "one listener");
}
