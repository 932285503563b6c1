//! The user's own account: permissions, password, sessions.

use leptos::prelude::*;

use super::TOPICS;
use super::grants::grant_list;
use super::sessions::SessionTable;
use crate::components::fact_list::Facts;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::relative_time::age;
use crate::components::title::PageTitle;
use crate::forms::console_form::{ConsoleForm, FormAlert};
use crate::forms::field::{PasswordField, SubmitButton};
use crate::layout::SettingsLayout;
use crate::live::use_live;
use crate::pages::settings::data::{AccountData, account};
use crate::session::use_session;

#[component]
pub fn AccountPage() -> impl IntoView {
    let load = use_live().refreshing(TOPICS, || (), |()| account());
    view! {
        <PageTitle text="Settings"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<AccountData>) -> impl IntoView {
    let session = use_session();
    let name = session.with_untracked(|session| session.user.clone().unwrap_or_default());
    let rows = Signal::derive(move || data.with(|data| (data.sessions.clone(), data.now)));
    let password = Memo::new(move |_| data.with(|data| (data.is_managed, data.has_password)));
    view! {
        <div class="pagehead"><h1>{format!("You are {name}")}</h1></div>
        <SettingsLayout>
            {changing(move || data.with(facts))}
            <section class="sec">
                <header><h2>"Your sessions"</h2></header>
                <SessionTable rows/>
            </section>
            {changing(move || {
                let (is_managed, has_password) = password.get();
                (!is_managed).then(|| password_form(has_password))
            })}
        </SettingsLayout>
    }
    .into_any()
}

fn facts(data: &AccountData) -> AnyView {
    let cells = vec![
        ("you may act as", grant_list(&data.grants)),
        ("signed in by", data.sign_in_method.clone().into_any()),
        ("authenticated", age(data.authenticated_at, data.now, "never")),
    ];
    view! { <Facts cells/> }.into_any()
}

fn password_form(has_password: bool) -> AnyView {
    let title = if has_password {
        "Change your password"
    } else {
        "Choose a password"
    };
    view! {
        <section class="panel" aria-labelledby="password-title">
            <header><h2 id="password-title">{title}</h2></header>
            <ConsoleForm action="/settings/password">
                <FormAlert/>
                {has_password.then(|| view! { <PasswordField name="old" label="Current password" autocomplete="current-password"/> }.into_any())}
                <PasswordField name="password" label="New password" autocomplete="new-password"
                    help="At least 12 characters; several words make a good one."/>
                <div class="do"><SubmitButton>{title}</SubmitButton></div>
                <p class="small ink2">"This ends your other sessions."</p>
            </ConsoleForm>
        </section>
    }
    .into_any()
}
