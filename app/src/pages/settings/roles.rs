//! The table of permissions per role.

use domain::access::{Permission, Role};
use leptos::prelude::*;

use crate::components::state_badge::Shape;
use crate::components::title::PageTitle;
use crate::layout::SettingsLayout;

#[component]
pub fn RolesPage() -> impl IntoView {
    let heads = Role::ALL.map(|role| view! { <th scope="col">{role.as_str()}</th> }.into_any());
    let rows = Permission::ALL.map(row);
    view! {
        <PageTitle text="Roles"/>
        <div class="page">
            <div class="pagehead">
                <h1>"Permissions of each role"</h1>
                <p>"The server checks this table at every request."</p>
            </div>
            <SettingsLayout>
                <section class="sec">
                    <header><h2>"Permissions by role"</h2></header>
                    <div class="scroll" tabindex="0" role="region" aria-label="Permissions of each role">
                        <table class="t st-table rights">
                            <thead><tr><th scope="col"><span class="sr">"permission"</span></th>{heads.collect_view()}</tr></thead>
                            <tbody>{rows.collect_view()}</tbody>
                        </table>
                    </div>
                </section>
                <p class="ink2">
                    "A role is granted on every backend or one, and on every prefix or one. Reading the audit log and administering
                    concern the console as a whole: a grant that is limited to a backend or a prefix does not include them."
                </p>
            </SettingsLayout>
        </div>
    }
    .into_any()
}

fn row(permission: Permission) -> AnyView {
    let cells = Role::ALL.map(|role| {
        if role.rights().contains(&permission) {
            view! { <td><span class="st healthy quiet"><Shape name="ok"/>"may"</span></td> }.into_any()
        } else {
            view! { <td class="ink3">"denied"</td> }.into_any()
        }
    });
    let (label, meaning) = permission_text(permission);
    view! {
        <tr>
            <th scope="row">{label}<small>{meaning}</small></th>
            {cells.collect_view()}
        </tr>
    }
    .into_any()
}

const fn permission_text(permission: Permission) -> (&'static str, &'static str) {
    match permission {
        Permission::View => ("view", "locks, prefixes and backends"),
        Permission::Lease => (
            "hold leases",
            "acquire, renew and release on the built-in service",
        ),
        Permission::Unlock => ("force an unlock", "begin and confirm a forced unlock"),
        Permission::Approve => ("approve", "be the second approver"),
        Permission::AuditRead => ("read the audit log", "search and export the audit log"),
        Permission::Administer => (
            "administer",
            "users, tokens, sessions, protected prefixes, the read-only switch",
        ),
    }
}
