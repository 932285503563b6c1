//! Steps on an unlock that is not there or belongs to somebody else's names: answered alike, and in the record.

use domain::access::Role;
use serde_json::json;

use super::stage::{Home, Stage, code, on};

const STEPS: [&str; 4] = ["confirm", "approve", "cancel", "review"];

#[tokio::test]
async fn a_step_on_an_unlock_out_of_sight_is_404_and_a_row() {
    // Somebody of another tenant, and an id that somebody made up, with the one character that Postgres keeps in no text.
    for home in [Home::sqlite(), Home::postgres().await] {
        let stage = Stage::on(home, "").await;
        let operator = stage.operator().await;
        let held = stage.hold(&operator, "tenant_1:r").await;
        let id = stage.begun(&operator, &held).await;
        let stranger = stage
            .token("stranger", on(Role::Admin, None, Some("tenant_2")))
            .await;
        let made_up = "u_none%00";
        for step in STEPS {
            for id in [id.as_str(), made_up] {
                let path = format!("/v1/unlocks/{id}/{step}");
                let body = json!({"resource": "tenant_1:r"});
                let reply = stage.post(&stranger, &path, &body).await;
                assert_eq!(code(&reply), (404, "not_found"), "{step} {}", reply.1);
            }
        }
        let rows = stage.record().await;
        let tried = rows
            .iter()
            .filter(|row| row.outcome == "not_found" && row.actor_name == "stranger");
        let tried: Vec<_> = tried.collect();
        assert_eq!(tried.len(), 2 * STEPS.len(), "{rows:#?}");
        for (pair, step) in tried.chunks(2).zip(STEPS) {
            let [real, invented] = pair else { panic!() };
            // It stands in the record of the lock at which it was tried.
            assert_eq!(real.resource.as_deref(), Some("tenant_1:r"));
            assert_eq!(real.unlock_id.as_deref(), Some(id.as_str()));
            assert_eq!(
                (invented.resource.as_deref(), invented.backend.as_deref()),
                (None, None)
            );
            assert_eq!(invented.unlock_id.as_deref(), Some("u_none\\u{0}"));
            for row in pair {
                assert!(row.after.as_deref().unwrap().contains(step), "{row:?}");
            }
        }
        assert!(stage.is_held(&operator, &held).await);
    }
}
