//! The one table of rights, as people read it.

use domain::access::{Right, Role};
use leptos::prelude::*;

use crate::forms::chrome::{Chrome, Page, page};

pub fn roles(chrome: &Chrome) -> String {
    let heads = Role::ALL.map(|role| view! { <th scope="col">{role.wire()}</th> });
    let rows = Right::ALL.map(|right| {
        let cells = Role::ALL.map(|role| {
            if role.rights().contains(&right) {
                view! { <td><span class="st healthy quiet"><svg class="sh" viewBox="0 0 12 12" aria-hidden="true"><path d="m1.5 6.5 3 3 6-7" stroke="currentColor" stroke-width="1.8" fill="none"></path></svg>"may"</span></td> }.into_any()
            } else {
                view! { <td class="ink3">"may not"</td> }.into_any()
            }
        });
        view! {
            <tr>
                <th scope="row">{word(right)}<small>{meaning(right)}</small></th>
                {cells.collect_view()}
            </tr>
        }
    });
    let content = view! {
        <section class="sec">
            <header><h2>"Rights by role"</h2></header>
            <div class="scroll">
                <table class="t st-table rights">
                    <thead><tr><th scope="col"><span class="sr">"right"</span></th>{heads.collect_view()}</tr></thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            </div>
        </section>
        <p class="ink2">
            "A role is granted on every backend or one, and on every prefix or one. Reading the audit record and administering
            are about the console as a whole: a grant with a bound does not bring them."
        </p>
    };
    let title = "What each role may do".to_owned();
    let lead = "The server checks this very table at every request.".to_owned();
    page(
        chrome,
        Page {
            title,
            lead: Some(lead),
            content: content.into_any(),
        },
    )
}

const fn word(right: Right) -> &'static str {
    match right {
        Right::View => "view",
        Right::Lease => "hold leases",
        Right::Unlock => "force an unlock",
        Right::Approve => "approve",
        Right::AuditRead => "read the audit",
        Right::Administer => "administer",
    }
}

const fn meaning(right: Right) -> &'static str {
    match right {
        Right::View => "locks, prefixes and backends",
        Right::Lease => "acquire, renew and release on the built-in service",
        Right::Unlock => "begin and confirm a forced unlock",
        Right::Approve => "be the second person",
        Right::AuditRead => "search and export the record",
        Right::Administer => "people, tokens, sessions, tiers, the read-only switch",
    }
}
