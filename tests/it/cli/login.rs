//! `openapi-mcp login` and `logout` against a small authorization server, and the calls of who is
//! signed in. `tests/identity` has the same against one of npm.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use crate::support::upstream::Received;
use crate::support::{
    HttpServer, Session, SpecFile, Upstream, command, reply, stderr, stdout, text, wait,
};

/// What the authorization server does otherwise than a usual one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Quirk {
    #[default]
    None,
    /// Tokens come without a refresh token, and the metadata do not list its scope.
    NoRefreshToken,
    /// Refresh tokens are good for nothing.
    RefusesRefreshTokens,
    /// Tokens cannot be revoked.
    RefusesRevocation,
}

fn fields(request: &Received) -> Vec<(String, String)> {
    form_urlencoded::parse(&request.body).into_owned().collect()
}

fn field(request: &Received, name: &str) -> String {
    let found = fields(request).into_iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value).unwrap_or_default()
}

/// An authorization server that replaces refresh tokens, and an API that takes its newest access
/// token alone. Each call has to renew it.
fn authority(quirk: Quirk) -> Upstream {
    let (issued, polls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Upstream::start(Box::new(move |request| {
        let json = |status, body: Value| {
            reply(
                status,
                &["Content-Type: application/json"],
                body.to_string().as_bytes(),
            )
        };
        let own = format!("http://{}", request.header("host").unwrap());
        let newest = issued.load(SeqCst);
        let grant = || {
            let number = issued.fetch_add(1, SeqCst) + 1;
            let claims =
                BASE64_URL_SAFE_NO_PAD.encode(r#"{"sub":"ann","email":"ann@example.org"}"#);
            let refresh =
                (quirk != Quirk::NoRefreshToken).then(|| format!("refresh-token-{number}"));
            json!({"access_token": format!("access-token-{number}"), "token_type": "Bearer", "expires_in": 0, "refresh_token": refresh,
                "scope": "read offline_access", "id_token": format!("e30.{claims}.c2ln")})
        };
        match request.path() {
            "/.well-known/openid-configuration" => json(
                200,
                json!({"issuer": own, "authorization_endpoint": format!("{own}/authorize"), "token_endpoint": format!("{own}/token"),
                    "device_authorization_endpoint": format!("{own}/device"), "revocation_endpoint": format!("{own}/revoke"),
                    "scopes_supported": if quirk == Quirk::NoRefreshToken { json!(["read"]) } else { json!(["read", "offline_access"]) },
                    "authorization_response_iss_parameter_supported": true}),
            ),
            "/device" => json(
                200,
                json!({"device_code": "the-device-code", "user_code": "WDJB-MJHT", "verification_uri": format!("{own}/enter"), "expires_in": 60,
                    "interval": 1}),
            ),
            "/token" => match field(request, "grant_type").as_str() {
                "authorization_code" if field(request, "code") == "the-code" => json(200, grant()),
                "urn:ietf:params:oauth:grant-type:device_code"
                    if polls.fetch_add(1, SeqCst) == 0 =>
                {
                    json(400, json!({"error": "authorization_pending"}))
                }
                "urn:ietf:params:oauth:grant-type:device_code" => json(200, grant()),
                "refresh_token"
                    if field(request, "refresh_token") == format!("refresh-token-{newest}")
                        && quirk != Quirk::RefusesRefreshTokens =>
                {
                    json(200, grant())
                }
                _ => json(400, json!({"error": "invalid_grant"})),
            },
            "/revoke" if quirk == Quirk::RefusesRevocation => json(503, json!({})),
            "/revoke" => json(200, json!({})),
            _ if request.header("authorization")
                == Some(&format!("Bearer access-token-{newest}")) =>
            {
                json(200, json!({"user": "ann"}))
            }
            _ => json(401, json!({})),
        }
    }))
}

fn document(flows: &Value) -> String {
    let operation = |id: &str, scopes: Value| json!({"get": {"operationId": id, "security": [{"accounts": scopes}]}});
    json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"},
        "components": {"securitySchemes": {"accounts": {"type": "oauth2", "flows": flows}}},
        "paths": {"/me": operation("me", json!(["read"])), "/all": operation("all", json!(["write"]))}})
    .to_string()
}

