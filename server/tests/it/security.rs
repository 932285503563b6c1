//! The security checklist, line by line: routes from the router's own source, and docs/security.md held to the tests that
//! it names. What has a place of its own is there: docs/security.md says where.

pub(crate) mod canaries;
mod documented;
mod guessing;
mod headers;
mod limits;
mod matrix;
mod static_files;
mod supply;
mod tenant_matrix;
