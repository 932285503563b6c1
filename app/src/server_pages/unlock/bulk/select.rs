//! First step of a bulk unlock: held locks with checkboxes, and one reason for all.

use domain::format;
use domain::lock::Lock;
use domain::reported::Reported;
use leptos::prelude::*;

use super::super::layout::{name, notice};
use super::{CHOOSE, Ticked};
use crate::components::resource_name::ResourceName;
use crate::components::state_badge::StateBadge;
use crate::links;
use crate::server_pages::field::{Area, Field, alert, choice};
use crate::server_pages::layout::{Chrome, Page, page};

/// Inputs of the page.
#[derive(Debug, Clone, Default)]
pub struct Choose {
    pub backends: Vec<String>,
    pub backend: String,
    pub prefix: String,
    pub owner: String,
    /// Worst first, at most the number that may be unlocked at once.
    pub locks: Vec<Lock>,
    /// Number of all matches.
    pub total: u64,
    /// Values of the ticked checkboxes.
    pub ticked: Vec<String>,
    pub reason: String,
    pub reason_fault: Option<String>,
    pub refusal: Option<String>,
    pub not_begun: Vec<NotBegun>,
}

/// A ticked lock without an intent, and the reason.
#[derive(Debug, Clone)]
pub struct NotBegun {
    pub backend: String,
    pub resource: String,
    pub why: String,
}

pub fn choose(chrome: &Chrome, chosen: &Choose) -> String {
    let content = view! {
        {alert(chosen.refusal.clone())}
        {not_begun(&chosen.not_begun)}
        {filter(chosen)}
        {list(chosen)}
    };
    let page_of = Page {
        title: "Unlock several locks".to_owned(),
        lead: Some("Select the locks to release. This step releases nothing.".to_owned()),
        content: content.into_any(),
    };
    page(chrome, page_of)
}

fn filter(chosen: &Choose) -> AnyView {
    let mut backends = vec![(String::new(), "any".to_owned())];
    backends.extend(chosen.backends.iter().map(|name| (name.clone(), name.clone())));
    let optional = |field: Field| {
        Field {
            is_required: false,
            ..field
        }
        .view()
    };
    view! {
        <form class="row filter" method="get" action=CHOOSE role="search">
            {choice("backend", "Backend", backends, &chosen.backend)}
            {optional(Field::text("prefix", "Prefix", chosen.prefix.clone()))}
            {optional(Field::text("owner", "Held by", chosen.owner.clone()))}
            <div class="do"><button class="btn" r#type="submit">"Show"</button></div>
        </form>
    }
    .into_any()
}

fn list(chosen: &Choose) -> AnyView {
    if chosen.locks.is_empty() {
        return view! { <p class="pad">"No held lock matches."</p> }.into_any();
    }
    let shown = chosen.locks.len() as u64;
    let note = if shown < chosen.total {
        format!(
            "worst {shown} of {}: narrow the filter for the others",
            format::count(chosen.total)
        )
    } else {
        format::counted(shown, "lock", "locks")
    };
    let rows = chosen
        .locks
        .iter()
        .map(|lock| row(lock, &chosen.ticked))
        .collect_view();
    let reason = Area {
        name: "reason",
        label: "Reason, for all of them",
        value: chosen.reason.clone(),
        help: Some("10 to 500 characters, recorded verbatim for each lock."),
        fault: chosen.reason_fault.clone(),
    };
    let filters = [
        ("backend", &chosen.backend),
        ("prefix", &chosen.prefix),
        ("owner", &chosen.owner),
    ];
    let hidden =
        filters.map(|(name, value)| view! { <input r#type="hidden" name=name value=value.clone()/> });
    view! {
        <form class="several" method="post" action=CHOOSE>
            {hidden.collect_view()}
            <section class="sec" aria-labelledby="held-head">
                <header><h2 id="held-head">"Held now"</h2><span class="note">{note}</span></header>
                <table class="t">
                    <thead><tr><th scope="col"><span class="sr">"tick"</span></th><th scope="col">"resource"</th><th scope="col">"backend"</th>
                        <th scope="col">"held by"</th><th scope="col" class="num">"held for"</th><th scope="col">"state"</th></tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </section>
            <div class="panel p2">
                {reason.view()}
                <div class="do"><button class="btn solid" r#type="submit">"Continue to confirm"</button></div>
                <p class="small ink2">"Next you type the name of each, within 2 minutes for all: select few at a time."</p>
            </div>
        </form>
    }
    .into_any()
}

fn row(lock: &Lock, ticked: &[String]) -> AnyView {
    let text = lock.id.resource.text();
    let tick = match &lock.generation {
        Reported::Value(generation) => {
            let value = Ticked {
                backend: lock.id.backend.clone(),
                source: lock.id.source.clone(),
                resource: text.to_string(),
                generation: generation.clone(),
            }
            .value();
            let is_ticked = ticked.contains(&value);
            let label = format!("unlock {} on {}", domain::escape::visible(&text), lock.id.backend);
            view! { <input r#type="checkbox" name="item" value=value checked=is_ticked aria-label=label/> }.into_any()
        }
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=format!("it cannot be distinguished from the next holding: {why}")>"no"</span> }.into_any()
        }
    };
    let held = match &lock.held_ms {
        Reported::Value(ms) => format::duration(*ms),
        _ => format!("at least {}", format::duration(lock.held_at_least_ms)),
    };
    view! {
        <tr>
            <td class="tick">{tick}</td>
            <td class="res"><a class="link" href=links::lock_path(&lock.id)><ResourceName name=text.to_string()/></a></td>
            <td class="ink2">{lock.id.backend.to_string()}</td>
            <td class="own">{owner(lock)}</td>
            <td class="num">{held}</td>
            <td><StateBadge state=lock.state/></td>
        </tr>
    }
    .into_any()
}

fn owner(lock: &Lock) -> AnyView {
    match &lock.owner_id {
        Reported::Value(owner) => name(owner.as_str()),
        Reported::Unknown(why) => {
            view! { <span class="ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
        Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=why.to_string()>"none"</span> }.into_any()
        }
    }
}

pub(super) fn not_begun(those: &[NotBegun]) -> AnyView {
    if those.is_empty() {
        return ().into_any();
    }
    let items = those.iter().map(|one| {
        view! { <li><span class="mono">{name(&one.resource)}</span><span class="ink3">{format!(" on {}: ", one.backend)}</span>{notice(&one.why)}</li> }
    });
    let title = format::counted(those.len() as u64, "lock has no intent", "locks have no intent");
    view! {
        <div class="notice critical refusal" role="alert"><p><b>{format!("{title}, and stays as it is")}</b></p><ul>{items.collect_view()}</ul></div>
    }
    .into_any()
}
