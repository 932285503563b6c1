//! Account permissions: by a dry run of each command (`ACL DRYRUN`, Redis 7), otherwise from
//! the account's own rules, otherwise unknown.

use std::borrow::Cow;

use ::redis::{Pipeline, Value};
use domain::backend::AccountPermission;
use domain::reported::Reported;

use super::connection::RedisConnection;
use super::server_info::text;
use crate::BackendError;

/// A command, whether it takes a key, its arguments after the key, and whether the account should be allowed to run it.
struct CommandCheck {
    command: &'static [&'static str],
    key: bool,
    rest: &'static [&'static str],
    should_allow: bool,
}

const fn read_command(command: &'static [&'static str]) -> CommandCheck {
    CommandCheck {
        command,
        key: true,
        rest: &[],
        should_allow: true,
    }
}

const fn write_command(
    command: &'static [&'static str],
    key: bool,
    rest: &'static [&'static str],
) -> CommandCheck {
    CommandCheck {
        command,
        key,
        rest,
        should_allow: false,
    }
}

const COMMAND_CHECKS: [CommandCheck; 15] = [
    CommandCheck {
        command: &["SCAN"],
        key: false,
        rest: &["0"],
        should_allow: true,
    },
    read_command(&["PTTL"]),
    CommandCheck {
        command: &["GETRANGE"],
        key: true,
        rest: &["0", "0"],
        should_allow: true,
    },
    read_command(&["STRLEN"]),
    read_command(&["TYPE"]),
    read_command(&["HLEN"]),
    read_command(&["MEMORY", "USAGE"]),
    read_command(&["HGETALL"]),
    read_command(&["ZCARD"]),
    CommandCheck {
        command: &["ZRANGE"],
        key: true,
        rest: &["0", "-1"],
        should_allow: true,
    },
    write_command(&["SET"], true, &["x"]),
    write_command(&["DEL"], true, &[]),
    write_command(&["FLUSHALL"], false, &[]),
    write_command(&["CONFIG", "SET"], false, &["maxmemory", "0"]),
    write_command(&["EVAL"], false, &["return 1", "0"]),
];

const NO_ACL: &str = "the server has no ACL, or this account may not ask it (ACL WHOAMI)";
const NO_DRYRUN: &str = "this account may not run ACL DRYRUN (Redis 7) or ACL GETUSER";

/// `sample` resembles the names of the locks.
pub(super) async fn read_permissions(
    connection: &RedisConnection,
    sample: &[u8],
) -> Result<Vec<AccountPermission>, BackendError> {
    let mut commands = Pipeline::with_capacity(1);
    commands.cmd("ACL").arg("WHOAMI");
    let answers = connection.query_all(&commands).await?;
    let Some(user) = answers.first().and_then(text) else {
        return Ok(permissions(&|_| Reported::unknown(NO_ACL)));
    };
    let dry = dry_run(connection, user, sample).await?;
    if dry.iter().any(Option::is_some) {
        let mut dry = dry.into_iter();
        let allowed = move || {
            dry.next()
                .flatten()
                .map_or(Reported::unknown(NO_DRYRUN), Reported::Value)
        };
        return Ok(permissions_in_order(allowed));
    }
    let mut commands = Pipeline::with_capacity(1);
    commands.cmd("ACL").arg("GETUSER").arg(user);
    let rules = connection.query_all(&commands).await?.first().and_then(rules_of);
    Ok(match rules {
        Some(rules) => permissions(&|check| is_allowed(&rules, check.command)),
        None => permissions(&|_| Reported::unknown(NO_DRYRUN)),
    })
}

async fn dry_run(
    connection: &RedisConnection,
    user: &str,
    sample: &[u8],
) -> Result<Vec<Option<bool>>, BackendError> {
    let mut commands = Pipeline::with_capacity(COMMAND_CHECKS.len());
    for check in &COMMAND_CHECKS {
        let cmd = commands.cmd("ACL").arg("DRYRUN").arg(user).arg(check.command);
        if check.key {
            cmd.arg(sample);
        }
        cmd.arg(check.rest);
    }
    let answers = connection.query_all(&commands).await?;
    Ok(answers
        .iter()
        .map(|answer| match answer {
            Value::Okay => Some(true),
            other => text(other).map(|text| text == "OK"),
        })
        .collect())
}

/// The `commands` line of ACL GETUSER.
fn rules_of(answer: &Value) -> Option<String> {
    let Value::Array(parts) = answer else { return None };
    let at = parts.iter().position(|part| text(part) == Some("commands"))?;
    parts.get(at + 1).and_then(text).map(str::to_owned)
}

/// Only explicit command rules count: the server resolves categories.
fn is_allowed(rules: &str, command: &[&str]) -> Reported<bool> {
    let name = command.join("|").to_lowercase();
    let family = command.first().copied().unwrap_or_default().to_lowercase();
    let mut allowed = None;
    for rule in rules.split_whitespace() {
        let (allows, what) = match (rule.strip_prefix('+'), rule.strip_prefix('-')) {
            (Some(what), _) => (true, what),
            (_, Some(what)) => (false, what),
            _ => continue,
        };
        match what.strip_prefix('@') {
            Some("all") => allowed = Some(allows),
            Some(_) => allowed = None,
            None if what == name || what == family => allowed = Some(allows),
            None => {}
        }
    }
    allowed.map_or(
        Reported::unknown("this account's rules name categories, and it may not run ACL DRYRUN"),
        Reported::Value,
    )
}

fn permissions(allowed: &dyn Fn(&CommandCheck) -> Reported<bool>) -> Vec<AccountPermission> {
    COMMAND_CHECKS
        .iter()
        .map(|check| permission(check, allowed(check)))
        .collect()
}

fn permissions_in_order(mut allowed: impl FnMut() -> Reported<bool>) -> Vec<AccountPermission> {
    COMMAND_CHECKS
        .iter()
        .map(|check| permission(check, allowed()))
        .collect()
}

fn permission(check: &CommandCheck, allowed: Reported<bool>) -> AccountPermission {
    let name = check.command.join("|").to_lowercase();
    let remedy: Cow<'static, str> = if check.should_allow {
        Cow::Owned(format!(
            "ACL SETUSER … +{name}, and %R~ for the patterns of the locks"
        ))
    } else {
        Cow::Owned(format!("Watching needs no writes: ACL SETUSER … -{name}"))
    };
    AccountPermission {
        what: check.command.join(" "),
        allowed,
        wanted: check.should_allow,
        remedy: remedy.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acl_rules_count_only_if_they_name_the_command() {
        // A category after the command's own rule may have changed it.
        assert_eq!(is_allowed("+@all", &["SET"]), Reported::Value(true));
        assert_eq!(
            is_allowed("-@all +scan +config|get", &["SET"]),
            Reported::Value(false)
        );
        assert_eq!(
            is_allowed("-@all +scan +config|get", &["CONFIG", "SET"]),
            Reported::Value(false)
        );
        assert_eq!(
            is_allowed("-@all +config", &["CONFIG", "SET"]),
            Reported::Value(true)
        );
        assert_eq!(is_allowed("-@all +scan", &["SCAN"]), Reported::Value(true));
        assert!(is_allowed("-@all +@read", &["SCAN"]).is_unknown());
        assert_eq!(
            is_allowed("+@all -@dangerous -del", &["DEL"]),
            Reported::Value(false)
        );
    }
}
