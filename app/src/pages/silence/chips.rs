//! Matchers as chips: label, value, and a button that removes it. A spare one at the end is for
//! readers without a script.

use domain::alerts::LABELS;
use domain::alerts::limits::MATCHERS_MAX;
use leptos::ev::MouseEvent;
use leptos::prelude::*;
use web_sys::Element;

use crate::components::reactive::changing;
use crate::focus::{focus_if_lost, pass_on_focus};
use crate::forms::field::{FieldNote, options_view};
use crate::pages::silence::silence_draft::matcher_names;

#[component]
pub(super) fn Chips(
    first: Vec<(String, String)>,
    /// Runs after a chip left the form.
    on_removed: Callback<()>,
) -> impl IntoView {
    let spare = MATCHERS_MAX - 1;
    let count = first.len().min(MATCHERS_MAX);
    let shown = RwSignal::new((0..count).collect::<Vec<usize>>());
    let chip = move |index: usize| {
        let (label, value) = first.get(index).cloned().unwrap_or_default();
        view! { <Chip index label value shown on_removed/> }
    };
    let add = move |_| {
        shown.update(|shown| {
            let free = (0..spare).find(|index| !shown.contains(index));
            shown.extend(free);
        });
    };
    let is_full = move || shown.with(|shown| shown.len() >= spare);
    let add_button = move || {
        (!is_full()).then(|| {
            pass_on_focus(".chip-add:focus", "legend");
            view! { <button class="chip-add needs-script" r#type="button" on:click=add>"+ Add matcher"</button> }
                .into_any()
        })
    };
    view! {
        <fieldset class="chips">
            <legend>"Matchers "<span class="small ink2">"all must match"</span></legend>
            <For each=move || shown.get() key=|index| *index let:index>{chip(index)}</For>
            {(count < spare).then(|| view! { <span class="no-script"><Chip index=spare label=String::new() value=String::new() shown on_removed/></span> }.into_any())}
            {changing(add_button)}
            <FieldNote name="matchers" help=None/>
        </fieldset>
    }
    .into_any()
}

#[component]
fn Chip(
    index: usize,
    label: String,
    value: String,
    shown: RwSignal<Vec<usize>>,
    on_removed: Callback<()>,
) -> impl IntoView {
    let (label_name, value_name) = matcher_names(index);
    let mut options = vec![(String::new(), "label".to_owned())];
    options.extend(LABELS.map(|name| (name.to_owned(), name.to_owned())));
    let remove = move |event: MouseEvent| {
        let list = event_target::<Element>(&event).closest("fieldset");
        shown.update(|shown| shown.retain(|chip| *chip != index));
        request_animation_frame(move || {
            // The button had the focus.
            if let Ok(Some(list)) = list {
                focus_if_lost(&list);
            }
            on_removed.run(());
        });
    };
    let number = index + 1;
    view! {
        <span class="mchip">
            <select name=label_name aria-label=format!("Label of matcher {number}")>{options_view(options, &label)}</select>
            <span aria-hidden="true">"="</span>
            <input class="mono" name=value_name value=value aria-label=format!("Value of matcher {number}, * as wildcard") autocomplete="off" spellcheck="false"/>
            <button class="needs-script" r#type="button" aria-label=format!("Remove matcher {number}") on:click=remove>"×"</button>
        </span>
    }
    .into_any()
}
