//! `leasehold man`: a man page for each command, generated from `--help`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::Cli;
use super::exit_code::Exit;
use super::output::print;

/// Write man pages: leasehold.1, leasehold-serve.1 and so on.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Prints the name of each file that it wrote.\n\n",
    "Example:\n  leasehold man --out /usr/local/share/man/man1\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage.",
))]
pub struct Args {
    /// Folder for the pages; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// # Errors
/// The folder cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = &args.out;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    let mut written: Vec<PathBuf> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| is_ours(path))
        .collect();
    written.sort();
    for path in written {
        print(&format!("{}\n", path.display()))?;
    }
    Ok(Exit::Ok.into())
}

/// The folder may contain other files.
fn is_ours(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let first = name.split(['-', '.']).next();
    first == Some("leasehold") && name.ends_with(".1")
}
