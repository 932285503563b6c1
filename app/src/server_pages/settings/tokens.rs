//! API tokens: permissions, last use, creation.

use domain::access::{Grant, Role};
use domain::format;
use leptos::prelude::*;

use super::ago;
use crate::server_pages::field::{Field, alert, choice, options_of, secret_once};
use crate::server_pages::grants;
use crate::server_pages::layout::{Chrome, Page, page};

#[derive(Debug, Clone)]
pub struct TokenRow {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    pub created_at: i64,
    pub created_by: String,
    /// The user behind the creator, if different.
    pub root: Option<String>,
    pub expires_at: Option<i64>,
    pub used_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// Name of the token whose leases it inherits.
    pub successor_of: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Tokens {
    pub rows: Vec<TokenRow>,
    pub backends: Vec<String>,
    pub now: i64,
    pub name: String,
    pub fault: Option<(String, String)>,
    pub refusal: Option<String>,
    /// Name and secret of a token that was just created.
    pub made: Option<(String, String)>,
}

/// Value in days and label; empty: until revoked.
pub const LIVES: [(&str, &str); 5] = [
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
    ("365", "a year"),
    ("", "until it is revoked"),
];

pub fn tokens(chrome: &Chrome, tokens: Tokens) -> String {
    let (good, over): (Vec<&TokenRow>, Vec<&TokenRow>) =
        tokens.rows.iter().partition(|row| is_good(row, tokens.now));
    let unused = good.iter().filter(|row| row.used_at.is_none()).count();
    let title = match good.len() {
        0 => "No API tokens".to_owned(),
        count => {
            let good = format::counted(count as u64, "active token", "active tokens");
            if unused > 0 {
                format!("{good}, {unused} never used")
            } else {
                good
            }
        }
    };
    let past = (!over.is_empty()).then(|| {
        view! {
            <details class="sec">
                <summary class="ink2">{format::counted(over.len() as u64, "token", "tokens")}" that expired or were revoked"</summary>
                {list(&over, tokens.now)}
            </details>
        }
    });
    let content = view! {
        {tokens.made.clone().map(|(name, secret)| secret_once(
            format!("The token {name}"),
            secret,
            "Programs send it as Authorization: Bearer; leasehold run and leasehold locks read it from LEASEHOLD_TOKEN. Only its hash is stored: it is not shown again.",
        ))}
        {alert(tokens.refusal.clone())}
        <div class="with-form">
            <div class="stack">
                <section class="sec">
                    <header><h2>"Tokens"</h2><span class="end">{format::counted(good.len() as u64, "row", "rows")}</span></header>
                    {list(&good, tokens.now)}
                </section>
                {past}
            </div>
            {create(&tokens)}
        </div>
    };
    let lead = "Programs use a token to hold leases and read the inventory within its prefixes. Last use is updated within 5 s.";
    let content = content.into_any();
    page(
        chrome,
        Page {
            title,
            lead: Some(lead.to_owned()),
            content,
        },
    )
}

fn is_good(row: &TokenRow, now: i64) -> bool {
    row.revoked_at.is_none() && row.expires_at.is_none_or(|at| at > now)
}

fn list(rows: &[&TokenRow], now: i64) -> AnyView {
    if rows.is_empty() {
        return view! { <p class="ink2 none-here">"None yet."</p> }.into_any();
    }
    let lines = rows.iter().map(|row| {
        let revoke = is_good(row, now).then(|| {
            let label = format!("Revoke {}", row.name);
            view! {
                <form method="post" action=format!("/settings/tokens/{}/revoke", row.id)>
                    <button class="btn s" r#type="submit" aria-label=label>"Revoke"</button>
                </form>
            }
        });
        let end = match row.revoked_at {
            Some(at) => view! { "revoked "{ago(Some(at), now, "")} }.into_any(),
            None => ago(row.expires_at, now, "never"),
        };
        let successor = row
            .successor_of
            .as_ref()
            .map(|name| view! { <small class="ink2">{format!(" successor of {name}")}</small> });
        let by = match &row.root {
            Some(root) => format!(" by {}, for {root}", row.created_by),
            None => format!(" by {}", row.created_by),
        };
        view! {
            <tr>
                <th scope="row">{row.name.clone()}{successor}</th>
                <td class="wrap">{grants::words(&row.grants)}</td>
                <td>{ago(row.used_at, now, "never")}</td>
                <td>{end}</td>
                <td class="wrap">{ago(Some(row.created_at), now, "")}<span class="ink2">{by}</span></td>
                <td class="num">{revoke}</td>
            </tr>
        }
    });
    view! {
        <div class="scroll">
            <table class="t st-table">
                <thead><tr><th scope="col">"name"</th><th scope="col">"may act as"</th><th scope="col">"last used"</th>
                    <th scope="col">"ends"</th><th scope="col">"made"</th><th scope="col"><span class="sr">"act"</span></th></tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn successor_note(fault: Option<String>) -> AnyView {
    match fault {
        Some(fault) => view! { <p class="fault" id="successor_of-note">{fault}</p> }.into_any(),
        None => view! { <p class="help" id="successor_of-note">"Inherits the leases of the replaced token, within its own prefixes."</p> }.into_any(),
    }
}

fn create(tokens: &Tokens) -> AnyView {
    let fault_of = |field: &str| {
        let fault = tokens.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    };
    let name = Field {
        help: Some("The program that uses it, as named in the audit log."),
        fault: fault_of("name"),
        ..Field::text("name", "Name", tokens.name.clone())
    };
    let lives = LIVES
        .map(|(days, word)| (days.to_owned(), word.to_owned()))
        .to_vec();
    let none = (String::new(), "no other token".to_owned());
    let names = tokens.rows.iter().map(|row| (row.name.clone(), row.name.clone()));
    let predecessors = std::iter::once(none).chain(names).collect();
    view! {
        <section class="panel" aria-labelledby="make">
            <header><h2 id="make">"New token"</h2></header>
            <form method="post" action="/settings/tokens">
                {name.view()}
                {grants::one_row(Role::Client, &tokens.backends, fault_of("prefix").or(fault_of("role")))}
                {choice("days", "Valid for", lives, "90")}
                <div class="entry">
                    <label for="successor_of">"Successor of"</label>
                    <select id="successor_of" name="successor_of" aria-describedby="successor_of-note">{options_of(predecessors, "")}</select>
                    {successor_note(fault_of("successorOf"))}
                </div>
                <div class="do"><button class="btn solid" r#type="submit">"Create token"</button></div>
            </form>
        </section>
    }
    .into_any()
}
