//! Length of a silence: three to pick, one to type, and the end spelled out.

use chrono::DateTime;
use domain::alerts::SilenceDraft;
use domain::time_format;
use leptos::prelude::*;

use crate::format;
use crate::forms::field::{FieldNote, is_invalid, note_id};
use crate::pages::silence::silence_draft::{LENGTHS, OWN, SilenceFields};

#[component]
pub(super) fn Length(first: SilenceFields) -> impl IntoView {
    let picked = match first.length.as_str() {
        "" => OWN.to_owned(),
        length => length.to_owned(),
    };
    let choices = LENGTHS.map(|(value, label)| {
        let is_picked = value == picked;
        view! {
            <label><input r#type="radio" name="length" value=value checked=is_picked/><span>{label}</span></label>
        }
        .into_any()
    });
    // The reader's zone, for 09:00; UTC without a script.
    let zone = RwSignal::new(0_i64);
    Effect::new(move |_| {
        #[expect(clippy::cast_possible_truncation, reason = "whole minutes of a day")]
        zone.set(-(js_sys::Date::new_0().get_timezone_offset() as i64));
    });
    view! {
        <fieldset class="lengths">
            <legend>"Length"</legend>
            <div class="pick">{choices.into_iter().collect_view()}</div>
            <div class="own">
                <label class="sr" for="lasts">"Custom length"</label>
                <input id="lasts" name="lasts" value=first.own placeholder="such as 3d or 90m, at most 90 days" autocomplete="off"
                    aria-invalid=is_invalid("lasts") aria-describedby=note_id("lasts")/>
            </div>
            <input r#type="hidden" name="zone" prop:value=move || zone.get().to_string() value="0"/>
            <FieldNote name="lasts" help=None/>
        </fieldset>
    }
    .into_any()
}

/// `Ends at 05:12:41 UTC, in 2 h.`
pub(super) fn end_text(fields: &SilenceFields, now: i64) -> Option<String> {
    let length_ms = SilenceDraft::parse_length(&fields.lasts(now)).ok()?;
    let at = DateTime::from_timestamp_millis(now + length_ms)?;
    let length = format::period(length_ms / 60_000 * 60_000);
    let text = format!("Ends at {}, in {length}.", time_format::dated(at));
    Some(format::unbroken(&text).into_owned())
}
