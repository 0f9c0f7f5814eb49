//! The page, and what may and may not give an agreement.

use serde_json::json;

use super::{APPROVER, CLIENT, Office, ask, link, link_url};
use crate::http::audit::Log;
use crate::support::http_server::{answer_header, scrape};
use crate::support::text;

#[test]
fn a_call_is_made_once_after_a_person_agreed_to_it() {
    let log = Log::new();
    let args = ["--audit-log", log.name(), "--metrics-bind", "127.0.0.1:0"];
    let office = Office::start(&json!({}), &args);
    let asked = office.remove("1");
    let link_1 = link(&asked);
    assert!(
        link_url(&asked).starts_with(&format!("http://{}/approve/", office.server.address)),
        "{asked}"
    );
    assert_eq!(link_1.len(), "/approve/".len() + 32);
    assert_eq!(link(&office.remove("1")), link_1, "the same call");
    let link_2 = link(&office.remove("2"));
    assert_ne!(link_1, link_2, "another call");

    let (status, shown) = office.shown(&link_1);
    assert_eq!(status, 200, "{shown}");
    let question = &shown["question"];
    assert_eq!(question["api"], "Office");
    assert_eq!(question["tool"], "remove");
    assert_eq!(question["title"], "Remove a thing");
    assert_eq!(question["operation"], "DELETE /things/{id}");
    assert_eq!(question["effect"], "destructive");
    assert!(
        question["request"]
            .as_str()
            .unwrap()
            .starts_with("DELETE /things/1 HTTP/1.1\n"),
        "{shown}"
    );
    assert_eq!(question["arguments"], "{\n  \"id\": \"1\"\n}");
    assert!(
        shown["seconds"]
            .as_u64()
            .is_some_and(|left| (590..=600).contains(&left))
    );
    assert!(
        office.upstream.received().is_empty(),
        "reading the page calls nothing"
    );

    assert_eq!(office.answer(&link_1, true), 204);
    assert_eq!(office.shown(&link_1).0, 404, "it is answered");
    assert!(
        office.upstream.received().is_empty(),
        "the page calls nothing"
    );
    assert_eq!(link(&office.remove("2")), link_2, "the other call waits");
    let done = office.remove("1");
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(office.upstream.take_one().line, "DELETE /things/1 HTTP/1.1");
    let again = link(&office.remove("1"));
    assert_ne!(again, link_1, "an agreement is for one call");
    assert!(office.upstream.received().is_empty());

    assert_eq!(office.answer(&link_2, false), 204);
    for _ in 0..2 {
        let declined = office.remove("2");
        assert!(
            text(&declined)
                .contains("the user declined, and the same call is refused for 10 minutes more"),
            "{declined}"
        );
    }
    assert!(office.upstream.received().is_empty());

    let lines = log.wait_for(10);
    let outcomes: Vec<_> = lines
        .iter()
        .map(|line| line["outcome"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(
        outcomes,
        [
            "asked", "asked", "asked", "-", "asked", "ok", "asked", "-", "declined", "declined"
        ]
    );
    let of = |index: usize, name: &str| lines[index][name].clone();
    assert_eq!(
        (of(3, "event"), of(3, "approver"), of(3, "agreed")),
        (json!("approval"), json!("token:boss"), json!(true))
    );
    assert_eq!(of(7, "agreed"), json!(false));
    for (index, confirmed) in [(0, false), (1, false), (5, true)] {
        assert_eq!(of(index, "question"), of(3, "question"), "{index}");
        assert_eq!(of(index, "confirmed"), json!(confirmed), "{index}");
    }
    assert_eq!(of(9, "question"), of(7, "question"));
    assert!(
        !lines.iter().any(|line| line
            .to_string()
            .contains(link_1.trim_start_matches("/approve/"))),
        "no log holds a link"
    );
    let metrics = office.server.logged("metrics at");
    let address = metrics
        .split("metrics at http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let page = scrape(address);
    for line in [
        "openapi_mcp_approvals_total{outcome=\"asked\"} 3",
        "openapi_mcp_approvals_total{outcome=\"agreed\"} 1",
        "openapi_mcp_approvals_total{outcome=\"declined\"} 1",
    ] {
        assert!(page.contains(line), "{page}");
    }
}

#[test]
fn before_sign_in_the_page_tells_nothing() {
    let office = Office::start(&json!({}), &[]);
    let real = link(&office.remove("1"));
    let unknown = format!("/approve/{}", "0".repeat(32));
    let pages = [&real, &unknown].map(|path| {
        let (status, answer) = office.ask(path, "GET", &["Accept: text/html"], "");
        assert_eq!(status, 200, "{answer}");
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer_header(&answer, name), Some(value), "{answer}");
        }
        let policy = answer_header(&answer, "content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    });
    assert_eq!(pages[0], pages[1]);
    assert!(!pages[0].contains("Office"));
    for token in [None, Some(CLIENT), Some("a-token-of-nobody-at-all")] {
        let authorization = token.map(|token| format!("Authorization: Bearer {token}"));
        let mut headers = vec!["Accept: application/json"];
        headers.extend(authorization.as_deref());
        let answers = [&real, &unknown].map(|path| {
            let (status, answer) = office.ask(path, "GET", &headers, "");
            // Failed sign-ins are counted, ten a minute.
            assert!(matches!(status, 401 | 429), "{answer}");
            (status == 401).then(|| answer.split_once("\r\n\r\n").unwrap().1.to_owned())
        });
        if let [Some(one), Some(other)] = answers {
            assert_eq!(one, other);
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of refused answers")]
fn p89_only_the_page_gives_an_agreement() {
    let office = Office::start(&json!({"allow_origin": ["https://app.example"]}), &[]);
    let path = link(&office.remove("1"));
    let other = office.shown(&link(&office.remove("2"))).1["hash"].clone();
    let hash = office.shown(&path).1["hash"].clone();
    let body = json!({"hash": hash, "agree": true}).to_string();
    let authorization = format!("Authorization: Bearer {APPROVER}");
    let of_client = format!("Authorization: Bearer {CLIENT}");
    let own = format!("Origin: http://{}", office.server.address);
    let port = office.server.address.rsplit(':').next().unwrap();
    let local = format!("Origin: http://localhost:{port}");
    let (json_type, site) = (
        "Content-Type: application/json",
        "Sec-Fetch-Site: same-origin",
    );
    let good = [authorization.as_str(), &own, json_type, site];
    let wrong_hash = json!({"hash": other, "agree": true}).to_string();
    for (method, headers, body, expected) in [
        ("POST", vec![&authorization, json_type, site], &body, 403),
        (
            "POST",
            vec![&authorization, "Origin: null", json_type, site],
            &body,
            403,
        ),
        (
            "POST",
            vec![
                &authorization,
                "Origin: https://app.example",
                json_type,
                site,
            ],
            &body,
            403,
        ),
        (
            "POST",
            vec![&authorization, &local, json_type, site],
            &body,
            403,
        ),
        (
            "POST",
            vec![&authorization, &own, &own, json_type, site],
            &body,
            403,
        ),
        (
            "POST",
            vec![
                &authorization,
                &own,
                json_type,
                "Sec-Fetch-Site: cross-site",
            ],
            &body,
            403,
        ),
        (
            "POST",
            vec![&authorization, &own, json_type, "Sec-Fetch-Site: same-site"],
            &body,
            403,
        ),
        (
            "POST",
            vec![&authorization, &own, json_type, "Sec-Fetch-Site: none"],
            &body,
            403,
        ),
        ("POST", vec![&authorization, &own, site], &body, 415),
        (
            "POST",
            vec![&authorization, &own, "Content-Type: text/plain", site],
            &body,
            415,
        ),
        (
            "POST",
            vec![
                &authorization,
                &own,
                "Content-Type: application/x-www-form-urlencoded",
                site,
            ],
            &body,
            415,
        ),
        ("POST", vec![&own, json_type, site], &body, 401),
        ("POST", vec![&of_client, &own, json_type, site], &body, 401),
        ("POST", good.to_vec(), &wrong_hash, 404),
        (
            "POST",
            good.to_vec(),
            &json!({"hash": "", "agree": true}).to_string(),
            404,
        ),
        (
            "POST",
            good.to_vec(),
            &json!({"agree": true}).to_string(),
            400,
        ),
        (
            "POST",
            good.to_vec(),
            &json!({"hash": hash, "agree": true, "more": 1}).to_string(),
            400,
        ),
        ("POST", good.to_vec(), &"x".repeat(5000), 400),
        ("PUT", good.to_vec(), &body, 405),
        ("OPTIONS", good.to_vec(), &body, 405),
        ("DELETE", good.to_vec(), &body, 405),
        ("GET", good.to_vec(), &body, 200),
        (
            "POST",
            [&good[..], &["Host: evil.example"]].concat(),
            &body,
            403,
        ),
    ] {
        let (status, answer) = office.ask(&path, method, &headers, body);
        assert_eq!(status, expected, "{method} {headers:?} {body}: {answer}");
        assert!(
            answer_header(&answer, "access-control-allow-origin").is_none(),
            "{answer}"
        );
        assert_eq!(
            link(&office.remove("1")),
            path,
            "{method} {headers:?} {body}"
        );
    }
    for (wrong, expected) in [
        (format!("/approve/{}", "0".repeat(32)), 404),
        (format!("{path}0"), 404),
        (format!("{path}?agree=true"), 204),
    ] {
        assert_eq!(
            office.ask(&wrong, "POST", &good, &body).0,
            expected,
            "{wrong}"
        );
    }
    assert!(office.upstream.received().is_empty());
    assert_eq!(
        office.ask(&path, "POST", &good, &body).0,
        404,
        "it is answered"
    );
}

#[test]
fn text_of_a_document_and_a_call_is_shown_with_hidden_characters_as_escapes() {
    let office = Office::start(&json!({}), &[]);
    let arguments = json!({"id": "1", "reason": "a\u{202e}b\u{200b}<b>\u{e0041}"});
    let (_, shown) = office.shown(&link(&office.call_as(CLIENT, "remove", &arguments)));
    let shown = shown["question"]["arguments"].as_str().unwrap();
    assert!(
        shown.contains("a\\u{202e}b\\u{200b}<b>\\u{e0041}"),
        "{shown}"
    );
    let long = json!({"id": "1", "reason": "x".repeat(300_000)});
    let refused = office.call_as(CLIENT, "remove", &long);
    assert!(
        text(&refused).contains("too long for a person to read"),
        "{refused}"
    );
}

#[test]
fn p89_failed_sign_ins_are_counted_for_their_address() {
    let office = Office::start(&json!({}), &[]);
    let path = link(&office.remove("1"));
    let statuses: Vec<u16> = (0..5)
        .map(|number| {
            let wrong = format!("Authorization: Bearer a-guess-of-a-token-{number}");
            let headers = [wrong.as_str(), "Accept: application/json"];
            ask(&office.server.address, &path, "GET", &headers, "").0
        })
        .collect();
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(
        office.shown(&path).0,
        200,
        "the right token is not a failure"
    );
}
