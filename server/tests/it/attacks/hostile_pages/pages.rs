//! Every page, and every form that answers with one, with the text in each place that takes any.

use super::hostile_console::HostileConsole;
use super::servers::RECEIVER;
use crate::support::routes::segment;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    Admin,
    Viewer,
    /// Without a session.
    Nobody,
}

#[derive(Debug)]
pub(super) enum Ask {
    Get(String),
    Post(String, Vec<(&'static str, String)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// The text must be on the page.
    Text,
    /// The page may leave it out.
    Anything,
}

#[derive(Debug)]
pub(super) struct Page {
    pub(super) by: As,
    pub(super) ask: Ask,
    pub(super) shows: Shows,
}

fn page(by: As, ask: Ask, shows: Shows) -> Page {
    Page { by, ask, shows }
}

fn post(by: As, path: &str, fields: Vec<(&'static str, String)>, shows: Shows) -> Page {
    page(by, Ask::Post(path.to_owned(), fields), shows)
}

pub(super) fn pages(console: &HostileConsole) -> Vec<Page> {
    let mut all: Vec<Page> = Vec::new();
    let text = console.shown_paths();
    all.extend(
        text.into_iter()
            .map(|path| page(As::Admin, Ask::Get(path), Shows::Text)),
    );
    let anything = console.other_paths();
    all.extend(
        anything
            .into_iter()
            .map(|path| page(As::Admin, Ask::Get(path), Shows::Anything)),
    );
    all.extend(signed_out(&console.payload));
    all.extend(forms(console));
    all
}

impl HostileConsole {
    /// Pages that show the text, because it is in their data or URL.
    fn shown_paths(&self) -> Vec<String> {
        let p = segment(&self.payload);
        let mut paths: Vec<String> = self.locks.iter().map(|lock| format!("/locks{lock}")).collect();
        paths.extend(self.unlockable().map(|lock| format!("/unlock{lock}")));
        paths.extend(self.entries.iter().map(|id| format!("/audit/{id}")));
        paths.extend([
            "/".to_owned(),
            "/locks?sort=resource".to_owned(),
            "/locks?prefix=c-".to_owned(),
            format!("/locks?q={p}&prefix={p}"),
            format!("/locks/builtin/none-{p}"),
            "/backends".to_owned(),
            "/fencing".to_owned(),
            format!("/fencing?resource={p}&source={p}&owner={p}"),
            "/alerts".to_owned(),
            "/alerts/rules/mine".to_owned(),
            format!("/alerts/rules/new?condition=contention&prefix={p}"),
            "/audit".to_owned(),
            format!("/audit?actor={p}&prefix={p}&action={p}&outcome={p}&from={p}&backend={p}"),
            format!("/unlocks/{}", self.pending),
            format!("/unlocks/{}", self.released),
            format!("/unlocks?backend=builtin&prefix={p}"),
            self.several.clone(),
            "/settings".to_owned(),
            "/settings/users".to_owned(),
            format!("/settings/users/{}", self.admin_id),
            format!("/settings/users/{p}"),
            "/settings/protected-prefixes".to_owned(),
            // What receivers answered: dead letters.
            "/alerts/receivers".to_owned(),
            format!("/alerts/receivers/{RECEIVER}"),
        ]);
        paths
    }

    fn other_paths(&self) -> Vec<String> {
        let p = segment(&self.payload);
        vec![
            format!("/locks?state={p}&backend={p}&sort={p}"),
            format!("/locks/{p}/{p}"),
            format!("/locks/builtin/{p}?source={p}"),
            format!("/backends?{p}={p}"),
            "/contention".to_owned(),
            "/waits".to_owned(),
            format!("/contention?backend=builtin&prefix={p}&range={p}"),
            format!("/contention?range=1h&by={p}"),
            format!("/contention?backend=builtin&prefix={p}&at={p}"),
            format!("/fencing?range={p}"),
            format!("/alerts/rules/{p}"),
            format!("/alerts/rules/new?condition={p}"),
            format!("/alerts/rules/new?base={p}&name={p}"),
            format!("/alerts/silences/new?resource={p}&backend={p}"),
            format!("/alerts/silences/new?alert={p}"),
            format!("/alerts/receivers/{p}"),
            format!("/alerts?{p}={p}"),
            format!("/audit/{p}"),
            format!("/unlock/{p}/{p}"),
            format!("/unlock/builtin/none-{p}"),
            format!("/unlocks/{p}"),
            format!("/unlocks/bulk?id={p}"),
            format!("/settings?{p}"),
            "/settings/tokens".to_owned(),
            "/settings/roles".to_owned(),
            "/settings/sessions".to_owned(),
            "/docs".to_owned(),
            format!("/docs?q={p}"),
            format!("/docs/{p}"),
            format!("/docs/api/{p}"),
            format!("/{p}"),
        ]
    }
}

/// Without a session: signing in, its errors, and forms that come too late.
fn signed_out(payload: &str) -> Vec<Page> {
    let p = segment(payload);
    let text = || payload.to_owned();
    let get = |path: String, shows| page(As::Nobody, Ask::Get(path), shows);
    let post = |path: &str, fields, shows| post(As::Nobody, path, fields, shows);
    vec![
        get(format!("/sign-in?next=/{p}"), Shows::Anything),
        get(format!("/sign-in?link={p}"), Shows::Anything),
        get(format!("/setup?link={p}"), Shows::Anything),
        // The name of the identity provider, and its response.
        get("/sign-in".to_owned(), Shows::Text),
        get(format!("/sign-in/oidc?next=/{p}"), Shows::Text),
        get(format!("/sign-in/oidc/callback?error={p}&state={p}"), Shows::Text),
        get(format!("/sign-in/oidc/callback?code={p}&state={p}"), Shows::Text),
        post(
            "/sign-in",
            vec![("name", text()), ("password", "wrong".into()), ("next", text())],
            Shows::Text,
        ),
        post(
            "/sign-in",
            vec![("link", text()), ("next", text())],
            Shows::Anything,
        ),
        post(
            "/setup",
            vec![
                ("link", text()),
                ("name", text()),
                ("password", "long enough".into()),
            ],
            Shows::Anything,
        ),
        post(
            &format!("/alerts/silences?{p}={p}"),
            vec![("comment", text()), ("lasts", text())],
            Shows::Text,
        ),
        post(
            "/settings/users",
            vec![("name", text()), ("password", text())],
            Shows::Text,
        ),
    ]
}

/// Rejected forms with their input.
fn forms(console: &HostileConsole) -> Vec<Page> {
    let text = || console.payload.clone();
    let lock = console.unlockable().next().unwrap_or_default();
    let confirm = format!("/unlocks/{}/confirm", console.pending);
    let silence = vec![("comment", text()), (SMUGGLED, text())];
    let no_role = || {
        [
            ("role", String::new()),
            ("backend", String::new()),
            ("prefix", text()),
        ]
    };
    let mut user = vec![("name", text())];
    user.extend(no_role());
    let password = vec![("old", text()), ("password", "short".to_owned())];
    let mut token = vec![("name", text()), ("days", text())];
    token.extend(no_role());
    let protection = vec![("prefix", text()), ("backend", text()), ("protection", text())];
    let unlock = vec![("reason", text()), ("generation", text())];
    let several = vec![("item", text()), ("reason", text()), ("prefix", text())];
    let mut all = vec![
        post(As::Viewer, "/alerts/silences", silence, Shows::Text),
        post(As::Admin, "/settings/users", user, Shows::Text),
        post(As::Admin, "/settings/password", password, Shows::Anything),
        post(
            As::Admin,
            &format!("/settings/users/{}/link", segment(&console.payload)),
            Vec::new(),
            Shows::Text,
        ),
        post(
            As::Admin,
            &format!("/alerts/receivers/{RECEIVER}/test"),
            Vec::new(),
            Shows::Text,
        ),
        post(As::Admin, "/settings/tokens", token, Shows::Text),
        post(As::Admin, "/settings/protected-prefixes", protection, Shows::Text),
        post(As::Admin, &format!("/unlock{lock}"), unlock, Shows::Text),
        post(
            As::Admin,
            &confirm,
            vec![("resource", format!("wrong {}", text()))],
            Shows::Text,
        ),
        post(As::Admin, "/unlocks", several, Shows::Text),
    ];
    all.extend(alert_forms(&console.payload));
    all
}

fn alert_forms(payload: &str) -> Vec<Page> {
    let with = |words: &[(&'static str, &str)], names: &[&'static str]| -> Vec<(&'static str, String)> {
        let words = words.iter().map(|(name, word)| (*name, (*word).to_owned()));
        words
            .chain(names.iter().map(|name| (*name, payload.to_owned())))
            .collect()
    };
    let rule = with(
        &[("act", "save"), ("id", "other"), ("condition", "contention")],
        &[
            "name",
            "prefix",
            "for",
            "severity",
            "backends",
            "receivers",
            "runbook",
            "template",
            "with.waiters",
        ],
    );
    let no_rule = with(&[], &["condition", "id"]);
    let silence = with(&[("act", "save")], &["label1", "value1", "lasts", "comment"]);
    let receiver = with(&[], &["name", "kind", "urls", "secret"]);
    vec![
        post(As::Admin, "/alerts/rules", rule, Shows::Text),
        post(As::Admin, "/alerts/rules", no_rule, Shows::Anything),
        post(As::Admin, "/alerts/silences", silence, Shows::Text),
        post(As::Admin, "/alerts/receivers", receiver, Shows::Text),
    ]
}

/// A name of a field from outside.
const SMUGGLED: &str = "\"><x-added onx=1>";
