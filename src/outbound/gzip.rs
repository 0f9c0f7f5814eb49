//! Bodies that are coded as `gzip`, or as `x-gzip`, which is another name of it (RFC 9110 section
//! 8.4.1.3). reqwest decodes the first member of such a body and drops those behind it (RFC 1952
//! section 2.2).

use std::error::Error as StdError;
use std::io::{self, Write as _};

use bytes::{Buf as _, Bytes};
use flate2::write::GzDecoder;
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _, try_unfold};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use reqwest::{Body, Response};

/// Number of bytes that are decoded at once. They become at most about a thousand times as many.
const MAX_INPUT: usize = 2 << 10;
/// Approximate number of decoded bytes that are passed on at once.
const OUTPUT: usize = 32 << 10;
/// The first byte of a member.
const MEMBER: u8 = 0x1f;

/// The response with a decoded body, if its only coding is `gzip`.
pub(super) fn decode_gzip(mut response: Response) -> Response {
    let coding = response
        .headers()
        .get(CONTENT_ENCODING)
        .and_then(|value| value.to_str().ok());
    let coding = coding.unwrap_or_default().trim();
    if !coding.eq_ignore_ascii_case("gzip") && !coding.eq_ignore_ascii_case("x-gzip") {
        return response;
    }
    let mut decoded = http::Response::new(());
    *decoded.status_mut() = response.status();
    *decoded.version_mut() = response.version();
    *decoded.headers_mut() = std::mem::take(response.headers_mut());
    *decoded.extensions_mut() = std::mem::take(response.extensions_mut());
    decoded.headers_mut().remove(CONTENT_ENCODING);
    decoded.headers_mut().remove(CONTENT_LENGTH);
    let body = GzipBody {
        source: response.bytes_stream().boxed(),
        input: Bytes::new(),
        member: None,
        is_over: false,
    };
    let chunks = try_unfold(body, |mut body| async move {
        let chunk = body.next_chunk().await?;
        Ok::<_, Box<dyn StdError + Send + Sync>>(chunk.map(|chunk| (chunk, body)))
    });
    decoded.map(|()| Body::wrap_stream(chunks)).into()
}

/// A body that is decoded while it comes.
struct GzipBody {
    source: BoxStream<'static, reqwest::Result<Bytes>>,
    /// Received bytes that are not decoded.
    input: Bytes,
    /// The member that is being decoded; none at the beginning of the body.
    member: Option<GzDecoder<Vec<u8>>>,
    /// True if all members are decoded, and the following bytes are not gzip.
    is_over: bool,
}

impl GzipBody {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Box<dyn StdError + Send + Sync>> {
        let mut decoded = Vec::new();
        while decoded.len() < OUTPUT {
            if !self.input.is_empty() {
                self.decode(&mut decoded)?;
            } else if !decoded.is_empty() {
                break;
            } else if let Some(input) = self.source.try_next().await? {
                self.input = input;
            } else {
                self.finish(&mut decoded)?;
                break;
            }
        }
        Ok(Some(decoded)
            .filter(|decoded| !decoded.is_empty())
            .map(Bytes::from))
    }

    /// Decodes a little of the input.
    fn decode(&mut self, decoded: &mut Vec<u8>) -> io::Result<()> {
        if self.is_over {
            self.input.clear();
            return Ok(());
        }
        let some = self.input.get(..MAX_INPUT).unwrap_or(&self.input);
        let member = self
            .member
            .get_or_insert_with(|| GzDecoder::new(Vec::new()));
        let taken = member.write(some)?;
        if taken == 0 {
            self.finish(decoded)?;
            // gzip and curl ignore what follows the last member and is none.
            self.is_over = self.input.first() != Some(&MEMBER);
            return Ok(());
        }
        self.input.advance(taken);
        if self.input.is_empty() && member.header().is_some() {
            member.flush()?;
        }
        decoded.append(member.get_mut());
        Ok(())
    }

    /// Ends a member, whose length and checksum must be right.
    fn finish(&mut self, decoded: &mut Vec<u8>) -> io::Result<()> {
        if let Some(mut member) = self.member.take() {
            member.try_finish()?;
            decoded.append(member.get_mut());
        }
        Ok(())
    }
}
