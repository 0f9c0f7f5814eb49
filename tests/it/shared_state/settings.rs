//! Settings of `--shared-state`, and the end of a start that Redis refuses.

use super::{KEY, stdio_replica};
use crate::support::{Redis, Session, command, petstore, stderr};

fn refused(args: &[&str], variables: &[(&str, &str)]) -> String {
    let spec = petstore();
    let args = [&["serve", "--spec", &spec, "--mock"], args].concat();
    let output = command(&args)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    said
}

#[test]
fn what_is_wrong_with_the_settings_is_told_without_their_secrets() {
    let short = ("STATE_KEY", "hunter2");
    for (args, variables, expected) in [
        (
            &["--shared-state", "redis://h"][..],
            &[][..],
            "openssl rand -hex 32",
        ),
        (
            &[
                "--shared-state",
                "redis://:hunter2@h",
                "--state-key-env",
                KEY.0,
            ],
            &[KEY],
            "--shared-state-password-env",
        ),
        (
            &["--shared-state", "http://h", "--state-key-env", KEY.0],
            &[KEY],
            "redis://",
        ),
        (
            &["--shared-state", "redis://h", "--state-key-env", KEY.0],
            &[short],
            "32 bytes",
        ),
        (
            &["--shared-state", "redis://h", "--state-key-env", KEY.0],
            &[],
            "`STATE_KEY` is not set",
        ),
        (
            &[
                "--shared-state",
                "redis://h",
                "--state-key-env",
                KEY.0,
                "--state-key-file",
                "x",
            ],
            &[KEY],
            "exclude each other",
        ),
        (
            &[
                "--shared-state",
                "redis://h",
                "--state-key-env",
                KEY.0,
                "shared_state_timeout: 0",
            ],
            &[KEY],
            "`shared_state_timeout` must be between 0.001 and 10 seconds",
        ),
        (&["shared_state_timeout: 1"], &[], "needs --shared-state"),
    ] {
        let said = refused(args, variables);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn a_refused_password_ends_the_start_and_the_right_one_is_used() {
    let Some(redis) = Redis::start_with(&["--requirepass", "the-right-password"]) else {
        return;
    };
    let url = redis.url();
    let sharing = ["--shared-state", &url, "--state-key-env", KEY.0];
    let said = refused(&sharing, &[KEY]);
    assert!(
        said.contains("refuses the password or user, or wants one"),
        "{said}"
    );
    let named = [&sharing[..], &["--shared-state-password-env", "PASSWORD"]].concat();
    let said = refused(&named, &[KEY, ("PASSWORD", "hunter2")]);
    assert!(said.contains("refuses the password"), "{said}");

    let spec = petstore();
    let args = [&["serve", "--spec", &spec, "--mock"], &named[..]].concat();
    let mut session = Session::start_with(&args, &[KEY, ("PASSWORD", "the-right-password")]);
    session.logged("shared state at redis://127.0.0.1");
    assert!(!session.end().contains("the-right-password"));
}

#[test]
fn a_server_that_is_not_there_or_may_drop_tokens_is_a_warning() {
    let spec = petstore();
    let (listener, url) = crate::support::listener();
    drop(listener);
    let url = url.replace("http://", "redis://");
    let args = [
        "serve",
        "--spec",
        &spec,
        "--mock",
        "--shared-state",
        &url,
        "--state-key-env",
        KEY.0,
    ];
    Session::start_with(&args, &[KEY]).logged("cannot be used yet");

    let Some(redis) =
        Redis::start_with(&["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"])
    else {
        return;
    };
    stdio_replica(&redis, &["--spec", &spec, "--mock"], &[]).logged("allkeys-lru");
}
