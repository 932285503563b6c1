//! Alert rules: conditions, alert states, notifications, and the preview of a rule over past
//! events.
//!
//! **Invariants:** the live evaluator and the preview use the same functions; unknown data
//! changes nothing: an alert on a subject that is not observed neither fires nor resolves.

mod backend_conditions;
mod baseline;
mod builtin;
mod condition_kind;
mod count_window;
mod deadlock_condition;
mod evaluate;
mod field_error;
mod grouping;
mod holdings;
mod labels;
mod lock_conditions;
mod long_held;
mod omitted_groups;
mod pattern;
mod prefix_window;
mod preview;
mod refusal_counts;
mod rule;
mod rule_input;
mod rule_windows;
mod silence;
mod sorted_values;
mod state_machine;
mod template;
#[cfg(test)]
mod tests;
mod threshold_slider;
mod unit;
mod usual_hold_time;
mod visibility;
mod window_conditions;

pub use backend_conditions::{CountedEvent, Counts, evaluate_backends, evaluate_counts};
pub use baseline::{Baseline, RefusedAcquire};
pub use builtin::builtin;
pub use condition_kind::{ConditionKind, HistorySource, Param, SubjectKind};
pub use deadlock_condition::{DeadlockedLocks, evaluate_deadlocks};
pub use evaluate::{Active, EvaluationResult, NotifiedRoute, RoundOutcome, Subject, round};
pub use field_error::FieldError;
pub use grouping::{NotificationRound, group_of, notices, notified_fingerprint, notified_labels};
pub use labels::{LABELS, Labels, fingerprint, labels};
pub use lock_conditions::{LockSnapshot, evaluate_lock, holding, lock_sentence, may_be_same_holding};
pub use long_held::{HeldLock, held_limit_ms};
pub use omitted_groups::LeftOut;
pub use pattern::Pattern;
pub use preview::{
    CurrentState, Firing, Gap, HolderNow, PastEvent, Playback, Preview, ScanTimes, SeriesPoint,
};
pub use rule::{AlertSeverity, Condition, GroupBy, Rule, RuleId, RuleScope};
pub use rule_input::{Draft, DraftChange, KnownNames, parse};
pub use rule_windows::{RuleWindows, evaluate_windows};
pub use silence::{Matcher, Silence, SilenceDraft};
pub use state_machine::{AlertPhase, AlertTransition, ConditionResult, Timing, step};
pub use template::{PLACEHOLDERS, Template};
pub use threshold_slider::{ThresholdSlider, moved_to};
pub use unit::Unit;
pub use usual_hold_time::{SAMPLES_MIN, UsualHold};
pub use visibility::{is_alert_visible, silence_stays_within, visible_why};

/// Shown on pages, in the log and by `/readyz` while no server evaluates the rules.
pub const OVERDUE: &str =
    "No server has evaluated the alert rules for more than 60 s: no alert fires and no notification is sent.";

/// Limits of rules and alerts, with their units.
pub mod limits {
    /// Rules of one installation.
    pub const RULES_MAX: usize = 200;
    /// Alerts stored per rule; beyond that only a count.
    pub const ALERTS_PER_RULE_MAX: usize = 500;
    /// Alerts listed in one notification; beyond that only a count.
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
    /// Longest window of a condition, in milliseconds.
    pub const WINDOW_MS_MAX: i64 = 24 * 3_600_000;
    pub const WINDOW_MS_MIN: i64 = 30_000;
    /// Evaluation interval, in milliseconds. Evaluations happen at whole multiples of it since
    /// 1970; previews use the same moments.
    pub const EVALUATE_EVERY_MS: i64 = 1_000;
    /// Time range of a preview, in milliseconds.
    pub const PREVIEW_MS: i64 = 7 * 24 * 3_600_000;
    /// A pause of the evaluator longer than this counts as a gap, in milliseconds.
    pub const UNWATCHED_AFTER_MS: i64 = 15_000;
    /// Alerting counts as broken if no server has evaluated for longer than this, in
    /// milliseconds.
    pub const EVALUATION_AGE_MS_MAX: i64 = 60_000;

    const _: () = assert!(UNWATCHED_AFTER_MS < EVALUATION_AGE_MS_MAX);
}
