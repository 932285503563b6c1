//! One user tries to be both users of a protected unlock: by a token, by an account that they
//! created, by a link, by a role that they granted, or by a session that another user left
//! open.

mod approver_behind_link;
mod approver_by_puppet_admin;
mod approver_by_token_grant;
mod created_approver;
mod enabled_approver;
mod promoted_approver;
mod protected_lock;
mod stale_approver_session;
mod taken_over_approver;
mod token_as_approver;
mod token_as_reviewer;
