//! Three sessions blocked on rows of one table in a chain, which the console shows as a tree.

use std::time::Duration;

use tokio::time::sleep;

use super::{Access, run};
use crate::fault::WorkloadError;

const HOLD: Duration = Duration::from_secs(80);
/// The third session must start when the second holds its row and waits.
const STEP: Duration = Duration::from_millis(300);

/// `billing-api-2` keeps row 1 while idle in its transaction; `ledger-post-4` has row 2 and waits for row 1;
/// `exporter-3` waits for row 2. After a while the first ends, and the cycle restarts.
pub(crate) async fn block_in_chain(access: Access) -> Result<(), WorkloadError> {
    let mut root = access.session("billing-api-2").await?;
    let mut middle = access.session("ledger-post-4").await?;
    let mut leaf = access.session("exporter-3").await?;
    run(
        &mut root,
        "BEGIN; UPDATE invoices SET state = 'closing' WHERE id = 1",
    )
    .await?;
    run(
        &mut middle,
        "BEGIN; UPDATE invoices SET state = 'posting' WHERE id = 2",
    )
    .await?;
    let root = async {
        sleep(HOLD).await;
        run(&mut root, "ROLLBACK").await
    };
    let middle = run(
        &mut middle,
        "UPDATE invoices SET state = 'posting' WHERE id = 1; ROLLBACK",
    );
    let leaf = async {
        sleep(STEP).await;
        run(
            &mut leaf,
            "BEGIN; UPDATE invoices SET state = 'exported' WHERE id = 2; ROLLBACK",
        )
        .await
    };
    tokio::try_join!(root, middle, leaf)?;
    sleep(Duration::from_secs(2)).await;
    Ok(())
}
