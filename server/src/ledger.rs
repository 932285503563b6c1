//! The token ledger as pages read it: refused writes of a range, with the owners that history knows of their tokens.
//!
//! Writing the ledger is the lease service's; what is counted is worked out in `domain::ledger`.

use std::collections::HashMap;

use domain::charts::scale::TimeScale;
use domain::history::HistoryEvent;
use domain::lease::StoreTime;
use domain::ledger::Rejection;
use domain::names::{BackendName, OwnerId};
use domain::token::FencingToken;

use crate::lease::{LeaseError, LeaseService, RejectionRow, RejectionsAsked};

/// Rows that are read of one range; of more, the newest.
pub const ROWS_MAX: u32 = 20_000;

/// Newest first.
///
/// # Errors
/// The store of leases does not answer.
pub async fn read(leases: &LeaseService, scale: TimeScale) -> Result<Vec<Rejection>, LeaseError> {
    let asked = RejectionsAsked {
        resource: None,
        from: StoreTime::from_ms(scale.from()),
        until: StoreTime::from_ms(scale.until()),
        most: ROWS_MAX,
    };
    let rows = leases.ledger(&asked).await?;
    Ok(rows.into_iter().map(rejection).collect())
}

/// Resources may report a token without its owner: history knows to whom it was granted.
pub fn name_owners(rejections: &mut [Rejection], grants: &[HistoryEvent]) {
    let ours = BackendName::builtin();
    let granted: HashMap<(String, FencingToken), &OwnerId> = grants
        .iter()
        .filter(|grant| grant.backend == ours)
        .filter_map(|grant| Some(((grant.resource.text(), grant.token?), grant.owner.as_ref()?)))
        .collect();
    for rejection in rejections.iter_mut().filter(|row| row.owner.is_none()) {
        let key = (rejection.resource.clone(), rejection.token);
        rejection.owner = granted.get(&key).map(|owner| (*owner).clone());
    }
}

fn rejection(row: RejectionRow) -> Rejection {
    let token = |number: i64| FencingToken::new(number.cast_unsigned());
    Rejection {
        id: row.id,
        at: row.at.ms(),
        resource: row.resource,
        token: token(row.token),
        current: row.highest.map(token),
        owner: row.owner.map(OwnerId::new),
        source: row.source,
        reason: row.reason,
    }
}
