//! Rows of the audit page: the steps of one unlock are grouped, and user ids are shown as names.

use std::collections::{HashMap, HashSet};

use app::pages::audit::data::{AuditTableRow, EntryFlag, Join};
use app::pages::audit::outcome_badge::outcome_label;
use domain::audit::{Action, AuditEntry};
use domain::unlock::{Unlock, UnlockState};

use crate::http::state::Services;

/// States of the unlocks whose steps are shown.
pub(super) type UnlocksById = HashMap<String, Unlock>;

impl Services {
    /// # Errors
    /// The store does not answer.
    pub(super) async fn unlocks(&self, rows: &[AuditEntry]) -> Result<UnlocksById, sqlx::Error> {
        let mut ids: Vec<&str> = rows.iter().filter_map(|row| row.unlock_id.as_deref()).collect();
        ids.sort_unstable();
        ids.dedup();
        self.unlocks.load_many(&ids).await
    }

    /// Rows in the given order, except that the steps of each unlock are grouped at its first step.
    pub(super) async fn lines(&self, rows: &[AuditEntry], unlocks: &UnlocksById) -> Vec<AuditTableRow> {
        let names = self.names(rows).await;
        let listed_ids: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let mut lines = Vec::with_capacity(rows.len());
        for group in group_by_unlock(rows) {
            let (last, first) = (group.len() - 1, group.first().copied());
            for (index, row) in group.into_iter().enumerate() {
                let unlock = row.unlock_id.as_ref().and_then(|id| unlocks.get(id));
                let mut line = line(row, &names);
                line.join = match index {
                    _ if last == 0 => Join::Alone,
                    0 => Join::First,
                    index if index == last => Join::Last,
                    _ => Join::Middle,
                };
                if let Some(first) = first.filter(|_| index > 0) {
                    hide_repeated_values(&mut line, first);
                }
                line.flag = unlock.map_or(EntryFlag::Nothing, |unlock| entry_flag(row, unlock));
                line.pair = unlock
                    .and_then(|unlock| related_entry(row, unlock))
                    .filter(|(_, other)| !listed_ids.contains(other.to_string().as_str()));
                lines.push(line);
            }
        }
        lines
    }

    /// Names of the approvers by id. Tokens are read only if an approver is not a user.
    async fn names(&self, rows: &[AuditEntry]) -> HashMap<String, String> {
        let directory = self.directory();
        let approvers = rows.iter().filter_map(|row| row.approver_id.as_deref());
        let (mut names, mut others) = (HashMap::new(), Vec::new());
        for id in approvers {
            match directory.users.get(id) {
                Some(user) => drop(names.insert(id.to_owned(), user.name.clone())),
                None => others.push(id),
            }
        }
        if !others.is_empty()
            && let Ok(tokens) = self.auth.identity.tokens().await
        {
            let known = tokens
                .into_iter()
                .filter(|token| others.contains(&token.id.as_str()));
            names.extend(known.map(|token| (token.id, token.name)));
        }
        names
    }
}

fn line(row: &AuditEntry, names: &HashMap<String, String>) -> AuditTableRow {
    let action = Action::parse(&row.action);
    let approver = row.approver_id.as_ref();
    AuditTableRow {
        id: row.id.clone(),
        at: row.created_at,
        actor: row.actor_name.clone(),
        role: row.role.clone(),
        action: action.map_or_else(|| row.action.clone(), |action| action.label().to_owned()),
        phase: (action == Some(Action::ForceUnlock)).then(|| row.phase.clone()),
        outcome: row.outcome.clone(),
        backend: row.backend.clone(),
        resource: row.resource.clone(),
        about: object_name(row),
        reason: row.reason.clone(),
        approver: approver.map(|id| names.get(id).unwrap_or(id).clone()),
        join: Join::Alone,
        flag: EntryFlag::Nothing,
        pair: None,
    }
}

/// Name of the object of an entry without a lock: a user, a token, a rule, a receiver, a prefix.
fn object_name(row: &AuditEntry) -> Option<String> {
    if row.resource.is_some() || row.backend.is_some() {
        return None;
    }
    let objects = [row.after.as_deref(), row.before.as_deref()];
    let objects = objects.into_iter().flatten();
    let mut objects = objects.filter_map(|json| serde_json::from_str::<serde_json::Value>(json).ok());
    objects.find_map(|json| {
        let mut names = ["name", "receiver", "rule", "prefix"].into_iter();
        names.find_map(|member| {
            json[member]
                .as_str()
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
        })
    })
}

/// Values that all steps of one unlock share are shown only at its first step.
fn hide_repeated_values(line: &mut AuditTableRow, first: &AuditEntry) {
    if line.resource == first.resource && line.backend == first.backend {
        (line.resource, line.backend) = (None, None);
    }
    if line.reason == first.reason {
        line.reason = None;
    }
}

