//! A form of the console. Without a script the browser posts it, and the server answers with the
//! next page or with this page and its errors. With a script it is sent by `fetch`: errors
//! appear in place, the next page opens without a reload, and the data is fetched again.

use leptos::context::Provider;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};

use super::reply::{FormOutcome, FormReply};
use super::submit::{self, SendError};
use crate::components::toast::use_toast;
use crate::focus::{HEADINGS, pass_on_focus, record_parents};
use crate::live::use_live;

/// State of one form, shared with its fields by context.
#[derive(Clone, Copy)]
pub struct FormState {
    reply: RwSignal<Option<FormReply>>,
    failure: RwSignal<Option<SendError>>,
    is_sending: RwSignal<bool>,
}

/// The form around a field.
pub fn use_form() -> FormState {
    use_context::<FormState>().unwrap_or_else(|| FormState::new(None))
}

/// The reply in the server's first HTML, until the reader opens another page.
#[derive(Clone, Copy)]
pub(crate) struct FirstReply(StoredValue<Option<FormReply>>);

impl FirstReply {
    pub(crate) fn new(reply: Option<FormReply>) -> Self {
        Self(StoredValue::new(reply))
    }

    fn get() -> Option<FormReply> {
        use_context::<Self>()?.0.get_value()
    }

    /// Forgets the reply when the reader leaves the page. In the router only.
    pub(crate) fn forget_on_leave(self) {
        let path = use_location().pathname;
        Effect::new(move |before: Option<String>| {
            let path = path.get();
            if before.is_some_and(|before| before != path) {
                self.0.set_value(None);
            }
            path
        });
    }
}

impl FormState {
    fn new(reply: Option<FormReply>) -> Self {
        Self {
            reply: RwSignal::new(reply),
            failure: RwSignal::new(None),
            is_sending: RwSignal::new(false),
        }
    }

    /// State of the form that is sent to `action`, with the reply of the first HTML.
    pub fn of_action(action: &str) -> Self {
        let first = FirstReply::get();
        Self::new(first.filter(|reply| reply.action == action))
    }

    /// State shared by the forms whose paths begin with `path`: rows of a table, which are created again at a refetch.
    pub fn of_rows(path: &str) -> Self {
        let first = FirstReply::get();
        Self::new(first.filter(|reply| reply.action.starts_with(path)))
    }

    /// The last reply; tracked.
    pub fn reply(self) -> Option<FormReply> {
        self.reply.get()
    }

    /// The reply of the first HTML; not tracked.
    pub fn first_reply(self) -> Option<FormReply> {
        self.reply.get_untracked()
    }

    /// Error of a field; tracked.
    pub fn fault(self, name: &str) -> Option<String> {
        self.reply
            .with(|reply| reply.as_ref()?.fault(name).map(str::to_owned))
    }

    /// Input of a field of a form that was refused without a script; else `default`.
    pub fn typed_value(self, name: &str, default: &str) -> String {
        let value = |reply: &Option<FormReply>| reply.as_ref()?.fields.find(name).map(str::to_owned);
        self.reply
            .with_untracked(value)
            .unwrap_or_else(|| default.to_owned())
    }

    /// A named result of the form, such as a secret; tracked.
    pub fn value(self, name: &str) -> Option<String> {
        self.reply
            .with(|reply| reply.as_ref()?.value(name).map(str::to_owned))
    }

    /// Tracked.
    pub fn is_sending(self) -> bool {
        self.is_sending.get()
    }

    pub fn clear(self) {
        self.reply.set(None);
        self.clear_failure();
    }

    /// Removes the message of a request without a reply, because the page now shows the effect of that request.
    pub fn clear_failure(self) {
        self.failure.set(None);
    }
}

