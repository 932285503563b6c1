//! Whether the folder that is measured in is on a disk: in memory, nothing that is called durable would be.

use std::path::Path;

use crate::disk::kind;

/// A sentence for whoever reads the figures.
pub fn told(path: &Path) -> String {
    let kind = kind(path);
    let shown = path.display();
    if matches!(kind.as_str(), "tmpfs" | "ramfs") {
        return format!(
            "the temporary folder {shown} is in memory ({kind}): what follows is not durable; set TMPDIR to a folder on disk"
        );
    }
    format!("data of all servers in {shown}, on {kind}")
}
