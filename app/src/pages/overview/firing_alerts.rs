//! Firing alerts: the worst few and the number of the others.

use domain::alerts::{AlertSeverity, Subject};
use domain::escape::visible;
use domain::overview::{FIRING_ROWS_MAX, FiringAlert, FiringAlerts};
use leptos::prelude::*;

use crate::components::lock_link::lock_link;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::components::time::short_time;
use crate::format;
use crate::links;

#[component]
pub fn FiringAlertsSection(#[prop(into)] alerts: Signal<FiringAlerts>) -> impl IntoView {
    let note = move || match alerts.with(|alerts| alerts.total) {
        0 => "none firing".to_owned(),
        total => format!("{} firing", format::count(total)),
    };
    let rows = move || {
        alerts.with(|alerts| {
            alerts
                .worst
                .iter()
                .take(FIRING_ROWS_MAX)
                .map(row)
                .collect::<Vec<AnyView>>()
        })
    };
    view! {
        <section class="sec" aria-labelledby="firing-head">
            <header>
                <h2 id="firing-head">"Alerts"</h2>
                <span class="note">{changing(note)}</span>
                <a class="end link" href="/alerts">"All alerts"</a>
            </header>
            <ul class="fires">{changing(rows)}</ul>
        </section>
    }
    .into_any()
}

fn row(alert: &FiringAlert) -> AnyView {
    let hue = match alert.severity {
        AlertSeverity::Critical => "st critical",
        AlertSeverity::Warning => "st warning",
        AlertSeverity::Info => "st quiet",
    };
    let subject = lock_link(&path(&alert.subject), &alert.subject.display_name(), "");
    view! {
        <li>
            <span class=hue><Shape name="not_renewing"/><bdi>{visible(&alert.rule).into_owned()}</bdi></span>
            // A moment and not an age, so that the text of an unchanged alert does not change.
            <span class="small ink2">"since "{short_time(alert.since, true)}</span>
            <p>{subject}</p>
            <p class="small ink2"><bdi>{format::prose(&alert.why)}</bdi></p>
        </li>
    }
    .into_any()
}

/// Path of the page about an alert's subject.
pub fn path(subject: &Subject) -> String {
    match subject {
        Subject::Lock(lock) => links::lock_path(lock),
        Subject::Prefix { prefix, .. } => {
            // A list can only be filtered by the part before the first wildcard.
            links::prefix(prefix.split('*').next().unwrap_or_default())
        }
        Subject::Backend(backend) => format!("/backends#{backend}"),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::names::BackendName;

    use super::*;
    use crate::charts::tests::html;

    fn section(alerts: FiringAlerts) -> String {
        html(move || view! { <FiringAlertsSection alerts=Signal::stored(alerts.clone())/> }.into_any())
    }

    #[test]
    fn the_worst_alerts_are_listed_and_all_are_counted() {
        // Eight alerts of which six are shown; then none.
        let alert = FiringAlert {
            rule: "Not <b>renewing".to_owned(),
            severity: AlertSeverity::Critical,
            subject: Subject::Backend(BackendName::builtin()),
            why: "</p><script>".to_owned(),
            since: 61_000,
        };
        let html = section(FiringAlerts {
            worst: vec![alert; 8],
            total: 8,
        });
        assert_eq!(html.matches("<li").count(), FIRING_ROWS_MAX);
        assert!(
            html.contains("8 firing") && !html.contains("<script") && !html.contains("<b>"),
            "{html}"
        );
        assert!(html.contains("href=\"/backends#builtin\""), "{html}");
        let none = section(FiringAlerts {
            worst: Vec::new(),
            total: 0,
        });
        assert!(none.contains("none firing"), "{none}");
    }
}
