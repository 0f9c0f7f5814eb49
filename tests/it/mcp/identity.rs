//! How a server introduces itself: in the words of its document, or in those of the operator.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::packages::read_from_bundle;
use crate::http::auth_oauth::Issuer;
use crate::support::{HttpServer, Session, SpecFile, petstore, run, stateless_meta, stderr};

/// A PNG image of 2 by 3 pixels, as far as its header goes.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0";

fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "The Orders API",
            "version": "7",
            "summary": "Orders of  a shop",
            "description": "What the document says.",
            "x-logo": { "url": "https://shop.example/logo.svg" },
        },
        "externalDocs": { "url": "https://shop.example/docs" },
        "servers": [{ "url": "https://api.shop.example" }],
        "paths": { "/orders": { "get": { "operationId": "list_orders", "responses": { "200": { "description": "x" } } } } },
    })
}

/// A folder with a configuration file, a document and an icon.
fn folder(config: &Value) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("orders.json"), document().to_string()).unwrap();
    std::fs::write(path("icon.png"), PNG).unwrap();
    std::fs::write(path("mcp.yaml"), config.to_string()).unwrap();
    let config = path("mcp.yaml").display().to_string();
    (folder, config)
}

fn introduction(config: &str) -> Value {
    Session::start(&["serve", "--config", config])
        .handshake()
        .clone()
}

#[test]
fn a_server_introduces_itself_in_the_words_of_its_document() {
    let spec = SpecFile::new(&document().to_string());
    let handshake = Session::start(&["serve", "--spec", spec.path()])
        .handshake()
        .clone();
    assert_eq!(
        handshake["serverInfo"],
        json!({
            "name": "orders",
            "title": "The Orders API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Orders of a shop",
            "icons": [{ "src": "https://shop.example/logo.svg" }],
            "websiteUrl": "https://shop.example/docs",
        })
    );
    let instructions = handshake["instructions"].as_str().unwrap();
    assert!(
        instructions.ends_with("\n\nWhat the document says."),
        "{instructions}"
    );
}

#[test]
fn only_https_addresses_of_a_document_are_shown_to_clients() {
    for address in [
        "http://shop.example/",
        "javascript:alert(1)",
        "data:image/svg+xml,x",
        "/relative",
        "https://user:secret@shop.example/",
        "not a url",
    ] {
        let mut document = document();
        document["externalDocs"]["url"] = address.into();
        document["info"]["x-logo"]["url"] = address.into();
        let spec = SpecFile::new(&document.to_string());
        let handshake = Session::start(&["serve", "--spec", spec.path()])
            .handshake()
            .clone();
        let info = &handshake["serverInfo"];
        assert!(
            info["icons"].is_null() && info["websiteUrl"].is_null(),
            "{info}"
        );
    }
}

#[test]
fn the_operator_s_words_take_the_place_of_the_document_s() {
    let (_folder, config) = folder(&json!({
        "spec": "orders.json",
        "about": {
            "name": "Shop.EU",
            "title": "Orders in Europe",
            "description": "Orders of the shops in Europe.",
            "website": "http://wiki.intern/orders",
            "icon": "icon.png",
            "instructions": "Ask for the number of the order first.\nNever guess it.",
        },
    }));
    let handshake = introduction(&config);
    assert_eq!(
        handshake["serverInfo"],
        json!({
            "name": "Shop.EU",
            "title": "Orders in Europe",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Orders of the shops in Europe.",
            "icons": [{
                "src": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAA=",
                "mimeType": "image/png",
                "sizes": ["2x3"],
            }],
            "websiteUrl": "http://wiki.intern/orders",
        })
    );
    assert_eq!(
        handshake["instructions"],
        "Tools for Orders in Europe 7; each makes one HTTP request to that API.\n\nAsk for the number of the order first.\nNever guess it."
    );
}

