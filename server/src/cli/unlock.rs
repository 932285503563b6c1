//! `leasehold unlock`: a forced unlock in two steps at a terminal, through a running server.
//!
//! Every check is the server's. There is no way to confirm without naming the resource.

mod ask;
mod show;

use std::process::ExitCode;
use std::time::Duration;

use domain::escape::visible;
use reqwest::Method;
use serde_json::{Value, json};

use self::ask::Asked;
use super::client::{Client, ClientError, Reply};
use super::connection::Connection;
use super::exit::Exit;
use super::output::{print, report};

/// After an unknown outcome the server reads the lock again; it is asked for what it found this often, for so long.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOKS_MAX: u32 = 40;

/// Release a lock by force: shows what would end, asks for its name, and acts on exactly that holding or nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Scripts name the resource a second time with --confirm-resource; nothing confirms by itself. Without it, and without\n",
    "a terminal, what would end is shown and nothing is done. A protected name wants a person and a second one: the console\n",
    "does that, a token cannot.\n\n",
    "Examples:\n",
    "  leasehold unlock orders-db tenant_123:close --reason \"stuck since 03:00, owner agrees\"\n",
    "  leasehold unlock cache lock:export --reason \"INC-2291, host is gone\" --confirm-resource lock:export --json\n\n",
    "Exit codes: 0 released, 1 failure, 2 wrong usage or not confirmed, 3 server unreachable,\n",
    "5 refused: standard error says why, 6 holder changed: another holding stands there, 7 outcome unknown,\n",
    "8 nobody holds it. With all but 0 and 7 nothing was released.",
))]
pub struct Args {
    /// Name of the backend
    #[arg(value_name = "BACKEND")]
    pub backend: String,
    /// The resource, as `leasehold locks` shows it
    #[arg(value_name = "RESOURCE")]
    pub resource: String,
    /// Why: at least 10 characters, recorded word for word, told to the holder where the backend can
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The resource once more, instead of typing it at the terminal
    #[arg(long, value_name = "NAME")]
    pub confirm_resource: Option<String>,
    /// Needed where two sources of the backend hold the same name
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// The unlock as JSON on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub connection: Connection,
}

/// Why it does not go on.
enum Stop {
    Client(ClientError),
    /// What to say, and how to end.
    Said(String, Exit),
    Output(std::io::Error),
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let ended = match Client::new(&args.connection) {
        Ok(client) => Box::pin(Flow { args, client }.run()).await,
        Err(error) => Err(error.into()),
    };
    let (message, exit) = match ended {
        Ok(exit) => return Ok(exit.into()),
        Err(Stop::Client(error)) => (error.to_string(), error.exit()),
        Err(Stop::Said(message, exit)) => (message, exit),
        Err(Stop::Output(error)) => return Err(error.into()),
    };
    report(&visible(&message));
    Ok(exit.into())
}

struct Flow {
    args: Args,
    client: Client,
}

impl Flow {
    async fn run(self) -> Result<Exit, Stop> {
        let generation = self.held().await?;
        let unlock = self.begin(generation).await?;
        let id = text(&unlock, "unlockId");
        if id.is_empty() {
            return Err(Stop::Said(
                "the server began nothing that has an id".to_owned(),
                Exit::Failure,
            ));
        }
        self.say(&show::looked(&unlock))?;
        if unlock["tier"] == "protected" {
            self.cancel(&id).await;
            let (backend, name) = (&self.args.backend, text(&unlock, "resource"));
            let why = unlock["tierReason"]["sentence"].as_str();
            let message = format!(
                "{name}: {}. It needs a user who has just authenticated, and a second one who approves. Do it at {}, on \
                 the page of {name} on {backend}. Nothing was released",
                domain::escape::visible(why.unwrap_or("it is protected")),
                self.client.name()
            );
            return Err(Stop::Said(message, Exit::Refused));
        }
        match &self.args.confirm_resource {
            Some(name) => self.confirm_once(&id, name).await,
            None => self.confirm_by_typing(&id, &unlock).await,
        }
    }

    /// The generation of what is held under this name.
    async fn held(&self) -> Result<String, Stop> {
        let Args {
            backend,
            resource,
            source,
            ..
        } = &self.args;
        let query = [
            ("backend", backend.clone()),
            ("prefix", resource.clone()),
            ("sort", "resource".to_owned()),
        ];
        let page = self.client.inventory(&query, SAME_NAME_MAX).await?;
        let is_it = |lock: &&Value| {
            lock["resource"] == resource.as_str()
                && source
                    .as_ref()
                    .is_none_or(|source| lock["source"] == source.as_str())
        };
        let found: Vec<&Value> = page.locks.iter().filter(is_it).collect();
        match found.as_slice() {
            [] => Err(Stop::Said(
                format!("nobody holds {resource} on {backend}, as far as the server sees"),
                Exit::NotHeld,
            )),
            [lock] => Ok(text(lock, "generation")),
            several => {
                let sources: Vec<String> = several.iter().map(|lock| text(lock, "source")).collect();
                let message = format!(
                    "{resource} is held in several sources: say --source {}",
                    sources.join(", or --source ")
                );
                Err(Stop::Said(message, Exit::Usage))
            }
        }
    }

