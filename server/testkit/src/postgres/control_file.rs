//! `global/pg_control`, whose first 8 bytes identify the cluster. Copies of one template must differ: Leasehold recognizes
//! a restored or another cluster by it.
//!
//! Source: `src/include/catalog/pg_control.h` of PostgreSQL. The CRC-32C follows the last field, so its offset
//! depends on the version; it is found as the one place that holds the sum of all bytes before it.

use std::path::Path;
use std::{fs, io};

use crc::{CRC_32_ISCSI, Crc};

const CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
const IDENTIFIER: usize = size_of::<u64>();
const SUM: usize = size_of::<u32>();

pub(super) fn replace_system_identifier(data: &Path, identifier: u64) -> io::Result<()> {
    let path = data.join("global/pg_control");
    let mut content = fs::read(&path)?;
    let offset =
        crc_offset(&content).ok_or_else(|| io::Error::other("pg_control has no CRC-32C of its fields"))?;
    content[..IDENTIFIER].copy_from_slice(&identifier.to_ne_bytes());
    let sum = CRC_32C.checksum(&content[..offset]);
    content[offset..offset + SUM].copy_from_slice(&sum.to_ne_bytes());
    fs::write(&path, content)
}

fn crc_offset(content: &[u8]) -> Option<usize> {
    let offsets = (IDENTIFIER..content.len().saturating_sub(SUM)).step_by(SUM);
    let mut fields = CRC_32C.digest();
    fields.update(content.get(..IDENTIFIER)?);
    for offset in offsets {
        let next = &content[offset..offset + SUM];
        if fields.clone().finalize().to_ne_bytes() == next {
            return Some(offset);
        }
        fields.update(next);
    }
    None
}
