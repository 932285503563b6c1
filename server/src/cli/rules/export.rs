//! Exports the rules of a server, or the built-in ones, as TOML or as Prometheus alerting rules.

use clap::ValueEnum;
use domain::alerts::{Draft, builtin};

use super::{client, failed};
use crate::alerts;
use crate::cli::connection::Connection;
use crate::cli::exit_code::Exit;
use crate::cli::output::print;

/// Console URL in exports without a server.
const HOME: &str = "https://leasehold.example.com";

/// Write the rules to standard output
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    connection: Connection,
    #[arg(long, value_enum, default_value_t = Format::Toml)]
    format: Format,
    /// The built-in rules, without a server
    #[arg(long)]
    builtin: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For review, and for `rules import`
    Toml,
    /// Alerting rules over Leasehold's metrics
    Prometheus,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Result<(), Exit>> {
    if args.builtin {
        let rules = builtin();
        print(&match args.format {
            Format::Toml => alerts::toml(rules.iter().map(Draft::from)),
            Format::Prometheus => alerts::prometheus(rules.iter(), HOME),
        })?;
        return Ok(Ok(()));
    }
    let client = match client(&args.connection) {
        Ok(client) => client,
        Err(exit) => return Ok(Err(exit)),
    };
    let format = match args.format {
        Format::Toml => "toml",
        Format::Prometheus => "prometheus",
    };
    Ok(match client.text("v1/rules", &[("format", format)]).await {
        Ok(text) => {
            print(&text)?;
            Ok(())
        }
        Err(error) => Err(failed(&error)),
    })
}
