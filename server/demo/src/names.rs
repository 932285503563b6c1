//! Names of the demo: locks of four teams of an imaginary company.

use super::scenarios::{PATIENT, QUICK, USUAL, Workload};

/// In the `distributed_locks` table of `orders-db`.
pub(super) const TABLE: Workload = Workload {
    steady: &[
        ("tenant_123:billing-close:2026-04", "worker-7", USUAL),
        ("tenant_123:invoice-run:2026-04", "billing-api-2", USUAL),
        ("tenant_123:dunning", "billing-api-1", USUAL),
        ("tenant_204:billing-close:2026-04", "worker-3", USUAL),
        ("tenant_204:ledger-post", "ledger-post-4", QUICK),
        ("tenant_204:vat-report:2026-Q1", "report-runner-1", USUAL),
        ("tenant_311:billing-close:2026-04", "worker-9", USUAL),
        ("tenant_311:ledger-post", "ledger-post-1", QUICK),
        ("tenant_311:settlement:eur", "settlement-2", USUAL),
        ("tenant_408:billing-close:2026-04", "worker-11", USUAL),
        ("tenant_408:ledger-post", "ledger-post-2", QUICK),
        ("warehouse/eu-west/stock-sync", "stock-sync-1", USUAL),
        ("warehouse/eu-west/label-printer:3", "label-printer-3", QUICK),
        ("warehouse/us-east/stock-sync", "stock-sync-2", USUAL),
    ],
    silent: &["tenant_204:payout:2026-04-18", "warehouse/us-east/repricing"],
    unrenewed: &[
        "tenant_123:snapshot:orders",
        "tenant_311:snapshot:orders",
        "tenant_408:archive:2025",
        "search:snapshot:catalog",
    ],
    short_jobs: &[
        "tenant_123:order:58213",
        "tenant_123:order:58214",
        "tenant_123:order:58219",
        "tenant_204:order:77120",
        "tenant_204:order:77131",
        "tenant_311:order:12007",
        "tenant_311:order:12011",
        "tenant_408:order:90354",
        "tenant_408:order:90355",
        "warehouse/eu-west/pick:4411",
        "warehouse/eu-west/pick:4412",
    ],
};

/// The row that is never reclaimed.
pub(super) const ABANDONED: (&str, &str) = ("tenant_204:month-end:2026-03", "worker-2");

/// Scheduled tasks in the `shedlock` table, and their hosts.
pub(super) const SCHEDULED: [(&str, &str); 4] = [
    ("send-payment-reminders", "billing-api-1"),
    ("refresh-exchange-rates", "billing-api-2"),
    ("purge-expired-carts", "shop-api-1"),
    ("rebuild-sitemap", "shop-api-2"),
];

/// JSON values in `redis-cache`.
pub(super) const CACHE_JSON: Workload = Workload {
    steady: &[
        ("tenant_123:price-import", "importer-5", USUAL),
        ("tenant_204:price-import", "importer-1", USUAL),
        ("tenant_311:price-import", "importer-2", USUAL),
        ("search:reindex:customers", "reindexer-1", USUAL),
        ("search:reindex:orders", "reindexer-2", USUAL),
        ("warehouse/eu-west/replenish", "replenisher-1", QUICK),
        ("webhook:retry:shopfront", "webhook-2", QUICK),
        ("tenant_408:export:parquet", "exporter-1", USUAL),
    ],
    silent: &["tenant_311:export:csv", "tenant_123:export:parquet"],
    unrenewed: &[
        "tenant_204:digest-mail",
        "tenant_408:digest-mail",
        "report:weekly:sales",
        "report:weekly:returns",
    ],
    short_jobs: &[
        "cart:7f31",
        "cart:a0c4",
        "cart:b91e",
        "session:migrate:14",
        "session:migrate:15",
        "tenant_123:thumbnail:88",
        "tenant_204:thumbnail:12",
        "tenant_311:thumbnail:40",
        "webhook:retry:4711",
    ],
};

/// Raw values in `redis-cache`.
pub(super) const CACHE_RAW: Workload = Workload {
    steady: &[
        ("rate-card:refresh", "pricing-1", QUICK),
        ("tenant_123:cache-warm", "warmer-1", USUAL),
        ("tenant_204:cache-warm", "warmer-2", USUAL),
        ("feature-flags:publish", "flags-1", USUAL),
    ],
    silent: &[],
    unrenewed: &[],
    short_jobs: &["token:rotate:payments", "token:rotate:search", "geoip:update"],
};

