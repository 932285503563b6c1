//! Evaluators on both stores: a restart repeats nothing, and of two servers one evaluates.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::backends::misconfigured::BrokenBackend;
use ::backends::{BackendError, BackendRegistry};
use ::config::HistoryConfig;
use ::inventory::Inventory;
use ::lease::{LeaseCaller, LeaseConfig, LeasePrincipal, LeaseService, RejectionReport};
use domain::alerts::{Draft, SilenceDraft};
use domain::backend::BackendKind;
use domain::lease::Scope;
use domain::names::{BackendName, OwnerId, Resource};
use domain::notification::{Notice, NoticeStatus};
use domain::token::FencingToken;
use futures::future::BoxFuture;
use leasehold::alerts::{AlertDeps, AlertError, Alerts, EvaluatorMonitor, Notices};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::history::{History, Recording};
use leasehold::identity::Principal;
use leasehold::notify::Occasion;
use runtime::clock::Clock;
use runtime::db::{Db, Tx};
use tokio_util::sync::CancellationToken;

use crate::support::aside;
use crate::support::store::Store;
use testkit::eventually;

pub(super) struct Server {
    pub(super) alerts: Arc<Alerts>,
    pub(super) sent: Arc<Collected>,
    pub(super) history: Db,
    pub(super) leases: Arc<LeaseService>,
    recording: Recording,
    stop: CancellationToken,
}

/// Sends nothing and stores the notifications.
#[derive(Debug, Default)]
pub(super) struct Collected(Mutex<Vec<Notice>>);

impl Collected {
    pub(super) fn all(&self) -> Vec<Notice> {
        self.0.lock().unwrap().clone()
    }
}

impl Notices for Collected {
    fn enqueue<'a>(
        &'a self,
        _: &'a mut Tx,
        notice: &'a Notice,
        _: Occasion,
        _: i64,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        self.0.lock().unwrap().push(notice.clone());
        Box::pin(async { Ok(()) })
    }
}

/// One backend by name, which is never called.
fn registry() -> Arc<BackendRegistry> {
    let error = BackendError::Unreachable {
        detail: "nobody is there".to_owned(),
    };
    let kind = BackendKind::Builtin;
    BackendRegistry::new(vec![(
        BackendName::builtin(),
        Arc::new(BrokenBackend { kind, error }),
    )])
}

impl Server {
    pub(super) async fn start(home: &Store) -> Self {
        Self::start_at(home, Clock::start()).await
    }

    pub(super) async fn start_at(home: &Store, clock: Clock) -> Self {
        let stop = CancellationToken::new();
        let leases = LeaseService::open(&home.url, LeaseConfig::default(), clock.clone(), stop.clone());
        let leases = Box::pin(leases).await.unwrap();
        let db = Db::open(&home.url).await.unwrap();
        let history = db.history(&home.url).await.unwrap();
        let sent = Arc::new(Collected::default());
        let inventory = Inventory::new(Vec::new());
        let (_, recording) = History::start(
            history.clone(),
            &inventory,
            &leases,
            HistoryConfig::default(),
            clock.clone(),
            stop.clone(),
        );
        let alerts = Alerts::start(AlertDeps {
            audit: Audit::new(db, clock.clone(), ChainCheckpoints::new(None)),
            history: history.clone(),
            inventory,
            leases: leases.clone(),
            notices: sent.clone(),
            backends: registry(),
            evaluation: Arc::new(EvaluatorMonitor::new(clock.clone())),
            clock,
            stop: stop.clone(),
        });
        Self {
            alerts: Box::pin(alerts).await.unwrap(),
            sent,
            history,
            leases,
            recording,
            stop,
        }
    }

    /// A resource refuses an old token.
    pub(super) async fn refuse(&self, resource: &str) {
        let caller = LeaseCaller {
            principal: LeasePrincipal::new("test"),
            scope: Scope::everything(),
        };
        let report = RejectionReport {
            resource: Resource::from(resource),
            token: FencingToken::new(3),
            highest: Some(FencingToken::new(4)),
            owner: Some(OwnerId::new("w")),
            source: "test".to_owned(),
            at: None,
        };
        self.leases.report(&caller, report).await.unwrap();
    }

    pub(super) fn sent_count(&self) -> usize {
        self.sent.all().len()
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.recording.ended().await;
        self.leases.close().await;
    }
}

pub(super) async fn firing(server: &Server) -> usize {
    let open = server.alerts.open(&Default::default()).await.unwrap();
    open.iter().filter(|open| open.kept.alert.is_firing()).count()
}

