//! `leasehold unlock`: a forced unlock in two steps on a terminal, through a running server.
//!
//! All checks are made by the server. A confirmation always names the resource.

mod print;
mod prompt;

use std::process::ExitCode;
use std::time::Duration;

use domain::escape::visible;
use reqwest::Method;
use serde_json::{Value, json};

use self::prompt::PromptResult;
use super::client::{Client, ClientError, Reply};
use super::connection::Connection;
use super::exit_code::Exit;
use super::output::{print, report};

/// After an unknown outcome the server reads the lock again; interval and number of queries for its result.
const RESULT_POLL_INTERVAL: Duration = Duration::from_millis(500);
const READS_MAX: u32 = 40;

/// Release a lock by force: shows the consequences, asks for its name, and releases only the holder that was shown.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Scripts repeat the name of the resource in --confirm-resource. Without it, and without a terminal, the\n",
    "consequences are shown and nothing is done. A protected name needs a user and a second approver: use the\n",
    "console, because a token cannot do that.\n\n",
    "Examples:\n",
    "  leasehold unlock orders-db tenant_123:close --reason \"stuck since 03:00, owner agrees\"\n",
    "  leasehold unlock cache lock:export --reason \"INC-2291, host is gone\" --confirm-resource lock:export --json\n\n",
    "Exit codes: 0 released, 1 failure, 2 wrong usage or not confirmed, 3 server unreachable,\n",
    "5 refused: standard error says why, 6 holder changed: another holder has the lock, 7 outcome unknown,\n",
    "8 not held. The lock was not released, except with 0 and perhaps 7.",
))]
pub struct Args {
    /// Name of the backend
    #[arg(value_name = "BACKEND")]
    pub backend: String,
    /// The resource, as `leasehold locks` shows it
    #[arg(value_name = "RESOURCE")]
    pub resource: String,
    /// Reason: at least 10 characters, recorded as written, shown to the holder where the backend supports it
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The resource again, instead of typing it on the terminal
    #[arg(long, value_name = "NAME")]
    pub confirm_resource: Option<String>,
    /// Required if two sources of the backend hold the same name
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Print only the unlock, as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub connection: Connection,
}

