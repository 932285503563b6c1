//! API tokens: permissions, last use, creation.

use domain::access::Role;
use leptos::prelude::*;

use super::TOPICS;
use super::grants::{GrantRow, grant_list};
use super::secret_panel::{CREATED_NAME, SECRET, SecretPanel};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::relative_time::age;
use crate::components::state_badge::Shape;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState};
use crate::forms::field::{ChoiceField, FieldNote, SubmitButton, TextField, note_id, options_view};
use crate::layout::SettingsLayout;
use crate::live::use_live;
use crate::pages::settings::data::{TokenRow, TokensData, tokens};

const ACTION: &str = "/settings/tokens";
/// Value in days and label; empty: until revoked.
const LIFETIMES: [(&str, &str); 5] = [
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
    ("365", "a year"),
    ("", "until it is revoked"),
];
/// A token that expires within this time is marked, in milliseconds.
const EXPIRES_SOON_MS: i64 = 7 * 86_400_000;

#[component]
pub fn TokensPage() -> impl IntoView {
    let load = use_live().refreshing(TOPICS, || (), |()| tokens());
    view! {
        <PageTitle text="API tokens"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<TokensData>) -> impl IntoView {
    let state = FormState::of_action(ACTION);
    let active = Signal::derive(move || data.with(|data| rows_where(data, true)));
    let ended = Signal::derive(move || data.with(|data| rows_where(data, false)));
    let ended_count = Memo::new(move |_| ended.with(|(rows, _)| rows.len()));
    view! {
        <div class="pagehead">
            <h1>{move || data.with(title)}</h1>
            <p>"Programs use a token to hold leases and read the inventory within its prefixes. Last use is updated within 5\u{a0}s. Revoking a token ends the tokens, sign-in links and sessions that came from it too."</p>
        </div>
        <SettingsLayout>
            <div class="with-form">
                <div class="stack">
                    <section class="sec">
                        <header><h2>"API tokens"</h2><span class="end">{move || active.with(|(rows, _)| format::counted(rows.len() as u64, "row", "rows"))}</span></header>
                        <List rows=active state/>
                    </section>
                    {move || (ended_count.get() > 0).then(|| view! {
                        <details class="sec">
                            <summary class="ink2">{move || format::counted(ended_count.get() as u64, "token", "tokens")}" that expired or were revoked"</summary>
                            <List rows=ended state/>
                        </details>
                    }.into_any())}
                </div>
                <Create data state/>
            </div>
        </SettingsLayout>
    }
    .into_any()
}

type Rows = (Vec<TokenRow>, i64);

fn rows_where(data: &TokensData, is_active: bool) -> Rows {
    let rows = data
        .rows
        .iter()
        .filter(|row| row.is_active(data.now) == is_active);
    (rows.cloned().collect(), data.now)
}

fn title(data: &TokensData) -> String {
    let active: Vec<&TokenRow> = data.rows.iter().filter(|row| row.is_active(data.now)).collect();
    let unused = active.iter().filter(|row| row.used_at.is_none()).count();
    let endless = active.iter().filter(|row| row.expires_at.is_none()).count();
    if active.is_empty() {
        return "No API tokens".to_owned();
    }
    let mut title = format::counted(active.len() as u64, "active token", "active tokens");
    if unused > 0 {
        title = format!("{title}, {unused} never used");
    }
    if endless > 0 {
        title = format!("{title}, {endless} without expiry");
    }
    title
}

#[component]
fn List(rows: Signal<Rows>, state: FormState) -> impl IntoView {
    let is_empty = Memo::new(move |_| rows.with(|(rows, _)| rows.is_empty()));
    changing(move || {
        if is_empty.get() {
            return view! { <p class="ink2 none-here">"None yet."</p> }.into_any();
        }
        view! {
            <div class="scroll">
                <table class="t st-table">
                    <thead><tr><th scope="col">"name"</th><th scope="col">"may act as"</th><th scope="col">"last used"</th>
                        <th scope="col">"expiry"</th><th scope="col">"created"</th><th scope="col"><span class="sr">"action"</span></th></tr></thead>
                    <tbody>
                        <For each=move || rows.with(|(rows, _)| rows.clone()) key=|row| row.id.clone() let:row>
                            <Row row rows state/>
                        </For>
                    </tbody>
                </table>
            </div>
        }
        .into_any()
    })
}

#[component]
fn Row(row: TokenRow, rows: Signal<Rows>, state: FormState) -> impl IntoView {
    let (id, first) = (row.id.clone(), row.clone());
    let current = Memo::new(move |_| {
        rows.with(|(rows, now)| {
            let row = rows.iter().find(|row| row.id == id);
            (row.unwrap_or(&first).clone(), *now)
        })
    });
    let name = row.name.clone();
    let is_new = move || state.value(CREATED_NAME).is_some_and(|created| created == name);
    let now = rows.with_untracked(|(_, now)| *now);
    let revoke = row.is_active(now).then(|| {
        let label = format!("Revoke {}", row.name);
        view! {
            <ConsoleForm action=format!("{ACTION}/{}/revoke", row.id) stays=true>
                <FormAlert/>
                <SubmitButton class="btn s" aria_label=label>"Revoke"</SubmitButton>
            </ConsoleForm>
        }
        .into_any()
    });
    view! {
        <tr class:is-new=is_new>
            {changing(move || current.with(|(row, now)| cells(row, *now)))}
            <td class="num">{revoke}</td>
        </tr>
    }
    .into_any()
}

fn cells(row: &TokenRow, now: i64) -> AnyView {
    let successor = row
        .successor_of
        .as_ref()
        .map(|name| view! { <small>{format!("successor of {name}")}</small> }.into_any());
    let by = match &row.root {
        Some(root) => format!(" by {}, for {root}", row.created_by),
        None => format!(" by {}", row.created_by),
    };
    view! {
        <th scope="row">{row.name.clone()}{successor}</th>
        <td class="wrap">{grant_list(&row.grants)}</td>
        <td>{age(row.used_at, now, "never")}</td>
        <td>{expiry(row, now)}</td>
        <td class="wrap">{age(Some(row.created_at), now, "")}<span class="ink2">{by}</span></td>
    }
    .into_any()
}

/// Only a defect has a colour.
fn expiry(row: &TokenRow, now: i64) -> AnyView {
    match (row.revoked_at, row.expires_at) {
        (Some(at), _) => view! { "revoked "{age(Some(at), now, "")} }.into_any(),
        (None, None) => {
            view! { <span class="st warning"><Shape name="no_ttl"/>"no expiry"</span> }.into_any()
        }
        (None, Some(at)) if (now..now + EXPIRES_SOON_MS).contains(&at) => {
            view! { <span class="st warning"><Shape name="near_expiry"/>{age(Some(at), now, "")}</span> }
                .into_any()
        }
        (None, at) => age(at, now, ""),
    }
}

/// The form, or the secret of the token that it created.
#[component]
fn Create(data: Signal<TokensData>, state: FormState) -> impl IntoView {
    let secret = Memo::new(move |_| state.value(SECRET));
    changing(move || match secret.get() {
        Some(secret) => {
            let name = state.value(CREATED_NAME).unwrap_or_default();
            let lines = vec![
                ("environment", format!("LEASEHOLD_TOKEN={secret}")),
                ("check", "leasehold locks".to_owned()),
            ];
            view! {
                <SecretPanel state title=format!("Token {name} created") secret lines
                    note="Only its hash is stored: a lost token cannot be recovered, only replaced. Programs send it as Authorization: Bearer; leasehold run and leasehold locks read it from LEASEHOLD_TOKEN."/>
            }
            .into_any()
        }
        None => untrack(|| form(data, state)),
    })
}

fn form(data: Signal<TokensData>, state: FormState) -> AnyView {
    let (backends, names) = data.with_untracked(|data| {
        let names: Vec<String> = data.rows.iter().map(|row| row.name.clone()).collect();
        (data.backends.clone(), names)
    });
    let lifetimes = LIFETIMES.map(|(days, label)| (days.to_owned(), label.to_owned()));
    let none = (String::new(), "no other token".to_owned());
    let predecessors = std::iter::once(none).chain(names.into_iter().map(|name| (name.clone(), name)));
    let predecessor = state.typed_value("successor_of", "");
    view! {
        <section class="panel" aria-labelledby="create">
            <header><h2 id="create">"Create token"</h2></header>
            <ConsoleForm action=ACTION stays=true state>
                <FormAlert/>
                <TextField name="name" label="Name" help="The service that uses it, as named in the audit log."/>
                <GrantRow role=Role::Client backends/>
                <ChoiceField name="days" label="Valid for" options=lifetimes.to_vec() chosen="90"/>
                <div class="entry">
                    <label for="successor_of">"Successor of"</label>
                    <select id="successor_of" name="successor_of" aria-describedby=note_id("successor_of")>{options_view(predecessors.collect(), &predecessor)}</select>
                    <FieldNote name="successor_of" help=Some("Inherits the leases of the replaced token, within its own prefixes.".to_owned())/>
                </div>
                <div class="do"><SubmitButton>"Create token"</SubmitButton></div>
            </ConsoleForm>
        </section>
    }
    .into_any()
}
