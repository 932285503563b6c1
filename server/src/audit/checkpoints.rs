//! Exported checkpoints: number and hash of the last entry, written to places outside of the store.
//!
//! Each append is a log line and, if a file is configured, a line `seq hash` in it. A copy of that file kept
//! elsewhere reveals a log that was truncated or rewritten.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Appended;

/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;
/// Limit of a write. A file system that hangs must not delay what the entry is about.
const WRITE_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Default)]
pub struct ChainCheckpoints {
    file: Option<PathBuf>,
    /// The file may end within a line: a full disk cut it.
    is_cut: Arc<AtomicBool>,
    /// Held by the write in progress: a file system that hangs blocks one thread.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl ChainCheckpoints {
    pub fn new(file: Option<PathBuf>) -> Self {
        let is_cut = file.as_deref().is_some_and(ends_within_a_line);
        Self {
            file,
            is_cut: Arc::new(is_cut.into()),
            turn: Arc::default(),
        }
    }

    /// Publishes a checkpoint. A write that fails or hangs is logged and stops nothing: the entry itself is in the store.
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
        let is_cut = self.is_cut.clone();
        let turn = self.turn.clone();
        let written = async move {
            let turn = turn.lock_owned().await;
            let write = move || {
                let _turn = turn;
                append_line(&file, &line, &is_cut)
            };
            tokio::task::spawn_blocking(write).await
        };
        match tokio::time::timeout(WRITE_MAX, written).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::error!("cannot write the audit checkpoint: {error}"),
            Ok(Err(error)) => tracing::error!("writing the audit checkpoint was aborted: {error}"),
            Err(_) => tracing::error!(
                "the audit checkpoint of entry {} is not written after {} s",
                appended.seq,
                WRITE_MAX.as_secs()
            ),
        }
    }
}

/// After a cut line, on a line of its own: the rest of that line would look like the hash of another log.
fn append_line(file: &Path, line: &str, is_cut: &AtomicBool) -> std::io::Result<()> {
    let start = if is_cut.load(Ordering::Relaxed) { "\n" } else { "" };
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(format!("{start}{line}").as_bytes()));
    is_cut.store(written.is_err(), Ordering::Relaxed);
    written
}

/// Not of a pipe, which cannot be read.
fn ends_within_a_line(file: &Path) -> bool {
    let last_byte = || -> std::io::Result<u8> {
        let mut file = std::fs::File::open(file)?;
        file.seek(SeekFrom::End(-1))?;
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        Ok(byte[0])
    };
    file.is_file() && last_byte().is_ok_and(|byte| byte != b'\n')
}

/// Checkpoints of a file by entry number. Two hashes for one number reveal a fork or a rewrite. The beginning of a
/// checkpoint, which a full disk or a copy of a growing file leaves, is ignored.
///
/// # Errors
/// The file cannot be read, or a line is not a checkpoint.
pub fn read(file: &Path) -> std::io::Result<BTreeMap<i64, Vec<String>>> {
    let text = std::fs::read_to_string(file)?;
    let mut checkpoints: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let (seq, hash) = line.split_once(' ').unwrap_or((line, ""));
        let is_hash = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_beginning = seq.bytes().all(|byte| byte.is_ascii_digit()) && hash.bytes().all(is_hash);
        if is_beginning && hash.len() < HASH_DIGITS {
            continue;
        }
        let seq = seq.parse::<i64>().ok();
        let seq = seq.filter(|_| is_beginning && hash.len() == HASH_DIGITS);
        let Some(seq) = seq else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cut_line_is_ignored_and_joins_no_other() {
        // After a full disk: a start with a cut file, a failed write, and copies of a growing file.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("checkpoints");
        let hash = |digit: &str| digit.repeat(HASH_DIGITS);
        for cut in ["", "2", "2 ", "2 bb"] {
            std::fs::write(&file, format!("1 {}\n{cut}", hash("a"))).unwrap();
            let checkpoints = ChainCheckpoints::new(Some(file.clone()));
            let entry = |seq, digit| Appended {
                seq,
                hash: hash(digit),
            };
            checkpoints.publish(&entry(3, "c")).await;
            checkpoints.publish(&entry(4, "d")).await;
            let found: Vec<i64> = read(&file).unwrap().into_keys().collect();
            assert_eq!(found, [1, 3, 4], "{cut:?}");
        }
        let is_cut = AtomicBool::new(false);
        append_line(Path::new("/dev/full"), "5 x\n", &is_cut).unwrap_err();
        append_line(&file, "6 x\n", &is_cut).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.ends_with("\n\n6 x\n"), "{text}");
        // Other texts are not ignored.
        assert!(read(&file).is_err());
    }

    #[tokio::test]
    async fn a_write_that_hangs_delays_an_entry_for_a_short_time() {
        // A pipe without a reader, which cannot be opened. The second entry does not block another thread.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
        let checkpoints = ChainCheckpoints::new(Some(file.clone()));
        let hash = "a".repeat(HASH_DIGITS);
        for seq in [1, 2] {
            let hash = hash.clone();
            checkpoints.publish(&Appended { seq, hash }).await;
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("1 {hash}\n"));
    }
}
