//! One notification group: state, rule, worst alert, counts, actions. Expands in place.

use domain::escape::visible;
use leptos::prelude::*;

use super::filters::{hue, shape};
use super::members::Members;
use super::recent_bars::RecentBars;
use crate::components::reactive::changing;
use crate::components::resource_name::ResourceName;
use crate::components::state_badge::Shape;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert};
use crate::forms::field::SubmitButton;
use crate::live::use_live;
use crate::pages::alerts::alert_filter::AlertFilter;
use crate::pages::alerts::data::{AlertGroup, AlertsData, GroupState};

const ACK: &str = "/alerts/ack";

#[component]
pub(super) fn GroupRow(
    key: String,
    data: Signal<AlertsData>,
    filter: Memo<AlertFilter>,
    scale: Memo<u32>,
) -> impl IntoView {
    // The last data is used while the row is being removed.
    let group = {
        let key = key.clone();
        Memo::new(move |before: Option<&Option<AlertGroup>>| {
            let found = data.with(|data| data.groups.iter().find(|group| group.key == key).cloned());
            found.or_else(|| before.cloned().flatten())
        })
    };
    let now = Memo::new(move |_| data.with(|data| data.now));
    let is_open = {
        let key = key.clone();
        Memo::new(move |_| filter.with(|filter| filter.is_open(&key)))
    };
    let toggle = {
        let key = key.clone();
        move || filter.with(|filter| filter.expanded(&key).url())
    };
    let class = move || {
        group.with(|group| {
            let state = group.as_ref().map_or("", |group| group.state.as_str());
            format!("ag-g is-{state}{}", if is_open.get() { " is-open" } else { "" })
        })
    };
    let label = move || {
        group.with(|group| {
            let verb = if is_open.get() { "Collapse" } else { "Expand" };
            group
                .as_ref()
                .map(|group| format!("{verb} {}, {}", group.rule, group.labels))
        })
    };
    let summary = changing(move || group.with(|group| group.as_ref().map(summary)));
    let since = changing(move || group.with(|group| group.as_ref().map(|group| since(group, now.get()))));
    view! {
        <li class=class data-group="">
            <a class="ag-x" href=toggle aria-expanded=move || if is_open.get() { "true" } else { "false" } aria-label=label data-expand="">
                {move || view! { <Shape name=if is_open.get() { "chevd" } else { "chev" }/> }.into_any()}
            </a>
            {summary}
            <RecentBars group scale/>
            {since}
            <Actions key group/>
            {changing(move || is_open.get().then(|| view! { <Members group now/> }.into_any()))}
        </li>
    }
    .into_any()
}

fn badge(group: &AlertGroup) -> AnyView {
    let label = match group.state {
        GroupState::Firing => group.severity.as_str(),
        state => state.as_str(),
    };
    let hue = match group.state {
        GroupState::Silenced | GroupState::Flapping | GroupState::Resolved => "quiet",
        _ => hue(group.severity),
    };
    view! { <span class=format!("ag-s st {hue}")><Shape name=shape(group.state)/>{label}</span> }.into_any()
}

