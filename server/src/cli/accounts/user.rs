//! `leasehold user add|list|link|disable`

use std::io::{BufRead as _, Read as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use secrecy::SecretString;

use super::super::exit_code::Exit;
use super::super::output::{print, write};
use super::super::table::align;
use super::grant_args::{self, Granted};
use super::{AccountStore, command_line, report_error};
use crate::identity::NewUser;
use crate::serve::home;

/// Add, list and disable users, and create sign-in links for them.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  leasehold user add --name ada --role operator --prefix tenant_1: --password-stdin < password\n",
    "  leasehold user list\n",
    "  leasehold user link --name ada\n",
    "  leasehold user disable --name ada\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage or configuration.",
))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a user
    Add {
        #[command(flatten)]
        place: AccountStore,
        /// Name to sign in with
        #[arg(long, value_name = "NAME")]
        name: String,
        #[command(flatten)]
        granted: Granted,
        /// Read the password from standard input, up to the first line break
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// List users
    List {
        #[command(flatten)]
        place: AccountStore,
        /// Print JSON: [{id, name, grants, disabled}]
        #[arg(long)]
        json: bool,
    },
    /// Print a link that signs a user in once, within an hour; earlier links of the user become invalid
    Link {
        #[command(flatten)]
        place: AccountStore,
        #[arg(long, value_name = "NAME")]
        name: String,
    },
    /// Disable a user and end their sessions; prints the user's API tokens that still work
    Disable {
        #[command(flatten)]
        place: AccountStore,
        #[arg(long, value_name = "NAME")]
        name: String,
    },
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let done = match args.command {
        Command::Add {
            place, name, granted, ..
        } => add(&place, name, &granted).await?,
        Command::List { place, json } => list(&place, json).await?,
        Command::Link { place, name } => link(&place, &name).await?,
        Command::Disable { place, name } => disable(&place, &name).await?,
    };
    Ok(done.err().unwrap_or(Exit::Ok).into())
}

async fn add(place: &AccountStore, name: String, granted: &Granted) -> anyhow::Result<Result<(), Exit>> {
    let mut password = String::new();
    std::io::stdin().lock().take(64 * 1024).read_line(&mut password)?;
    let password = SecretString::from(password.lines().next().unwrap_or_default());
    let identity = match place.open_or_create().await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let new = NewUser {
        name,
        grants: granted.grants(),
        password: Some(password),
    };
    Ok(identity
        .add_user(&command_line(), new)
        .await
        .map(drop)
        .map_err(|error| report_error(&error)))
}

async fn list(place: &AccountStore, json: bool) -> anyhow::Result<Result<(), Exit>> {
    let identity = match place.open().await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let directory = identity.directory();
    let mut users: Vec<_> = directory.users.values().collect();
    users.sort_by(|a, b| a.name.cmp(&b.name));
    if json {
        let rows: Vec<_> = users
            .iter()
            .map(|user| {
                serde_json::json!({
                    "id": user.id, "name": user.name, "grants": *user.grants,
                    "disabled": user.disabled_at.is_some(),
                })
            })
            .collect();
        print(&format!("{:#}\n", serde_json::Value::from(rows)))?;
        return Ok(Ok(()));
    }
    let rows: Vec<_> = users
        .iter()
        .map(|user| {
            let grants: Vec<_> = user.grants.iter().cloned().collect();
            let disabled = if user.disabled_at.is_some() {
                "disabled"
            } else {
                ""
            };
            vec![
                user.name.clone(),
                grant_args::grants_text(&grants),
                disabled.to_owned(),
            ]
        })
        .collect();
    print(&align(&["NAME", "MAY", ""], &rows))?;
    Ok(Ok(()))
}

/// As at `/settings/users`: recorded in the audit log, and sent to every receiver.
async fn link(place: &AccountStore, name: &str) -> anyhow::Result<Result<(), Exit>> {
    let config = match place.load() {
        Ok(config) => config,
        Err(exit) => return Ok(Err(exit)),
    };
    let home = home(&config.access, config.listen);
    let identity = match AccountStore::open_store(config).await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let directory = identity.directory();
    let id = directory.user_named(name).map_or(name, |user| user.id.as_str());
    match identity.user_link(&command_line(), id).await {
        Ok(link) => {
            // A closed pipe is an error here too: the link is not stored.
            write(&format!("{home}/sign-in?link={}\n", link.expose()))
                .context("the link cannot be printed: create another")?;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err(report_error(&error))),
    }
}

async fn disable(place: &AccountStore, name: &str) -> anyhow::Result<Result<(), Exit>> {
    let identity = match place.open().await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let directory = identity.directory();
    let id = directory.user_named(name).map_or(name, |user| user.id.as_str());
    let tokens = match identity.disable_user(&command_line(), id).await {
        Ok(tokens) => tokens,
        Err(error) => return Ok(Err(report_error(&error))),
    };
    if !tokens.is_empty() {
        let names: Vec<&str> = tokens.iter().map(|token| token.name.as_str()).collect();
        print(&format!(
            "API tokens of {name} that still work: {}\nTo revoke one: leasehold token revoke --name NAME\n",
            names.join(", ")
        ))?;
    }
    Ok(Ok(()))
}
