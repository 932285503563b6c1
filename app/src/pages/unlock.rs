//! Forced unlock: review, confirm, result. One URL for the first step, one for the others; and
//! the same for several locks at once.
//!
//! Deliberately slow: shows what would be released and asks for a reason and for the name.
//! Decides nothing; the server checks again at each step.

pub mod break_glass;
pub mod bulk;
pub mod data;
mod header;
mod holder_summary;
mod nodes;
mod not_found;
mod parts;
pub mod refusal;
pub mod refused_stream;
pub mod requirements;
mod result;
pub mod review;
pub mod step;
pub mod validity;

pub use parts::sentence;
pub use refusal::{HOLDER_VALUES, holder_value};
pub use review::REVIEW_FORM;

/// Key in the query of a step's URL: the form for acting without a second approver.
pub const BREAK_GLASS: &str = "break-glass";

/// URL of the steps after the first.
pub fn path(id: &str) -> String {
    format!("/unlocks/{id}")
}

/// The same, with the form for acting without a second approver.
pub fn break_glass_path(id: &str) -> String {
    format!("{}?{BREAK_GLASS}", path(id))
}
