//! 500 waiters on one resource: served in order, one grant per release, with at most two attempts each.

use std::time::Duration;

use domain::names::Resource;
use lease::LeaseCaller;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::http::{Http, member};
use super::metric::Figure;
use super::test_server::Served;
use super::timer::Stopwatch;
use runtime::tasks;

pub(crate) const WAITERS: usize = 500;
/// Maximum wait of a request, in seconds.
const WAIT_S: u64 = 60;
const RESOURCE: &str = "bench:line";
const QUEUE_POLL: Duration = Duration::from_micros(200);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Waiters {
    pub waiters: usize,
    /// Grants that directly followed the grant of the previous waiter.
    pub in_order: usize,
    /// Acquire attempts on behalf of waiters, per release.
    pub attempts: f64,
    /// Milliseconds from the first release to the last grant.
    pub served_ms: f64,
}

impl Waiters {
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let waiters = self.waiters;
        vec![
            Figure::at_least(
                &format!("of {waiters} waiters on one resource, served in their order"),
                self.in_order as f64,
                waiters as f64,
                "",
            ),
            Figure::at_most("tries on behalf of them for each release", self.attempts, 2.0, ""),
            Figure::plain("from the first release to the last grant", self.served_ms, "ms"),
        ]
    }
}

/// # Errors
/// The server does not start, or a waiter is not granted within a minute.
pub(crate) async fn measure(waiters: usize) -> Result<Waiters, BenchError> {
    let (served, _folder) = Served::on_sqlite().await?;
    let mut holder = served.connect().await?;
    let held = acquire(&mut holder, 0, 0).await?;
    let (sender, mut granted) = mpsc::channel(waiters.max(1));
    for number in 1..=waiters {
        let mut http = served.connect().await?;
        let sender = sender.clone();
        tasks::spawn("bench waiter", CancellationToken::new(), async move {
            let lease = acquire(&mut http, number, WAIT_S).await;
            let lease = match lease {
                Ok(lease) => lease,
                Err(error) => {
                    let _ = sender.send(Err(error)).await;
                    return;
                }
            };
            // Sent before the release, so that the order of messages is that of grants.
            let _ = sender.send(Ok(number)).await;
            if let Err(error) = http.delete(&format!("/v1/locks/{lease}")).await {
                let _ = sender.send(Err(error)).await;
            }
        });
        // Each joins the store's queue before the next one starts, so that their order is known.
        while queued(&served).await? < number {
            tokio::time::sleep(QUEUE_POLL).await;
        }
    }
    drop(sender);
    let metrics = served.leases().metrics();
    let before = (metrics.grant_attempts.read(), metrics.releases.read());
    let watch = Stopwatch::start();
    holder.delete(&format!("/v1/locks/{held}")).await?;
    let (mut in_order, mut served_ms) = (0, 0.0);
    for place in 1..=waiters {
        let number = granted.recv().await.ok_or(BenchError::NoClient)??;
        in_order += usize::from(number == place);
        served_ms = watch.ms();
    }
    // Until the last waiter has released.
    while let Some(ended) = granted.recv().await {
        ended?;
    }
    let attempts = metrics.grant_attempts.read() - before.0;
    let releases = metrics.releases.read() - before.1;
    served.end().await;
    Ok(Waiters {
        waiters,
        in_order,
        attempts: attempts as f64 / releases.max(1) as f64,
        served_ms,
    })
}

/// Number of waiters that the store has in the queue.
async fn queued(served: &Served) -> Result<usize, BenchError> {
    let (caller, resource) = (LeaseCaller::open(), Resource::from(RESOURCE));
    let state = served.leases().resource(&caller, &resource).await;
    let state = state.map_err(|error| BenchError::bad_answer("the lease service", error.to_string()))?;
    Ok(state.waiters.len())
}

async fn acquire(http: &mut Http, number: usize, wait_s: u64) -> Result<String, BenchError> {
    let body = format!(
        r#"{{"resource":"{RESOURCE}","ownerId":"worker-{number}","ttlSeconds":60,"waitSeconds":{wait_s}}}"#
    );
    let answer = http.post("/v1/locks/acquire", &body).await?;
    let id = member(answer, "leaseId").map(str::to_owned);
    id.ok_or_else(|| BenchError::bad_answer("our server", answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn waiters_are_served_in_order_with_two_tries_per_release() {
        // Twenty waiters over HTTP; the bench uses 500.
        let measured = measure(20).await.unwrap();
        assert_eq!(measured.in_order, 20, "{measured:?}");
        assert!(measured.attempts <= 2.0, "{measured:?}");
    }
}
