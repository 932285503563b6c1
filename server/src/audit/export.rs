//! Entries as CSV and as JSON lines.
//!
//! CSV is for spreadsheets: each cell is quoted, and text that a spreadsheet would run as a formula gets a leading
//! apostrophe, also where it would begin a cell only with a separator other than the comma.

use domain::audit::AuditEntry;

/// Column names, as in JSON.
const COLUMNS: [&str; 22] = [
    "id",
    "createdAt",
    "action",
    "phase",
    "outcome",
    "actorId",
    "actorName",
    "role",
    "backend",
    "source",
    "resource",
    "unlockId",
    "reason",
    "approverId",
    "before",
    "after",
    "ip",
    "userAgent",
    "requestId",
    "traceId",
    "prevHash",
    "hash",
];

pub fn csv_header() -> String {
    COLUMNS.map(cell).join(",") + "\r\n"
}

/// RFC 4180.
pub fn csv_row(row: &AuditEntry) -> String {
    let created_at = row
        .created_at
        .to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let text = |value: &Option<String>| cell(value.as_deref().unwrap_or_default());
    let cells = [
        cell(&row.id),
        cell(&created_at),
        cell(&row.action),
        cell(&row.phase),
        cell(&row.outcome),
        cell(&row.actor_id),
        cell(&row.actor_name),
        text(&row.role),
        text(&row.backend),
        text(&row.source),
        text(&row.resource),
        text(&row.unlock_id),
        text(&row.reason),
        text(&row.approver_id),
        text(&row.before),
        text(&row.after),
        text(&row.ip),
        text(&row.user_agent),
        text(&row.request_id),
        text(&row.trace_id),
        cell(&row.prev_hash),
        cell(&row.hash),
    ];
    cells.join(",") + "\r\n"
}

/// Leading characters that a spreadsheet runs: OWASP's list for CSV injection, with the full-width forms.
const RUNS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// Characters that begin a cell for a reader that separates by `;` or tab. Such a reader sees no opening quote in
/// the middle of its cell, so line breaks count too.
const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    out.push('"');
    let mut begins_cell = true;
    for c in text.chars() {
        if begins_cell && RUNS.contains(&c) {
            out.push('\'');
        }
        if c == '"' {
            out.push('"');
        }
        out.push(c);
        // Some readers drop spaces and quotes.
        begins_cell = SEPARATORS.contains(&c) || (begins_cell && matches!(c, ' ' | '"'));
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_quotes_are_doubled() {
        // Each character that a spreadsheet runs, then what RFC 4180 wants quoted.
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"] {
            assert!(cell(text).starts_with("\"'"), "{text:?}");
        }
        assert_eq!(cell("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(cell("plain"), "\"plain\"");
        assert_eq!(csv_header().trim_end().split(',').count(), COLUMNS.len());
    }

    #[test]
    fn a_formula_after_another_separator_is_guarded() {
        // With `;`, a tab or a line break as separator, also after spaces and quotes.
        for (text, expected) in [
            ("x;=HYPERLINK(1)", "\"x;'=HYPERLINK(1)\""),
            ("x\t+1", "\"x\t'+1\""),
            ("x\n@a", "\"x\n'@a\""),
            ("x; \"=1", "\"x; \"\"'=1\""),
            ("  -1", "\"  '-1\""),
            ("a-b;c=d", "\"a-b;c=d\""),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }
}
