//! All users, and adding one.

use domain::access::Role;
use leptos::prelude::*;

use super::TOPICS;
use super::grants::{GrantRow, grant_list};
use super::secret_panel::{CREATED_NAME, SECRET, SecretPanel};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::relative_time::age;
use crate::components::title::PageTitle;
use crate::focus::keep_focus;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState};
use crate::forms::field::{SubmitButton, TextField};
use crate::layout::SettingsLayout;
use crate::live::use_live;
use crate::pages::settings::data::{UserRow, UsersData, users};

const ACTION: &str = "/settings/users";

#[component]
pub fn UsersPage() -> impl IntoView {
    let load = use_live().refreshing(TOPICS, || (), |()| users());
    view! {
        <PageTitle text="Users"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<UsersData>) -> impl IntoView {
    let state = FormState::of_action(ACTION);
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| title(&data.rows))}</h1>
            <p>"Accounts and their roles by backend and prefix. Every change is in the audit log."</p>
        </div>
        <SettingsLayout>
            <div class="with-form">
                <section class="sec">
                    <header><h2>"Users"</h2><span class="end">{move || data.with(|data| format::counted(data.rows.len() as u64, "row", "rows"))}</span></header>
                    <List data/>
                </section>
                <Add data state/>
            </div>
        </SettingsLayout>
    }
    .into_any()
}

fn title(rows: &[UserRow]) -> String {
    let enabled = rows.iter().filter(|row| !row.is_disabled).count();
    let admins = rows.iter().filter(|row| is_admin(row)).count();
    format!(
        "{}, {} of them {}",
        format::counted(enabled as u64, "user may sign in", "users may sign in"),
        format::count(admins as u64),
        if admins == 1 { "an admin" } else { "admins" }
    )
}

fn is_admin(row: &UserRow) -> bool {
    let mut grants = row.grants.iter();
    !row.is_disabled && grants.any(|grant| grant.role == Role::Admin && grant.is_global())
}

#[component]
fn List(data: Signal<UsersData>) -> impl IntoView {
    let rows = move || {
        keep_focus();
        data.with(|data| data.rows.clone())
    };
    view! {
        <div class="scroll">
            <table class="t st-table">
                <thead><tr><th scope="col">"name"</th><th scope="col">"may act as"</th><th scope="col">"signs in by"</th>
                    <th scope="col">"last seen"</th><th scope="col"><span class="sr">"state"</span></th></tr></thead>
                <tbody>
                    <For each=rows key=|row| row.id.clone() let:row>
                        <Row row data/>
                    </For>
                </tbody>
            </table>
        </div>
    }
    .into_any()
}

#[component]
fn Row(row: UserRow, data: Signal<UsersData>) -> impl IntoView {
    let (id, first) = (row.id.clone(), row);
    let current = Memo::new(move |_| {
        data.with(|data| {
            let row = data.rows.iter().find(|row| row.id == id);
            (row.unwrap_or(&first).clone(), data.now)
        })
    });
    let is_off = move || current.with(|(row, _)| row.is_disabled);
    view! { <tr class:is-off=is_off>{changing(move || current.with(|(row, now)| cells(row, *now)))}</tr> }
        .into_any()
}

fn cells(row: &UserRow, now: i64) -> AnyView {
    let state = if row.is_disabled { "disabled" } else { "" };
    view! {
        <th scope="row"><a class="link" href=format!("{ACTION}/{}", row.id)>{row.name.clone()}</a></th>
        <td class="wrap">{grant_list(&row.grants)}</td>
        <td>{row.sign_in_method.clone()}</td>
        <td>{age(row.seen_at, now, "not signed in")}</td>
        <td>{state}</td>
    }
    .into_any()
}

/// The form, or the sign-in link of the user that it added.
#[component]
fn Add(data: Signal<UsersData>, state: FormState) -> impl IntoView {
    let link = Memo::new(move |_| state.value(SECRET));
    changing(move || match link.get() {
        Some(secret) => {
            let name = state.value(CREATED_NAME).unwrap_or_default();
            view! {
                <SecretPanel state title=format!("User {name} added") secret
                    note="Send them this link: it signs them in once, within an hour. They set their password under Settings."/>
            }
            .into_any()
        }
        None => untrack(|| form(data, state)),
    })
}

fn form(data: Signal<UsersData>, state: FormState) -> AnyView {
    let backends = data.with_untracked(|data| data.backends.clone());
    view! {
        <section class="panel" aria-labelledby="add">
            <header><h2 id="add">"Add user"</h2></header>
            <ConsoleForm action=ACTION stays=true state>
                <FormAlert/>
                <TextField name="name" label="Name" help="Letters, digits and -_.@+"/>
                <GrantRow role=Role::Viewer backends/>
                <div class="do"><SubmitButton>"Add user"</SubmitButton></div>
            </ConsoleForm>
        </section>
    }
    .into_any()
}
