//! Receivers: notification targets with their last delivery, dead letters, and the form that adds
//! one.
//!
//! Secrets and secret URLs are write-only in these forms.

pub mod data;
mod deliveries;
pub mod edit;
pub mod test_result;

use domain::escape::visible;
use leptos::context::Provider;
use leptos::prelude::*;

use self::data::{ReceiverRow, ReceiversData, receivers};
use self::deliveries::{RETRY, dead, latest};
use self::test_result::TestForm;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::{changing, keyed};
use crate::components::relative_time::RelativeTime;
use crate::components::state_badge::Shape;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState};
use crate::forms::field::{
    ChoiceField, FieldNote, PasswordField, SubmitButton, TextField, is_invalid, note_id,
};
use crate::layout::SettingsLayout;
use crate::live::topics::Topics;
use crate::live::use_live;

const TOPICS: Topics = Topics::ALERTS.and(Topics::ACTIVITY);

#[component]
pub fn ReceiversPage() -> impl IntoView {
    let load = use_live().refreshing(TOPICS, || (), |()| receivers());
    view! {
        <PageTitle text="Receivers"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<ReceiversData>) -> impl IntoView {
    let retry = FormState::of_rows(RETRY);
    let lead = "A notification is retried until its receiver accepts it; after the retry time it becomes a dead letter.";
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| title(&data.rows))}</h1>
            <p>{lead}</p>
        </div>
        <SettingsLayout>
            <div class="with-form">
                <div class="stack">
                    <section class="sec">
                        <header><h2>"Receivers"</h2><a class="end link" href="/alerts">"Alerts and rules"</a></header>
                        <List data/>
                    </section>
                    <Provider value=retry><FormAlert/></Provider>
                    {move || data.with(|data| dead(&data.dead, data.now, retry))}
                    {move || data.with(|data| latest(&data.latest, !data.dead.is_empty(), data.now, retry))}
                </div>
                <Add/>
            </div>
        </SettingsLayout>
    }
    .into_any()
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

/// URL of the receiver's page.
pub fn path(name: &str) -> String {
    format!("/alerts/receivers/{name}")
}

/// For display: `Alertmanager`.
pub(super) fn kind_label(kind: &str) -> &'static str {
    match kind {
        "alertmanager" => "Alertmanager",
        "slack" => "Slack",
        _ => "webhook",
    }
}

#[component]
fn List(data: Signal<ReceiversData>) -> impl IntoView {
    let names = Memo::new(move |_| {
        data.with(|data| {
            let names = data.rows.iter().map(|row| row.name.clone());
            names.collect::<Vec<String>>()
        })
    });
    let is_empty = Memo::new(move |_| names.with(Vec::is_empty));
    changing(move || {
        if is_empty.get() {
            return view! { <p class="ink2 none-here">"None yet. Alerts and break-glass unlocks are shown only in this console."</p> }.into_any();
        }
        view! {
            <div class="scroll">
                <table class="t st-table receivers">
                    <thead><tr><th scope="col">"name"</th><th scope="col" class="to">"to"</th><th scope="col">"last message"</th>
                        <th scope="col" class="num">"pending"</th><th scope="col" class="num">"dead letters"</th>
                        <th scope="col"><span class="sr">"acts"</span></th></tr></thead>
                    <tbody>
                        {keyed(names, move |name| view! { <Row name data/> }.into_any())}
                    </tbody>
                </table>
            </div>
        }
        .into_any()
    })
}

#[component]
fn Row(name: String, data: Signal<ReceiversData>) -> impl IntoView {
    let row = {
        let name = name.clone();
        Memo::new(move |_| {
            data.with(|data| {
                let row = data.rows.iter().find(|row| row.name == name).cloned();
                (row.unwrap_or_default(), data.now)
            })
        })
    };
    let cells = move || row.with(|(row, now)| cells(row, *now));
    view! {
        <tr>
            {changing(cells)}
            <td class="num"><TestForm name label="Test" class="btn s"/></td>
        </tr>
    }
    .into_any()
}

fn cells(row: &ReceiverRow, now: i64) -> AnyView {
    let urls = row
        .urls
        .iter()
        .map(|url| view! { <bdi class="mono">{url.clone()}</bdi> }.into_any());
    let count = |count: u64| {
        let class = if count == 0 { "num ink3" } else { "num" };
        view! { <td class=class>{format::count(count)}</td> }.into_any()
    };
    view! {
        <th scope="row"><a class="link mono" href=path(&row.name)>{row.name.clone()}</a><small>{kind_label(&row.kind)}</small></th>
        <td class="wrap to">{urls.collect_view()}</td>
        <td class="wrap">{last_status(row, now)}</td>
        {count(row.waiting)}
        {count(row.dead)}
    }
    .into_any()
}

/// Status of the last delivery.
pub(super) fn last_status(row: &ReceiverRow, now: i64) -> AnyView {
    match (&row.fault, row.last_ok_at) {
        (Some(fault), _) => {
            let fault = visible(fault).into_owned();
            let at = row.last_fault_at.map(|at| view! { <RelativeTime at now/> }.into_any());
            view! { <span class="st critical"><Shape name="not_renewing"/>"failed"</span>" "{at}<small class="ink2 fault-said">{fault}</small> }.into_any()
        }
        (None, Some(at)) => {
            view! { <span class="st healthy quiet"><Shape name="ok"/>"delivered"</span>" "<RelativeTime at now/> }.into_any()
        }
        (None, None) => view! { <span class="st blind"><Shape name="unknown"/>"nothing sent yet"</span> }.into_any(),
    }
}

#[component]
fn Add() -> impl IntoView {
    let kinds =
        ["webhook", "alertmanager", "slack"].map(|kind| (kind.to_owned(), kind_label(kind).to_owned()));
    view! {
        <section class="panel" aria-labelledby="add">
            <header><h2 id="add">"Add a receiver"</h2></header>
            <ConsoleForm action="/alerts/receivers" stays=true state=FormState::of_action("/alerts/receivers")>
                <FormAlert/>
                <TextField name="name" label="Name" help="a-z, 0-9 and -; used in rules."/>
                <ChoiceField name="kind" label="Kind" options=kinds.to_vec()/>
                <Urls help="HTTPS. Alertmanager: every peer, one per line. Slack: the webhook URL." is_required=true/>
                <Secret help="Webhook: key that signs each message, at least 16 bytes (openssl rand -hex 32). Alertmanager: optional bearer token. Not shown again."/>
                <div class="do"><SubmitButton>"Add receiver"</SubmitButton></div>
                <p class="small ink2">"Internal addresses are refused unless [notify] allowed_networks contains them. After you add the receiver, send a test: it shows the request and the response."</p>
            </ConsoleForm>
        </section>
    }
    .into_any()
}

/// Addresses may be secrets: a refused form does not repeat what was typed.
#[component]
fn Urls(#[prop(into)] help: String, is_required: bool) -> impl IntoView {
    view! {
        <div class="entry">
            <label for="urls">"Address"</label>
            <textarea id="urls" name="urls" rows="3" required=is_required aria-invalid=is_invalid("urls") aria-describedby=note_id("urls")></textarea>
            <FieldNote name="urls" help=Some(help)/>
        </div>
    }
    .into_any()
}

#[component]
fn Secret(#[prop(into)] help: String) -> impl IntoView {
    view! { <PasswordField name="secret" label="Secret" autocomplete="off" help is_optional=true/> }
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
        assert_eq!(title(&[fine, row("c", None, 1)]), "1\u{a0}dead letter");
    }
}
