//! Charts as views: complete in the first HTML, each with a title, a tooltip per mark and a
//! table of the same numbers; in the browser also with the values under the pointer.
//!
//! `domain::charts` computes the geometry. The server sends the data of a chart, and the browser builds the same view from it.

pub mod bars;
pub mod chart_frame;
pub mod crosshair;
pub mod durations;
pub mod heatmap;
pub mod held_locks;
pub mod ownership_timeline;
pub mod range_links;
pub mod series;
pub mod simulated_mark;
pub mod svg;
pub mod wait_cycle;
pub mod wait_timeline;

#[cfg(all(test, feature = "ssr"))]
pub(crate) mod tests;
