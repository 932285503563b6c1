//! Summary of the rounds, compared with the goals.

use super::BenchRound;
use crate::load::Pace;
use crate::metric::Figure;

const P99_MS_GOAL: f64 = 10.0;
const BARE: &str = "a bare sketch of it on SQLite";
const TABLE: &str = "the common lease SQL sent to Postgres directly";

/// A store of ours, its goal, and the reference it is compared with: the reference's result on the machine of the
/// goals. The ratio to the reference is meaningful on any machine, unlike the absolute goal.
struct Store {
    name: &'static str,
    goal: f64,
    ours: fn(&BenchRound) -> Pace,
    against: &'static str,
    theirs: fn(&BenchRound) -> Pace,
    pairs_per_s_there: f64,
    p99_ms_there: f64,
}

const STORES: [Store; 2] = [
    Store {
        name: "SQLite",
        goal: 20_000.0,
        ours: |turn| turn.sqlite,
        against: BARE,
        theirs: |turn| turn.bare,
        pairs_per_s_there: 28_800.0,
        p99_ms_there: 3.9,
    },
    Store {
        name: "Postgres",
        goal: 15_000.0,
        ours: |turn| turn.postgres,
        against: TABLE,
        theirs: |turn| turn.table,
        pairs_per_s_there: 14_500.0,
        p99_ms_there: 8.7,
    },
];

/// The median over the rounds.
pub(crate) fn figures(turns: &[BenchRound]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for store in &STORES {
        let Store { name, ours, .. } = store;
        let figure = format!("durable acquire and release over HTTP, {name}");
        let pairs = middle(turns, |turn| ours(turn).pairs_per_s);
        figures.push(Figure::at_least(&figure, pairs, store.goal, "pairs/s"));
        let p50 = middle(turns, |turn| ours(turn).p50_ms);
        figures.push(Figure::plain(&format!("p50 of such a pair, {name}"), p50, "ms"));
        let p99 = middle(turns, |turn| ours(turn).p99_ms);
        let figure = format!("p99 of such a pair, {name}");
        figures.push(Figure::at_most(&figure, p99, P99_MS_GOAL, "ms"));
    }
    for store in &STORES {
        let Store {
            name,
            against,
            ours,
            theirs,
            ..
        } = store;
        figures.extend(alone(against, turns, *theirs));
        let pairs = middle(turns, |turn| ours(turn).pairs_per_s / theirs(turn).pairs_per_s);
        let least = store.goal / store.pairs_per_s_there;
        figures.push(Figure::at_least(
            &format!("ours on {name} / {against}"),
            pairs,
            least,
            "times",
        ));
        let p99 = middle(turns, |turn| ours(turn).p99_ms / theirs(turn).p99_ms);
        let most = P99_MS_GOAL / store.p99_ms_there;
        figures.push(Figure::at_most(
            &format!("p99 of ours on {name} / of {against}"),
            p99,
            most,
            "times",
        ));
    }
    figures.push(ahead("SQLite", TABLE, true, turns, |turn| {
        turn.sqlite.pairs_per_s / turn.table.pairs_per_s
    }));
    for peer in turns.first().iter().flat_map(|turn| &turn.peers) {
        let theirs = |turn: &BenchRound| {
            turn.peers
                .iter()
                .find(|it| it.name == peer.name)
                .map_or(peer.pace, |it| it.pace)
        };
        figures.extend(alone(peer.name, turns, theirs));
        for Store { name, ours, .. } in &STORES {
            let ratio = |turn: &BenchRound| ours(turn).pairs_per_s / theirs(turn).pairs_per_s;
            figures.push(ahead(name, peer.name, peer.is_to_beat, turns, ratio));
        }
    }
    figures
}

/// Figures that explain a ratio.
fn alone(name: &str, turns: &[BenchRound], pace: impl Fn(&BenchRound) -> Pace) -> [Figure; 3] {
    [
        Figure::plain(name, middle(turns, |turn| pace(turn).pairs_per_s), "pairs/s"),
        Figure::plain(
            &format!("p50 of {name}"),
            middle(turns, |turn| pace(turn).p50_ms),
            "ms",
        ),
        Figure::plain(
            &format!("p99 of {name}"),
            middle(turns, |turn| pace(turn).p99_ms),
            "ms",
        ),
    ]
}

fn ahead(
    store: &str,
    peer: &str,
    is_to_beat: bool,
    turns: &[BenchRound],
    ratio: impl Fn(&BenchRound) -> f64,
) -> Figure {
    let name = format!("ours on {store} / {peer}");
    let ratio = middle(turns, ratio);
    if is_to_beat {
        return Figure::at_least(&name, ratio, 1.0, "times");
    }
    Figure::plain(&name, ratio, "times")
}

/// The median; for an even number the higher of the two middle values.
fn middle(turns: &[BenchRound], of: impl Fn(&BenchRound) -> f64) -> f64 {
    let mut all: Vec<f64> = turns.iter().map(of).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::Peer;
    use super::*;

    fn pace(pairs_per_s: f64, p99_ms: f64) -> Pace {
        Pace {
            pairs_per_s,
            p50_ms: p99_ms / 2.0,
            p99_ms,
        }
    }

    fn turn(speed: f64) -> BenchRound {
        // The machine of the goals, scaled by `speed`, with ours just sufficient on SQLite and not on Postgres.
        let at = |pairs_per_s: f64, p99_ms: f64| pace(pairs_per_s * speed, p99_ms / speed);
        BenchRound {
            sqlite: at(20_100.0, 9.9),
            bare: at(28_800.0, 3.9),
            postgres: at(14_900.0, 10.1),
            table: at(14_500.0, 8.7),
            peers: vec![Peer {
                name: "etcd",
                is_to_beat: true,
                pace: at(6_400.0, 20.0),
            }],
        }
    }

    #[test]
    fn median_counts_and_ratios_do_not_depend_on_the_machine() {
        // One round at the speed of the goals, one at twice and one at half of it; then all on a slow machine.
        let met = |turns: &[BenchRound], name: &str| {
            let figures = figures(turns);
            figures.iter().find(|it| it.name == name).unwrap().met()
        };
        let (sqlite, postgres) = (
            "durable acquire and release over HTTP, SQLite",
            "durable acquire and release over HTTP, Postgres",
        );
        let mixed = [turn(2.0), turn(0.5), turn(1.0)];
        assert_eq!(
            (met(&mixed, sqlite), met(&mixed, postgres)),
            (Some(true), Some(false))
        );
        let slow = [turn(0.4), turn(0.5), turn(0.6)];
        assert_eq!(
            (met(&slow, sqlite), met(&slow, "p99 of such a pair, SQLite")),
            (Some(false), Some(false))
        );
        for (name, is_met) in [
            (format!("ours on SQLite / {BARE}"), true),
            (format!("p99 of ours on SQLite / of {BARE}"), true),
            (format!("ours on Postgres / {TABLE}"), false),
            (format!("p99 of ours on Postgres / of {TABLE}"), false),
            (format!("ours on SQLite / {TABLE}"), true),
            ("ours on Postgres / etcd".to_owned(), true),
        ] {
            assert_eq!(met(&slow, &name), Some(is_met), "{name}");
        }
        assert_eq!(met(&slow, "etcd"), None);
    }
}
