//! `leasehold user add|list|disable`

use std::io::Read as _;
use std::process::ExitCode;

use clap::Subcommand;
use secrecy::SecretString;

use super::super::exit::Exit;
use super::super::output::print;
use super::super::table::align;
use super::granted::{self, Granted};
use super::{Place, refused, who};
use crate::identity::NewPerson;

/// Add, list and disable people.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  leasehold user add --name ada --role operator --prefix tenant_1: --password-stdin < password\n",
    "  leasehold user list\n",
    "  leasehold user disable --name ada\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage or configuration.",
))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a person
    Add {
        #[command(flatten)]
        place: Place,
        /// Name to sign in with
        #[arg(long, value_name = "NAME")]
        name: String,
        #[command(flatten)]
        granted: Granted,
        /// Read the password from standard input, up to the end or the first line's
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// List people
    List {
        #[command(flatten)]
        place: Place,
        /// Print JSON: [{id, name, grants, disabled}]
        #[arg(long)]
        json: bool,
    },
    /// Disable a person and end their sessions
    Disable {
        #[command(flatten)]
        place: Place,
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
        Command::Disable { place, name } => disable(&place, &name).await,
    };
    Ok(done.err().unwrap_or(Exit::Ok).into())
}

async fn add(place: &Place, name: String, granted: &Granted) -> anyhow::Result<Result<(), Exit>> {
    let mut password = String::new();
    std::io::stdin()
        .lock()
        .take(64 * 1024)
        .read_to_string(&mut password)?;
    let password = SecretString::from(password.lines().next().unwrap_or_default());
    let identity = match place.open().await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let new = NewPerson {
        name,
        grants: granted.grants(),
        password: Some(password),
    };
    Ok(identity
        .add_person(&who(), new)
        .await
        .map(drop)
        .map_err(|error| refused(&error)))
}

async fn list(place: &Place, json: bool) -> anyhow::Result<Result<(), Exit>> {
    let identity = match place.open().await {
        Ok(identity) => identity,
        Err(exit) => return Ok(Err(exit)),
    };
    let directory = identity.directory();
    let mut people: Vec<_> = directory.people.values().collect();
    people.sort_by(|a, b| a.name.cmp(&b.name));
    if json {
        let rows: Vec<_> = people
            .iter()
            .map(|person| {
                serde_json::json!({
                    "id": person.id, "name": person.name, "grants": *person.grants,
                    "disabled": person.disabled_at.is_some(),
                })
            })
            .collect();
        print(&format!("{:#}\n", serde_json::Value::from(rows)))?;
        return Ok(Ok(()));
    }
    let rows: Vec<_> = people
        .iter()
        .map(|person| {
            let grants: Vec<_> = person.grants.iter().cloned().collect();
            let disabled = if person.disabled_at.is_some() {
                "disabled"
            } else {
                ""
            };
            vec![person.name.clone(), granted::words(&grants), disabled.to_owned()]
        })
        .collect();
    print(&align(&["NAME", "MAY", ""], &rows))?;
    Ok(Ok(()))
}

async fn disable(place: &Place, name: &str) -> Result<(), Exit> {
    let identity = place.open().await?;
    let directory = identity.directory();
    let id = directory
        .person_named(name)
        .map_or(name, |person| person.id.as_str());
    identity
        .disable_person(&who(), id)
        .await
        .map_err(|error| refused(&error))
}