struct Setup {
    authority: Upstream,
    folder: tempfile::TempDir,
    spec: SpecFile,
}

impl Setup {
    /// Settings with the client, the issuer and `more`.
    fn new(quirk: Quirk, more: &Value) -> Self {
        let flows = json!({"authorizationCode": {"authorizationUrl": "https://evil.example/authorize", "tokenUrl": "https://evil.example/token",
            "scopes": {}}});
        let authority = authority(quirk);
        let mut scheme = json!({"client_id": "reporting", "issuer": authority.url});
        scheme
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        Self::with(authority, &flows, &scheme, &json!({}))
    }

    fn with(authority: Upstream, flows: &Value, scheme: &Value, more: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = SpecFile::new(&document(flows));
        let mut config =
            json!({"spec": spec.path(), "base_url": authority.url, "auth": {"accounts": scheme}});
        config
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        std::fs::write(folder.path().join("crm.yaml"), config.to_string()).unwrap();
        Self {
            authority,
            folder,
            spec,
        }
    }

    fn command(&self, subcommand: &str, more: &[&str]) -> Command {
        let config = self.path("crm.yaml");
        let mut command = command(&[&[subcommand, "--config", &config], more].concat());
        command
            .env("HOME", self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"));
        command.env_remove("SSH_CONNECTION").env_remove("DISPLAY");
        command
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn run(&self, subcommand: &str, more: &[&str]) -> Output {
        self.command(subcommand, more).output().unwrap()
    }

    fn begin(&self, more: &[&str]) -> WaitingLogin {
        WaitingLogin::of(self.command("login", more))
    }

    /// Signs in, and returns what the command says.
    fn sign_in(&self) -> String {
        let login = self.begin(&[]);
        let answer = login.come_back(&[("code", "the-code")]);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let (code, said) = login.end();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    fn asked(&self, path: &str) -> Vec<Received> {
        self.authority
            .received()
            .into_iter()
            .filter(|request| request.path() == path)
            .collect()
    }
}

/// A login that waits for the browser.
struct WaitingLogin {
    child: Child,
    reader: BufReader<std::process::ChildStdout>,
    said: String,
    url: Url,
}

impl WaitingLogin {
    fn of(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let mut line = String::new();
            let length = reader.read_line(&mut line).unwrap();
            said += &line;
            if length == 0 {
                let mut error = String::new();
                child
                    .stderr
                    .take()
                    .unwrap()
                    .read_to_string(&mut error)
                    .unwrap();
                panic!("no address is shown: {said}{error}");
            }
            if let Ok(url) = Url::parse(line.trim()) {
                break url;
            }
        };
        Self {
            child,
            reader,
            said,
            url,
        }
    }

    fn parameter(&self, name: &str) -> String {
        let found = self.url.query_pairs().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    }

    /// Sends a request as a browser would, to the address that the authorization request names.
    fn send(&self, method: &str, target: &str, host: &str) -> String {
        let redirect = Url::parse(&self.parameter("redirect_uri")).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", redirect.port().unwrap())).unwrap();
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Brings an answer with the right state, of this issuer.
    fn come_back(&self, answer: &[(&str, &str)]) -> String {
        let mut redirect = Url::parse(&self.parameter("redirect_uri")).unwrap();
        let issuer = self.url.origin().ascii_serialization();
        redirect
            .query_pairs_mut()
            .append_pair("state", &self.parameter("state"))
            .extend_pairs(answer);
        if !answer.iter().any(|(name, _)| *name == "iss") {
            redirect.query_pairs_mut().append_pair("iss", &issuer);
        }
        let host = format!(
            "{}:{}",
            redirect.host_str().unwrap(),
            redirect.port().unwrap()
        );
        let target = format!("{}?{}", redirect.path(), redirect.query().unwrap());
        self.send("GET", &target, &host)
    }

    /// The exit code, and all that was said.
    fn end(mut self) -> (Option<i32>, String) {
        self.reader.read_to_string(&mut self.said).unwrap();
        let mut error = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut error)
            .unwrap();
        (wait(&mut self.child), self.said + &error)
    }
}

fn digest(text: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA256,
        text.as_bytes(),
    ))
}

