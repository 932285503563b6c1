//! Alerts page: notification groups with their worst alert; firing history, deliveries, silences
//! and rules at the side.

pub mod alert_filter;
pub mod data;
pub mod filters;
pub mod group_row;
pub mod keys;
pub mod members;
pub mod recent_bars;
pub mod resolved;
pub mod side_panel;

use leptos::prelude::*;

use self::data::{AlertsData, GroupState, alerts};
use self::filters::Filters;
use self::group_row::GroupRow;
use self::keys::AlertKeys;
use self::resolved::Resolved;
use self::side_panel::Side;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::{changing, keyed};
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::PageReply;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::navigation::use_search_of;
use crate::pages::alerts::alert_filter::{AlertFilter, PATH};
use crate::pages::silence::silence_draft;

#[component]
pub fn AlertsPage() -> impl IntoView {
    let search = use_search_of(PATH);
    view! {
        <PageTitle text="Alerts"/>
        <Board search/>
    }
}

/// The page, by the query string of its filter.
#[component]
pub(super) fn Board(#[prop(into)] search: Signal<String>) -> impl IntoView {
    let load = use_live().refreshing(Topics::ALERTS, move || search.get(), alerts);
    view! {
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=Topics::ALERTS let:data>
                <Body data search/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<AlertsData>, search: Signal<String>) -> impl IntoView {
    let filter = Memo::new(move |_| search.with(|search| AlertFilter::parse(search).unwrap_or_default()));
    view! {
        <div class="pagehead">
            <h1>{move || data.with(title)}</h1>
            <p>{move || data.with(lead)}</p>
        </div>
        <PageReply except=silence_draft::ACTION/>
        <Filters data filter/>
        <div class="al-two">
            <div class="stack">
                <Groups data filter/>
                <Resolved data filter/>
            </div>
            <Side data/>
        </div>
        <AlertKeys/>
    }
    .into_any()
}

fn of_state(data: &AlertsData, state: GroupState) -> u64 {
    let at = GroupState::ALL.iter().position(|other| *other == state);
    at.map_or(0, |at| u64::from(data.states[at]))
}

fn title(data: &AlertsData) -> String {
    match of_state(data, GroupState::Firing) + of_state(data, GroupState::Flapping) {
        0 => "No alerts firing".to_owned(),
        firing => format!("{} firing", format::counted(firing, "group", "groups")),
    }
}

/// `13 alerts. 1 group is acknowledged, 1 flaps, 1 is pending; 3 silences suppressed 45 notifications.`
fn lead(data: &AlertsData) -> String {
    let verbs = [
        (GroupState::Acknowledged, "is acknowledged", "are acknowledged"),
        (GroupState::Flapping, "flaps", "flap"),
        (GroupState::Pending, "is pending", "are pending"),
        (GroupState::Silenced, "is silenced", "are silenced"),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (state, singular, plural) in verbs {
        let count = of_state(data, state);
        if count > 0 {
            let verb = if count == 1 { singular } else { plural };
            let groups = match parts.is_empty() {
                true => format::counted(count, "group", "groups"),
                false => format::count(count),
            };
            parts.push(format!("{groups} {verb}"));
        }
    }
    let mut text = format!("{}.", format::counted(data.alerts, "alert", "alerts"));
    if !parts.is_empty() {
        text.push_str(&format!(" {}", parts.join(", ")));
    }
    let suppressed: u64 = data.silences.iter().map(|silence| silence.suppressed).sum();
    if data.is_limited {
        text = format!("Alerts on the locks in your scope: {text}");
    } else if !data.silences.is_empty() {
        let silences = format::counted(data.silences.len() as u64, "silence", "silences");
        let alerts = format::counted(suppressed, "alert", "alerts");
        text.push_str(if parts.is_empty() { " " } else { "; " });
        text.push_str(&format!("{silences} suppressed {alerts}"));
    }
    let text = text.trim_end_matches('.');
    format!("{text}.")
}

#[component]
fn Groups(data: Signal<AlertsData>, filter: Memo<AlertFilter>) -> impl IntoView {
    let keys = Memo::new(move |_| {
        data.with(|data| {
            let keys = data.groups.iter().map(|group| group.key.clone());
            keys.collect::<Vec<String>>()
        })
    });
    // One scale for all bars, so that they compare.
    let scale = Memo::new(move |_| {
        data.with(|data| {
            let bars = data.groups.iter().flat_map(|group| &group.recent);
            bars.copied().max().unwrap_or(0).max(4)
        })
    });
    let none = move || {
        keys.with(Vec::is_empty).then(|| {
            let text = filter.with(|filter| data.with(|data| nothing(data, filter)));
            view! { <p class="al-none ink2">{text}</p> }.into_any()
        })
    };
    let more = move || {
        data.with(|data| data.more > 0).then(|| {
            let more =
                data.with(|data| format::counted(data.more, "more group matches", "more groups match"));
            view! { <p class="small ink2 al-foot">{more}". Narrow the filter to see them."</p> }.into_any()
        })
    };
    view! {
        <section aria-label="alert groups">
            <div class="ag-head" aria-hidden="true">
                <span></span><span>"severity"</span><span>"rule, group and worst alert"</span>
                <span class="num">"alerts"</span><span>"firing, last hour"</span><span class="num">"for"</span><span></span>
            </div>
            <ol class="ag">
                {keyed(keys, move |key| view! { <GroupRow key data filter scale/> }.into_any())}
            </ol>
            {changing(none)}
            {changing(more)}
            <p class="small ink3 al-foot al-keys">"One line is one notification. "
                <kbd>"j"</kbd>" "<kbd>"k"</kbd>" move "<kbd>"↵"</kbd>" expand "<kbd>"a"</kbd>" acknowledge "<kbd>"s"</kbd>" silence"</p>
        </section>
    }
    .into_any()
}

fn nothing(data: &AlertsData, filter: &AlertFilter) -> &'static str {
    if filter.is_narrowed() || !filter.states.is_empty() {
        "No group matches the filter."
    } else if data.rule_lines.iter().all(|rule| !rule.is_enabled) && !data.is_limited {
        "No alert rule is enabled: nothing will fire."
    } else {
        "No rule condition is met."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_counts_groups_and_the_lead_the_rest() {
        let mut data = AlertsData::default();
        assert_eq!(title(&data), "No alerts firing");
        assert_eq!(lead(&data), "0\u{a0}alerts.");
        data.states = [5, 1, 2, 0, 0, 9];
        data.alerts = 13;
        assert_eq!(title(&data), "5\u{a0}groups firing");
        assert_eq!(
            lead(&data),
            "13\u{a0}alerts. 1\u{a0}group is acknowledged, 2 are pending."
        );
    }
}
