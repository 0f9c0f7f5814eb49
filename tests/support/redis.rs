//! Debian's `redis-server` on a port of its own, or another server that `OPENAPI_MCP_REDIS_SERVER`
//! names.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::TIMEOUT;

/// A Redis server that ends with this value. Nothing is written to a disk.
pub struct Redis {
    child: Child,
    pub port: u16,
    pub tls_port: u16,
    options: Vec<String>,
}

impl Redis {
    /// Starts Redis; `None` if it is not installed, which is printed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts Redis with options, in which `TLS_PORT` is replaced by a second port.
    #[expect(clippy::print_stdout, reason = "a test that does nothing says why")]
    pub fn start_with(options: &[&str]) -> Option<Self> {
        // Another process may take the port between finding and using it.
        for _ in 0..5 {
            let listeners =
                [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("a port"));
            let [port, tls_port] =
                listeners.map(|listener| listener.local_addr().expect("an address").port());
            let options = options
                .iter()
                .map(|option| option.replace("TLS_PORT", &tls_port.to_string()));
            let options: Vec<String> = options.collect();
            let Ok(child) = spawn(port, &options) else {
                println!("skipped: redis-server is not installed (Debian package redis-server)");
                return None;
            };
            let mut redis = Self {
                child,
                port,
                tls_port,
                options,
            };
            if redis.listens() {
                return Some(redis);
            }
        }
        panic!("redis-server does not start");
    }

    fn listens(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < TIMEOUT {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return self.child.try_wait().is_ok_and(|ended| ended.is_none());
            }
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        false
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A connection without a password.
    pub fn connection(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("a URL");
        client.get_connection().expect("connected")
    }

    /// Runs a command, and ignores the answer.
    pub fn run(&self, words: &[&str]) {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command
            .query::<redis::Value>(&mut self.connection())
            .expect("done");
    }

    pub fn keys(&self) -> Vec<String> {
        redis::cmd("KEYS")
            .arg("*")
            .query(&mut self.connection())
            .expect("keys")
    }

    /// Every key and every value, as bytes.
    pub fn everything(&self) -> Vec<u8> {
        let mut connection = self.connection();
        let mut all = Vec::new();
        for key in self.keys() {
            all.extend(key.as_bytes());
            all.push(b'\n');
            let kind: String = redis::cmd("TYPE")
                .arg(&key)
                .query(&mut connection)
                .expect("a type");
            let command = match kind.as_str() {
                "hash" => "HGETALL",
                "string" => "GET",
                // It has ended meanwhile.
                "none" => continue,
                other => panic!("{key} is a {other}"),
            };
            let value: redis::Value = redis::cmd(command)
                .arg(&key)
                .query(&mut connection)
                .expect("a value");
            flatten(&value, &mut all);
        }
        all
    }

    /// Stops or goes on, as a server that hangs.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(status.expect("kill runs").success());
    }

    /// Ends it at once; what it held is lost.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, empty, where it was.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.port, &self.options).expect("started");
        assert!(self.listens(), "it does not listen again");
    }
}

fn spawn(port: u16, options: &[String]) -> std::io::Result<Child> {
    let server = std::env::var_os("OPENAPI_MCP_REDIS_SERVER");
    Command::new(server.unwrap_or_else(|| "redis-server".into()))
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ])
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

fn flatten(value: &redis::Value, all: &mut Vec<u8>) {
    match value {
        redis::Value::BulkString(bytes) => all.extend(bytes),
        redis::Value::Array(values) => values.iter().for_each(|value| flatten(value, all)),
        other => all.extend(format!("{other:?}").bytes()),
    }
    all.push(b'\n');
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
