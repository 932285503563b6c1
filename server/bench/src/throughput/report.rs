//! Summary of the rounds, compared with the goals: each is a ratio to a peer of the same round, which does not depend on
//! the machine.

use std::collections::BTreeSet;

use super::{BenchRound, THREAD_US_SHOWN};
use crate::load::Pace;
use crate::metric::{Figure, Goal};

const YARDSTICK: &str = "the yardstick on SQLite";
const TABLE: &str = "the common lease SQL sent to Postgres directly";
const REDIS: &str = "Redis with appendfsync always";

/// A store of ours, the peer it is compared with, and the goals of that comparison.
struct Store {
    name: &'static str,
    ours: fn(&BenchRound) -> &Pace,
    against: &'static str,
    theirs: fn(&BenchRound) -> &Pace,
    pairs_least: f64,
    /// Maximum ratios of the p99 and of the CPU time of a pair; `None`: without a goal.
    most: Option<(f64, f64)>,
}

const STORES: [Store; 2] = [
    Store {
        name: "SQLite",
        ours: |round| &round.sqlite,
        against: YARDSTICK,
        theirs: |round| &round.yardstick,
        pairs_least: 0.85,
        most: Some((1.6, 1.15)),
    },
    Store {
        name: "Postgres",
        ours: |round| &round.postgres,
        against: TABLE,
        theirs: |round| &round.table,
        pairs_least: 1.5,
        most: None,
    },
];

/// The median over the rounds, with the lowest and the highest.
pub(crate) fn figures(rounds: &[BenchRound]) -> Vec<Figure> {
    let mut figures = vec![
        plain("sync of 8 KB on this device, p50", rounds, "ms", |round| {
            round.sync.p50_ms
        }),
        plain("sync of 8 KB on this device, p99", rounds, "ms", |round| {
            round.sync.p99_ms
        }),
    ];
    for Store { name, ours, .. } in &STORES {
        let title = format!("durable acquire and release over HTTP, {name}");
        figures.extend(pace_figures(&title, rounds, *ours));
    }
    for store in &STORES {
        figures.extend(pace_figures(store.against, rounds, store.theirs));
        figures.extend(compared(store, rounds));
    }
    figures.extend(pace_figures(
        "pairs without idempotency keys, SQLite",
        rounds,
        |round| &round.sqlite_keyless,
    ));
    figures.push(at_least("with keys / without keys", 0.9, rounds, |round| {
        round.sqlite.pairs_per_s / round.sqlite_keyless.pairs_per_s
    }));
    figures.extend(pace_figures(
        "pairs in batch calls of 64 locks, SQLite",
        rounds,
        |round| &round.sqlite_batches,
    ));
    figures.push(at_least("batch calls / single calls", 3.0, rounds, |round| {
        round.sqlite_batches.pairs_per_s / round.sqlite.pairs_per_s
    }));
    figures.push(at_least(
        &format!("ours on SQLite / {TABLE}"),
        1.0,
        rounds,
        |round| round.sqlite.pairs_per_s / round.table.pairs_per_s,
    ));
    for peer in rounds.first().iter().flat_map(|round| &round.peers) {
        figures.extend(against_peer(peer, rounds));
    }
    figures
}

fn compared(store: &Store, rounds: &[BenchRound]) -> Vec<Figure> {
    let Store {
        name,
        against,
        ours,
        theirs,
        pairs_least,
        most,
    } = store;
    let title = format!("ours on {name} / {against}");
    let mut figures = vec![at_least(&title, *pairs_least, rounds, |round| {
        ours(round).pairs_per_s / theirs(round).pairs_per_s
    })];
    let p99 = |round: &BenchRound| ours(round).p99_ms / theirs(round).p99_ms;
    let cpu = |round: &BenchRound| ours(round).cpu_us / theirs(round).cpu_us;
    let (p99_title, cpu_title) = (format!("p99 of {title}"), format!("CPU time of a pair, {title}"));
    figures.extend(match most {
        Some((p99_most, cpu_most)) => [
            at_most(&p99_title, *p99_most, rounds, p99),
            at_most(&cpu_title, *cpu_most, rounds, cpu),
        ],
        None => [
            plain(&p99_title, rounds, "times", p99),
            plain(&cpu_title, rounds, "times", cpu),
        ],
    });
    figures
}

