//! Length of a silence: three to pick, one to type, and the end spelled out.

use chrono::DateTime;
use domain::alerts::SilenceDraft;
use domain::time_format;
use leptos::prelude::*;

use crate::format;
use crate::forms::field::{FieldNote, is_invalid, note_id};
use crate::pages::silence::silence_draft::{LENGTHS, NINE, NINE_UTC_MS, OWN, SilenceFields};

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
    // 09:00 of the reader; of UTC without a script.
    let nine = RwSignal::new(NINE_UTC_MS);
    Effect::new(move |_| nine.set(next_nine()));
    view! {
        <fieldset class="lengths">
            <legend>"Length"</legend>
            <div class="pick">{choices.into_iter().collect_view()}</div>
            <div class="own">
                <label class="sr" for="lasts">"Custom length"</label>
                <input id="lasts" name="lasts" value=first.own placeholder="such as 3d or 90m, at most 90 days" autocomplete="off"
                    aria-invalid=is_invalid("lasts") aria-describedby=note_id("lasts")/>
            </div>
            <input r#type="hidden" name=NINE prop:value=move || nine.get().to_string() value=NINE_UTC_MS.to_string()/>
            <FieldNote name="lasts" help=None/>
        </fieldset>
    }
    .into_any()
}

/// By the browser's clock and zone, in milliseconds since 1970.
fn next_nine() -> i64 {
    let now = js_sys::Date::new_0();
    let day = now.get_date() + u32::from(now.get_hours() >= 9);
    let (month, day) = (now.get_month().cast_signed(), day.cast_signed());
    let nine = js_sys::Date::new_with_year_month_day_hr(now.get_full_year(), month, day, 9);
    #[expect(clippy::cast_possible_truncation, reason = "whole milliseconds")]
    let ms = nine.get_time() as i64;
    ms
}

/// `Ends at 05:12:41 UTC, in 2 h.`
pub(super) fn end_text(fields: &SilenceFields, now: i64) -> Option<String> {
    let length_ms = SilenceDraft::parse_length(&fields.lasts(now)).ok()?;
    let at = DateTime::from_timestamp_millis(now + length_ms)?;
    let length = format::period(length_ms / 60_000 * 60_000);
    let text = format!("Ends at {}, in {length}.", time_format::dated(at));
    Some(format::unbroken(&text).into_owned())
}
