//! At the side of the alerts: firing history of each rule, last deliveries, silences, rules.

use chrono::DateTime;
use domain::alerts::AlertSeverity;
use domain::escape::visible;
use domain::time_format;
use leptos::prelude::*;

use super::filters::hue;
use crate::components::reactive::{changing, keyed};
use crate::components::relative_time::RelativeTime;
use crate::components::state_badge::Shape;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert};
use crate::forms::field::SubmitButton;
use crate::live::use_live;
use crate::pages::alerts::data::{
    AlertsData, Deliveries, DeliveryState, HISTORY_MS, LastDelivery, RuleHistory, RuleLine, SilenceRow,
};
use crate::pages::silence::silence_draft;

/// A silence that ends within this time is marked, in milliseconds.
const SOON_MS: i64 = 30 * MINUTE_MS;
const MINUTE_MS: i64 = 60_000;
const WIDTH: i64 = 600;

#[component]
pub(super) fn Side(data: Signal<AlertsData>) -> impl IntoView {
    let history = Memo::new(move |_| data.with(|data| (data.history.clone(), data.now)));
    let deliveries = Memo::new(move |_| data.with(|data| (data.deliveries.clone(), data.now)));
    let rules =
        Memo::new(move |_| data.with(|data| (data.rule_lines.clone(), data.may_edit, data.is_limited)));
    view! {
        <div class="stack">
            {changing(move || history.with(|(history, now)| firing_history(history, *now)))}
            {changing(move || deliveries.with(|(deliveries, now)| deliveries.as_ref().map(|all| last_deliveries(all, *now))))}
            <Silences data/>
            {changing(move || rules.with(|(rules, may_edit, is_limited)| rules_section(rules, *may_edit, *is_limited)))}
        </div>
    }
    .into_any()
}

fn firing_history(history: &[RuleHistory], now: i64) -> AnyView {
    let rows: Vec<AnyView> = history.iter().map(|rule| history_row(rule, now)).collect();
    let content = if history.is_empty() {
        view! { <p class="al-none ink2">"No rule fired in the last 6\u{a0}h."</p> }.into_any()
    } else {
        view! { <ul class="fh">{rows}</ul>{axis(now)} }.into_any()
    };
    view! {
        <section class="sec" aria-labelledby="history">
            <header><h2 id="history">"Firing history"</h2><span class="note">"last 6 h, UTC"</span><a class="end link" href="#rules" rel="external">"All rules"</a></header>
            {content}
        </section>
    }
    .into_any()
}

fn history_row(rule: &RuleHistory, now: i64) -> AnyView {
    let from = now - HISTORY_MS;
    let x = |at: i64| (at - from).clamp(0, HISTORY_MS) * WIDTH / HISTORY_MS;
    // One path, however many firings there are.
    let ticks = rule.firings.iter().map(|(began, ended)| {
        let (from, to) = (x(*began), x(*ended));
        let from = from.min(WIDTH - 3);
        format!("M{from} 2h{}v12H{from}z", (to - from).max(3))
    });
    let ticks: String = ticks.collect();
    let count = u64::from(rule.count);
    let label = format!(
        "{}: {} in 6 h",
        rule.rule,
        format::counted(count, "firing", "firings")
    );
    view! {
        <li>
            <span>{rule.rule.clone()}</span>
            <svg class=format!("fh-s {}", hue(rule.severity)) viewBox=format!("0 0 {WIDTH} 16") preserveAspectRatio="none" role="img" aria-label=label><path d=ticks></path></svg>
            <span class="num ink2">{format::count(count)}</span>
        </li>
    }
    .into_any()
}

fn axis(now: i64) -> AnyView {
    let marks = (0..3).map(|index| {
        let at = now - HISTORY_MS + HISTORY_MS * index / 3;
        let at = DateTime::from_timestamp_millis(at).unwrap_or_default();
        view! { <span>{at.format("%H:%M").to_string()}</span> }.into_any()
    });
    view! { <p class="fh-x small ink3" aria-hidden="true">{marks.collect_view()}<span>"now"</span></p> }
        .into_any()
}

fn last_deliveries(deliveries: &Deliveries, now: i64) -> AnyView {
    let rows: Vec<AnyView> = deliveries.last.iter().map(|last| delivery(last, now)).collect();
    let dead = (deliveries.dead > 0).then(|| {
        let text = format::counted(deliveries.dead, "dead letter", "dead letters");
        view! { <p class="small al-foot"><a class="link critical" href="/alerts/receivers">{text}</a></p> }
            .into_any()
    });
    let none = deliveries
        .last
        .is_empty()
        .then(|| view! { <p class="al-none ink2">"No receivers: alerts notify no one."</p> }.into_any());
    view! {
        <section class="sec" aria-labelledby="deliveries">
            <header><h2 id="deliveries">"Deliveries"</h2><span class="note">"last one per receiver"</span><a class="end link" href="/alerts/receivers">"Receivers"</a></header>
            <ul class="dl">{rows}</ul>{none}{dead}
        </section>
    }
    .into_any()
}