fn against_peer(peer: &super::Peer, rounds: &[BenchRound]) -> Vec<Figure> {
    let mut figures = pace_figures(peer.name, rounds, |round| pace_of(peer.name, round));
    for Store { name, ours, .. } in &STORES {
        let ratio = |round: &BenchRound| ours(round).pairs_per_s / pace_of(peer.name, round).pairs_per_s;
        let title = format!("ours on {name} / {}", peer.name);
        figures.push(match (peer.name, *name) {
            (REDIS, "SQLite") => at_least(&title, 0.65, rounds, ratio),
            _ if peer.is_to_beat => at_least(&title, 1.0, rounds, ratio),
            _ => plain(&title, rounds, "times", ratio),
        });
    }
    figures
}

fn pace_of<'a>(peer: &str, round: &'a BenchRound) -> &'a Pace {
    /// Each round has the same peers.
    static NONE: Pace = Pace {
        pairs_per_s: 0.0,
        p50_ms: 0.0,
        p99_ms: 0.0,
        cpu_us: 0.0,
        threads: Vec::new(),
    };
    let found = round.peers.iter().find(|it| it.name == peer);
    found.map_or(&NONE, |it| &it.pace)
}

/// Figures that explain a ratio.
fn pace_figures(name: &str, rounds: &[BenchRound], pace: impl Fn(&BenchRound) -> &Pace) -> Vec<Figure> {
    let mut figures = vec![
        plain(name, rounds, "pairs/s", |round| pace(round).pairs_per_s),
        plain(&format!("p50 of {name}"), rounds, "ms", |round| {
            pace(round).p50_ms
        }),
        plain(&format!("p99 of {name}"), rounds, "ms", |round| {
            pace(round).p99_ms
        }),
        plain(&format!("CPU time of {name}"), rounds, "us", |round| {
            pace(round).cpu_us
        }),
    ];
    figures.extend(by_thread(name, rounds, pace));
    figures
}

/// CPU time of a pair by thread, or by process where it is not ours.
fn by_thread(
    name: &str,
    rounds: &[BenchRound],
    pace: impl Fn(&BenchRound) -> &Pace,
) -> impl Iterator<Item = Figure> {
    let of = |round: &BenchRound, thread: &str| {
        let found = pace(round).threads.iter().find(|cpu| cpu.name == thread);
        found.map_or([0.0; 2], |cpu| [cpu.user_us, cpu.system_us])
    };
    let threads: BTreeSet<&str> = rounds
        .iter()
        .flat_map(|round| pace(round).threads.iter().map(|cpu| cpu.name.as_str()))
        .collect();
    let figures = threads.into_iter().flat_map(|thread| {
        ["user", "system"]
            .into_iter()
            .enumerate()
            .map(move |(place, kind)| {
                plain(
                    &format!("{kind} time of `{thread}`, {name}"),
                    rounds,
                    "us",
                    |round| of(round, thread)[place],
                )
            })
    });
    let shown: Vec<Figure> = figures
        .filter(|figure| figure.measured >= THREAD_US_SHOWN)
        .collect();
    shown.into_iter()
}

fn plain(
    name: &str,
    rounds: &[BenchRound],
    unit: &'static str,
    value: impl Fn(&BenchRound) -> f64,
) -> Figure {
    Figure::median(name, rounds.iter().map(value), Goal::None, unit)
}

fn at_least(name: &str, least: f64, rounds: &[BenchRound], value: impl Fn(&BenchRound) -> f64) -> Figure {
    Figure::median(name, rounds.iter().map(value), Goal::AtLeast(least), "times")
}

fn at_most(name: &str, most: f64, rounds: &[BenchRound], value: impl Fn(&BenchRound) -> f64) -> Figure {
    Figure::median(name, rounds.iter().map(value), Goal::AtMost(most), "times")
}

