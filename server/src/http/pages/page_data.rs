//! Implements the pages' `PageData` port with the services, for the caller of a request. The table of routes decides who may
//! open a page and call its server function; each method limits its data to the caller's scope. Data without a scope is
//! checked here again, because the pages' router reads the path on its own: it ignores a slash at the end, for example.

use app::console::{ConsoleError, ConsoleFuture};
use app::page_data::PageData;
use app::page_data::alerts::{AlertsData, SilencePreview};
use app::page_data::audit::{AuditData, AuditEntryData};
use app::page_data::docs::DocsData;
use app::page_data::receivers::{ReceiverData, ReceiversData};
use app::page_data::rule_editor::{RuleEditorData, RulePreview};
use app::page_data::settings::{
    AccountData, ProtectedPrefixesData, SessionsData, TokensData, UserData, UsersData,
};
use app::page_data::unlock::{BulkConfirmData, BulkSelectData, ReviewData, StepData};
use domain::access::Permission;

use crate::http::state::AppState;
use crate::identity::Principal;

pub(super) struct CallerData {
    pub(super) state: AppState,
    pub(super) who: Principal,
}

impl CallerData {
    fn check(&self, permission: Permission) -> Result<(), ConsoleError> {
        if self.who.may_anywhere(permission) {
            return Ok(());
        }
        Err(ConsoleError::Forbidden {
            permission: permission.as_str().to_owned(),
        })
    }
}

impl PageData for CallerData {
    fn alerts(&self, search: String) -> ConsoleFuture<'_, AlertsData> {
        Box::pin(async move { self.state.alerts_data(&self.who, &search).await })
    }

    fn silence_preview(&self, search: String) -> ConsoleFuture<'_, SilencePreview> {
        Box::pin(async move { self.state.silence_preview(&self.who, &search).await })
    }

    fn rule(&self, id: String, search: String) -> ConsoleFuture<'_, RuleEditorData> {
        Box::pin(async move { self.state.rule_data(&self.who, &id, &search).await })
    }

    fn rule_preview(
        &self,
        id: String,
        search: String,
        fields: String,
        is_newest: bool,
    ) -> ConsoleFuture<'_, RulePreview> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            let request = (id.as_str(), search.as_str(), fields.as_str());
            self.state.rule_preview(&self.who, request, is_newest).await
        })
    }

    fn receivers(&self) -> ConsoleFuture<'_, ReceiversData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.receivers_data().await
        })
    }

    fn receiver(&self, name: String) -> ConsoleFuture<'_, ReceiverData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.receiver_data(&name).await
        })
    }

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

    fn docs(&self, path: String) -> ConsoleFuture<'_, DocsData> {
        Box::pin(std::future::ready(super::docs::data(&path)))
    }

    fn account(&self) -> ConsoleFuture<'_, AccountData> {
        Box::pin(self.state.account_data(&self.who))
    }

    fn sessions(&self) -> ConsoleFuture<'_, SessionsData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.sessions_data(&self.who).await
        })
    }

    fn users(&self) -> ConsoleFuture<'_, UsersData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.users_data().await
        })
    }

    fn user(&self, id: String) -> ConsoleFuture<'_, UserData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.user_data(&self.who, &id).await
        })
    }

    fn tokens(&self) -> ConsoleFuture<'_, TokensData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.tokens_data().await
        })
    }

    fn protected_prefixes(&self) -> ConsoleFuture<'_, ProtectedPrefixesData> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            self.state.protected_prefixes_data().await
        })
    }

    fn unlock_review(
        &self,
        backend: String,
        resource: String,
        search: String,
    ) -> ConsoleFuture<'_, ReviewData> {
        Box::pin(async move {
            let lock = (backend.as_str(), resource);
            self.state.unlock_review_data(&self.who, lock, &search).await
        })
    }

    fn unlock(&self, id: String) -> ConsoleFuture<'_, StepData> {
        Box::pin(async move { self.state.unlock_step_data(&self.who, &id).await })
    }

    fn unlock_candidates(&self, search: String) -> ConsoleFuture<'_, BulkSelectData> {
        Box::pin(async move {
            self.check(Permission::Unlock)?;
            self.state.unlock_candidates_data(&self.who, &search)
        })
    }

    fn bulk_unlocks(&self, search: String) -> ConsoleFuture<'_, BulkConfirmData> {
        Box::pin(async move { self.state.bulk_unlocks_data(&self.who, &search).await })
    }
}

/// The store of the console does not answer.
pub(super) fn unavailable(what: &str) -> ConsoleError {
    ConsoleError::Unavailable {
        what: what.to_owned(),
    }
}
