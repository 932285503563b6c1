//! Deliveries: dead letters with a retry button, and the latest other messages.

use domain::escape::visible;
use leptos::prelude::*;

use crate::components::relative_time::RelativeTime;
use crate::components::state_badge::Shape;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormState};
use crate::forms::field::SubmitButton;
use crate::pages::receivers::data::{Message, MessageState};

/// Paths of the retry forms begin with it.
pub(super) const RETRY: &str = "/alerts/notifications/";

/// `retry`: state of the retry forms.
pub(super) fn dead(messages: &[Message], now: i64, retry: FormState) -> AnyView {
    if messages.is_empty() {
        return ().into_any();
    }
    let count = format::counted(messages.len() as u64, "message", "messages");
    view! {
        <section class="sec">
            <header><h2>"Dead letters"</h2><span class="end">{count}</span></header>
            {table(messages, now, retry)}
        </section>
    }
    .into_any()
}

pub(super) fn latest(messages: &[Message], has_dead: bool, now: i64, retry: FormState) -> AnyView {
    if messages.is_empty() && has_dead {
        return ().into_any();
    }
    let content = if messages.is_empty() {
        view! { <p class="ink2 none-here">"No notifications in the last 7 days. Tests are not listed."</p> }
            .into_any()
    } else {
        table(messages, now, retry)
    };
    view! {
        <section class="sec">
            <header><h2>"Recent notifications"</h2></header>
            {content}
        </section>
    }
    .into_any()
}

fn table(messages: &[Message], now: i64, retry: FormState) -> AnyView {
    let lines = messages.iter().map(|message| message_row(message, now, retry));
    view! {
        <div class="scroll">
            <table class="t st-table messages">
                <thead><tr><th scope="col">"what"</th><th scope="col">"to"</th><th scope="col">"state"</th>
                    <th scope="col" class="num">"attempts"</th><th scope="col">"last response"</th>
                    <th scope="col"><span class="sr">"act"</span></th></tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn message_row(message: &Message, now: i64, retry_state: FormState) -> AnyView {
    let answer = message.answer.as_deref().unwrap_or_default();
    let answer = visible(answer).into_owned();
    let retry = (message.state == MessageState::Dead).then(|| {
        let action = format!("{RETRY}{}/retry", message.id);
        let label = format!("Retry message {}", message.id);
        view! { <ConsoleForm action stays=true state=retry_state><SubmitButton class="btn s" aria_label=label>"Retry"</SubmitButton></ConsoleForm> }
            .into_any()
    });
    view! {
        <tr>
            <th scope="row" class="wrap"><bdi>{visible(&message.what).into_owned()}</bdi><small><RelativeTime at=message.created_at now/></small></th>
            <td class="mono">{message.receiver.clone()}</td>
            <td>{state(message, now)}</td>
            <td class="num">{message.attempts}</td>
            <td class="wrap ink2">{answer}</td>
            <td class="num">{retry}</td>
        </tr>
    }
    .into_any()
}

fn state(message: &Message, now: i64) -> AnyView {
    match message.state {
        MessageState::Delivered => {
            view! { <span class="st healthy quiet"><Shape name="ok"/>"delivered"</span> }.into_any()
        }
        MessageState::Dead => {
            view! { <span class="st critical"><Shape name="x"/>"dead letter"</span> }.into_any()
        }
        MessageState::Waiting => {
            let at = message.next_at;
            view! { <span class="st warning"><Shape name="pending"/>"pending"</span>" "<small class="ink2">"next "<RelativeTime at now/></small> }.into_any()
        }
    }
}
