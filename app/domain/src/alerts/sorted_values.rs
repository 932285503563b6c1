//! Sorted values with frequent insertion and removal: for the p95 of a sliding window.

/// Length of a chunk; inserting moves half of it on average.
const CHUNK_MAX: usize = 256;

/// Values accessible by rank, ascending.
pub(super) trait Ranked {
    fn count(&self) -> usize;

    /// `None` after the last rank.
    fn at(&self, place: usize) -> Option<i64>;

    /// The value that `percent` of the values do not exceed; 0 if empty.
    fn quantile(&self, percent: usize) -> i64 {
        let place = (self.count() * percent).div_ceil(100).saturating_sub(1);
        self.at(place).unwrap_or(0)
    }
}

/// Sorted by the caller.
impl Ranked for Vec<i64> {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, place: usize) -> Option<i64> {
        self.get(place).copied()
    }
}

/// Non-empty chunks, ascending.
#[derive(Debug, Default)]
pub(super) struct SortedValues {
    chunks: Vec<Vec<i64>>,
    count: usize,
}

impl SortedValues {
    pub(super) fn insert(&mut self, value: i64) {
        self.count += 1;
        let place = self.chunk_of(value).min(self.chunks.len().saturating_sub(1));
        let Some(chunk) = self.chunks.get_mut(place) else {
            self.chunks.push(vec![value]);
            return;
        };
        let at = chunk.partition_point(|one| *one < value);
        chunk.insert(at, value);
        if chunk.len() > CHUNK_MAX {
            let upper = chunk.split_off(CHUNK_MAX / 2);
            self.chunks.insert(place + 1, upper);
        }
    }

    /// Removes one value equal to `value`, if there is one.
    pub(super) fn remove(&mut self, value: i64) {
        let place = self.chunk_of(value);
        let Some(chunk) = self.chunks.get_mut(place) else {
            return;
        };
        if let Ok(at) = chunk.binary_search(&value) {
            chunk.remove(at);
            self.count -= 1;
            if chunk.is_empty() {
                self.chunks.remove(place);
            }
        }
    }

    /// The first chunk whose last value is at least `value`.
    fn chunk_of(&self, value: i64) -> usize {
        self.chunks
            .partition_point(|chunk| chunk.last().is_some_and(|last| *last < value))
    }
}

impl Ranked for SortedValues {
    fn count(&self) -> usize {
        self.count
    }

    fn at(&self, place: usize) -> Option<i64> {
        let mut before = 0;
        for chunk in &self.chunks {
            if let Some(value) = chunk.get(place - before) {
                return Some(*value);
            }
            before += chunk.len();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_equal_those_of_a_sorted_list(
            steps in proptest::collection::vec((any::<bool>(), 0_i64..50), 0..2_000)
        ) {
            let (mut sorted, mut plain) = (SortedValues::default(), Vec::new());
            for (is_new, value) in steps {
                if is_new {
                    sorted.insert(value);
                    plain.push(value);
                } else {
                    sorted.remove(value);
                    if let Some(at) = plain.iter().position(|one| *one == value) {
                        plain.remove(at);
                    }
                }
            }
            plain.sort_unstable();
            prop_assert_eq!(sorted.count(), plain.len());
            for place in 0..=plain.len() {
                prop_assert_eq!(sorted.at(place), plain.at(place));
            }
            prop_assert_eq!(sorted.quantile(95), plain.quantile(95));
        }
    }
}
