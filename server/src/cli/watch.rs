//! `leasehold locks --watch`: asks again when the server hints at a change, or after a while; shows how old everything
//! is; and when the server stops answering, says so and shows every row as stale.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use domain::escape::visible;
use domain::human;
use domain::observation::Tick;
use futures::StreamExt;
use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::client::{Client, ClientError};
use super::exit::Exit;
use super::locks::{Args, incomplete, json};
use super::output::{print, report};
use super::sse::Events;
use super::table::{self, Look};
use super::terminal::{self, Screen};
use super::wire::{Backend, Lock, Page};
use crate::clock::Clock;
use crate::{shutdown, tasks};

/// Without a hint, the server is asked again after this, in milliseconds.
const POLL_MS: i64 = 2_000;
/// Never more often than this, in milliseconds.
const PAUSE_MS: i64 = 500;
/// An answer that takes longer than this counts as a lost connection, in milliseconds.
const PATIENCE_MS: i64 = 5_000;
/// Ages on the screen move this often.
const STEP: Duration = Duration::from_millis(250);
const RECONNECT: Duration = Duration::from_secs(2);

/// # Errors
/// Standard output cannot be written, or signals cannot be watched.
pub(super) async fn run(args: &Args, client: Client) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let stop = shutdown::on_signal()?;
    let query = args.query();
    // The first answer decides whether there is anything to watch.
    let first = tokio::select! {
        () = stop.cancelled() => return Ok(Exit::Ok.into()),
        first = client.inventory(&query, args.limit()) => first,
    };
    let page = match first {
        Ok(page) => page,
        Err(error) => {
            report(&error.to_string());
            return Ok(error.exit().into());
        }
    };
    let hints = Arc::new(Notify::new());
    tasks::spawn("events", stop.clone(), listen(client.clone(), Arc::clone(&hints)));
    let screen = if terminal::is_terminal() && !args.json {
        Some(Screen::enter()?)
    } else {
        None
    };
    let mut shown = Shown {
        look: args.look(),
        json: args.json,
        screen,
        view: View::new(&client, page, clock.tick()),
    };
    follow(&mut shown, args, &client, &clock, &hints, &stop).await?;
    Ok(Exit::Ok.into())
}

type Asking<'a> = BoxFuture<'a, Result<Page, ClientError>>;

async fn follow(
    shown: &mut Shown,
    args: &Args,
    client: &Client,
    clock: &Clock,
    hints: &Notify,
    stop: &CancellationToken,
) -> io::Result<()> {
    let query = args.query();
    let mut asking: Option<Asking<'_>> = None;
    let mut asked_at = clock.tick();
    let mut due = asked_at.plus(POLL_MS);
    let mut step = tokio::time::interval(STEP);
    shown.news(clock.tick())?;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            Some(answer) = async { Some(asking.as_mut()?.await) }, if asking.is_some() => {
                asking = None;
                let now = clock.tick();
                due = now.plus(POLL_MS);
                if shown.view.take(answer, asked_at, now) {
                    shown.news(now)?;
                }
            }
            () = hints.notified() => due = asked_at.plus(PAUSE_MS).min(due),
            _ = step.tick() => {
                let now = clock.tick();
                if asking.is_none() && due <= now {
                    asking = Some(Box::pin(client.inventory(&query, args.limit())));
                    asked_at = now;
                } else if asking.is_some()
                    && now.since(asked_at) > PATIENCE_MS
                    && shown.view.lose("no answer in time".to_owned(), asked_at)
                {
                    shown.news(now)?;
                }
                shown.age(now)?;
            }
        }
    }
}

/// Turns events into hints; connects again for ever, because polling goes on beside it.
async fn listen(client: Client, hints: Arc<Notify>) {
    loop {
        if let Ok(stream) = client.events().await {
            let mut stream = std::pin::pin!(stream);
            let mut events = Events::default();
            while let Some(Ok(chunk)) = stream.next().await {
                if events.take(&chunk) > 0 {
                    hints.notify_one();
                }
            }
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

/// The view and where it goes: a screen that ages, or lines that are only written when there is news.
struct Shown {
    look: Look,
    json: bool,
    screen: Option<Screen>,
    view: View,
}

impl Shown {
    fn news(&self, now: Tick) -> io::Result<()> {
        match (&self.view.lost, self.json) {
            _ if self.screen.is_some() => self.age(now),
            (Some(lost), true) => {
                report(&lost.why);
                Ok(())
            }
            (None, true) => print(&json(&self.view.page)),
            (_, false) => print(&(self.view.lines(self.look, now).join("\n") + "\n\n")),
        }
    }

    fn age(&self, now: Tick) -> io::Result<()> {
        let Some(screen) = &self.screen else { return Ok(()) };
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        let look = Look {
            columns: Some(columns),
            ..self.look
        };
        screen.draw(&self.view.fitting(look, now, rows))
    }
}

/// What was read last, when, and whether the server still answers.
struct View {
    server: String,
    page: Page,
    /// Just before the question, so that ages are never shown younger than they are.
    read_at: Tick,
    lost: Option<Lost>,
}

struct Lost {
    why: String,
    since: Tick,
}

impl View {
    fn new(client: &Client, page: Page, read_at: Tick) -> Self {
        Self {
            server: client.name(),
            page,
            read_at,
            lost: None,
        }
    }

    /// Takes an answer; says whether there is something new to show.
    fn take(&mut self, answer: Result<Page, ClientError>, asked_at: Tick, now: Tick) -> bool {
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
    fn lose(&mut self, why: String, since: Tick) -> bool {
        let first = self.lost.is_none();
        let since = self.lost.as_ref().map_or(since, |lost| lost.since);
        self.lost = Some(Lost { why, since });
        first
    }

    fn lines(&self, look: Look, now: Tick) -> Vec<String> {
        let age = now.since(self.read_at).max(0);
        let look = Look {
            disconnected_ms: self.lost.as_ref().map(|_| age),
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
    fn fitting(&self, look: Look, now: Tick, rows: usize) -> Vec<String> {
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
                "DISCONNECTED for {}: {}. {total} as of {} ago",
                human::duration(now.since(lost.since).max(0)),
                lost.why,
                human::duration(age)
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
            text.starts_with("DISCONNECTED for 12.0 s: cannot reach it. 1 lock as of 14.0 s ago"),
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
