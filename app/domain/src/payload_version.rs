//! Version stamp of the payload types: two builds with the same stamp can read each other's
//! payloads.
//!
//! Page payloads carry no field names, so that an old tab could misread a new server's response
//! without an error. The stamp hashes the source of the types; a changed comment changes it
//! too, which is harmless.

const SOURCES: &[&str] = &[
    include_str!("access.rs"),
    include_str!("alerts/rule_input.rs"),
    include_str!("alerts/state_machine.rs"),
    include_str!("alerts/evaluate.rs"),
    include_str!("alerts/rule.rs"),
    include_str!("alerts/silence.rs"),
    include_str!("audit.rs"),
    include_str!("backend.rs"),
    include_str!("backend/cluster.rs"),
    include_str!("blockers.rs"),
    include_str!("charts/held_locks.rs"),
    include_str!("charts/hold_time.rs"),
    include_str!("charts/range.rs"),
    include_str!("charts/scale.rs"),
    include_str!("charts/series.rs"),
    include_str!("charts/shown_range.rs"),
    include_str!("charts/timeline.rs"),
    include_str!("contention.rs"),
    include_str!("contention/page.rs"),
    include_str!("contention/recommendations.rs"),
    include_str!("contention/selection.rs"),
    include_str!("fencing_rejections.rs"),
    include_str!("fencing_rejections/page.rs"),
    include_str!("history/series.rs"),
    include_str!("lock_detail.rs"),
    include_str!("lock_detail/last_holding.rs"),
    include_str!("generation.rs"),
    include_str!("reported.rs"),
    include_str!("lease/id.rs"),
    include_str!("lease/metadata.rs"),
    include_str!("lease/store_time.rs"),
    include_str!("lock.rs"),
    include_str!("names.rs"),
    include_str!("notification.rs"),
    include_str!("observation.rs"),
    include_str!("overview.rs"),
    include_str!("query.rs"),
    include_str!("quorum.rs"),
    include_str!("force_release.rs"),
    include_str!("safety.rs"),
    include_str!("name_tree.rs"),
    include_str!("state.rs"),
    include_str!("tick.rs"),
    include_str!("token.rs"),
    include_str!("unlock.rs"),
    include_str!("waits/graph.rs"),
    include_str!("waits/page.rs"),
];

/// Stamp of the types here and in `sources` (contents of source files). It begins as no text does: with a byte that
/// continues a character in UTF-8.
pub const fn hash_sources(sources: &[&str]) -> [u8; 4] {
    ((fnv1a(fnv1a(OFFSET, SOURCES), sources) & !0x40) | 0x80).to_le_bytes()
}

/// Whether it may begin with a stamp of any build.
pub fn is_stamped(payload: &[u8]) -> bool {
    matches!(payload.first(), Some(0x80..=0xbf))
}

const OFFSET: u32 = 0x811c_9dc5;

/// FNV-1a, the 32 bit one: <http://www.isthe.com/chongo/tech/comp/fnv/>.
const fn fnv1a(mut hash: u32, texts: &[&str]) -> u32 {
    let mut text = 0;
    while text < texts.len() {
        let bytes = texts[text].as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        text += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// Files below a folder that derive `Deserialize` and are not among these sources.
    fn files_without_stamp(root: &Path, sources: &[&str]) -> Vec<PathBuf> {
        let (mut folders, mut missing) = (vec![root.to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let is_derive = |line: &str| line.starts_with("#[derive(") && line.contains("Deserialize");
                if text.lines().any(is_derive) && !sources.contains(&text.as_str()) {
                    missing.push(path);
                }
            }
        }
        missing
    }

    #[test]
    fn every_file_with_a_payload_type_is_in_the_stamp() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_eq!(files_without_stamp(&here, SOURCES), <[PathBuf; 0]>::default());
        // The crate `app` has a list of its own.
        let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
        let list = std::fs::read_to_string(app.join("api/codec.rs")).unwrap();
        let listed = list
            .lines()
            .filter_map(|line| line.trim().strip_prefix("include_str!(\"")?.strip_suffix("\"),"));
        let listed: Vec<String> = listed
            .map(|path| std::fs::read_to_string(app.join("api").join(path)).unwrap())
            .collect();
        let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        assert_eq!(files_without_stamp(&app, &listed), <[PathBuf; 0]>::default());
    }

    #[test]
    fn no_stamp_is_the_beginning_of_a_text() {
        for source in ["", "a", "b", "c", "d", "e", "f", "g"] {
            let stamp = hash_sources(&[source]);
            assert!(
                is_stamped(&stamp) && std::str::from_utf8(&stamp).is_err(),
                "{stamp:?}"
            );
        }
        assert!(!is_stamped("\u{feff}<html>".as_bytes()) && !is_stamped(b"{}") && !is_stamped(b""));
    }

    #[test]
    fn the_hash_is_fnv1a() {
        assert_eq!(fnv1a(OFFSET, &["foo", "bar"]), 0xbf9c_f968);
    }
}
