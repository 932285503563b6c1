//! One operation of the API: purpose, permission, input, output, curl example.

use leptos::prelude::*;

use crate::pages::docs::{Operation, ParameterRow, ResponseExample};

/// Text in backticks becomes code.
pub fn inline(text: &str) -> AnyView {
    let parts = text.split('`').enumerate().map(|(at, part)| {
        let part = part.to_owned();
        if at % 2 == 1 {
            view! { <code>{part}</code> }.into_any()
        } else {
            part.into_any()
        }
    });
    parts.collect_view().into_any()
}

pub(super) fn operation(one: &Operation) -> AnyView {
    let text = (!one.text.is_empty()).then(|| view! { <p>{inline(&one.text)}</p> }.into_any());
    view! {
        <section class="op" id=one.id.clone()>
            <h2><a href=format!("#{}", one.id)><span class="op-m">{one.method.clone()}</span>" "<code>{one.path.clone()}</code></a></h2>
            <p>{inline(&one.summary)}</p>
            {text}
            <p class="ink2">{one.needs.clone()}</p>
            {rows("Parameters", &one.parameters)}
            {rows("Body", &one.body)}
            {answers(&one.answers)}
            <h3>"Example"</h3>
            <pre class="doc-pre" tabindex="0">{one.curl.clone()}</pre>
        </section>
    }
    .into_any()
}

fn rows(title: &'static str, rows: &[ParameterRow]) -> Option<AnyView> {
    (!rows.is_empty()).then(|| view! { <h3>{title}</h3>{table(title, rows)} }.into_any())
}

fn table(label: &str, rows: &[ParameterRow]) -> AnyView {
    let lines = rows.iter().map(|row| {
        let required = row.is_required.then(|| view! { <b>"required"</b>" " }.into_any());
        let location = (!row.location.is_empty()).then(|| format!("{}, ", row.location));
        view! {
            <tr>
                <th scope="row"><code>{row.name.clone()}</code></th>
                <td class="wrap">{location}{inline(&row.kind)}</td>
                <td class="wrap">{required}{inline(&row.text)}</td>
            </tr>
        }
        .into_any()
    });
    view! {
        <div class="scroll">
            <table class="t st-table op-rows" aria-label=label.to_owned()>
                <thead><tr><th scope="col">"name"</th><th scope="col">"type"</th><th scope="col">"meaning"</th></tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn answers(answers: &[ResponseExample]) -> AnyView {
    let lines = answers.iter().map(|answer| {
        let fields = (!answer.rows.is_empty()).then(|| {
            let summary = format!("{} fields", answer.rows.len());
            view! { <details><summary>{summary}</summary>{table("Answer", &answer.rows)}</details> }
                .into_any()
        });
        view! {
            <li><b class="mono">{answer.status.clone()}</b>" "{inline(&answer.text)}{fields}</li>
        }
        .into_any()
    });
    view! { <h3>"Answers"</h3><ul class="op-answers">{lines.collect_view()}</ul> }.into_any()
}
