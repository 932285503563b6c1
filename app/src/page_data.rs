//! The port of pages whose data depends on the caller's permissions beyond locks: alerts, rules,
//! silences, receivers, audit, settings, forced unlocks. The server implements it once per request.
//!
//! Each page has one serializable type below, one method here, and one server function in `api`.
//! A console without an implementation (the design gallery) has locks only.

pub mod alert_filter;
pub mod alerts;
pub mod audit;
pub mod docs;
pub mod receivers;
pub mod rule_editor;
pub mod settings;
pub mod silence_draft;
pub mod unlock;

use std::sync::Arc;

use self::alerts::{AlertsData, SilencePreview};
use self::audit::{AuditData, AuditEntryData};
use self::docs::DocsData;
use self::receivers::{ReceiverData, ReceiversData};
use self::rule_editor::{RuleEditorData, RulePreview};
use self::settings::{AccountData, ProtectedPrefixesData, SessionsData, TokensData, UserData, UsersData};
use self::unlock::{BulkConfirmData, BulkSelectData, ReviewData, StepData};
use crate::console::ConsoleFuture;

/// Type of the port in Leptos' context.
pub type SharedPageData = Arc<dyn PageData>;

pub trait PageData: Send + Sync {
    /// `search` is the query string of the page.
    fn alerts(&self, search: String) -> ConsoleFuture<'_, AlertsData>;
    /// `search` are the fields of the silence form.
    fn silence_preview(&self, search: String) -> ConsoleFuture<'_, SilencePreview>;
    /// An empty id: a new rule, with the values of the page's query string.
    fn rule(&self, id: String, search: String) -> ConsoleFuture<'_, RuleEditorData>;
    /// `fields` is the form; empty: the rule as [`rule`](Self::rule) returns it. `is_newest`: the
    /// newest part is enough.
    fn rule_preview(
        &self,
        id: String,
        search: String,
        fields: String,
        is_newest: bool,
    ) -> ConsoleFuture<'_, RulePreview>;
    fn receivers(&self) -> ConsoleFuture<'_, ReceiversData>;
    fn receiver(&self, name: String) -> ConsoleFuture<'_, ReceiverData>;
    fn audit(&self, search: String) -> ConsoleFuture<'_, AuditData>;
    fn audit_entry(&self, id: String) -> ConsoleFuture<'_, AuditEntryData>;
    /// `path` is the path of the page.
    fn docs(&self, path: String) -> ConsoleFuture<'_, DocsData>;
    fn account(&self) -> ConsoleFuture<'_, AccountData>;
    fn sessions(&self) -> ConsoleFuture<'_, SessionsData>;
    fn users(&self) -> ConsoleFuture<'_, UsersData>;
    fn user(&self, id: String) -> ConsoleFuture<'_, UserData>;
    fn tokens(&self) -> ConsoleFuture<'_, TokensData>;
    fn protected_prefixes(&self) -> ConsoleFuture<'_, ProtectedPrefixesData>;
    /// Reads the lock from its backend.
    fn unlock_review(
        &self,
        backend: String,
        resource: String,
        search: String,
    ) -> ConsoleFuture<'_, ReviewData>;
    fn unlock(&self, id: String) -> ConsoleFuture<'_, StepData>;
    fn unlock_candidates(&self, search: String) -> ConsoleFuture<'_, BulkSelectData>;
    fn bulk_unlocks(&self, search: String) -> ConsoleFuture<'_, BulkConfirmData>;
}
