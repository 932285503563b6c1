//! Free loopback ports.
//!
//! Below the kernel's ephemeral range (32768 and up on Linux), so that no outgoing connection takes a server's port
//! while the server is being restarted; and low enough that Redis Cluster's bus port (+10000) is below it too.
//! A port may be taken later: callers retry when their server's bind fails.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    io,
    net::{Ipv4Addr, TcpListener},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;

/// A port on 127.0.0.1 that is unused now and that this process was not given before (until all 10,000 have been).
/// Each process starts at a random port, so that concurrent test runs rarely collide.
///
/// # Errors
/// `AddrInUse` when none is free.
pub fn free_port() -> io::Result<u16> {
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    let next = NEXT.get_or_init(|| {
        let random = RandomState::new().build_hasher().finish() % u64::from(COUNT);
        AtomicU32::new(u32::try_from(random).unwrap_or_default())
    });
    for _ in 0..COUNT {
        let step = next.fetch_add(1, Ordering::Relaxed) % u32::from(COUNT);
        let port = FIRST + u16::try_from(step).unwrap_or_default();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        "no free port between 12000 and 21999 on 127.0.0.1",
    ))
}