#[component]
pub fn ConsoleForm(
    #[prop(into)] action: String,
    #[prop(optional, into)] class: Option<String>,
    #[prop(optional, into)] id: Option<String>,
    /// Accessible name of the form.
    #[prop(optional, into)]
    label: Option<String>,
    /// With a script, the page stays open after success and shows the message of the next page.
    #[prop(optional)]
    stays: bool,
    /// One of many forms with the same path: the page shows the reply of the first HTML.
    #[prop(optional)]
    is_row: bool,
    /// State that the page shares with the form.
    #[prop(optional)]
    state: Option<FormState>,
    /// Runs after success, in the browser.
    #[prop(optional, into)]
    on_done: Option<Callback<()>>,
    children: Children,
) -> impl IntoView {
    let state = state.unwrap_or_else(|| match is_row {
        true => FormState::new(None),
        false => FormState::of_action(&action),
    });
    if stays {
        // The action may remove the form from the page.
        pass_on_focus("form:has(:focus)", HEADINGS);
    }
    let done = on_success(stays, on_done);
    let live = use_live();
    let send = move |event: SubmitEvent| {
        let Some(form) = submit::Submission::from_event(&event) else {
            return;
        };
        event.prevent_default();
        if state.is_sending.get_untracked() {
            return;
        }
        state.is_sending.set(true);
        if stays {
            record_parents(form.form());
        }
        leptos::task::spawn_local(async move {
            // The event of the change may arrive before the reply, while the page is about to be left.
            let guard = live.hold_refetches();
            let outcome = form.send().await;
            state.is_sending.try_set(false);
            match outcome {
                Ok(FormOutcome::Moved { to }) => {
                    state.failure.try_set(None);
                    state.reply.try_set(None);
                    form.reset();
                    if done.run(to) {
                        guard.discard();
                    }
                }
                Ok(FormOutcome::Reply(reply)) => {
                    state.failure.try_set(None);
                    state.reply.try_set(Some(reply));
                    form.focus_fault();
                }
                Err(error) => {
                    state.failure.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <Provider value=state>
            <form method="post" action=action class=class id=id aria-label=label on:submit=send>
                {children()}
            </form>
        </Provider>
    }
    .into_any()
}

/// Shows the result. Returns whether another page opens.
fn on_success(stays: bool, on_done: Option<Callback<()>>) -> Callback<String, bool> {
    let (live, toast, navigate) = (use_live(), use_toast(), use_navigate());
    let current_path = use_location().pathname;
    Callback::new(move |to: String| {
        let path = to.split(['?', '#']).next();
        let opens_page = !stays && path != Some(current_path.get_untracked().as_str());
        if !stays {
            navigate(&to, NavigateOptions::default());
        }
        // Also if it is the URL of this page, as after the second save of a rule.
        toast.show_for(&to);
        // Another page fetches its own data. On this page, the data may be of an object that the action removed.
        if !opens_page {
            live.show_waiting();
        }
        if let Some(on_done) = on_done {
            on_done.run(());
        }
        opens_page
    })
}

/// Error of the whole form, announced by screen readers.
#[component]
pub fn FormAlert() -> impl IntoView {
    let state = use_form();
    view! {
        {move || state.reply.with(|reply| reply.as_ref()?.alert.clone()).map(alert)}
        {move || state.reply.with(|reply| reply.as_ref()?.done.clone()).map(done_note)}
        {move || state.failure.get().map(failure)}
    }
    .into_any()
}

/// Shows the reply in the first HTML if it is to a row form, one of many with the same path.
#[component]
pub fn PageReply(
    /// Path of a form of the page that shows its reply itself.
    #[prop(optional)]
    except: &'static str,
) -> impl IntoView {
    let alert_text = FirstReply::get().filter(|reply| reply.action != except);
    alert_text.and_then(|reply| reply.alert).map(alert)
}

fn alert(text: String) -> AnyView {
    view! { <p class="notice critical" role="alert">{text}</p> }.into_any()
}

fn done_note(text: String) -> AnyView {
    view! { <p class="notice healthy" role="status">{text}</p> }.into_any()
}

/// Message for a request without a reply of the form's handler. The form keeps its input.
fn failure(error: SendError) -> AnyView {
    let link = error.link().map(|(href, label)| {
        view! { " "<a class="link" href=href target="_blank" rel="noopener external">{label}</a> }.into_any()
    });
    view! { <p class="notice critical" role="alert"><span>{error.to_string()}{link}</span></p> }.into_any()
}
