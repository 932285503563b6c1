//! Users and programs at a real server with authentication: sign-in, visibility, permissions,
//! audit.

mod concurrent_changes;
mod ended_session;
mod last_admin;
mod one_time_links;
mod recorded_rejections;
mod retention;
mod revalidation;
mod role_forms;
mod settings;
mod sign_in;
mod sign_in_routes;
mod tenants;
mod token_rotation;
mod tokens;
