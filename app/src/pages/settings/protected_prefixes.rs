//! Protected prefixes: names whose forced unlock needs a second approver; and the switch that stops every forced unlock.

use domain::escape::visible;
use domain::unlock::ProtectionLevel;
use leptos::prelude::*;

use super::TOPICS;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert};
use crate::forms::field::{ChoiceField, SubmitButton, TextField};
use crate::layout::SettingsLayout;
use crate::live::use_live;
use crate::pages::settings::data::{ProtectedPrefixRow, ProtectedPrefixesData, protected_prefixes};
use crate::session::use_session;

const ACTION: &str = "/settings/protected-prefixes";
const READ_ONLY: &str = "/settings/protected-prefixes/read-only";

#[component]
pub fn ProtectedPrefixesPage() -> impl IntoView {
    let load = use_live().refreshing(TOPICS, || (), |()| protected_prefixes());
    view! {
        <PageTitle text="Protected prefixes"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<ProtectedPrefixesData>) -> impl IntoView {
    let backends = data.with_untracked(|data| data.backends.clone());
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| title(&data.rows))}</h1>
            <p>"A forced unlock of a protected name needs authentication within the last 15 minutes and a second approver."</p>
        </div>
        <SettingsLayout>
            <div class="with-form">
                <div class="stack">
                    <section class="sec">
                        <header><h2>"Protected prefixes"</h2><span class="end">{move || data.with(|data| format::counted(data.rows.len() as u64, "row", "rows"))}</span></header>
                        <List data/>
                    </section>
                    <p class="ink2">"The longest matching prefix applies. At equal length, an entry for one backend takes precedence over one for every backend, then the stricter one. All other names are standard: one user, a reason and the typed name."</p>
                    <ReadOnlySwitch/>
                </div>
                {form(backends)}
            </div>
        </SettingsLayout>
    }
    .into_any()
}

fn title(rows: &[ProtectedPrefixRow]) -> String {
    let protected = rows
        .iter()
        .filter(|row| row.protection == ProtectionLevel::Protected);
    match protected.count() {
        0 => "No protected prefixes".to_owned(),
        count => format!(
            "{} protected",
            format::counted(count as u64, "prefix is", "prefixes are")
        ),
    }
}

#[component]
fn List(data: Signal<ProtectedPrefixesData>) -> impl IntoView {
    let is_empty = Memo::new(move |_| data.with(|data| data.rows.is_empty()));
    changing(move || {
        if is_empty.get() {
            return view! { <p class="ink2 none-here">"None yet: no name is protected."</p> }.into_any();
        }
        view! {
            <div class="scroll">
                <table class="t st-table">
                    <thead><tr><th scope="col">"prefix"</th><th scope="col">"backend"</th><th scope="col">"protection"</th>
                        <th scope="col"><span class="sr">"action"</span></th></tr></thead>
                    <tbody>
                        <For each=move || data.with(|data| data.rows.clone()) key=|row| (row.id.clone(), row.protection, row.is_exception) let:row>
                            {list_row(&row)}
                        </For>
                    </tbody>
                </table>
            </div>
        }
        .into_any()
    })
}

fn list_row(row: &ProtectedPrefixRow) -> AnyView {
    let name = if row.prefix.is_empty() {
        "every name".to_owned()
    } else {
        visible(&row.prefix).into_owned()
    };
    let label = format!("Remove the protection of {name}");
    let backend = row.backend.clone().unwrap_or_else(|| "every backend".to_owned());
    view! {
        <tr>
            <th scope="row" class="wrap"><bdi class="mono">{name}</bdi></th>
            <td>{backend}</td>
            <td>{row.protection.as_str()}{row.is_exception.then_some(": exception to a protected prefix")}</td>
            <td class="num">
                <ConsoleForm action=format!("{ACTION}/{}/remove", row.id) stays=true>
                    <FormAlert/>
                    <SubmitButton class="btn s" aria_label=label>"Remove"</SubmitButton>
                </ConsoleForm>
            </td>
        </tr>
    }
    .into_any()
}

#[component]
fn ReadOnlySwitch() -> impl IntoView {
    let session = use_session();
    let is_on = Memo::new(move |_| session.with(|session| session.is_read_only));
    let value = move || if is_on.get() { "no" } else { "yes" };
    let label = move || {
        if is_on.get() {
            "Turn read-only mode off"
        } else {
            "Turn read-only mode on"
        }
    };
    view! {
        <section class="panel" aria-labelledby="read-only">
            <header><h2 id="read-only">"Read-only mode"</h2></header>
            <p class="ink2">"While it is on, no forced unlock is possible, nor is one that is in progress completed. Leases and all other pages work as usual."</p>
            <ConsoleForm action=READ_ONLY stays=true>
                <FormAlert/>
                <input type="hidden" name="read_only" value=value/>
                <div class="do"><SubmitButton class="btn">{changing(label)}</SubmitButton></div>
            </ConsoleForm>
        </section>
    }
    .into_any()
}

fn form(backends: Vec<String>) -> AnyView {
    let mut choices = vec![(String::new(), "every backend".to_owned())];
    choices.extend(backends.into_iter().map(|name| (name.clone(), name)));
    let levels = [ProtectionLevel::Protected, ProtectionLevel::Standard]
        .map(|level| (level.as_str().to_owned(), level.as_str().to_owned()));
    view! {
        <section class="panel" aria-labelledby="protect">
            <header><h2 id="protect">"Protect a prefix"</h2></header>
            <ConsoleForm action=ACTION stays=true>
                <FormAlert/>
                <TextField name="prefix" label="Prefix" is_optional=true
                    help="Matches whole segments: jobs/billing covers jobs/billing/1, not jobs/billing2. Empty: every name."/>
                <ChoiceField name="backend" label="Backend" options=choices/>
                <ChoiceField name="protection" label="Protection" options=levels.to_vec()/>
                <div class="do"><SubmitButton>"Set protection"</SubmitButton></div>
                <p class="small ink2">"Replaces the current protection of this prefix at once; a stricter one also applies to open intents."</p>
            </ConsoleForm>
        </section>
    }
    .into_any()
}
