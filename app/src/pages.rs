//! The pages. A page's file has the types of its data, its port, its server function and its view; a page that grows has
//! data, port and server function in `PAGE/data.rs`, and parts of its view in files of their own.

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

use std::sync::Arc;

use self::alerts::data::AlertsPort;
use self::audit::data::AuditPort;
use self::docs::DocsPort;
use self::receivers::data::ReceiversPort;
use self::rule_editor::data::RuleEditorPort;
use self::settings::data::SettingsPort;
use self::unlock::data::UnlockPort;

/// The ports of pages whose data depends on the caller's permissions beyond locks. The server implements them once per request;
/// a console without an implementation (the design gallery) has locks only, through [`Console`](crate::console::Console).
pub trait PageData:
    AlertsPort + AuditPort + DocsPort + ReceiversPort + RuleEditorPort + SettingsPort + UnlockPort + Send + Sync
{
}

/// Type of the ports in Leptos' context.
pub type SharedPageData = Arc<dyn PageData>;
