//! What a watch shows: the rows that were read last, how old they and the backends are, and whether the server still
//! answers. Pure: ages come from the ticks that it is told.

use domain::escape::visible;
use domain::human;
use domain::observation::Tick;

use crate::cli::client::ClientError;
use crate::cli::locks::incomplete;
use crate::cli::table::{self, Look};
use crate::cli::wire::{Backend, Lock, Page};

/// What was read last, when, and whether the server still answers.
pub(super) struct View {
    server: String,
    pub(super) page: Page,
    /// Just before the question, so that ages are never shown younger than they are.
    read_at: Tick,
    pub(super) lost: Option<Lost>,
}

pub(super) struct Lost {
    pub(super) why: String,
    since: Tick,
}

impl View {
    pub(super) fn new(server: String, page: Page, read_at: Tick) -> Self {
        Self {
            server,
            page,
            read_at,
            lost: None,
        }
    }

    /// Takes an answer; says whether there is something new to show.
    pub(super) fn take(&mut self, answer: Result<Page, ClientError>, asked_at: Tick, now: Tick) -> bool {
        match answer {
            Ok(page) => {
                self.page = page;
                self.read_at = asked_at;
                self.lost = None;
                true
            }
            Err(error) => self.lose(error.to_string(), now),
        }
    }

    /// The server did not answer; true the first time.
    pub(super) fn lose(&mut self, why: String, since: Tick) -> bool {
        let first = self.lost.is_none();
        let since = self.lost.as_ref().map_or(since, |lost| lost.since);
        self.lost = Some(Lost { why, since });
        first
    }

    pub(super) fn lines(&self, look: Look, now: Tick) -> Vec<String> {
        let age = now.since(self.read_at).max(0);
        let look = Look {
            age_ms: age,
            disconnected: self.lost.is_some(),
            ..look
        };
        let rows: Vec<Lock> = self.page.locks.iter().map(Lock::of).collect();
        let mut lines = vec![self.headline(age, now), self.backends(age)];
        if self.lost.is_none() {
            lines.extend(incomplete(&self.page));
        }
        lines.push(String::new());
        lines.extend(table::locks(&rows, look));
        lines
    }

    /// Cut to the rows of the terminal, saying how many rows are below.
    pub(super) fn fitting(&self, look: Look, now: Tick, rows: usize) -> Vec<String> {
        let mut lines = self.lines(look, now);
        if lines.len() > rows && rows > 1 {
            let hidden = lines.len() - (rows - 1);
            lines.truncate(rows - 1);
            lines.push(format!(
                "… {} below",
                human::counted(hidden as u64, "row", "rows")
            ));
        }
        lines
    }

    fn headline(&self, age: i64, now: Tick) -> String {
        let total = human::counted(self.page.total, "lock", "locks");
        match &self.lost {
            Some(lost) => format!(
                "DISCONNECTED for {} · {total} as of {} ago · {}",
                human::duration(now.since(lost.since).max(0)),
                human::duration(age),
                lost.why
            ),
            None if self.page.complete => format!("{total} · {} · {} old", self.server, human::duration(age)),
            None => format!(
                "{total} seen, INCOMPLETE · {} · {} old",
                self.server,
                human::duration(age)
            ),
        }
    }

    /// Each backend with the age of its last observation.
    fn backends(&self, age: i64) -> String {
        let backends = self.page.backends.iter().map(Backend::of).map(|backend| {
            let status = if self.lost.is_some() {
                "stale"
            } else {
                backend.status.as_deref().unwrap_or("unknown")
            };
            let seen = backend.age_ms.map_or_else(
                || "never seen".to_owned(),
                |ms| human::duration(ms.saturating_add(age)),
            );
            visible(&format!("{} {status} {seen}", backend.name)).into_owned()
        });
        backends.collect::<Vec<_>>().join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(lost: Option<Lost>) -> View {
        let page = serde_json::from_value(json!({
            "locks": [{"backend": "cache", "resource": "lock:a", "state": "healthy", "heldMs": 5000, "remainingMs": 30_000}],
            "total": 1, "complete": true, "backends": [{"name": "cache", "status": "live", "ageMs": 400}]}));
        View {
            server: "http://127.0.0.1:3000".to_owned(),
            page: page.unwrap(),
            read_at: Tick(1_000),
            lost,
        }
    }

    #[test]
    fn ages_are_shown_and_grow_between_answers() {
        // 1.5 s after the answer: the headline and the backend's age have grown by it.
        let lines = view(None).lines(Look::default(), Tick(2_500));
        assert_eq!(lines[0], "1 lock · http://127.0.0.1:3000 · 1.5 s old");
        assert_eq!(lines[1], "cache live 1.9 s");
    }

    #[test]
    fn remaining_time_runs_down_between_answers() {
        // 1.5 s after the answer that said 30 s.
        let lines = view(None).lines(Look::default(), Tick(2_500));
        assert!(lines.last().unwrap().contains(" 28.5 s "), "{lines:?}");
    }

    #[test]
    fn a_lost_connection_is_said_in_capitals_and_makes_every_row_stale() {
        // Lost 12 s ago: nothing on the screen says live or healthy.
        let mut view = view(None);
        assert!(view.lose("cannot reach it".to_owned(), Tick(3_000)));
        assert!(
            !view.lose("cannot reach it".to_owned(), Tick(9_000)),
            "the first loss counts"
        );
        let text = view.lines(Look::default(), Tick(15_000)).join("\n");
        assert!(
            text.starts_with("DISCONNECTED for 12.0 s · 1 lock as of 14.0 s ago · cannot reach it"),
            "{text}"
        );
        assert!(text.contains("stale") && text.contains("≤ 16.0 s"), "{text}");
        assert!(!text.contains("live") && !text.contains("healthy"), "{text}");
    }

    #[test]
    fn a_small_terminal_says_how_many_rows_are_below() {
        // Five lines on a terminal of four.
        let lines = view(None).fitting(Look::default(), Tick(1_000), 4);
        assert_eq!((lines.len(), lines[3].as_str()), (4, "… 2 rows below"));
    }
}
