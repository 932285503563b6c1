//! Result of a test message: request and response.

use domain::escape::visible;
use leptos::prelude::*;

use super::path;
use crate::components::state_badge::Shape;
use crate::server_pages::layout::{Chrome, Page, page};

/// One request and its response.
#[derive(Debug, Clone, Default)]
pub struct TestResult {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    pub status: Option<u16>,
    pub answer: String,
    pub fault: Option<String>,
}

pub fn trials(chrome: &Chrome, name: &str, trials: &[TestResult]) -> String {
    let taken = trials.iter().filter(|trial| trial.fault.is_none()).count();
    let title = match (taken, trials.len()) {
        (taken, all) if taken == all => format!("Test delivered to {name}"),
        (0, _) => format!("Test to {name} failed"),
        (taken, all) => format!("Test delivered to {taken} of {all} peers of {name}"),
    };
    let content = view! {
        <p><a class="link" href="/alerts/receivers">"All receivers"</a>" · "<a class="link" href=path(name)>"Change "{name.to_owned()}</a></p>
        {trials.iter().map(result_view).collect_view()}
        <form method="post" action=format!("{}/test", path(name))><button class="btn" r#type="submit">"Send another test"</button></form>
    };
    page(
        chrome,
        Page {
            title,
            lead: Some("One message marked as a test, sent without the outbox.".to_owned()),
            content: content.into_any(),
        },
    )
}

fn result_view(trial: &TestResult) -> AnyView {
    let outcome = match &trial.fault {
        None => view! { <span class="st healthy quiet"><Shape name="ok"/>"delivered"</span> }.into_any(),
        Some(why) => {
            view! { <span class="st critical"><Shape name="x"/>"failed"</span>" "<span class="ink2">{visible(why).into_owned()}</span> }.into_any()
        }
    };
    let lines = trial
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"));
    let request = format!(
        "POST {}\ncontent-type: application/json\n{}\n{}",
        trial.url,
        lines.collect::<String>(),
        trial.body
    );
    let answer = match trial.status {
        Some(status) => format!("{status}\n\n{}", trial.answer),
        None => "no answer".to_owned(),
    };
    view! {
        <section class="sec trial">
            <header><h2 class="mono"><bdi>{trial.url.clone()}</bdi></h2></header>
            <p class="outcome">{outcome}</p>
            <h3>"Request"</h3>
            <pre class="wire" tabindex="0" aria-label="request">{lines_of(&request)}</pre>
            <h3>"Answer"</h3>
            <pre class="wire" tabindex="0" aria-label="answer">{lines_of(&answer)}</pre>
        </section>
    }
    .into_any()
}

/// Line breaks stay; other hidden characters are shown.
fn lines_of(text: &str) -> String {
    let lines = text.split('\n').map(|line| visible(line).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}
