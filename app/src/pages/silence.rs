//! A new silence: a drawer over the alerts, started from an alert, a group, a rule or another
//! silence. Matchers are chips, lengths are picked, the covered alerts are listed live.

pub mod chips;
pub mod covered;
pub mod length;
pub mod silence_draft;

use std::time::Duration;

use leptos::ev::Event;
use leptos::leptos_dom::helpers::debounce;
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use wasm_bindgen::JsCast;
use web_sys::HtmlFormElement;

use self::chips::Chips;
use self::covered::Covered;
use self::length::Length;
use super::alerts::Board;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState};
use crate::forms::field::TextArea;
use crate::forms::submit;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::pages::alerts::data::silence_preview;
use crate::pages::silence::silence_draft::{ACTION, LENGTHS, OWN, SilenceFields, UNTIL_NINE};

const FORM_ID: &str = "silence";
/// Pause in typing after which the covered alerts are listed again.
const TYPING_PAUSE: Duration = Duration::from_millis(250);

/// The form as it is now, and how many firing alerts it covers.
#[derive(Clone, Copy)]
pub struct Summary {
    covered: RwSignal<Option<u32>>,
    fields: RwSignal<SilenceFields>,
}

#[component]
pub fn SilencePage() -> impl IntoView {
    let form = FormState::of_action(ACTION);
    let location = use_location();
    let refused = form.first_reply().filter(|reply| !reply.fields.fields.is_empty());
    let first = match refused {
        Some(reply) => SilenceFields::from_fields(&reply.fields.fields),
        None => SilenceFields::from_search(&location.search.get_untracked()),
    };
    let search = RwSignal::new(first.to_search());
    let summary = Summary {
        covered: RwSignal::new(None),
        fields: RwSignal::new(first.clone()),
    };
    let load = use_live().refreshing(Topics::ALERTS, move || search.get(), silence_preview);
    view! {
        <PageTitle text="New silence"/>
        <div inert="" aria-hidden="true"><Board search=Signal::derive(String::new)/></div>
        <a class="veil" href="/alerts" aria-label="Close, back to the alerts" tabindex="-1"></a>
        <section class="drawer" aria-labelledby="silence-title">
            <header>
                <div><h1 id="silence-title">"New silence"</h1>
                    <p class="small ink2">"Silenced alerts stay on the page and in the history. An alert that begins to fire sends no notification until the silence ends. An alert that has already sent one still notifies when it resolves."</p></div>
                <a class="icon" href="/alerts" aria-label="Close"><span aria-hidden="true">"×"</span></a>
            </header>
            <div class="drawer-body" on:input=summary.follow(search)>
                <ConsoleForm action=ACTION state=form id=FORM_ID label="silence">
                    <FormAlert/>
                    <Chips first=first.matchers.clone() on_removed=Callback::new(move |()| summary.list(search))/>
                    <Length first=first.clone()/>
                    <TextArea name="comment" label="Comment" value=first.comment.clone() help="Required; saved with your name."/>
                </ConsoleForm>
                <LoadBoundary load part=true let:data>
                    <Covered data summary/>
                </LoadBoundary>
            </div>
            <Footer form summary/>
        </section>
    }
    .into_any()
}

/// The form as it is now, in the browser.
fn current_fields() -> Option<SilenceFields> {
    let form = document().get_element_by_id(FORM_ID)?;
    let form: HtmlFormElement = form.dyn_into().ok()?;
    Some(SilenceFields::from_fields(&submit::fields(&form)))
}

impl Summary {
    /// Follows the form: the footer at once, the list of covered alerts after a pause.
    fn follow(self, search: RwSignal<String>) -> impl FnMut(Event) + 'static {
        let mut list = debounce(TYPING_PAUSE, move |()| self.list(search));
        move |_| {
            if let Some(fields) = current_fields() {
                self.fields.set(fields);
                list(());
            }
        }
    }

    /// Lists the covered alerts again.
    fn list(self, search: RwSignal<String>) {
        let Some(fields) = current_fields() else { return };
        let next = fields.to_search();
        self.fields.try_set(fields);
        if search.try_with_untracked(|search| *search != next) == Some(true) {
            search.try_set(next);
        }
    }
}

#[component]
fn Footer(form: FormState, summary: Summary) -> impl IntoView {
    let button_text = move || {
        let length = summary.fields.with(|fields| match fields.length.as_str() {
            UNTIL_NINE => " until 09:00".to_owned(),
            OWN if fields.own.is_empty() => String::new(),
            OWN => format!(" for {}", fields.own),
            length => {
                let label = LENGTHS.iter().find(|(value, _)| *value == length);
                format!(" for {}", label.map_or(length, |(_, label)| *label))
            }
        });
        match summary.covered.get() {
            None | Some(0) => format!("Silence{length}"),
            Some(1) => format!("Silence 1 alert{length}"),
            Some(count) => format!("Silence {count} alerts{length}"),
        }
    };
    let is_sending = move || form.is_sending().then_some("true");
    view! {
        <footer>
            // First, so that Enter lists and never saves.
            <button class="btn no-script" r#type="submit" form=FORM_ID name="act" value="preview" formnovalidate="true">"Count matching alerts"</button>
            <button class="btn solid" r#type="submit" form=FORM_ID name="act" value="save" aria-disabled=is_sending>{changing(button_text)}</button>
            <a class="btn" href="/alerts">"Cancel"</a>
            <span class="small ink3">"a silence can be ended at any time"</span>
        </footer>
    }
    .into_any()
}
