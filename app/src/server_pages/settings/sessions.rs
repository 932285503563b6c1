//! Sessions of users, and ending them.

use domain::escape::visible;
use domain::format;
use leptos::prelude::*;

use super::ago;
use crate::server_pages::field::{alert, done};
use crate::server_pages::layout::{Chrome, Page, page};

#[derive(Debug, Clone)]
pub struct SessionRow {
    pub id: String,
    pub user: String,
    pub way: String,
    pub created_at: i64,
    pub seen_at: i64,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
    /// The current session.
    pub is_this: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Sessions {
    pub rows: Vec<SessionRow>,
    pub now: i64,
    pub refusal: Option<String>,
    pub done: Option<String>,
}

pub fn sessions(chrome: &Chrome, sessions: Sessions) -> String {
    let mut users: Vec<&str> = sessions.rows.iter().map(|row| row.user.as_str()).collect();
    users.sort_unstable();
    users.dedup();
    let places = sessions.rows.len() as u64;
    let title = format!(
        "{} signed in, at {}",
        format::counted(users.len() as u64, "user is", "users are"),
        format::counted(places, "place", "places")
    );
    let content = view! {
        {alert(sessions.refusal.clone())}
        {done(sessions.done.clone())}
        <section class="sec">
            <header><h2>"Sessions"</h2></header>
            {table(&sessions.rows, sessions.now, "/settings/sessions")}
        </section>
    };
    let lead = "A session ends after 30 minutes without use and after 12 hours; one that is ended here stops within a second.";
    let content = content.into_any();
    page(
        chrome,
        Page {
            title,
            lead: Some(lead.to_owned()),
            content,
        },
    )
}

/// A post to `base/{id}/end` ends a session.
pub(super) fn table(rows: &[SessionRow], now: i64, base: &'static str) -> AnyView {
    let lines = rows.iter().map(|row| {
        let agent = row.user_agent.as_deref().map(|agent| visible(agent).into_owned());
        let end = if row.is_this {
            view! { <span class="ink2">"this one"</span> }.into_any()
        } else {
            let label = format!("End the session of {} from {}", row.user, row.ip.as_deref().unwrap_or("somewhere"));
            view! {
                <form method="post" action=format!("{base}/{}/end", row.id)>
                    <button class="btn s" r#type="submit" aria-label=label>"End"</button>
                </form>
            }
            .into_any()
        };
        view! {
            <tr>
                <th scope="row">{row.user.clone()}</th>
                <td>{row.way.clone()}</td>
                <td class="mono">{row.ip.clone().unwrap_or_else(|| "unknown".to_owned())}</td>
                <td class="agent"><bdi title=agent.clone()>{agent.clone().unwrap_or_else(|| "unknown".to_owned())}</bdi></td>
                <td>{ago(Some(row.created_at), now, "")}</td>
                <td>{ago(Some(row.seen_at), now, "")}</td>
                <td class="num">{end}</td>
            </tr>
        }
    });
    view! {
        <div class="scroll">
            <table class="t st-table">
                <thead><tr><th scope="col">"user"</th><th scope="col">"signed in by"</th><th scope="col">"from"</th>
                    <th scope="col">"browser"</th><th scope="col">"began"</th><th scope="col">"last used"</th>
                    <th scope="col"><span class="sr">"act"</span></th></tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}
