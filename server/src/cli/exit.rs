//! How commands end. Scripts rely on these numbers.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Ok,
    Failure,
    /// Wrong arguments (clap ends with this number too) or a wrong configuration.
    Usage,
    /// No answer from the server that was asked.
    Unreachable,
    /// Done, but some backend is stale, down or seen in part: the answer is not the whole truth.
    Incomplete,
    /// `unlock`: not done, for a reason that was told.
    Refused,
    /// `unlock`: another holding stands there; it was not touched.
    HolderChanged,
    /// `unlock`: it may or may not have been done.
    OutcomeUnknown,
    /// `unlock`: there is nothing to release.
    NotHeld,
    /// `run`: the lock was not obtained (sysexits' "temporary failure").
    NotObtained,
    /// `run`: the lease was lost while the command ran.
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
    fn the_documented_exit_codes_are_these_and_no_others() {
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