#[test]
fn what_the_program_adds_to_the_instructions_stays_in_search_mode() {
    let own = "Ask for the number of the order first. ".repeat(38);
    let (_folder, config) = folder(&json!({
        "spec": "orders.json",
        "tools": "search",
        "about": { "instructions": own },
    }));
    let handshake = introduction(&config);
    let instructions = handshake["instructions"].as_str().unwrap();
    assert!(instructions.ends_with(own.trim()), "{instructions}");
    assert!(
        instructions.starts_with("1 operation behind a few tools"),
        "{instructions}"
    );
    assert!(instructions.contains("search_operations"), "{instructions}");
    assert!(instructions.len() <= 2048, "{}", instructions.len());
}

#[test]
fn several_apis_introduce_themselves_each_at_its_own_endpoint() {
    let (_folder, config) = folder(&json!({
        "transport": "http", "bind": "127.0.0.1:0", "mock": true,
        "about": { "title": "The shop", "instructions": "Everything about the shop." },
        "apis": {
            "orders": { "spec": "orders.json", "about": { "name": "orders-eu" } },
            "more": { "spec": petstore() },
        },
    }));
    let server = HttpServer::start(&["--config", &config]);
    server.logged("all 2 APIs are served");
    let discovered = |path: &str| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": stateless_meta(&json!({}))}});
        let body = message.to_string();
        let answer = server.raw(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let answer = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        serde_json::from_str::<Value>(&answer).unwrap()["result"].clone()
    };
    let info = |path: &str| discovered(path)["_meta"]["io.modelcontextprotocol/serverInfo"].clone();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        info("/mcp"),
        json!({ "name": "openapi-mcp", "title": "The shop", "version": version })
    );
    let instructions = discovered("/mcp")["instructions"].clone();
    let instructions = instructions.as_str().unwrap();
    assert!(
        instructions.contains("- orders (names begin with orders_): The Orders API, 1 tool")
            && instructions.ends_with("\n\nEverything about the shop."),
        "{instructions}"
    );
    for path in ["/mcp/orders", "/mcp/orders/readonly"] {
        let info = info(path);
        assert_eq!(info["name"], "orders-eu", "{info}");
        assert_eq!(info["title"], "The Orders API", "{info}");
        assert_eq!(
            info["icons"][0]["src"], "https://shop.example/logo.svg",
            "{info}"
        );
    }
    assert_eq!(info("/mcp/more")["name"], "petstore");
}

#[test]
fn results_name_the_server_and_carry_no_icon() {
    let (_folder, config) = folder(&json!({
        "spec": "orders.json", "mock": true, "transport": "http", "bind": "127.0.0.1:0",
        "about": { "name": "shop", "icon": "icon.png" },
    }));
    let server = HttpServer::start(&["--config", &config]);
    server.logged("1 tool (");
    let answer = server.call_stateless("list_orders", json!({}), &json!({}));
    assert_eq!(
        answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"],
        json!({ "name": "shop", "version": env!("CARGO_PKG_VERSION") }),
        "{answer}"
    );
}

#[test]
fn a_server_has_its_name_before_its_document_is_there() {
    let (_folder, config) = folder(&json!({
        "spec": "http://127.0.0.1:9/never.json", "reload": 60,
        "about": { "name": "shop", "title": "The shop" },
    }));
    let info = introduction(&config)["serverInfo"].clone();
    assert_eq!(
        info,
        json!({ "name": "shop", "title": "The shop", "version": env!("CARGO_PKG_VERSION") })
    );
}

