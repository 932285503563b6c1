//! A part of a page that changes, as one type wherever it stands.
//!
//! A closure has a type of its own, and each type that stands in a view costs the wasm 2 kB. `view!` knows that for
//! closures written in it; this is for those that have a name.

use std::sync::{Arc, Mutex};

use leptos::prelude::*;
use leptos::tachys::reactive_graph::SharedReactiveFunction;

pub fn changing<V: IntoAny + 'static>(
    mut view: impl FnMut() -> V + Send + 'static,
) -> SharedReactiveFunction<AnyView> {
    Arc::new(Mutex::new(move || view().into_any()))
}
