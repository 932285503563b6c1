//! State of a watch: the last rows, their age and that of the backends, and whether the server answers. Pure: time
//! is an argument.

use domain::escape::visible;
use domain::format;
use domain::tick::Tick;

use crate::cli::api_types::{Backend, Lock, Page};
use crate::cli::client::ClientError;
use crate::cli::locks::incomplete;
use crate::cli::table::{self, RenderOptions};

/// The last response, its time, and the connection state.
pub(super) struct View {
    server: String,
    pub(super) page: Page,
    /// Time before the request, so that ages are never understated.
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

    /// Applies a response; returns whether the view changed.
    pub(super) fn apply_response(
        &mut self,
        response: Result<Page, ClientError>,
        requested_at: Tick,
        now: Tick,
    ) -> bool {
        match response {
            Ok(page) => {
                self.page = page;
                self.read_at = requested_at;
                self.lost = None;
                true
            }
            Err(error) => self.mark_lost(error.to_string(), now),
        }
    }

    /// Records a missing response; true the first time.
    pub(super) fn mark_lost(&mut self, why: String, since: Tick) -> bool {
        let is_first = self.lost.is_none();
        let since = self.lost.as_ref().map_or(since, |lost| lost.since);
        self.lost = Some(Lost { why, since });
        is_first
    }

    pub(super) fn lines(&self, options: RenderOptions, now: Tick) -> Vec<String> {
        let age = now.since(self.read_at).max(0);
        let options = RenderOptions {
            age_ms: age,
            disconnected: self.lost.is_some(),
            ..options
        };
        let rows: Vec<Lock> = self.page.locks.iter().map(Lock::parse).collect();
        let mut lines = vec![self.headline(age, now), self.backends(age)];
        if self.lost.is_none() {
            lines.extend(incomplete(&self.page));
        }
        lines.push(String::new());
        lines.extend(table::locks(&rows, options));
        lines
    }

    /// Limited to the rows of the terminal, with the number of hidden rows.
    pub(super) fn visible_lines(&self, options: RenderOptions, now: Tick, rows: usize) -> Vec<String> {
        let mut lines = self.lines(options, now);
        if lines.len() > rows && rows > 1 {
            let hidden = lines.len() - (rows - 1);
            lines.truncate(rows - 1);
            lines.push(format!(
                "… {} below",
                format::counted(hidden as u64, "row", "rows")
            ));
        }
        lines
    }

    fn headline(&self, age: i64, now: Tick) -> String {
        let total = format::counted(self.page.total, "lock", "locks");
        match &self.lost {
            Some(lost) => format!(
                "DISCONNECTED for {} · {total} as of {} ago · {}",
                format::duration(now.since(lost.since).max(0)),
                format::duration(age),
                lost.why
            ),
            None if self.page.complete => {
                format!("{total} · {} · {} old", self.server, format::duration(age))
            }
            None => format!(
                "{total} seen, INCOMPLETE · {} · {} old",
                self.server,
                format::duration(age)
            ),
        }
    }

    /// Each backend with the age of its last observation.
    fn backends(&self, age: i64) -> String {
        let backends = self.page.backends.iter().map(Backend::parse).map(|backend| {
            let status = if self.lost.is_some() {
                "stale"
            } else {
                backend.status.as_deref().unwrap_or("unknown")
            };
            let age_text = backend.age_ms.map_or_else(
                || "never read".to_owned(),
                |ms| format::duration(ms.saturating_add(age)),
            );
            visible(&format!("{} {status} {age_text}", backend.name)).into_owned()
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
        // 1.5 s after the response: both ages have grown by it.
        let lines = view(None).lines(RenderOptions::default(), Tick(2_500));
        assert_eq!(lines[0], "1 lock · http://127.0.0.1:3000 · 1.5 s old");
        assert_eq!(lines[1], "cache live 1.9 s");
    }

    #[test]
    fn remaining_time_runs_down_between_answers() {
        // 1.5 s after the response with 30 s remaining.
        let lines = view(None).lines(RenderOptions::default(), Tick(2_500));
        assert!(lines.last().unwrap().contains(" 28.5 s "), "{lines:?}");
    }

    #[test]
    fn a_lost_connection_is_shown_and_every_row_is_stale() {
        // Lost 12 s ago: no row is shown as live or healthy.
        let mut view = view(None);
        assert!(view.mark_lost("cannot reach it".to_owned(), Tick(3_000)));
        assert!(
            !view.mark_lost("cannot reach it".to_owned(), Tick(9_000)),
            "the first loss counts"
        );
        let text = view.lines(RenderOptions::default(), Tick(15_000)).join("\n");
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
        let lines = view(None).visible_lines(RenderOptions::default(), Tick(1_000), 4);
        assert_eq!((lines.len(), lines[3].as_str()), (4, "… 2 rows below"));
    }
}