fn delivery(last: &LastDelivery, now: i64) -> AnyView {
    let (hue, shape, label) = match last.state {
        DeliveryState::Delivered => ("healthy quiet", "ok", "delivered"),
        // Delayed by the interval of its group: not sent yet.
        DeliveryState::Retrying if last.attempts == 0 => ("blind quiet", "pending", "pending"),
        DeliveryState::Retrying => ("warning", "pending", "retrying"),
        DeliveryState::Dead => ("critical", "x", "dead letter"),
        DeliveryState::Nothing => ("blind quiet", "pending", "no delivery yet"),
    };
    let answer = visible(&last.answer).into_owned();
    let (at, next_at) = (last.at, last.next_at);
    let when = match last.state {
        DeliveryState::Nothing => ().into_any(),
        DeliveryState::Retrying if last.attempts == 0 => {
            view! { "first attempt "<RelativeTime at=next_at now/> }.into_any()
        }
        DeliveryState::Retrying => {
            let attempt = format!("attempt {}, {answer}; next ", last.attempts);
            view! { {attempt}<RelativeTime at=next_at now/> }.into_any()
        }
        DeliveryState::Delivered | DeliveryState::Dead => {
            let answer = if answer.is_empty() {
                answer
            } else {
                format!(", {answer}")
            };
            view! { <RelativeTime at now/>{answer} }.into_any()
        }
    };
    view! {
        <li><span class="mono small">{last.receiver.clone()}</span><span class=format!("st {hue}")><Shape name=shape/>{label}</span><span class="small ink2 dl-w"><bdi>{when}</bdi></span></li>
    }
    .into_any()
}

#[component]
fn Silences(data: Signal<AlertsData>) -> impl IntoView {
    let ids = Memo::new(move |_| {
        data.with(|data| {
            let ids = data.silences.iter().map(|silence| silence.id.clone());
            ids.collect::<Vec<String>>()
        })
    });
    let new = move || {
        data.with(|data| data.may_act)
            .then(|| view! { <a class="end link" href=silence_draft::PATH>"New silence"</a> }.into_any())
    };
    let note =
        move || data.with(|data| (!data.is_limited).then(|| format!("{} active", data.silences.len())));
    let none = move || {
        let text = match data.with(|data| data.is_limited) {
            true => "Only roles that cover every lock see silences. Silenced alerts are marked.",
            false => "No silences: every firing alert notifies its receivers.",
        };
        ids.with(Vec::is_empty)
            .then(|| view! { <p class="al-none ink2">{text}</p> }.into_any())
    };
    view! {
        <section class="sec" aria-labelledby="quiet">
            <header><h2 id="quiet">"Silences"</h2><span class="note">{changing(note)}</span>{changing(new)}</header>
            <ol class="als">
                {keyed(ids, move |id| view! { <Silence id data/> }.into_any())}
            </ol>
            {changing(none)}
        </section>
    }
    .into_any()
}

#[component]
fn Silence(id: String, data: Signal<AlertsData>) -> impl IntoView {
    let row = {
        let id = id.clone();
        Memo::new(move |before: Option<&Option<(SilenceRow, i64)>>| {
            let found = data.with(|data| {
                let row = data.silences.iter().find(|silence| silence.id == id).cloned();
                row.map(|row| (row, data.now))
            });
            found.or_else(|| before.cloned().flatten())
        })
    };
    let text = changing(move || row.with(|row| row.as_ref().map(|(row, now)| silence_text(row, *now))));
    let first = row.with_untracked(|row| row.as_ref().map(|(row, _)| row.clone()));
    let acts = first.filter(|row| row.may_end).map(|row| {
        let of = row.matchers;
        let extend = format!("/alerts/silences/{id}/extend");
        let end = format!("/alerts/silences/{id}/end");
        let extend_label = format!("End in 2 h: the silence on {of}");
        let end_label = format!("End now: the silence on {of}");
        view! {
            <span class="al-acts">
                <ConsoleForm action=extend stays=true>
                    <input r#type="hidden" name="lasts" value="2h"/>
                    <SubmitButton class="link" aria_label=extend_label>"End in 2\u{a0}h"</SubmitButton>
                    <FormAlert/>
                </ConsoleForm>
                <a class="link" href=row.clone_path aria-label=format!("Clone the silence on {of}")>"Clone"</a>
                <ConsoleForm action=end stays=true>
                    <SubmitButton class="link" aria_label=end_label>"End now"</SubmitButton>
                    <FormAlert/>
                </ConsoleForm>
            </span>
        }
        .into_any()
    });
    view! { <li class="al-q">{text}{acts}</li> }.into_any()
}

