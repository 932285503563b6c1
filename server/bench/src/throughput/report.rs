//! Summary of the rounds, compared with the goals: each is a ratio to a peer of the same round, which does not depend on
//! the machine.

use std::collections::BTreeSet;

use super::{BenchRound, THREAD_US_SHOWN};
use crate::load::Pace;
use crate::metric::{Figure, Goal};

const BARE: &str = "the yardstick on SQLite";
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
        ours: |turn| &turn.sqlite,
        against: BARE,
        theirs: |turn| &turn.bare,
        pairs_least: 0.85,
        most: Some((1.6, 1.15)),
    },
    Store {
        name: "Postgres",
        ours: |turn| &turn.postgres,
        against: TABLE,
        theirs: |turn| &turn.table,
        pairs_least: 1.5,
        most: None,
    },
];

/// The median over the rounds, with the lowest and the highest.
pub(crate) fn figures(turns: &[BenchRound]) -> Vec<Figure> {
    let mut figures = vec![
        plain("sync of 8 KB on this device, p50", turns, "ms", |turn| {
            turn.sync.p50_ms
        }),
        plain("sync of 8 KB on this device, p99", turns, "ms", |turn| {
            turn.sync.p99_ms
        }),
    ];
    for Store { name, ours, .. } in &STORES {
        let title = format!("durable acquire and release over HTTP, {name}");
        figures.extend(alone(&title, turns, *ours));
    }
    for store in &STORES {
        figures.extend(alone(store.against, turns, store.theirs));
        figures.extend(compared(store, turns));
    }
    figures.extend(alone("pairs without idempotency keys, SQLite", turns, |turn| {
        &turn.sqlite_keyless
    }));
    figures.push(at_least("with keys / without keys", 0.9, turns, |turn| {
        turn.sqlite.pairs_per_s / turn.sqlite_keyless.pairs_per_s
    }));
    figures.extend(alone("pairs in batch calls of 64 locks, SQLite", turns, |turn| {
        &turn.sqlite_batches
    }));
    figures.push(at_least("batch calls / single calls", 3.0, turns, |turn| {
        turn.sqlite_batches.pairs_per_s / turn.sqlite.pairs_per_s
    }));
    figures.push(at_least(
        &format!("ours on SQLite / {TABLE}"),
        1.0,
        turns,
        |turn| turn.sqlite.pairs_per_s / turn.table.pairs_per_s,
    ));
    for peer in turns.first().iter().flat_map(|turn| &turn.peers) {
        figures.extend(against_peer(peer, turns));
    }
    figures
}

fn compared(store: &Store, turns: &[BenchRound]) -> Vec<Figure> {
    let Store {
        name,
        against,
        ours,
        theirs,
        pairs_least,
        most,
    } = store;
    let title = format!("ours on {name} / {against}");
    let mut figures = vec![at_least(&title, *pairs_least, turns, |turn| {
        ours(turn).pairs_per_s / theirs(turn).pairs_per_s
    })];
    let p99 = |turn: &BenchRound| ours(turn).p99_ms / theirs(turn).p99_ms;
    let cpu = |turn: &BenchRound| ours(turn).cpu_us / theirs(turn).cpu_us;
    let (p99_title, cpu_title) = (format!("p99 of {title}"), format!("CPU time of a pair, {title}"));
    figures.extend(match most {
        Some((p99_most, cpu_most)) => [
            at_most(&p99_title, *p99_most, turns, p99),
            at_most(&cpu_title, *cpu_most, turns, cpu),
        ],
        None => [
            plain(&p99_title, turns, "times", p99),
            plain(&cpu_title, turns, "times", cpu),
        ],
    });
    figures
}

fn against_peer(peer: &super::Peer, turns: &[BenchRound]) -> Vec<Figure> {
    let mut figures = alone(peer.name, turns, |turn| pace_of(peer.name, turn));
    for Store { name, ours, .. } in &STORES {
        let ratio = |turn: &BenchRound| ours(turn).pairs_per_s / pace_of(peer.name, turn).pairs_per_s;
        let title = format!("ours on {name} / {}", peer.name);
        figures.push(match (peer.name, *name) {
            (REDIS, "SQLite") => at_least(&title, 0.65, turns, ratio),
            _ if peer.is_to_beat => at_least(&title, 1.0, turns, ratio),
            _ => plain(&title, turns, "times", ratio),
        });
    }
    figures
}

fn pace_of<'a>(peer: &str, turn: &'a BenchRound) -> &'a Pace {
    /// Each round has the same peers.
    static NONE: Pace = Pace {
        pairs_per_s: 0.0,
        p50_ms: 0.0,
        p99_ms: 0.0,
        cpu_us: 0.0,
        threads: Vec::new(),
    };
    let same = turn.peers.iter().find(|it| it.name == peer);
    same.map_or(&NONE, |it| &it.pace)
}

