//! Messages about a server that does not answer: one when attempts begin to fail, one when they succeed again.

use chrono::{DateTime, TimeDelta, Utc};
use domain::escape::visible;
use domain::time_format::dated;
use leasehold_client::{AcquireProgress, Moment, clock};
use runtime::clock::Clock;

use super::super::client::ClientError;
use super::stderr::write_stderr;

pub(super) struct ServerMessages {
    resource: String,
    /// Without credentials.
    server: String,
    is_failing: bool,
}

impl ServerMessages {
    pub(super) fn new(resource: String, server: String) -> Self {
        Self {
            resource,
            server,
            is_failing: false,
        }
    }

    pub(super) fn acquiring(&mut self, progress: AcquireProgress) {
        match progress {
            AcquireProgress::Failed {
                why,
                is_unreachable,
                until,
            } => self.failed(|server| {
                let why = if is_unreachable {
                    let server = server.to_owned();
                    ClientError::Unreachable { server, why }.to_string()
                } else {
                    format!("at {server}, {why}")
                };
                format!("not acquired yet: {why}. Retrying until {}", wall_time(until))
            }),
            AcquireProgress::Answered => self.succeeded(""),
        }
    }

    /// Whether the last renewal failed and this was reported.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing
    }

    pub(super) fn renewal_failed(&mut self, why: &str, deadline: Moment) {
        self.failed(|server| {
            format!(
                "the lease is not renewed: at {server}, {why}. Retrying; without a renewal the lease is lost at {}",
                wall_time(deadline)
            )
        });
    }

    pub(super) fn renewed(&mut self) {
        self.succeeded("; the lease is held");
    }

    fn failed(&mut self, describe: impl FnOnce(&str) -> String) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let message = describe(&self.server);
            self.write(&message);
        }
    }

    fn succeeded(&mut self, state: &str) {
        if std::mem::take(&mut self.is_failing) {
            self.write(&format!("{} answers again{state}", self.server));
        }
    }

    fn write(&self, message: &str) {
        let message = format!("{}: {message}", self.resource);
        write_stderr(visible(&message).into_owned());
    }
}

/// The wall-clock time for display. A moment beyond the range of dates is shown as its end.
fn wall_time(moment: Moment) -> String {
    let left = TimeDelta::from_std(moment.since(clock::now())).unwrap_or(TimeDelta::MAX);
    let now = Clock::start().now().wall;
    dated(now.checked_add_signed(left).unwrap_or(DateTime::<Utc>::MAX_UTC))
}
