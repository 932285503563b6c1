//! The port of pages whose data depends on the caller's permissions beyond locks: alerts, rules,
//! silences, receivers, audit, settings. The server implements it once per request.
//!
//! Each page has one serializable type below, one method here, and one server function in `api`.
//! A console without an implementation (the design gallery) has locks only.

pub mod receivers;

use std::sync::Arc;

use self::receivers::{ReceiverData, ReceiversData};
use crate::console::ConsoleFuture;

/// Type of the port in Leptos' context.
pub type SharedPageData = Arc<dyn PageData>;

pub trait PageData: Send + Sync {
    fn receivers(&self) -> ConsoleFuture<'_, ReceiversData>;
    fn receiver(&self, name: String) -> ConsoleFuture<'_, ReceiverData>;
}