    async fn begin(&self, generation: String) -> Result<Value, Stop> {
        if generation.is_empty() {
            let message = "this holding cannot be told from the next one, so it is not unlocked";
            return Err(Stop::Said(message.to_owned(), Exit::Refused));
        }
        let body = json!({
            "backend": self.args.backend, "source": self.args.source, "resource": self.args.resource,
            "generation": generation, "reason": self.args.reason,
        });
        let reply = self.client.call(Method::POST, "v1/unlocks", Some(&body)).await?;
        if reply.is_success {
            Ok(reply.body)
        } else {
            Err(self.refused(&reply))
        }
    }

    /// A script's word: once.
    async fn confirm_once(&self, id: &str, name: &str) -> Result<Exit, Stop> {
        match self.confirm(id, name).await? {
            Ok(unlock) => self.outcome(id, unlock).await,
            Err(problem) => {
                if problem.body["code"] == "name_mismatch" {
                    self.cancel(id).await;
                }
                Err(self.refused(&problem))
            }
        }
    }

    async fn confirm_by_typing(&self, id: &str, unlock: &Value) -> Result<Exit, Stop> {
        loop {
            let name = match ask::name(&show::question(unlock)).await {
                Asked::Typed(name) => name,
                Asked::NoTerminal => {
                    self.cancel(id).await;
                    let message = "not confirmed: this is no terminal, and there is no --confirm-resource. Nothing was released";
                    return Err(Stop::Said(message.to_owned(), Exit::Usage));
                }
                Asked::GivenUp => {
                    self.cancel(id).await;
                    return Err(Stop::Said(
                        "given up; nothing was released".to_owned(),
                        Exit::Usage,
                    ));
                }
            };
            match self.confirm(id, &name).await? {
                Ok(unlock) => return self.outcome(id, unlock).await,
                Err(problem) => {
                    let is_over = !self.is_pending(id).await;
                    if problem.body["code"] != "name_mismatch" || is_over {
                        return Err(self.refused(&problem));
                    }
                    report(&visible(&text(&problem.body, "detail")));
                }
            }
        }
    }

    /// Once sent, no answer is no failure: what came of it is asked for by its id.
    async fn confirm(&self, id: &str, name: &str) -> Result<Result<Value, Reply>, Stop> {
        let path = format!("v1/unlocks/{id}/confirm");
        let body = json!({"resource": name});
        match self.client.call(Method::POST, &path, Some(&body)).await {
            Ok(reply) if reply.is_success => Ok(Ok(reply.body)),
            Ok(reply) => Ok(Err(reply)),
            Err(ClientError::Unreachable { why, .. }) => {
                report(&visible(&format!(
                    "no answer to the confirmation ({why}); asking what came of it"
                )));
                Ok(Ok(json!({"state": "outcome_unknown"})))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn outcome(&self, id: &str, mut unlock: Value) -> Result<Exit, Stop> {
        let mut looks = 0;
        while matches!(unlock["state"].as_str(), Some("outcome_unknown" | "pending")) && looks < LOOKS_MAX {
            if looks == 0 {
                report("the outcome is not known yet; the lock is read again");
            }
            tokio::time::sleep(LOOK_EVERY).await;
            looks += 1;
            if let Ok(reply) = self
                .client
                .call(Method::GET, &format!("v1/unlocks/{id}"), None)
                .await
                && reply.is_success
            {
                unlock = reply.body;
            }
        }
        if self.args.json {
            print(&format!("{unlock}\n"))?;
        } else {
            print(&show::outcome(&unlock))?;
        }
        Ok(match unlock["state"].as_str() {
            Some("released") => Exit::Ok,
            Some("already_free") => Exit::NotHeld,
            Some("holder_changed") => Exit::HolderChanged,
            Some("refused" | "cancelled" | "expired") => Exit::Refused,
            _ => Exit::OutcomeUnknown,
        })
    }

    async fn is_pending(&self, id: &str) -> bool {
        let looked = self
            .client
            .call(Method::GET, &format!("v1/unlocks/{id}"), None)
            .await;
        looked.is_ok_and(|reply| reply.body["state"] == "pending")
    }

    /// It runs out by itself when this does not reach the server.
    async fn cancel(&self, id: &str) {
        let path = format!("v1/unlocks/{id}/cancel");
        let _runs_out = self.client.call(Method::POST, &path, Some(&json!({}))).await;
    }

    fn say(&self, words: &str) -> Result<(), Stop> {
        if self.args.json {
            super::output::print_error(words);
            return Ok(());
        }
        Ok(print(words)?)
    }

    fn refused(&self, reply: &Reply) -> Stop {
        let exit = match reply.body["code"].as_str().unwrap_or_default() {
            "holder_changed" if reply.body["now"].is_null() => Exit::NotHeld,
            "not_found" => Exit::NotHeld,
            "holder_changed" => Exit::HolderChanged,
            "name_mismatch" | "reason_too_weak" | "invalid" | "ambiguous_source" => Exit::Usage,
            "forbidden"
            | "needs_reauthentication"
            | "needs_approval"
            | "unlock_unavailable"
            | "backend_stale"
            | "blast_radius_unknown"
            | "audit_unavailable"
            | "already_used"
            | "intent_expired" => Exit::Refused,
            _ => Exit::Failure,
        };
        Stop::Said(show::problem(&reply.body), exit)
    }
}

/// Sources of one backend that may hold one name.
const SAME_NAME_MAX: usize = 50;

/// A text field; empty when there is none.
fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}
