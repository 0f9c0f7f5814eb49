//! hyper-util's client without the layers that reqwest puts around the same client: for the calls of an API, which need none of
//! them. Nothing here follows a redirect, keeps a cookie or looks for a proxy, because hyper-util does none of that.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use hyper::body::{Body, Incoming};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_http::decompression::Decompression;
use tower_service::Service;

use super::failure::{BoxError, OutboundFailure};
use super::messages::{IncomingReply, OutgoingBody, OutgoingRequest, ReplyBody};

/// How often the peer of an HTTP/2 connection with open streams is asked whether it is still there.
pub(super) const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(15);
/// How long it may take to answer that.
pub(super) const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest header list of a reply over HTTP/2 (RFC 9113 section 6.5.2), about as much as is taken over HTTP/1.1.
pub(super) const MAX_HTTP2_HEADER_LIST_BYTES: u32 = 256 << 10;

/// How long a connection is kept without a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How often a silent peer is asked by TCP whether it is still there, and how often it may fail to answer.
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE_RETRIES: u32 = 3;
/// How long what was sent may stay without an acknowledgement.
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// The codings that are taken off replies.
const CODINGS: HeaderValue = HeaderValue::from_static("zstd,gzip,deflate,br");
/// Who asks.
pub(super) const AGENT: &str = concat!("openapi-mcp/", env!("CARGO_PKG_VERSION"));

/// The client.
#[derive(Debug, Clone)]
pub(super) struct DirectClient(Client<TimedConnector, OutgoingBody>);

impl DirectClient {
    /// A client that makes each connection, TLS included, in at most `connect_timeout`.
    pub(super) fn new(tls: ClientConfig, connect_timeout: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect_timeout));
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
        tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
        let connector = TimedConnector {
            https: HttpsConnector::from((tcp, tls)),
            timeout: connect_timeout,
        };
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .http2_keep_alive_interval(HTTP2_PING_INTERVAL)
            .http2_keep_alive_timeout(HTTP2_PING_TIMEOUT)
            .http2_max_header_list_size(MAX_HTTP2_HEADER_LIST_BYTES)
            .build(connector);
        Self(client)
    }

    /// Sends a request. Dropping the future ends it.
    pub(super) async fn send(&self, request: OutgoingRequest) -> Result<IncomingReply, OutboundFailure> {
        let uri = Uri::try_from(request.url.as_str()).map_err(OutboundFailure::of_request)?;
        let mut outgoing = Request::new(request.body.unwrap_or_default());
        *outgoing.method_mut() = request.method;
        *outgoing.uri_mut() = uri;
        let mut headers = request.headers;
        headers.entry(USER_AGENT).or_insert(const { HeaderValue::from_static(AGENT) });
        headers.entry(ACCEPT_ENCODING).or_insert(CODINGS);
        // hyper-util would take it apart and put it together again. Without TLS nothing but HTTP/1.1 is spoken.
        if request.url.scheme() == "http"
            && let Ok(host) = HeaderValue::from_str(request.url.authority())
        {
            headers.entry(HOST).or_insert(host);
        }
        *outgoing.headers_mut() = headers;
        let response = self.0.request(outgoing).await.map_err(OutboundFailure::of_client)?;
        if response.headers().contains_key(CONTENT_ENCODING) {
            return decompressed(response).await;
        }
        let (parts, body) = response.into_parts();
        Ok(IncomingReply {
            status: parts.status,
            headers: parts.headers,
            length: body.size_hint().exact(),
            body: ReplyBody::Plain(body),
        })
    }
}

/// A reply as it is before compression; one of a coding that is not known stays as it is.
async fn decompressed(response: Response<Incoming>) -> Result<IncomingReply, OutboundFailure> {
    let Ok(response) = Decompression::new(Received(Some(response))).call(Request::new(())).await;
    let (parts, body) = response.into_parts();
    Ok(IncomingReply {
        status: parts.status,
        headers: parts.headers,
        length: body.size_hint().exact(),
        body: ReplyBody::Compressed(Box::pin(body)),
    })
}

/// Answers with a response that came already, for the layer that takes its compression off.
struct Received(Option<Response<Incoming>>);

impl Service<Request<()>> for Received {
    type Response = Response<Incoming>;
    type Error = Infallible;
    type Future = ReceivedFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> ReceivedFuture {
        ReceivedFuture(self.0.take())
    }
}

/// Ready at once, and asked once.
struct ReceivedFuture(Option<Response<Incoming>>);

impl Future for ReceivedFuture {
    type Output = Result<Response<Incoming>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
    }
}

/// Makes connections within a limit of time that holds for the name, TCP and TLS together.
#[derive(Clone)]
struct TimedConnector {
    https: HttpsConnector<HttpConnector>,
    timeout: Duration,
}

/// A connection that does not tell its addresses, which hyper-util would put into each reply.
struct UpstreamConnection(MaybeHttpsStream<TokioIo<TcpStream>>);

impl Connection for UpstreamConnection {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        if self.0.connected().is_negotiated_h2() {
            connected.negotiated_h2()
        } else {
            connected
        }
    }
}

impl Read for UpstreamConnection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for UpstreamConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, pieces: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, pieces)
    }
}

impl Service<Uri> for TimedConnector {
    type Response = UpstreamConnection;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.timeout, self.https.call(uri));
        Box::pin(async move {
            let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
            connecting.await.unwrap_or_else(late).map(UpstreamConnection)
        })
    }
}
