//! The clock for all ages on a page: the monotonic clock of the browser plus the time that the computer slept.

use std::cell::Cell;

use leptos::prelude::*;

/// Minimum difference of the two clocks that counts as sleep. A smaller one is a correction of the wall clock.
const SLEEP_MS_MIN: i64 = 2_000;

thread_local! {
    static CLOCK: Cell<Clock> = const { Cell::new(Clock { slept_ms: 0, last: None }) };
}

/// On some systems `performance.now()` stops during sleep: without this correction, data from before the sleep would look live.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Sleep since the page opened, in milliseconds.
    slept_ms: i64,
    /// Wall clock and monotonic clock at the last reading, in milliseconds.
    last: Option<(i64, i64)>,
}

impl Clock {
    /// A wall clock that is set forward looks like sleep: the data then looks old and is fetched again. A wall clock that is set
    /// back has no effect.
    fn read(&mut self, wall_ms: i64, monotonic_ms: i64) -> i64 {
        if let Some((wall, monotonic)) = self.last {
            let difference = (wall_ms - wall) - (monotonic_ms - monotonic);
            if difference > SLEEP_MS_MIN {
                self.slept_ms += difference;
            }
        }
        self.last = Some((wall_ms, monotonic_ms));
        monotonic_ms + self.slept_ms
    }
}

/// Milliseconds since the page opened; 0 on the server.
pub fn now_ms() -> i64 {
    if !is_browser() {
        return 0;
    }
    let Some(performance) = window().performance() else {
        return 0;
    };
    let (wall, monotonic) = (js_sys::Date::now(), performance.now());
    let mut clock = CLOCK.get();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "milliseconds since 1970 and since the page opened are far below 2^53"
    )]
    let now = clock.read(wall as i64, monotonic as i64);
    CLOCK.set(clock);
    now
}

/// When the first HTML arrived: its durations run from then on, also before the script has loaded. In the browser only.
pub(super) fn received_ms() -> i64 {
    let now = now_ms();
    received().map_or(now, |at| at.clamp(0, now))
}

fn received() -> Option<i64> {
    let navigation = window().performance()?.get_entries_by_type("navigation").get(0);
    let at = js_sys::Reflect::get(&navigation, &"responseStart".into()).ok()?;
    // 0: not known.
    let at = at.as_f64().filter(|at| *at > 0.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "milliseconds since the page opened are far below 2^53"
    )]
    let at = at as i64;
    Some(at)
}

/// Sleep since the page opened. In the browser only.
pub(super) fn slept_ms() -> i64 {
    now_ms();
    CLOCK.get().slept_ms
}

const fn is_browser() -> bool {
    cfg!(target_arch = "wasm32")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_ages_a_page_and_small_corrections_do_not() {
        let mut clock = Clock {
            slept_ms: 0,
            last: None,
        };
        let opened_at = 1_772_334_761_000;
        assert_eq!(clock.read(opened_at, 40), 40);
        assert_eq!(clock.read(opened_at + 250, 290), 290);
        // A laptop that was closed for an hour, and a system whose monotonic clock counts it.
        assert_eq!(clock.read(opened_at + 3_600_500, 540), 3_600_540);
        assert_eq!(clock.read(opened_at + 7_200_500, 3_600_540), 7_200_540);
        // Corrections of the wall clock: by a second, and back by a day.
        assert_eq!(clock.read(opened_at + 7_201_750, 3_600_790), 7_200_790);
        assert_eq!(clock.read(opened_at - 79_198_000, 3_601_040), 7_201_040);
        assert_eq!(clock.slept_ms, 3_600_000);
    }
}
