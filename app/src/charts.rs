//! Charts as HTML that is made on the server and needs no script: each with a title, a tooltip for every mark and a table of
//! the same numbers.
//!
//! What is drawn where is worked out in `domain::charts`. Nothing here is reached from what the browser compiles: pages that
//! it hydrates show charts as one string.

pub mod bars;
pub mod firing;
pub mod frame;
pub mod heat;
pub mod held;
pub mod hold;
pub mod lately;
pub mod markup;
pub mod ownership;
pub mod past;
pub mod range_links;
pub mod seen;
pub mod series;
