//! One operation of the API: purpose, permission, input, output, curl example.

use leptos::prelude::*;

#[derive(Debug, Clone)]
pub struct Operation {
    /// Its anchor.
    pub id: String,
    pub method: String,
    pub path: String,
    pub summary: String,
    pub text: String,
    pub needs: String,
    pub parameters: Vec<ParameterRow>,
    pub body: Vec<ParameterRow>,
    pub answers: Vec<ResponseExample>,
    pub curl: String,
}

/// A parameter or a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterRow {
    pub name: String,
    /// `path`, `query`, `header`; empty for fields.
    pub place: String,
    pub kind: String,
    pub is_required: bool,
    pub text: String,
}

#[derive(Debug, Clone)]
pub struct ResponseExample {
    pub status: String,
    pub text: String,
    /// Empty for problems, which share one format.
    pub rows: Vec<ParameterRow>,
}

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
    let text = (!one.text.is_empty()).then(|| view! { <p>{inline(&one.text)}</p> });
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
        let must = row.is_required.then_some(view! { <b>"required"</b>" " });
        let place = (!row.place.is_empty()).then(|| format!("{}, ", row.place));
        view! {
            <tr>
                <th scope="row"><code>{row.name.clone()}</code></th>
                <td class="wrap">{place}{inline(&row.kind)}</td>
                <td class="wrap">{must}{inline(&row.text)}</td>
            </tr>
        }
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
            let words = format!("{} fields", answer.rows.len());
            view! { <details><summary>{words}</summary>{table("Answer", &answer.rows)}</details> }
        });
        view! {
            <li><b class="mono">{answer.status.clone()}</b>" "{inline(&answer.text)}{fields}</li>
        }
    });
    view! { <h3>"Answers"</h3><ul class="op-answers">{lines.collect_view()}</ul> }.into_any()
}
