//! The `leasehold` binary: one TLS provider, one runtime, one command.

use std::process::ExitCode;

use leasehold::cli::{Cli, Exit, report};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::from_process();
    if let Some(code) = cli.run_bare() {
        return code;
    }
    // Used by every TLS client of the process. A second provider would be a bug.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        report("another TLS provider is installed already");
        return Exit::Failure.into();
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            report(&format!("cannot start the runtime: {error}"));
            return Exit::Failure.into();
        }
    };
    let ended = runtime.block_on(cli.run());
    // A pending DNS lookup on a blocking thread must not delay the exit.
    runtime.shutdown_timeout(runtime::shutdown::LEFTOVERS_MAX);
    match ended {
        Ok(code) => code,
        Err(error) => {
            report(&format!("{error:#}"));
            Exit::Failure.into()
        }
    }
}