/// Three rounds of the evaluator.
pub(super) async fn rounds() {
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
}

async fn restarts(home: Store) {
    let first = Server::start(&home).await;
    first.refuse("jobs/1").await;
    // It is enqueued before the commit.
    eventually("the rejected write is notified", || async {
        first.sent_count() == 1 && firing(&first).await == 1
    })
    .await;
    assert_eq!(first.sent_count(), 1);
    first.stop().await;
    let second = Server::start(&home).await;
    rounds().await;
    assert_eq!((second.sent_count(), firing(&second).await), (0, 1));
    // A disabled rule resolves its firing alert, once.
    let mut draft = Draft::from(&second.alerts.rule("fencing_rejections").await.unwrap().rule);
    draft.enabled = false;
    let who = Principal::system("test");
    let saved = second
        .alerts
        .save_rule(&who, draft.clone(), Some(1), false)
        .await
        .unwrap();
    assert_eq!(saved.version, 2);
    assert!(
        second
            .alerts
            .save_rule(&who, draft, Some(1), false)
            .await
            .is_err()
    );
    eventually("the resolved alert is notified", || async {
        second.sent_count() == 1 && firing(&second).await == 0
    })
    .await;
    assert_eq!(second.sent.all()[0].status(), NoticeStatus::Resolved);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_neither_loses_nor_repeats_on_sqlite() {
    // One alert before a restart; after it no repeat, and one resolved notification.
    Box::pin(restarts(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_neither_loses_nor_repeats_on_postgres() {
    // The same on Postgres, where the evaluating server holds a lease.
    Box::pin(restarts(Store::postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_ends_under_the_labels_that_were_notified() {
    // Its rule is renamed while it fires, and the server restarts: under another name a receiver would keep it firing.
    let home = Store::sqlite();
    let first = Server::start(&home).await;
    first.refuse("jobs/1").await;
    eventually("the rejected write is notified", || async {
        first.sent_count() == 1 && firing(&first).await == 1
    })
    .await;
    let fired = first.sent.all()[0].clone();
    let who = Principal::system("test");
    let mut draft = Draft::from(&first.alerts.rule("fencing_rejections").await.unwrap().rule);
    draft.name = "Renamed".to_owned();
    let saved = first.alerts.save_rule(&who, draft.clone(), Some(1), false);
    assert_eq!(saved.await.unwrap().version, 2);
    first.stop().await;
    let second = Server::start(&home).await;
    eventually("it is shown under the labels that silences match", async || {
        let open = second.alerts.open(&Default::default()).await.unwrap();
        open.iter().any(|open| open.labels == fired.alerts[0].labels)
    })
    .await;
    draft.enabled = false;
    let saved = second.alerts.save_rule(&who, draft, Some(2), false);
    assert_eq!(saved.await.unwrap().version, 3);
    eventually("the resolved alert is notified", || async {
        second.sent_count() == 1
    })
    .await;
    let ended = second.sent.all()[0].clone();
    assert_eq!(ended.status(), NoticeStatus::Resolved);
    assert_eq!(ended.alerts[0].labels, fired.alerts[0].labels);
    assert_eq!(
        (&ended.group, &ended.alerts[0].fingerprint),
        (&fired.group, &fired.alerts[0].fingerprint)
    );
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_servers_evaluates_and_the_other_takes_over() {
    // One rejected write is notified once by one of them; that server stops; the next write is
    // notified once by the other.
    let home = Store::postgres().await;
    let (one, two) = (Server::start(&home).await, Server::start(&home).await);
    one.refuse("jobs/1").await;
    eventually("one server notifies", || async {
        one.sent_count() + two.sent_count() == 1
    })
    .await;
    rounds().await;
    assert_eq!(one.sent_count() + two.sent_count(), 1);
    let (winner, other) = if one.sent_count() == 1 {
        (one, two)
    } else {
        (two, one)
    };
    winner.stop().await;
    other.refuse("jobs/2").await;
    eventually("the other tells the next", || async {
        other.sent_count() == 1 && firing(&other).await == 2
    })
    .await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_show_on_the_writing_server_at_once() {
    // A rule is changed three times; both servers cache rules.
    let home = Store::postgres().await;
    let (one, two) = (Server::start(&home).await, Server::start(&home).await);
    let who = Principal::system("test");
    for version in 2..5 {
        let kept = one.alerts.rule("coverage").await.unwrap();
        let mut draft = Draft::from(&kept.rule);
        draft.name = format!("Coverage {version}");
        one.alerts
            .save_rule(&who, draft, Some(kept.version), false)
            .await
            .unwrap();
        assert_eq!(one.alerts.rule("coverage").await.unwrap().version, version);
        eventually("the other shows it", || async {
            two.alerts.rule("coverage").await.unwrap().version == version
        })
        .await;
    }
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_paused_in_a_transaction_blocks_no_evaluator() {
    // The lock of the evaluator's table is held by a session that sends nothing more, as that of a paused process.
    let home = Store::postgres().await;
    let db = Db::open(&home.url).await.unwrap();
    let Db::Postgres(pool) = &db else {
        panic!("the store is a Postgres");
    };
    let lock = "LOCK TABLE alert_evaluator IN ACCESS EXCLUSIVE MODE";
    let mut paused = pool.begin().await.unwrap();
    sqlx::raw_sql(lock).execute(&mut *paused).await.unwrap();
    testkit::within(
        Duration::from_secs(30),
        "another session gets the lock",
        async || {
            let mut other = pool.begin().await.unwrap();
            sqlx::raw_sql(lock).execute(&mut *other).await.is_ok()
        },
    )
    .await;
    assert!(paused.commit().await.is_err(), "its transaction was ended");
    db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_form_does_not_restore_a_removed_rule() {
    // Another operator removes the rule while it is edited. Without a version it is created again.
    let home = Store::sqlite();
    let server = Server::start(&home).await;
    let who = Principal::system("test");
    let kept = server.alerts.rule("coverage").await.unwrap();
    server.alerts.remove_rule(&who, "coverage").await.unwrap();
    let draft = Draft::from(&kept.rule);
    let stale = server
        .alerts
        .save_rule(&who, draft.clone(), Some(kept.version), false)
        .await;
    assert!(matches!(stale, Err(AlertError::NotFound("rule"))), "{stale:?}");
    assert!(server.alerts.rule("coverage").await.is_err());
    let created = server.alerts.save_rule(&who, draft, None, false).await.unwrap();
    assert_eq!(created.version, kept.version + 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_is_removed_during_its_change_stays_removed() {
    // The change has read the rule, and waits for the transaction of the removal.
    let home = Store::postgres().await;
    let server = Server::start(&home).await;
    let kept = server.alerts.rule("coverage").await.unwrap();
    let pool = sqlx::PgPool::connect(&home.url).await.unwrap();
    let remove = "UPDATE alert_evaluator SET revision = revision + 1;
        UPDATE alert_rules SET is_deleted = 1 WHERE id = 'coverage'";
    let mut removal = pool.begin().await.unwrap();
    sqlx::raw_sql(remove).execute(&mut *removal).await.unwrap();
    let alerts = Arc::clone(&server.alerts);
    let change = aside(async move {
        let draft = Draft::from(&kept.rule);
        let who = Principal::system("test");
        alerts.save_rule(&who, draft, Some(kept.version), false).await
    });
    eventually("the change waits", || async {
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        let count: i64 = sqlx::query_scalar(waiting).fetch_one(&pool).await.unwrap();
        count > 0
    })
    .await;
    removal.commit().await.unwrap();
    let changed = change.await.unwrap();
    assert!(changed.is_err(), "{changed:?}");
    eventually("the rule is gone", || async {
        server.alerts.rule("coverage").await.is_err()
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_silence_is_not_extended_on_another_server() {
    // The other server still lists it: changes of one server show a moment later on another.
    let home = Store::postgres().await;
    let (one, two) = (Server::start(&home).await, Server::start(&home).await);
    let who = Principal::system("test");
    let draft = SilenceDraft {
        matchers: vec![("rule".to_owned(), "coverage".to_owned())],
        lasts: "2h".to_owned(),
        comment: "maintenance".to_owned(),
    };
    let silence = one.alerts.silence(&who, &draft).await.unwrap();
    eventually("the other shows it", || async {
        !two.alerts.silences().await.unwrap().is_empty()
    })
    .await;
    one.alerts.end_silence(&who, &silence.id).await.unwrap();
    let extended = two.alerts.extend_silence(&who, &silence.id, "1d").await;
    assert!(
        matches!(extended, Err(AlertError::NotFound("silence"))),
        "{extended:?}"
    );
    assert!(one.alerts.silences().await.unwrap().is_empty());
    one.stop().await;
    two.stop().await;
}
