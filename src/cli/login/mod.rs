//! `openapi-mcp login`: a person agrees once, in the browser or on another device, and calls from this
//! machine are made as that person, until `openapi-mcp logout`.

mod found;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::timeout;
use url::Url;

use self::found::find_logins;
use super::{ConfigFile, help, output};
use crate::config::settings::CommandSettings;
use crate::config::values::{UrlForm, plain_url};
use crate::config::variables::has_browser;
use crate::credentials::login::{Login, LogoutOutcome};
use crate::credentials::tokens::stored_token::{LoginFacts, StoredToken};
use crate::error::Failure;
use crate::outbound::is_loopback;
use crate::text::{one_line, truncate};
use crate::transport::login_callback::LoginCallback;

/// Time for which a login waits for the person.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(5);

#[derive(clap::Args)]
#[command(after_help = help::LOGIN_EXAMPLES)]
pub(crate) struct LoginCommand {
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// Sign in on any device, with a code that is shown here
    #[arg(long, conflicts_with = "callback")]
    device: bool,
    /// The address on this machine to which the browser comes back, if the server wants a fixed one
    /// [default: http://127.0.0.1:PORT/callback with a free port]
    #[arg(long, value_name = "URL", value_parser = read_callback)]
    callback: Option<CallbackAddress>,
    /// Show who is signed in
    #[arg(long, conflicts_with_all = ["callback", "device"])]
    status: bool,
    /// The security scheme, if there are several
    scheme: Option<String>,
}

/// Address that the browser comes back to.
#[derive(Clone)]
struct CallbackAddress {
    url: Url,
    /// As it was written: servers compare it to the letter.
    text: String,
}

/// A loopback address over http (RFC 8252 section 7.3).
fn read_callback(text: &str) -> Result<CallbackAddress, String> {
    let url = plain_url(text, UrlForm::Base);
    let is_local = |url: &Url| url.scheme() == "http" && is_loopback(url) && url.port() != Some(0);
    let text = text.to_owned();
    url.filter(is_local)
        .map(|url| CallbackAddress { url, text })
        .ok_or_else(|| {
            "it must be an http address of this machine, as in http://localhost:8765/cb".to_owned()
        })
}