/// Why the unlock stops.
enum Stop {
    Client(ClientError),
    /// Message and exit code.
    Message(String, Exit),
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
        Err(Stop::Message(message, exit)) => (message, exit),
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
        let generation = self.find_generation().await?;
        let unlock = self.begin(generation).await?;
        let id = text(&unlock, "unlockId");
        if id.is_empty() {
            return Err(Stop::Message(
                "the response of the server has no unlock id".to_owned(),
                Exit::Failure,
            ));
        }
        self.print(&print::holding_text(&unlock))?;
        if unlock["protection"] == "protected" {
            self.cancel(&id).await;
            let (backend, name) = (&self.args.backend, text(&unlock, "resource"));
            let why = unlock["protectionReason"]["sentence"].as_str();
            let message = format!(
                "{name}: {}. Nothing was released. The unlock needs a user who has authenticated within the last 15 \
                 minutes and a second approver: use the console at {}, on the page of {name} on {backend}",
                domain::escape::visible(why.unwrap_or("it is protected")),
                self.client.name()
            );
            return Err(Stop::Message(message, Exit::Refused));
        }
        match &self.args.confirm_resource {
            Some(name) => self.confirm_once(&id, name).await,
            None => self.confirm_by_typing(&id, &unlock).await,
        }
    }

    /// The generation of the holding under this name.
    async fn find_generation(&self) -> Result<String, Stop> {
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
        let is_match = |lock: &&Value| {
            lock["resource"] == resource.as_str()
                && source
                    .as_ref()
                    .is_none_or(|source| lock["source"] == source.as_str())
        };
        let found: Vec<&Value> = page.locks.iter().filter(is_match).collect();
        match found.as_slice() {
            [] => Err(Stop::Message(
                format!("{resource} on {backend} is not held, as far as the server knows"),
                Exit::NotHeld,
            )),
            [lock] => Ok(text(lock, "generation")),
            several => {
                let sources: Vec<String> = several.iter().map(|lock| text(lock, "source")).collect();
                let message = format!(
                    "{resource} is held in several sources: pass --source {}",
                    sources.join(", or --source ")
                );
                Err(Stop::Message(message, Exit::Usage))
            }
        }
    }

    async fn begin(&self, generation: String) -> Result<Value, Stop> {
        if generation.is_empty() {
            let message =
                "this holder cannot be distinguished from the next one, so the lock is not released";
            return Err(Stop::Message(message.to_owned(), Exit::Refused));
        }
        let body = json!({
            "backend": self.args.backend, "source": self.args.source, "resource": self.args.resource,
            "generation": generation, "reason": self.args.reason,
        });
        let reply = self.client.call(Method::POST, "v1/unlocks", Some(&body)).await?;
        if reply.is_success {
            Ok(reply.body)
        } else {
            Err(self.rejection(&reply))
        }
    }

    /// Confirms with the script's argument, once.
    async fn confirm_once(&self, id: &str, name: &str) -> Result<Exit, Stop> {
        match self.confirm(id, name).await? {
            Ok(unlock) => self.outcome(id, unlock).await,
            Err(problem) => {
                if problem.body["code"] == "name_mismatch" {
                    self.cancel(id).await;
                }
                Err(self.rejection(&problem))
            }
        }
    }

    async fn confirm_by_typing(&self, id: &str, unlock: &Value) -> Result<Exit, Stop> {
        loop {
            let name = match prompt::name(&print::question(unlock)).await {
                PromptResult::Typed(name) => name,
                PromptResult::NoTerminal => {
                    self.cancel(id).await;
                    let message = "not confirmed: standard input is not a terminal, and --confirm-resource is \
                        missing. Nothing was released";
                    return Err(Stop::Message(message.to_owned(), Exit::Usage));
                }
                PromptResult::GivenUp => {
                    self.cancel(id).await;
                    return Err(Stop::Message(
                        "cancelled; nothing was released".to_owned(),
                        Exit::Usage,
                    ));
                }
            };
            match self.confirm(id, &name).await? {
                Ok(unlock) => return self.outcome(id, unlock).await,
                Err(problem) => {
                    let is_over = !self.is_pending(id).await;
                    if problem.body["code"] != "name_mismatch" || is_over {
                        return Err(self.rejection(&problem));
                    }
                    report(&visible(&text(&problem.body, "detail")));
                }
            }
        }
    }

    /// After the confirmation was sent, a missing response is not a failure, nor is one of a proxy or of a server that
    /// failed: the lock may be released, and the result is queried by id.
    async fn confirm(&self, id: &str, name: &str) -> Result<Result<Value, Reply>, Stop> {
        let path = format!("v1/unlocks/{id}/confirm");
        let body = json!({"resource": name});
        let why = match self.client.call(Method::POST, &path, Some(&body)).await {
            Ok(reply) if reply.is_success => return Ok(Ok(reply.body)),
            Ok(reply) if is_refusal(&reply) => return Ok(Err(reply)),
            Ok(reply) => print::problem(&reply.body),
            Err(error @ ClientError::Unauthenticated { .. }) => return Err(error.into()),
            Err(ClientError::Unreachable { why, .. } | ClientError::NotOurs { why, .. }) => why,
            Err(error) => error.to_string(),
        };
        report(&visible(&format!(
            "no answer to the confirmation ({why}); asking for the result"
        )));
        Ok(Ok(json!({"state": "outcome_unknown"})))
    }

    async fn outcome(&self, id: &str, mut unlock: Value) -> Result<Exit, Stop> {
        let mut reads = 0;
        while matches!(unlock["state"].as_str(), Some("outcome_unknown" | "pending")) && reads < READS_MAX {
            if reads == 0 {
                report("the result is not known yet; the lock is being read again");
            }
            tokio::time::sleep(RESULT_POLL_INTERVAL).await;
            reads += 1;
            if let Ok(reply) = self
                .client
                .call(Method::GET, &format!("v1/unlocks/{id}"), None)
                .await
                && reply.is_success
            {
                unlock = reply.body;
            }
        }
        let shown = if self.args.json {
            format!("{unlock}\n")
        } else {
            print::outcome(&unlock)
        };
        // The exit code states the result also without the output.
        if let Err(error) = print(&shown) {
            report(&format!("the result cannot be printed: {error}"));
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
        let response = self
            .client
            .call(Method::GET, &format!("v1/unlocks/{id}"), None)
            .await;
        response.is_ok_and(|reply| reply.body["state"] == "pending")
    }

    /// Best effort: the intent expires by itself.
    async fn cancel(&self, id: &str) {
        let path = format!("v1/unlocks/{id}/cancel");
        let _runs_out = self.client.call(Method::POST, &path, Some(&json!({}))).await;
    }

    fn print(&self, text: &str) -> Result<(), Stop> {
        if self.args.json {
            super::output::print_error(text);
            return Ok(());
        }
        Ok(print(text)?)
    }

    fn rejection(&self, reply: &Reply) -> Stop {
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
        Stop::Message(print::problem(&reply.body), exit)
    }
}

/// Whether the server refused the confirmation before it released anything. A proxy's error may have a code of its own; of
/// errors 5xx only those of a forced unlock count.
fn is_refusal(reply: &Reply) -> bool {
    match reply.body["code"].as_str() {
        None | Some("internal") => false,
        Some("backend_stale" | "blast_radius_unknown" | "audit_unavailable") => true,
        Some(_) => !reply.is_server_error,
    }
}

/// Sources of one backend that may hold the same name.
const SAME_NAME_MAX: usize = 50;

/// A string field; empty if absent.
fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}