#[test]
fn a_person_signs_in_once_and_calls_are_made_as_them_until_they_sign_out() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let before = setup.run("call", &["me"]);
    assert!(
        stdout(&before).contains("sign in: `openapi-mcp login accounts`"),
        "{}",
        stdout(&before)
    );

    let login = setup.begin(&[]);
    assert_eq!(login.url.path(), "/authorize");
    assert_eq!(
        login.url.origin().ascii_serialization(),
        setup.authority.url
    );
    for (name, expected) in [
        ("response_type", "code"),
        ("client_id", "reporting"),
        ("scope", "read write offline_access"),
        ("code_challenge_method", "S256"),
        ("prompt", "consent"),
    ] {
        assert_eq!(login.parameter(name), expected, "{name}");
    }
    let (challenge, redirect) = (
        login.parameter("code_challenge"),
        login.parameter("redirect_uri"),
    );
    assert!(
        redirect.starts_with("http://127.0.0.1:") && redirect.ends_with("/callback"),
        "{redirect}"
    );
    let answer = login.come_back(&[("code", "the-code")]);
    let lower = answer.to_ascii_lowercase();
    for expected in [
        "http/1.1 200 ",
        "cache-control: no-store",
        "content-security-policy: default-src 'none'",
        "content-type: text/plain",
    ] {
        assert!(lower.contains(expected), "{expected}: {answer}");
    }
    assert_eq!(answer.split_once("\r\n\r\n").unwrap().1.lines().count(), 1);
    let (code, said) = login.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("as ann@example.org"), "{said}");

    let asked = &setup.asked("/token")[0];
    assert_eq!(digest(&field(asked, "code_verifier")), challenge);
    let sent: Vec<(String, String)> = fields(asked)
        .into_iter()
        .filter(|(name, _)| name != "code_verifier")
        .collect();
    let expected = [
        ("grant_type", "authorization_code"),
        ("code", "the-code"),
        ("redirect_uri", &redirect),
        ("client_id", "reporting"),
    ];
    assert_eq!(
        sent,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );

    // The default store is found without a setting, and the refresh token is replaced with each
    // renewal.
    for renewals in 1..=2 {
        let output = setup.run("call", &["me"]);
        assert!(
            output.status.success(),
            "{}{}",
            stdout(&output),
            stderr(&output)
        );
        assert!(stdout(&output).contains("ann"), "{}", stdout(&output));
        assert_eq!(setup.asked("/token").len(), 1 + renewals);
    }
    let renewal = &setup.asked("/token")[1];
    assert_eq!(
        (field(renewal, "grant_type"), field(renewal, "scope")),
        ("refresh_token".into(), String::new())
    );
    let mut session = Session::start_with(
        &["serve", "--config", &setup.path("crm.yaml")],
        &[
            ("HOME", &setup.path("")),
            ("XDG_STATE_HOME", &setup.path("state")),
        ],
    );
    let result = session.call("me", &json!({}));
    assert_eq!(result["structuredContent"]["user"], "ann", "{result}");
    session.end();

    let status = setup.run("login", &["--status"]);
    let shown = stdout(&status);
    assert!(
        status.status.success() && shown.contains("signed in as ann@example.org"),
        "{shown}"
    );
    assert!(
        shown.contains("scopes: read offline_access") && !shown.contains("-token-"),
        "{shown}"
    );

    let newest = setup.asked("/token").len();
    let output = setup.run("logout", &[]);
    assert!(
        output.status.success() && stdout(&output).contains("revoked and removed"),
        "{}",
        stdout(&output)
    );
    let revoked = &setup.asked("/revoke")[0];
    let expected = [
        ("token", format!("refresh-token-{newest}")),
        ("token_type_hint", "refresh_token".into()),
        ("client_id", "reporting".into()),
    ];
    assert_eq!(
        fields(revoked),
        expected.map(|(name, value)| (name.to_owned(), value))
    );
    let (status, again) = (setup.run("login", &["--status"]), setup.run("logout", &[]));
    assert_eq!(status.status.code(), Some(1));
    assert!(
        stdout(&status).contains("nobody is signed in"),
        "{}",
        stdout(&status)
    );
    assert!(
        again.status.success() && stdout(&again).contains("nobody was signed in"),
        "{}",
        stdout(&again)
    );
    assert!(stdout(&setup.run("call", &["me"])).contains("openapi-mcp login"));
}

