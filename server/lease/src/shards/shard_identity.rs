//! The identity of a shard, which its store contains, and the refusal of a set of stores that is not the created one.
//!
//! **Invariant:** a shard is created only while no shard has issued a token. So an empty store in the place of a shard
//! that was lost is refused: its fencing counters would start again.

use config::LeaseStores;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::map::{HASH, ShardIndex};

/// Identity of a shard, stored in the shard when it is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShardIdentity {
    /// Id of the installation, from `store`.
    pub(crate) installation: String,
    pub(crate) index: ShardIndex,
    pub(crate) shards: u32,
    /// The function from names to shards.
    pub(crate) hash: String,
}

/// A store as found before it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundShard {
    /// `None`: not created as a shard.
    pub(crate) identity: Option<ShardIdentity>,
    /// Whether a fencing token was ever issued.
    pub(crate) has_tokens: bool,
}

/// Why a list of stores is not the one that was created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}. {remedy}")]
pub struct ShardError {
    pub reason: String,
    pub remedy: String,
}

impl ShardIdentity {
    pub(crate) fn new(installation: &str, index: ShardIndex, shards: u32) -> Self {
        Self {
            installation: installation.to_owned(),
            index,
            shards,
            hash: HASH.to_owned(),
        }
    }

    /// Compares the identity that a store keeps with this one, where the configuration names it.
    pub(crate) fn check(&self, stored: &Self, address: &str) -> Result<(), ShardError> {
        // `leasehold doctor` does not know the installation.
        let is_foreign = !self.installation.is_empty() && stored.installation != self.installation;
        let (reason, remedy) = if is_foreign {
            (
                format!("{address} holds leases of another installation"),
                "Two installations never share a shard: name another database or prefix, or start with the `store` \
                 that the shards were created with"
                    .to_owned(),
            )
        } else if stored.shards != self.shards {
            (
                format!(
                    "{address} was created as one of {}, and lease.store names {}",
                    stores(stored.shards),
                    self.shards
                ),
                "The number of shards cannot change: name the stores that were created, in their order"
                    .to_owned(),
            )
        } else if stored.index != self.index {
            (
                format!(
                    "{address} was created as shard {}, and lease.store names it as shard {}",
                    stored.index, self.index
                ),
                format!(
                    "Shards are counted from 0 in the order of lease.store: name each store once, this one in place {}",
                    stored.index
                ),
            )
        } else if stored.hash != self.hash {
            (
                format!(
                    "{address} distributes names by {}, and this version by {}",
                    stored.hash, self.hash
                ),
                "Start the version that created the shards".to_owned(),
            )
        } else {
            return Ok(());
        };
        Err(ShardError { reason, remedy })
    }
}

/// Checks the stores that answered, in the order of the configuration. `None`: did not answer.
pub(super) fn check_all(
    expected: &[(ShardIdentity, String)],
    found: &[Option<FoundShard>],
) -> Result<(), ShardError> {
    for ((identity, address), found) in expected.iter().zip(found) {
        let Some(found) = found else { continue };
        match &found.identity {
            Some(stored) => identity.check(stored, address)?,
            None if found.has_tokens && identity.shards > 1 => {
                return Err(ShardError {
                    reason: format!("{address} holds leases of a store without shards"),
                    remedy: "Its resources would move to shards without their fencing tokens: name an empty database \
                             or prefix for each shard"
                        .to_owned(),
                });
            }
            None => {}
        }
    }
    let is_new = |found: &&Option<FoundShard>| found.as_ref().is_some_and(|found| found.identity.is_none());
    let is_used = |found: &Option<FoundShard>| found.as_ref().is_none_or(|found| found.has_tokens);
    let new = found.iter().position(|found| is_new(&found));
    match (new, found.iter().position(is_used)) {
        (Some(new), Some(used)) if expected.len() > 1 => Err(ShardError {
            reason: match &found[used] {
                Some(_) => format!(
                    "{} is empty, and shard {used} has issued fencing tokens",
                    expected[new].1
                ),
                None => format!("{} is empty, and shard {used} does not answer", expected[new].1),
            },
            remedy: "Shards are created together, before the first lease. If this one was lost, restore its backup: an \
                     empty one would issue its fencing tokens a second time"
                .to_owned(),
        }),
        _ => Ok(()),
    }
}

