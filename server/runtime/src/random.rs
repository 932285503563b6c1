//! Random ids and secrets: the one place of the server that draws random numbers.
//!
//! Ids come from the thread's generator, a cryptographic one that the operating system seeds: unguessable, and no system
//! call for each. Secrets and keys come from the operating system itself. The client library has its own generator,
//! because it depends on none of our crates.

use domain::hex;
pub use getrandom::Error as RandomError;

pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::fill(&mut bytes);
    bytes
}

/// 128 bits as 32 hex digits: unique everywhere.
pub fn id() -> String {
    hex::text(&bytes::<16>())
}

/// A row's id: `prefix` shows what it names.
pub fn prefixed_id(prefix: &str) -> String {
    format!("{prefix}{}", id())
}

/// 32 bits as 8 hex digits: tells a few processes apart.
pub fn short_id() -> String {
    hex::text(&bytes::<4>())
}

pub fn number() -> u64 {
    rand::random()
}

/// From 0 up to, but not including, 1.
pub fn fraction() -> f64 {
    rand::random()
}

/// # Errors
/// The operating system gives no random numbers.
pub fn secret<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