#[test]
fn p87_no_page_of_others_ends_a_login() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let login = setup.begin(&[]);
    let redirect = Url::parse(&login.parameter("redirect_uri")).unwrap();
    let (state, port) = (login.parameter("state"), redirect.port().unwrap());
    let host = format!("127.0.0.1:{port}");
    let good = format!(
        "/callback?code=the-code&state={state}&iss={}",
        setup.authority.url
    );
    for (method, target, host) in [
        ("GET", good.replace(&state, "guessed"), host.clone()),
        (
            "GET",
            good.replace(&format!("&state={state}"), ""),
            host.clone(),
        ),
        ("GET", format!("{good}&state={state}"), host.clone()),
        ("GET", format!("{good}&code=another"), host.clone()),
        ("GET", format!("{good}&error=access_denied"), host.clone()),
        ("GET", format!("/callback?state={state}"), host.clone()),
        ("GET", "/callback".into(), host.clone()),
        ("GET", good.replace("/callback", "/"), host.clone()),
        ("GET", good.replace("/callback", "/callback/"), host.clone()),
        ("GET", "/favicon.ico".into(), host.clone()),
        ("POST", good.clone(), host.clone()),
        ("HEAD", good.clone(), host.clone()),
        ("OPTIONS", good.clone(), host.clone()),
        ("GET", good.clone(), format!("localhost:{port}")),
        ("GET", good.clone(), format!("rebound.example:{port}")),
        ("GET", good.clone(), "127.0.0.1".into()),
    ] {
        let answer = login.send(method, &target, &host);
        assert!(
            answer.starts_with("HTTP/1.1 400 "),
            "{method} {target} {host}: {answer}"
        );
        assert!(
            answer
                .to_ascii_lowercase()
                .contains("cache-control: no-store"),
            "{answer}"
        );
    }
    assert!(setup.asked("/token").is_empty());
    assert!(
        login
            .come_back(&[("code", "the-code")])
            .starts_with("HTTP/1.1 200 ")
    );
    assert_eq!(login.end().0, Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn p87_no_other_program_gets_the_address_of_a_login() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let programs = setup.path("programs");
    std::fs::create_dir(&programs).unwrap();
    for name in [
        "xdg-open",
        "gio",
        "gnome-open",
        "kde-open",
        "open",
        "firefox",
    ] {
        let program = std::path::Path::new(&programs).join(name);
        std::fs::write(
            &program,
            "#!/bin/sh\necho \"$@\" >> \"$(dirname \"$0\")/given\"\n",
        )
        .unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let Some(mut command) =
        super::terminal::in_terminal(500, &format!("login --config '{}'", setup.path("crm.yaml")))
    else {
        return;
    };
    command.env(
        "PATH",
        format!("{programs}:{}", std::env::var("PATH").unwrap()),
    );
    command
        .env("HOME", setup.folder.path())
        .env("XDG_STATE_HOME", setup.path("state"));
    command.env("DISPLAY", ":99").env_remove("SSH_CONNECTION");
    let login = WaitingLogin::of(command);
    assert!(
        login
            .come_back(&[("code", "the-code")])
            .starts_with("HTTP/1.1 200 ")
    );
    let (code, said) = login.end();
    assert_eq!(code, Some(0), "{said}");
    let given = std::fs::read_to_string(format!("{programs}/given")).unwrap_or_default();
    assert_eq!(given, "");
}

#[test]
fn p87_a_folder_that_others_can_write_to_keeps_no_login() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let folder = setup.path("shared");
    std::fs::create_dir(&folder).unwrap();
    let store = format!("{folder}/tokens.json");
    for mode in [0o777, 0o1777, 0o720] {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        let output = setup.run("login", &[&format!("token_store: {store}")]);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{mode:o}: {}",
            stderr(&output)
        );
        let said = stderr(&output);
        assert!(
            said.contains(&folder) && said.contains("can be written by other users"),
            "{mode:o}: {said}"
        );
        assert!(!std::path::Path::new(&store).exists(), "{mode:o}");
    }
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let login = setup.begin(&[&format!("token_store: {store}")]);
    login.come_back(&[("code", "the-code")]);
    assert_eq!(login.end().0, Some(0));
}

