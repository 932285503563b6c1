//! What a test sent, and what came back.

use domain::escape::visible;
use leptos::prelude::*;

use super::path;
use crate::components::state_badge::Shape;
use crate::forms::chrome::{Chrome, Page, page};

/// One request and its answer.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    pub status: Option<u16>,
    pub answer: String,
    pub fault: Option<String>,
}

pub fn trials(chrome: &Chrome, name: &str, trials: &[Trial]) -> String {
    let taken = trials.iter().filter(|trial| trial.fault.is_none()).count();
    let title = match (taken, trials.len()) {
        (taken, all) if taken == all => format!("{name} took the test"),
        (0, _) => format!("{name} did not take the test"),
        (taken, all) => format!("{taken} of {all} peers of {name} took the test"),
    };
    let content = view! {
        <p><a class="link" href="/alerts/receivers">"All receivers"</a>" · "<a class="link" href=path(name)>"Change "{name.to_owned()}</a></p>
        {trials.iter().map(shown).collect_view()}
        <form method="post" action=format!("{}/test", path(name))><button class="btn" r#type="submit">"Send another"</button></form>
    };
    page(
        chrome,
        Page {
            title,
            lead: Some("One message, past the outbox, that says of itself that it is a test.".to_owned()),
            content: content.into_any(),
        },
    )
}

fn shown(trial: &Trial) -> AnyView {
    let outcome = match &trial.fault {
        None => view! { <span class="st healthy quiet"><Shape name="ok"/>"taken"</span> }.into_any(),
        Some(why) => {
            view! { <span class="st critical"><Shape name="x"/>"not taken"</span>" "<span class="ink2">{visible(why).into_owned()}</span> }.into_any()
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

/// Line breaks stay; whatever else a screen would hide is shown.
fn lines_of(text: &str) -> String {
    let lines = text.split('\n').map(|line| visible(line).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}
