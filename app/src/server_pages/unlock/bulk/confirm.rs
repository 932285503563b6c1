//! Second step and results of a bulk unlock: each with its blast radius and the name to type.

use domain::format;
use domain::unlock::{Unlock, UnlockState, to_type};
use leptos::prelude::*;

use super::super::holder_summary::{HolderSummary, dies, facts, next_up};
use super::super::layout::{name, notice, time};
use super::super::result::head;
use super::super::{id_of, path};
use super::select::not_begun;
use super::{CONFIRM, NotBegun, confirm_path, typed_field};
use crate::components::state_badge::Shape;
use crate::links;
use crate::server_pages::layout::{Chrome, Page, page};

/// One unlock of the batch.
#[derive(Debug, Clone)]
pub struct BulkItem {
    pub unlock: Unlock,
    /// Why it cannot be confirmed here although it is pending.
    pub elsewhere: Option<String>,
    pub typed: String,
    pub fault: Option<String>,
}

impl BulkItem {
    fn is_open(&self) -> bool {
        self.unlock.state == UnlockState::Pending && self.elsewhere.is_none()
    }
}

pub fn several(chrome: &Chrome, ones: &[BulkItem], those: &[NotBegun]) -> String {
    let open = ones.iter().filter(|one| one.is_open()).count();
    let content = view! { {not_begun(those)}{body(ones, open)} };
    let page_of = Page {
        title: title(ones, open),
        lead: lead(ones, open),
        content: content.into_any(),
    };
    page(chrome, page_of)
}

fn title(ones: &[BulkItem], open: usize) -> String {
    let released = ones
        .iter()
        .filter(|one| one.unlock.state == UnlockState::Released)
        .count() as u64;
    match (ones.len(), open) {
        (0, _) => "Nothing to confirm".to_owned(),
        (_, 0) => format!(
            "{} of {} released",
            format::count(released),
            format::count(ones.len() as u64)
        ),
        (_, open) => format!("Confirm {}", format::counted(open as u64, "unlock", "unlocks")),
    }
}

fn lead(ones: &[BulkItem], open: usize) -> Option<String> {
    let first = ones.iter().map(|one| one.unlock.expires_at).min()?;
    (open > 0).then(|| {
        format!(
            "Type the name of each lock; the first expires at {}. Locks with an empty field are not released.",
            domain::time_format::timed(first)
        )
    })
}

fn body(ones: &[BulkItem], open: usize) -> AnyView {
    let panels = ones
        .iter()
        .enumerate()
        .map(|(place, one)| panel(place, one))
        .collect_view();
    if open == 0 {
        return view! { <div class="stack several">{panels}</div><p class="do"><a class="btn" href="/locks">"To the locks"</a></p> }.into_any();
    }
    let ids = ones
        .iter()
        .map(|one| view! { <input r#type="hidden" name="id" value=one.unlock.id.clone()/> })
        .collect_view();
    let again = confirm_path(ones.iter().map(|one| one.unlock.id.as_str()));
    view! {
        <form class="stack several" method="post" action=CONFIRM>
            {ids}
            {panels}
            <div class="do"><button class="btn solid wide" r#type="submit"><Shape name="unlock"/>"Release the locks with a typed name"</button></div>
            <p class="small ink2">"Each release ends exactly the holding that is shown, or nothing. To release none, close this page, or "<a class="link" href=again>"review again"</a>"."</p>
        </form>
    }
    .into_any()
}

fn panel(place: usize, one: &BulkItem) -> AnyView {
    let unlock = &one.unlock;
    let (hue, badge, note) = head(unlock.state);
    let (title_id, titled) = (format!("one-{place}"), format!("one-{place}"));
    let resource = unlock.resource.text();
    let is_pending = unlock.state == UnlockState::Pending;
    let state = (!is_pending).then_some(badge);
    let class = if is_pending {
        "panel".to_owned()
    } else {
        format!("panel out {hue}")
    };
    let note = if is_pending {
        view! { "read fresh at "{time(unlock.observed.read_at)} }.into_any()
    } else {
        note.into_any()
    };
    let content = if is_pending { pending(one) } else { ended(unlock) };
    view! {
        <section class=class aria-labelledby=titled>
            <header><h2 class="mono" id=title_id><a href=links::lock_path(&id_of(unlock))>{name(&resource)}</a></h2>{state}<span class="small ink3">{unlock.backend.to_string()}", "{note}</span></header>
            {content}
        </section>
    }
    .into_any()
}

fn pending(one: &BulkItem) -> AnyView {
    let unlock = &one.unlock;
    let radius = &unlock.observed.blast_radius;
    let last = match &one.elsewhere {
        Some(why) => {
            view! { <p class="go">{notice(why)}" "<a class="link" href=path(&unlock.id)>"Unlock page"</a></p> }
                .into_any()
        }
        None => field(one),
    };
    view! {
        {facts(&HolderSummary::from(&unlock.observed))}
        {dies(&id_of(unlock), radius)}
        {next_up(&unlock.observed.waiters, radius, &unlock.backend)}
        {last}
    }
    .into_any()
}

fn field(one: &BulkItem) -> AnyView {
    let id = typed_field(&one.unlock);
    let (wanted_id, fault_id) = (format!("{id}-name"), format!("{id}-fault"));
    let fault = one
        .fault
        .as_ref()
        .map(|fault| view! { <p class="fault" id=fault_id.clone()>{notice(fault)}</p> });
    let is_bad = one.fault.is_some().then_some("true");
    let described = if one.fault.is_some() {
        format!("{fault_id} {wanted_id}")
    } else {
        wanted_id.clone()
    };
    view! {
        <div class="entry">
            <label for=id.clone()>"Type the name of the resource to release it"</label>
            <p class="mono to-type" id=wanted_id><bdi dir="ltr">{to_type(&one.unlock.resource)}</bdi></p>
            <input id=id.clone() class="mono" name=id r#type="text" autocomplete="off" value=one.typed.clone()
                aria-invalid=is_bad aria-describedby=described spellcheck="false" autocapitalize="none"/>
            {fault}
        </div>
    }
    .into_any()
}

fn ended(unlock: &Unlock) -> AnyView {
    let why = unlock
        .ending
        .why
        .as_deref()
        .map(|why| view! { <p>{notice(why)}</p> });
    view! { {why}<p><a class="link" href=path(&unlock.id)>"Result"</a></p> }.into_any()
}