#[test]
fn a_login_that_does_not_succeed_says_why_and_keeps_nothing() {
    for (quirk, answer, expected) in [
        (
            Quirk::None,
            [
                ("error", "access_denied"),
                ("error_description", "the person\u{1b}[31m declined"),
            ],
            "access_denied the person",
        ),
        (
            Quirk::None,
            [("code", "the-code"), ("iss", "https://evil.example")],
            "another issuer",
        ),
        (
            Quirk::None,
            [("code", "the-code"), ("iss", "")],
            "does not name its issuer",
        ),
        (
            Quirk::None,
            [("code", "another"), ("x", "")],
            "invalid_grant",
        ),
        (
            Quirk::NoRefreshToken,
            [("code", "the-code"), ("x", "")],
            "offline_access",
        ),
    ] {
        let setup = Setup::new(quirk, &json!({}));
        let login = setup.begin(&[]);
        assert!(login.come_back(&answer).starts_with("HTTP/1.1 200 "));
        let (code, said) = login.end();
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains(expected) && !said.contains('\u{1b}'),
            "{expected}: {said}"
        );
        assert_eq!(setup.run("login", &["--status"]).status.code(), Some(1));
    }
}

#[test]
fn a_person_signs_in_on_another_device_with_a_code() {
    let setup = Setup::new(Quirk::None, &json!({"scopes": "read"}));
    let output = setup.run("login", &["--device"]);
    let said = stdout(&output);
    assert!(output.status.success(), "{said}{}", stderr(&output));
    assert!(
        said.contains("/enter") && said.contains("WDJB-MJHT") && said.contains("ann@example.org"),
        "{said}"
    );
    assert!(!said.contains("the-device-code"), "{said}");
    let device = &setup.asked("/device")[0];
    let expected = [("scope", "read offline_access"), ("client_id", "reporting")];
    assert_eq!(
        fields(device),
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    let polls = setup.asked("/token");
    assert_eq!(polls.len(), 2);
    assert_eq!(field(&polls[1], "device_code"), "the-device-code");
    assert!(
        !stderr(&output).contains("authorization_pending"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&setup.run("call", &["me"])).contains("ann"));
}

#[test]
fn an_end_of_the_login_ends_in_the_advice_to_sign_in_again() {
    let setup = Setup::new(Quirk::RefusesRefreshTokens, &json!({}));
    setup.sign_in();
    let output = setup.run("call", &["me"]);
    assert!(
        stdout(&output).contains("sign in again: `openapi-mcp login accounts`"),
        "{}",
        stdout(&output)
    );
    assert!(
        !stdout(&output).contains("refresh-token") && !stderr(&output).contains("refresh-token")
    );
}

#[test]
fn a_server_that_runs_uses_the_login_that_comes_later() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let variables = [
        ("HOME", setup.path("")),
        ("XDG_STATE_HOME", setup.path("state")),
    ];
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let mut session =
        Session::start_with(&["serve", "--config", &setup.path("crm.yaml")], &variables);
    session.logged("nobody is signed in for `accounts`");
    let result = session.call("me", &json!({}));
    assert!(
        text(&result).contains("openapi-mcp login accounts"),
        "{result}"
    );
    assert!(!text(&result).contains("crm.yaml"), "{result}");
    setup.sign_in();
    assert_eq!(
        session.call("me", &json!({}))["structuredContent"]["user"],
        "ann"
    );
    setup.run("logout", &[]);
    let log = session.end();
    assert!(
        !log.contains("refresh-token") && !log.contains("access-token"),
        "{log}"
    );
}

