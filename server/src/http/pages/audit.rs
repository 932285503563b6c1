//! `/audit`: the audit log as pages.

mod diff;
mod entry;
mod page;
mod page_rows;
mod pending_reviews;
pub(in crate::http) mod review;
