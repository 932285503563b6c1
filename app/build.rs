//! Writes the version stamp of page payloads: a hash of every source file with a payload type, of this crate and of `domain`.
//! `src/api/codec.rs` puts it before each payload.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

const FOLDERS: [&str; 2] = ["src", "domain/src"];

/// Each payload type derives or implements it.
const PAYLOAD_TRAIT: &str = "Deserialize";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let mut hash = OFFSET;
    for folder in FOLDERS {
        println!("cargo:rerun-if-changed={folder}");
        let mut files = Vec::new();
        rust_files(Path::new(folder), &mut files)?;
        // The browser's build and the server's read the folder in the same order.
        files.sort();
        for file in files {
            let text = fs::read_to_string(file)?;
            if text.contains(PAYLOAD_TRAIT) {
                hash = fnv1a(hash, text.as_bytes());
            }
        }
    }
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    // It begins as no text does: with a byte that continues a character in UTF-8.
    let stamp = (hash & !0x40) | 0x80;
    fs::write(Path::new(&out).join("payload_stamp"), stamp.to_le_bytes())
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.is_file() && path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

const OFFSET: u32 = 0x811c_9dc5;

/// FNV-1a, the 32 bit one: <http://www.isthe.com/chongo/tech/comp/fnv/>. Unlike the hash of the standard library, it is the
/// same with every compiler.
fn fnv1a(hash: u32, bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(hash, step)
}
