//! Redisson's locks: a hash whose fields are `uuid:threadId` and whose values count
//! re-entrancy. Pure.
//!
//! `RLock`, `RFairLock` and `RSpinLock` have one field; `RReadWriteLock` adds `mode` (`read` or
//! `write`), one field per reader, and stores the writer as `uuid:threadId:write`.

use super::fingerprint::Fingerprint;

/// Content of such a hash.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RedissonLock {
    /// `uuid:threadId`, sorted and unique.
    pub(super) owners: Vec<String>,
    /// `read` or `write`; `None` for other locks.
    pub(super) mode: Option<&'static str>,
    /// Field and re-entrancy count.
    pub(super) holds: Vec<(String, u64)>,
}

impl RedissonLock {
    /// `None`: a hash of another form.
    pub(super) fn parse(fields: &[(Vec<u8>, Vec<u8>)]) -> Option<Self> {
        let mut lock = Self {
            owners: Vec::new(),
            mode: None,
            holds: Vec::new(),
        };
        for (field, value) in fields {
            let field = std::str::from_utf8(field).ok()?;
            let value = std::str::from_utf8(value).ok()?;
            if field == "mode" {
                lock.mode = Some(match value {
                    "read" => "read",
                    "write" => "write",
                    _ => return None,
                });
                continue;
            }
            let owner = field.strip_suffix(":write").unwrap_or(field);
            if !is_owner(owner) {
                return None;
            }
            lock.owners.push(owner.to_owned());
            lock.holds.push((field.to_owned(), value.parse().ok()?));
        }
        lock.owners.sort_unstable();
        lock.owners.dedup();
        lock.holds.sort_unstable();
        (!lock.owners.is_empty()).then_some(lock)
    }

    /// Holders and mode. Without the counts: re-entering is no new acquisition. Redisson stores
    /// nothing that distinguishes two acquisitions by one thread.
    pub(super) fn generation(&self) -> String {
        self.generation_of(&self.holds)
    }

    /// The generation with each holder alone, and its field.
    pub(super) fn readers(&self) -> impl Iterator<Item = (String, &str)> {
        let alone = move |hold: &(String, u64)| self.generation_of(std::slice::from_ref(hold));
        self.holds.iter().map(move |hold| (alone(hold), hold.0.as_str()))
    }

    fn generation_of(&self, holds: &[(String, u64)]) -> String {
        let mut text = String::from(self.mode.unwrap_or_default());
        for (field, _) in holds {
            text.push('\n');
            text.push_str(field);
        }
        Fingerprint::from_value(text.as_bytes()).generation("hash:")
    }
}

/// `uuid:threadId`.
fn is_owner(text: &str) -> bool {
    let Some((uuid, thread)) = text.split_once(':') else {
        return false;
    };
    let groups = [8, 4, 4, 4, 12];
    let mut parts = uuid.split('-');
    groups.iter().all(|length| {
        parts
            .next()
            .is_some_and(|part| part.len() == *length && part.bytes().all(|b| b.is_ascii_hexdigit()))
    }) && parts.next().is_none()
        && !thread.is_empty()
        && thread.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "285475da-9152-4c83-822a-67ee2f116a79:52";
    const B: &str = "385475da-9152-4c83-822a-67ee2f116a79:7";

    fn parse(fields: &[(&str, &str)]) -> Option<RedissonLock> {
        let fields: Vec<_> = fields
            .iter()
            .map(|(f, v)| (f.as_bytes().to_vec(), v.as_bytes().to_vec()))
            .collect();
        RedissonLock::parse(&fields)
    }

    #[test]
    fn one_holder_keeps_its_generation_while_it_re_enters() {
        // A re-entrant lock taken twice is the same acquisition.
        let first = parse(&[(A, "1")]).unwrap();
        let re_entered = parse(&[(A, "2")]).unwrap();
        assert_eq!(first.owners, [A]);
        assert_eq!(re_entered.holds, [(A.to_owned(), 2)]);
        assert_eq!(first.generation(), re_entered.generation());
        assert_ne!(first.generation(), parse(&[(B, "1")]).unwrap().generation());
    }

    #[test]
    fn readers_are_several_owners_and_a_writer_that_reads_is_one() {
        // The fields of RReadWriteLock, in any order.
        let readers = parse(&[(B, "1"), ("mode", "read"), (A, "2")]).unwrap();
        let alone = |reader: &str| parse(&[("mode", "read"), (reader, "1")]).unwrap().generation();
        let generations: Vec<_> = readers.readers().collect();
        assert_eq!(generations, [(alone(A), A), (alone(B), B)]);
        assert_eq!(
            (readers.owners, readers.mode),
            (vec![A.to_owned(), B.to_owned()], Some("read"))
        );
        let writer = parse(&[("mode", "write"), (&format!("{A}:write"), "1"), (A, "1")]).unwrap();
        assert_eq!(writer.owners, [A]);
    }

    #[test]
    fn other_hashes_are_no_locks() {
        // One unknown field is enough: a wrong guess would offer to break a key that is no
        // lock.
        for fields in [
            vec![],
            vec![("name", "x")],
            vec![(A, "x")],
            vec![(A, "1"), ("name", "x")],
            vec![("mode", "read")],
            vec![("mode", "other"), (A, "1")],
            vec![("285475da:1", "1")],
            vec![("285475da-9152-4c83-822a-67ee2f116a79:", "1")],
        ] {
            assert_eq!(parse(&fields), None, "{fields:?}");
        }
    }
}