fn summary(group: &AlertGroup) -> AnyView {
    let rule = match &group.rule_path {
        Some(path) => view! { <a class="al-rule" href=path.clone()>{group.rule.clone()}</a> }.into_any(),
        None => view! { <span class="al-rule">{group.rule.clone()}</span> }.into_any(),
    };
    let labels = visible(&group.labels).into_owned();
    let worst = &group.worst;
    let receivers = match group.receivers.as_slice() {
        [] => "all receivers".to_owned(),
        some => some.join(", "),
    };
    let flaps = (group.state == GroupState::Flapping).then(|| {
        let path = group.rule_path.clone();
        let changes = format::counted(u64::from(group.changes), "firing", "firings");
        let raise =
            path.map(|path| view! { <a class="link" href=path>"Raise "<code>"for"</code></a> }.into_any());
        view! { <span>{changes}" in 30\u{a0}m: it fires and resolves again. "{raise}</span> }.into_any()
    });
    let why = format::prose(&worst.why);
    let runbook = format!("Runbook of {}", group.rule);
    let count_class = if group.state == GroupState::Firing {
        "ag-n num"
    } else {
        "ag-n num ink2"
    };
    view! {
        {badge(group)}
        <span class="ag-r">{rule}<bdi class="mono small ink2">{labels}</bdi></span>
        <span class=count_class title="alerts of this group">{format::count(u64::from(group.alerts))}<span class="sr">{if group.alerts == 1 { " alert" } else { " alerts" }}</span></span>
        <span class="ag-w small">
            <a class="al-of" href=worst.path.clone()><ResourceName name=worst.subject.clone() cut=true/></a>
            <span class="ink2"><bdi>{why}</bdi>" "{flaps}</span>
        </span>
        <span class="ag-to small ink2">
            <a class="link" href=group.runbook.clone() rel="external" aria-label=runbook>"Runbook"</a>
            {receivers}
        </span>
    }
    .into_any()
}

/// How long the group has been firing, counting up; for a pending group, how much of `for` has passed.
fn since(group: &AlertGroup, now: i64) -> AnyView {
    let (began, for_ms, is_firing) = (group.since, group.for_ms, group.worst.is_firing);
    let elapsed = use_live().elapsed();
    let text = Memo::new(move |_| {
        let past = format::period((now + elapsed.get() - began).max(0) / 1_000 * 1_000);
        match is_firing || for_ms == 0 {
            true => past,
            false => format!("{past} of {}", format::period(for_ms)),
        }
    });
    view! { <span class="ag-d num"><span class="sr">"for "</span>{changing(move || text.get())}</span> }
        .into_any()
}

#[component]
fn Actions(key: String, group: Memo<Option<AlertGroup>>) -> impl IntoView {
    // Rebuilt only when another action is offered.
    let action_state = Memo::new(move |_| {
        group.with(|group| {
            let group = group.as_ref()?;
            let can_ack = group.firing > 0 && group.acked.is_none() && group.state != GroupState::Silenced;
            let name = format!("{}, {}", group.rule, group.labels);
            Some((
                group.may_act,
                can_ack,
                group.acked.clone(),
                group.silence_path.clone(),
                name,
            ))
        })
    });
    let view = move || {
        let (may_act, can_ack, acked, silence_path, name) = action_state.get()?;
        if !may_act {
            return None;
        }
        let ack = match &acked {
            Some((by, _)) => {
                let by = format!("by {by}");
                view! {
                    <span class="small ink2"><bdi>{by}</bdi></span>
                    <AckForm action="/alerts/unack" key=key.clone() label="Undo" aria_label=format!("Undo the acknowledgement of {name}")/>
                }
                .into_any()
            }
            None if can_ack => {
                view! { <AckForm action=ACK key=key.clone() label="Acknowledge" aria_label=format!("Acknowledge {name}")/> }
                    .into_any()
            }
            None => ().into_any(),
        };
        Some(
            view! {
                {ack}
                <a class="btn s" href=silence_path aria-label=format!("Silence {name}") data-silence="">"Silence…"</a>
            }
            .into_any(),
        )
    };
    view! { <span class="ag-a">{changing(view)}</span> }.into_any()
}

#[component]
fn AckForm(
    action: &'static str,
    key: String,
    label: &'static str,
    #[prop(into)] aria_label: String,
) -> impl IntoView {
    // The key `a` never withdraws an acknowledgement: another user may have set it a moment before.
    let is_key_target = (action == ACK).then_some("");
    view! {
        <ConsoleForm action stays=true is_row=true>
            <input r#type="hidden" name="group" value=key/>
            <span data-ack=is_key_target><SubmitButton class="btn s" aria_label>{label}</SubmitButton></span>
            <FormAlert/>
        </ConsoleForm>
    }
    .into_any()
}