#[test]
fn a_token_that_could_not_be_revoked_is_removed_and_reported() {
    let setup = Setup::new(Quirk::RefusesRevocation, &json!({}));
    setup.sign_in();
    let output = setup.run("logout", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("may still be valid")
            && !stderr(&output).contains("refresh-token"),
        "{}",
        stderr(&output)
    );
    assert_eq!(setup.run("login", &["--status"]).status.code(), Some(1));
}

#[test]
fn p47_a_document_does_not_decide_where_a_person_signs_in() {
    let flows = |origin: &str| json!({"authorizationCode": {"authorizationUrl": format!("{origin}/authorize"), "tokenUrl": format!("{origin}/token"), "scopes": {}}});
    let scheme = json!({"client_id": "reporting"});
    let setup = Setup::with(
        authority(Quirk::None),
        &flows("https://evil.example"),
        &scheme,
        &json!({}),
    );
    let output = setup.run("login", &[]);
    assert_eq!(output.status.code(), Some(2));
    for expected in [
        "authorization_url: https://evil.example/authorize",
        "token_url: https://evil.example/token",
        "auth.accounts",
    ] {
        assert!(
            stderr(&output).contains(expected),
            "{expected}: {}",
            stderr(&output)
        );
    }
    // On the API's own origin, it may.
    let setup = Setup::with(authority(Quirk::None), &flows(""), &scheme, &json!({}));
    setup.sign_in();
    assert!(stdout(&setup.run("call", &["me"])).contains("ann"));
    // What the operator names counts, with its query.
    let authority = authority(Quirk::None);
    let scheme = json!({"client_id": "reporting", "authorization_url": format!("{}/authorize?tenant=a", authority.url),
        "token_url": format!("{}/token", authority.url)});
    let setup = Setup::with(
        authority,
        &flows("https://evil.example"),
        &scheme,
        &json!({}),
    );
    let login = setup.begin(&[]);
    assert_eq!(
        (login.parameter("tenant"), login.parameter("scope")),
        ("a".into(), "read write".into())
    );
    assert!(
        login
            .come_back(&[("code", "the-code")])
            .starts_with("HTTP/1.1 200 ")
    );
    assert_eq!(login.end().0, Some(0));
}

#[test]
fn p47_a_login_counts_for_the_origin_of_the_api_alone() {
    let setup = Setup::new(Quirk::None, &json!({}));
    setup.sign_in();
    let other = Upstream::echo();
    for elsewhere in [
        ["--base-url", other.url.as_str()],
        [
            "--base-url",
            &setup.authority.url.replace("127.0.0.1", "localhost"),
        ],
    ] {
        let output = setup.run("call", &[&elsewhere[..], &["me"]].concat());
        assert!(
            stdout(&output).contains("nobody is signed in"),
            "{}",
            stdout(&output)
        );
    }
    assert!(other.received().is_empty());
}

