//! Sorted values with frequent insertion and removal: for the p95 of a sliding window.

/// Length of a chunk; inserting moves half of it on average.
const CHUNK_MAX: usize = 256;

/// Non-empty chunks of different values, ascending; each value with its number.
#[derive(Debug, Clone, Default)]
pub(super) struct SortedValues {
    chunks: Vec<Chunk>,
    count: usize,
}

#[derive(Debug, Clone, Default)]
struct Chunk {
    values: Vec<(i64, u32)>,
    count: usize,
}

impl SortedValues {
    pub(super) fn insert(&mut self, value: i64) {
        self.count += 1;
        let chunk_index = self.chunk_of(value).min(self.chunks.len().saturating_sub(1));
        if self.chunks.is_empty() {
            self.chunks.push(Chunk::default());
        }
        let chunk = &mut self.chunks[chunk_index];
        chunk.count += 1;
        match chunk.values.binary_search_by_key(&value, |(value, _)| *value) {
            Ok(at) => chunk.values[at].1 += 1,
            Err(at) => chunk.values.insert(at, (value, 1)),
        }
        if chunk.values.len() > CHUNK_MAX {
            let upper = chunk.values.split_off(CHUNK_MAX / 2);
            let count = upper.iter().map(|(_, times)| *times as usize).sum();
            chunk.count -= count;
            let values = upper;
            self.chunks.insert(chunk_index + 1, Chunk { values, count });
        }
    }

    /// Removes a value that was inserted at least `times`.
    pub(super) fn remove(&mut self, value: i64, times: u32) {
        let chunk_index = self.chunk_of(value);
        let Some(chunk) = self.chunks.get_mut(chunk_index) else {
            return;
        };
        let Ok(at) = chunk.values.binary_search_by_key(&value, |(value, _)| *value) else {
            return;
        };
        self.count -= times as usize;
        chunk.count -= times as usize;
        chunk.values[at].1 -= times;
        if chunk.values[at].1 == 0 {
            chunk.values.remove(at);
        }
        if chunk.values.is_empty() {
            self.chunks.remove(chunk_index);
        }
    }

    /// The first chunk whose last value is at least `value`.
    fn chunk_of(&self, value: i64) -> usize {
        self.chunks
            .partition_point(|chunk| chunk.values.last().is_some_and(|(last, _)| *last < value))
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// The value that `percent` of the values do not exceed; 0 if empty.
    pub(super) fn quantile(&self, percent: usize) -> i64 {
        self.at(rank(self.count, percent)).unwrap_or(0)
    }

    /// The value of a rank, ascending; `None` after the last one.
    fn at(&self, place: usize) -> Option<i64> {
        let mut before = 0;
        let is_here = |chunk: &&Chunk| {
            let is_behind = before + chunk.count <= place;
            before += if is_behind { chunk.count } else { 0 };
            !is_behind
        };
        let chunk = self.chunks.iter().find(is_here)?;
        for (value, times) in &chunk.values {
            before += *times as usize;
            if before > place {
                return Some(*value);
            }
        }
        None
    }
}

/// Rank of a quantile of `count` values.
fn rank(count: usize, percent: usize) -> usize {
    (count * percent).div_ceil(100).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Few and long: a chunk is split after 256 different values.
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

        #[test]
        fn ranks_equal_those_of_a_sorted_list(
            steps in proptest::collection::vec((any::<bool>(), 0_i64..2_000), 0..4_000)
        ) {
            let (mut sorted, mut plain) = (SortedValues::default(), Vec::new());
            for (is_new, value) in steps {
                if is_new {
                    sorted.insert(value);
                    plain.push(value);
                } else if let Some(at) = plain.iter().position(|one| *one == value) {
                    sorted.remove(value, 1);
                    plain.remove(at);
                }
            }
            plain.sort_unstable();
            prop_assert_eq!(sorted.count(), plain.len());
            for place in 0..=plain.len() {
                prop_assert_eq!(sorted.at(place), plain.get(place).copied());
            }
            let p95 = plain.get(rank(plain.len(), 95)).copied();
            prop_assert_eq!(sorted.quantile(95), p95.unwrap_or(0));
        }
    }
}
