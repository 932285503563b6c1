//! What stands here before any resource has reported: how to report.

use leptos::prelude::*;

const ASK: &str = "curl -s $LEASEHOLD/v1/fencing/check -H 'Authorization: Bearer …' \\
  -d '{\"resource\": \"billing:close:2026-04\", \"fencingToken\": 7, \"source\": \"ledger-db\"}'";
const TELL: &str = "curl -s $LEASEHOLD/v1/fencing/rejections -H 'Authorization: Bearer …' \\
  -d '{\"resource\": \"billing:close:2026-04\", \"fencingToken\": 7,
       \"highestToken\": 8, \"ownerId\": \"worker-3\", \"source\": \"ledger-db\"}'";

pub(super) fn teach() -> AnyView {
    view! {
        <section class="sec setup" aria-labelledby="teach-head">
            <header><h2 id="teach-head">"No resource has reported yet"</h2><span class="note">"two ways, both with a token of the role client"</span></header>
            <ol>
                <li>
                    <b>"Compare at the resource, and tell."</b>" The resource keeps the highest token that it has seen and refuses a write under a lower one, in the same transaction. Then it tells:"
                    <pre>{TELL}</pre>
                </li>
                <li>
                    <b>"Or ask before each write."</b>" Where a resource cannot compare, whoever stands before it asks. A refusal stands here by itself:"
                    <pre>{ASK}</pre>
                </li>
                <li><b>"Then look here."</b>" A refused write means that its owner lost the lock and went on: the lock's own page shows for how long, as its zombie window."</li>
            </ol>
        </section>
    }
    .into_any()
}
