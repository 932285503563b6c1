//! Limits the memory of a reply before the driver sees it: a too long value arrives as nil, its
//! bytes are dropped on arrival. Parses only the framing of RESP2 and RESP3.
//!
//! Commands read sizes first; this filter covers changes between two commands, and names
//! returned by SCAN.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::limits::{REPLY_BYTES_MAX, REPLY_ELEMENTS_MAX, REPLY_LINE_BYTES_MAX, VALUE_BYTES_MAX};

/// Bytes read from the socket at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Longest header of a string or an aggregate: a type byte, a 64-bit number, CR LF.
const HEADER_BYTES_MAX: usize = 24;
const NIL: &[u8] = b"$-1\r\n";

/// A stream whose incoming bytes pass through a [`ReplyFilter`].
pub(super) struct FilteredStream<S> {
    inner: S,
    filter: ReplyFilter,
    chunk: Box<[u8]>,
    passed: Vec<u8>,
    /// Bytes of `passed` that the driver has taken.
    taken: usize,
}

impl<S> FilteredStream<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            filter: ReplyFilter::default(),
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
            passed: Vec::with_capacity(CHUNK_BYTES),
            taken: 0,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FilteredStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.taken == this.passed.len() {
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.passed.clear();
            this.taken = 0;
            this.filter.feed(chunk.filled(), &mut this.passed)?;
        }
        let rest = &this.passed[this.taken..];
        let chunk = &rest[..rest.len().min(out.remaining())];
        out.put_slice(chunk);
        this.taken += chunk.len();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FilteredStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

enum State {
    /// At the type byte of an element.
    Start,
    /// In the header of a string or an aggregate, which is held back until it is complete.
    Header,
    /// In a single-line element, after this many bytes.
    Line(usize),
    /// In a string: remaining bytes, including CR LF.
    Payload { left: u64, pass: bool },
}

/// Parses the framing of a stream of replies, for any sizes of its chunks.
struct ReplyFilter {
    state: State,
    header: Vec<u8>,
    /// Remaining elements of the current reply.
    elements: u64,
    /// Bytes of strings passed in the current reply.
    bytes: u64,
}

impl Default for ReplyFilter {
    fn default() -> Self {
        Self {
            state: State::Start,
            header: Vec::with_capacity(HEADER_BYTES_MAX),
            elements: 1,
            bytes: 0,
        }
    }
}

impl ReplyFilter {
    fn feed(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while let Some(first) = input.first() {
            match self.state {
                State::Start => {
                    self.header.clear();
                    self.state = match first {
                        b'$' | b'!' | b'=' | b'*' | b'%' | b'~' | b'>' | b'|' => State::Header,
                        _ => State::Line(0),
                    };
                }
                State::Header => {
                    let end = input.iter().position(|byte| *byte == b'\n');
                    let (part, rest) = input.split_at(end.map_or(input.len(), |at| at + 1));
                    if self.header.len() + part.len() > HEADER_BYTES_MAX {
                        return Err(refused("a header that is not a number"));
                    }
                    self.header.extend_from_slice(part);
                    input = rest;
                    if end.is_some() {
                        self.header_done(out)?;
                    }
                }
                State::Line(seen) => {
                    let end = input.iter().position(|byte| *byte == b'\n');
                    let (part, rest) = input.split_at(end.map_or(input.len(), |at| at + 1));
                    let seen = seen + part.len();
                    if seen > REPLY_LINE_BYTES_MAX {
                        return Err(refused(&format!(
                            "a line of more than {REPLY_LINE_BYTES_MAX} bytes"
                        )));
                    }
                    out.extend_from_slice(part);
                    input = rest;
                    self.state = State::Line(seen);
                    if end.is_some() {
                        self.element_done();
                    }
                }
                State::Payload { left, pass } => {
                    let take = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    let (part, rest) = input.split_at(take);
                    if pass {
                        out.extend_from_slice(part);
                    }
                    input = rest;
                    let left = left - take as u64;
                    self.state = State::Payload { left, pass };
                    if left == 0 {
                        self.element_done();
                    }
                }
            }
        }
        Ok(())
    }

    fn header_done(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let number = std::str::from_utf8(&self.header[1..]).ok();
        let number: i64 = number
            .and_then(|text| text.trim_end().parse().ok())
            .ok_or_else(|| refused("a header that is not a number"))?;
        // Nil, in both forms of RESP2.
        let Ok(length) = u64::try_from(number) else {
            out.extend_from_slice(&self.header);
            self.element_done();
            return Ok(());
        };
        match self.header[0] {
            b'$' | b'!' | b'=' => {
                let pass = length <= VALUE_BYTES_MAX as u64 && self.bytes + length <= REPLY_BYTES_MAX;
                if pass {
                    self.bytes += length;
                    out.extend_from_slice(&self.header);
                } else {
                    out.extend_from_slice(NIL);
                }
                self.state = State::Payload {
                    left: length.saturating_add(2),
                    pass,
                };
            }
            kind => {
                // Maps have pairs; attributes precede their element.
                let added = match kind {
                    b'%' => length.saturating_mul(2),
                    b'|' => length.saturating_mul(2).saturating_add(1),
                    _ => length,
                };
                self.elements = self.elements.saturating_add(added);
                if self.elements > REPLY_ELEMENTS_MAX {
                    return Err(refused(&format!(
                        "{length} elements, and at most {REPLY_ELEMENTS_MAX} are read"
                    )));
                }
                out.extend_from_slice(&self.header);
                self.element_done();
            }
        }
        Ok(())
    }

