//! The tour of the demo: four steps, each with a link to a lock or rule of the demo. Closed once, it stays closed.

use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::focus::focus;
use crate::forms::console_form::ConsoleForm;
use crate::session::{CurrentSession, TourLinks, use_session};

/// Shown in the demo only.
#[component]
pub fn Tour() -> impl IntoView {
    let session = use_session();
    let links = Memo::new(move |_| session.with(|session| session.tour.clone()));
    changing(move || links.get().map(|links| steps(links, session)))
}

fn steps(links: TourLinks, session: CurrentSession) -> AnyView {
    let steps = [
        (
            links.find,
            "Find",
            "One search over every backend: the payout locks.",
        ),
        (
            links.understand,
            "Understand",
            "A lock with a queue: who holds it, who waits, and its timeline.",
        ),
        (
            links.break_safely,
            "Break safely",
            "A forced unlock: review, type the name, see the result.",
        ),
        (
            links.alert,
            "Alert",
            "A rule with its threshold, previewed on past data.",
        ),
    ];
    let steps = steps.map(|(href, title, text)| {
        view! { <li><a class="link" href=href>{title}</a><p>{text}</p></li> }.into_any()
    });
    view! {
        <section class="tour" aria-labelledby="tour-head">
            <header><h2 id="tour-head">"Tour"</h2><p>"Four steps through the demo"</p></header>
            <ol>{steps.into_iter().collect_view()}</ol>
            <ConsoleForm action="/tour/dismiss" stays=true on_done=Callback::new(move |()| close(session))>
                <button class="btn plain s" r#type="submit" aria-label="Close the tour" title="Close the tour"><Shape name="x"/></button>
            </ConsoleForm>
        </section>
    }
    .into_any()
}

/// The focus was in the tour, which is removed.
fn close(session: CurrentSession) {
    session.close_tour();
    if let Some(main) = document().get_element_by_id("main") {
        focus(&main);
    }
}
