//! The button that sends a test message, and its result: request and response of each peer.

use domain::escape::visible;
use leptos::prelude::*;

use super::path;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState};
use crate::forms::field::SubmitButton;
use crate::forms::reply::FormReply;

/// Names of the results in the reply, in this order for each peer.
pub const URL: &str = "url";
pub const REQUEST: &str = "request";
pub const ANSWER: &str = "answer";
/// Empty: delivered.
pub const FAULT: &str = "fault";

#[component]
pub fn TestForm(name: String, label: &'static str, class: &'static str) -> impl IntoView {
    let action = format!("{}/test", path(&name));
    let state = FormState::of_action(&action);
    let aria_label = format!("{label}: {name}");
    let spoken_name = name.clone();
    // Empty while a test is sent: the same result is announced again.
    let spoken = changing(move || {
        let reply = state.reply().filter(|_| !state.is_sending());
        reply
            .and_then(|reply| title(&spoken_name, &peers(&reply)))
            .unwrap_or_default()
    });
    let results = changing(move || state.reply().map(|reply| results(&name, &reply)));
    view! {
        <ConsoleForm action state>
            <SubmitButton class aria_label>{label}</SubmitButton>
            <FormAlert/>
        </ConsoleForm>
        <p class="sr" role="status">{spoken}</p>
        {results}
    }
    .into_any()
}

struct PeerResult<'a> {
    url: &'a str,
    request: &'a str,
    answer: &'a str,
    fault: &'a str,
}

fn peers(reply: &FormReply) -> Vec<PeerResult<'_>> {
    let chunks = reply.values.chunks_exact(4);
    chunks
        .filter_map(|chunk| match chunk {
            [(a, url), (b, request), (c, answer), (d, fault)]
                if [a, b, c, d] == [URL, REQUEST, ANSWER, FAULT] =>
            {
                Some(PeerResult {
                    url,
                    request,
                    answer,
                    fault,
                })
            }
            _ => None,
        })
        .collect()
}

/// `None` without a result.
fn title(name: &str, peers: &[PeerResult<'_>]) -> Option<String> {
    let delivered = peers.iter().filter(|peer| peer.fault.is_empty()).count();
    match (delivered, peers.len()) {
        (_, 0) => None,
        (delivered, all) if delivered == all => Some(format!("Test delivered to {name}")),
        (0, _) => Some(format!("Test to {name} failed")),
        (delivered, all) => Some(format!("Test delivered to {delivered} of {all} peers of {name}")),
    }
}

fn results(name: &str, reply: &FormReply) -> AnyView {
    let peers = peers(reply);
    let Some(title) = title(name, &peers) else {
        return ().into_any();
    };
    let peers: Vec<AnyView> = peers.iter().map(result_view).collect();
    view! {
        <section class="trials">
            <h2>{title}</h2>
            <p class="small ink2">"One message marked as a test, sent once and not retried."</p>
            {peers}
        </section>
    }
    .into_any()
}

fn result_view(peer: &PeerResult<'_>) -> AnyView {
    let outcome = if peer.fault.is_empty() {
        view! { <span class="st healthy quiet"><Shape name="ok"/>"delivered"</span> }.into_any()
    } else {
        view! { <span class="st critical"><Shape name="x"/>"failed"</span>" "<span class="ink2">{visible(peer.fault).into_owned()}</span> }.into_any()
    };
    view! {
        <div class="trial">
            <h3 class="mono"><bdi>{peer.url.to_owned()}</bdi></h3>
            <p class="outcome">{outcome}</p>
            <h4>"Request"</h4>
            <pre class="wire" tabindex="0" aria-label="request">{lines_of(peer.request)}</pre>
            <h4>"Answer"</h4>
            <pre class="wire" tabindex="0" aria-label="answer">{lines_of(peer.answer)}</pre>
        </div>
    }
    .into_any()
}

/// Line breaks stay; other hidden characters are shown.
fn lines_of(text: &str) -> String {
    let lines = text.split('\n').map(|line| visible(line).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}
