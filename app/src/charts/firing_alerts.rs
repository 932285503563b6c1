//! Firing alerts on the overview: the worst few and the number of the others.

use domain::alerts::{AlertSeverity, Subject};
use domain::format;

use super::chart_frame::shape;
use super::html_writer::Markup;
use super::recent_incidents;

/// Lines of the list.
pub const ROWS_MAX: usize = 6;

/// One alert that fires.
#[derive(Debug, Clone)]
pub struct Firing {
    pub rule: String,
    pub severity: AlertSeverity,
    pub subject: Subject,
    /// URL path of the alert's subject.
    pub path: String,
    pub why: String,
    /// Milliseconds since 1970.
    pub since: i64,
}

/// `total` counts all; `alerts` has the worst.
pub fn firing(alerts: &[Firing], total: u64) -> Markup {
    let mut it = Markup::new();
    let attributes = [("class", "sec firing"), ("aria-labelledby", "firing-head")];
    it.wrap("section", &attributes, |it| {
        it.wrap("header", &[], |it| {
            it.text_element("h2", &[("id", "firing-head")], "Alerts");
            let note = if total == 0 {
                "none firing".to_owned()
            } else {
                format!("{} firing", format::count(total))
            };
            it.text_element("span", &[("class", "note")], &note);
            let end = [("class", "end link"), ("href", "/alerts"), ("rel", "external")];
            it.text_element("a", &end, "All alerts");
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
        AlertSeverity::Critical => "st critical",
        AlertSeverity::Warning => "st warning",
        AlertSeverity::Info => "st quiet",
    };
    it.wrap("span", &[("class", hue)], |it| {
        shape(it, "not_renewing", "");
        it.name(&alert.rule);
    });
    // A moment, not an age: unchanged alerts stay the same string, which keeps the focus
    // inside.
    it.wrap("span", &[("class", "small ink2")], |it| {
        it.text("since ");
        recent_incidents::time(it, alert.since, false);
    });
    it.wrap("p", &[], |it| {
        recent_incidents::name(it, &alert.path, &alert.subject.display_name(), "")
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
    fn the_worst_alerts_are_listed_and_all_are_counted() {
        // Eight alerts of which six are shown; then none.
        let alert = Firing {
            rule: "Not <b>renewing".to_owned(),
            severity: AlertSeverity::Critical,
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