/// Redisson's hashes in `redis-cache`: their owners are the clients' ids.
pub(super) const CACHE_HASHES: Workload = Workload {
    steady: &[
        ("inventory:reserve:sku-10045", "", USUAL),
        ("inventory:reserve:sku-20817", "", USUAL),
        ("tenant_204:loyalty:recount", "", USUAL),
    ],
    silent: &[],
    unrenewed: &[],
    short_jobs: &[],
};

/// In `cache-eu`, the server that is paused periodically.
pub(super) const CACHE_EU: Workload = Workload {
    steady: &[
        ("tenant_123:geo-index", "geo-1", PATIENT),
        ("tenant_204:geo-index", "geo-2", PATIENT),
        ("checkout:eu:risk-model", "risk-1", PATIENT),
        ("checkout:eu:tax-table", "tax-1", PATIENT),
        ("search:eu:suggest", "suggest-3", PATIENT),
        ("warehouse/eu-north/stock-sync", "stock-sync-4", PATIENT),
    ],
    silent: &[],
    unrenewed: &[],
    short_jobs: &["checkout:eu:basket:19", "checkout:eu:basket:23"],
};

/// On the three servers of `payments-redlock`.
pub(super) const REDLOCK: Workload = Workload {
    steady: &[
        ("checkout:settlement:batch-74", "api-09", USUAL),
        ("checkout:settlement:batch-75", "api-11", USUAL),
        ("checkout:payout:eur", "payout-2", QUICK),
    ],
    silent: &[],
    unrenewed: &["checkout:snapshot:fees"],
    short_jobs: &["checkout:refund:991", "checkout:refund:992"],
};

/// Plain keys on leases in `etcd-coord`.
pub(super) const COORD: Workload = Workload {
    steady: &[
        ("tenant_123:shard-move:7", "balancer-1", USUAL),
        ("tenant_204:shard-move:2", "balancer-2", USUAL),
        ("deploy/checkout", "deployer-1", USUAL),
        ("deploy/ledger", "deployer-2", USUAL),
        ("config/publish", "config-agent-1", QUICK),
        ("dns/zone/internal", "dns-agent-2", QUICK),
        ("warehouse/eu-west/reindex", "reindexer-3", USUAL),
        ("backup/orders-db", "backup-1", USUAL),
    ],
    silent: &["tenant_311:shard-move:4", "backup/search"],
    unrenewed: &[
        "certs/renew/api",
        "certs/renew/shop",
        "deploy/search",
        "tenant_408:rekey",
    ],
    short_jobs: &[
        "node/drain/a14",
        "node/drain/b02",
        "node/drain/b07",
        "canary/checkout",
        "canary/ledger",
    ],
};

/// In the console's own lease service.
pub(super) const SERVICE: Workload = Workload {
    steady: &[
        (LONG_LOCK, "mailer-1", USUAL),
        ("tenant_204:statement-mail:2026-04", "mailer-2", USUAL),
        ("fx:rates:refresh", "rates-1", QUICK),
        ("search:reindex:vendors", "reindexer-3", USUAL),
    ],
    silent: &["tenant_311:payout:2026-04-19"],
    unrenewed: &["tenant_204:snapshot:ledger"],
    short_jobs: &[
        "tenant_123:refund:8812",
        "tenant_204:refund:8815",
        "tenant_408:refund:8821",
    ],
};

/// In names of locks of several backends.
pub(super) const SEARCH: &str = "payout";

/// Held for the whole demo, and its prefix for a rule on long holds.
pub(super) const LONG_LOCK: &str = "tenant_123:statement-mail:2026-04";
pub(super) const LONG: &str = "tenant_123:statement-mail";

/// The lock with a queue in the lease service, and its waiters.
pub(super) const QUEUE_LOCK: &str = "tenant_123:close:2026-04";
pub(super) const QUEUE_OWNERS: [&str; 3] = ["closer-1", "closer-2", "closer-3"];

/// Resource of the late write, its stale writer and the next owner; and the reporting source.
pub(super) const ZOMBIE: (&str, &str, &str) =
    ("tenant_408:ledger:2026-04", "ledger-writer-1", "ledger-writer-2");
pub(super) const ZOMBIE_SOURCE: &str = "ledger-db";
