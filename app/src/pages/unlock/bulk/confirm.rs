//! Second step and results of a bulk unlock: each with its effects and the name to type.

use domain::time_format;
use domain::unlock::{UnlockState, to_type};
use leptos::prelude::*;

use super::super::header::external;
use super::super::holder_summary::{also_released, facts, next_up};
use super::super::parts::{name, notice, paragraph, read_again, time};
use super::super::path;
use super::super::refusal::Refusal;
use super::super::result::{TITLE_ID, focus_title, head};
use super::{CONFIRM, NotBegun, SELECT, confirm_path, typed_field};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormState, use_form};
use crate::forms::field::{SubmitButton, is_invalid};
use crate::links;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::navigation::use_search_of;
use crate::pages::unlock::data::{BulkConfirmData, BulkItem, UnlockData, bulk_unlocks};

const TOPICS: Topics = Topics::ACTIVITY;

#[component]
pub fn BulkConfirmPage() -> impl IntoView {
    let search = use_search_of(CONFIRM);
    let load = use_live().refreshing(TOPICS, move || search.get(), bulk_unlocks);
    let read = Callback::new(move |()| load.refetch());
    view! {
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data read/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<BulkConfirmData>, read: Callback<()>) -> impl IntoView {
    let state = FormState::of_action(CONFIRM);
    // Reads the unlocks again after a refusal: some of them may have been released.
    Effect::new(move |before: Option<()>| {
        if state.reply().is_some() && before.is_some() {
            read.run(());
        }
    });
    let title = Memo::new(move |_| data.with(title));
    let is_open = Memo::new(move |_| data.with(|data| data.items.iter().any(BulkItem::is_open)));
    Effect::new(move |before: Option<()>| {
        title.track();
        if before.is_some() {
            request_animation_frame(focus_title);
        }
        if !is_open.get() {
            state.clear_failure();
        }
    });
    view! {
        <PageTitle text=move || title.get()/>
        <div class="pagehead">
            <h1 id=TITLE_ID>{move || title.get()}</h1>
            {changing(move || data.with(lead).map(|lead| view! { <p>{lead}</p> }.into_any()))}
        </div>
        <NotBegun state=FormState::of_action(SELECT) has_link=false/>
        <Refusal state/>
        {changing(move || match is_open.get() {
            true => view! { <Open data state read/> }.into_any(),
            false => view! {
                <div class="stack several"><Items data/></div>
                <p class="do"><a class="btn" href="/locks">"All locks"</a></p>
            }
            .into_any(),
        })}
    }
    .into_any()
}

fn title(data: &BulkConfirmData) -> String {
    let items = &data.items;
    let open = items.iter().filter(|item| item.is_open()).count() as u64;
    let is_released = |item: &&BulkItem| item.unlock.state == UnlockState::Released;
    let released = items.iter().filter(is_released).count() as u64;
    match (items.len() as u64, open) {
        (0, _) => "Nothing to confirm".to_owned(),
        (all, 0) => format!("{} of {} released", format::count(released), format::count(all)),
        (_, open) => format!("Confirm {}", format::counted(open, "unlock", "unlocks")),
    }
}

fn lead(data: &BulkConfirmData) -> Option<String> {
    let open = data.items.iter().filter(|item| item.is_open());
    let first = open.map(|item| item.unlock.expires_at).min()?;
    let text = format!(
        "Type the name of each lock; the first request expires at {}. Locks with an empty field are not released.",
        time_format::timed(first)
    );
    Some(format::unbroken(&text).into_owned())
}

#[component]
fn Open(data: Signal<BulkConfirmData>, state: FormState, read: Callback<()>) -> impl IntoView {
    let ids = Memo::new(move |_| {
        let id = |item: &BulkItem| item.unlock.id.clone();
        data.with(|data| data.items.iter().map(id).collect::<Vec<_>>())
    });
    let hidden = move || {
        let ids = ids.get().into_iter();
        let ids = ids.map(|id| view! { <input r#type="hidden" name="id" value=id/> }.into_any());
        ids.collect_view().into_any()
    };
    let again = ids.with_untracked(|ids| confirm_path(ids.iter().map(String::as_str)));
    view! {
        <ConsoleForm class="stack several" action=CONFIRM stays=true state>
            {changing(hidden)}
            <Items data/>
            <div class="do"><SubmitButton class="btn solid wide"><Shape name="unlock"/>"Release the locks with a typed name"</SubmitButton></div>
            <p class="small ink2">"Each release ends exactly the grant that is shown, or nothing. To release none, close this page, or "{read_again(again, "read again", read)}"."</p>
        </ConsoleForm>
    }
    .into_any()
}

/// The unlocks, keyed by id so that a refetch keeps what is being typed.
#[component]
fn Items(data: Signal<BulkConfirmData>) -> impl IntoView {
    let items = move || data.with(|data| data.items.clone());
    let key = |item: &BulkItem| {
        (
            item.unlock.id.clone(),
            item.unlock.state,
            item.unlock.ending.why.clone(),
            item.elsewhere.clone(),
        )
    };
    view! { <For each=items key=key let:item>{panel(&item)}</For> }.into_any()
}

fn panel(item: &BulkItem) -> AnyView {
    let unlock = &item.unlock;
    let (hue, badge, note) = head(unlock.state);
    let title_id = format!("title-{}", unlock.id);
    let titled = title_id.clone();
    let resource = unlock.lock.resource.text();
    let is_pending = unlock.state == UnlockState::Pending;
    let state = (!is_pending).then_some(badge);
    let class = if is_pending {
        "panel".to_owned()
    } else {
        format!("panel out {hue}")
    };
    let note = if is_pending {
        view! { "read from the backend at "{time(unlock.holder.read_at)} }.into_any()
    } else {
        note.into_any()
    };
    let content = if is_pending { pending(item) } else { ended(unlock) };
    let rel = external(&resource);
    view! {
        <section class=class aria-labelledby=titled>
            <header><h2 class="mono" id=title_id><a href=links::lock_path(&unlock.lock) rel=rel>{name(&resource)}</a></h2>{state}<span class="small ink3">{unlock.lock.backend.to_string()}", "{note}</span></header>
            {content}
        </section>
    }
    .into_any()
}

fn pending(item: &BulkItem) -> AnyView {
    let unlock = &item.unlock;
    let last = match &item.elsewhere {
        Some(why) => {
            view! { <p class="go">{notice(why)}" "<a class="link" href=path(&unlock.id)>"Unlock page"</a></p> }
                .into_any()
        }
        None => field(unlock),
    };
    view! {
        {facts(&unlock.holder)}
        {also_released(&unlock.lock, &unlock.effects)}
        {next_up(&unlock.effects, &unlock.lock.backend)}
        {last}
    }
    .into_any()
}

fn field(unlock: &UnlockData) -> AnyView {
    let id = typed_field(&unlock.id);
    let (wanted_id, fault_id) = (format!("{id}-name"), format!("{id}-fault"));
    let form = use_form();
    let fault = Memo::new({
        let id = id.clone();
        move |_| form.fault(&id)
    });
    let described = {
        let (wanted_id, fault_id) = (wanted_id.clone(), fault_id.clone());
        move || match fault.with(Option::is_some) {
            true => format!("{fault_id} {wanted_id}"),
            false => wanted_id.clone(),
        }
    };
    let fault = move || {
        let fault = fault.get()?;
        Some(view! { <p class="fault" id=fault_id.clone()>{notice(&fault)}</p> }.into_any())
    };
    view! {
        <div class="entry">
            <label for=id.clone()>"Type the name of the resource to release it"</label>
            <p class="mono to-type" id=wanted_id><bdi dir="ltr">{to_type(&unlock.lock.resource)}</bdi></p>
            <input id=id.clone() class="mono" name=id.clone() r#type="text" autocomplete="off" value=form.typed_value(&id, "")
                aria-invalid=is_invalid(&id) aria-describedby=described spellcheck="false" autocapitalize="none"/>
            {changing(fault)}
        </div>
    }
    .into_any()
}

fn ended(unlock: &UnlockData) -> AnyView {
    let why = paragraph(unlock.ending.why.as_deref());
    view! { {why}<p><a class="link" href=path(&unlock.id)>"Result"</a></p> }.into_any()
}
