//! Parts shared by every step: names, sentences, times, holdings, list of steps.

use chrono::{DateTime, NaiveDate, Utc};
use domain::escape::visible;
use domain::force_release::Holding;
use domain::reported::Reported;
use domain::time_format;
use leptos::prelude::*;

use crate::components::fact_list::known_or_why;
use crate::components::state_badge::Shape;
use crate::format;
use crate::links;

/// An untrusted name, with hidden characters shown.
pub(super) fn name(text: &str) -> AnyView {
    view! { <bdi>{visible(text).into_owned()}</bdi> }.into_any()
}

/// A clause of the console or a backend as a sentence, with hidden characters shown.
pub fn sentence(text: &str) -> String {
    let text = format::prose(text);
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    let mut sentence = first.unwrap_or_default() + chars.as_str();
    if !sentence.ends_with(['.', '?', '!']) && !sentence.is_empty() {
        sentence.push('.');
    }
    sentence
}

/// [`sentence`], apart from the direction of the text around it.
pub(super) fn notice(text: &str) -> AnyView {
    view! { <bdi>{sentence(text)}</bdi> }.into_any()
}

pub(super) fn paragraph(text: Option<&str>) -> AnyView {
    text.map(|text| view! { <p>{notice(text)}</p> }.into_any())
        .into_any()
}

pub(super) fn time(at: DateTime<Utc>) -> AnyView {
    time_on(at, at.date_naive())
}

/// With its date if that is another day than `today`.
pub(super) fn time_on(at: DateTime<Utc>, today: NaiveDate) -> AnyView {
    let dated = time_format::dated(at);
    let text = if at.date_naive() == today {
        time_format::timed(at)
    } else {
        dated.clone()
    };
    view! { <time class="small" datetime=time_format::iso(at) title=dated>{text}</time> }.into_any()
}

/// A badge: shape, hue and label.
pub(super) fn badge(shape: &'static str, hue: &'static str, label: &'static str) -> AnyView {
    view! { <span class=format!("st {hue}")><Shape name=shape/><b>{label}</b></span> }.into_any()
}

/// Owner, token and lease of two holdings as cells, the earlier one first.
pub(super) fn holders_table(columns: [&'static str; 2], rows: [[AnyView; 2]; 3]) -> AnyView {
    let [then_label, now_label] = columns;
    let [owner, token, lease] = rows;
    let row = |label: &'static str, class: &'static str, [before, now]: [AnyView; 2]| {
        view! { <tr><th scope="row">{label}</th><td class=class>{before}</td><td class=class><b>{now}</b></td></tr> }.into_any()
    };
    view! {
        <table class="t ba">
            <thead><tr><th scope="col"><span class="sr">"what"</span></th><th scope="col">{then_label}</th><th scope="col">{now_label}</th></tr></thead>
            <tbody>{row("held by", "", owner)}{row("token", "", token)}{row("lease", "mono", lease)}</tbody>
        </table>
    }
    .into_any()
}

/// Two holdings side by side.
pub(super) fn holdings(columns: [&'static str; 2], before: &Holding, now: Option<&Holding>) -> AnyView {
    let holdings = [Some(before), now];
    let owner = holdings.map(|holding| match holding {
        None => view! { "no holder" }.into_any(),
        Some(holding) => known_or_why(&holding.owner_id, |owner| name(owner.as_str())),
    });
    let token = holdings.map(|holding| {
        of_holding(holding, |holding| {
            holding.fencing_token.as_ref().map(ToString::to_string)
        })
    });
    let lease = holdings.map(|holding| of_holding(holding, |holding| holding.lease_id.clone()));
    holders_table(columns, [owner, token, lease])
}

fn of_holding(holding: Option<&Holding>, part: impl Fn(&Holding) -> Reported<String>) -> AnyView {
    match holding.map(part) {
        Some(Reported::Value(text)) => name(&text),
        Some(Reported::Unknown(_)) => view! { <span class="ink3">"unknown"</span> }.into_any(),
        Some(Reported::NotApplicable(_)) | None => view! { <span class="ink3">"none"</span> }.into_any(),
    }
}

/// A step and when it was completed.
pub(super) type StepTime = (String, Option<DateTime<Utc>>);

/// The steps in order, with the times of completed ones.
pub(super) fn order(steps: Vec<StepTime>, today: NaiveDate) -> AnyView {
    let items = steps.into_iter().map(|(what, at)| {
        let class = at.map(|_| "dn");
        let at = at.map(|at| time_on(at, today));
        view! { <li class=class><span>{what}</span>{at}</li> }.into_any()
    });
    view! {
        <section class="sec order">
            <header><h2>"Steps"</h2></header>
            <ol>{items.collect_view()}</ol>
        </section>
    }
    .into_any()
}

/// A link to the audit entries if the user may read them; otherwise the number of the first.
pub(super) fn audit_entries(unlock_id: &str, may_read: bool, entry: i64) -> AnyView {
    if may_read {
        let href = links::with_query("/audit", [("unlockId", unlock_id)]);
        return view! { <a class="link" href=href>"Audit entries"</a> }.into_any();
    }
    view! { <span class="ink3">{format!("Audit log from entry {entry}")}</span> }.into_any()
}

/// A link that reads the page's data again; without a script, the page.
pub(super) fn read_again(href: String, label: &'static str, read: Callback<()>) -> AnyView {
    let again = move |event: leptos::ev::MouseEvent| {
        event.prevent_default();
        read.run(());
    };
    view! { <a class="link" href=href rel="external" on:click=again>{label}</a> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "ssr")]
    #[test]
    fn a_result_of_another_day_has_its_date() {
        // An unlock at 03:12 whose page is opened on that day and on the next.
        let at = DateTime::from_timestamp(1_772_334_761, 0).unwrap();
        let shown = |today: NaiveDate| {
            let steps = move || vec![("Released".to_owned(), Some(at))];
            crate::charts::tests::html(move || order(steps(), today))
        };
        let html = shown(at.date_naive());
        assert!(html.contains(">03:12:41 UTC</time>"), "{html}");
        let html = shown(at.date_naive().succ_opt().unwrap());
        assert!(html.contains(">2026-03-01 03:12:41 UTC</time>"), "{html}");
    }

    #[test]
    fn a_clause_becomes_a_sentence() {
        assert_eq!(sentence("this name is protected"), "This name is protected.");
        assert_eq!(sentence("Really?"), "Really?");
        assert_eq!(sentence("a\u{202e}b"), "A\\u{202e}b.");
        assert_eq!(sentence(""), "");
    }
}
