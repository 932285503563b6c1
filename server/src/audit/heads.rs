//! The exported head: where the chain had come to, told to places that whoever can rewrite the store cannot.
//!
//! Each append is a log line (so it is wherever logs go) and, when a file is configured, a line `seq hash` in it. A copy
//! of that file kept elsewhere shows a record that was cut at its end or rewritten as a whole.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::Appended;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heads {
    file: Option<PathBuf>,
}

impl Heads {
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file }
    }

    /// A file that cannot be written is said in the log and stops nothing: the row itself is safe in the store.
    pub(super) async fn tell(&self, appended: &Appended) {
        tracing::info!(
            audit.seq = appended.seq,
            audit.hash = appended.hash,
            "audit record is at row {}, {}",
            appended.seq,
            appended.hash
        );
        let Some(file) = self.file.clone() else { return };
        let line = format!("{} {}\n", appended.seq, appended.hash);
        let written = tokio::task::spawn_blocking(move || append_line(&file, &line)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("cannot write the audit record's head: {error}"),
            Err(error) => tracing::error!("writing the audit record's head was cut off: {error}"),
        }
    }
}

fn append_line(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(line.as_bytes())
}

/// Heads of an exported file, by row. Two hashes of one row show that the record was forked or rewritten.
///
/// # Errors
/// The file cannot be read, or holds a line that is no head.
pub fn read(file: &Path) -> std::io::Result<BTreeMap<i64, Vec<String>>> {
    let text = std::fs::read_to_string(file)?;
    let mut heads: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let head = line
            .split_once(' ')
            .and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
        let Some((seq, hash)) = head else {
            let why = format!("line {} of {} is not `row hash`", number + 1, file.display());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
        };
        let hashes = heads.entry(seq).or_default();
        if !hashes.iter().any(|known| known == hash) {
            hashes.push(hash.to_owned());
        }
    }
    Ok(heads)
}
