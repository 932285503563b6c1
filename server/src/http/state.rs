//! What handlers share.

use std::sync::Arc;

use app::console::SharedConsole;
use axum::extract::FromRef;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::inventory::Inventory;

#[derive(Clone, FromRef)]
pub struct AppState {
    pub console: SharedConsole,
    pub inventory: Arc<Inventory>,
    pub clock: Clock,
    /// Ends open event streams, which graceful shutdown would wait for.
    pub stop: CancellationToken,
}