#[test]
fn the_browser_comes_back_to_the_address_that_the_server_knows() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for callback in [
        format!("http://localhost:{port}/cb"),
        format!("http://127.0.0.1:{port}"),
    ] {
        let login = setup.begin(&["--callback", &callback]);
        assert_eq!(login.parameter("redirect_uri"), callback, "to the letter");
        assert!(
            login
                .come_back(&[("code", "the-code")])
                .starts_with("HTTP/1.1 200 ")
        );
        assert_eq!(login.end().0, Some(0));
        assert_eq!(
            field(setup.asked("/token").last().unwrap(), "redirect_uri"),
            callback
        );
    }
    for wrong in [
        "https://localhost:8765/cb",
        "http://192.0.2.1:8765/cb",
        "http://app.example/cb",
        "http://u@localhost:1/",
        "cb",
    ] {
        let output = setup.run("login", &["--callback", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(
            stderr(&output).contains("an http address of this machine"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn the_file_of_a_login_is_its_owners_alone_and_encrypted_with_a_state_key() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let said = setup.sign_in();
    let store = said
        .lines()
        .find_map(|line| line.strip_prefix("The refresh token is kept in "))
        .unwrap();
    let store = store.trim_end_matches('.').to_owned();
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&store), 0o600);
    assert_eq!(
        mode(
            std::path::Path::new(&store)
                .parent()
                .unwrap()
                .to_str()
                .unwrap()
        ),
        0o700
    );
    #[cfg(target_os = "linux")]
    assert_eq!(store, setup.path("state/openapi-mcp/tokens.json"));
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = setup.run("call", &["me"]);
    assert!(
        stdout(&output).contains("the token store of this server cannot be read"),
        "{}",
        stdout(&output)
    );
    assert!(stderr(&output).contains("chmod 600"), "{}", stderr(&output));
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o600)).unwrap();

    let key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let output = setup
        .command("call", &["--state-key-env", "STATE_KEY", "me"])
        .env("STATE_KEY", key)
        .output()
        .unwrap();
    assert!(
        stdout(&output).contains("ann"),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let kept = std::fs::read_to_string(&store).unwrap();
    assert!(
        kept.contains("sealed") && !kept.contains("refresh-token"),
        "{kept}"
    );
    let output = setup.run("call", &["me"]);
    assert!(
        stderr(&output).contains("--state-key-env"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_excludes_a_login_is_told() {
    let (url, secret) = ("https://login.example", json!({"env": "A_TOKEN"}));
    let scheme = json!({"client_id": "reporting", "issuer": url});
    let with = |key: &str, value: &Value| {
        let mut scheme = scheme.clone();
        scheme[key] = value.clone();
        scheme
    };
    let flows =
        json!({"authorizationCode": {"authorizationUrl": "/a", "tokenUrl": "/t", "scopes": {}}});
    let tenants =
        json!({"header": "X-Tenant", "entries": {"a": {"base_url": "https://a.example"}}});
    for (scheme, more, arguments, expected) in [
        (
            with("refresh_token", &secret),
            json!({}),
            vec![],
            "a refresh token is set for it",
        ),
        (
            with("env", &json!("A_TOKEN")),
            json!({}),
            vec![],
            "an access token is set for it",
        ),
        (
            json!({"issuer": url}),
            json!({}),
            vec![],
            "OPENAPI_MCP_AUTH_ACCOUNTS_CLIENT_ID",
        ),
        (
            json!({"scopes": "read"}),
            json!({"base_url": "http://api.example"}),
            vec![],
            "auth.accounts.client_id`, or OPENAPI_MCP_AUTH_ACCOUNTS_CLIENT_ID; and the document's own addresses",
        ),
        (
            json!({"client_id": "reporting", "issuer": "http://127.0.0.1:9"}),
            json!({}),
            vec![],
            "the metadata of the issuer `http://127.0.0.1:9/` cannot be read",
        ),
        (
            scheme.clone(),
            json!({"transport": "http"}),
            vec![],
            "`token_store`",
        ),
        (
            scheme.clone(),
            json!({"mock": true, "base_url": null}),
            vec![],
            "nothing to sign in to",
        ),
        (
            scheme.clone(),
            json!({}),
            vec!["other"],
            "`other` is not a security scheme",
        ),
        (
            json!({}),
            json!({"base_url": null, "auth": null, "tenants": tenants}),
            vec![],
            "a login is that of one person",
        ),
        (
            with("authorization_url", &json!("http://login.example/a")),
            json!({}),
            vec![],
            "`auth.accounts.authorization_url` is not an https URL",
        ),
        (
            with("issuer", &json!("http://login.example")),
            json!({}),
            vec![],
            "is neither https nor on this machine",
        ),
        (
            with("authorization_url", &json!("https://login.example/a#b")),
            json!({}),
            vec![],
            "without user and fragment",
        ),
    ] {
        let setup = Setup::with(authority(Quirk::None), &flows, &scheme, &json!({}));
        // A key without a value would be an error.
        let mut config: Value =
            serde_json::from_str(&std::fs::read_to_string(setup.path("crm.yaml")).unwrap())
                .unwrap();
        for (key, value) in more.as_object().unwrap() {
            config
                .as_object_mut()
                .unwrap()
                .insert(key.clone(), value.clone());
        }
        config
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        std::fs::write(setup.path("crm.yaml"), config.to_string()).unwrap();
        let output = setup
            .command("login", &arguments)
            .env("A_TOKEN", "a-token")
            .output()
            .unwrap();
        let code = if expected.contains("metadata") { 1 } else { 2 };
        assert_eq!(
            output.status.code(),
            Some(code),
            "{expected}: {}{}",
            stdout(&output),
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(expected),
            "{expected}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn install_says_when_a_login_is_needed() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let output = setup.run("install", &["--client", "cursor"]);
    let expected = format!(
        "openapi-mcp login --config {} accounts",
        setup.path("crm.yaml")
    );
    assert!(
        stderr(&output).contains(&expected),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let setup = Setup::new(Quirk::None, &json!({"refresh_token": {"env": "A_TOKEN"}}));
    let output = setup.run("install", &["--client", "cursor"]);
    assert!(
        !stderr(&output).contains("openapi-mcp login"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn of_several_apis_one_is_chosen_and_a_login_of_one_is_not_one_of_another() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let other = authority(Quirk::None);
    let api = |authority: &Upstream| {
        json!({"spec": setup.spec.path(), "base_url": authority.url,
            "auth": {"accounts": {"client_id": "reporting", "issuer": authority.url}}})
    };
    let config = json!({"apis": {"crm": api(&setup.authority), "bills": api(&other)}});
    std::fs::write(setup.path("crm.yaml"), config.to_string()).unwrap();
    let output = setup.run("login", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("`accounts` of the API `bills`")
            && stderr(&output).contains("--api"),
        "{}",
        stderr(&output)
    );
    let output = setup.run("login", &["--api", "crm", "--device"]);
    assert!(
        output.status.success(),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let status = setup.run("login", &["--status"]);
    assert_eq!(status.status.code(), Some(1));
    for expected in [
        "`accounts` of the API `crm`: signed in",
        "`accounts` of the API `bills`: nobody is signed in",
    ] {
        assert!(stdout(&status).contains(expected), "{}", stdout(&status));
    }
    assert!(stdout(&setup.run("call", &["crm_me"])).contains("ann"));
    assert!(stdout(&setup.run("call", &["bills_me"])).contains("nobody is signed in"));
}

#[test]
fn over_http_a_login_counts_only_in_a_store_that_is_named() {
    let setup = Setup::new(Quirk::None, &json!({}));
    let said = setup.sign_in();
    let store = said
        .lines()
        .find_map(|line| line.strip_prefix("The refresh token is kept in "))
        .unwrap();
    let config = setup.path("crm.yaml");
    let serve = |more: &[&str]| {
        let variables = [
            ("HOME", setup.path("")),
            ("XDG_STATE_HOME", setup.path("state")),
        ];
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        HttpServer::start_with(&[&["--config", &config], more].concat(), &variables)
    };
    let call = |server: &HttpServer| {
        server
            .send("POST", &[], &crate::support::call_message("me", "{}"))
            .1
    };
    let server = serve(&[]);
    assert!(
        call(&server).contains("needs a credential"),
        "{}",
        call(&server)
    );
    let server = serve(&[&format!("token_store: {}", store.trim_end_matches('.'))]);
    assert!(call(&server).contains("ann"), "{}", call(&server));
}

#[test]
fn a_client_with_a_secret_uses_the_login_if_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret").display().to_string();
    std::fs::write(&secret, "client-s3cret").unwrap();
    let setup = Setup::new(Quirk::None, &json!({"client_secret": {"file": secret}}));
    setup.run("call", &["me"]);
    assert_eq!(
        field(&setup.asked("/token")[0], "grant_type"),
        "client_credentials"
    );
    setup.sign_in();
    assert!(stdout(&setup.run("call", &["me"])).contains("ann"));
    let asked = setup.asked("/token");
    let last = asked.last().unwrap();
    assert_eq!(field(last, "grant_type"), "refresh_token");
    assert!(last.header("authorization").unwrap().starts_with("Basic "));
}
