//! Tiers: which names want more care before a forced unlock.

use domain::escape::visible;
use domain::human;
use domain::unlock::Tier;
use leptos::prelude::*;

use crate::forms::chrome::{Chrome, Page, page};
use crate::forms::field::{Field, alert, choice, done};

#[derive(Debug, Clone)]
pub struct Row {
    pub id: String,
    /// None: on every backend.
    pub backend: Option<String>,
    /// Empty: every name.
    pub prefix: String,
    pub tier: Tier,
}

#[derive(Debug, Clone)]
pub struct Tiers {
    pub rows: Vec<Row>,
    pub backends: Vec<String>,
    /// As it was sent, after a refusal.
    pub prefix: String,
    pub backend: String,
    pub tier: Tier,
    pub fault: Option<(String, String)>,
    pub refusal: Option<String>,
    pub done: Option<String>,
}

impl Default for Tiers {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            backends: Vec::new(),
            prefix: String::new(),
            backend: String::new(),
            tier: Tier::Protected,
            fault: None,
            refusal: None,
            done: None,
        }
    }
}

pub fn tiers(chrome: &Chrome, tiers: &Tiers) -> String {
    let protected = tiers
        .rows
        .iter()
        .filter(|row| row.tier == Tier::Protected)
        .count();
    let title = match protected {
        0 => "No name is protected".to_owned(),
        count => format!(
            "{} protected",
            human::counted(count as u64, "prefix is", "prefixes are")
        ),
    };
    let lead = "A protected name is unlocked by two: whoever began proves again who they are, and a second person approves.";
    let content = view! {
        {alert(tiers.refusal.clone())}
        {done(tiers.done.clone())}
        <div class="with-form">
            <div class="stack">
                <section class="sec">
                    <header><h2>"Tiers by prefix"</h2><span class="end">{human::counted(tiers.rows.len() as u64, "row", "rows")}</span></header>
                    {list(&tiers.rows)}
                </section>
                <p class="ink2">"The longest prefix that covers a name counts; of two of one length the backend's own, then the stricter one. Every other name is standard: one person alone, with a reason and the name typed."</p>
            </div>
            {set(tiers)}
        </div>
    };
    page(
        chrome,
        Page {
            title,
            lead: Some(lead.to_owned()),
            content: content.into_any(),
        },
    )
}

fn list(rows: &[Row]) -> AnyView {
    if rows.is_empty() {
        return view! { <p class="ink2 none-here">"None yet: every name is standard."</p> }.into_any();
    }
    let lines = rows.iter().map(|row| {
        let name = if row.prefix.is_empty() {
            "every name".to_owned()
        } else {
            visible(&row.prefix).into_owned()
        };
        let label = format!("Remove the tier of {name}");
        let backend = row.backend.clone().unwrap_or_else(|| "every backend".to_owned());
        view! {
            <tr>
                <th scope="row" class="wrap"><bdi class="mono">{name}</bdi></th>
                <td>{backend}</td>
                <td>{row.tier.wire()}</td>
                <td class="num">
                    <form method="post" action=format!("/settings/tiers/{}/remove", row.id)>
                        <button class="btn s" r#type="submit" aria-label=label>"Remove"</button>
                    </form>
                </td>
            </tr>
        }
    });
    view! {
        <div class="scroll">
            <table class="t st-table">
                <thead><tr><th scope="col">"prefix"</th><th scope="col">"on"</th><th scope="col">"tier"</th>
                    <th scope="col"><span class="sr">"act"</span></th></tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn set(tiers: &Tiers) -> AnyView {
    let fault_of = |field: &str| {
        let fault = tiers.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    };
    let prefix = Field {
        help: Some(
            "On whole segments: jobs/billing covers jobs/billing/1, not jobs/billing2. Empty: every name.",
        ),
        fault: fault_of("prefix"),
        is_required: false,
        ..Field::text("prefix", "Prefix", tiers.prefix.clone())
    };
    let mut places = vec![(String::new(), "every backend".to_owned())];
    places.extend(tiers.backends.iter().map(|name| (name.clone(), name.clone())));
    let words =
        [Tier::Protected, Tier::Standard].map(|tier| (tier.wire().to_owned(), tier.wire().to_owned()));
    view! {
        <section class="panel" aria-labelledby="set">
            <header><h2 id="set">"Set a tier"</h2></header>
            <form method="post" action="/settings/tiers">
                {prefix.view()}
                {choice("backend", "On", places, &tiers.backend)}
                {choice("tier", "Tier", words.to_vec(), tiers.tier.wire())}
                <div class="do"><button class="btn solid" r#type="submit">"Set the tier"</button></div>
                <p class="small ink2">"It takes the place of what was said of this prefix before, and holds from now on, for intents that are open too if it is stricter."</p>
            </form>
        </section>
    }
    .into_any()
}
