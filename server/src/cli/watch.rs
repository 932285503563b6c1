//! `leasehold locks --watch`: queries again after change notifications or an interval; shows the age of all data;
//! shows every row as stale when the server stops answering.

mod view;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use domain::tick::Tick;
use futures::StreamExt;
use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::api_types::Page;
use super::client::{Client, ClientError};
use super::exit_code::Exit;
use super::locks::{Args, json};
use super::output::{report, write};
use super::sse::Events;
use super::table::RenderOptions;
use super::terminal::{self, Screen};
use runtime::clock::Clock;
use runtime::shutdown;
use runtime::tasks;
use view::View;

/// Poll interval in milliseconds.
const POLL_MS: i64 = 2_000;
/// Minimum interval in milliseconds.
const PAUSE_MS: i64 = 500;
/// Response time in milliseconds after which the connection counts as lost.
const RESPONSE_MS_MAX: i64 = 5_000;
/// Interval at which displayed ages are updated.
const STEP: Duration = Duration::from_millis(250);
const RECONNECT: Duration = Duration::from_secs(2);

/// # Errors
/// Standard output cannot be written, or signals cannot be watched.
pub(super) async fn run(args: &Args, client: Client) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let stop = shutdown::on_signal()?;
    let query = args.query();
    // The first response decides whether the watch starts.
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
        options: args.render_options(),
        json: args.json,
        screen,
        view: View::new(client.name(), page, clock.tick()),
    };
    match follow(&mut shown, args, &client, &clock, &hints, &stop).await {
        // A closed pipe ends the watch.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        followed => followed?,
    }
    Ok(Exit::Ok.into())
}

type PendingRequest<'a> = BoxFuture<'a, Result<Page, ClientError>>;

async fn follow(
    shown: &mut Shown,
    args: &Args,
    client: &Client,
    clock: &Clock,
    hints: &Notify,
    stop: &CancellationToken,
) -> io::Result<()> {
    let query = args.query();
    let mut request: Option<PendingRequest<'_>> = None;
    let mut requested_at = clock.tick();
    let mut due = requested_at.plus(POLL_MS);
    let mut step = tokio::time::interval(STEP);
    shown.print_update(clock.tick())?;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            Some(response) = async { Some(request.as_mut()?.await) }, if request.is_some() => {
                request = None;
                let now = clock.tick();
                due = now.plus(POLL_MS);
                if shown.view.apply_response(response, requested_at, now) {
                    shown.print_update(now)?;
                }
            }
            () = hints.notified() => due = requested_at.plus(PAUSE_MS).min(due),
            _ = step.tick() => {
                let now = clock.tick();
                if request.is_none() && due <= now {
                    request = Some(Box::pin(client.inventory(&query, args.limit())));
                    requested_at = now;
                } else if request.is_some()
                    && now.since(requested_at) > RESPONSE_MS_MAX
                    && shown.view.mark_lost("no answer in time".to_owned(), requested_at)
                {
                    shown.print_update(now)?;
                }
                shown.redraw(now)?;
            }
        }
    }
}

/// Turns events into notifications; reconnects without limit, because polling continues.
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

/// The view and its output: a screen with ages, or lines on each change.
struct Shown {
    options: RenderOptions,
    json: bool,
    screen: Option<Screen>,
    view: View,
}

impl Shown {
    fn print_update(&self, now: Tick) -> io::Result<()> {
        match (&self.view.lost, self.json) {
            _ if self.screen.is_some() => self.redraw(now),
            (Some(lost), true) => {
                report(&lost.why);
                Ok(())
            }
            (None, true) => write(&json(&self.view.page)),
            (_, false) => write(&(self.view.lines(self.options, now).join("\n") + "\n\n")),
        }
    }

    fn redraw(&self, now: Tick) -> io::Result<()> {
        let Some(screen) = &self.screen else { return Ok(()) };
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        let options = RenderOptions {
            columns: Some(columns),
            ..self.options
        };
        screen.draw(&self.view.visible_lines(options, now, rows))
    }
}
