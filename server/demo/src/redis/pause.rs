//! A server that is paused periodically, so that the console loses sight of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::fault::WorkloadError;
use testkit::Redis;

const AWAKE: Duration = Duration::from_secs(40);
const PAUSED: Duration = Duration::from_secs(20);
/// From the start of the demo to the first pause.
pub(crate) const FIRST_AFTER: Duration = Duration::from_secs(20);

/// One pause, and the time until the next. If ended during a pause, the server stays paused, which its shutdown
/// handles.
pub(crate) async fn now_and_then(server: Arc<Redis>) -> Result<(), WorkloadError> {
    server.pause().await?;
    sleep(PAUSED).await;
    server.resume().await?;
    sleep(AWAKE).await;
    Ok(())
}
