//! `/alerts/receivers/{name}`: change or remove one receiver.

use leptos::prelude::*;

use super::list::last;
use super::{ReceiverInput, ReceiverRow, kind_word, path, secret_field, urls_field};
use crate::server_pages::field::{alert, done};
use crate::server_pages::layout::{Chrome, Page, page};

#[derive(Debug, Clone, Default)]
pub struct ReceiverForm {
    pub row: ReceiverRow,
    pub now: i64,
    pub typed: ReceiverInput,
    pub refusal: Option<String>,
    pub done: Option<String>,
}

pub fn one(chrome: &Chrome, one: &ReceiverForm) -> String {
    let row = &one.row;
    let here = path(&row.name);
    let content = view! {
        {alert(one.refusal.clone())}
        {done(one.done.clone())}
        <p><a class="link" href="/alerts/receivers">"All receivers"</a></p>
        {facts(one)}
        <section class="panel" aria-labelledby="change">
            <header><h2 id="change">"Configuration"</h2></header>
            <form method="post" action=here.clone()>
                {urls_field(&one.typed, false)}
                {(row.kind != "slack").then(|| secret_field(&one.typed, false))}
                <div class="do"><button class="btn solid" r#type="submit">"Save"</button></div>
            </form>
        </section>
        <div class="acts">
            <form class="act" method="post" action=format!("{here}/test")><button class="btn" r#type="submit">"Send a test"</button><span>"one message marked as a test"</span></form>
            <form class="act" method="post" action=format!("{here}/remove")><button class="btn" r#type="submit">"Remove receiver"</button><span>"with its pending notifications"</span></form>
        </div>
    };
    page(
        chrome,
        Page {
            title: title(row),
            lead: Some(format!("Receiver {}, kind {}.", row.name, kind_word(row.kind))),
            content: content.into_any(),
        },
    )
}

fn title(row: &ReceiverRow) -> String {
    match (&row.fault, row.last_ok_at) {
        (Some(_), _) => format!("Last notification to {} failed", row.name),
        (None, Some(_)) => format!("Last notification to {} delivered", row.name),
        (None, None) => format!("No notifications to {} yet", row.name),
    }
}

fn facts(one: &ReceiverForm) -> AnyView {
    let row = &one.row;
    let urls = row
        .urls
        .iter()
        .map(|url| view! { <bdi class="mono">{url.clone()}</bdi> });
    let secret = match (row.kind, row.has_secret) {
        ("slack", _) => "its address is its secret",
        ("alertmanager", true) => "a bearer token is set",
        (_, true) => "set; each message is signed with it",
        (_, false) => "none",
    };
    view! {
        <dl class="facts-flat">
            <div><dt>"to"</dt><dd class="to">{urls.collect_view()}</dd></div>
            <div><dt>"secret"</dt><dd>{secret}</dd></div>
            <div><dt>"last message"</dt><dd>{last(row, one.now)}</dd></div>
            <div><dt>"waiting"</dt><dd>{row.waiting}</dd></div>
            <div><dt>"dead"</dt><dd>{row.dead}</dd></div>
        </dl>
    }
    .into_any()
}