pub(crate) async fn run(command: &LoginCommand) -> Result<ExitCode, Failure> {
    let scheme = command.scheme.as_deref();
    let found = find_logins(&command.settings, &command.config, scheme).await?;
    if command.status {
        return show_status(&found.logins);
    }
    let (label, login) = found.one()?;
    let signed_in = timeout(LOGIN_TIMEOUT, async {
        if command.device {
            by_device(login).await
        } else {
            by_browser(login, command.callback.as_ref()).await
        }
    });
    let signed_in = signed_in.await.unwrap_or_else(|_| {
        let minutes = LOGIN_TIMEOUT.as_secs() / 60;
        Err(LoginFailure::Refused(format!(
            "nobody signed in within {minutes} minutes"
        )))
    });
    match signed_in {
        Ok(facts) => {
            output::print_result(&format!(
                "Signed in to {label}{} with the scopes: {}\nThe refresh token is kept in {}.\n",
                describe_person(&facts),
                shown_scopes(&facts),
                login.store.path.display()
            ))?;
            if found.is_over_http {
                output::print_remark(
                    "warning: with `transport: http`, every client of the server calls the API as this person",
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(LoginFailure::Refused(why)) => {
            output::print_remark(&format!("error: the login to {label} failed: {why}"));
            Ok(ExitCode::FAILURE)
        }
        Err(LoginFailure::Command(failure)) => Err(failure),
    }
}

/// Reason for which nobody is signed in.
enum LoginFailure {
    /// The end of a sentence.
    Refused(String),
    /// The command itself failed.
    Command(Failure),
}

impl From<String> for LoginFailure {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl From<Failure> for LoginFailure {
    fn from(failure: Failure) -> Self {
        Self::Command(failure)
    }
}

async fn by_browser(
    login: &Login,
    callback: Option<&CallbackAddress>,
) -> Result<LoginFacts, LoginFailure> {
    let bound = LoginCallback::bind(callback.map(|address| &address.url)).await;
    let listener = bound.map_err(|error| {
        let address = callback.map_or("127.0.0.1", |address| &address.text);
        format!("nothing can listen at {address} ({error}); another program may, and --device needs no address")
    })?;
    let redirect = callback.map_or_else(|| listener.redirect.as_str(), |address| &address.text);
    let request = Arc::new(login.authorization_request(redirect).await?);
    // Nothing opens it: other users of this machine could read `state` among the arguments of that
    // program.
    output::print_result(&format!(
        "To sign in, open this address in a browser on this machine:\n\n{}\n\n",
        request.url
    ))?;
    if !has_browser() {
        output::print_remark(
            "note: a browser on another machine cannot come back to this one; --device has no need to",
        );
    }
    let awaited = Arc::clone(&request);
    match listener.wait(move |query| awaited.read_answer(query)).await {
        Some(Ok(code)) => Ok(login.redeem_code(&request, code).await?),
        Some(Err(why)) => Err(format!("the authorization server answered: {why}").into()),
        None => Err("the listener for the answer broke".to_owned().into()),
    }
}

async fn by_device(login: &Login) -> Result<LoginFacts, LoginFailure> {
    let device = login.device_authorization().await?;
    let whole = device.verification_uri_complete.as_deref();
    let with_code = whole.map_or_else(String::new, |url| format!("\nor open {}", shown(url)));
    output::print_result(&format!(
        "To sign in, open {} on any device and enter the code {}{with_code}\n",
        shown(&device.verification_uri),
        shown(&device.user_code)
    ))?;
    let lifetime = device.lifetime().unwrap_or(LOGIN_TIMEOUT);
    let redeemed = timeout(lifetime, login.redeem_device_code(&device)).await;
    Ok(redeemed.unwrap_or_else(|_| Err("the code was not entered in time".into()))?)
}

/// Shows who is signed in. No token is shown.
fn show_status(logins: &[(String, Arc<Login>)]) -> Result<ExitCode, Failure> {
    let mut is_complete = true;
    for (label, login) in logins {
        let stored = login.stored().map_err(Failure::setting)?;
        is_complete &= stored.is_some();
        let line = match stored {
            None => format!("{label}: nobody is signed in\n"),
            Some(token) => describe_login(label, &token),
        };
        output::print_result(&line)?;
    }
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn describe_login(label: &str, token: &StoredToken) -> String {
    let (person, scopes) = match &token.login {
        Some(facts) => (describe_person(facts), shown_scopes(facts)),
        None => (String::new(), "unknown".to_owned()),
    };
    let until = match token.expires() {
        None => "the access token has no end that is known".to_owned(),
        Some(at) if at <= SystemTime::now() => {
            "the access token has ended, and is renewed with the next call".to_owned()
        }
        Some(at) => format!(
            "the access token is valid until {}, and is renewed",
            httpdate::fmt_http_date(at)
        ),
    };
    format!("{label}: signed in{person}\n  scopes: {scopes}\n  {until}\n")
}

fn describe_person(facts: &LoginFacts) -> String {
    let name = facts.email.as_deref().or(facts.subject.as_deref());
    name.map(|name| format!(" as {}", shown(name)))
        .unwrap_or_default()
}

fn shown_scopes(facts: &LoginFacts) -> String {
    if facts.scopes.is_empty() {
        "those that the authorization server gives by default".to_owned()
    } else {
        shown(&facts.scopes)
    }
}

/// A text of the authorization server, in a line.
fn shown(text: &str) -> String {
    const MAX_BYTES: usize = 500;
    truncate(&one_line(text), MAX_BYTES)
}

#[derive(clap::Args)]
pub(crate) struct LogoutCommand {
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// The security scheme [default: all of them]
    scheme: Option<String>,
}

pub(crate) async fn log_out(command: &LogoutCommand) -> Result<ExitCode, Failure> {
    let scheme = command.scheme.as_deref();
    let found = find_logins(&command.settings, &command.config, scheme).await?;
    let mut code = ExitCode::SUCCESS;
    for (label, login) in found.logins {
        if !end_login(&label, &login).await? {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Ends a login. Returns false if the refresh token may still be valid.
async fn end_login(label: &str, login: &Login) -> Result<bool, Failure> {
    let (text, is_over) = match login.log_out().await.map_err(Failure::setting)? {
        LogoutOutcome::NobodySignedIn => (format!("{label}: nobody was signed in\n"), true),
        LogoutOutcome::Revoked => (
            format!("{label}: the refresh token is revoked and removed\n"),
            true,
        ),
        LogoutOutcome::Removed => (
            format!(
                "{label}: the refresh token is removed; the authorization server names no usable endpoint to revoke it, and it may still be valid\n"
            ),
            false,
        ),
        LogoutOutcome::NotRevoked(why) => {
            output::print_remark(&format!(
                "error: {label}: the refresh token could not be revoked, and may still be valid: {why}"
            ));
            (format!("{label}: the refresh token is removed\n"), false)
        }
    };
    output::print_result(&text)?;
    Ok(is_over)
}
