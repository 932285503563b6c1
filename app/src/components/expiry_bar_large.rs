//! Expiry bar on a lock's page: 24 pixels high, with an axis, every stored renewal and a text
//! below.
//!
//! Same geometry as the small bar, with a table of the same numbers for screen readers.

use domain::expiry_bar::{self, ExpiryBar as Drawing, Form};
use domain::format;
use domain::lock::Lock;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::live::{Elapsed, use_live};

use super::expiry_bar::classes;
use crate::charts::svg::percent;

#[component]
pub fn ExpiryBarLarge(lock: Lock) -> impl IntoView {
    let drawing = Drawing::from_lock(&lock, 0);
    let class = format!("rwl {}", classes(&lock, &drawing));
    let title = expiry_bar::title(&lock);
    let figures = figures(&lock);
    let legend = legend(&lock, &drawing);
    let stored = StoredValue::new(lock.clone());
    let elapsed = use_live().elapsed();
    view! {
        <div class=class class:runs=move || { elapsed.get() > 0 }>
            <svg class="ch" role="img" height=if has_axis(&drawing, &lock) { "84" } else { "56" }>
                <title>{title}</title>
                {axis(&lock, &drawing)}
                {bar(&drawing, stored, elapsed)}
                {end(&drawing, stored, elapsed)}
            </svg>
            {legend}
            {figures}
        </div>
    }
    .into_any()
}

fn has_axis(drawing: &Drawing, lock: &Lock) -> bool {
    matches!(drawing.form, Form::Leased | Form::Expired) && expiry_bar::track_ms(lock) > 0
}

fn axis(lock: &Lock, drawing: &Drawing) -> Option<impl IntoView + use<>> {
    has_axis(drawing, lock).then(|| {
        expiry_bar::axis(expiry_bar::track_ms(lock))
            .into_iter()
            .map(|tick| {
                let class = match tick.at {
                    at if at <= 0.0 => "tick",
                    at if at >= 100.0 => "tick e",
                    _ => "tick mid",
                };
                view! {
                    <line class="grid" x1=percent(tick.at) x2=percent(tick.at) y1="18" y2="62"></line>
                    <text class=class x=percent(tick.at) y="79">{tick.label}</text>
                }
                .into_any()
            })
            .collect::<Vec<_>>()
    })
}

fn bar(drawing: &Drawing, lock: StoredValue<Lock>, elapsed: Elapsed) -> AnyView {
    match drawing.form {
        Form::Leased if lock.with_value(Lock::is_stale) => view! {
            <rect class="left" y="28" height="24" width=percent(drawing.left)></rect>
            <rect class="edge" x="0.5" y="28.5" width="99.9%" height="23"></rect>
        }
        .into_any(),
        Form::Leased | Form::Expired => {
            let left = move || percent(lock.with_value(|lock| Drawing::from_lock(lock, elapsed.get()).left));
            view! {
                <rect class="track" y="28" width="100%" height="24"></rect>
                <rect class="left" y="28" width=left height="24"></rect>
                {marks(drawing)}
            }
            .into_any()
        }
        Form::NoTtl => view! {
            <line class="rail" x1="0" x2="100%" y1="40" y2="40"></line>
            <svg class="tip" x="100%">
                <path class="head" d="M-8 32 0 40l-8 8"></path>
            </svg>
        }
        .into_any(),
        Form::Session => view! { <line class="dots" x1="0" x2="100%" y1="40" y2="40"></line> }.into_any(),
        Form::Unknown => {
            view! { <rect class="void" x="0.5" y="28.5" width="99.9%" height="23"></rect> }.into_any()
        }
    }
}

fn marks(drawing: &Drawing) -> impl IntoView + use<> {
    let lows: Vec<_> = drawing
        .low_marks
        .iter()
        .map(|at| {
            view! { <line class="low" x1=percent(*at) x2=percent(*at) y1="24" y2="56"></line> }.into_any()
        })
        .collect();
    let notch = drawing.notch.map(|at| {
        view! {
            <line class="below" x1=percent(at) x2=percent(at) y1="24" y2="54"></line>
            <svg class="tip" x=percent(at)>
                <path class="notch" d="M-5 62h10L0 54z"></path>
            </svg>
        }
        .into_any()
    });
    view! {
        {lows}
        {notch}
    }
}

/// The number at a fixed position, and the line at the end of the bar.
fn end(drawing: &Drawing, lock: StoredValue<Lock>, elapsed: Elapsed) -> impl IntoView + use<> {
    let form = drawing.form;
    let text = move || {
        lock.with_value(|lock| match form {
            Form::Leased => format!("{} left", expiry_bar::label(lock, elapsed.whole_seconds())),
            Form::Expired => format!("{}, expired", expiry_bar::label(lock, elapsed.whole_seconds())),
            Form::NoTtl | Form::Session | Form::Unknown => expiry_bar::label(lock, elapsed.whole_seconds()),
        })
    };
    let rule = matches!(form, Form::Leased | Form::Expired).then(|| {
        let at = move || percent(lock.with_value(|lock| Drawing::from_lock(lock, elapsed.get()).left));
        view! { <rect class="end" x=at y="18" width="2" height="38"></rect> }.into_any()
    });
    view! {
        <text class="now" x="0" y="12">{changing(text)}</text>
        {rule}
    }
}

/// Lists only what is drawn.
fn legend(lock: &Lock, drawing: &Drawing) -> Option<impl IntoView + use<>> {
    let marks = expiry_bar::marks_sentence(lock)
        .filter(|_| !drawing.low_marks.is_empty())
        .map(|sentence| {
            view! {
                <li>
                    <svg viewBox="0 0 16 12" aria-hidden="true">
                        <path class="low" d="M4.5 0v12M8.5 0v12M11.5 0v12"></path>
                    </svg>
                    {sentence}
                </li>
            }
            .into_any()
        });
    let notch = lock.notch_ms.filter(|_| drawing.notch.is_some()).map(|ms| {
        view! {
            <li>
                <svg viewBox="0 0 16 12" aria-hidden="true">
                    <path class="notch" d="M3 10h10L8 2z"></path>
                </svg>
                {format!("Near expiry below {}", format::duration(ms))}
            </li>
        }
        .into_any()
    });
    (marks.is_some() || notch.is_some()).then(|| view! { <ul class="legend">{marks} {notch}</ul> }.into_any())
}

/// The same numbers as a table, as of the reading.
fn figures(lock: &Lock) -> impl IntoView + use<> {
    let mut rows = vec![("left".to_owned(), expiry_bar::label(lock, 0))];
    if matches!(expiry_bar::form(lock), Form::Leased | Form::Expired) {
        rows.push((
            "whole track".to_owned(),
            format::duration(expiry_bar::track_ms(lock)),
        ));
        rows.extend(
            lock.notch_ms
                .map(|ms| ("near expiry below".to_owned(), format::duration(ms))),
        );
        let marks = lock.low_marks_ms.iter().enumerate();
        rows.extend(
            marks.map(|(index, ms)| (format!("left at renewal {}", index + 1), format::duration(*ms))),
        );
    }
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, value)| view! { <tr><th scope="row">{name}</th><td>{value}</td></tr> }.into_any())
        .collect();
    view! {
        <table class="sr">
            <caption>"The time left in numbers, as of the last reading"</caption>
            <tbody>{rows}</tbody>
        </table>
    }
}
