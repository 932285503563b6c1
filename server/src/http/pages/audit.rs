//! `/audit`: the audit log as pages.

mod diff;
pub(in crate::http) mod page;
mod page_rows;
mod pending_reviews;
pub(in crate::http) mod review;
pub(in crate::http) mod row;
