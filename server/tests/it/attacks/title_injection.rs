//! The name of a lock closes `<title>` and adds elements to the lock's page; pages that are rendered at the same time exchange their
//! titles.

use crate::support::TestServer;
use std::path::Path;

use futures::future::join_all;
use serde_json::json;

use crate::support::html::Html;
use testkit::eventually;

/// Short enough for the title.
const NAME: &str = "x</title><meta http-equiv=refresh content=0><x-added>&amp;";

async fn acquire(console: &TestServer, resource: &str) {
    let body = json!({"resource": resource, "ownerId": "worker-7", "ttlSeconds": 3_600});
    let lease = console.client.post(console.url("/v1/locks/acquire")).json(&body);
    assert_eq!(lease.send().await.unwrap().status(), 200);
}

async fn lock_page(console: &TestServer, resource: &str) -> Html {
    let path: String = url::form_urlencoded::byte_serialize(resource.as_bytes()).collect();
    let page = console
        .get(&format!("/locks/builtin/{}", path.replace('+', "%20")))
        .await;
    assert_eq!(page.status(), 200);
    Html::parse(&page.text().await.unwrap())
}

#[tokio::test]
async fn a_lock_name_cannot_leave_the_page_title() {
    // The title is the name as text, and the page has the elements of a page whose lock has a plain name.
    let console = TestServer::builder().operator().start().await;
    let plain = NAME.replace(['<', '>', '&'], "(");
    for resource in [NAME, &plain] {
        acquire(&console, resource).await;
    }
    console
        .inventory_where("backend=builtin", |page| page["total"] == 2)
        .await;
    let page = lock_page(&console, NAME).await;
    assert_eq!(page.title(), format!("{NAME}, builtin · Leasehold"));
    assert!(!page.names.contains("http-equiv") && !page.names.contains("x-added"));
    // Charts of the two pages differ while an event is written for one of them only.
    eventually("both pages have the same elements", || async {
        lock_page(&console, NAME).await.elements == lock_page(&console, &plain).await.elements
    })
    .await;
}

#[tokio::test]
async fn pages_rendered_together_have_their_own_titles() {
    // The framework reads the title after another page may have continued on its thread, whose values it would find then.
    let console = TestServer::builder().operator().start().await;
    let names: Vec<String> = (0..8).map(|number| format!("job-{number}")).collect();
    for name in &names {
        acquire(&console, name).await;
    }
    console
        .inventory_where("backend=builtin", |page| page["total"] == names.len())
        .await;
    for _ in 0..3 {
        let pages = join_all(names.iter().map(|name| lock_page(&console, name))).await;
        for (name, page) in names.iter().zip(pages) {
            assert_eq!(page.title(), format!("{name}, builtin · Leasehold"));
        }
    }
}

#[test]
fn titles_and_text_areas_are_escaped_everywhere() {
    // Clippy refuses calls of `leptos_meta::Title`; this also sees imports and other elements of the head, also unescaped.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../app");
    let mut files = vec![root.join("src")];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        seen += 1;
        let is_allowed = |line: &str| {
            path.ends_with("components/title.rs")
                || line.trim() == "use leptos_meta::{MetaTags, provide_meta_context};"
        };
        for line in text.lines().filter(|line| line.contains("leptos_meta")) {
            assert!(is_allowed(line), "{}: {line}", path.display());
        }
        // The framework writes the children of a text area as they are: escaped, or none.
        let is_safe = |line: &str| {
            line.contains("textarea_html(")
                || line.trim().starts_with("//")
                || (line.contains("></textarea>") && !line.contains("inner_html"))
        };
        for line in text.lines().filter(|line| line.contains("</textarea>")) {
            assert!(is_safe(line), "{}: {line}", path.display());
        }
    }
    assert!(seen > 100, "{seen} files");
}
