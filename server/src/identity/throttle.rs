//! Wrong guesses cost time: from one place at one name, the wait doubles with each, up to a minute.
//!
//! Kept by place *and* name, so that nobody can lock somebody else out by guessing at their name; and forgotten after a
//! success or a while, so that nobody is locked out for ever.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use domain::observation::Tick;

use super::limits::{GUESS_WAIT_MAX, GUESSERS_MAX, GUESSES_FORGOTTEN, GUESSES_FREE};

#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<HashMap<(String, String), Guesses>>);

#[derive(Debug, Clone, Copy)]
struct Guesses {
    wrong: u32,
    next: Tick,
}

impl Throttle {
    /// How long this place must wait before it may guess at this name again.
    pub(super) fn wait(&self, place: &str, name: &str, now: Tick) -> Option<Duration> {
        let guesses = self.lock();
        let next = guesses.get(&key(place, name))?.next;
        let wait_ms = u64::try_from(next.since(now)).ok().filter(|ms| *ms > 0)?;
        Some(Duration::from_millis(wait_ms))
    }

    pub(super) fn wrong(&self, place: &str, name: &str, now: Tick) {
        self.count(place, name, GUESSES_FREE, now);
    }

    /// One more of which only so many are free.
    pub(super) fn count(&self, place: &str, name: &str, free: u32, now: Tick) {
        let mut guesses = self.lock();
        if guesses.len() >= GUESSERS_MAX {
            let kept_ms = i64::try_from(GUESS_WAIT_MAX.as_millis()).unwrap_or(i64::MAX);
            guesses.retain(|_, guess| now.since(guess.next) < kept_ms);
        }
        if guesses.len() >= GUESSERS_MAX {
            return;
        }
        let guess = guesses
            .entry(key(place, name))
            .or_insert(Guesses { wrong: 0, next: now });
        let forgotten_ms = i64::try_from(GUESSES_FORGOTTEN.as_millis()).unwrap_or(i64::MAX);
        if now.since(guess.next) >= forgotten_ms {
            guess.wrong = 0;
        }
        guess.wrong = guess.wrong.saturating_add(1);
        guess.next = Tick(now.0 + wait_ms(guess.wrong, free));
    }

    pub(super) fn right(&self, place: &str, name: &str) {
        self.lock().remove(&key(place, name));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Guesses>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn key(place: &str, name: &str) -> (String, String) {
    (place.to_owned(), name.chars().take(64).collect())
}

/// Nothing for the first few, then 1 s, 2 s, 4 s, …
fn wait_ms(wrong: u32, free: u32) -> i64 {
    let Some(beyond) = wrong.checked_sub(free).filter(|beyond| *beyond > 0) else {
        return 0;
    };
    let seconds = 1_u64.checked_shl(beyond - 1).unwrap_or(u64::MAX);
    i64::try_from(seconds.min(GUESS_WAIT_MAX.as_secs()) * 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_guesses_take_hours_and_the_victim_is_not_locked_out() {
        // One place guesses as quickly as it may; the owner of the name comes from elsewhere; later the place may again.
        let throttle = Throttle::default();
        let mut now = Tick(0);
        for _ in 0..1_000 {
            if let Some(wait) = throttle.wait("attacker", "ada", now) {
                now = Tick(now.0 + i64::try_from(wait.as_millis()).unwrap());
            }
            throttle.wrong("attacker", "ada", now);
        }
        assert!(now.0 > 16 * 3_600 * 1_000, "{} ms", now.0);
        assert_eq!(throttle.wait("office", "ada", now), None);
        assert!(throttle.wait("attacker", "ada", now).unwrap() <= GUESS_WAIT_MAX);
        assert_eq!(throttle.wait("attacker", "ada", Tick(now.0 + 60_000)), None);
        // Quiet for long: the first guess of the next day is free again, as the first ever was.
        let next_day = Tick(now.0 + 24 * 3_600_000);
        throttle.wrong("attacker", "ada", next_day);
        assert_eq!(throttle.wait("attacker", "ada", next_day), None);
        throttle.right("attacker", "ada");
        assert_eq!(throttle.wait("attacker", "ada", now), None);
    }

    #[test]
    fn memory_is_bounded_however_many_guess() {
        // More places than are remembered.
        let throttle = Throttle::default();
        for place in 0..GUESSERS_MAX + 100 {
            throttle.wrong(&place.to_string(), "ada", Tick(0));
        }
        assert_eq!(throttle.lock().len(), GUESSERS_MAX);
    }
}
