//! Record as stored in the backend: field and value, in its own order. Hidden characters are
//! spelt out.

use domain::escape::visible;
use domain::observation::RawField;
use leptos::prelude::*;

const SCROLLS_FROM_BYTES: usize = 400;

#[component]
pub fn RawRecord(fields: Vec<RawField>) -> impl IntoView {
    let rows: Vec<_> = fields
        .into_iter()
        .map(|field| {
            // A value that scrolls must be reachable by keyboard.
            let scrolls = (field.value.len() > SCROLLS_FROM_BYTES).then_some("0");
            view! {
                <tr>
                    <th scope="row"><bdi>{visible(&field.name).into_owned()}</bdi></th>
                    <td><bdi tabindex=scrolls>{visible(&field.value).into_owned()}</bdi></td>
                </tr>
            }
            .into_any()
        })
        .collect();
    view! {
        <table class="raw mono">
            <caption class="sr">"Record as stored in the backend"</caption>
            <tbody>{rows}</tbody>
        </table>
    }
}

/// The same as text for copying: one field per line.
pub fn as_text(fields: &[RawField]) -> String {
    let width = fields
        .iter()
        .map(|field| field.name.chars().count())
        .max()
        .unwrap_or(0)
        .min(40);
    fields
        .iter()
        .map(|field| format!("{:width$}  {}\n", field.name, visible(&field.value)))
        .collect()
}
