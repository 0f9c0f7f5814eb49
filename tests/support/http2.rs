//! An API that speaks only HTTP/2 (RFC 9113), frame by frame, so that it can misbehave.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::{ServerConnection, StreamOwned};

use super::certificates::Authority;
use super::upstream::serve_connections;

/// Treatment of a request.
#[derive(Clone, Copy)]
pub enum Http2Answer {
    /// `{"ok":true}`.
    Ok,
    /// `RST_STREAM` with `REFUSED_STREAM`.
    Refuse,
    /// GOAWAY that says that no stream was processed; the connection ends.
    GoAway,
    /// `{"ok":true}`, and a GOAWAY that says that it was the last one; what comes after it is read
    /// and not processed.
    Last,
    /// `RST_STREAM` with `INTERNAL_ERROR`, of a request that may have been processed.
    Kill,
    /// Nothing.
    Silence,
}

pub struct Http2Upstream {
    pub url: String,
    requests: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

impl Http2Upstream {
    /// On `localhost`, with a certificate of `authority`; at most `streams` requests at a time on a
    /// connection. `answer` is asked with the number of each request, from 1.
    pub fn start(
        authority: &Authority,
        streams: u32,
        answer: impl Fn(usize) -> Http2Answer + Send + Sync + 'static,
    ) -> Self {
        let mut config = authority.server_config();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let config = Arc::new(config);
        let requests = Arc::new(AtomicUsize::new(0));
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, connected) = (Arc::clone(&requests), Arc::clone(&connections));
        let url = serve_connections(move |_, stream| {
            connected.fetch_add(1, Ordering::SeqCst);
            let tls = StreamOwned::new(
                ServerConnection::new(Arc::clone(&config)).expect("made"),
                stream,
            );
            let _ = serve(tls, streams, || {
                answer(counted.fetch_add(1, Ordering::SeqCst) + 1)
            });
        });
        Self {
            url: url.replace("http://127.0.0.1", "https://localhost"),
            requests,
            connections,
        }
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn serve(
    mut tls: impl Read + Write,
    streams: u32,
    mut answer: impl FnMut() -> Http2Answer,
) -> io::Result<()> {
    let mut preface = [0; 24];
    tls.read_exact(&mut preface)?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    // SETTINGS_MAX_CONCURRENT_STREAMS is 3.
    let settings = [&[0, 3][..], &streams.to_be_bytes()].concat();
    tls.write_all(&frame(SETTINGS, 0, 0, &settings))?;
    let mut is_over = false;
    loop {
        let mut head = [0; 9];
        tls.read_exact(&mut head)?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let stream = u32::from_be_bytes(stream);
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        tls.read_exact(&mut payload)?;
        match kind {
            SETTINGS if flags & ACK == 0 => tls.write_all(&frame(SETTINGS, ACK, 0, &[]))?,
            PING if flags & ACK == 0 => tls.write_all(&frame(PING, ACK, 0, &payload))?,
            HEADERS if is_over => {}
            HEADERS => match answer() {
                kind @ (Http2Answer::Ok | Http2Answer::Last) => {
                    // HPACK (RFC 7541): `:status 200` is entry 8; `content-type` is entry 31, here
                    // with a plain value.
                    let headers = [&[0x88, 0x0f, 0x10, 16][..], b"application/json"].concat();
                    tls.write_all(&frame(HEADERS, END_HEADERS, stream, &headers))?;
                    tls.write_all(&frame(DATA, END_STREAM, stream, b"{\"ok\":true}"))?;
                    is_over = matches!(kind, Http2Answer::Last);
                    if is_over {
                        tls.write_all(&frame(
                            GOAWAY,
                            0,
                            0,
                            &[stream.to_be_bytes(), [0; 4]].concat(),
                        ))?;
                    }
                }
                Http2Answer::Refuse => {
                    tls.write_all(&frame(RST_STREAM, 0, stream, &7_u32.to_be_bytes()))?;
                }
                Http2Answer::Kill => {
                    tls.write_all(&frame(RST_STREAM, 0, stream, &2_u32.to_be_bytes()))?;
                }
                Http2Answer::GoAway => {
                    tls.write_all(&frame(GOAWAY, 0, 0, &[0; 8]))?;
                    tls.flush()?;
                    // Bytes that are left unread would reset the connection, and a reset can
                    // overtake the frame.
                    return io::copy(&mut tls, &mut io::sink()).map(drop);
                }
                Http2Answer::Silence => {}
            },
            _ => {}
        }
        tls.flush()?;
    }
}
