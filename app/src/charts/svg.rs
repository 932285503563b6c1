//! SVG that fits every width: positions in per cent, without a view box.
//!
//! Links are written inside a `g`: `view!` takes an `a` without an SVG parent for an HTML one,
//! which would not be drawn.

use domain::format;
use leptos::prelude::*;

/// A position in per cent.
pub fn percent(at: f64) -> String {
    format!("{}%", format::measure(at))
}

/// A position in pixels, to a tenth.
pub fn px(value: f64) -> String {
    format::measure((value * 10.0).round() / 10.0)
}

/// A drawing as wide as its container: role `img` with a title, or `group` if marks are links,
/// because an image has no links inside.
pub fn drawing(class: &str, height: u32, title: String, has_links: bool, marks: AnyView) -> AnyView {
    let class = format!("ch {class}");
    let role = if has_links { "group" } else { "img" };
    let label = title.clone();
    view! {
        <svg class=class.trim_end().to_owned() width="100%" height=height role=role aria-label=label>
            <title>{title}</title>
            {marks}
        </svg>
    }
    .into_any()
}

/// A viewport 1000 wide that is stretched, with constant line width.
pub fn stretched(height: u32, marks: AnyView) -> AnyView {
    let view_box = format!("0 0 1000 {height}");
    view! { <svg viewBox=view_box preserveAspectRatio="none" width="100%" height="100%">{marks}</svg> }
        .into_any()
}

/// Marks at a position of the chart, in pixels from there.
pub fn anchored(x: String, marks: AnyView) -> AnyView {
    view! { <svg x=x overflow="visible">{marks}</svg> }.into_any()
}

/// Marks as a link, if there is a URL.
pub fn linked(href: Option<String>, label: &str, marks: AnyView) -> AnyView {
    match href {
        Some(href) => view! { <g><a href=href aria-label=label.to_owned()>{marks}</a></g> }.into_any(),
        None => marks,
    }
}

/// As [`linked`], outside the tab order: one of hundreds, which the arrow keys reach.
pub fn linked_untabbed(href: Option<String>, label: &str, marks: AnyView) -> AnyView {
    match href {
        Some(href) => {
            view! { <g><a href=href aria-label=label.to_owned() tabindex="-1">{marks}</a></g> }.into_any()
        }
        None => marks,
    }
}

/// A rectangle over the height of a drawing, with a tooltip.
pub fn column(class: &'static str, (x, width): (f64, f64), title: String) -> AnyView {
    view! {
        <rect class=class x=percent(x) width=percent(width) height="100%"><title>{title}</title></rect>
    }
    .into_any()
}

/// A vertical line over the height of a drawing.
pub fn vertical(class: &'static str, x: f64) -> AnyView {
    view! { <line class=class x1=percent(x) x2=percent(x) y2="100%"></line> }.into_any()
}

/// A horizontal line over the width of a drawing, at a position in pixels or per cent.
pub fn horizontal(class: &'static str, y: &str) -> AnyView {
    view! { <line class=class x2="100%" y1=y.to_owned() y2=y.to_owned()></line> }.into_any()
}

/// A shape of the sprite.
pub fn shape(name: &str, (x, y): (&'static str, &'static str), size: &'static str) -> AnyView {
    view! { <use href=format!("#s-{name}") x=x y=y width=size height=size></use> }.into_any()
}

/// CSS class of a label at a position: those at the edges point inwards.
pub fn label_class(at: f64) -> &'static str {
    match at {
        at if at < 3.0 => "",
        at if at > 97.0 => "e",
        _ => "mid",
    }
}
