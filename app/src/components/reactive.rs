//! A reactive part of a page with one type for all closures.
//!
//! Each closure has its own type, and each type in a view costs 2 kB of wasm. `view!` handles
//! inline closures; this is for named ones.

use std::sync::{Arc, Mutex};

use leptos::prelude::*;
use leptos::tachys::reactive_graph::SharedReactiveFunction;

pub fn changing<V: IntoAny + 'static>(
    mut view: impl FnMut() -> V + Send + 'static,
) -> SharedReactiveFunction<AnyView> {
    Arc::new(Mutex::new(move || view().into_any()))
}
