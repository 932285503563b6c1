//! Empty state: how resources report fencing rejections.

use leptos::prelude::*;

const CHECK_REQUEST: &str = "curl -s $LEASEHOLD/v1/fencing/check -H 'Authorization: Bearer …' \\
  -d '{\"resource\": \"billing:close:2026-04\", \"fencingToken\": 7, \"source\": \"ledger-db\"}'";
const REPORT_REQUEST: &str = "curl -s $LEASEHOLD/v1/fencing/rejections -H 'Authorization: Bearer …' \\
  -d '{\"resource\": \"billing:close:2026-04\", \"fencingToken\": 7,
       \"highestToken\": 8, \"ownerId\": \"worker-3\", \"source\": \"ledger-db\"}'";

pub(super) fn setup_help() -> AnyView {
    view! {
        <section class="sec setup" aria-labelledby="teach-head">
            <header><h2 id="teach-head">"No rejections reported yet"</h2><span class="note">"two ways, both with an API token of the role client"</span></header>
            <ol>
                <li>
                    <b>"Compare at the resource and report."</b>" The resource stores the highest token seen and rejects a write with a lower one in the same transaction, then reports it:"
                    <pre>{REPORT_REQUEST}</pre>
                </li>
                <li>
                    <b>"Or check before each write."</b>" Where a resource cannot compare tokens, its client or proxy asks the lease service, which records the rejection:"
                    <pre>{CHECK_REQUEST}</pre>
                </li>
                <li><b>"Read the result here."</b>" A rejected write means that its owner lost the lock and kept writing; the lock's page shows how long as the zombie window."</li>
            </ol>
        </section>
    }
    .into_any()
}
