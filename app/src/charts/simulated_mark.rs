//! Mark of charts with simulated data: the demo simulates its history before the start.

use leptos::prelude::*;

use crate::components::reactive::changing;

/// The text of the mark for all charts below the component that provides it; `None`: all data was observed.
#[derive(Clone, Copy)]
pub struct SimulatedText(Signal<Option<String>>);

/// Marks the charts of a page.
pub fn provide_simulated(text: impl Fn() -> Option<String> + Send + Sync + 'static) {
    provide_context(SimulatedText(Memo::new(move |_| text()).into()));
}

/// Next to the title of a chart; empty where nothing is simulated.
#[component]
pub fn SimulatedMark() -> impl IntoView {
    let text = use_context::<SimulatedText>();
    text.map(|SimulatedText(text)| {
        changing(move || {
            text.get()
                .map(|text| view! { <span class="simulated">{text}</span> }.into_any())
        })
    })
}
