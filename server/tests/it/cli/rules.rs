//! `leasehold rules`: import, export, and export for Prometheus; real tools check the shipped
//! monitoring files.

use crate::support::{TestServer, bearer, token};
use std::path::Path;
use std::process::Command;

use ::testkit::{AlertmanagerOptions, Throwaway, promtool};
use domain::access::Role;
use leasehold::alerts::prometheus;
use serde_json::{Value, json};
use testkit::eventually;

use super::{leasehold, run};

const SHIPPED: &str = include_str!("../../../../docs/monitoring/leasehold.rules.yml");
const ROUTES: &str = include_str!("../../../../docs/monitoring/alertmanager.example.yml");

struct RulesCli {
    console: TestServer,
    admin: String,
    folder: tempfile::TempDir,
}

impl RulesCli {
    async fn start() -> Self {
        let console = TestServer::builder().operator().start().await;
        let admin = token(&console.serving, Role::Admin).await;
        Self {
            admin: admin.expose().to_owned(),
            console,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    async fn rules(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = leasehold(self.folder.path());
        command
            .arg("rules")
            .args(args)
            .env("LEASEHOLD_TOKEN", &self.admin);
        if !args.contains(&"--builtin") {
            command.env("LEASEHOLD_SERVER", self.console.url(""));
        }
        tokio::task::spawn_blocking(move || run(&mut command))
            .await
            .unwrap()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    async fn stored_rule(&self, id: &str) -> Option<Value> {
        let rules = self.console.json("/v1/rules").await;
        let found = rules["rules"]
            .as_array()
            .unwrap()
            .iter()
            .find(|rule| rule["id"] == id);
        found.cloned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn import_of_an_export_changes_nothing_and_diffs_apply_once() {
    // Exported and imported again; a new rule and a changed threshold, first as a dry run, then twice.
    let cli = RulesCli::start().await;
    let (code, toml, err) = cli.rules(&["export"]).await;
    assert_eq!(code, 0, "{err}");
    let file = cli.file("rules.toml", &toml);
    let (code, out, err) = cli.rules(&["import", &file]).await;
    assert_eq!(
        (code, out.as_str()),
        (0, "new: 0, changed: 0, the same: 25\n"),
        "{err}"
    );
    let more = "[[rule]]\nid = \"mine\"\ncondition = \"contention\"\nprefix = \"nothing/\"\n\n\
                [[rule]]\nid = \"long_held\"\ncondition = \"long_held\"\nwith = { longer_than = \"3h\" }\n";
    let file = cli.file("more.toml", more);
    let (code, _, err) = cli.rules(&["import", &file]).await;
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("rule mine: ") && err.contains("prefix: "), "{err}");
    let tried = cli.rules(&["import", "--any-prefix", "--dry-run", &file]).await;
    assert_eq!(tried.0, 0, "{}", tried.2);
    assert!(
        tried.1.contains("with.longer_than: \"2h\" -> \"3h\""),
        "{}",
        tried.1
    );
    assert!(
        tried
            .1
            .ends_with("would be new: 1, would be changed: 1, the same: 0\n"),
        "{}",
        tried.1
    );
    assert!(cli.stored_rule("mine").await.is_none());
    let (code, out, err) = cli.rules(&["import", "--any-prefix", &file]).await;
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("+ mine  Contention\n") && out.contains("~ long_held  Long-held\n"),
        "{out}"
    );
    assert_eq!(
        cli.stored_rule("long_held").await.unwrap()["with"]["longer_than"],
        "3h"
    );
    let (_, out, _) = cli.rules(&["import", "--any-prefix", &file]).await;
    assert_eq!(out, "new: 0, changed: 0, the same: 2\n");
    assert_eq!(cli.stored_rule("mine").await.unwrap()["version"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_rules_file_changes_nothing_and_names_the_line() {
    // One valid rule before one without an id, with a repeated id, with an invalid threshold,
    // of invalid TOML, with a terminal escape; then a server that cannot be reached.
    let cli = RulesCli::start().await;
    let good = "[[rule]]\nid = \"good\"\ncondition = \"coverage\"\n\n";
    for (bad, why) in [
        ("[[rule]]\ncondition = \"coverage\"\n", "rule 2 has no id"),
        (good, "the id of an earlier rule: good"),
        (
            "[[rule]]\nid = \"bad\"\ncondition = \"coverage\"\nwith = { below = \"300%\" }\n",
            "rule bad: ",
        ),
        ("[[rule]\n", "line 5"),
        ("[[rule]]\n\"\\u001b[2J\" = 1\n", "\\u{1b}[2J"),
    ] {
        let file = cli.file("rules.toml", &format!("{good}{bad}"));
        let (code, _, err) = cli.rules(&["import", &file]).await;
        assert_eq!(code, 2, "{bad}: {err}");
        assert!(err.contains(why), "{bad}: {err}");
        assert!(!err.contains('\u{1b}'), "{bad}: {err}");
    }
    assert!(cli.stored_rule("good").await.is_none());
    let file = cli.file("rules.toml", good);
    let (code, _, _) = cli
        .rules(&["import", "--server", "http://127.0.0.1:1", &file])
        .await;
    assert_eq!(code, 3);
}

fn accepts(arguments: &[&str]) {
    let program = promtool().unwrap_or_else(|missing| panic!("{missing}"));
    let done = Command::new(program).args(arguments).output().unwrap();
    let outputs = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        done.status.success(),
        "promtool {arguments:?}: {}{}",
        outputs[0],
        outputs[1]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_export_passes_promtool_and_names_its_limits() {
    // Hostile names and patterns, scopes that metrics know and some that they do not, a rule that is off.
    let cli = RulesCli::start().await;
    let rules = [
        json!({"id": "braces", "condition": "contention", "name": "a \"b\" {{ .Nothing }} c", "prefix": "odd.(name)\"\\|:"}),
        json!({"id": "teams", "condition": "contention", "prefix": "tenant_*:billing-*", "backends": ["builtin"]}),
        json!({"id": "team_losses", "condition": "lease_losses", "prefix": "tenant_*:billing-*"}),
        json!({"id": "team_rejections", "condition": "fencing_rejections", "prefix": "tenant_*:"}),
        json!({"id": "team_holds", "condition": "long_held", "prefix": "tenant_*:"}),
        json!({"id": "one_tenant", "condition": "lease_losses", "prefix": "tenant_123:"}),
        json!({"id": "one_owner", "condition": "long_held", "owner": "worker-*"}),
        json!({"id": "silent", "condition": "wait_p95", "enabled": false}),
    ];
    for mut rule in rules {
        rule["anyPrefix"] = json!(true);
        let put = reqwest::Client::new().put(cli.console.url("/v1/rules"));
        let put = put.headers(bearer(&cli.admin)).json(&rule).send().await.unwrap();
        assert_eq!(put.status(), 200, "{rule}");
    }
    let (code, text, err) = cli.rules(&["export", "--format", "prometheus"]).await;
    assert_eq!(code, 0, "{err}");
    accepts(&["check", "rules", &cli.file("rules.yml", &text)]);
    let of = |id: &str| {
        let all = text.split("      - alert: ");
        all.map(str::to_owned)
            .find(|one| one.contains(&format!("rule: \"{id}\"")))
            .unwrap()
    };
    let teams = of("teams");
    assert!(
        teams.contains("distributed_lock_backend=~\\\"builtin\\\""),
        "{teams}"
    );
    assert!(teams.contains("tenant_[^:/]*:billing-[^:/]*([:/].*)?"), "{teams}");
    // Metrics without a label for a prefix would select nothing.
    for id in [
        "one_tenant",
        "one_owner",
        "near_expiry",
        "backend_unreachable",
        "team_losses",
        "team_rejections",
        "team_holds",
        "lease_losses",
    ] {
        let passed = of(id);
        assert!(
            passed.contains(&format!("distributed_lock_alert_active{{rule=\\\"{id}\\\"}}")),
            "{passed}"
        );
        assert!(!passed.contains("        for: "), "{passed}");
    }
    assert!(text.contains("      # Waits too long is off.\n"), "{text}");
    assert!(
        text.contains("not expressible in metrics: it selects owners"),
        "{text}"
    );
    assert!(of("teams").contains(&cli.console.serving.home));
}

#[tokio::test(flavor = "multi_thread")]
async fn shipped_rules_match_a_new_installation_and_fire() {
    // The file equals the program's output, with promtool's own tests of it, and an
    // Alertmanager with the example of its routes.
    let cli = RulesCli::start().await;
    let (code, made, err) = cli
        .rules(&["export", "--builtin", "--format", "prometheus"])
        .await;
    assert_eq!(code, 0, "{err}");
    let remedy = "leasehold rules export --builtin --format prometheus > docs/monitoring/leasehold.rules.yml";
    assert!(made == SHIPPED, "what is shipped is old; make it with: {remedy}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/monitoring");
    let file = |name: &str| folder.join(name).display().to_string();
    accepts(&["check", "rules", &file("leasehold.rules.yml")]);
    accepts(&["test", "rules", &file("leasehold.rules.test.yml")]);
    let options = AlertmanagerOptions {
        config: ROUTES.to_owned(),
    };
    Throwaway::alertmanager(options).await.unwrap();
}

/// Names of the alerts that an Alertmanager inhibits now.
async fn inhibited(alerts_url: &str) -> Vec<String> {
    let alerts: Vec<Value> = reqwest::get(alerts_url).await.unwrap().json().await.unwrap();
    let is_inhibited = |alert: &&Value| alert["status"]["state"] == "suppressed";
    let name = |alert: &Value| alert["labels"]["alertname"].as_str().unwrap().to_owned();
    let mut names: Vec<String> = alerts.iter().filter(is_inhibited).map(name).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn example_routes_mute_only_locks_of_a_silent_backend() {
    // A backend is down and a lock is not renewed: as the rules for Prometheus say it, without labels of either, and as
    // notifications. Locks of another backend, facts about the same one, and a change of access are not muted.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let options = AlertmanagerOptions {
        config: ROUTES.to_owned(),
    };
    let manager = Throwaway::alertmanager(options).await.unwrap();
    let url = format!("{}/api/v2/alerts", manager.url());
    let alerts = json!([
        {"labels": {"alertname": "LeaseholdBackendUnreachable", "rule": "backend_unreachable"}},
        {"labels": {"alertname": "LeaseholdNotRenewing", "rule": "not_renewing"}},
        {"labels": {"alertname": "LeaseholdNearExpiry", "rule": "near_expiry"}},
        {"labels": {"alertname": "LeaseholdFencingRejections", "rule": "fencing_rejections"}},
        {"labels": {"alertname": "AccessChange", "change": "role_granted"}},
        {"labels": {"alertname": "Down", "rule": "backend_unreachable", "backend": "cache"}},
        {"labels": {"alertname": "Silent", "rule": "not_renewing", "backend": "coord", "resource": "a"}},
        {"labels": {"alertname": "Rejections", "rule": "fencing_rejections", "backend": "cache"}},
        {"labels": {"alertname": "ForcedUnlockBreakGlass", "backend": "cache", "resource": "a"}},
        {"labels": {"alertname": "Other lock", "rule": "near_expiry", "backend": "coord", "resource": "b"}},
        {"labels": {"alertname": "Muted by backend", "rule": "long_held", "backend": "cache", "resource": "a"}},
        {"labels": {"alertname": "Muted by lock", "rule": "near_expiry", "backend": "coord", "resource": "a"}},
    ]);
    let sent = reqwest::Client::new().post(&url).json(&alerts).send().await;
    assert_eq!(sent.unwrap().status(), 200);
    let expected = ["Muted by backend", "Muted by lock"];
    eventually("both are muted", async || {
        let muted = inhibited(&url).await;
        expected.iter().all(|name| muted.iter().any(|one| one == name))
    })
    .await;
    assert_eq!(inhibited(&url).await, expected);
}

#[test]
fn an_export_without_rules_is_valid() {
    // Every rule removed.
    assert!(prometheus([].iter(), "https://x").ends_with("    rules:\n      []\n"));
}
