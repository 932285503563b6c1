//! Free loopback ports.
//!
//! Below the kernel's ephemeral range (32768 and up on Linux), so that no outgoing connection takes a server's port
//! while the server is being restarted; and low enough that Redis Cluster's bus port (+10000) is below it too.
//!
//! A port belongs to the process that was given it until that process ends, also while its server is stopped: another test would
//! otherwise start its server there. Programs that do not ask here may take one: callers retry when their server's bind fails.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    io,
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::IntoRawFd as _,
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener},
    },
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;

/// A port on 127.0.0.1 that is unused now and that no running process was given.
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
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() && reserve(port)? {
            return Ok(port);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        "no free port between 12000 and 21999 on 127.0.0.1",
    ))
}

/// Binds an abstract socket, whose name the kernel frees when the process ends, however it ends. `false` if it is reserved.
fn reserve(port: u16) -> io::Result<bool> {
    let name = SocketAddr::from_abstract_name(format!("leasehold-test-port-{port}"))?;
    match UnixListener::bind_addr(&name) {
        Ok(listener) => {
            let _never_closed = listener.into_raw_fd();
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once() {
        let port = free_port().unwrap();
        assert!(!reserve(port).unwrap());
        assert!((0..50).all(|_| free_port().unwrap() != port));
    }
}