#[cfg(test)]
mod tests {
    use super::super::Peer;
    use super::*;
    use crate::disk::SyncTimes;
    use crate::thread_cpu::ThreadCpu;

    fn pace(pairs_per_s: f64, p99_ms: f64) -> Pace {
        Pace {
            pairs_per_s,
            p50_ms: p99_ms / 2.0,
            p99_ms,
            cpu_us: 2_000_000.0 / pairs_per_s,
            threads: vec![ThreadCpu {
                name: "writer".to_owned(),
                user_us: 400_000.0 / pairs_per_s,
                system_us: 0.1,
            }],
        }
    }

    fn round(speed: f64) -> BenchRound {
        // Ours reaches the goals on SQLite, just, and misses them on Postgres.
        let at = |pairs_per_s: f64, p99_ms: f64| pace(pairs_per_s * speed, p99_ms / speed);
        BenchRound {
            sync: SyncTimes {
                p50_ms: 0.3,
                p99_ms: 0.9,
            },
            sqlite: at(25_100.0, 6.0),
            sqlite_keyless: at(26_000.0, 5.9),
            sqlite_batches: at(70_000.0, 9.0),
            yardstick: at(28_800.0, 3.9),
            postgres: at(14_900.0, 10.1),
            table: at(14_500.0, 8.7),
            peers: vec![
                Peer {
                    name: "etcd",
                    is_to_beat: true,
                    pace: at(6_400.0, 20.0),
                },
                Peer {
                    name: REDIS,
                    is_to_beat: false,
                    pace: at(37_000.0, 2.0),
                },
            ],
        }
    }

    #[test]
    fn ratios_do_not_depend_on_the_machine() {
        for rounds in [
            [round(2.0), round(0.5), round(1.0)],
            [round(0.4), round(0.5), round(0.6)],
        ] {
            let figures = figures(&rounds);
            let meets_goal = |name: &str| {
                let figure = figures.iter().find(|it| it.name == name);
                figure.unwrap_or_else(|| panic!("{name}")).meets_goal()
            };
            for (name, is_met) in [
                (format!("ours on SQLite / {YARDSTICK}"), Some(true)),
                (format!("p99 of ours on SQLite / {YARDSTICK}"), Some(true)),
                (
                    format!("CPU time of a pair, ours on SQLite / {YARDSTICK}"),
                    Some(true),
                ),
                (format!("ours on Postgres / {TABLE}"), Some(false)),
                (format!("p99 of ours on Postgres / {TABLE}"), None),
                (format!("ours on SQLite / {REDIS}"), Some(true)),
                (format!("ours on Postgres / {REDIS}"), None),
                ("ours on Postgres / etcd".to_owned(), Some(true)),
                ("with keys / without keys".to_owned(), Some(true)),
                ("batch calls / single calls".to_owned(), Some(false)),
                ("etcd".to_owned(), None),
            ] {
                assert_eq!(meets_goal(&name), is_met, "{name}");
            }
        }
    }

    #[test]
    fn cpu_time_is_shown_by_thread_unless_it_is_negligible() {
        let figures = figures(&[round(1.0)]);
        let title = |kind: &str| format!("{kind} time of `writer`, {YARDSTICK}");
        let found = |kind: &str| figures.iter().find(|it| it.name == title(kind));
        let user = found("user").unwrap();
        assert_eq!(user.measured.round(), (400_000.0_f64 / 28_800.0).round());
        assert_eq!(found("system"), None);
    }

    #[test]
    fn a_figure_is_the_median_with_its_spread() {
        let figures = figures(&[round(2.0), round(0.5), round(1.0)]);
        let title = "durable acquire and release over HTTP, SQLite";
        let figure = figures.iter().find(|it| it.name == title).unwrap();
        let rounded = |value: f64| value.round();
        assert_eq!(rounded(figure.measured), 25_100.0);
        assert_eq!(
            figure.spread.map(|both| both.map(rounded)),
            Some([12_550.0, 50_200.0])
        );
    }
}
