//! `leasehold-bench`: measurements on this machine, compared with the goals. For developers, not shipped.
//!
//! Owns the list of parts and the output. Each part has a module that starts its own servers.

mod audit;
mod browser_session;
mod child_server;
mod delivery;
mod disk;
mod error;
mod expiry;
mod held_leases;
mod history;
mod http;
mod inventory;
mod lasting;
mod load;
mod machine_cpu;
mod metric;
mod open_pages;
mod output;
mod pages;
mod parts;
mod preview;
mod quorum;
mod redis_scan;
mod renewals;
mod replicas;
mod seed;
mod soak;
mod test_server;
mod thread_cpu;
mod throughput;
mod timer;
mod waiters;

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<ExitCode> {
    let args = parts::Args::parse();
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        anyhow::bail!("another TLS provider is installed already");
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(parts::run(args))?;
    Ok(ExitCode::SUCCESS)
}
