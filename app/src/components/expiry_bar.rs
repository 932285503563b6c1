//! Expiry bar of one row: the time left as a bar that shrinks to the left.
//!
//! Complete in the first HTML. Between two readings only the bar's width and the number change.
//! All other parts change with the next reading. Lengths are SVG attributes in per cent, because
//! the content security policy forbids style attributes.

use std::sync::Arc;

use domain::expiry_bar::{self, ExpiryBar as Drawing, Form};
use domain::lock::Lock;
use domain::state::Severity;
use leptos::prelude::*;

use crate::charts::svg::percent;
use crate::components::reactive::changing;
use crate::live::{Elapsed, use_live};

#[component]
pub fn ExpiryBar(#[prop(into)] lock: Arc<Lock>) -> impl IntoView {
    let drawing = Drawing::from_lock(&lock, 0);
    let title = expiry_bar::title(&lock);
    let class = format!("rw {}", classes(&lock, &drawing));
    let elapsed = use_live().elapsed();
    let shape = shape(&drawing, &lock, elapsed);
    // The number updates once a second; running tenths distract.
    let label = move || expiry_bar::label(&lock, elapsed.whole_seconds());
    view! {
        <span class=class class:runs=move || { elapsed.get() > 0 }>
            <svg role="img">
                <title>{title}</title>
                {shape}
            </svg>
            <b>{changing(label)}</b>
        </span>
    }
    .into_any()
}

/// Hue by the lease alone, and whether the drawing is stale or muted.
pub fn classes(lock: &Lock, drawing: &Drawing) -> String {
    let tone = match drawing.tone {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Waiting => "waiting",
        Severity::Blind => "blind dim",
        Severity::Healthy => "healthy",
    };
    if lock.is_stale() {
        format!("{tone} is-stale")
    } else {
        tone.to_owned()
    }
}

fn shape(drawing: &Drawing, lock: &Arc<Lock>, elapsed: Elapsed) -> AnyView {
    match drawing.form {
        Form::Leased if lock.is_stale() => view! {
            <rect class="left" y="4" height="8" width=percent(drawing.left)></rect>
            <rect class="edge" x="0.5" y="4.5" width="99.5%" height="7"></rect>
        }
        .into_any(),
        Form::Leased => {
            let lock = lock.clone();
            let left = move || percent(Drawing::from_lock(&lock, elapsed.get()).left);
            view! {
                <rect class="track" y="5" width="100%" height="6"></rect>
                <rect class="left" y="5" width=left height="6"></rect>
                {marks(drawing)}
            }
            .into_any()
        }
        Form::Expired => view! {
            <rect class="track" y="5" width="100%" height="6"></rect>
            <line class="end" x1="0" x2="0" y1="1" y2="15"></line>
            {marks(drawing)}
        }
        .into_any(),
        Form::NoTtl => view! {
            <line class="rail" x1="0" x2="100%" y1="8" y2="8"></line>
            <svg class="tip" x="100%">
                <path class="head" d="M-5 4 0 8l-5 4"></path>
            </svg>
        }
        .into_any(),
        Form::Session => view! { <line class="dots" x1="0" x2="100%" y1="8" y2="8"></line> }.into_any(),
        Form::Unknown => {
            view! { <rect class="void" x="0.5" y="4.5" width="99%" height="7"></rect> }.into_any()
        }
    }
}

/// Marks of past renewals, and the notch.
fn marks(drawing: &Drawing) -> impl IntoView + use<> {
    let lows: Vec<_> = drawing
        .low_marks
        .iter()
        .map(|at| {
            view! { <line class="low" x1=percent(*at) x2=percent(*at) y1="2" y2="14"></line> }.into_any()
        })
        .collect();
    let notch = drawing.notch.map(|at| {
        view! {
            <svg class="tip" x=percent(at)>
                <path class="notch" d="M-3.5 16h7L0 12z"></path>
            </svg>
        }
        .into_any()
    });
    view! {
        {lows}
        {notch}
    }
}
