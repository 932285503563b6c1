//! A lease for unit tests.

use domain::lease::{Lease, LeaseId, Metadata, StoreTime, Ttl};
use domain::names::OwnerId;
use domain::token::FencingToken;

/// Granted at this time for 30 s, with token 1.
pub(crate) fn granted_lease(now: StoreTime) -> Lease {
    Lease {
        id: LeaseId::from_parts(1_700_000_000_000, [1; 10]),
        owner: OwnerId::new("o"),
        issuer: "t".into(),
        token: FencingToken::new(1),
        ttl: Ttl::parse(30, 3_600).unwrap(),
        metadata: Metadata::default(),
        acquired_at: now,
        expires_at: now.plus(30_000),
        renewed_at: now,
        renewals: 0,
        margin_ms: 0,
        ending: None,
    }
}
