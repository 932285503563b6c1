//! Exports of the audit log: complete, harmless in a spreadsheet, and themselves recorded.

use super::audit_server::{AuditServer, about};
use super::chain::fill;
use crate::support::Store;
use reqwest::Method;
use serde_json::{Value, json};

/// RFC 4180, by hand: rows of cells.
fn cells(csv: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = csv.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {
                chars.next();
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty(), "it ends with a line's end");
    rows
}

#[tokio::test]
async fn hostile_names_are_no_formulas_in_csv() {
    // What spreadsheets run, in the resource, the reason and the actor; quotes, commas, line ends, a right-to-left mark.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    // Each with its cell as parsed by RFC 4180: an apostrophe before a formula, and no other
    // change.
    let hostile = [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1+1", "'+1+1"),
        ("-1-1", "'-1-1"),
        ("@SUM(A1:A9)", "'@SUM(A1:A9)"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("\n=1", "'\n'=1"),
        ("a\",\"b\r\n=1", "a\",\"b\r'\n'=1"),
        ("x;=1+1", "x;'=1+1"),
        ("it's o'clock", "it's o'clock"),
        ("\u{202e}gnp.exe", "\u{202e}gnp.exe"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ];
    for (name, _) in hostile {
        let mut entry = about("cache", name);
        entry.reason = Some(name.to_owned());
        entry.actor.name = name.to_owned();
        server.audit.append(entry).await.unwrap();
    }
    let (status, csv) = server
        .as_user(&auditor)
        .text("/v1/audit/export?format=csv&action=FORCE_UNLOCK")
        .await;
    assert_eq!(status, 200);
    let rows = cells(&csv);
    assert_eq!(rows.len(), 1 + hostile.len());
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let runs = |cell: &String| cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let bad: Vec<&String> = rows.iter().flatten().filter(|cell| runs(cell)).collect();
    assert!(bad.is_empty(), "{bad:?}");
    for column in ["resource", "reason", "actorName"] {
        let place = rows[0].iter().position(|name| name == column).unwrap();
        for (row, (name, cell)) in rows[1..].iter().rev().zip(hostile) {
            assert_eq!(row[place], cell, "{column} {name:?}");
        }
    }
}

#[tokio::test]
async fn an_export_has_every_entry_and_is_itself_recorded() {
    // More entries than are read at once, in both formats; then the entries of the export
    // itself, with its filters.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = AuditServer::on(home).await;
        let auditor = server.auditor().await;
        fill(&server.audit, 450).await;
        let (_, lines) = server
            .as_user(&auditor)
            .text("/v1/audit/export?format=json&prefix=tenant_")
            .await;
        let rows: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(rows.len(), 450);
        let of = |row: &Value| row["id"].as_str().unwrap().parse::<i64>().unwrap();
        assert!(rows.windows(2).all(|pair| of(&pair[0]) == of(&pair[1]) + 1));
        assert!(rows[0]["after"]["number"].is_i64(), "{}", rows[0]);
        let answer = server
            .as_user(&auditor)
            .send(Method::GET, "/v1/audit/export?format=csv")
            .await;
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert!(header("content-type").starts_with("text/csv"));
        assert_eq!(
            header("content-disposition"),
            "attachment; filename=\"leasehold-audit.csv\""
        );
        assert_eq!(header("cache-control"), "no-store");
        let csv = cells(&answer.text().await.unwrap());
        let newest: i64 = csv[1][0].parse().unwrap();
        assert_eq!(csv.len() as i64, 1 + newest, "the header, and every row");
        let (_, own) = server
            .as_user(&auditor)
            .get("/v1/audit?action=AUDIT_EXPORT")
            .await;
        let own = own["entries"].as_array().unwrap();
        assert_eq!(own.len(), 2);
        assert_eq!(
            own[0]["id"].as_str().unwrap().parse::<i64>().unwrap(),
            newest + 1,
            "not in itself"
        );
        assert_eq!(
            own[1]["after"],
            json!({"format": "json", "filters": {"prefix": "tenant_"}})
        );
        assert_eq!(own[0]["actorName"], "auditor");
        assert!(server.is_whole().await);
    }
}
