//! The table of locks as text. Pure: rows in, lines out.
//!
//! Characters that could move the cursor or mislead the reader are escaped, and unknown values read `unknown`: never
//! blank, zero or an old value without a mark.

use domain::escape::visible;
use domain::format;
use domain::state::{LockState, Severity};
use serde_json::Value;

use super::api_types::Lock;
use super::text_width::{cut, width};

/// Maximum widths in columns; names keep both ends.
const RESOURCE_MAX: usize = 120;
const OWNER_MAX: usize = 60;
const CELL_MAX: usize = 40;
/// Minimum widths on a narrow terminal.
const RESOURCE_MIN: usize = 24;
const OWNER_MIN: usize = 12;
const GAP: usize = 2;

const HEADS: [&str; 8] = [
    "STATE",
    "RESOURCE",
    "BACKEND",
    "HELD-BY",
    "HELD",
    "REMAINING",
    "WAITERS",
    "TOKEN",
];
const RIGHT: [bool; 8] = [false, false, false, false, true, true, true, false];
const RESOURCE: usize = 1;
const OWNER: usize = 3;

/// Rendering options.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RenderOptions {
    pub(super) colour: bool,
    /// Width of the terminal, if it is one.
    pub(super) columns: Option<usize>,
    /// Milliseconds since the rows were read: remaining times are reduced by it.
    pub(super) age_ms: i64,
    /// The server no longer answers: every row is shown as stale.
    pub(super) disconnected: bool,
}

/// Header and rows with line ends.
pub(super) fn locks(rows: &[Lock], look: RenderOptions) -> Vec<String> {
    let mut cells: Vec<[String; 8]> = rows.iter().map(|lock| cells(lock, look)).collect();
    fit(&mut cells, look.columns);
    let widths: [usize; 8] = std::array::from_fn(|column| widest(&cells, column));
    let mut lines = vec![line(&HEADS.map(str::to_owned), &widths, &RIGHT)];
    for (lock, cells) in rows.iter().zip(&cells) {
        let text = line(cells, &widths, &RIGHT);
        // The state comes first: only it is coloured, after the padding was computed.
        let paint = if look.colour {
            colour(state_of(lock, look))
        } else {
            None
        };
        lines.push(match (paint, text.strip_prefix(cells[0].as_str())) {
            (Some(paint), Some(rest)) => format!("\u{1b}[{paint}m{}\u{1b}[0m{rest}", cells[0]),
            _ => text,
        });
    }
    lines
}

/// Other tables: all columns left-aligned.
pub(super) fn align(heads: &[&str], rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let shown: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| visible(cell).into_owned()).collect())
        .collect();
    let all = || std::iter::once(&heads).chain(&shown);
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| all().map(|row| width(&row[column])).max().unwrap_or_default())
        .collect();
    let left = vec![false; heads.len()];
    all().map(|row| line(row, &widths, &left) + "\n").collect()
}

fn line(cells: &[String], widths: &[usize], right: &[bool]) -> String {
    let mut out = String::new();
    for ((cell, wide), right) in cells.iter().zip(widths).zip(right) {
        let pad = " ".repeat(wide.saturating_sub(width(cell)));
        out.push_str(&if *right { pad + cell } else { cell.clone() + &pad });
        out.push_str(&" ".repeat(GAP));
    }
    out.truncate(out.trim_end().len());
    out
}

fn widest(cells: &[[String; 8]], column: usize) -> usize {
    let cells = cells.iter().map(|row| width(&row[column]));
    cells.chain([width(HEADS[column])]).max().unwrap_or_default()
}

/// Shortens owners, then resources, until the table fits or the minimums are reached.
fn fit(cells: &mut [[String; 8]], columns: Option<usize>) {
    let Some(columns) = columns else { return };
    for (column, min) in [(OWNER, OWNER_MIN), (RESOURCE, RESOURCE_MIN)] {
        let all: usize = (0..HEADS.len())
            .map(|column| widest(cells, column) + GAP)
            .sum::<usize>()
            - GAP;
        let over = all.saturating_sub(columns);
        let max = widest(cells, column).saturating_sub(over).max(min);
        if over > 0 {
            cells
                .iter_mut()
                .for_each(|row| row[column] = cut(&row[column], max));
        }
    }
}

