//! One person tries to be both users of a protected unlock: by a token, by an account that they opened, by a link, by a role
//! that they gave, or by a session that somebody left open.

mod approver_behind_link;
mod approver_by_puppet_admin;
mod approver_by_token_grant;
mod created_approver;
mod promoted_approver;
mod stage;
mod stale_approver_session;
mod taken_over_approver;
mod token_as_approver;
mod token_as_reviewer;
