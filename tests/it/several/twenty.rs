//! Twenty APIs at once: on every way of a call, it carries the credential of its own API and no
//! other.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Setup, call_statelessly, corpus_documents, names, post_to};
use crate::support::upstream::Received;
use crate::support::{HttpServer, Session, Upstream, call_message, soak};

const COUNT: usize = 20;

/// Calls in flight at once over stdio.
const IN_FLIGHT: usize = 200;

/// Calls in one mode over one transport.
fn call_count() -> usize {
    if soak() { 10_000 } else { 400 }
}

fn name(index: usize) -> String {
    format!("api{:02}", index % COUNT)
}

fn key(index: usize) -> String {
    format!("the-key-of-{}", name(index))
}

/// The variables with the keys.
fn variables() -> Vec<(String, String)> {
    (0..COUNT)
        .map(|index| (format!("KEY_{}", name(index).to_uppercase()), key(index)))
        .collect()
}

fn borrowed(variables: &[(String, String)]) -> Vec<(&str, &str)> {
    variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// Twenty APIs on one origin, with a key each.
fn configuration(setup: &Setup, tools: &str, shared: &Upstream) -> String {
    setup.document("things");
    let api = |index: usize| {
        let auth = json!({"key": {"env": format!("KEY_{}", name(index).to_uppercase())}});
        (
            name(index),
            json!({"spec": "things.json", "base_url": format!("{}/{}", shared.url, name(index)), "auth": auth}),
        )
    };
    setup.config(
        &json!({"tools": tools, "apis": (0..COUNT).map(api).collect::<Map<String, Value>>()}),
    )
}

/// The tool and the arguments of a call whose number is in the query.
fn call(tools: &str, operation: &str, number: usize) -> (String, Value) {
    let arguments = json!({"q": number.to_string()});
    match tools {
        "all" => (operation.to_owned(), arguments),
        _ => (
            "call_read".to_owned(),
            json!({"operation": operation, "arguments": arguments}),
        ),
    }
}

/// Each request has the key of the API in its path, and the number says which API was meant.
fn assert_isolated(received: &[Received], calls: usize) {
    assert_eq!(received.len(), calls);
    for request in received {
        let number: usize = request.path().rsplit('=').next().unwrap().parse().unwrap();
        assert!(
            request
                .path()
                .starts_with(&format!("/{}/things?", name(number))),
            "{request:?}"
        );
        let keys: Vec<&String> = request
            .headers
            .iter()
            .filter(|line| line.contains("the-key-of"))
            .collect();
        assert_eq!(keys, [&format!("x-key: {}", key(number))], "{request:?}");
    }
}

#[test]
fn p66_twenty_apis_are_called_over_stdio_with_their_own_credentials() {
    for tools in ["all", "search"] {
        let (setup, shared, variables) = (Setup::new(), Upstream::echo(), variables());
        let config = configuration(&setup, tools, &shared);
        let mut session =
            Session::start_with(&["serve", "--config", &config], &borrowed(&variables));
        session.tools();
        for first in (0..call_count()).step_by(IN_FLIGHT) {
            for number in first..first + IN_FLIGHT {
                let (tool, arguments) =
                    call(tools, &format!("{}_list_things", name(number)), number);
                session.post("tools/call", &json!({"name": tool, "arguments": arguments}));
            }
            (0..IN_FLIGHT).for_each(|_| drop(session.receive()));
        }
        assert_isolated(&shared.received(), call_count());
    }
}

#[test]
fn p66_twenty_apis_are_called_at_every_endpoint_in_both_eras_with_their_own_credentials() {
    const CLIENTS: usize = 4;
    for tools in ["all", "search"] {
        let (setup, shared, variables) = (Setup::new(), Upstream::echo(), variables());
        let config = configuration(&setup, tools, &shared);
        let server = HttpServer::start_with(&["--config", &config], &borrowed(&variables));
        server.logged("all 20 APIs are served");
        let answered = |number: usize| {
            let operation = format!("{}_list_things", name(number));
            let path = match number / CLIENTS % 3 {
                0 => "/mcp".to_owned(),
                1 => "/mcp/readonly".to_owned(),
                _ => format!("/mcp/{}", name(number)),
            };
            let (tool, arguments) = call(tools, &operation, number);
            if number % 7 < 3 {
                call_statelessly(&server, &path, &tool, json!({ "arguments": arguments }))
            } else {
                post_to(
                    &server,
                    &path,
                    &[],
                    &call_message(&tool, &arguments.to_string()),
                )
                .2
            }
        };
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let answered = &answered;
                scope.spawn(move || {
                    for number in (client..call_count()).step_by(CLIENTS) {
                        let answer = answered(number);
                        assert_ne!(answer["result"]["isError"], true, "{answer}");
                    }
                });
            }
        });
        assert_isolated(&shared.received(), call_count());
    }
}

#[test]
fn p66_calls_of_twenty_real_documents_carry_their_own_credentials() {
    let files = corpus_documents(COUNT);
    if files.is_empty() {
        return;
    }
    let (setup, shared, variables) = (Setup::new(), Upstream::echo(), variables());
    let api = |(index, file): (usize, &std::path::PathBuf)| {
        let header = format!("X-Own=KEY_{}", name(index).to_uppercase());
        let settings = json!({
            "spec": file, "base_url": format!("{}/{}", shared.url, name(index)), "header_env": [header],
            "allow_missing_credentials": true,
        });
        (name(index), settings)
    };
    let config = setup.config(
        &json!({"apis": files.iter().enumerate().map(api).collect::<Map<String, Value>>()}),
    );
    let mut session = Session::start_with(&["serve", "--config", &config], &borrowed(&variables));
    let server = HttpServer::start_with(&["--config", &config], &borrowed(&variables));
    server.logged("APIs are served");
    let tools = session.tools();
    let is_callable = |tool: &&Value| {
        tool["inputSchema"]["required"]
            .as_array()
            .is_none_or(Vec::is_empty)
    };
    let callable: Vec<Value> = tools
        .iter()
        .filter(is_callable)
        .take(200)
        .cloned()
        .collect();
    let mut called = BTreeSet::new();
    for tool in names(&callable) {
        let (api, own) = tool.split_once('_').unwrap();
        session.call(tool, &json!({}));
        post_to(
            &server,
            &format!("/mcp/{api}"),
            &[],
            &call_message(own, "{}"),
        );
        for request in shared.take_all() {
            assert!(
                request.path().starts_with(&format!("/{api}/")),
                "{tool}: {request:?}"
            );
            let keys: Vec<&String> = request
                .headers
                .iter()
                .filter(|line| line.contains("the-key-of"))
                .collect();
            assert_eq!(
                keys,
                [&format!("x-own: the-key-of-{api}")],
                "{tool}: {request:?}"
            );
            called.insert(api.to_owned());
        }
    }
    assert!(called.len() >= 8, "{called:?}");
}
