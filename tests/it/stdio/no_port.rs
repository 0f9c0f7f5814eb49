//! A server over stdio does not listen.

use crate::support::{Session, petstore};

/// The inodes of the sockets that listen for TCP on this machine (`/proc/net/tcp`: the state `0A` is LISTEN).
fn listening() -> Vec<String> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| table.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.split_whitespace().nth(3) == Some("0A"))
        .filter_map(|line| line.split_whitespace().nth(9).map(str::to_owned))
        .collect()
}

/// The inodes of the sockets that a process has.
fn sockets(pid: u32) -> Vec<String> {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect()
}

#[test]
fn p53_over_stdio_no_port_is_opened() {
    let (_listener, _) = crate::support::listener();
    let listening_of = |pid: u32| {
        let all = listening();
        sockets(pid).iter().filter(|inode| all.contains(inode)).count()
    };
    assert!(listening_of(std::process::id()) > 0, "a socket that listens is found");
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--base-url", "http://127.0.0.1:1"]);
    assert!(!session.tools().is_empty());
    assert_eq!(listening_of(session.pid()), 0);
}
