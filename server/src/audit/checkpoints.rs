//! Exported checkpoints: number and hash of the last entry, written to places outside of the store.
//!
//! Each append is a log line and, if a file is configured, a line `seq hash` in it. A copy of that file kept
//! elsewhere reveals a log that was truncated or rewritten.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::Appended;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChainCheckpoints {
    file: Option<PathBuf>,
}

impl ChainCheckpoints {
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file }
    }

    /// Publishes a checkpoint. A failed write is logged and stops nothing: the entry itself is in the store.
    pub(super) async fn publish(&self, appended: &Appended) {
        tracing::info!(
            audit.seq = appended.seq,
            audit.hash = appended.hash,
            "audit log checkpoint: entry {}, hash {}",
            appended.seq,
            appended.hash
        );
        let Some(file) = self.file.clone() else { return };
        let line = format!("{} {}\n", appended.seq, appended.hash);
        let written = tokio::task::spawn_blocking(move || append_line(&file, &line)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("cannot write the audit checkpoint: {error}"),
            Err(error) => tracing::error!("writing the audit checkpoint was aborted: {error}"),
        }
    }
}

fn append_line(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(line.as_bytes())
}

/// Checkpoints of a file by entry number. Two hashes for one number reveal a fork or a rewrite.
///
/// # Errors
/// The file cannot be read, or a line is not a checkpoint.
pub fn read(file: &Path) -> std::io::Result<BTreeMap<i64, Vec<String>>> {
    let text = std::fs::read_to_string(file)?;
    let mut checkpoints: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let head = line
            .split_once(' ')
            .and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
        let Some((seq, hash)) = head else {
            let why = format!("line {} of {} must be `entry hash`", number + 1, file.display());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
        };
        let hashes = checkpoints.entry(seq).or_default();
        if !hashes.iter().any(|known| known == hash) {
            hashes.push(hash.to_owned());
        }
    }
    Ok(checkpoints)
}
