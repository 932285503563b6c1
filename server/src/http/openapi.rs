//! The head of the OpenAPI description; the paths come from the handlers.

use axum::Json;
use utoipa::OpenApi;

use super::routes::DESCRIPTION;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Leasehold",
        description = "Live state of distributed locks over several backends. Fields that are null are named in \
                       `unknown` (a value exists and is not known) or `absent` (there is no value)."
    ),
    tags(
        (name = "inventory", description = "Locks, the segment tree, backends"),
        (name = "leases", description = "The built-in lease service: acquire, renew, release, events"),
        (name = "fencing", description = "For resources: check a fencing token, report a rejection"),
        (name = "unlocks", description = "Forced unlocks in two steps: request an intent, then confirm it"),
        (name = "alerts", description = "Alerts, the rules that raise them, silences, receivers and notifications"),
        (name = "users", description = "Users, tokens, sessions, roles"),
        (name = "audit", description = "Audit log: user, action, lock, reason and result of each action"),
        (name = "health", description = "For load balancers and supervisors")
    )
)]
pub struct Description;

/// `GET /v1/openapi.json`
pub(in crate::http) async fn document() -> Json<&'static utoipa::openapi::OpenApi> {
    Json(&*DESCRIPTION)
}
