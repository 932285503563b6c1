//! Silences: rows of the alerts page, the preview of a draft, and the form that creates a silence.

use std::collections::BTreeSet;

use app::console::ConsoleError;
use app::pages::alerts::data::{AlertMember, SilencePreview, SilenceRow};
use app::pages::silence::silence_draft::{self, SilenceFields};
use axum::extract::State;
use axum::response::Response;
use domain::access::{Permission, Visible};
use domain::alerts::{LABELS, Labels, Silence, SilenceDraft};

use super::groups::shown_name;
use super::reply;
use crate::alerts::{AlertError, OpenAlert, path};
use crate::http::pages::caller_data::unavailable;
use crate::http::pages::form_request::FormRequest;
use crate::http::state::{AppState, Services};
use crate::identity::Principal;

/// Alerts of a preview.
const LISTED_MAX: usize = 50;

/// Silences may contain names of any lock, so only readers who may see everything get them.
pub(super) fn rows(silences: &[Silence], visible: &Visible, may_end: bool) -> Vec<SilenceRow> {
    let listed = silences.iter().filter(|_| visible.is_everything());
    listed
        .map(|silence| SilenceRow {
            id: silence.id.clone(),
            matchers: silence
                .matchers
                .iter()
                .map(|matcher| shown_name(&matcher.display_name()))
                .collect::<Vec<_>>()
                .join(", "),
            clone_path: clone_path(silence),
            comment: silence.comment.clone(),
            by: silence.by.clone(),
            ends_at: silence.ends_at,
            suppressed: silence.suppressed,
            may_end,
        })
        .collect()
}

fn clone_path(silence: &Silence) -> String {
    let matchers = silence
        .matchers
        .iter()
        .map(|matcher| (matcher.label.to_owned(), matcher.value.as_str().to_owned()));
    let comment = [("comment".to_owned(), silence.comment.clone())];
    app::links::with_query(silence_draft::PATH, matchers.chain(comment))
}

/// URL of a new silence that matches these labels. `*` in a value is a wildcard: the form lists what it covers.
pub(super) fn new_path(labels: &Labels, comment: &str) -> String {
    let has_resource = labels.contains_key("resource");
    // The prefix of a lock is implied by its name, the severity by its rule.
    let is_needed = |name: &str| name != "severity" && !(has_resource && name == "prefix");
    let matchers = LABELS
        .into_iter()
        .filter(|name| is_needed(name))
        .filter_map(|name| Some((name, labels.get(name)?.as_str())));
    let comment = [("comment", comment)]
        .into_iter()
        .filter(|(_, text)| !text.is_empty());
    app::links::with_query(silence_draft::PATH, matchers.chain(comment))
}

fn draft(fields: &SilenceFields, now: i64) -> SilenceDraft {
    SilenceDraft {
        matchers: fields.matchers.clone(),
        lasts: fields.lasts(now),
        comment: fields.comment.clone(),
    }
}

impl Services {
    /// `search` are the fields of the form as a query string.
    pub(super) async fn silence_preview(
        &self,
        who: &Principal,
        search: &str,
    ) -> Result<SilencePreview, ConsoleError> {
        let fields = SilenceFields::from_search(search);
        let visible = Visible::to(&who.grants);
        let marked = match self
            .alerts
            .would_silence(&visible, &draft(&fields, self.now()))
            .await
        {
            Ok(marked) => marked,
            Err(AlertError::Invalid(faults)) => {
                let fault = faults
                    .first()
                    .map(|fault| format!("{}: {}", fault.why, fault.remedy));
                return Ok(SilencePreview {
                    fault,
                    now: self.now(),
                    ..SilencePreview::default()
                });
            }
            Err(_) => return Err(unavailable(super::STORE_SILENT)),
        };
        let receivers = match who.may_anywhere(Permission::Administer) {
            true => self.affected_receivers(&marked).await,
            false => Vec::new(),
        };
        let groups = |is_matched: bool| {
            let firing = marked.iter().filter(|(open, _)| open.kept.alert.is_firing());
            let groups = firing.filter(|(_, covered)| *covered || !is_matched);
            let groups: BTreeSet<String> = groups.map(|(open, _)| open.group()).collect();
            groups.len()
        };
        let covered = || marked.iter().filter(|(_, is_matched)| *is_matched);
        let total = covered().filter(|(open, _)| open.kept.alert.is_firing()).count();
        Ok(SilencePreview {
            fault: None,
            alerts: covered().take(LISTED_MAX).map(|(open, _)| member(open)).collect(),
            total: u32::try_from(total).unwrap_or(u32::MAX),
            extent: extent(groups(true), groups(false), covered().count()),
            receivers,
            now: self.now(),
        })
    }

    /// Receivers of the covered alerts, each with whether an alert outside of the silence still reaches it.
    async fn affected_receivers(&self, marked: &[(OpenAlert, bool)]) -> Vec<(String, bool)> {
        let all = self.notifier.receivers().await.unwrap_or_default();
        let reaches = |name: &str, expected: bool| {
            marked.iter().any(|(open, is_covered)| {
                let receivers = &open.rule.receivers;
                let is_addressed = receivers.is_empty() || receivers.iter().any(|receiver| receiver == name);
                *is_covered == expected && is_addressed && open.kept.alert.is_firing() && !open.is_silenced
            })
        };
        let affected = all.into_iter().filter(|receiver| reaches(&receiver.name, true));
        affected
            .map(|receiver| {
                let is_notified = reaches(&receiver.name, false);
                (receiver.name, is_notified)
            })
            .collect()
    }
}

/// The covered groups, and how many of the covered alerts the list contains, if not all.
fn extent(groups: usize, groups_total: usize, alerts: usize) -> String {
    let groups = format!("{groups} of {groups_total} groups");
    if alerts <= LISTED_MAX {
        return groups;
    }
    format!("{groups}, {LISTED_MAX} of {alerts} alerts listed")
}

/// Without a link to a new silence.
pub(super) fn member(open: &OpenAlert) -> AlertMember {
    let alert = &open.kept.alert;
    AlertMember {
        id: alert.id,
        subject: shown_name(&alert.subject.display_name()),
        path: path(&alert.subject),
        owner: alert.owner.clone(),
        why: alert.why.clone(),
        since: alert.since(),
        is_firing: alert.is_firing(),
        is_silenced: open.is_silenced,
        acked_by: open.kept.acked.as_ref().map(|(_, by, _)| by.clone()),
        silence_path: String::new(),
    }
}

pub(in crate::http) async fn post_silence(State(state): State<AppState>, form: FormRequest) -> Response {
    let fields = SilenceFields::from_fields(form.form.fields());
    if form.form.text("act") == "preview" {
        // The page lists what the draft covers.
        let reply = app::forms::reply::FormReply::default();
        let status = axum::http::StatusCode::OK;
        return form.reply(&state, silence_draft::PATH, status, reply).await;
    }
    match state
        .alerts
        .silence(&form.who, &draft(&fields, state.now()))
        .await
    {
        Ok(_) => form.moved("/alerts?silenced"),
        Err(error) => {
            let (status, reply) = reply(&error);
            form.reply(&state, silence_draft::PATH, status, reply).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_that_lists_only_some_alerts_says_so() {
        assert_eq!(extent(1, 2, LISTED_MAX), "1 of 2 groups");
        assert_eq!(extent(1, 2, 70), "1 of 2 groups, 50 of 70 alerts listed");
    }
}
