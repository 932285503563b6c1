//! Reactive parts and lists of a page with one type for all closures.
//!
//! Each closure has its own type, and each type costs 2 kB of wasm in a view, and 6 kB in a list. `view!` handles inline
//! closures; these are for named ones and for lists.

use std::sync::{Arc, Mutex};

use leptos::prelude::*;
use leptos::tachys::reactive_graph::SharedReactiveFunction;

use crate::focus::keep_focus;

pub fn changing<V: IntoAny + 'static>(
    mut view: impl FnMut() -> V + Send + 'static,
) -> SharedReactiveFunction<AnyView> {
    Arc::new(Mutex::new(move || view().into_any()))
}

type Part = dyn Fn(String) -> AnyView + Send + Sync;

/// A part for each key, created once. It moves with its key, and with it the focus.
pub fn keyed(keys: Memo<Vec<String>>, part: impl Fn(String) -> AnyView + Send + Sync + 'static) -> AnyView {
    list(keys, Arc::new(part))
}

fn list(keys: Memo<Vec<String>>, part: Arc<Part>) -> AnyView {
    let each = move || {
        keep_focus();
        keys.get()
    };
    view! { <For each key=String::clone children=move |key: String| part(key)/> }.into_any()
}
