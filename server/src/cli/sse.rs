//! Counts events in a stream of server-sent events. Their content does not matter: each one triggers a refresh.

/// Parser state since the last event.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    has_data: bool,
}

/// Only the first bytes of a line matter; the rest is dropped.
const LINE_BYTES_MAX: usize = 64;

impl Events {
    /// Processes a chunk; returns how many events ended in it. Comments (keep-alives) do not count.
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
    fn events_are_counted_at_any_chunk_boundary() {
        // Two events, a comment, a retry line; in one chunk and byte by byte.
        let stream = b": hello\n\nevent: revision\r\ndata: {\"revision\":1}\r\n\r\nretry: 1000\n\ndata: x\ndata: y\n\n";
        assert_eq!(Events::default().take(stream), 2);
        let mut events = Events::default();
        let counted: usize = stream.iter().map(|byte| events.take(&[*byte])).sum();
        assert_eq!(counted, 2);
    }
}
