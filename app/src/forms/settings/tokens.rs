//! Tokens of machines: what they may do, when they were used, and making one.

use domain::access::{Grant, Role};
use domain::human;
use leptos::prelude::*;

use super::ago;
use crate::forms::chrome::{Chrome, Page, page};
use crate::forms::field::{Field, alert, choice, options_of, secret_once};
use crate::forms::grants;

#[derive(Debug, Clone)]
pub struct Row {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    pub created_at: i64,
    pub created_by: String,
    /// The person behind its maker, where that is another.
    pub root: Option<String>,
    pub expires_at: Option<i64>,
    pub used_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// Name of the token whose leases it inherits.
    pub successor_of: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Tokens {
    pub rows: Vec<Row>,
    pub backends: Vec<String>,
    pub now: i64,
    pub name: String,
    pub fault: Option<(String, String)>,
    pub refusal: Option<String>,
    /// One was just made: its name and itself.
    pub made: Option<(String, String)>,
}

/// Value in days and word; empty: until it is revoked.
pub const LIVES: [(&str, &str); 5] = [
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
    ("365", "a year"),
    ("", "until it is revoked"),
];

pub fn tokens(chrome: &Chrome, tokens: Tokens) -> String {
    let (good, over): (Vec<&Row>, Vec<&Row>) = tokens.rows.iter().partition(|row| is_good(row, tokens.now));
    let unused = good.iter().filter(|row| row.used_at.is_none()).count();
    let title = match good.len() {
        0 => "No program has a token".to_owned(),
        count => {
            let good = human::counted(count as u64, "token is good", "tokens are good");
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
                <summary class="ink2">{human::counted(over.len() as u64, "token", "tokens")}" that expired or were revoked"</summary>
                {list(&over, tokens.now)}
            </details>
        }
    });
    let content = view! {
        {tokens.made.clone().map(|(name, secret)| secret_once(
            format!("The token {name}"),
            secret,
            "Programs send it as Authorization: Bearer; leasehold run and leasehold locks read it from LEASEHOLD_TOKEN. It is kept as a hash and not shown again.",
        ))}
        {alert(tokens.refusal.clone())}
        <div class="with-form">
            <div class="stack">
                <section class="sec">
                    <header><h2>"Tokens"</h2><span class="end">{human::counted(good.len() as u64, "row", "rows")}</span></header>
                    {list(&good, tokens.now)}
                </section>
                {past}
            </div>
            {create(&tokens)}
        </div>
    };
    let lead = "Programs hold leases and read the inventory with a token, within its prefixes and no further. When one was last used is known here within 5 s.";
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

fn is_good(row: &Row, now: i64) -> bool {
    row.revoked_at.is_none() && row.expires_at.is_none_or(|at| at > now)
}

fn list(rows: &[&Row], now: i64) -> AnyView {
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
        None => view! { <p class="help" id="successor_of-note">"It inherits the leases of the token that it replaces, within its own prefixes."</p> }.into_any(),
    }
}

fn create(tokens: &Tokens) -> AnyView {
    let fault_of = |field: &str| {
        let fault = tokens.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    };
    let name = Field {
        help: Some("The program that uses it; it stands in the record of all that it does."),
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
            <header><h2 id="make">"Make a token"</h2></header>
            <form method="post" action="/settings/tokens">
                {name.view()}
                {grants::one_row(Role::Client, &tokens.backends, fault_of("prefix").or(fault_of("role")))}
                {choice("days", "Good for", lives, "90")}
                <div class="entry">
                    <label for="successor_of">"Successor of"</label>
                    <select id="successor_of" name="successor_of" aria-describedby="successor_of-note">{options_of(predecessors, "")}</select>
                    {successor_note(fault_of("successorOf"))}
                </div>
                <div class="do"><button class="btn solid" r#type="submit">"Make the token"</button></div>
            </form>
        </section>
    }
    .into_any()
}
