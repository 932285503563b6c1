//! Imports rules from a file: all are checked before any is written, unchanged ones are skipped, and each difference
//! is reported.

use std::path::{Path, PathBuf};

use domain::alerts::Draft;
use domain::escape::visible;
use reqwest::Method;
use serde_json::{Value, json};

use super::{client, failed};
use crate::alerts::from_toml;
use crate::cli::client::{Client, Reply};
use crate::cli::connection::Connection;
use crate::cli::exit_code::Exit;
use crate::cli::output::{print, report};

/// Create and change rules from a TOML file; rules that are not in the file stay unchanged
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    connection: Connection,
    /// File in TOML, as `rules export` writes it; each rule has an id
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show the changes without applying them
    #[arg(long)]
    dry_run: bool,
    /// Accept prefixes that match no lock yet
    #[arg(long)]
    any_prefix: bool,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Result<(), Exit>> {
    let drafts = match read(&args.file) {
        Ok(drafts) => drafts,
        Err(why) => {
            report(&why);
            return Ok(Err(Exit::Usage));
        }
    };
    let client = match client(&args.connection) {
        Ok(client) => client,
        Err(exit) => return Ok(Err(exit)),
    };
    let plan = match plan(&client, &drafts, args.any_prefix).await {
        Ok(plan) => plan,
        Err(exit) => return Ok(Err(exit)),
    };
    let (mut created, mut changed) = (0, 0);
    for step in &plan {
        if step.is_same() {
            continue;
        }
        if !args.dry_run
            && let Err(exit) = write(&client, step, args.any_prefix).await
        {
            return Ok(Err(exit));
        }
        *(if step.before.is_some() {
            &mut changed
        } else {
            &mut created
        }) += 1;
        print(&step.summary())?;
    }
    let unchanged = plan.len() - created - changed;
    let prefix = if args.dry_run { "would be " } else { "" };
    print(&format!(
        "{prefix}new: {created}, {prefix}changed: {changed}, the same: {unchanged}\n"
    ))?;
    Ok(Ok(()))
}

fn read(file: &Path) -> Result<Vec<Draft>, String> {
    let path = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {path}: {error}"))?;
    // Several lines, with names and a line of the file.
    let drafts = from_toml(&text).map_err(|error| {
        let lines: Vec<_> = error.lines().map(visible).collect();
        format!("{path}: {}", lines.join("\n"))
    })?;
    for (index, draft) in drafts.iter().enumerate() {
        let number = index + 1;
        if draft.id.is_empty() {
            // A rule without an id would be created again at every import.
            return Err(format!(
                "{path}: rule {number} has no id; give it one, such as id = \"billing_long\""
            ));
        }
        if drafts[..index].iter().any(|other| other.id == draft.id) {
            return Err(format!(
                "{path}: rule {number} has the id of an earlier rule: {}",
                visible(&draft.id)
            ));
        }
    }
    Ok(drafts)
}

/// One rule: its current version (`None` if new), and the new one.
struct Step {
    draft: Draft,
    before: Option<Value>,
    after: Value,
}

/// Checks every rule first: a file with an error changes nothing.
async fn plan(client: &Client, drafts: &[Draft], any_prefix: bool) -> Result<Vec<Step>, Exit> {
    let existing = call(client, Method::GET, None).await?;
    let existing = existing["rules"].as_array().cloned().unwrap_or_default();
    let mut plan = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let mut body = to_json(draft, any_prefix);
        body["dryRun"] = json!(true);
        let after = call(client, Method::PUT, Some((&draft.id, &body))).await?;
        let before = existing.iter().find(|rule| rule["id"] == draft.id.as_str());
        plan.push(Step {
            draft: draft.clone(),
            before: before.cloned(),
            after,
        });
    }
    Ok(plan)
}

/// Writes if the version is still the one that was read.
async fn write(client: &Client, step: &Step, any_prefix: bool) -> Result<(), Exit> {
    let mut body = to_json(&step.draft, any_prefix);
    body["version"] = step
        .before
        .as_ref()
        .map_or(Value::Null, |before| before["version"].clone());
    call(client, Method::PUT, Some((&step.draft.id, &body))).await?;
    Ok(())
}

async fn call(client: &Client, method: Method, body: Option<(&str, &Value)>) -> Result<Value, Exit> {
    let reply = client.call(method, "v1/rules", body.map(|(_, body)| body)).await;
    let Reply {
        is_success,
        body: response,
        ..
    } = reply.map_err(|error| failed(&error))?;
    if is_success {
        return Ok(response);
    }
    let member = |name: &str| response[name].as_str().unwrap_or_default().to_owned();
    let (field, detail, remedy) = (member("field"), member("detail"), member("remedy"));
    let rule_label = body.map(|(id, _)| format!("rule {id}: ")).unwrap_or_default();
    let field = if field.is_empty() {
        field
    } else {
        format!("{field}: ")
    };
    let remedy = if remedy.is_empty() {
        remedy
    } else {
        format!(" ({remedy})")
    };
    report(&visible(&format!("{rule_label}{field}{detail}{remedy}")));
    // An invalid rule is an error of the file.
    Err(if response["status"] == 400 {
        Exit::Usage
    } else {
        Exit::Failure
    })
}

/// The API's representation.
fn to_json(draft: &Draft, any_prefix: bool) -> Value {
    json!({
        "id": draft.id, "name": draft.name, "condition": draft.condition, "severity": draft.severity,
        "for": draft.for_, "keepFiringFor": draft.keep_firing_for, "backends": draft.backends, "prefix": draft.prefix,
        "owner": draft.owner, "safety": draft.safety, "groupBy": draft.group_by, "receivers": draft.receivers,
        "runbook": draft.runbook, "template": draft.template, "enabled": draft.enabled, "with": draft.with,
        "anyPrefix": any_prefix,
    })
}

impl Step {
    fn differences(&self) -> Vec<(String, String, String)> {
        let Some(before) = &self.before else {
            return Vec::new();
        };
        let mut all = Vec::new();
        let (old, new) = (flat(before), flat(&self.after));
        for (name, value) in &new {
            let was = old
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, was)| was.clone());
            let was = was.unwrap_or_default();
            if was != *value {
                all.push((name.clone(), was, value.clone()));
            }
        }
        all
    }

    fn is_same(&self) -> bool {
        self.before.is_some() && self.differences().is_empty()
    }

    fn summary(&self) -> String {
        let (id, name) = (
            &self.draft.id,
            visible(self.after["name"].as_str().unwrap_or_default()).into_owned(),
        );
        if self.before.is_none() {
            return format!("+ {id}  {name}\n");
        }
        let lines = self.differences().into_iter().map(|(field, was, is)| {
            let (was, is) = (visible(&was).into_owned(), visible(&is).into_owned());
            format!("    {field}: {was} -> {is}\n")
        });
        format!("~ {id}  {name}\n{}", lines.collect::<String>())
    }
}

/// Fields and their values, thresholds flattened; without the version.
fn flat(rule: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, value) in rule
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "version")
    {
        match (name.as_str(), value.as_object()) {
            ("with", Some(with)) => {
                all.extend(
                    with.iter()
                        .map(|(name, value)| (format!("with.{name}"), value.to_string())),
                );
            }
            _ => all.push((name.clone(), value.to_string())),
        }
    }
    all
}
