//! Alert rules: what they say, when their condition holds, what becomes of an alert, who is told, and what a rule would
//! have done in the past.
//!
//! **Invariants:** the live evaluator and the preview judge by the same functions; what is not known changes nothing: an
//! alert about something that nobody sees now neither fires nor resolves.

mod builtin;
mod count_window;
mod draft;
mod fault;
mod group;
mod hold_times;
mod holdings;
mod kind;
mod labels;
mod left_out;
mod line;
mod locks;
mod long_held;
mod machine;
mod past;
mod pattern;
mod places;
mod preview;
mod refusal_counts;
mod round;
mod rule;
mod silence;
mod sorted_values;
mod template;
#[cfg(test)]
mod tests;
mod unit;
mod visibility;
mod windows;

pub use builtin::builtin;
pub use draft::{Draft, DraftChange, Known, parse};
pub use fault::Fault;
pub use group::{Told, notices};
pub use hold_times::SAMPLES_MIN;
pub use kind::{About, Kind, Param, Past as PastKnown};
pub use labels::{LABELS, Labels, fingerprint, labels};
pub use left_out::LeftOut;
pub use line::{Line, moved_to};
pub use locks::{LockSight, holding, judge_lock, tell_lock};
pub use long_held::{HeldLock, held_limit_ms};
pub use machine::{Change, Phase, Sign, Timing, step};
pub use past::{Past, Refused};
pub use pattern::Pattern;
pub use places::{Counts, Happened, judge_backends, judge_counts};
pub use preview::{Firing, HolderNow, PastEvent, Playback, Present, Preview, ScanTimes, SeriesPoint};
pub use round::{Active, Found, Outcome, Subject, round};
pub use rule::{Condition, GroupBy, Rule, RuleId, Scope, Severity};
pub use silence::{Matcher, Silence, SilenceDraft};
pub use template::{PLACEHOLDERS, Template};
pub use unit::Unit;
pub use visibility::{is_alert_visible, silence_stays_within, visible_why};
pub use windows::judge_windows;

/// What pages, the log and `/readyz` say while no server evaluates.
pub const OVERDUE: &str =
    "No server has evaluated the alert rules for more than 60 s: no alert fires and nobody is notified.";

/// Limits of rules and alerts, with their units.
pub mod limits {
    /// Rules of one installation.
    pub const RULES_MAX: usize = 200;
    /// Alerts of one rule that are kept at a time; of more there is only a count.
    pub const ALERTS_PER_RULE_MAX: usize = 500;
    /// Alerts listed in one notice; of more there is only a count.
    pub const ALERTS_PER_NOTICE_MAX: usize = 100;
    pub const NAME_CHARS_MAX: usize = 100;
    pub const TEXT_CHARS_MAX: usize = 1_000;
    pub const PATTERN_CHARS_MAX: usize = 256;
    pub const RECEIVERS_MAX: usize = 16;
    pub const MATCHERS_MAX: usize = 8;
    /// `for` and keep-firing, in milliseconds.
    pub const FOR_MS_MAX: i64 = 24 * 3_600_000;
    /// A silence, in milliseconds.
    pub const SILENCE_MS_MAX: i64 = 90 * 24 * 3_600_000;
    /// What happened longer ago counts in no window, in milliseconds.
    pub const WINDOW_MS_MAX: i64 = 24 * 3_600_000;
    pub const WINDOW_MS_MIN: i64 = 30_000;
    /// Rules are evaluated so often, at whole multiples of it since 1970, in milliseconds; previews look at the same moments.
    pub const EVALUATE_EVERY_MS: i64 = 1_000;
    /// A preview looks back so far, in milliseconds.
    pub const PREVIEW_MS: i64 = 7 * 24 * 3_600_000;
    /// An evaluator that was not heard of for longer leaves a time that nobody knows of, in milliseconds.
    pub const UNWATCHED_AFTER_MS: i64 = 15_000;
    /// Without an evaluation by any server for longer, alerting counts as broken, in milliseconds.
    pub const EVALUATION_AGE_MS_MAX: i64 = 60_000;

    const _: () = assert!(UNWATCHED_AFTER_MS < EVALUATION_AGE_MS_MAX);
}
