//! The threshold line in the preview's chart: a slider that updates its number field at once. Each preview redraws the line.
//! So while the line moves no preview is shown, until the one for the value at which it was released has arrived.

use leptos::ev::{self, Event};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Movement {
    #[default]
    Still,
    /// Dragged by a pointer.
    Held,
    /// Released by the pointer, or moved by keyboard.
    Moved,
    /// The preview of its current value is requested and has not arrived.
    Requested,
}

#[derive(Clone, Copy, Default)]
pub struct ThresholdLine(RwSignal<Movement>);

impl ThresholdLine {
    /// Whether it may be drawn again.
    pub fn is_still(self) -> bool {
        self.0.get() == Movement::Still
    }

    /// A pointer begins to drag the line.
    pub fn hold(self, event: &Event) {
        if line_of(event).is_some() {
            self.0.try_set(Movement::Held);
        }
    }

    /// Updates the number field when the line moves.
    pub fn follow(self, event: &Event) {
        let Some(line) = line_of(event) else { return };
        if self.0.try_get_untracked() != Some(Movement::Held) {
            self.0.try_set(Movement::Moved);
        }
        set_threshold(&line);
    }

    /// Calls `then` when the pointer releases the line, also outside of the chart. In the browser only.
    pub fn on_release(self, then: impl Fn() + Copy + 'static) {
        let release = move || {
            if self.replace(Movement::Held, Movement::Moved) {
                then();
            }
        };
        Effect::new(move |_| {
            let up = window_event_listener(ev::pointerup, move |_| release());
            let canceled = window_event_listener(ev::pointercancel, move |_| release());
            on_cleanup(move || {
                up.remove();
                canceled.remove();
            });
        });
    }

    /// The preview of the current fields was requested. `is_known`: they equal those of the last request.
    pub fn requested(self, is_known: bool) {
        let next = if is_known {
            Movement::Still
        } else {
            Movement::Requested
        };
        self.replace(Movement::Moved, next);
    }

    /// The preview of the current fields has arrived.
    pub fn arrived(self) {
        self.replace(Movement::Requested, Movement::Still);
    }

    /// Call it after a preview is drawn. Moves the slider to its drawn value, because a slider that was moved ignores its `value`
    /// attribute. If the line that was replaced had the keyboard focus, the new line gets it.
    pub fn sync_after_redraw(self) {
        if cfg!(feature = "ssr") {
            return;
        }
        let had_focus = matches!(document().query_selector(".pv-drag:focus"), Ok(Some(_)));
        request_animation_frame(move || {
            let line = document().query_selector(".pv-drag").ok().flatten();
            let Some(line) = line.and_then(|line| line.dyn_into::<HtmlInputElement>().ok()) else {
                return;
            };
            if had_focus {
                let _ = line.focus();
            }
            if self.0.try_get_untracked() == Some(Movement::Still) {
                line.set_value(&line.default_value());
            }
        });
    }

    /// Resets the state, for another rule.
    pub fn reset(self) {
        self.0.try_set(Movement::Still);
    }

    fn replace(self, from: Movement, to: Movement) -> bool {
        let is_so = self.0.try_get_untracked() == Some(from);
        if is_so {
            self.0.try_set(to);
        }
        is_so
    }
}

fn line_of(event: &Event) -> Option<HtmlInputElement> {
    let target = event.target()?.dyn_into::<HtmlInputElement>().ok()?;
    (target.name() == "line").then_some(target)
}

fn set_threshold(line: &HtmlInputElement) {
    let (param, unit) = (
        line.get_attribute("data-param").unwrap_or_default(),
        line.get_attribute("data-suffix").unwrap_or_default(),
    );
    let field = document().get_element_by_id(&format!("with.{param}"));
    if let Some(field) = field.and_then(|field| field.dyn_into::<HtmlInputElement>().ok()) {
        field.set_value(&format!("{}{unit}", line.value()));
    }
}
