//! The head of the OpenAPI description; the paths come from the handlers.

use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Leasehold",
        description = "Live state of distributed locks over several backends. Fields that are null are named in \
                       `unknown` (it exists, and this backend or we cannot tell) or `absent` (there is none)."
    ),
    tags(
        (name = "inventory", description = "Locks, the segment tree, backends"),
        (name = "leases", description = "The built-in lease service: acquire, renew, release, listen"),
        (name = "fencing", description = "For resources: check a token, report what was refused"),
        (name = "unlocks", description = "Forced unlocks in two steps: an intent, then exactly that act, or nothing"),
        (name = "alerts", description = "Alerts, the rules that raise them, silences, and who is told"),
        (name = "people", description = "People, tokens, sessions, roles"),
        (name = "audit", description = "The record: who did what to which lock, why, and how it ended"),
        (name = "health", description = "For load balancers and supervisors")
    )
)]
pub struct Description;
