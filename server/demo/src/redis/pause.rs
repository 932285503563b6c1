//! A server that is paused periodically, so that the console cannot read it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::fault::WorkloadError;
use testkit::Redis;

const AWAKE: Duration = Duration::from_secs(40);
const PAUSED: Duration = Duration::from_secs(20);
/// From the start of the demo to the first pause.
pub(crate) const FIRST_PAUSE_AFTER: Duration = Duration::from_secs(20);

/// One pause, and the time until the next. If ended during a pause, the server stays paused, which its shutdown
/// handles.
pub(crate) async fn pause_periodically(server: Arc<Redis>) -> Result<(), WorkloadError> {
    server.pause().await?;
    sleep(PAUSED).await;
    server.resume().await?;
    sleep(AWAKE).await;
    Ok(())
}
