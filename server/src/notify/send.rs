//! One receiver's turn: what is due for it is claimed, sent, and written down.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::notice::NoticeAlert;
use futures::future::join_all;
use tracing::{info, warn};

use super::courier::{Answer, Verdict, shown};
use super::limits::{
    BACKOFF_FIRST, BACKOFF_MAX, CLAIMED_MAX, FAULT_CHARS_MAX, LOOK_EVERY, RESEND_MISSED, RESENDS_UNTIL_LAPSE,
};
use super::message::{self, Letter, Place};
use super::queue::{self, Claimed, End};
use super::receiver::{Kind, Receiver};
use super::{Notifier, ms, receivers, standing};

impl Notifier {
    /// Everything that is due for it now, as much as is claimed at a time.
    pub(super) async fn serve(&self, id: &str) {
        if let Err(error) = self.try_serve(id).await {
            warn!("messages cannot be taken out of the outbox: {error}");
            // It is due still: not again at once.
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn try_serve(&self, id: &str) -> Result<(), sqlx::Error> {
        let Some(receiver) = receivers::find(self.db(), &self.vault, "id = $1", id).await? else {
            return Ok(());
        };
        // Slack wants no more than about one a second.
        let most = if receiver.kind == Kind::Slack {
            1
        } else {
            CLAIMED_MAX
        };
        let claimed = queue::claim(self.db(), id, self.now_ms(), most).await?;
        let sends = claimed.iter().map(|one| Box::pin(self.send_one(&receiver, one)));
        join_all(sends)
            .await
            .into_iter()
            .collect::<Result<Vec<()>, _>>()?;
        if receiver.kind == Kind::Alertmanager {
            self.resend(&receiver).await?;
        }
        Ok(())
    }

    async fn send_one(&self, receiver: &Receiver, claimed: &Claimed) -> Result<(), sqlx::Error> {
        let Some(notice) = &claimed.notice else {
            let said = "this version does not understand what another wrote";
            return queue::finish(self.db(), claimed, &End::Dead, said, self.now_ms(), None).await;
        };
        let letters = match receiver.kind {
            Kind::Alertmanager => {
                let alerts = standing::of(self.db(), &receiver.id, notice).await?;
                if alerts.is_empty() {
                    let said = "nothing of it stands any more";
                    let end = End::Delivered;
                    return queue::finish(self.db(), claimed, &end, said, self.now_ms(), None).await;
                }
                message::standing(receiver, &alerts, self.place())
            }
            Kind::Webhook | Kind::Slack => message::once(receiver, notice, &claimed.notice_id, self.place()),
        };
        let (verdict, said) = self.post(receiver, &letters).await;
        let now = self.now_ms();
        let end = end(&verdict, claimed, now, ms(self.give_up));
        match &end {
            End::Delivered => info!(
                receiver.name = receiver.name,
                notification.id = claimed.notice_id,
                "told {}: {said}",
                receiver.name
            ),
            End::Again(_) => warn!(
                receiver.name = receiver.name,
                notification.id = claimed.notice_id,
                "could not tell {} (attempt {}): {said}",
                receiver.name,
                claimed.attempts
            ),
            End::Dead => tracing::error!(
                receiver.name = receiver.name,
                notification.id = claimed.notice_id,
                "gave up telling {} after {} attempts: {said}",
                receiver.name,
                claimed.attempts
            ),
        }
        let fault = verdict.fault().map(|why| shown(why, FAULT_CHARS_MAX));
        let asked = (receiver.id.as_str(), fault.as_deref());
        queue::finish(self.db(), claimed, &end, &said, now, Some(asked)).await
    }

    /// What still fires, before it lapses; what has ended, once more.
    async fn resend(&self, receiver: &Receiver) -> Result<(), sqlx::Error> {
        let now = self.now_ms();
        let next_at = now + ms(self.resend);
        let alerts = standing::claim(self.db(), &receiver.id, now, next_at).await?;
        if alerts.is_empty() {
            return Ok(());
        }
        let verdict = self.tell_again(receiver, &alerts).await;
        match verdict {
            // What it does not want it does not want sooner either, and an end is not said for ever.
            Verdict::Taken | Verdict::Never { .. } => {
                standing::taken(self.db(), &receiver.id, next_at).await?;
            }
            Verdict::Later { .. } => {
                let sooner = self.now_ms() + ms(RESEND_MISSED.min(self.resend));
                standing::missed(self.db(), &receiver.id, next_at, sooner).await?;
            }
        }
        let fault = verdict.fault().map(|why| shown(why, FAULT_CHARS_MAX));
        receivers::note(self.db(), &receiver.id, fault.as_deref(), self.now_ms()).await
    }

    async fn tell_again(&self, receiver: &Receiver, alerts: &[NoticeAlert]) -> Verdict {
        let letters = message::standing(receiver, alerts, self.place());
        let (verdict, said) = self.post(receiver, &letters).await;
        if verdict != Verdict::Taken {
            warn!(
                receiver.name = receiver.name,
                "could not tell {} what still fires: {said}", receiver.name
            );
        }
        verdict
    }

    pub(super) fn place(&self) -> Place<'_> {
        let now = self.clock.now().wall;
        let lapse = self.resend.saturating_mul(RESENDS_UNTIL_LAPSE);
        Place {
            home: &self.home,
            now,
            lapses_at: DateTime::<Utc>::from_timestamp_millis(now.timestamp_millis() + ms(lapse))
                .unwrap_or(now),
        }
    }

    /// To every address. One that takes it is enough: peers of an Alertmanager are told again anyway.
    async fn post(&self, receiver: &Receiver, letters: &[Letter]) -> (Verdict, String) {
        if let Some(why) = &receiver.locked {
            // Not never: the right key may be given while it waits.
            let why = why.clone();
            return (
                Verdict::Later {
                    why: why.clone(),
                    after: None,
                },
                why,
            );
        }
        let now = self.clock.now().wall;
        let sends = letters
            .iter()
            .map(|letter| Box::pin(self.courier.send(letter, now)));
        let answers: Vec<Answer> = join_all(sends).await;
        let taken = answers
            .iter()
            .filter(|answer| answer.verdict == Verdict::Taken)
            .count();
        let faults = answers.iter().zip(letters).filter_map(|(answer, letter)| {
            let fault = answer.verdict.fault()?;
            Some(if letters.len() == 1 {
                fault.to_owned()
            } else {
                format!("{}: {fault}", letter.shown_url)
            })
        });
        let faults = shown(&faults.collect::<Vec<_>>().join("; "), FAULT_CHARS_MAX);
        let mut answers = answers;
        if taken > 0 {
            let status = answers
                .iter()
                .find_map(|answer| answer.status)
                .unwrap_or_default();
            let said = match faults.is_empty() {
                true => format!("answered {status}"),
                false => format!("{taken} of {} took it; {faults}", letters.len()),
            };
            return (Verdict::Taken, said);
        }
        // What may pass counts before what does not.
        answers.sort_by_key(|answer| matches!(answer.verdict, Verdict::Never { .. }));
        let verdict = answers.into_iter().next().map(|answer| answer.verdict);
        let none = || Verdict::Never {
            why: "it has no address".to_owned(),
        };
        (verdict.unwrap_or_else(none), faults)
    }
}

/// Taken, given up, or when next.
fn end(verdict: &Verdict, claimed: &Claimed, now: i64, give_up: i64) -> End {
    match verdict {
        Verdict::Taken => End::Delivered,
        Verdict::Never { .. } => End::Dead,
        Verdict::Later { after, .. } => {
            let last = claimed.since.saturating_add(give_up);
            if now >= last {
                return End::Dead;
            }
            let wait = backoff(claimed.attempts, rand::random()).max(after.unwrap_or_default());
            // The last attempt is at the limit; whoever asks for more time than that gets it.
            let at = now.saturating_add(ms(wait));
            End::Again(if after.is_some() { at } else { at.min(last) })
        }
    }
}

/// Twice as long after each attempt, and between half of that and all of it, so that servers do not knock together.
fn backoff(attempts: i64, chance: f64) -> Duration {
    let doublings = u32::try_from(attempts.clamp(1, 20) - 1).unwrap_or_default();
    let whole = BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX);
    whole.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(attempts: i64) -> Claimed {
        Claimed {
            seq: 1,
            notice_id: String::new(),
            attempts,
            since: 0,
            notice: None,
        }
    }

