//! What charts are made of: time ranges, scales, ticks, decimation and paths.
//!
//! Pure: drawing and wording of a page are elsewhere. Places are in per cent of a drawing's width or height, so that one
//! drawing serves every width.

pub mod hold;
pub mod path;
pub mod range;
pub mod scale;
pub mod series;
pub mod step;
pub mod ticks;
pub mod timeline;
