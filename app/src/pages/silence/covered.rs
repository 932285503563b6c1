//! Alerts that the silence would cover now, and the receivers that it affects.

use domain::escape::visible;
use leptos::prelude::*;

use super::Summary;
use crate::components::reactive::changing;
use crate::components::resource_name::ResourceName;
use crate::components::state_badge::Shape;
use crate::format;
use crate::pages::alerts::data::{AlertMember, SilencePreview, owner_text};

#[component]
pub fn Covered(data: Signal<SilencePreview>, summary: Summary) -> impl IntoView {
    Effect::new(move |_| {
        summary
            .covered
            .set(data.with(|data| data.fault.is_none().then_some(data.total)))
    });
    let ends = move || {
        let now = data.with(|data| data.now);
        let ends = summary.fields.with(|fields| super::length::end_text(fields, now));
        ends.map(|ends| view! { <p class="small ends">{ends}</p> }.into_any())
    };
    let title = Memo::new(move |_| data.with(title));
    // The title alone is announced when it changes: not the rows with their running times.
    view! {
        {changing(ends)}
        <p class="sr" role="status">{changing(move || title.get())}</p>
        {changing(move || data.with(view))}
    }
}

fn title(data: &SilencePreview) -> String {
    match (&data.fault, data.total) {
        (Some(_), _) => "No alert matches yet".to_owned(),
        (None, 1) => "1 alert matches now".to_owned(),
        (None, count) => format!(
            "{} match now",
            format::counted(u64::from(count), "alert", "alerts")
        ),
    }
}

fn view(data: &SilencePreview) -> AnyView {
    if let Some(fault) = &data.fault {
        let fault = visible(fault).into_owned();
        return view! {
            <section class="sec"><header><h2>{title(data)}</h2></header><p class="small ink2">"Matchers "{fault}"."</p></section>
        }
        .into_any();
    }
    let rows: Vec<AnyView> = data.alerts.iter().map(|alert| row(alert, data.now)).collect();
    let table = (!rows.is_empty()).then(|| {
        view! {
            <div class="scroll"><table class="t">
                <caption class="sr">"Alerts that the silence would cover"</caption>
                <thead><tr><th scope="col">"held by"</th><th scope="col">"lock, prefix or backend"</th><th scope="col" class="num">"for"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table></div>
        }
        .into_any()
    });
    let receivers: Vec<AnyView> = data.receivers.iter().map(receiver).collect();
    let receivers = (!receivers.is_empty()).then(|| {
        view! {
            <section class="sec"><header><h2>"Affected receivers"</h2></header><ul class="dl">{receivers}</ul></section>
        }
        .into_any()
    });
    view! {
        <section class="sec">
            <header><h2>{title(data)}</h2><span class="note">"live"</span><span class="end">{data.extent.clone()}</span></header>
            {table}
        </section>
        {receivers}
    }
    .into_any()
}

fn row(alert: &AlertMember, now: i64) -> AnyView {
    let owner = owner_text(alert.owner.as_deref(), &alert.path);
    let past = format::period((now - alert.since).max(0) / 1_000 * 1_000);
    let state = (!alert.is_firing).then_some(" pending");
    view! {
        <tr>
            <td><bdi>{visible(owner).into_owned()}</bdi></td>
            <td class="al-cut"><ResourceName name=alert.subject.clone() cut=true/></td>
            <td class="num">{past}<small class="ink2">{state}</small></td>
        </tr>
    }
    .into_any()
}

fn receiver((name, is_notified): &(String, bool)) -> AnyView {
    let text = if *is_notified {
        view! { <span class="st healthy quiet"><Shape name="healthy"/>"still notified about other alerts"</span> }.into_any()
    } else {
        view! { <span class="ink2">"notified only when earlier alerts resolve"</span> }.into_any()
    };
    view! { <li><span class="mono small">{name.clone()}</span><span></span><span class="small dl-w">{text}</span></li> }.into_any()
}
