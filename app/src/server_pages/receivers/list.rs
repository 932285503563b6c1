//! `/alerts/receivers`: all receivers with their last delivery, and the form that adds one.

use domain::escape::visible;
use domain::format;
use leptos::prelude::*;

use super::deliveries::{dead, latest};
use super::{Message, ReceiverInput, ReceiverRow, kind_word, path, secret_field, urls_field};
use crate::components::state_badge::Shape;
use crate::server_pages::field::{Field, alert, choice, done};
use crate::server_pages::layout::{Chrome, Page, page};
use crate::server_pages::settings::ago;

#[derive(Debug, Clone, Default)]
pub struct Receivers {
    pub rows: Vec<ReceiverRow>,
    pub dead: Vec<Message>,
    pub latest: Vec<Message>,
    pub now: i64,
    pub typed: ReceiverInput,
    pub refusal: Option<String>,
    pub done: Option<String>,
}

pub fn receivers(chrome: &Chrome, receivers: &Receivers) -> String {
    let content = view! {
        {alert(receivers.refusal.clone())}
        {done(receivers.done.clone())}
        <div class="with-form">
            <div class="stack">
                <section class="sec">
                    <header><h2>"Receivers"</h2><span class="end"><a class="link" href="/alerts">"Alerts and rules"</a></span></header>
                    {list(&receivers.rows, receivers.now)}
                </section>
                {dead(&receivers.dead, receivers.now)}
                {latest(&receivers.latest, !receivers.dead.is_empty(), receivers.now)}
            </div>
            {add(&receivers.typed)}
        </div>
    };
    page(
        chrome,
        Page {
            title: title(&receivers.rows),
            lead: Some(
                "A notification is retried until its receiver accepts it; after the retry time it becomes a dead letter."
                    .to_owned(),
            ),
            content: content.into_any(),
        },
    )
}

fn title(rows: &[ReceiverRow]) -> String {
    let silent: Vec<&ReceiverRow> = rows.iter().filter(|row| row.fault.is_some()).collect();
    let dead: u64 = rows.iter().map(|row| row.dead).sum();
    match (rows.len(), silent.as_slice()) {
        (0, _) => "No receivers".to_owned(),
        (_, [one]) => format!("Last notification to {} failed", one.name),
        (all, [_, ..]) => format!("Last notification to {} of {all} receivers failed", silent.len()),
        _ if dead > 0 => format::counted(dead, "dead letter", "dead letters"),
        (1, _) => format!(
            "Notifications go to {}",
            rows.first().map_or("", |row| row.name.as_str())
        ),
        (all, _) => format!("Notifications go to {all} receivers"),
    }
}

fn list(rows: &[ReceiverRow], now: i64) -> AnyView {
    if rows.is_empty() {
        return view! { <p class="ink2 none-here">"None yet. Alerts and break-glass unlocks are shown only in this console."</p> }.into_any();
    }
    let lines = rows.iter().map(|row| line(row, now));
    view! {
        <div class="scroll">
            <table class="t st-table receivers">
                <thead><tr><th scope="col">"name"</th><th scope="col" class="to">"to"</th><th scope="col">"last message"</th>
                    <th scope="col" class="num">"waiting"</th><th scope="col" class="num">"dead"</th>
                    <th scope="col"><span class="sr">"acts"</span></th></tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn line(row: &ReceiverRow, now: i64) -> AnyView {
    let test = format!("{}/test", path(&row.name));
    let urls = row
        .urls
        .iter()
        .map(|url| view! { <bdi class="mono">{url.clone()}</bdi> });
    let count = |count: u64| {
        let class = if count == 0 { "num ink3" } else { "num" };
        view! { <td class=class>{format::count(count)}</td> }
    };
    view! {
        <tr>
            <th scope="row"><a class="link mono" href=path(&row.name)>{row.name.clone()}</a><small>{kind_word(row.kind)}</small></th>
            <td class="wrap to">{urls.collect_view()}</td>
            <td class="wrap">{last(row, now)}</td>
            {count(row.waiting)}
            {count(row.dead)}
            <td class="num"><form method="post" action=test><button class="btn s" r#type="submit" aria-label=format!("Test {}", row.name)>"Test"</button></form></td>
        </tr>
    }
    .into_any()
}

/// Status of the last delivery.
pub(super) fn last(row: &ReceiverRow, now: i64) -> AnyView {
    match (&row.fault, row.last_ok_at) {
        (Some(fault), _) => {
            let fault = visible(fault).into_owned();
            view! { <span class="st critical"><Shape name="not_renewing"/>"failed"</span>" "{ago(row.last_fault_at, now, "")}<small class="ink2 fault-said">{fault}</small> }.into_any()
        }
        (None, Some(_)) => {
            view! { <span class="st healthy quiet"><Shape name="ok"/>"delivered"</span>" "{ago(row.last_ok_at, now, "")} }.into_any()
        }
        (None, None) => view! { <span class="st blind"><Shape name="unknown"/>"nothing sent yet"</span> }.into_any(),
    }
}

fn add(typed: &ReceiverInput) -> AnyView {
    let name = Field {
        help: Some("a-z, 0-9 and -; used in rules."),
        fault: typed.fault_of("name"),
        ..Field::text("name", "Name", typed.name.clone())
    };
    let kinds =
        ["webhook", "alertmanager", "slack"].map(|kind| (kind.to_owned(), kind_word(kind).to_owned()));
    view! {
        <section class="panel" aria-labelledby="add">
            <header><h2 id="add">"Add a receiver"</h2></header>
            <form method="post" action="/alerts/receivers">
                {name.view()}
                {choice("kind", "Kind", kinds.to_vec(), &typed.kind)}
                {urls_field(typed, true)}
                {secret_field(typed, true)}
                <div class="do"><button class="btn solid" r#type="submit">"Add receiver"</button></div>
                <p class="small ink2">"Internal addresses are refused unless `[notify] allowed_networks` contains them. Then send a test: it shows the request and the response."</p>
            </form>
        </section>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_summarizes_the_receivers() {
        // None, one, several; one and several that failed; dead letters of receivers that
        // answer again.
        let row = |name: &str, fault: Option<&str>, dead| ReceiverRow {
            name: name.to_owned(),
            fault: fault.map(str::to_owned),
            dead,
            ..ReceiverRow::default()
        };
        let (fine, silent) = (row("a", None, 0), row("b", Some("answered 500"), 0));
        assert_eq!(title(&[]), "No receivers");
        assert_eq!(title(std::slice::from_ref(&fine)), "Notifications go to a");
        assert_eq!(
            title(&[fine.clone(), fine.clone()]),
            "Notifications go to 2 receivers"
        );
        assert_eq!(
            title(&[fine.clone(), silent.clone()]),
            "Last notification to b failed"
        );
        let several = [fine.clone(), silent.clone(), silent];
        assert_eq!(title(&several), "Last notification to 2 of 3 receivers failed");
        assert_eq!(title(&[fine, row("c", None, 1)]), "1 dead letter");
    }
}
