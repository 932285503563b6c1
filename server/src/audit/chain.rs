//! Hash of an entry: SHA-256 over the previous hash and every field, each prefixed with its length.
//!
//! The lengths make the encoding unambiguous: two different entries never give the same bytes, and an absent field
//! differs from an empty one. The version prefix allows a later encoding.

use domain::hex;
use sha2::{Digest as _, Sha256};

use super::append::AuditRecord;

const VERSION: &[u8] = b"leasehold-audit-1";

/// Previous hash of the first entry.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Hash of an entry in lower-case hex. Its own `hash` field is ignored.
pub fn hash(row: &AuditRecord) -> String {
    let mut hasher = Sha256::new();
    let mut field = |value: Option<&[u8]>| match value {
        None => hasher.update([0]),
        Some(bytes) => {
            hasher.update([1]);
            hasher.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            hasher.update(bytes);
        }
    };
    field(Some(VERSION));
    field(Some(row.prev_hash.as_bytes()));
    field(Some(&row.seq.to_be_bytes()));
    field(Some(&row.created_at.to_be_bytes()));
    for text in row.required() {
        field(Some(text.as_bytes()));
    }
    for text in row.optional() {
        field(text.map(str::as_bytes));
    }
    hex::text(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> AuditRecord {
        AuditRecord {
            seq: 1,
            created_at: 1_700_000_000_000,
            action: "LOGIN".to_owned(),
            phase: "outcome".to_owned(),
            outcome: "ok".to_owned(),
            actor_id: "p1".to_owned(),
            actor_name: "ada".to_owned(),
            prev_hash: GENESIS.to_owned(),
            ..AuditRecord::default()
        }
    }

    #[test]
    fn every_field_changes_the_hash() {
        // Changes each field in turn, and moves a character across each field border.
        let plain = hash(&row());
        let changes: [fn(&mut AuditRecord); 21] = [
            |row| row.seq = 2,
            |row| row.created_at += 1,
            |row| row.action.push('x'),
            |row| row.phase.push('x'),
            |row| row.outcome.push('x'),
            |row| row.actor_id.push('x'),
            |row| row.actor_name.push('x'),
            |row| row.role = Some(String::new()),
            |row| row.backend = Some(String::new()),
            |row| row.source = Some(String::new()),
            |row| row.resource = Some(String::new()),
            |row| row.unlock_id = Some(String::new()),
            |row| row.reason = Some(String::new()),
            |row| row.approver_id = Some(String::new()),
            |row| row.before = Some(String::new()),
            |row| row.after = Some(String::new()),
            |row| row.ip = Some(String::new()),
            |row| row.user_agent = Some(String::new()),
            |row| row.request_id = Some(String::new()),
            |row| row.trace_id = Some(String::new()),
            |row| row.prev_hash.replace_range(0..1, "1"),
        ];
        let mut seen = std::collections::HashSet::from([plain]);
        for change in changes {
            let mut changed = row();
            change(&mut changed);
            assert!(seen.insert(hash(&changed)), "{changed:?}");
        }
        let mut moved = row();
        (moved.actor_id, moved.actor_name) = ("p1a".to_owned(), "da".to_owned());
        assert!(seen.insert(hash(&moved)));
    }

    #[test]
    fn the_hash_equals_the_documented_one() {
        // Pinned: existing logs must still verify.
        let pinned = "4cb3c20a4e325902978bda322ce05df91a9bec736452ab28e441e329b2ee96ec";
        assert_eq!(hash(&row()), pinned);
    }
}
