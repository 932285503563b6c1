//! A hidden tab rests: it closes its stream, and opens it for one event a minute.
//!
//! Over HTTP/1.1 a browser has six connections to a host for all its tabs: with a seventh stream no request of any tab
//! would be answered.

/// How long a tab is hidden before it rests.
const REST_AFTER_MS: i64 = 30_000;
/// Interval at which a resting tab opens the stream for one event, which updates the number of firing alert groups in its
/// title. A little less than a minute, the interval at which browsers run the timers of a hidden tab.
const CHECK_MS: i64 = 55_000;

/// Action of one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestStep {
    /// The stream is kept open.
    Awake,
    /// The stream is closed.
    Begin,
    /// Closed, and left so.
    Resting,
    /// Opened until its first event.
    Check,
    /// Opened, and the data fetched again.
    Wake,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rest {
    hidden_since: Option<i64>,
    /// When the stream was last closed or opened for an event; `None` while it is kept open.
    checked_at: Option<i64>,
}

impl Rest {
    pub(super) fn is_resting(self) -> bool {
        self.checked_at.is_some()
    }

    pub(super) fn next(&mut self, is_hidden: bool, now: i64) -> RestStep {
        if !is_hidden {
            self.hidden_since = None;
            return match self.checked_at.take() {
                Some(_) => RestStep::Wake,
                None => RestStep::Awake,
            };
        }
        let hidden_since = *self.hidden_since.get_or_insert(now);
        let (step, since, wait_ms) = match self.checked_at {
            None => (RestStep::Begin, hidden_since, REST_AFTER_MS),
            Some(at) => (RestStep::Check, at, CHECK_MS),
        };
        if now - since >= wait_ms {
            self.checked_at = Some(now);
            return step;
        }
        match step {
            RestStep::Begin => RestStep::Awake,
            _ => RestStep::Resting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_tab_rests_and_wakes_when_it_is_shown() {
        use RestStep::{Awake, Begin, Check, Resting, Wake};
        let mut rest = Rest::default();
        let steps = [
            (false, 0, Awake),
            // Hidden for less than the limit, twice.
            (true, 1_000, Awake),
            (true, 30_000, Awake),
            (false, 30_250, Awake),
            (true, 31_000, Awake),
            (true, 60_999, Awake),
            (true, 61_000, Begin),
            (true, 61_250, Resting),
            (true, 115_999, Resting),
            (true, 116_000, Check),
            (true, 117_000, Resting),
            (true, 171_000, Check),
            (false, 172_000, Wake),
            (false, 172_250, Awake),
            (true, 173_000, Awake),
        ];
        for (is_hidden, now, step) in steps {
            assert_eq!(rest.next(is_hidden, now), step, "at {now}");
            let is_open = matches!(step, Awake | Wake);
            assert_eq!(rest.is_resting(), !is_open, "at {now}");
        }
    }
}
