//! Several at once, by the page: ticked one by one, each by its own name, each with its own outcome.

use crate::support::{TestServer, on};
use crate::unlock::requests::{HeldLock, REASON};
use domain::access::Role;

use super::{Page, address, begun, id, post, see};

/// The checkbox value of this holding.
fn tick(page: &Page, held: &HeldLock) -> String {
    let label = format!("aria-label=\"unlock {} on", held.resource);
    let line = page.text.split("<input").find(|input| input.contains(&label));
    let value = line.and_then(|input| input.split("value=\"").nth(1));
    let value = value.and_then(|value| value.split('"').next());
    value
        .unwrap_or_else(|| panic!("no tick for {}: {}", held.resource, page.text))
        .replace("&amp;", "&")
}

fn ids(path: &str) -> Vec<&str> {
    path.split(['?', '&'])
        .filter_map(|pair| pair.strip_prefix("id="))
        .collect()
}

#[tokio::test]
async fn ticked_locks_are_confirmed_each_by_its_name() {
    // Two of three are selected; one typed name is right and one is wrong; then both are right. The third is never
    // released, however often the page is loaded.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let mut held = Vec::new();
    for name in ["job:a", "job:b", "job:c"] {
        held.push(server.hold(&operator, name).await);
    }
    let look = see(&server, &ada, &address(&held[0])).await;
    look.is(200).has("/unlocks?backend=builtin");
    let list = see(&server, &ada, "/unlocks?backend=builtin&prefix=job:").await;
    list.is(200).has("Held now").has("job:c");
    let invalid = see(&server, &ada, "/unlocks?backend=built%2Fin").await;
    invalid.is(404).has("backend is named");
    let (a, b) = (tick(&list, &held[0]), tick(&list, &held[1]));
    let form = [("item", a.as_str()), ("item", &b), ("reason", REASON)];
    let begun = post(&server, &ada, "/unlocks", &form).await;
    let to = begun.is(303).to.clone();
    let page = see(&server, &ada, &to).await;
    page.is(200).has("Confirm 2 unlocks").has("Also released");
    assert!(!page.text.contains("job:c"), "{}", page.text);
    let ids = ids(&to);
    let fields: Vec<String> = ids.iter().map(|id| format!("resource-{id}")).collect();
    let typed = |second| {
        let both = ids.iter().map(|id| ("id", *id));
        both.chain([(fields[0].as_str(), "job:a"), (fields[1].as_str(), second)])
            .collect::<Vec<_>>()
    };
    let half = post(&server, &ada, "/unlocks/bulk", &typed("job:a")).await;
    half.is(422)
        .has("Confirm 1 unlock")
        .has("aria-invalid=\"true\"")
        .has("value=\"job:a\"")
        .has("Released");
    assert!(!server.is_held(&operator, &held[0]).await && server.is_held(&operator, &held[1]).await);
    let both: Vec<(&str, &str)> = typed("job:b")
        .into_iter()
        .filter(|(name, _)| *name != fields[0])
        .collect();
    let done = post(&server, &ada, "/unlocks/bulk", &both).await;
    assert_eq!(done.is(303).to, to);
    see(&server, &ada, &to).await.is(200).has("2 of 2 released");
    assert!(!server.is_held(&operator, &held[1]).await && server.is_held(&operator, &held[2]).await);
}

#[tokio::test]
async fn refused_items_are_listed_and_input_is_kept() {
    // No selection; a weak reason; a selected lock whose holder has changed with an unchanged one; a protected one; a
    // viewer.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let vera = server.user("vera", on(Role::Viewer, None, None)).await;
    let (one, two) = (
        server.hold(&operator, "a").await,
        server.hold(&operator, "b").await,
    );
    see(&server, &vera, "/unlocks").await.is(403);
    let list = see(&server, &ada, "/unlocks").await;
    let good = tick(&list, &one);
    post(&server, &ada, "/unlocks", &[("reason", REASON)])
        .await
        .is(422)
        .has("Tick at least one lock")
        .has(REASON);
    let weak = post(&server, &ada, "/unlocks", &[("item", &good), ("reason", "....")]).await;
    weak.is(422).has("A reason is made of words");
    assert!(weak.text.matches("checked").count() == 1, "{}", weak.text);
    let stale = tick(&list, &two).replace(two.generation.as_str(), "lse_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let mixed = [("item", good.as_str()), ("item", &stale), ("reason", REASON)];
    let begun = post(&server, &ada, "/unlocks", &mixed).await;
    begun
        .is(200)
        .has("1 lock cannot be unlocked now")
        .has("Confirm 1 unlock");
    assert!(server.is_held(&operator, &one).await && server.is_held(&operator, &two).await);
    // A number that is no tick of ours is not acted on.
    post(&server, &ada, "/unlocks", &[("item", "on"), ("reason", REASON)])
        .await
        .is(422);
}

#[tokio::test]
async fn locks_that_may_only_be_seen_hide_no_candidate() {
    // More locks than a list has rows are visible and may not be unlocked; the one that may is the last in every order.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    for number in 0..60 {
        server.hold(&operator, &format!("a:{number}")).await;
    }
    let own = server.hold(&operator, "z:1").await;
    let grants = [on(Role::Viewer, None, None), on(Role::Operator, None, Some("z"))];
    let eve = server.user("eve", grants.concat()).await;
    let list = see(&server, &eve, "/unlocks").await;
    tick(list.is(200), &own);
    assert!(!list.text.contains("a:59"), "{}", list.text);
}

#[tokio::test]
async fn an_unlock_that_cannot_be_read_is_unknown_and_not_gone() {
    // The table is missing for a while.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let step = begun(&server, &ada, &held).await;
    let bulk = format!("/unlocks/bulk?id={}", id(&step));
    let aside = "ALTER TABLE unlocks RENAME TO unlocks_aside";
    server.store.sql(aside).await;
    for path in [step.as_str(), &bulk] {
        let page = see(&server, &ada, path).await;
        page.is(503).has("the state of the unlock is unknown");
        let claims = ["No unlock has this id", "Nothing to confirm"];
        assert!(!claims.iter().any(|claim| page.text.contains(claim)), "{path}");
    }
    let back = "ALTER TABLE unlocks_aside RENAME TO unlocks";
    server.store.sql(back).await;
    see(&server, &ada, &bulk).await.is(200).has("Confirm 1 unlock");
}
