//! `leasehold token create|list|revoke`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use domain::format::counted;

use super::super::exit_code::Exit;
use super::super::output::{print, write};
use super::super::table::align;
use super::grant_args::{self, Granted};
use super::{AccountStore, command_line, report_error};
use crate::identity::NewToken;
use crate::identity::limits::{TOKEN_LIFETIME_MAX, TOKEN_LIFETIME_MIN};

/// Create, list and revoke API tokens.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  LEASEHOLD_TOKEN=$(leasehold token create --name billing --role client --prefix billing: --expires 30d)\n",
    "  leasehold token create --name billing-2 --role client --prefix billing: --successor-of billing\n",
    "  leasehold token list\n",
    "  leasehold token revoke --name billing\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage or configuration.",
))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token and print it once
    Create {
        #[command(flatten)]
        place: AccountStore,
        /// Purpose of the token; shown in the audit entries of its actions
        #[arg(long, value_name = "NAME")]
        name: String,
        #[command(flatten)]
        granted: Granted,
        /// Lifetime from 1s to 10years, such as 30d [default: valid until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = parse_lifetime)]
        expires: Option<Duration>,
        /// Name or id of the token that it replaces: the new one inherits its leases
        #[arg(long, value_name = "TOKEN")]
        successor_of: Option<String>,
    },
    /// List tokens
    List {
        #[command(flatten)]
        place: AccountStore,
        /// Print JSON: [{id, name, grants, createdBy, createdAt, expiresAt, usedAt, revokedAt, successorOf}], times in milliseconds
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token: it is refused within a second; prints the tokens, links and sessions that ended with it
    Revoke {
        #[command(flatten)]
        place: AccountStore,
        /// Name or id
        #[arg(long, value_name = "NAME")]
        name: String,
    },
}

fn parse_lifetime(text: &str) -> Result<Duration, String> {
    let lifetime = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if (TOKEN_LIFETIME_MIN..=TOKEN_LIFETIME_MAX).contains(&lifetime) {
        return Ok(lifetime);
    }
    Err(
        "a lifetime is 1s to 10years; leave --expires out for a token that works until it is revoked"
            .to_owned(),
    )
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let done = match args.command {
        Command::Create {
            place,
            name,
            granted,
            expires,
            successor_of,
        } => {
            let new = NewToken {
                name,
                grants: granted.grants(),
                expires_in: expires,
            };
            create(&place, new, successor_of.as_deref()).await?
        }
        Command::List { place, json } => list(&place, json).await?,
        Command::Revoke { place, name } => revoke(&place, &name).await?,
    };
    Ok(done.err().unwrap_or(Exit::Ok).into())
}

async fn create(
    place: &AccountStore,
    new: NewToken,
    predecessor: Option<&str>,
) -> anyhow::Result<Result<(), Exit>> {
    let identity = match place.open_or_create().await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let name = new.name.clone();
    let created = match predecessor {
        Some(predecessor) => identity.create_successor(&command_line(), new, predecessor).await,
        None => identity.create_token(&command_line(), new).await,
    };
    match created {
        Ok(secret) => {
            // A closed pipe is an error here too: this is the only copy of the secret.
            write(&format!("{}\n", secret.expose())).with_context(|| {
                format!(
                    "the token was created and cannot be printed: revoke it (leasehold token revoke --name {name}) \
                     and create another"
                )
            })?;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err(report_error(&error))),
    }
}

async fn list(place: &AccountStore, json: bool) -> anyhow::Result<Result<(), Exit>> {
    let identity = match place.open().await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let tokens = match identity.tokens().await {
        Ok(tokens) => tokens,
        Err(error) => return Ok(Err(report_error(&error))),
    };
    if json {
        let rows: Vec<_> = tokens
            .iter()
            .map(|token| {
                serde_json::json!({
                    "id": token.id, "name": token.name, "grants": token.grants, "createdBy": token.created_by,
                    "createdAt": token.created_at, "expiresAt": token.expires_at, "usedAt": token.used_at,
                    "revokedAt": token.revoked_at, "successorOf": token.successor_of,
                })
            })
            .collect();
        print(&format!("{:#}\n", serde_json::Value::from(rows)))?;
        return Ok(Ok(()));
    }
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| {
            let revoked = if token.revoked_at.is_some() { "revoked" } else { "" };
            vec![
                token.name.clone(),
                grant_args::grants_text(&token.grants),
                moment(token.expires_at, "never"),
                moment(token.used_at, "never"),
                revoked.to_owned(),
            ]
        })
        .collect();
    print(&align(&["NAME", "MAY", "EXPIRES", "LAST USED", ""], &rows))?;
    Ok(Ok(()))
}

fn moment(ms: Option<i64>, none: &str) -> String {
    let time = ms.and_then(chrono::DateTime::from_timestamp_millis);
    time.map_or_else(
        || none.to_owned(),
        |time| time.format("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

async fn revoke(place: &AccountStore, name: &str) -> anyhow::Result<Result<(), Exit>> {
    let identity = match place.open().await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let ended = match identity.revoke_token(&command_line(), name).await {
        Ok(ended) => ended,
        Err(error) => return Ok(Err(report_error(&error))),
    };
    let mut text = String::new();
    if ended.tokens.len() > 1 {
        text = format!("Revoked: {}\n", ended.tokens.join(", "));
    }
    if ended.links + ended.sessions > 0 {
        let links = counted(ended.links, "sign-in link", "sign-in links");
        let sessions = counted(ended.sessions, "session", "sessions");
        text = format!("{text}Also ended: {links}, {sessions}\n");
    }
    print(&text)?;
    Ok(Ok(()))
}