    fn element_done(&mut self) {
        self.state = State::Start;
        self.elements -= 1;
        if self.elements == 0 {
            self.elements = 1;
            self.bytes = 0;
        }
    }
}

/// Beginning of this filter's errors; the driver forwards only their text.
pub(super) const UNREADABLE: &str = "unreadable reply";

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{UNREADABLE}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output if `input` arrives in chunks of `size` bytes.
    fn filtered(input: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let (mut filter, mut out) = (ReplyFilter::default(), Vec::new());
        for piece in input.chunks(size) {
            filter.feed(piece, &mut out)?;
        }
        Ok(out)
    }

    fn bulk(length: usize) -> Vec<u8> {
        [format!("${length}\r\n").as_bytes(), &vec![b'x'; length], b"\r\n"].concat()
    }

    #[test]
    fn replies_within_the_limits_pass_unchanged() {
        // Every kind of element, split at every position.
        let reply = b"+OK\r\n:12\r\n$3\r\na\nb\r\n$-1\r\n*-1\r\n*2\r\n*1\r\n$0\r\n\r\n-ERR x\r\n%1\r\n+k\r\n#t\r\n_\r\n,1.5\r\n\
            >2\r\n+message\r\n=5\r\ntxt:a\r\n|1\r\n+ttl\r\n:1\r\n:7\r\n+PONG\r\n";
        for size in 1..reply.len() {
            assert_eq!(filtered(reply, size).unwrap(), reply, "{size}");
        }
        let long = bulk(VALUE_BYTES_MAX);
        assert_eq!(filtered(&long, 1000).unwrap(), long);
    }

    #[test]
    fn a_value_over_the_limit_becomes_nil() {
        // Alone, in an array, and with a readable successor.
        let long = bulk(VALUE_BYTES_MAX + 1);
        let reply = [b"*2\r\n$4\r\nname\r\n", long.as_slice(), b"+PONG\r\n"].concat();
        for size in [1, 7, 4096, reply.len()] {
            assert_eq!(
                filtered(&reply, size).unwrap(),
                b"*2\r\n$4\r\nname\r\n$-1\r\n+PONG\r\n"
            );
        }
    }

    #[test]
    fn each_reply_has_its_own_byte_limit() {
        // Values beyond the limit are nil; the next reply has a new limit.
        let count = usize::try_from(REPLY_BYTES_MAX).unwrap() / VALUE_BYTES_MAX + 1;
        let value = bulk(VALUE_BYTES_MAX);
        let reply = [format!("*{count}\r\n").into_bytes(), value.repeat(count)].concat();
        let passed = filtered(&[reply, value.clone()].concat(), 5000).unwrap();
        assert!(passed.ends_with(&[NIL, &value].concat()));
        assert!(passed.len() < (count - 1) * (VALUE_BYTES_MAX + 16) + value.len() + 16);
    }

    #[tokio::test]
    async fn a_real_reply_keeps_its_order_around_a_long_value() {
        // The driver matches replies to requests by order only.
        use crate::redis::connect::{self, Address};
        let redis = testkit::Throwaway::redis(Default::default()).await.unwrap();
        let server = Address::Tcp {
            host: "127.0.0.1".to_owned(),
            port: redis.port(),
            tls: None,
        };
        let login = ::redis::RedisConnectionInfo::default();
        let connection = connect::connect(&server, &login, ::redis::AsyncConnectionConfig::new())
            .await
            .unwrap();
        let mut pipeline = ::redis::pipe();
        pipeline.cmd("SETRANGE").arg("long").arg(10_000_000).arg("x");
        pipeline.cmd("MGET").arg("long").arg("none").arg("long");
        pipeline.cmd("PING");
        let answers: Vec<::redis::Value> = pipeline
            .query_async(&mut connection.requests.clone())
            .await
            .unwrap();
        let nil = ::redis::Value::Nil;
        assert_eq!(
            answers[1..],
            [
                ::redis::Value::Array(vec![nil.clone(), nil.clone(), nil]),
                ::redis::Value::SimpleString("PONG".to_owned())
            ]
        );
    }

    #[test]
    fn too_many_elements_end_the_connection() {
        // A count that only a change during the read explains; and a header that is not a
        // number.
        for reply in [
            "*20000000\r\n",
            "%60000\r\n",
            "$?\r\n",
            "$99999999999999999999999\r\n",
        ] {
            assert!(filtered(reply.as_bytes(), 3).is_err(), "{reply}");
        }
    }
}
