//! Delivery to one receiver: due messages are claimed, sent, and their result stored.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::duration::millis;
use domain::notification::NoticeAlert;
use futures::future::join_all;
use tracing::{info, warn};

use super::http_sender::{DeliveryVerdict, HttpReply, truncate};
use super::limits::{
    BACKOFF_FIRST, BACKOFF_MAX, CLAIMED_MAX, FAULT_CHARS_MAX, POLL_INTERVAL, RESEND_MISSED,
    RESENDS_UNTIL_LAPSE,
};
use super::message::{self, MessageTarget, OutgoingRequest};
use super::outbox::{self, Claimed, End};
use super::receiver::{Receiver, ReceiverKind};
use super::{Notifier, active_alerts, receivers};

impl Notifier {
    /// Sends the due messages of the receiver, up to the claim limit.
    pub(super) async fn serve(&self, id: &str) {
        if let Err(error) = self.try_serve(id).await {
            warn!("the outbox cannot be read: {error}");
            // Still due: retry after a pause.
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn try_serve(&self, id: &str) -> Result<(), sqlx::Error> {
        let Some(receiver) = receivers::find(self.db(), &self.vault, "id = $1", id).await? else {
            return Ok(());
        };
        // Slack accepts about one message a second.
        let most = if receiver.kind == ReceiverKind::Slack {
            1
        } else {
            CLAIMED_MAX
        };
        let claimed = outbox::claim(self.db(), id, self.now_ms(), most).await?;
        let sends = claimed
            .iter()
            .map(|message| Box::pin(self.send_one(&receiver, message)));
        join_all(sends)
            .await
            .into_iter()
            .collect::<Result<Vec<()>, _>>()?;
        if receiver.kind == ReceiverKind::Alertmanager {
            self.resend(&receiver).await?;
        }
        Ok(())
    }

    async fn send_one(&self, receiver: &Receiver, claimed: &Claimed) -> Result<(), sqlx::Error> {
        let Some(notice) = &claimed.notice else {
            let outcome = "this version cannot read the stored message";
            return outbox::finish(self.db(), claimed, &End::Dead, outcome, self.now_ms(), None).await;
        };
        let requests = match receiver.kind {
            ReceiverKind::Alertmanager => {
                let alerts = active_alerts::load(self.db(), &receiver.id, notice).await?;
                if alerts.is_empty() {
                    let outcome = "none of its alerts is active any more";
                    let end = End::Delivered;
                    return outbox::finish(self.db(), claimed, &end, outcome, self.now_ms(), None).await;
                }
                message::active(receiver, &alerts, self.message_target())
            }
            ReceiverKind::Webhook | ReceiverKind::Slack => {
                message::notice_requests(receiver, notice, &claimed.notification_id, self.message_target())
            }
        };
        let (verdict, outcome) = self.post(receiver, &requests).await;
        let now = self.now_ms();
        let end = end(&verdict, claimed, now, millis(self.max_retry_time));
        match &end {
            End::Delivered => info!(
                receiver.name = receiver.name,
                notification.id = claimed.notification_id,
                "sent to {}: {outcome}",
                receiver.name
            ),
            End::Again(_) => warn!(
                receiver.name = receiver.name,
                notification.id = claimed.notification_id,
                "could not send to {} (attempt {}): {outcome}",
                receiver.name,
                claimed.attempts
            ),
            End::Dead => tracing::error!(
                receiver.name = receiver.name,
                notification.id = claimed.notification_id,
                "gave up sending to {} after {} attempts: {outcome}",
                receiver.name,
                claimed.attempts
            ),
        }
        let fault = verdict.fault().map(|why| truncate(why, FAULT_CHARS_MAX));
        let receiver_fault = (receiver.id.as_str(), fault.as_deref());
        outbox::finish(self.db(), claimed, &end, &outcome, now, Some(receiver_fault)).await
    }

    /// Resends firing alerts before they lapse, and resolved ones a few times.
    async fn resend(&self, receiver: &Receiver) -> Result<(), sqlx::Error> {
        let now = self.now_ms();
        let next_at = now + millis(self.resend_interval);
        let alerts = active_alerts::claim(self.db(), &receiver.id, now, next_at).await?;
        if alerts.is_empty() {
            return Ok(());
        }
        let verdict = self.resend_now(receiver, &alerts).await;
        match verdict {
            // A rejected request would be rejected again, and a resolved alert is resent only a few times.
            DeliveryVerdict::Taken | DeliveryVerdict::Never { .. } => {
                active_alerts::record_sent(self.db(), &receiver.id, next_at).await?;
            }
            DeliveryVerdict::Later { .. } => {
                let sooner = self.now_ms() + millis(RESEND_MISSED.min(self.resend_interval));
                active_alerts::record_failure(self.db(), &receiver.id, next_at, sooner).await?;
            }
        }
        let fault = verdict.fault().map(|why| truncate(why, FAULT_CHARS_MAX));
        receivers::record_result(self.db(), &receiver.id, fault.as_deref(), self.now_ms()).await
    }

    async fn resend_now(&self, receiver: &Receiver, alerts: &[NoticeAlert]) -> DeliveryVerdict {
        let requests = message::active(receiver, alerts, self.message_target());
        let (verdict, outcome) = self.post(receiver, &requests).await;
        if verdict != DeliveryVerdict::Taken {
            warn!(
                receiver.name = receiver.name,
                "could not send the firing alerts to {}: {outcome}", receiver.name
            );
        }
        verdict
    }

    pub(super) fn message_target(&self) -> MessageTarget<'_> {
        let now = self.clock.now().wall;
        let lapse = self.resend_interval.saturating_mul(RESENDS_UNTIL_LAPSE);
        MessageTarget {
            home: &self.home,
            now,
            lapses_at: DateTime::<Utc>::from_timestamp_millis(now.timestamp_millis() + millis(lapse))
                .unwrap_or(now),
        }
    }

    /// Sends to every address. One success is enough: peers of an Alertmanager get resends anyway.
    async fn post(&self, receiver: &Receiver, requests: &[OutgoingRequest]) -> (DeliveryVerdict, String) {
        if let Some(why) = &receiver.locked {
            // Not final: the right key may be configured while the message waits.
            let why = why.clone();
            return (
                DeliveryVerdict::Later {
                    why: why.clone(),
                    after: None,
                },
                why,
            );
        }
        let now = self.clock.now().wall;
        let sends = requests
            .iter()
            .map(|request| Box::pin(self.courier.send(request, now)));
        let replies: Vec<HttpReply> = join_all(sends).await;
        let accepted = replies
            .iter()
            .filter(|reply| reply.verdict == DeliveryVerdict::Taken)
            .count();
        let faults = replies.iter().zip(requests).filter_map(|(reply, request)| {
            let fault = reply.verdict.fault()?;
            Some(if requests.len() == 1 {
                fault.to_owned()
            } else {
                format!("{}: {fault}", request.shown_url)
            })
        });
        let faults = truncate(&faults.collect::<Vec<_>>().join("; "), FAULT_CHARS_MAX);
        let mut replies = replies;
        if accepted > 0 {
            let status = replies.iter().find_map(|reply| reply.status).unwrap_or_default();
            let outcome = match faults.is_empty() {
                true => format!("answered {status}"),
                false => format!("{accepted} of {} accepted it; {faults}", requests.len()),
            };
            return (DeliveryVerdict::Taken, outcome);
        }
        // A temporary failure takes precedence over a permanent one.
        replies.sort_by_key(|reply| matches!(reply.verdict, DeliveryVerdict::Never { .. }));
        let verdict = replies.into_iter().next().map(|reply| reply.verdict);
        let none = || DeliveryVerdict::Never {
            why: "the receiver has no address".to_owned(),
        };
        (verdict.unwrap_or_else(none), faults)
    }
}

/// Delivered, given up, or when to retry.
fn end(verdict: &DeliveryVerdict, claimed: &Claimed, now: i64, max_retry_time: i64) -> End {
    match verdict {
        DeliveryVerdict::Taken => End::Delivered,
        DeliveryVerdict::Never { .. } => End::Dead,
        DeliveryVerdict::Later { after, .. } => {
            let last = claimed.since.saturating_add(max_retry_time);
            if now >= last {
                return End::Dead;
            }
            let wait = backoff(claimed.attempts, runtime::random::fraction()).max(after.unwrap_or_default());
            // The last attempt is at the limit, unless the receiver asked for a longer wait.
            let at = now.saturating_add(millis(wait));
            End::Again(if after.is_some() { at } else { at.min(last) })
        }
    }
}

/// Exponential backoff with jitter between half and all of the delay, so that servers do not retry at the same time.
fn backoff(attempts: i64, chance: f64) -> Duration {
    let doublings = u32::try_from(attempts.clamp(1, 20) - 1).unwrap_or_default();
    let delay = BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX);
    delay.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(attempts: i64) -> Claimed {
        Claimed {
            seq: 1,
            notification_id: String::new(),
            attempts,
            since: 0,
            notice: None,
        }
    }

