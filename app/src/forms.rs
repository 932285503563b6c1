//! Forms: posted by the browser without a script, by `fetch` with one. See [`console_form`].

pub mod console_form;
pub mod field;
pub mod filter_form;
pub mod reply;
pub mod submit;
