//! Sessions of users, and ending them.

use domain::escape::visible;
use leptos::prelude::*;

use super::TOPICS;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::relative_time::age;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert};
use crate::forms::field::SubmitButton;
use crate::layout::SettingsLayout;
use crate::live::use_live;
use crate::pages::settings::data::{SessionRow, SessionsData, sessions};

#[component]
pub fn SessionsPage() -> impl IntoView {
    let load = use_live().refreshing(TOPICS, || (), |()| sessions());
    view! {
        <PageTitle text="Sessions"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<SessionsData>) -> impl IntoView {
    let rows = Signal::derive(move || data.with(|data| (data.rows.clone(), data.now)));
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| title(&data.rows))}</h1>
            <p>"A session ends after 30 minutes without use and after 12 hours. A session that you end here stops within a second."</p>
        </div>
        <SettingsLayout>
            <section class="sec">
                <header><h2>"Sessions"</h2></header>
                <SessionTable rows/>
            </section>
        </SettingsLayout>
    }
    .into_any()
}

fn title(rows: &[SessionRow]) -> String {
    let mut users: Vec<&str> = rows.iter().map(|row| row.user.as_str()).collect();
    users.sort_unstable();
    users.dedup();
    format!(
        "{} signed in, with {}",
        format::counted(users.len() as u64, "user is", "users are"),
        format::counted(rows.len() as u64, "session", "sessions")
    )
}

/// Sessions with the server's time.
#[component]
pub(super) fn SessionTable(rows: Signal<(Vec<SessionRow>, i64)>) -> impl IntoView {
    view! {
        <div class="scroll" tabindex="0" role="region" aria-label="Sessions">
            <table class="t st-table">
                <thead><tr><th scope="col">"user"</th><th scope="col">"signed in by"</th><th scope="col">"from"</th>
                    <th scope="col">"browser"</th><th scope="col">"began"</th><th scope="col">"last used"</th>
                    <th scope="col"><span class="sr">"action"</span></th></tr></thead>
                <tbody>
                    <For each=move || rows.with(|(rows, _)| rows.clone()) key=|row| row.id.clone() let:row>
                        <Row row rows/>
                    </For>
                </tbody>
            </table>
        </div>
    }
    .into_any()
}

/// Only the last use of a session changes.
#[component]
fn Row(row: SessionRow, rows: Signal<(Vec<SessionRow>, i64)>) -> impl IntoView {
    let id = row.id.clone();
    let seen = Memo::new(move |before: Option<&(i64, i64)>| {
        rows.with(|(rows, now)| {
            let row = rows.iter().find(|row| row.id == id);
            let before = before.copied().unwrap_or_default();
            row.map_or(before, |row| (row.seen_at, *now))
        })
    });
    let agent = row.user_agent.as_deref().map(|agent| visible(agent).into_owned());
    let now = rows.with_untracked(|(_, now)| *now);
    view! {
        <tr>
            <th scope="row">{row.user.clone()}</th>
            <td>{row.sign_in_method.clone()}</td>
            <td class="mono">{row.ip.clone().unwrap_or_else(|| "unknown".to_owned())}</td>
            <td class="agent"><bdi title=agent.clone()>{agent.clone().unwrap_or_else(|| "unknown".to_owned())}</bdi></td>
            <td>{age(Some(row.created_at), now, "")}</td>
            <td>{changing(move || { let (at, now) = seen.get(); age(Some(at), now, "") })}</td>
            <td class="num">{end(&row)}</td>
        </tr>
    }
    .into_any()
}

fn end(row: &SessionRow) -> AnyView {
    if row.is_current {
        return view! { <span class="ink2">"this one"</span> }.into_any();
    }
    let from = row.ip.as_deref().unwrap_or("an unknown address");
    let label = format!("End the session of {} from {from}", row.user);
    view! {
        <ConsoleForm action=format!("/settings/sessions/{}/end", row.id) stays=true>
            <FormAlert/>
            <SubmitButton class="btn s" aria_label=label>"End"</SubmitButton>
        </ConsoleForm>
    }
    .into_any()
}
