//! Alerts of an expanded group, each with its own actions, and links to the cause.

use domain::escape::visible;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::components::resource_name::ResourceName;
use crate::focus::keep_focus;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert};
use crate::forms::field::SubmitButton;
use crate::live::use_live;
use crate::pages::alerts::data::{AlertGroup, AlertMember, owner_text};

#[component]
pub(super) fn Members(group: Memo<Option<AlertGroup>>, now: Memo<i64>) -> impl IntoView {
    let ids = Memo::new(move |_| {
        group.with(|group| {
            let members = group.iter().flat_map(|group| &group.members);
            members.map(|member| member.id).collect::<Vec<i64>>()
        })
    });
    let in_order = move || {
        keep_focus();
        ids.get()
    };
    let foot = changing(move || group.with(|group| group.as_ref().map(foot)));
    view! {
        <div class="ag-m">
            <table class="t">
                <caption class="sr">"Alerts of the group, the worst first"</caption>
                <thead><tr><th scope="col">"lock, prefix or backend"</th><th scope="col">"held by"</th><th scope="col">"cause"</th>
                    <th scope="col" class="num">"for"</th><th scope="col"><span class="sr">"acts"</span></th></tr></thead>
                <tbody>
                    <For each=in_order key=|id| *id let:id>
                        <MemberRow id group now/>
                    </For>
                </tbody>
            </table>
            {foot}
        </div>
    }
    .into_any()
}

#[component]
fn MemberRow(id: i64, group: Memo<Option<AlertGroup>>, now: Memo<i64>) -> impl IntoView {
    let member = Memo::new(move |before: Option<&Option<AlertMember>>| {
        let found = group.with(|group| {
            let members = group.iter().flat_map(|group| &group.members);
            members.into_iter().find(|member| member.id == id).cloned()
        });
        found.or_else(|| before.cloned().flatten())
    });
    let may_act = Memo::new(move |_| group.with(|group| group.as_ref().is_some_and(|group| group.may_act)));
    let cells =
        changing(move || member.with(|member| member.as_ref().map(|member| cells(member, now.get()))));
    let action_state = Memo::new(move |_| {
        member.with(|member| {
            let member = member.as_ref()?;
            let can_ack = member.is_firing && member.acked_by.is_none() && !member.is_silenced;
            Some((can_ack, member.silence_path.clone(), member.subject.clone()))
        })
    });
    let acts = move || {
        let (can_ack, silence_path, subject) = action_state.get().filter(|_| may_act.get())?;
        let ack = can_ack.then(|| {
            let aria_label = format!("Acknowledge {subject}");
            view! {
                <ConsoleForm action="/alerts/ack" stays=true is_row=true>
                    <input r#type="hidden" name="id" value=id.to_string()/>
                    <SubmitButton class="link" aria_label>"Acknowledge"</SubmitButton>
                    <FormAlert/>
                </ConsoleForm>
            }
            .into_any()
        });
        Some(
            view! { {ack}<a class="link" href=silence_path aria-label=format!("Silence {subject}")>"Silence…"</a> }
                .into_any(),
        )
    };
    view! { <tr>{cells}<td class="num"><span class="ag-a small">{changing(acts)}</span></td></tr> }.into_any()
}

fn cells(member: &AlertMember, now: i64) -> AnyView {
    let (elapsed, since) = (use_live().elapsed(), member.since);
    let past = Memo::new(move |_| format::period((now + elapsed.get() - since).max(0) / 1_000 * 1_000));
    let state = match (member.is_firing, member.is_silenced, &member.acked_by) {
        (_, true, _) => "silenced".to_owned(),
        (false, ..) => "pending".to_owned(),
        (true, false, Some(by)) => format!("acknowledged by {by}"),
        (true, false, None) => String::new(),
    };
    let state = (!state.is_empty()).then(|| view! { <small class="ink2">" "{state}</small> }.into_any());
    let owner = owner_text(member.owner.as_deref(), &member.path);
    view! {
        <td class="al-cut"><a class="al-of" href=member.path.clone()><ResourceName name=member.subject.clone() cut=true/></a></td>
        <td><bdi>{visible(owner).into_owned()}</bdi></td>
        <td class="wrap ink2"><bdi>{format::prose(&member.why)}</bdi>{state}</td>
        <td class="num">{changing(move || past.get())}</td>
    }
    .into_any()
}

fn foot(group: &AlertGroup) -> AnyView {
    let shown = group.members.len() as u64;
    let more = u64::from(group.alerts).saturating_sub(shown);
    let more = (more > 0)
        .then(|| view! { <span class="ink2">{format::count(more)}" more are not listed"</span> }.into_any());
    let rule = group
        .rule_path
        .clone()
        .map(|path| view! { <a class="link" href=path>"Rule and chart"</a> }.into_any());
    view! {
        <p class="ag-f small">
            {more}
            <a class="link" href=group.worst.path.clone()>"Worst alert"</a>
            {rule}
            <span class="ink2">{format!("fires when {}, for {}", group.condition, format::period(group.for_ms))}</span>
        </p>
    }
    .into_any()
}
