//! One pass over all held leases, shard by shard.

use std::sync::Arc;

use domain::duration::millis;
use domain::lease::scope::NameRange;
use domain::names::Resource;
use domain::observation::Coverage;
use domain::reported::Reported;
use domain::tick::Tick;
use lease::{ShardIndex, ShardMap};

use super::observed::{rows, to_datetime};
use super::{Builtin, failed};
use crate::{BackendError, Batch, Budget, ClockReading, NamePredicate, Pass, Sink, SourcePass};

const PAGE: u32 = 1_000;

/// Result of one shard.
#[derive(Default)]
struct ShardRead {
    seen: u64,
    clock: Option<ClockReading>,
    /// The scan timeout ran out.
    is_cut: bool,
}

impl Builtin {
    /// Reads shard by shard: one that does not answer leaves its locks as they were, and the pass partial.
    pub(super) async fn pass(&self, budget: Budget, sink: &mut dyn Sink) -> Result<Pass, BackendError> {
        let deadline = self.clock.tick().plus(millis(budget.time_max));
        let shards = self.service.shards();
        let (mut seen, mut clock) = (0, None);
        let mut missing: Vec<String> = Vec::new();
        let mut failures = Vec::new();
        for shard in &shards {
            let read = match shard.is_down && shards.len() > 1 {
                // Its maintenance notices when it answers again: the scan of the others does not wait for it.
                true => Err(BackendError::Unreachable {
                    detail: "the shard does not answer".to_owned(),
                }),
                false => self.read_shard(shard.index, deadline, sink).await,
            };
            match read {
                Ok(read) => {
                    seen += read.seen;
                    clock = clock.or(read.clock);
                    if read.is_cut {
                        missing.push("the scan timed out".to_owned());
                        break;
                    }
                    sink.read_part(&Self::source(), names_in(shard.index, shards.len()));
                }
                Err(error) => {
                    missing.push(format!(
                        "shard {} ({}) does not answer",
                        shard.index, shard.address
                    ));
                    failures.push(error);
                }
            }
        }
        if failures.len() == shards.len()
            && let Some(error) = failures.pop()
        {
            return Err(error);
        }
        let coverage = match missing.is_empty() {
            true => Coverage::Complete,
            false => Coverage::Partial {
                seen,
                of: None,
                why: missing.join("; ").into(),
            },
        };
        Ok(Pass {
            sources: vec![SourcePass {
                source: Self::source(),
                coverage,
                fault: None,
            }],
            clock: clock.map_or(Reported::unknown("nothing was read"), Reported::Value),
        })
    }

    async fn read_shard(
        &self,
        shard: ShardIndex,
        deadline: Tick,
        sink: &mut dyn Sink,
    ) -> Result<ShardRead, BackendError> {
        let all_names = NameRange::starting_with("");
        let mut after = None::<Resource>;
        let mut read_shard = ShardRead::default();
        loop {
            let before = self.clock.now();
            let read = self
                .service
                .held_in(shard, &all_names, after.as_ref(), PAGE)
                .await
                .map_err(failed)?;
            let half_ms = self.clock.tick().since(before.tick) / 2;
            read_shard.clock.get_or_insert(ClockReading {
                backend_now: to_datetime(read.now),
                our_now: before.wall + chrono::TimeDelta::milliseconds(half_ms),
                error_ms: half_ms,
            });
            let full = read.value.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX);
            after = read.value.last().map(|row| row.resource.clone());
            read_shard.seen += u64::try_from(read.value.len()).unwrap_or(0);
            sink.accept(Batch {
                sent_at: before.tick,
                locks: rows(&read, &self.stale_writes(read.now).await?).collect(),
                gone: Vec::new(),
            });
            if !full {
                return Ok(read_shard);
            }
            if self.clock.tick().since(deadline) > 0 {
                read_shard.is_cut = true;
                return Ok(read_shard);
            }
        }
    }
}

/// Accepts the names of one of this number of shards.
fn names_in(shard: ShardIndex, shards: usize) -> NamePredicate {
    let map = ShardMap::new(shards);
    Arc::new(move |name: &[u8]| map.is_some_and(|map| map.of_resource(&Resource::from_bytes(name)) == shard))
}
