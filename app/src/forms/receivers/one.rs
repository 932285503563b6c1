//! `/alerts/receivers/{name}`: one of them, to change or to remove.

use leptos::prelude::*;

use super::list::last;
use super::{Row, Typed, kind_word, path, secret_field, urls_field};
use crate::forms::chrome::{Chrome, Page, page};
use crate::forms::field::{alert, done};

#[derive(Debug, Clone, Default)]
pub struct One {
    pub row: Row,
    pub now: i64,
    pub typed: Typed,
    pub refusal: Option<String>,
    pub done: Option<String>,
}

pub fn one(chrome: &Chrome, one: &One) -> String {
    let row = &one.row;
    let here = path(&row.name);
    let content = view! {
        {alert(one.refusal.clone())}
        {done(one.done.clone())}
        <p><a class="link" href="/alerts/receivers">"All receivers"</a></p>
        {facts(one)}
        <section class="panel" aria-labelledby="change">
            <header><h2 id="change">"Change it"</h2></header>
            <form method="post" action=here.clone()>
                {urls_field(&one.typed, false)}
                {(row.kind != "slack").then(|| secret_field(&one.typed, false))}
                <div class="do"><button class="btn solid" r#type="submit">"Change it"</button></div>
            </form>
        </section>
        <div class="acts">
            <form class="act" method="post" action=format!("{here}/test")><button class="btn" r#type="submit">"Send a test"</button><span>"one message that says that it is a test"</span></form>
            <form class="act" method="post" action=format!("{here}/remove")><button class="btn" r#type="submit">"Remove it"</button><span>"with what is on its way to it"</span></form>
        </div>
    };
    page(
        chrome,
        Page {
            title: title(row),
            lead: Some(format!(
                "The receiver {} is of the kind {}.",
                row.name,
                kind_word(row.kind)
            )),
            content: content.into_any(),
        },
    )
}

/// The finding.
fn title(row: &Row) -> String {
    match (&row.fault, row.last_ok_at) {
        (Some(_), _) => format!("{} did not take its last message", row.name),
        (None, Some(_)) => format!("{} took its last message", row.name),
        (None, None) => format!("{} was told nothing yet", row.name),
    }
}

fn facts(one: &One) -> AnyView {
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
