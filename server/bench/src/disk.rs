//! Whether the measured folder is on a disk: on an in-memory file system nothing is durable.

use std::path::Path;

use runtime::disk::kind;

/// A sentence for the output.
pub(crate) fn describe(path: &Path) -> String {
    let kind = kind(path);
    let shown = path.display();
    if matches!(kind.as_str(), "tmpfs" | "ramfs") {
        return format!(
            "the temporary folder {shown} is in memory ({kind}): what follows is not durable; set TMPDIR to a folder on disk"
        );
    }
    format!("data of all servers in {shown}, on {kind}")
}
