//! `/audit`: the audit log as pages.

mod diff;
mod entry;
mod page;
mod page_rows;
mod pending_reviews;
pub(in crate::http) mod review;

use app::console::ConsoleFuture;
use app::pages::audit::data::{AuditData, AuditEntryData, AuditPort};
use domain::access::Permission;

use crate::http::pages::caller_data::CallerData;

impl AuditPort for CallerData {
    fn audit(&self, search: String) -> ConsoleFuture<'_, AuditData> {
        Box::pin(async move {
            self.check(Permission::AuditRead)?;
            self.state.audit_data(&self.who, &search).await
        })
    }

    fn audit_entry(&self, id: String) -> ConsoleFuture<'_, AuditEntryData> {
        Box::pin(async move {
            self.check(Permission::AuditRead)?;
            self.state.audit_entry_data(&self.who, &id).await
        })
    }
}
