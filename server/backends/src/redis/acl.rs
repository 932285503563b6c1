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
struct Wish {
    command: &'static [&'static str],
    key: bool,
    rest: &'static [&'static str],
    wanted: bool,
}

const fn read(command: &'static [&'static str]) -> Wish {
    Wish {
        command,
        key: true,
        rest: &[],
        wanted: true,
    }
}

const fn unwanted(command: &'static [&'static str], key: bool, rest: &'static [&'static str]) -> Wish {
    Wish {
        command,
        key,
        rest,
        wanted: false,
    }
}

const WISHES: [Wish; 15] = [
    Wish {
        command: &["SCAN"],
        key: false,
        rest: &["0"],
        wanted: true,
    },
    read(&["PTTL"]),
    Wish {
        command: &["GETRANGE"],
        key: true,
        rest: &["0", "0"],
        wanted: true,
    },
    read(&["STRLEN"]),
    read(&["TYPE"]),
    read(&["HLEN"]),
    read(&["MEMORY", "USAGE"]),
    read(&["HGETALL"]),
    read(&["ZCARD"]),
    Wish {
        command: &["ZRANGE"],
        key: true,
        rest: &["0", "-1"],
        wanted: true,
    },
    unwanted(&["SET"], true, &["x"]),
    unwanted(&["DEL"], true, &[]),
    unwanted(&["FLUSHALL"], false, &[]),
    unwanted(&["CONFIG", "SET"], false, &["maxmemory", "0"]),
    unwanted(&["EVAL"], false, &["return 1", "0"]),
];

const NO_ACL: &str = "the server has no ACL, or this account may not ask it (ACL WHOAMI)";
const NO_DRYRUN: &str = "this account may not run ACL DRYRUN (Redis 7) or ACL GETUSER";

/// `sample` resembles the names of the locks.
pub(super) async fn read_permissions(
    line: &RedisConnection,
    sample: &[u8],
) -> Result<Vec<AccountPermission>, BackendError> {
    let mut commands = Pipeline::with_capacity(1);
    commands.cmd("ACL").arg("WHOAMI");
    let answers = line.query_all(&commands).await?;
    let Some(user) = answers.first().and_then(text) else {
        return Ok(all(&|_| Reported::unknown(NO_ACL)));
    };
    let dry = dry_run(line, user, sample).await?;
    if dry.iter().any(Option::is_some) {
        let mut dry = dry.into_iter();
        let allowed = move || {
            dry.next()
                .flatten()
                .map_or(Reported::unknown(NO_DRYRUN), Reported::Value)
        };
        return Ok(with_answers(allowed));
    }
    let mut commands = Pipeline::with_capacity(1);
    commands.cmd("ACL").arg("GETUSER").arg(user);
    let rules = line.query_all(&commands).await?.first().and_then(rules_of);
    Ok(match rules {
        Some(rules) => all(&|wish| is_allowed(&rules, wish.command)),
        None => all(&|_| Reported::unknown(NO_DRYRUN)),
    })
}

async fn dry_run(
    line: &RedisConnection,
    user: &str,
    sample: &[u8],
) -> Result<Vec<Option<bool>>, BackendError> {
    let mut commands = Pipeline::with_capacity(WISHES.len());
    for wish in &WISHES {
        let cmd = commands.cmd("ACL").arg("DRYRUN").arg(user).arg(wish.command);
        if wish.key {
            cmd.arg(sample);
        }
        cmd.arg(wish.rest);
    }
    let answers = line.query_all(&commands).await?;
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

fn all(allowed: &dyn Fn(&Wish) -> Reported<bool>) -> Vec<AccountPermission> {
    WISHES.iter().map(|wish| right(wish, allowed(wish))).collect()
}

fn with_answers(mut allowed: impl FnMut() -> Reported<bool>) -> Vec<AccountPermission> {
    WISHES.iter().map(|wish| right(wish, allowed())).collect()
}

fn right(wish: &Wish, allowed: Reported<bool>) -> AccountPermission {
    let name = wish.command.join("|").to_lowercase();
    let remedy: Cow<'static, str> = if wish.wanted {
        Cow::Owned(format!(
            "ACL SETUSER … +{name}, and %R~ for the patterns of the locks"
        ))
    } else {
        Cow::Owned(format!("Watching needs no writes: ACL SETUSER … -{name}"))
    };
    AccountPermission {
        what: wish.command.join(" "),
        allowed,
        wanted: wish.wanted,
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
