//! Settings: users, permissions, credentials.

pub mod account;
pub mod data;
pub mod grants;
pub mod protected_prefixes;
pub mod roles;
pub mod secret_panel;
pub mod sessions;
pub mod tokens;
pub mod user;
pub mod users;

use crate::live::topics::Topics;

/// Changes of users, tokens and settings are entries of the audit log.
const TOPICS: Topics = Topics::ACTIVITY;