    fn later(after: Option<u64>) -> Verdict {
        Verdict::Later {
            why: String::new(),
            after: after.map(Duration::from_secs),
        }
    }

    #[test]
    fn attempts_grow_apart_up_to_a_most() {
        // Without and with all of the chance; far beyond any shift.
        let seconds = |attempts, chance| backoff(attempts, chance).as_secs_f64();
        assert_eq!([1, 2, 3].map(|n| seconds(n, 1.0)), [1.0, 2.0, 4.0]);
        assert_eq!(seconds(1, 0.0), 0.5);
        assert_eq!(seconds(1_000, 1.0), BACKOFF_MAX.as_secs_f64());
    }

    #[test]
    fn it_is_tried_until_the_limit_and_not_before_the_receiver_wants() {
        // Within, at the edge, beyond; with a wait that the receiver asked for.
        let at = |verdict: &Verdict, now| match end(verdict, &claimed(3), now, 10_000) {
            End::Again(at) => Some(at),
            End::Dead => None,
            End::Delivered => panic!("it was not taken"),
        };
        assert!((3_000..=5_000).contains(&at(&later(None), 1_000).unwrap()));
        assert_eq!(at(&later(None), 9_900), Some(10_000));
        assert_eq!(at(&later(None), 10_000), None);
        assert_eq!(at(&later(Some(7)), 1_000), Some(8_000));
        assert_eq!(at(&Verdict::Never { why: String::new() }, 0), None);
        assert!(matches!(end(&Verdict::Taken, &claimed(1), 0, 0), End::Delivered));
    }
}
