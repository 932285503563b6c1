//! A server that stops answering now and then: it is really paused, so that the console really goes blind.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::demo::fault::Fault;
use crate::throwaway::Redis;

const AWAKE: Duration = Duration::from_secs(40);
const PAUSED: Duration = Duration::from_secs(20);
/// From the start of the demo to the first pause.
pub(in crate::demo) const FIRST_AFTER: Duration = Duration::from_secs(20);

/// One pause, and the time until the next. Ended in the midst of a pause it leaves the server paused; whoever ends
/// the server copes with that.
pub(in crate::demo) async fn now_and_then(server: Arc<Redis>) -> Result<(), Fault> {
    server.pause().await?;
    sleep(PAUSED).await;
    server.resume().await?;
    sleep(AWAKE).await;
    Ok(())
}
