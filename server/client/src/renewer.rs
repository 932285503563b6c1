//! Renews one lease until it ends. Requests contain only the lease id, so they never affect the next lease of the
//! resource.

use std::time::Duration;

use crate::clock::{self, Moment};
use crate::http_call::{CallError, Calls};
use crate::lease_state::LeaseState;
use crate::{rng, schedule};

pub(crate) struct Renewer {
    pub(crate) calls: Calls,
    pub(crate) id: String,
    pub(crate) resource: String,
    pub(crate) ttl: Duration,
    pub(crate) state: LeaseState,
}

impl Renewer {
    /// Starts from a deadline that was just set.
    pub(crate) async fn run(self) {
        let mut renew_at = schedule::renew_at(clock::now(), self.state.deadline(), rng::unit());
        let mut failures = 0;
        loop {
            let until_then = async {
                clock::sleep_until(renew_at).await;
                let sent = clock::now();
                // First after a pause of the process or the machine: no request for a lost lease.
                if self.state.is_lost() {
                    return None;
                }
                Some((sent, self.renew(sent).await))
            };
            let (sent, answer) = tokio::select! {
                biased;
                _ = self.state.lost() => return,
                answer = until_then => match answer {
                    Some(answer) => answer,
                    None => return,
                },
            };
            match self.take(sent, answer) {
                Next::Renew(at) => {
                    failures = 0;
                    renew_at = at;
                }
                Next::Retry(pause) => {
                    failures += 1;
                    let backoff = schedule::backoff(failures, rng::unit());
                    renew_at = clock::now().plus(backoff.max(pause));
                }
                Next::End => {
                    self.state.lost().await;
                    return;
                }
            }
        }
    }

    async fn renew(&self, sent: Moment) -> Result<crate::dto::Grant, CallError> {
        let left = self.state.deadline().since(sent);
        self.calls.renew(&self.id, schedule::answer_within(left)).await
    }

    fn take(&self, sent: Moment, answer: Result<crate::dto::Grant, CallError>) -> Next {
        match answer {
            Ok(grant) => {
                let deadline = schedule::deadline(sent, grant.remaining_ms, self.ttl);
                if self.state.prolong(deadline, false) {
                    return Next::Renew(schedule::renew_at(sent, deadline, rng::unit()));
                }
                Next::End
            }
            Err(CallError::Lost(loss)) => {
                self.state.end(loss);
                Next::End
            }
            Err(CallError::LifetimeReached { remaining_ms }) => {
                self.state
                    .prolong(schedule::deadline(sent, remaining_ms, self.ttl), true);
                Next::End
            }
            Err(error) => {
                let why = error.sentence();
                let left_ms = self.state.deadline().since(clock::now()).as_millis();
                tracing::warn!(
                    lock.resource = %self.resource, lease.id = %self.id,
                    "the lease of {} was not renewed, {left_ms} ms are left: {why}", self.resource
                );
                self.state.note_error(why);
                let pause = match error {
                    CallError::Unknown { retry_after, .. } => retry_after.unwrap_or_default(),
                    _ => Duration::ZERO,
                };
                // A requested delay longer than the time left is shortened, so that one more attempt fits.
                let left = self.state.deadline().since(clock::now());
                Next::Retry(pause.min(left / 2))
            }
        }
    }
}

enum Next {
    Renew(Moment),
    Retry(Duration),
    /// Nothing to do but wait for the end.
    End,
}
