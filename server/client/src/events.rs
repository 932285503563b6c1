//! Event stream of a lease, to learn of a loss before the next renewal. Correctness does not depend on it.

use std::time::Duration;

use crate::dto::Event;
use crate::http_call::{CallError, Calls};
use crate::lease_state::LeaseState;
use crate::loss::Loss;
use crate::{rng, schedule};

/// The server sends at least a comment every 5 s.
const SILENCE_MAX: Duration = Duration::from_secs(15);
const OPEN_MAX: Duration = Duration::from_secs(5);
/// Maximum delay before reopening a stream that does not open or ends without data.
const REOPEN_MAX: Duration = Duration::from_secs(15);
/// Bytes kept of one event; longer ones are dropped.
const EVENT_BYTES_MAX: usize = 64 * 1024;

/// Runs until the lease is lost.
pub(crate) async fn listen(calls: Calls, id: String, state: LeaseState) {
    let mut failures = 0;
    let reading = async {
        loop {
            match read_stream(&calls, &id, &state).await {
                StreamEnd::Refused => return,
                StreamEnd::AfterData => failures = 0,
                StreamEnd::WithoutData => failures += 1,
            }
            let pause = schedule::backoff(failures + 1, rng::unit());
            tokio::time::sleep((pause * failures.max(1)).min(REOPEN_MAX)).await;
        }
    };
    tokio::select! {
        _ = state.lost() => {}
        () = reading => {}
    }
}

enum StreamEnd {
    /// The server or this lease has no events; renewals find out why.
    Refused,
    AfterData,
    WithoutData,
}

async fn read_stream(calls: &Calls, id: &str, state: &LeaseState) -> StreamEnd {
    let mut response = match calls.events(id, OPEN_MAX).await {
        Ok(response) => response,
        Err(CallError::Unknown { .. }) => return StreamEnd::WithoutData,
        Err(_) => return StreamEnd::Refused,
    };
    let mut lines = Lines::default();
    let mut end = StreamEnd::WithoutData;
    while let Ok(Ok(Some(chunk))) = tokio::time::timeout(SILENCE_MAX, response.chunk()).await {
        end = StreamEnd::AfterData;
        for data in lines.take(&chunk) {
            let event = serde_json::from_slice::<Event>(&data).ok();
            let event = event.filter(|event| event.lease_id == id);
            if let Some(loss) = event.as_ref().and_then(Loss::from_event) {
                state.end(loss);
            }
        }
    }
    end
}

/// Extracts data lines from server-sent events. The server writes the data of each event on one line.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn take(&mut self, chunk: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for byte in chunk {
            match byte {
                b'\n' => {
                    let line = std::mem::take(&mut self.0);
                    let data = line.strip_prefix(b"data:");
                    events.extend(data.map(|data| data.trim_ascii().to_vec()));
                }
                _ if self.0.len() < EVENT_BYTES_MAX => self.0.push(*byte),
                _ => {}
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_parsed_at_any_chunk_boundary() {
        // Comments and other fields are skipped; in one chunk, and byte by byte with carriage returns.
        let stream = b": beat\r\n\r\nevent: revoked\r\ndata: {\"a\":1}\r\n\r\ndata:x\r\n\r\n";
        let expected = vec![b"{\"a\":1}".to_vec(), b"x".to_vec()];
        assert_eq!(Lines::default().take(stream), expected);
        let mut lines = Lines::default();
        let found: Vec<_> = stream.iter().flat_map(|byte| lines.take(&[*byte])).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_endless_line_uses_bounded_memory() {
        // A megabyte without a line end: the first 64 KiB are kept, and later events are parsed again.
        let mut lines = Lines::default();
        assert!(lines.take(&vec![b'x'; 1024 * 1024]).is_empty());
        assert_eq!(lines.0.len(), EVENT_BYTES_MAX);
        assert_eq!(lines.take(b"\ndata: y\n"), [b"y".to_vec()]);
    }
}