fn stores(shards: u32) -> String {
    match shards {
        1 => "1 store".to_owned(),
        shards => format!("{shards} shards"),
    }
}

/// The identities of the stores that the configuration names, with their addresses.
pub(super) fn expected(stores: &LeaseStores) -> Vec<(ShardIdentity, String)> {
    let addresses = stores.addresses();
    let shards = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    let identity = |(index, address)| {
        let identity = ShardIdentity::new(stores.installation(), ShardIndex::new(index), shards);
        (identity, address)
    };
    (0..).zip(addresses).map(identity).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(installation: &str, shards: u32) -> Vec<(ShardIdentity, String)> {
        (0..shards)
            .map(|index| {
                let identity = ShardIdentity::new(installation, ShardIndex::new(index), shards);
                (identity, format!("db-{index}"))
            })
            .collect()
    }

    fn found(installation: &str, index: u32, shards: u32) -> Option<FoundShard> {
        Some(FoundShard {
            identity: Some(ShardIdentity::new(installation, ShardIndex::new(index), shards)),
            has_tokens: true,
        })
    }

    const NEW: Option<FoundShard> = Some(FoundShard {
        identity: None,
        has_tokens: false,
    });

    fn refusal(expected: &[(ShardIdentity, String)], found: &[Option<FoundShard>]) -> String {
        check_all(expected, found).unwrap_err().to_string()
    }

    #[test]
    fn the_created_shards_are_accepted_in_their_order() {
        let two_shards = expected("a", 2);
        assert_eq!(
            check_all(&two_shards, &[found("a", 0, 2), found("a", 1, 2)]),
            Ok(())
        );
        assert_eq!(check_all(&two_shards, &[found("a", 0, 2), None]), Ok(()));
        assert_eq!(check_all(&two_shards, &[NEW, NEW]), Ok(()));
        let swapped = refusal(&two_shards, &[found("a", 1, 2), found("a", 0, 2)]);
        assert!(swapped.contains("db-0 was created as shard 1"), "{swapped}");
        assert!(swapped.contains("this one in place 1"), "{swapped}");
    }

    #[test]
    fn another_number_of_shards_is_refused() {
        let stored = [found("a", 0, 4), found("a", 1, 4)];
        let fewer = refusal(&expected("a", 2), &stored);
        assert!(
            fewer.contains("one of 4 shards, and lease.store names 2"),
            "{fewer}"
        );
        let one = refusal(&expected("a", 1), &[found("a", 0, 2)]);
        assert!(one.contains("cannot change"), "{one}");
    }

    #[test]
    fn a_shard_of_another_installation_is_refused() {
        let stored = [found("a", 0, 2), found("b", 1, 2)];
        let error = refusal(&expected("a", 2), &stored);
        assert!(
            error.contains("db-1 holds leases of another installation"),
            "{error}"
        );
    }

    #[test]
    fn a_store_with_leases_does_not_become_a_shard() {
        let unsharded = Some(FoundShard {
            identity: None,
            has_tokens: true,
        });
        let error = refusal(&expected("a", 2), &[unsharded.clone(), NEW]);
        assert!(error.contains("a store without shards"), "{error}");
        // A store without shards, used as the only shard, keeps all its resources.
        assert_eq!(check_all(&expected("a", 1), &[unsharded]), Ok(()));
    }

    #[test]
    fn an_empty_store_does_not_replace_a_lost_shard() {
        let two_shards = expected("a", 2);
        let error = refusal(&two_shards, &[found("a", 0, 2), NEW]);
        assert!(error.contains("db-1 is empty, and shard 0 has issued"), "{error}");
        let unknown = refusal(&two_shards, &[None, NEW]);
        assert!(unknown.contains("shard 0 does not answer"), "{unknown}");
        // A creation that was interrupted is completed.
        let interrupted = Some(FoundShard {
            has_tokens: false,
            ..found("a", 0, 2).unwrap()
        });
        assert_eq!(check_all(&two_shards, &[interrupted, NEW]), Ok(()));
    }
}
