//! The layers of a configuration, read from the process once.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::environment;
use super::error::{ConfigError, ConfigErrors};
use super::limits::FILE_BYTES_MAX;
use super::provenance::Origin;

/// Used when no file is named and this one exists.
pub const FILE_DEFAULT: &str = "leasehold.toml";

/// Later layers take precedence: file, environment, flags.
#[derive(Debug, Clone, Default)]
pub struct ConfigSources {
    pub file: Option<FileSource>,
    /// Variables with the prefix `LEASEHOLD_`.
    pub environment: BTreeMap<String, String>,
    pub flags: Vec<FlagSource>,
}

#[derive(Debug, Clone)]
pub struct FileSource {
    pub path: PathBuf,
    pub text: String,
}

/// A command line flag for a top-level key.
#[derive(Debug, Clone)]
pub struct FlagSource {
    pub key: &'static str,
    /// `--listen`
    pub name: &'static str,
    pub value: String,
}

impl ConfigSources {
    /// Reads the file (the named one, or `leasehold.toml` where it exists) and the process's environment.
    ///
    /// # Errors
    /// The named file cannot be read, is not UTF-8 or too large; a variable is not UTF-8.
    pub fn gather(file: Option<&Path>, flags: Vec<FlagSource>) -> Result<Self, ConfigErrors> {
        let default = default_file();
        let file = file.or(default.as_deref());
        Ok(Self {
            file: file.map(read).transpose()?,
            environment: environment::read_process()?,
            flags,
        })
    }
}

/// `leasehold.toml` of the current folder, if it exists. A link without its target exists too: to read it is an error,
/// because a server on defaults alone would watch nothing.
pub fn default_file() -> Option<PathBuf> {
    let found = Path::new(FILE_DEFAULT).symlink_metadata();
    let is_absent = found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    (!is_absent).then(|| PathBuf::from(FILE_DEFAULT))
}

fn read(path: &Path) -> Result<FileSource, ConfigError> {
    let error = |message: String| ConfigError {
        key: String::new(),
        origin: Origin::File {
            path: Arc::from(path.display().to_string()),
            line: 0,
        },
        message,
        remedy: "Name the file with --config, or start in the folder that holds leasehold.toml.".to_owned(),
    };
    let file = std::fs::File::open(path).map_err(|why| error(format!("cannot be read: {why}")))?;
    let mut bytes = Vec::new();
    let taken = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    taken.map_err(|why| error(format!("cannot be read: {why}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(error(format!("is larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| error("is not UTF-8".to_owned()))?;
    Ok(FileSource {
        path: path.to_owned(),
        text,
    })
}
