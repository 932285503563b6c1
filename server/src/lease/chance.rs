//! The only place of the lease service that asks for random numbers.

use domain::hex;
use domain::lease::LeaseId;

/// Sixteen random bytes as hex: a name for a replica or a store.
pub(super) fn id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(hex::text(&bytes))
}

/// A new lease id for this wall-clock millisecond. Unguessable: the thread's generator is a cryptographic one that the
/// system seeds, and costs no system call for each lease.
pub(super) fn lease_id(unix_ms: i64) -> LeaseId {
    let mut random = [0; 10];
    rand::fill(&mut random);
    LeaseId::from_parts(unix_ms, random)
}
