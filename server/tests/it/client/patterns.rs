//! The resource's half of fencing: each pattern of docs/fencing.md on a real resource, with the comparison and, as the
//! negative control, without it.

mod objects;
mod rows;
mod service;

pub(super) use service::{Document, write, write_unfenced};