#[test]
fn openai_finds_the_text_that_verifies_a_domain_without_a_token() {
    let (_folder, config) = folder(&json!({
        "spec": "orders.json", "mock": true, "transport": "http", "bind": "127.0.0.1:0",
        "auth_token_env": ["CHALLENGE_TOKEN"], "openai_apps_challenge": "abc-DEF_123",
    }));
    let token = [(
        "CHALLENGE_TOKEN",
        "a-token-of-at-least-thirty-two-characters",
    )];
    let server = HttpServer::start_with(&["--config", &config], &token);
    let answer = server.get("/.well-known/openai-apps-challenge");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("content-type: text/plain"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nabc-DEF_123"), "{answer}");
    let foreign = server.raw(
        "GET /.well-known/openai-apps-challenge HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    assert!(!foreign.contains("abc-DEF_123"), "{foreign}");
    assert!(
        server
            .get("/.well-known/other")
            .starts_with("HTTP/1.1 401 ")
    );
}

#[test]
fn every_fault_of_the_introduction_is_an_error_at_startup() {
    let cases = [
        (json!({ "name": "two words" }), "`about.name` takes letters"),
        (json!({ "name": "" }), "`about.name` takes letters"),
        (json!({ "title": " " }), "`about.title` is empty"),
        (
            json!({ "title": "x".repeat(201) }),
            "`about.title` has 201 bytes, and at most 200",
        ),
        (
            json!({ "instructions": "x".repeat(1501) }),
            "`about.instructions` has 1501 bytes, and at most 1500",
        ),
        (
            json!({ "website": "shop.example" }),
            "`about.website` is not a URL (`shop.example`)",
        ),
        (
            json!({ "website": "ftp://shop.example" }),
            "`about.website` must begin with `https://` or `http://`, and `ftp://shop.example` does not",
        ),
        (
            json!({ "website": "https://me:pw@shop.example" }),
            "`about.website` must not contain a user or a password",
        ),
        (
            json!({ "icon": "http://shop.example/a.png" }),
            "`about.icon` must begin with `https://`",
        ),
        (
            json!({ "icon": "missing.png" }),
            "missing.png`, which cannot be read",
        ),
        (
            json!({ "icon": "orders.json" }),
            "orders.json`, which is neither a PNG nor an SVG image",
        ),
        (
            json!({ "icon": "large.png" }),
            "large.png`, which has more than 64 KiB",
        ),
        (
            json!({ "icon": 1 }),
            "`about.icon` is the number 1; expected a text",
        ),
        (
            json!({ "titel": "x" }),
            "unknown key `about.titel`; did you mean `title`?",
        ),
        (
            json!("The shop"),
            "`about` is the text \"The shop\"; expected a mapping",
        ),
    ];
    for (about, words) in cases {
        let (folder, config) = folder(&json!({ "spec": "orders.json", "about": about }));
        let mut large = PNG.to_vec();
        large.resize((64 << 10) + 1, 0);
        std::fs::write(folder.path().join("large.png"), large).unwrap();
        let output = run(&["serve", "--config", &config]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{about}: {said}");
        assert!(said.contains(words), "{about}: {said}");
    }
    let (_folder, config) = folder(&json!({
        "spec": "orders.json", "openai_apps_challenge": "two words", "transport": "http",
    }));
    let said = stderr(&run(&["serve", "--config", &config]));
    assert!(
        said.contains("`openai_apps_challenge` must be the text that OpenAI shows"),
        "{said}"
    );
    let (_folder, config) = folder(&json!({ "spec": "orders.json", "openai_apps_challenge": "x" }));
    let said = stderr(&run(&["serve", "--config", &config]));
    assert!(
        said.contains("`openai_apps_challenge` needs --transport http"),
        "{said}"
    );
}

#[test]
fn an_svg_icon_is_known_by_its_root() {
    for (text, is_svg) in [
        ("<svg xmlns='http://www.w3.org/2000/svg'/>", true),
        (
            "\u{feff}<?xml version='1.0'?>\n<!-- a logo --><!DOCTYPE svg>\n<s:svg xmlns:s='x'></s:svg>",
            true,
        ),
        ("<html><svg/></html>", false),
        ("svg", false),
        ("text <svg/>", false),
    ] {
        let (folder, config) = folder(
            &json!({ "spec": "orders.json", "mock": true, "about": { "icon": "icon.svg" } }),
        );
        std::fs::write(folder.path().join("icon.svg"), text).unwrap();
        if is_svg {
            let icon = introduction(&config)["serverInfo"]["icons"][0].clone();
            assert_eq!(icon["mimeType"], "image/svg+xml", "{text}: {icon}");
            assert_eq!(icon["sizes"], json!(["any"]), "{text}: {icon}");
        } else {
            let said = stderr(&run(&["serve", "--config", &config]));
            assert!(
                said.contains("neither a PNG nor an SVG image"),
                "{text}: {said}"
            );
        }
    }
}

#[test]
fn p28_without_a_token_a_server_is_named_in_the_words_of_the_operator_alone() {
    let issuer = Issuer::start(Vec::new());
    for about in [
        json!({ "title": "The shop", "website": "https://shop.example/", "icon": "icon.png" }),
        Value::Null,
    ] {
        let mut settings = json!({
            "spec": "orders.json", "mock": true, "transport": "http", "bind": "127.0.0.1:0",
            "oauth_issuer": issuer.name(), "public_url": "https://mcp.example/mcp", "page": "full",
        });
        let is_set = about.is_object();
        if is_set {
            settings["about"] = about;
        }
        let (_folder, config) = folder(&settings);
        let server = HttpServer::start(&["--config", &config]);
        server.logged("1 tool (");
        let metadata = server.get("/.well-known/oauth-protected-resource/mcp");
        let page = server.raw(
            "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n",
        );
        for answer in [&metadata, &page] {
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert_eq!(answer.contains("The shop"), is_set, "{answer}");
            let words = [
                "Orders API",
                "Orders of",
                "What the document",
                "logo.svg",
                "shop.example/docs",
                "list_orders",
            ];
            for word in words {
                assert!(!answer.contains(word), "{word}: {answer}");
            }
        }
        let body: Value = serde_json::from_str(metadata.split_once("\r\n\r\n").unwrap().1).unwrap();
        let told = (&body["resource_name"], &body["resource_documentation"]);
        let expected = if is_set {
            (&json!("The shop"), &json!("https://shop.example/"))
        } else {
            (&Value::Null, &Value::Null)
        };
        assert_eq!(told, expected);
        assert_eq!(page.contains("data:image/png;base64,iVBOR"), is_set);
    }
}

#[test]
fn an_entry_of_a_client_and_a_bundle_have_the_same_name_and_icon() {
    let (folder, config) = folder(&json!({
        "spec": "orders.json",
        "about": { "name": "shop_EU", "title": "The shop", "website": "https://shop.example/", "icon": "icon.png" },
    }));
    let entry = run(&[
        "install",
        "--client",
        "claude-desktop",
        "--config",
        &config,
        "--print",
    ]);
    let entry = String::from_utf8_lossy(&entry.stdout).into_owned() + &stderr(&entry);
    assert!(entry.contains("\"shop_EU\""), "{entry}");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("binary"), "x").unwrap();
    let bundle = path("a.mcpb");
    let made = run(&[
        "bundle",
        "--config",
        &config,
        "--binary",
        &path("binary"),
        "--platform",
        "linux",
        "--output",
        &bundle,
        "--privacy-policy",
        "https://shop.example/privacy",
    ]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let Some(manifest) = read_from_bundle(&bundle, "manifest.json") else {
        return;
    };
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["name"], "shop_EU");
    assert_eq!(manifest["display_name"], "The shop");
    assert_eq!(manifest["description"], "Orders of a shop");
    assert_eq!(manifest["homepage"], "https://shop.example/");
    assert_eq!(manifest["icon"], "icon.png");
    assert_eq!(
        manifest["privacy_policies"],
        json!(["https://shop.example/privacy"])
    );
    let unpacked = path("unpacked");
    let status = std::process::Command::new("python3")
        .args(["-m", "zipfile", "-e", &bundle, &unpacked])
        .status();
    assert!(status.unwrap().success());
    let inner = format!("{unpacked}/server/openapi-mcp.json");
    let info = introduction(&inner)["serverInfo"].clone();
    assert_eq!(
        (&info["name"], &info["icons"][0]["sizes"]),
        (&json!("shop_EU"), &json!(["2x3"]))
    );
    let wrong = run(&[
        "bundle",
        "--config",
        &config,
        "--privacy-policy",
        "http://shop.example",
    ]);
    assert!(
        stderr(&wrong).contains("must begin with `https://`"),
        "{}",
        stderr(&wrong)
    );
}
