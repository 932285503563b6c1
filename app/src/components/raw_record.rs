//! The record as the backend keeps it: field and value, in its own order. What would deceive the eye is spelt out.

use domain::escape::visible;
use domain::observation::RawField;
use leptos::prelude::*;

const SCROLLS_FROM_BYTES: usize = 400;

#[component]
pub fn RawRecord(fields: Vec<RawField>) -> impl IntoView {
    let rows: Vec<_> = fields
        .into_iter()
        .map(|field| {
            // A value so long that it scrolls can be reached by keys.
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
            <caption class="sr">"The record as the backend keeps it"</caption>
            <tbody>{rows}</tbody>
        </table>
    }
}

/// The same as text, to copy: one field per line.
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
