//! What fires now, on the first page: the worst few, and how many more there are.

use domain::alerts::{Severity, Subject};
use domain::human;

use super::frame::shape;
use super::lately;
use super::markup::Markup;

/// Lines of the list.
pub const ROWS_MAX: usize = 6;

/// One alert that fires.
#[derive(Debug, Clone)]
pub struct Firing {
    pub rule: String,
    pub severity: Severity,
    pub subject: Subject,
    /// Of the page on what it is about.
    pub path: String,
    pub why: String,
    /// Milliseconds since 1970.
    pub since: i64,
}

/// `total` counts all; the list has the worst.
pub fn firing(alerts: &[Firing], total: u64) -> Markup {
    let mut it = Markup::new();
    let attributes = [("class", "sec firing"), ("aria-labelledby", "firing-head")];
    it.wrap("section", &attributes, |it| {
        it.wrap("header", &[], |it| {
            it.said("h2", &[("id", "firing-head")], "Alerts");
            let note = if total == 0 {
                "none firing".to_owned()
            } else {
                format!("{} firing", human::count(total))
            };
            it.said("span", &[("class", "note")], &note);
            let end = [("class", "end link"), ("href", "/alerts"), ("rel", "external")];
            it.said("a", &end, "All alerts");
        });
        it.wrap("ul", &[("class", "fires")], |it| {
            for alert in alerts.iter().take(ROWS_MAX) {
                it.wrap("li", &[], |it| one(it, alert));
            }
        });
    });
    it
}

fn one(it: &mut Markup, alert: &Firing) {
    let hue = match alert.severity {
        Severity::Critical => "st critical",
        Severity::Warning => "st warning",
        Severity::Info => "st quiet",
    };
    it.wrap("span", &[("class", hue)], |it| {
        shape(it, "not_renewing", "");
        it.name(&alert.rule);
    });
    // A moment, not an age: what did not change stays the same string, and keeps the focus that may be in it.
    it.wrap("span", &[("class", "small ink2")], |it| {
        it.text("since ");
        lately::time(it, alert.since, false);
    });
    it.wrap("p", &[], |it| {
        lately::name(it, &alert.path, &alert.subject.shown(), "")
    });
    it.wrap("p", &[("class", "small ink2")], |it| {
        it.name(&alert.why);
    });
}

#[cfg(test)]
mod tests {
    use domain::names::BackendName;

    use super::*;

    #[test]
    fn the_worst_are_listed_all_are_counted_and_a_hostile_reason_is_harmless() {
        // Eight of which six are shown; then none at all.
        let alert = Firing {
            rule: "Not <b>renewing".to_owned(),
            severity: Severity::Critical,
            subject: Subject::Backend(BackendName::builtin()),
            path: "/backends".to_owned(),
            why: "</p><script>".to_owned(),
            since: 61_000,
        };
        let html = firing(&vec![alert; 8], 8).into_string();
        assert_eq!(html.matches("<li").count(), ROWS_MAX);
        assert!(
            html.contains("8 firing") && !html.contains("<script") && !html.contains("<b>"),
            "{html}"
        );
        assert!(firing(&[], 0).into_string().contains("none firing"));
    }
}
