//! Documents that are found behind the address of a site.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{HttpServer, Upstream, command, reply, run, stderr, stdout, wait_until};

const DOCUMENT: &str = r#"{"openapi":"3.1.0","info":{"title":"Found","version":"1"},"servers":[{"url":"/"}],"paths":{"/a":{"get":{"operationId":"found_it"}}}}"#;

#[test]
fn a_document_behind_the_address_of_a_site_is_found_on_its_origin_alone() {
    let page =
        |links: &str| format!("<!doctype html><html><head>{links}</head><body>API</body></html>");
    let other = Upstream::echo();
    let elsewhere = format!(
        "<link rel=\"service-desc\" href=\"{}/openapi.json\">",
        other.url
    );
    let site = Upstream::start(Box::new(move |request| match request.path() {
        "/" | "/openapi.json" => reply(
            200,
            &["Content-Type: text/html"],
            page(&elsewhere).as_bytes(),
        ),
        "/v3/api-docs" => reply(
            200,
            &["Content-Type: application/json"],
            DOCUMENT.as_bytes(),
        ),
        _ => reply(404, &[], b""),
    }));
    let output = command(&["tools", "--spec", &site.url])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(
        stdout(&output).contains("found_it"),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("/v3/api-docs"),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("another origin, which is not fetched"),
        "{}",
        stderr(&output)
    );
    assert!(other.received().is_empty());
    assert!(site.received().len() <= 11, "{}", site.received().len());
    let output = run(&["tools", "strict: true", "--spec", &site.url]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
}

#[test]
fn a_catalog_and_a_link_name_the_document() {
    for name in ["catalog", "header", "element"] {
        let site = Upstream::start(Box::new(move |request| match (request.path(), name) {
            ("/docs", "header") => reply(
                200,
                &["Link: </deep/api.yaml>; rel=\"service-desc\""],
                b"<html></html>",
            ),
            ("/docs", "element") => reply(
                200,
                &[],
                b"<html><link rel=\"service-desc\" href='/deep/api.yaml'></html>",
            ),
            ("/docs", _) => reply(200, &[], b"<html></html>"),
            ("/.well-known/api-catalog", "catalog") => reply(
                200,
                &[],
                br#"{"linkset":[{"anchor":"/","service-desc":[{"href":"/deep/api.yaml"}]}]}"#,
            ),
            ("/deep/api.yaml", _) => reply(200, &[], DOCUMENT.as_bytes()),
            _ => reply(404, &[], b""),
        }));
        let output = run(&["tools", "--spec", &format!("{}/docs", site.url)]);
        assert!(
            stdout(&output).contains("found_it"),
            "{name}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn redirects_of_a_site_are_followed_on_its_origin_and_count_as_requests() {
    let other = Upstream::echo();
    let away = format!("Location: {}/openapi.yaml", other.url);
    let site = Upstream::start(Box::new(move |request| match request.path() {
        "/" => reply(302, &["Location: /welcome"], b""),
        "/welcome" => reply(200, &["Content-Type: text/html"], b"<html></html>"),
        "/openapi.json" => reply(302, &[&away], b""),
        "/openapi.yaml" => reply(307, &["Location: /files/api.json"], b""),
        "/files/api.json" => reply(200, &[], DOCUMENT.as_bytes()),
        _ => reply(404, &[], b""),
    }));
    let output = run(&["tools", "--spec", &site.url, "spec_header: [\"X-Key: k\"]"]);
    assert!(stdout(&output).contains("found_it"), "{}", stderr(&output));
    assert!(
        stderr(&output).contains(&format!("not fetched: {}/openapi.yaml", other.url)),
        "{}",
        stderr(&output)
    );
    assert!(other.received().is_empty());
    assert!(
        site.received()
            .iter()
            .all(|request| request.header("x-key") == Some("k"))
    );
    // Pages that lead from one to the next are left after fifteen requests in all.
    let endless = Upstream::start(Box::new(|request| match request.path() {
        "/" => reply(200, &[], b"<html></html>"),
        path => reply(302, &[&format!("Location: {path}x")], b""),
    }));
    let output = run(&["tools", "--spec", &endless.url]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert_eq!(endless.received().len(), 15);
}

#[test]
fn of_a_page_no_more_than_a_mebibyte_is_read() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let site = Upstream::raw(move |request, stream| {
        use std::io::Write as _;
        if request.path() == "/openapi.json" {
            let _ = stream.write_all(&reply(200, &[], DOCUMENT.as_bytes()));
            return;
        }
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html><html>");
        // A page without an end; a reader that has enough closes the connection.
        while request.path() == "/" && stream.write_all(&vec![b' '; 1 << 16]).is_ok() {
            let all = count.fetch_add(1 << 16, Ordering::Relaxed);
            assert!(all < 64 << 20, "the page is read without an end");
        }
    });
    let output = run(&["tools", "--spec", &site.url]);
    assert!(stdout(&output).contains("found_it"), "{}", stderr(&output));
    // What was written beyond the first mebibyte was in flight.
    assert!(written.load(Ordering::Relaxed) < 32 << 20);
}

#[test]
fn a_page_that_comes_with_404_is_a_page_and_other_answers_are_not_searched() {
    let site = Upstream::start(Box::new(|request| match request.path() {
        "/openapi.json" => reply(200, &[], DOCUMENT.as_bytes()),
        "/json" => reply(
            200,
            &["Content-Type: application/json"],
            b"{\"message\":\"welcome\"}",
        ),
        "/missing" => reply(
            404,
            &["Content-Type: application/json"],
            b"{\"detail\":\"Not Found\"}",
        ),
        "/forbidden" => reply(403, &["Content-Type: text/html"], b"<html></html>"),
        _ => reply(404, &["Content-Type: text/html"], b"<html>404</html>"),
    }));
    let output = run(&["tools", "--spec", &format!("{}/", site.url)]);
    assert!(stdout(&output).contains("found_it"), "{}", stderr(&output));
    site.take_all();
    for (path, words) in [
        (
            "json",
            "give the address of the document itself, which many servers have at /openapi.json",
        ),
        (
            "missing",
            "answered 404 Not Found; check the address of the document, which many servers have at /openapi.json",
        ),
        ("forbidden", "answered 403 Forbidden"),
    ] {
        let output = run(&["tools", "--spec", &format!("{}/{path}", site.url)]);
        assert_eq!(output.status.code(), Some(3), "{path}");
        assert!(
            stderr(&output).contains(words),
            "{path}: {}",
            stderr(&output)
        );
        site.take_one();
    }
    // With nothing behind it, the page that was missing is the error.
    let empty = Upstream::start(Box::new(|_| {
        reply(404, &["Content-Type: text/html"], b"<html>404</html>")
    }));
    let output = run(&["tools", "--spec", &empty.url]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("answered 404 Not Found"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn reloads_ask_the_address_that_was_found() {
    let site = Upstream::start(Box::new(|request| match request.path() {
        "/" => reply(200, &[], b"<html></html>"),
        "/openapi.json" => reply(200, &[], DOCUMENT.as_bytes()),
        _ => reply(404, &[], b""),
    }));
    let _server = HttpServer::start(&["--spec", &site.url, "--reload", "1"]);
    let asked = |path: &str| {
        site.received()
            .iter()
            .filter(|request| request.path() == path)
            .count()
    };
    wait_until("the document is asked for again", || {
        asked("/openapi.json") >= 3
    });
    assert_eq!(asked("/"), 1);
}

#[test]
fn a_site_that_answers_404_is_searched_at_all_usual_places() {
    for place in [
        "/openapi.json",
        "/api/openapi.json",
        "/docs/openapi.json",
        "/api/docs",
        "/api/swagger.json",
        "/v3/api-docs",
        "/swagger/v1/swagger.json",
    ] {
        let site = Upstream::start(Box::new(move |request| match request.path() {
            path if path == place => reply(200, &[], DOCUMENT.as_bytes()),
            _ => reply(
                404,
                &["Content-Type: application/json"],
                b"{\"detail\":\"Not Found\"}",
            ),
        }));
        let output = run(&["tools", "--spec", &site.url]);
        assert!(
            stdout(&output).contains("found_it"),
            "{place}: {}",
            stderr(&output)
        );
    }
    let empty = Upstream::start(Box::new(|_| reply(404, &[], b"")));
    let output = run(&["tools", "--spec", &empty.url]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("answered 404 Not Found")
            && stderr(&output).contains("there is none at /openapi.json"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_redirect_to_a_login_page_is_named_with_the_setting_that_sends_a_credential() {
    let elsewhere = Upstream::echo();
    let sso = format!(
        "Location: {}/realms/x/protocol/openid-connect/auth?client_id=a",
        elsewhere.url
    );
    let site = Upstream::start(Box::new(move |request| match request.path() {
        "/away.json" => reply(302, &[&sso], b""),
        "/welcome" => reply(
            200,
            &["Content-Type: text/html"],
            b"<html><form><input name=p type=\"password\"></form></html>",
        ),
        "/openapi.json" => reply(302, &["Location: /login?next=%2Fopenapi.json"], b""),
        "/login?next=%2Fopenapi.json" => {
            reply(200, &["Content-Type: text/html"], b"<html>Sign in</html>")
        }
        _ => reply(302, &["Location: /welcome"], b""),
    }));
    for (path, target) in [
        ("openapi.json", "was redirected to http://127.0.0.1"),
        ("other.json", "/welcome, a page to sign in"),
        ("away.json", "/openid-connect/auth"),
    ] {
        let output = run(&["tools", "--spec", &format!("{}/{path}", site.url)]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains(target)
                && said.contains("a page to sign in; if the document needs a credential, --spec-header-env NAME=VARIABLE"),
            "{path}: {said}"
        );
    }
    assert!(elsewhere.received().is_empty());
}
