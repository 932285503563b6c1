//! Charts as server-rendered HTML without script: each with a title, a tooltip per mark and a
//! table of the same numbers.
//!
//! `domain::charts` computes the geometry. Not compiled for the browser: hydrated pages insert
//! charts as one string.

pub mod bars;
pub mod chart_frame;
pub mod firing_alerts;
pub mod heatmap;
pub mod held_locks;
pub mod hold_time;
pub mod html_writer;
pub mod ownership_timeline;
pub mod range_links;
pub mod recent_events;
pub mod recent_incidents;
pub mod released_lock_facts;
pub mod series;
