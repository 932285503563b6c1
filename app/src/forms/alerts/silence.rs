//! A new silence: what it matches, until when, why; and how much it would keep quiet now.

use domain::alerts::{Fault, LABELS, SilenceDraft};
use domain::human;
use leptos::prelude::*;

use crate::forms::chrome::{Chrome, Page, Place, page};
use crate::forms::field::{Area, Field, alert, choice};

#[derive(Debug, Clone, Default)]
pub struct NewSilence {
    pub draft: SilenceDraft,
    pub faults: Vec<Fault>,
    pub refusal: Option<String>,
    /// How many of what fires now it would match.
    pub matches: Option<usize>,
}

/// Rows of label and value in the form.
const ROWS: usize = 3;

pub fn silence(chrome: &Chrome, new: &NewSilence) -> String {
    let fault = |field: &str| {
        let found = new.faults.iter().find(|fault| fault.field == field)?;
        Some(format!("It {}: {}.", found.why, found.mend))
    };
    let labels: Vec<(String, String)> = std::iter::once((String::new(), "nothing".to_owned()))
        .chain(LABELS.map(|label| (label.to_owned(), label.to_owned())))
        .collect();
    let rows = (0..ROWS).map(|index| {
        let (label, value) = new.draft.matchers.get(index).cloned().unwrap_or_default();
        let (label_id, value_id) = MATCHERS[index];
        let field = Field {
            is_required: false,
            ..Field::text(value_id, "is, with * for what differs", value)
        };
        view! { <div class="al-grid">{choice(label_id, "Where", labels.clone(), &label)}{field.view()}</div> }
    });
    let wrong = fault("matchers")
        .map(|why| view! { <p class="fault" role="alert">{why.replacen("It ", "What it matches: ", 1)}</p> });
    let lasts = Field {
        help: Some("From now: 2h, 3d. At most 90 days."),
        fault: fault("lasts"),
        ..Field::text("lasts", "Ends in", new.draft.lasts.clone())
    };
    let comment = Area {
        name: "comment",
        label: "Why nobody needs to be told",
        value: new.draft.comment.clone(),
        help: None,
        fault: fault("comment"),
    };
    let matches = new.matches.map(|count| {
        let text = format!(
            "It would keep {} quiet that fire now.",
            human::counted(count as u64, "alert", "alerts")
        );
        view! { <p class="notice" role="status">{text}</p> }
    });
    let content = view! {
        {alert(new.refusal.clone())}
        {matches}
        <form class="panel al-form" method="post" action="/alerts/silences" aria-label="silence">
            <header><h2>"New silence"</h2><span class="small ink2">"all rows must match"</span></header>
            {rows.collect_view()}
            {wrong}
            {lasts.view()}
            {comment.view()}
            <footer class="al-do">
                <button class="btn" r#type="submit" name="act" value="preview" formnovalidate="true">"Count what it matches"</button>
                <button class="btn solid" r#type="submit" name="act" value="save">"Silence"</button>
                <a class="btn plain" href="/alerts">"Discard"</a>
            </footer>
        </form>
    };
    let chrome = Chrome {
        place: Place::Alerts,
        ..chrome.clone()
    };
    page(
        &chrome,
        Page {
            title: "Keep some alerts quiet for a while".to_owned(),
            lead: Some(
                "They are evaluated and shown as ever; nobody is told. Your name stands beside it."
                    .to_owned(),
            ),
            content: content.into_any(),
        },
    )
}

/// Names of the fields of label and value.
pub const MATCHERS: [(&str, &str); ROWS] = [("label1", "value1"), ("label2", "value2"), ("label3", "value3")];
