//! The table of permissions per role.

use domain::access::{Permission, Role};
use leptos::prelude::*;

use crate::server_pages::layout::{Chrome, Page, page};

pub fn roles(chrome: &Chrome) -> String {
    let heads = Role::ALL.map(|role| view! { <th scope="col">{role.as_str()}</th> });
    let rows = Permission::ALL.map(|right| {
        let cells = Role::ALL.map(|role| {
            if role.rights().contains(&right) {
                view! { <td><span class="st healthy quiet"><svg class="sh" viewBox="0 0 12 12" aria-hidden="true"><path d="m1.5 6.5 3 3 6-7" stroke="currentColor" stroke-width="1.8" fill="none"></path></svg>"may"</span></td> }.into_any()
            } else {
                view! { <td class="ink3">"denied"</td> }.into_any()
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
            <header><h2>"Permissions by role"</h2></header>
            <div class="scroll">
                <table class="t st-table rights">
                    <thead><tr><th scope="col"><span class="sr">"permission"</span></th>{heads.collect_view()}</tr></thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            </div>
        </section>
        <p class="ink2">
            "A role is granted on every backend or one, and on every prefix or one. Reading the audit record and administering
            are about the console as a whole: a grant with a bound does not bring them."
        </p>
    };
    let title = "Permissions of each role".to_owned();
    let lead = "The server checks this table at every request.".to_owned();
    page(
        chrome,
        Page {
            title,
            lead: Some(lead),
            content: content.into_any(),
        },
    )
}

const fn word(right: Permission) -> &'static str {
    match right {
        Permission::View => "view",
        Permission::Lease => "hold leases",
        Permission::Unlock => "force an unlock",
        Permission::Approve => "approve",
        Permission::AuditRead => "read the audit log",
        Permission::Administer => "administer",
    }
}

const fn meaning(right: Permission) -> &'static str {
    match right {
        Permission::View => "locks, prefixes and backends",
        Permission::Lease => "acquire, renew and release on the built-in service",
        Permission::Unlock => "begin and confirm a forced unlock",
        Permission::Approve => "be the second approver",
        Permission::AuditRead => "search and export the audit log",
        Permission::Administer => "users, tokens, sessions, protected prefixes, the read-only switch",
    }
}
