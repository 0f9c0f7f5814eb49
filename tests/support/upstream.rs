//! APIs that tests put behind the server: real HTTP on a port of its own, recorded byte for byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came over the wire.
#[derive(Debug, Clone)]
pub struct Received {
    pub line: String,
    /// Header lines as they came, but with the name in lower case.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Received {
    /// The target of the request line.
    pub fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

type Reply = Box<dyn Fn(&Received) -> Vec<u8> + Send + Sync>;

/// A port of this machine that nothing else has, and its URL.
pub fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, url)
}

/// Serves every connection in a thread of its own, with its number, and gives the URL.
pub fn serve_connections(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> String {
    let (listener, url) = listener();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(number, stream));
        }
    });
    url
}

/// An upstream that records every request, byte for byte, and sends configured answers.
pub struct Upstream {
    pub url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Upstream {
    /// Answers everything with a small JSON object.
    pub fn echo() -> Self {
        Self::start(Box::new(|_| {
            reply(200, &["Content-Type: application/json"], b"{\"ok\":true}")
        }))
    }

    /// Answers every request of a connection with the bytes of `answer`; the connection ends after
    /// bytes without a length.
    pub fn start(answer: Reply) -> Self {
        Self::serve(move |stream, log| {
            let mut reader = BufReader::new(&stream);
            while let Some(request) = read_request(&mut reader) {
                log.lock().expect("unharmed").push(request.clone());
                let bytes = answer(&request);
                let mut writer = &stream;
                if writer.write_all(&bytes).is_err() || bytes.is_empty() {
                    break;
                }
                let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
                if !head.contains("content-length:") || head.contains("connection: close") {
                    break;
                }
            }
            let _ = stream.shutdown(std::net::Shutdown::Both);
        })
    }

    /// Makes an upstream whose `answer` writes to the connection once a request is read; the
    /// connection ends with it.
    pub fn raw(answer: impl Fn(&Received, &mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::serve(move |mut stream, log| {
            let Some(request) = read_request(&mut BufReader::new(&stream)) else {
                return;
            };
            log.lock().expect("unharmed").push(request.clone());
            answer(&request, &mut stream);
        })
    }

    fn serve(serve: impl Fn(TcpStream, &Mutex<Vec<Received>>) + Send + Sync + 'static) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        let url = serve_connections(move |_, stream| serve(stream, &log));
        Self { url, received }
    }

    /// Host and port.
    pub fn host(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().expect("unharmed").clone()
    }

    /// All requests since the last time.
    pub fn take_all(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received.lock().expect("unharmed"))
    }

    /// The only request since the last time; fails if there is none or another one.
    pub fn take_one(&self) -> Received {
        let mut all = self.take_all();
        assert_eq!(all.len(), 1, "exactly one request was to come: {all:?}");
        all.remove(0)
    }
}

pub fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<Received> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end_matches(['\r', '\n']);
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').expect("a header line");
        headers.push(format!("{}: {}", name.to_ascii_lowercase(), value.trim()));
    }
    let length = headers
        .iter()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |text| text.parse().expect("a length"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received {
        line: line.trim_end().to_owned(),
        headers,
        body,
    })
}

/// The bytes of a reply with a length.
pub fn reply(status: u16, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    for header in headers {
        bytes.extend_from_slice(format!("{header}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}
