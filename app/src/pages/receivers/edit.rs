//! `/alerts/receivers/{name}`: change, test or remove one receiver.

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use super::test_result::TestForm;
use super::{Secret, TOPICS, Urls, kind_label, last_status, path};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState};
use crate::forms::field::SubmitButton;
use crate::layout::SettingsLayout;
use crate::live::use_live;
use crate::pages::receivers::data::{ReceiverData, ReceiverRow, receiver};

#[component]
pub fn ReceiverPage() -> impl IntoView {
    let params = use_params_map();
    // During navigation the page outlives its URL for a moment.
    let name = Memo::new(move |before: Option<&String>| {
        let name = params.read().get("name");
        name.or_else(|| before.cloned()).unwrap_or_default()
    });
    let load = use_live().refreshing(TOPICS, move || name.get(), receiver);
    view! {
        <PageTitle text=move || name.get()/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<ReceiverData>) -> impl IntoView {
    let (name, kind) = data.with_untracked(|data| (data.row.name.clone(), data.row.kind.clone()));
    let lead = format!("Receiver {name}, kind {}.", kind_label(&kind));
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| title(&data.row))}</h1>
            <p>{lead}</p>
        </div>
        <SettingsLayout>
            <p><a class="link" href="/alerts/receivers">"All receivers"</a></p>
            {changing(move || data.with(facts))}
            <Change name=name.clone() has_secret_field={kind != "slack"}/>
            <div class="acts">
                <div class="act"><TestForm name=name.clone() label="Send a test" class="btn"/><span>"One message, marked as a test."</span></div>
                <ConsoleForm class="act" action=format!("{}/remove", path(&name))>
                    <FormAlert/>
                    <SubmitButton class="btn">"Remove receiver"</SubmitButton><span>{move || data.with(|data| removal_note(&data.row))}</span>
                </ConsoleForm>
            </div>
        </SettingsLayout>
    }
    .into_any()
}

#[component]
fn Change(name: String, has_secret_field: bool) -> impl IntoView {
    let action = path(&name);
    view! {
        <section class="panel" aria-labelledby="change">
            <header><h2 id="change">"Configuration"</h2></header>
            <ConsoleForm action=action.clone() stays=true state=FormState::of_action(&action)>
                <FormAlert/>
                <Urls help="Leave empty to keep the current value." is_required=false/>
                {has_secret_field.then(|| view! { <Secret help="Leave empty to keep the current secret; a new host or port needs it again."/> }.into_any())}
                <div class="do"><SubmitButton>"Save"</SubmitButton></div>
            </ConsoleForm>
        </section>
    }
    .into_any()
}

fn title(row: &ReceiverRow) -> String {
    match (&row.fault, row.last_ok_at) {
        (Some(_), _) => format!("Last notification to {} failed", row.name),
        (None, Some(_)) => format!("Last notification to {} delivered", row.name),
        (None, None) => format!("No notifications to {} yet", row.name),
    }
}

/// Messages and notifications that are lost by removing the receiver.
fn removal_note(row: &ReceiverRow) -> String {
    let lost = match row.waiting {
        0 => "No message is pending".to_owned(),
        waiting => {
            let messages = format::counted(waiting, "pending message is", "pending messages are");
            format!("{messages} not sent")
        }
    };
    format!("{lost}. The receiver is not notified when alerts that it has received resolve.")
}

fn facts(data: &ReceiverData) -> AnyView {
    let row = &data.row;
    let urls = row
        .urls
        .iter()
        .map(|url| view! { <bdi class="mono">{url.clone()}</bdi> }.into_any());
    let secret = match (row.kind.as_str(), row.has_secret) {
        ("slack", _) => "its address is its secret",
        ("alertmanager", true) => "a bearer token is set",
        (_, true) => "set; each message is signed with it",
        (_, false) => "none",
    };
    view! {
        <dl class="facts-flat">
            <div><dt>"to"</dt><dd class="to">{urls.collect_view()}</dd></div>
            <div><dt>"secret"</dt><dd>{secret}</dd></div>
            <div><dt>"last message"</dt><dd>{last_status(row, data.now)}</dd></div>
            <div><dt>"pending"</dt><dd>{row.waiting}</dd></div>
            <div><dt>"dead letters"</dt><dd>{row.dead}</dd></div>
        </dl>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_removal_names_what_is_lost() {
        let note = |waiting| {
            removal_note(&ReceiverRow {
                waiting,
                ..ReceiverRow::default()
            })
        };
        let end = ". The receiver is not notified when alerts that it has received resolve.";
        assert_eq!(note(0), format!("No message is pending{end}"));
        assert_eq!(note(1), format!("1\u{a0}pending message is not sent{end}"));
        assert_eq!(note(3), format!("3\u{a0}pending messages are not sent{end}"));
    }
}
