//! Exit codes of commands. Scripts rely on these numbers.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Ok,
    Failure,
    /// Wrong arguments (clap uses the same number) or an invalid configuration.
    Usage,
    /// The server does not answer.
    Unreachable,
    /// Done, but a backend is stale, down or partially scanned: the result is incomplete.
    Incomplete,
    /// `unlock`: refused, with a reason.
    Refused,
    /// `unlock`: another holding is there; it was not touched.
    HolderChanged,
    /// `unlock`: the outcome is unknown.
    OutcomeUnknown,
    /// `unlock`: the lock is not held.
    NotHeld,
    /// `run`: the lock was not acquired (EX_TEMPFAIL of sysexits.h).
    NotObtained,
    /// `run`: the lease was lost while the command was running.
    LeaseLost,
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Incomplete => 4,
            Self::Refused => 5,
            Self::HolderChanged => 6,
            Self::OutcomeUnknown => 7,
            Self::NotHeld => 8,
            Self::NotObtained => 75,
            Self::LeaseLost => 76,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Exit; 11] = [
        Exit::Ok,
        Exit::Failure,
        Exit::Usage,
        Exit::Unreachable,
        Exit::Incomplete,
        Exit::Refused,
        Exit::HolderChanged,
        Exit::OutcomeUnknown,
        Exit::NotHeld,
        Exit::NotObtained,
        Exit::LeaseLost,
    ];

    #[test]
    fn exactly_the_existing_exit_codes_are_documented() {
        // Each row `| code | Name | …` of docs/cli.md against the type, in order.
        let (_, table) = include_str!("../../../docs/cli.md")
            .split_once("## Exit codes")
            .unwrap();
        let rows = table.lines().filter_map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let code: u8 = cells.next()?.parse().ok()?;
            Some((code, cells.next()?.to_owned()))
        });
        let documented: Vec<(u8, String)> = rows.collect();
        let ours: Vec<(u8, String)> = ALL
            .iter()
            .map(|exit| (exit.code(), format!("{exit:?}")))
            .collect();
        assert_eq!(documented, ours);
    }
}
