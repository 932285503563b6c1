//! Protected prefixes: names whose forced unlock needs a second approver.

use domain::escape::visible;
use domain::format;
use domain::unlock::ProtectionLevel;
use leptos::prelude::*;

use crate::server_pages::field::{Field, alert, choice, done};
use crate::server_pages::layout::{Chrome, Page, page};

#[derive(Debug, Clone)]
pub struct ProtectedPrefixRow {
    pub id: String,
    /// `None`: every backend.
    pub backend: Option<String>,
    /// Empty: every name.
    pub prefix: String,
    pub protection: ProtectionLevel,
}

#[derive(Debug, Clone)]
pub struct ProtectedPrefixes {
    pub rows: Vec<ProtectedPrefixRow>,
    pub backends: Vec<String>,
    /// Input of a rejected form.
    pub prefix: String,
    pub backend: String,
    pub protection: ProtectionLevel,
    pub fault: Option<(String, String)>,
    pub refusal: Option<String>,
    pub done: Option<String>,
}

impl Default for ProtectedPrefixes {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            backends: Vec::new(),
            prefix: String::new(),
            backend: String::new(),
            protection: ProtectionLevel::Protected,
            fault: None,
            refusal: None,
            done: None,
        }
    }
}

pub fn protected_prefixes(chrome: &Chrome, form: &ProtectedPrefixes) -> String {
    let protected = form
        .rows
        .iter()
        .filter(|row| row.protection == ProtectionLevel::Protected)
        .count();
    let title = match protected {
        0 => "No protected prefixes".to_owned(),
        count => format!(
            "{} protected",
            format::counted(count as u64, "prefix is", "prefixes are")
        ),
    };
    let lead = "A forced unlock of a protected name needs fresh authentication and a second approver.";
    let content = view! {
        {alert(form.refusal.clone())}
        {done(form.done.clone())}
        <div class="with-form">
            <div class="stack">
                <section class="sec">
                    <header><h2>"Protected prefixes"</h2><span class="end">{format::counted(form.rows.len() as u64, "row", "rows")}</span></header>
                    {list(&form.rows)}
                </section>
                <p class="ink2">"The longest matching prefix applies; at equal length the backend's own, then the stricter one. All other names are standard: one user, a reason and the typed name."</p>
            </div>
            {set(form)}
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

fn list(rows: &[ProtectedPrefixRow]) -> AnyView {
    if rows.is_empty() {
        return view! { <p class="ink2 none-here">"None yet: no name is protected."</p> }.into_any();
    }
    let lines = rows.iter().map(|row| {
        let name = if row.prefix.is_empty() {
            "every name".to_owned()
        } else {
            visible(&row.prefix).into_owned()
        };
        let label = format!("Remove the protection of {name}");
        let backend = row.backend.clone().unwrap_or_else(|| "every backend".to_owned());
        view! {
            <tr>
                <th scope="row" class="wrap"><bdi class="mono">{name}</bdi></th>
                <td>{backend}</td>
                <td>{row.protection.as_str()}</td>
                <td class="num">
                    <form method="post" action=format!("/settings/protected-prefixes/{}/remove", row.id)>
                        <button class="btn s" r#type="submit" aria-label=label>"Remove"</button>
                    </form>
                </td>
            </tr>
        }
    });
    view! {
        <div class="scroll">
            <table class="t st-table">
                <thead><tr><th scope="col">"prefix"</th><th scope="col">"on"</th><th scope="col">"protection"</th>
                    <th scope="col"><span class="sr">"act"</span></th></tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn set(form: &ProtectedPrefixes) -> AnyView {
    let fault_of = |field: &str| {
        let fault = form.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    };
    let prefix = Field {
        help: Some(
            "Matches whole segments: jobs/billing covers jobs/billing/1, not jobs/billing2. Empty: every name.",
        ),
        fault: fault_of("prefix"),
        is_required: false,
        ..Field::text("prefix", "Prefix", form.prefix.clone())
    };
    let mut places = vec![(String::new(), "every backend".to_owned())];
    places.extend(form.backends.iter().map(|name| (name.clone(), name.clone())));
    let words = [ProtectionLevel::Protected, ProtectionLevel::Standard]
        .map(|protection| (protection.as_str().to_owned(), protection.as_str().to_owned()));
    view! {
        <section class="panel" aria-labelledby="set">
            <header><h2 id="set">"Protect a prefix"</h2></header>
            <form method="post" action="/settings/protected-prefixes">
                {prefix.view()}
                {choice("backend", "On", places, &form.backend)}
                {choice("protection", "Protection", words.to_vec(), form.protection.as_str())}
                <div class="do"><button class="btn solid" r#type="submit">"Set protection"</button></div>
                <p class="small ink2">"Replaces the current protection of this prefix at once; a stricter one also applies to open intents."</p>
            </form>
        </section>
    }
    .into_any()
}
