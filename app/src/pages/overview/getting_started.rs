//! Getting started: no backend configured yet, and how to add one.

use leptos::prelude::*;

const EXAMPLE: &str = r#"[[backend]]
name = "orders-db"
kind = "postgres"
url = "postgres://leasehold_watch@db/orders"
advisory_locks = true

[[backend]]
name = "cache"
kind = "redis"
urls = ["redis://127.0.0.1:6379"]
patterns = ["lock:*"]

[[backend]]
name = "coord"
kind = "etcd"
endpoints = ["http://127.0.0.1:2379"]
prefixes = ["/locks/"]
"#;

#[component]
pub fn Setup() -> impl IntoView {
    view! {
        <section class="sec setup" aria-labelledby="setup-head">
            <header><h2 id="setup-head">"Add a backend"</h2></header>
            <ol>
                <li>
                    <p><b>"Name it in "<code>"leasehold.toml"</code>"."</b>" One block per system; a read-only account is enough."</p>
                    <pre tabindex="0">{EXAMPLE}</pre>
                </li>
                <li>
                    <p><b>"Check the configuration."</b>" The check prints each value with its source, and errors."</p>
                    <pre tabindex="0">"leasehold check-config --config leasehold.toml"</pre>
                </li>
                <li>
                    <p><b>"Restart."</b>" Locks appear after the first scan. To try Leasehold without systems of your own:"</p>
                    <pre tabindex="0">"leasehold demo"</pre>
                </li>
            </ol>
        </section>
    }
}