    fn later(after: Option<u64>) -> DeliveryVerdict {
        DeliveryVerdict::Later {
            why: String::new(),
            after: after.map(Duration::from_secs),
        }
    }

    #[test]
    fn retry_pauses_grow_up_to_a_limit() {
        // Without and with full jitter; far beyond any shift width.
        let seconds = |attempts, chance| backoff(attempts, chance).as_secs_f64();
        assert_eq!([1, 2, 3].map(|n| seconds(n, 1.0)), [1.0, 2.0, 4.0]);
        assert_eq!(seconds(1, 0.0), 0.5);
        assert_eq!(seconds(1_000, 1.0), BACKOFF_MAX.as_secs_f64());
    }

    #[test]
    fn retries_end_at_the_limit_and_respect_retry_after() {
        // Before, at and after the limit; with a wait requested by the receiver.
        let at = |verdict: &DeliveryVerdict, now| match end(verdict, &claimed(3), now, 10_000) {
            End::Again(at) => Some(at),
            End::Dead => None,
            End::Delivered => panic!("it was not taken"),
        };
        assert!((3_000..=5_000).contains(&at(&later(None), 1_000).unwrap()));
        assert_eq!(at(&later(None), 9_900), Some(10_000));
        assert_eq!(at(&later(None), 10_000), None);
        assert_eq!(at(&later(Some(7)), 1_000), Some(8_000));
        assert_eq!(at(&DeliveryVerdict::Never { why: String::new() }, 0), None);
        assert!(matches!(
            end(&DeliveryVerdict::Taken, &claimed(1), 0, 0),
            End::Delivered
        ));
    }
}
