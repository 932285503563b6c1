//! Finds the ends of events in a stream of server-sent events. What an event says does not matter here: each is a
//! hint to look again.

/// Bytes since the last event, with what is needed to see the next end.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    has_data: bool,
}

/// A line longer than this is not kept: only its first bytes matter.
const LINE_BYTES_MAX: usize = 64;

impl Events {
    /// Takes a chunk; says how many events ended in it. Comments (keep-alives) are none.
    pub(super) fn take(&mut self, chunk: &[u8]) -> usize {
        let mut ended = 0;
        for byte in chunk {
            match byte {
                b'\r' => {}
                b'\n' if self.line.is_empty() => {
                    ended += usize::from(std::mem::take(&mut self.has_data));
                }
                b'\n' => {
                    self.has_data |= self.line.starts_with(b"data") || self.line.starts_with(b"event");
                    self.line.clear();
                }
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                _ => {}
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_however_the_stream_is_cut() {
        // Two events, a comment, a retry line; in one piece and byte by byte.
        let stream = b": hello\n\nevent: revision\r\ndata: {\"revision\":1}\r\n\r\nretry: 1000\n\ndata: x\ndata: y\n\n";
        assert_eq!(Events::default().take(stream), 2);
        let mut events = Events::default();
        let counted: usize = stream.iter().map(|byte| events.take(&[*byte])).sum();
        assert_eq!(counted, 2);
    }
}
