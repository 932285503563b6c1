//! Members of a replicated backend: those with problems first, each with its remedy.

use domain::backend::{Availability, ClusterMember, ClusterView, MemberProblem, MemberRole};
use domain::escape::visible;
use domain::reported::Reported;
use domain::state::Severity;
use leptos::prelude::*;

use crate::components::elapsed::Age;
use crate::components::state_badge::{Shape, hue};
use crate::components::time::Time;
use crate::format;

const COLUMNS: &str = "7";

#[component]
pub fn Members(cluster: ClusterView) -> impl IntoView {
    let (shape, color) = match cluster.availability() {
        Availability::Majority { spare: 0 } => ("near_expiry", "warning"),
        Availability::Majority { .. } => ("healthy", "healthy quiet"),
        Availability::NoMajority => ("quorum_lost", "critical"),
        Availability::Unknown => ("unknown", "blind quiet"),
    };
    let title = cluster.voters.why().unwrap_or_default().to_owned();
    let (headline, changes, ms) = (cluster.headline(), leader_changes(&cluster), cluster.age_ms);
    let shard = cluster
        .shard
        .map(|shard| view! { <b>"Shard "{shard}</b> }.into_any());
    let rows = cluster.members.iter().map(|member| row(&cluster, member));
    view! {
        <div class="members">
            <p class="members-head">
                {shard}
                <span class=format!("st {color}") title=title><Shape name=shape/>{headline}</span>
                <span class="ink2 small">{changes}</span>
                <span class="ink2 small">"read "<Age ms/>" ago"</span>
            </p>
            <table class="t bt">
                <thead>
                    <tr>
                        <th scope="col">"member"</th>
                        <th scope="col">"role"</th>
                        <th scope="col">"version"</th>
                        <th scope="col" class="num">"database"</th>
                        <th scope="col" class="num">"of quota"</th>
                        <th scope="col" class="num" title="committed entries of the leader's log that the member does not know to be committed">"behind leader"</th>
                        <th scope="col" class="num" title="committed entries that the member has not applied">"not applied"</th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// `2 leader changes since 2026-03-01 08:12:03 UTC, the last at 2026-03-01 09:40:11 UTC`
fn leader_changes(cluster: &ClusterView) -> AnyView {
    let changes = format::counted(cluster.leader_changes, "leader change", "leader changes");
    let last = cluster
        .leader_changed_at
        .map(|at| view! { ", the last at "<Time at with_date=true/> }.into_any());
    view! { {changes}" since "<Time at=cluster.counted_since with_date=true/>{last} }.into_any()
}

fn row(cluster: &ClusterView, member: &ClusterMember) -> AnyView {
    let problems = member.problems();
    let class = if member.fault.is_some() { "is-silent" } else { "" };
    // The labels are the column heads on a phone.
    let cells = [
        ("version", "", known(&member.version, Clone::clone)),
        ("database", "num", size(member)),
        ("of quota", "num", quota(member)),
        (
            "behind leader",
            "num",
            known(&member.behind_leader, |entries| entries_of(*entries)),
        ),
        (
            "not applied",
            "num",
            known(&member.unapplied, |entries| entries_of(*entries)),
        ),
    ];
    let cells =
        cells.map(|(label, class, value)| view! { <td class=class data-label=label>{value}</td> }.into_any());
    let address = (member.address != member.name).then(|| {
        view! { <span class="ink3 small mono"><bdi>{visible(&member.address).into_owned()}</bdi></span> }
            .into_any()
    });
    let details = (!problems.is_empty()).then(|| {
        let silent_since = silent_since(cluster, member);
        let problems = problems.into_iter().map(problem).collect_view();
        view! { <tr class="member-problems"><td class="wrap" colspan=COLUMNS>{problems}{silent_since}</td></tr> }.into_any()
    });
    view! {
        <tr class=class>
            <th scope="row" class="wrap"><bdi>{visible(&member.name).into_owned()}</bdi>" "{address}</th>
            <td>{role(member)}</td>
            {cells.into_iter().collect_view()}
        </tr>
        {details}
    }
    .into_any()
}

fn role(member: &ClusterMember) -> AnyView {
    if member.fault.is_some() {
        return view! { <span class="st small critical"><Shape name="x"/>"not reachable"</span> }.into_any();
    }
    let (shape, color, label) = match member.role.known() {
        Some(MemberRole::Leader) => ("ok", "healthy quiet", "leader"),
        Some(MemberRole::Follower) => ("healthy", "healthy quiet", "follower"),
        Some(MemberRole::Learner) => ("pending", "blind quiet", "learner, no vote"),
        Some(MemberRole::NoLeader) => ("quorum_lost", "critical", "knows no leader"),
        None => ("unknown", "blind quiet", "unknown"),
    };
    let title = member.role.why().unwrap_or_default().to_owned();
    view! { <span class=format!("st small {color}") title=title><Shape name=shape/>{label}</span> }.into_any()
}

fn size(member: &ClusterMember) -> AnyView {
    known(&member.size_bytes, |bytes| format::bytes(*bytes))
}

fn quota(member: &ClusterMember) -> AnyView {
    let quota = known(&member.quota_bytes, |bytes| format::bytes(*bytes));
    match member.quota_percent() {
        Some(percent) => view! { {format!("{percent} % of ")}{quota} }.into_any(),
        None => quota,
    }
}

fn entries_of(entries: u64) -> String {
    format::counted(entries, "entry", "entries")
}

fn known<T>(value: &Reported<T>, show: impl FnOnce(&T) -> String) -> AnyView {
    match value {
        Reported::Value(value) => show(value).into_any(),
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
    }
}

fn problem(problem: MemberProblem) -> AnyView {
    let (shape, severity) = if problem.is_critical {
        ("x", Severity::Critical)
    } else {
        ("near_expiry", Severity::Warning)
    };
    let class = format!("st small wrap {}", hue(severity));
    view! {
        <span class=class><Shape name=shape/><bdi>{format::prose(&problem.text)}</bdi></span>
        <span class="remedy">{problem.remedy}</span>
    }
    .into_any()
}

/// When a silent member answered last.
fn silent_since(cluster: &ClusterView, member: &ClusterMember) -> Option<AnyView> {
    member.fault.as_ref()?;
    let answered = match member.answered_at {
        Some(at) => {
            let ago_ms = (cluster.asked_at - at).num_milliseconds() + cluster.age_ms;
            view! { "Its last answer: "<Time at ago_ms/>"." }.into_any()
        }
        None => "It has never answered this server.".into_any(),
    };
    Some(view! { <span class="remedy">{answered}</span> }.into_any())
}
