//! Histogram of durations with buckets that grow by nine per cent: small, mergeable, with
//! quantiles of a known error.

/// Eight buckets per doubling.
const PER_DOUBLING: f64 = 8.0;
/// Largest relative error of a quantile: half a bucket.
pub const ERROR: f64 = 0.045;

/// Counts of durations in milliseconds. Bucket 0 is below a millisecond; the last holds
/// everything above three weeks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram(Vec<(u8, u64)>);

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a logarithm of 63 bits times eight is below 504, and a duration needs no more than a double has"
)]
fn bucket(ms: i64) -> u8 {
    if ms <= 0 {
        return 0;
    }
    let at = ((ms as f64).log2() * PER_DOUBLING).floor() as u64 + 1;
    u8::try_from(at).unwrap_or(u8::MAX)
}

/// Geometric middle of a bucket, in milliseconds.
#[expect(clippy::cast_possible_truncation, reason = "the last bucket is some weeks")]
fn middle(bucket: u8) -> i64 {
    if bucket == 0 {
        return 0;
    }
    ((f64::from(bucket) - 0.5) / PER_DOUBLING).exp2().round() as i64
}

impl Histogram {
    pub fn add(&mut self, ms: i64) {
        self.add_many(ms, 1);
    }

    pub fn add_many(&mut self, ms: i64, count: u64) {
        self.add_to_bucket(bucket(ms), count);
    }

    fn add_to_bucket(&mut self, bucket: u8, count: u64) {
        if count == 0 {
            return;
        }
        match self.0.binary_search_by_key(&bucket, |(at, _)| *at) {
            Ok(index) => self.0[index].1 = self.0[index].1.saturating_add(count),
            Err(index) => self.0.insert(index, (bucket, count)),
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            self.add_to_bucket(*bucket, *count);
        }
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The duration that the share `q` (0 to 1) does not exceed, in milliseconds, within
    /// [`ERROR`]; `None` if empty.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a count is a count"
    )]
    pub fn quantile(&self, q: f64) -> Option<i64> {
        let count = self.count();
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut before = 0;
        for (bucket, count) in &self.0 {
            before += count;
            if before >= rank {
                return Some(middle(*bucket));
            }
        }
        None
    }

    /// Counts of the non-empty buckets with their middle in milliseconds, shortest first.
    pub fn bars(&self) -> impl Iterator<Item = (i64, u64)> {
        self.0.iter().map(|(bucket, count)| (middle(*bucket), *count))
    }

    /// Pairs of bucket and count, the count in groups of seven bits.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * 2);
        for (bucket, count) in &self.0 {
            bytes.push(*bucket);
            let mut remaining = *count;
            while remaining >= 0x80 {
                bytes.push((remaining & 0x7f) as u8 | 0x80);
                remaining >>= 7;
            }
            bytes.push(remaining as u8);
        }
        bytes
    }

    /// `None`: invalid encoding.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut found, mut bytes) = (Self::default(), bytes.iter());
        while let Some(bucket) = bytes.next() {
            let (mut count, mut shift) = (0_u64, 0);
            loop {
                let byte = *bytes.next()?;
                count |= u64::from(byte & 0x7f).checked_shl(shift)?;
                if byte < 0x80 {
                    break;
                }
                shift += 7;
            }
            found.add_to_bucket(*bucket, count);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from_durations(durations: &[i64]) -> Histogram {
        let mut all = Histogram::default();
        for ms in durations {
            all.add(*ms);
        }
        all
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        // An empty one, one of a second, and one below a millisecond.
        assert_eq!(Histogram::default().quantile(0.5), None);
        let second = from_durations(&[1_000]).quantile(0.99).unwrap();
        assert!((956..=1_045).contains(&second), "{second}");
        assert_eq!(from_durations(&[0]).quantile(1.0), Some(0));
        assert_eq!(Histogram::decode(&[3]), None);
    }

    proptest! {
        #[test]
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test's numbers are small")]
        fn quantiles_are_within_the_stated_error(mut all in proptest::collection::vec(20i64..1_000_000_000, 1..200), q in 0.0f64..=1.0) {
            // Compared with the sorted values at the same rank; below 20 ms a whole millisecond
            // exceeds the error.
            let estimate = from_durations(&all).quantile(q).unwrap() as f64;
            all.sort_unstable();
            let rank = ((q * all.len() as f64).ceil() as usize).clamp(1, all.len());
            let truth = all[rank - 1] as f64;
            prop_assert!((estimate - truth).abs() <= truth * ERROR + 1.0, "{estimate} for {truth}");
        }

        #[test]
        fn merging_adds_counts_and_bytes_survive_a_round_trip(one in proptest::collection::vec(-5i64..i64::MAX, 0..60), other in proptest::collection::vec(0i64..5_000, 0..60)) {
            let mut merged = from_durations(&one);
            merged.merge(&from_durations(&other));
            let both: Vec<i64> = one.iter().chain(&other).copied().collect();
            prop_assert_eq!(&merged, &from_durations(&both));
            prop_assert_eq!(Histogram::decode(&merged.encode()), Some(merged));
        }

        #[test]
        fn any_bytes_are_a_histogram_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            // No panic; a valid encoding is reproduced by its counts.
            if let Some(found) = Histogram::decode(&bytes) {
                prop_assert_eq!(Histogram::decode(&found.encode()), Some(found));
            }
        }
    }
}