/// Rounded up.
fn time_left(minutes: i64) -> AnyView {
    let text = format!("ends in {}", format::period((minutes + 1) * MINUTE_MS));
    if minutes * MINUTE_MS < SOON_MS {
        view! { <span class="st warning"><Shape name="near_expiry"/>{text}</span> }.into_any()
    } else {
        view! { <span>{text}</span> }.into_any()
    }
}

fn silence_text(row: &SilenceRow, now: i64) -> AnyView {
    let (elapsed, ends_at) = (use_live().elapsed(), row.ends_at);
    let minutes_left = Memo::new(move |_| (ends_at - now - elapsed.get()).max(0) / MINUTE_MS);
    let span = changing(move || time_left(minutes_left.get()));
    let at = DateTime::from_timestamp_millis(row.ends_at).unwrap_or_default();
    let comment = format!("“{}”", visible(&row.comment));
    view! {
        <span class="mono small"><bdi>{visible(&row.matchers).into_owned()}</bdi></span>
        <time class="num" datetime=time_format::iso(at) title=time_format::dated(at)>{span}</time>
        <span class="small ink2"><bdi>{comment}</bdi>", "<bdi>{visible(&row.by).into_owned()}</bdi></span>
        <span class="small ink2 num">{format!("suppressed {}", format::counted(row.suppressed, "alert", "alerts"))}</span>
    }
    .into_any()
}

const fn no_rules(is_limited: bool) -> &'static str {
    if is_limited {
        "No rule covers only your prefixes. Rules with a wider scope are shown to roles that cover it; their alerts on your locks are listed here."
    } else {
        "No alert rules: nothing will fire."
    }
}

fn rules_section(rules: &[RuleLine], may_edit: bool, is_limited: bool) -> AnyView {
    let make =
        may_edit.then(|| view! { <a class="end link" href="/alerts/rules/new">"New rule"</a> }.into_any());
    let lines: Vec<AnyView> = rules.iter().map(rule_line).collect();
    let lines = if rules.is_empty() {
        view! { <p class="al-none ink2">{no_rules(is_limited)}</p> }.into_any()
    } else {
        view! { <ul class="als">{lines}</ul> }.into_any()
    };
    view! {
        <section class="sec" aria-labelledby="rules">
            <header><h2 id="rules">"Rules"</h2><span class="note">{format!("{}", rules.len())}</span>{make}</header>
            {lines}
            <p class="small ink2 al-foot"><a class="link" href="/v1/rules?format=toml" rel="external">"Export as TOML"</a>" or "<a class="link" href="/v1/rules?format=prometheus" rel="external">"Prometheus"</a></p>
        </section>
    }
    .into_any()
}

fn rule_line(rule: &RuleLine) -> AnyView {
    let state = match (rule.is_enabled, rule.firing) {
        (false, _) => view! { <span class="st quiet"><Shape name="pause"/>"off"</span> }.into_any(),
        (true, 0) => view! { <span class="ink3 small">"quiet"</span> }.into_any(),
        (true, firing) => {
            let class = format!("st {}", hue(rule.severity));
            view! { <span class=class><Shape name="not_renewing"/>{format!("{firing} firing")}</span> }
                .into_any()
        }
    };
    let silence = crate::links::with_query(silence_draft::PATH, [("rule", rule.id.as_str())]);
    let silence = (rule.firing > 0 && rule.severity != AlertSeverity::Info).then(|| {
        view! { <a class="link" href=silence aria-label=format!("Silence the rule {}", rule.name)>"Silence…"</a> }.into_any()
    });
    view! {
        <li class="al-r">
            <a class="al-rule" href=format!("/alerts/rules/{}", rule.id)>{rule.name.clone()}</a>
            <span class="num">{state}</span>
            <span class="small ink2">{rule.sentence.clone()}</span>
            <span class="small ink3">{silence}" "{rule.severity.as_str()}</span>
        </li>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery_text(state: DeliveryState, attempts: i64) -> String {
        let last = LastDelivery {
            receiver: "hook".to_owned(),
            state,
            at: 0,
            attempts,
            next_at: 60_000,
            answer: "503".to_owned(),
        };
        Owner::new_root(None).with(|| delivery(&last, 30_000).to_html().replace("<!>", ""))
    }

    #[test]
    fn a_notification_held_back_by_its_group_is_no_retry() {
        let pending = delivery_text(DeliveryState::Retrying, 0);
        assert!(
            pending.contains("pending</span>") && pending.contains("first attempt <time"),
            "{pending}"
        );
        assert!(pending.contains("00:01:00"), "{pending}");
        let retrying = delivery_text(DeliveryState::Retrying, 2);
        assert!(retrying.contains("attempt 2, 503; next <time"), "{retrying}");
    }
}