fn cells(lock: &Lock, look: RenderOptions) -> [String; 8] {
    let state = state_of(lock, look);
    [
        state.map_or_else(
            || cut(&visible(lock.state.as_deref().unwrap_or("unknown")), CELL_MAX),
            |state| state.label().to_owned(),
        ),
        cut(&visible(&lock.resource), RESOURCE_MAX),
        cut(&visible(&lock.backend), CELL_MAX),
        owner(lock),
        held_cell(lock, look),
        remaining(lock, look),
        match lock.waiter_count {
            Some(count) => format::count(count),
            None => missing_cell(lock, "waiterCount", "none"),
        },
        token(lock),
    ]
}

/// The state to show; `None` if unknown to this version.
fn state_of(lock: &Lock, look: RenderOptions) -> Option<LockState> {
    match &lock.state {
        _ if look.disconnected => Some(LockState::Stale),
        Some(state) => LockState::parse(state),
        None => Some(LockState::Unknown),
    }
}

fn is_stale(lock: &Lock, look: RenderOptions) -> bool {
    state_of(lock, look) == Some(LockState::Stale)
}

fn owner(lock: &Lock) -> String {
    match (&lock.owner_id, lock.owner_count) {
        (Some(owner), Some(count)) if count > 1 => {
            format!(
                "{} +{}",
                cut(&visible(owner), OWNER_MAX),
                format::count(count - 1)
            )
        }
        (Some(owner), _) => cut(&visible(owner), OWNER_MAX),
        (None, _) => missing_cell(lock, "ownerId", "none"),
    }
}

/// Observed time is a lower bound if the acquisition was not observed or the data is stale.
fn held_cell(lock: &Lock, look: RenderOptions) -> String {
    match (lock.held_ms, lock.held_at_least_ms) {
        (Some(ms), _) if !is_stale(lock, look) => format::duration(ms),
        (Some(ms), _) | (None, Some(ms)) => format!("≥ {}", format::duration(ms)),
        (None, None) => missing_cell(lock, "heldMs", "none"),
    }
}

fn remaining(lock: &Lock, look: RenderOptions) -> String {
    match lock.remaining_ms.map(|ms| ms.saturating_sub(look.age_ms)) {
        Some(ms) if is_stale(lock, look) => format!("≤ {}", format::duration(ms)),
        Some(ms) => format::duration(ms),
        None => missing_cell(lock, "remainingMs", "no TTL"),
    }
}

fn token(lock: &Lock) -> String {
    match &lock.fencing_token {
        Some(Value::String(token)) => cut(&visible(token), CELL_MAX),
        Some(Value::Number(token)) => token.to_string(),
        Some(_) => "unknown".to_owned(),
        None => missing_cell(lock, "fencingToken", "none"),
    }
}

/// Absent or unknown.
fn missing_cell(lock: &Lock, field: &str, none: &str) -> String {
    if lock.is_absent(field) { none } else { "unknown" }.to_owned()
}

