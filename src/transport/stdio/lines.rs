//! Lines of an input, in bounded memory.

use std::io;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest line that is kept: 16 MiB, as much as clients take.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Number of bytes that are read at once: the capacity of a pipe.
const PIECE: usize = 64 << 10;

/// A line, without its end.
#[derive(PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it.
    Whole(BytesMut),
    /// Nothing of it, because it has more than so many bytes.
    TooLong(usize),
}

/// Reads lines.
pub(crate) struct Lines<R> {
    inner: R,
    max_bytes: usize,
    buffer: BytesMut,
    /// Number of bytes of the buffer that are known to contain no end of a line.
    searched: usize,
    /// True within a line that is too long already.
    is_skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            max_bytes: MAX_LINE_BYTES,
            buffer: BytesMut::new(),
            searched: 0,
            is_skipping: false,
        }
    }

    /// Reads the next line; the text after the last end of a line is one too. Dropping the future
    /// loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let unseen = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', unseen) {
                let line = self.buffer.split_to(self.searched + at);
                self.buffer.advance(1);
                return Ok(Some(self.ended(line)));
            }
            self.searched = self.buffer.len();
            if self.is_skipping || self.buffer.len() > self.max_bytes {
                self.is_skipping = true;
                self.searched = 0;
                self.buffer = BytesMut::new();
            }
            self.buffer.reserve(PIECE);
            if self.inner.read_buf(&mut self.buffer).await? == 0 {
                if self.buffer.is_empty() && !self.is_skipping {
                    return Ok(None);
                }
                let rest = std::mem::take(&mut self.buffer);
                return Ok(Some(self.ended(rest)));
            }
        }
    }

    fn ended(&mut self, line: BytesMut) -> Line {
        self.searched = 0;
        if std::mem::take(&mut self.is_skipping) {
            Line::TooLong(self.max_bytes)
        } else {
            Line::Whole(line)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str], max_bytes: usize) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut builder = tokio_test_reader(pieces);
        builder.max_bytes = max_bytes;
        let mut found = Vec::new();
        while let Some(line) = runtime.block_on(builder.next()).unwrap() {
            found.push(match line {
                Line::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                Line::TooLong(max_bytes) => format!("more than {max_bytes}"),
            });
        }
        found
    }

    /// A reader that gives one piece at a time.
    fn tokio_test_reader(pieces: &[&str]) -> Lines<impl AsyncRead + Unpin + use<>> {
        struct Pieces(std::collections::VecDeque<Vec<u8>>);
        impl AsyncRead for Pieces {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
                buffer: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                if let Some(piece) = self.0.pop_front() {
                    buffer.put_slice(&piece);
                }
                std::task::Poll::Ready(Ok(()))
            }
        }
        Lines::new(Pieces(
            pieces
                .iter()
                .map(|piece| piece.as_bytes().to_vec())
                .collect(),
        ))
    }

    #[test]
    fn lines_come_whole_however_they_were_cut() {
        assert_eq!(
            lines(&["a\nb", "c\n\nd\ne", "f"], 100),
            ["a", "bc", "", "d", "ef"]
        );
        assert_eq!(lines(&["one\n"], 100), ["one"]);
        assert_eq!(lines(&[], 100), Vec::<String>::new());
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_counts() {
        let long = "x".repeat(600);
        let pieces = ["ok\nhead", &long, &long, "tail\nnext\n"];
        assert_eq!(lines(&pieces, 1000), ["ok", "more than 1000", "next"]);
        assert_eq!(
            lines(&["head", &long, &long], 1000),
            ["more than 1000"],
            "a last line without an end may be too long as well"
        );
    }
}