/// Rows of one unlock in one group, groups in the order of their first rows.
fn group_by_unlock(rows: &[AuditEntry]) -> Vec<Vec<&AuditEntry>> {
    let mut groups: Vec<Vec<&AuditEntry>> = Vec::new();
    let mut group_indexes: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        match row.unlock_id.as_deref() {
            Some(id) => {
                let index = *group_indexes.entry(id).or_insert(groups.len());
                match groups.get_mut(index) {
                    Some(group) => group.push(row),
                    None => groups.push(vec![row]),
                }
            }
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn entry_seq(row: &AuditEntry) -> i64 {
    row.id.parse().unwrap_or_default()
}

fn entry_flag(row: &AuditEntry, unlock: &Unlock) -> EntryFlag {
    let is_open = unlock.state == UnlockState::OutcomeUnknown;
    let is_last = unlock.outcome_entry.or(unlock.act_entry) == Some(entry_seq(row));
    let break_glass = unlock.break_glass.as_ref();
    let is_unreviewed = break_glass.is_some_and(|break_glass| break_glass.review.is_none());
    if is_open && is_last {
        EntryFlag::Open
    } else if is_unreviewed && unlock.act_entry == Some(entry_seq(row)) {
        EntryFlag::NotReviewed
    } else {
        EntryFlag::Nothing
    }
}

/// Text and entry of the link to a related entry: from an intent to its outcome, from an act with an unknown outcome to the
/// outcome that was found later, from every other entry to its intent.
fn related_entry(row: &AuditEntry, unlock: &Unlock) -> Option<(String, i64)> {
    let seq = entry_seq(row);
    let is_first = seq == unlock.intent_entry;
    let was_unknown = row.outcome == UnlockState::OutcomeUnknown.as_str();
    match unlock.outcome_entry {
        Some(outcome) if is_first => Some((
            format!("{}, entry {outcome}", outcome_label(unlock.state.as_str())),
            outcome,
        )),
        Some(outcome) if was_unknown && outcome != seq => {
            let found = outcome_label(unlock.state.as_str());
            Some((format!("determined later: {found}, entry {outcome}"), outcome))
        }
        None if is_first => unlock.act_entry.map(|act| (format!("begun, entry {act}"), act)),
        _ => Some((
            format!("intent, entry {}", unlock.intent_entry),
            unlock.intent_entry,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, unlock: Option<&str>) -> AuditEntry {
        AuditEntry {
            id: id.to_owned(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            action: "FORCE_UNLOCK".to_owned(),
            phase: "outcome".to_owned(),
            outcome: "released".to_owned(),
            actor_id: String::new(),
            actor_name: String::new(),
            role: None,
            backend: None,
            source: None,
            resource: None,
            unlock_id: unlock.map(str::to_owned),
            reason: None,
            approver_id: None,
            before: None,
            after: None,
            ip: None,
            user_agent: None,
            request_id: None,
            trace_id: None,
            prev_hash: String::new(),
            hash: String::new(),
        }
    }

    #[test]
    fn steps_of_an_unlock_are_grouped_at_the_first() {
        // Two unlocks that ran at the same time, with a sign-in between them.
        let rows = [
            row("6", Some("a")),
            row("5", Some("b")),
            row("4", None),
            row("3", Some("a")),
            row("2", Some("b")),
            row("1", None),
        ];
        let ids: Vec<Vec<&str>> = group_by_unlock(&rows)
            .iter()
            .map(|group| group.iter().map(|row| row.id.as_str()).collect())
            .collect();
        assert_eq!(ids, [vec!["6", "3"], vec!["5", "2"], vec!["4"], vec!["1"]]);
    }

    #[test]
    fn an_entry_without_a_lock_names_its_subject() {
        // The result comes first; an entry of a lock has its name already, and some entries have no object.
        let object_name = |before: Option<&str>, after: Option<&str>, resource: Option<&str>| {
            super::object_name(&AuditEntry {
                before: before.map(str::to_owned),
                after: after.map(str::to_owned),
                resource: resource.map(str::to_owned),
                ..row("1", None)
            })
        };
        let (old, new) = (Some(r#"{"name":"old"}"#), Some(r#"{"id":"7","name":"new"}"#));
        assert_eq!(object_name(old, new, None).as_deref(), Some("new"));
        assert_eq!(
            object_name(old, Some(r#"{"grants":[]}"#), None).as_deref(),
            Some("old")
        );
        assert_eq!(
            object_name(None, Some(r#"{"receiver":"pager"}"#), None).as_deref(),
            Some("pager")
        );
        assert_eq!(object_name(old, new, Some("a:b")), None);
        assert_eq!(object_name(None, Some(r#"{"name":7}"#), None), None);
        assert_eq!(object_name(Some("no JSON"), None, None), None);
    }
}
