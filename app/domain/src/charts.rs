//! Chart geometry: time ranges, scales, ticks, decimation and paths.
//!
//! Pure: drawing and wording are in `app`. Positions are in per cent of the chart's width or
//! height, so that one drawing fits every width.

pub mod durations;
pub mod held_locks;
pub mod path;
pub mod range;
pub mod scale;
pub mod series;
pub mod shown_range;
pub mod ticks;
pub mod timeline;