/// Colours of the terminal's palette, so that they fit light and dark themes.
fn colour(state: Option<LockState>) -> Option<&'static str> {
    match state?.severity() {
        Severity::Critical => Some("31"),
        Severity::Warning => Some("33"),
        Severity::Waiting => Some("34"),
        Severity::Blind => Some("2"),
        Severity::Healthy => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows() -> Vec<Lock> {
        let known = json!({"backend": "orders-db", "resource": "billing-close", "ownerId": "worker-7", "ownerCount": 3,
            "heldMs": 2_468_000, "remainingMs": 27_040, "waiterCount": 1200, "fencingToken": "9007199254740993",
            "state": "contended"});
        let unknown = json!({"backend": "cache", "resource": "lock:a", "ownerId": null, "heldMs": null,
            "heldAtLeastMs": 800, "remainingMs": null, "waiterCount": null, "fencingToken": null,
            "state": "no_ttl", "unknown": {"waiterCount": "Redis keeps no queue"},
            "absent": {"remainingMs": "no TTL", "fencingToken": "Redis issues none"}});
        let stale = json!({"backend": "coord", "resource": "job\u{1b}[2J\u{202e}x", "ownerId": "a\nb", "heldMs": 5000,
            "remainingMs": -372_000, "waiterCount": 0, "state": "stale", "absent": {"fencingToken": "none"}});
        let newer = json!({"backend": "x", "resource": "請求", "state": "melted", "heldMs": 0});
        [known, unknown, stale, newer].iter().map(Lock::parse).collect()
    }

    #[test]
    fn a_table_shows_unknown_absent_and_bounds_as_words() {
        // Known, unknown, absent, stale with bounds, hostile names, an unknown state.
        let lines = locks(&rows(), RenderOptions::default());
        let expected = "\
STATE      RESOURCE                   BACKEND    HELD-BY             HELD   REMAINING  WAITERS  TOKEN
contended  billing-close              orders-db  worker-7 +2  41 m 08 s      27.0 s    1,200  9007199254740993
no TTL     lock:a                     cache      unknown        ≥ 0.8 s      no TTL  unknown  none
stale      job\\u{1b}[2J\\u{202e}x  coord      a\\u{a}b        ≥ 5.0 s  ≤ −6 m 12 s        0  none
melted     請求                       x          unknown          0.0 s     unknown  unknown  unknown";
        let normal = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let seen: Vec<String> = lines.iter().map(|line| normal(line)).collect();
        assert_eq!(seen, expected.lines().map(normal).collect::<Vec<_>>());
    }

    #[test]
    fn columns_align_in_any_script() {
        // The backend column begins at the same terminal column in every line.
        let lines = locks(&rows(), RenderOptions::default());
        let names = ["BACKEND", "orders-db", "cache", "coord", "x "];
        let starts: Vec<usize> = lines
            .iter()
            .zip(names)
            .map(|(line, name)| width(&line[..line.find(name).unwrap()]))
            .collect();
        // "x " also occurs at the end of the hostile name, so each line is checked for its own backend.
        assert!(
            starts.windows(2).all(|pair| pair[0] == pair[1]),
            "{starts:?}\n{}",
            lines.join("\n")
        );
    }

    #[test]
    fn disconnected_table_is_stale_and_its_time_left_falls() {
        // 10 s after the last response: no row is shown as live.
        let look = RenderOptions {
            age_ms: 10_000,
            disconnected: true,
            ..RenderOptions::default()
        };
        let lines = locks(&rows(), look);
        assert!(
            lines[1..].iter().all(|line| line.starts_with("stale ")),
            "{lines:?}"
        );
        assert!(
            lines[1].contains("≥ 41 m 08 s") && lines[1].contains("≤ 17.0 s"),
            "{lines:?}"
        );
    }

    #[test]
    fn only_the_state_is_coloured_and_only_on_request() {
        // No escape character without colour, even with hostile names; with colour, two per coloured row.
        let plain = locks(&rows(), RenderOptions::default()).join("\n");
        assert!(!plain.chars().any(|c| c.is_control() && c != '\n'));
        let painted = locks(
            &rows(),
            RenderOptions {
                colour: true,
                ..RenderOptions::default()
            },
        );
        assert!(
            painted[1].starts_with("\u{1b}[34mcontended\u{1b}[0m  billing-close"),
            "{painted:?}"
        );
        assert_eq!(painted[4].matches('\u{1b}').count(), 0, "a state without a hue");
    }

    #[test]
    fn a_narrow_terminal_shortens_owner_and_resource() {
        // 120 columns for names that need more.
        let mut rows = rows();
        rows[0].resource = "tenant_123:".repeat(20);
        rows[1].owner_id = Some("host-".repeat(20));
        let lines = locks(
            &rows,
            RenderOptions {
                columns: Some(120),
                ..RenderOptions::default()
            },
        );
        assert!(lines.iter().all(|line| width(line) <= 120), "{lines:#?}");
    }
}
