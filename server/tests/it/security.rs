//! The security checklist, line by line: routes from the router's own source, and docs/security.md held to the tests that
//! it names. What has a place of its own is there: docs/security.md says where.

pub(crate) mod canaries;
mod documented_controls;
mod headers;
mod limits;
mod password_guessing;
mod route_matrix;
mod static_files;
mod supply_chain;
mod tenant_matrix;
