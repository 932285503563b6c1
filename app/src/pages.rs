//! One file per page: its resources and its layout.

pub mod alerts;
pub mod audit;
pub mod backends;
pub mod contention;
pub mod docs;
pub mod fencing;
pub mod lock;
pub mod locks;
pub mod overview;
pub mod receivers;
pub mod rule_editor;
pub mod settings;
pub mod silence;
pub mod unlock;
pub mod waits;