/// Figures that explain a ratio.
fn alone(name: &str, turns: &[BenchRound], pace: impl Fn(&BenchRound) -> &Pace) -> Vec<Figure> {
    let mut figures = vec![
        plain(name, turns, "pairs/s", |turn| pace(turn).pairs_per_s),
        plain(&format!("p50 of {name}"), turns, "ms", |turn| pace(turn).p50_ms),
        plain(&format!("p99 of {name}"), turns, "ms", |turn| pace(turn).p99_ms),
        plain(&format!("CPU time of {name}"), turns, "us", |turn| {
            pace(turn).cpu_us
        }),
    ];
    figures.extend(by_thread(name, turns, pace));
    figures
}

/// CPU time of a pair by thread, or by process where it is not ours.
fn by_thread(
    name: &str,
    turns: &[BenchRound],
    pace: impl Fn(&BenchRound) -> &Pace,
) -> impl Iterator<Item = Figure> {
    let of = |turn: &BenchRound, thread: &str| {
        let found = pace(turn).threads.iter().find(|cpu| cpu.name == thread);
        found.map_or([0.0; 2], |cpu| [cpu.user_us, cpu.system_us])
    };
    let threads: BTreeSet<&str> = turns
        .iter()
        .flat_map(|turn| pace(turn).threads.iter().map(|cpu| cpu.name.as_str()))
        .collect();
    let figures = threads.into_iter().flat_map(|thread| {
        ["user", "system"]
            .into_iter()
            .enumerate()
            .map(move |(place, kind)| {
                plain(
                    &format!("{kind} time of `{thread}`, {name}"),
                    turns,
                    "us",
                    |turn| of(turn, thread)[place],
                )
            })
    });
    let shown: Vec<Figure> = figures
        .filter(|figure| figure.measured >= THREAD_US_SHOWN)
        .collect();
    shown.into_iter()
}

fn plain(name: &str, turns: &[BenchRound], unit: &'static str, value: impl Fn(&BenchRound) -> f64) -> Figure {
    Figure::median(name, turns.iter().map(value), Goal::None, unit)
}

fn at_least(name: &str, least: f64, turns: &[BenchRound], value: impl Fn(&BenchRound) -> f64) -> Figure {
    Figure::median(name, turns.iter().map(value), Goal::AtLeast(least), "times")
}

fn at_most(name: &str, most: f64, turns: &[BenchRound], value: impl Fn(&BenchRound) -> f64) -> Figure {
    Figure::median(name, turns.iter().map(value), Goal::AtMost(most), "times")
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

    fn turn(speed: f64) -> BenchRound {
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
            bare: at(28_800.0, 3.9),
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
        for turns in [
            [turn(2.0), turn(0.5), turn(1.0)],
            [turn(0.4), turn(0.5), turn(0.6)],
        ] {
            let figures = figures(&turns);
            let met = |name: &str| {
                let figure = figures.iter().find(|it| it.name == name);
                figure.unwrap_or_else(|| panic!("{name}")).met()
            };
            for (name, is_met) in [
                (format!("ours on SQLite / {BARE}"), Some(true)),
                (format!("p99 of ours on SQLite / {BARE}"), Some(true)),
                (format!("CPU time of a pair, ours on SQLite / {BARE}"), Some(true)),
                (format!("ours on Postgres / {TABLE}"), Some(false)),
                (format!("p99 of ours on Postgres / {TABLE}"), None),
                (format!("ours on SQLite / {REDIS}"), Some(true)),
                (format!("ours on Postgres / {REDIS}"), None),
                ("ours on Postgres / etcd".to_owned(), Some(true)),
                ("with keys / without keys".to_owned(), Some(true)),
                ("batch calls / single calls".to_owned(), Some(false)),
                ("etcd".to_owned(), None),
            ] {
                assert_eq!(met(&name), is_met, "{name}");
            }
        }
    }

    #[test]
    fn cpu_time_is_shown_by_thread_unless_it_is_negligible() {
        let figures = figures(&[turn(1.0)]);
        let title = |kind: &str| format!("{kind} time of `writer`, {BARE}");
        let found = |kind: &str| figures.iter().find(|it| it.name == title(kind));
        let user = found("user").unwrap();
        assert_eq!(user.measured.round(), (400_000.0_f64 / 28_800.0).round());
        assert_eq!(found("system"), None);
    }

    #[test]
    fn a_figure_is_the_median_with_its_spread() {
        let figures = figures(&[turn(2.0), turn(0.5), turn(1.0)]);
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
