//! A server over stdio does not listen.

use crate::support::{Session, listening_sockets, petstore};

#[test]
fn p53_over_stdio_no_port_is_opened() {
    let (_listener, _) = crate::support::listener();
    assert!(
        listening_sockets(std::process::id()) > 0,
        "a socket that listens is found"
    );
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &petstore(),
        "--base-url",
        "http://127.0.0.1:1",
    ]);
    assert!(!session.tools().is_empty());
    assert_eq!(listening_sockets(session.pid()), 0);
}
