//! Form of a new silence: matchers, end, reason, and how many alerts it would suppress now.

use domain::alerts::{FieldError, LABELS, SilenceDraft};
use domain::format;
use leptos::prelude::*;

use crate::server_pages::field::{Area, Field, alert, choice};
use crate::server_pages::layout::{Chrome, Page, PageSection, page};

#[derive(Debug, Clone, Default)]
pub struct NewSilence {
    pub draft: SilenceDraft,
    pub faults: Vec<FieldError>,
    pub refusal: Option<String>,
    /// Number of firing alerts that it matches.
    pub matches: Option<usize>,
}

/// Rows of label and value in the form.
const ROWS: usize = 3;

pub fn silence(chrome: &Chrome, new: &NewSilence) -> String {
    let fault = |field: &str| {
        let found = new.faults.iter().find(|fault| fault.field == field)?;
        Some(format!("It {}: {}.", found.why, found.remedy))
    };
    let labels: Vec<(String, String)> = std::iter::once((String::new(), "nothing".to_owned()))
        .chain(LABELS.map(|label| (label.to_owned(), label.to_owned())))
        .collect();
    let rows = (0..ROWS).map(|index| {
        let (label, value) = new.draft.matchers.get(index).cloned().unwrap_or_default();
        let (label_id, value_id) = MATCHERS[index];
        let field = Field {
            is_required: false,
            ..Field::text(value_id, "Value, * as wildcard", value)
        };
        view! { <div class="al-grid">{choice(label_id, "Where", labels.clone(), &label)}{field.view()}</div> }
    });
    let wrong = fault("matchers")
        .map(|why| view! { <p class="fault" role="alert">{why.replacen("It ", "Matchers: ", 1)}</p> });
    let lasts = Field {
        help: Some("Such as 2h or 3d, at most 90 days."),
        fault: fault("lasts"),
        ..Field::text("lasts", "Duration", new.draft.lasts.clone())
    };
    let comment = Area {
        name: "comment",
        label: "Reason",
        value: new.draft.comment.clone(),
        help: None,
        fault: fault("comment"),
    };
    let matches = new.matches.map(|count| {
        let text = format!(
            "Would silence {} firing now.",
            format::counted(count as u64, "alert", "alerts")
        );
        view! { <p class="notice" role="status">{text}</p> }
    });
    let content = view! {
        {alert(new.refusal.clone())}
        {matches}
        <form class="panel al-form" method="post" action="/alerts/silences" aria-label="silence">
            <header><h2>"New silence"</h2><span class="small ink2">"all matchers must match"</span></header>
            {rows.collect_view()}
            {wrong}
            {lasts.view()}
            {comment.view()}
            <footer class="al-do">
                <button class="btn" r#type="submit" name="act" value="preview" formnovalidate="true">"Count matching alerts"</button>
                <button class="btn solid" r#type="submit" name="act" value="save">"Silence"</button>
                <a class="btn plain" href="/alerts">"Discard"</a>
            </footer>
        </form>
    };
    let chrome = Chrome {
        place: PageSection::Alerts,
        ..chrome.clone()
    };
    page(
        &chrome,
        Page {
            title: "Silence alerts".to_owned(),
            lead: Some(
                "Silenced alerts stay listed and send no notifications. The silence shows your name."
                    .to_owned(),
            ),
            content: content.into_any(),
        },
    )
}

/// Names of the fields of label and value.
pub const MATCHERS: [(&str, &str); ROWS] = [("label1", "value1"), ("label2", "value2"), ("label3", "value3")];
