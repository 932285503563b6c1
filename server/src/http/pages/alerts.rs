//! `/alerts`: data of the alerts page, and the forms of alerts and silences. The rule editor is in `rule.rs`, silences are in
//! `silences.rs`, the grouping in `groups.rs`, resolved alerts in `resolved.rs`. Handlers parse a form, call `alerts`, and
//! redirect or return the form with its errors.

mod groups;
mod resolved;
pub(in crate::http) mod rule;
pub(in crate::http) mod silences;

use app::console::{ConsoleError, ConsoleFuture};
use app::forms::reply::FormReply;
use app::pages::alerts::alert_filter::AlertFilter;
use app::pages::alerts::data::{
    AlertsData, AlertsPort, Deliveries, DeliveryState, HISTORY_MS, LastDelivery, RuleLine, SilencePreview,
};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::{Permission, Visible};
use domain::alerts::Rule;

use self::groups::Grouping;
use super::caller_data::{CallerData, unavailable};
use super::form_request::FormRequest;
use crate::alerts::{AlertError, AlertSelection, OpenAlert};
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::Principal;
use crate::notify::{self, DeliveryFilter, ReceiverView};

const PAGE: &str = "/alerts";
const DELIVERIES_MAX: i64 = 200;

const STORE_SILENT: &str = "The console's store does not answer: alerts cannot be read.";

impl AlertsPort for CallerData {
    fn alerts(&self, search: String) -> ConsoleFuture<'_, AlertsData> {
        Box::pin(async move { self.state.alerts_data(&self.who, &search).await })
    }

    fn silence_preview(&self, search: String) -> ConsoleFuture<'_, SilencePreview> {
        Box::pin(async move { self.state.silence_preview(&self.who, &search).await })
    }
}

impl Services {
    async fn alerts_data(&self, who: &Principal, search: &str) -> Result<AlertsData, ConsoleError> {
        let filter = AlertFilter::parse(search).map_err(ConsoleError::BadQuery)?;
        let read = self.read_alerts(who, &filter).await;
        let data = read.map_err(|error| {
            tracing::warn!("alerts cannot be read: {error}");
            unavailable(STORE_SILENT)
        })?;
        let deliveries = match who.may_anywhere(Permission::Administer) {
            true => self.last_deliveries().await,
            false => None,
        };
        Ok(AlertsData { deliveries, ..data })
    }

    async fn read_alerts(&self, who: &Principal, filter: &AlertFilter) -> Result<AlertsData, sqlx::Error> {
        let visible = Visible::to(&who.grants);
        let now = self.now();
        let open = self.alerts.open(&visible).await?;
        let ended = self.alerts.ended_since(&visible, now - HISTORY_MS).await?;
        let rules = self.alerts.visible_rules(&visible).await?;
        let silences = self.alerts.silences().await?;
        let resolved = self.resolved_rows(&visible, filter).await?;
        let may_act = who.may_anywhere(Permission::Unlock);
        let rule_lines = rules.iter().map(|stored| rule_line(&stored.rule, &open));
        let silence_rows = silences::rows(&silences, &visible, may_act);
        let grouping = Grouping {
            open: &open,
            ended: &ended,
            filter,
            may_act,
            now,
        };
        Ok(AlertsData {
            rule_lines: rule_lines.collect(),
            resolved,
            silences: silence_rows,
            now,
            may_act,
            may_edit: who.may_anywhere(Permission::Administer),
            is_limited: !visible.is_everything(),
            ..grouping.data()
        })
    }

    /// None where they cannot be read: the receivers' page says why.
    async fn last_deliveries(&self) -> Option<Deliveries> {
        let receivers = self.notifier.receivers().await.ok()?;
        let filter = DeliveryFilter {
            limit: Some(DELIVERIES_MAX),
            ..DeliveryFilter::default()
        };
        let messages = self.notifier.deliveries(&filter).await.ok()?;
        let last = receivers
            .iter()
            .map(|receiver| last_delivery(receiver, &messages));
        Some(Deliveries {
            last: last.collect(),
            dead: receivers.iter().map(|receiver| receiver.dead).sum(),
        })
    }
}

fn last_delivery(receiver: &ReceiverView, messages: &[notify::Delivery]) -> LastDelivery {
    let of_receiver = messages
        .iter()
        .filter(|message| message.receiver == receiver.name);
    let Some(message) = of_receiver.max_by_key(|message| message.created_at) else {
        // Its last message may be past its retention, or older than those that are read.
        let (state, at) = match (receiver.last_ok_at, receiver.last_fault_at) {
            (ok, Some(fault)) if receiver.dead > 0 && ok < Some(fault) => (DeliveryState::Dead, fault),
            (Some(ok), _) => (DeliveryState::Delivered, ok),
            (None, _) => (DeliveryState::Nothing, 0),
        };
        return LastDelivery {
            receiver: receiver.name.clone(),
            state,
            at,
            attempts: 0,
            next_at: 0,
            answer: String::new(),
        };
    };
    LastDelivery {
        receiver: receiver.name.clone(),
        state: match message.state {
            notify::DeliveryState::Delivered => DeliveryState::Delivered,
            notify::DeliveryState::Pending => DeliveryState::Retrying,
            notify::DeliveryState::Dead => DeliveryState::Dead,
        },
        at: message.ended_at.unwrap_or(message.created_at),
        attempts: message.attempts,
        next_at: message.next_at,
        answer: message.answer.clone().unwrap_or_default(),
    }
}

fn rule_line(rule: &Rule, open: &[OpenAlert]) -> RuleLine {
    let firing = open
        .iter()
        .filter(|open| open.kept.alert.rule == rule.id && open.kept.alert.is_firing());
    RuleLine {
        id: rule.id.to_string(),
        name: rule.name.clone(),
        severity: rule.severity,
        sentence: rule.condition.sentence(),
        is_enabled: rule.is_enabled,
        firing: u32::try_from(firing.count()).unwrap_or(u32::MAX),
    }
}

/// Status and sentence of a refusal.
pub(super) fn error_text(error: &AlertError) -> (StatusCode, String) {
    match error {
        AlertError::Invalid(_) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "A field below is invalid; its error is shown there.".to_owned(),
        ),
        AlertError::NotFound(what) => (
            StatusCode::NOT_FOUND,
            format!("This {what} does not exist any more."),
        ),
        AlertError::Changed { now } => (
            StatusCode::CONFLICT,
            format!("Version {now} has been saved in the meantime. Reload the rule and change that version."),
        ),
        AlertError::TooMany { .. } => (StatusCode::CONFLICT, format!("Nothing was done: {error}.")),
        AlertError::Forbidden(why) => (StatusCode::FORBIDDEN, format!("Nothing was done: {why}.")),
        AlertError::Store(error) => {
            tracing::warn!("alerts cannot be read or written: {error}");
            let text =
                "Nothing was changed, because the console's store does not answer. Try again in a moment.";
            (StatusCode::SERVICE_UNAVAILABLE, text.to_owned())
        }
    }
}

/// The reply to a form with its errors at their fields.
pub(super) fn reply(error: &AlertError) -> (StatusCode, FormReply) {
    let (status, why) = error_text(error);
    let faults = match error {
        AlertError::Invalid(faults) => faults.as_slice(),
        _ => &[],
    };
    let faults = faults.iter().map(|fault| {
        let text = format!("It {}: {}.", fault.why, fault.remedy);
        (fault.field.to_string(), text)
    });
    let reply = FormReply {
        alert: Some(why),
        faults: faults.collect(),
        ..FormReply::default()
    };
    (status, reply)
}

async fn respond<T>(
    state: &AppState,
    form: FormRequest,
    result: Result<T, AlertError>,
    next: &str,
) -> Response {
    match result {
        Ok(_) => form.moved(next),
        Err(error) => {
            let (status, reply) = reply(&error);
            form.reply(state, PAGE, status, reply).await
        }
    }
}

/// One alert by `id`, or a group by its key.
fn selection(form: &FormRequest) -> AlertSelection {
    match form.form.text("group").as_str() {
        "" => AlertSelection::One(form.form.text("id").parse().unwrap_or(0)),
        group => AlertSelection::Group(group.to_owned()),
    }
}

pub(in crate::http) async fn ack(State(state): State<AppState>, form: FormRequest) -> Response {
    let note = form.form.text("note");
    let result = state
        .alerts
        .acknowledge(&form.who, &selection(&form), &note)
        .await;
    respond(&state, form, result, "/alerts?acked").await
}

pub(in crate::http) async fn unack(State(state): State<AppState>, form: FormRequest) -> Response {
    let result = state
        .alerts
        .withdraw_acknowledgement(&form.who, &selection(&form))
        .await;
    respond(&state, form, result, "/alerts?unacked").await
}

pub(in crate::http) async fn end(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let result = state.alerts.end_silence(&form.who, &id).await;
    respond(&state, form, result, "/alerts?ended").await
}

pub(in crate::http) async fn extend(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let duration = form.form.text("lasts");
    let result = state.alerts.extend_silence(&form.who, &id, &duration).await;
    respond(&state, form, result, "/alerts?extended").await
}

pub(in crate::http) async fn remove(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let result = state.alerts.remove_rule(&form.who, &id).await;
    respond(&state, form, result, "/alerts?removed").await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::ReceiverKind;

    #[test]
    fn a_receiver_without_a_listed_message_had_its_delivery() {
        let last = |last_ok_at, last_fault_at, dead| {
            let receiver = ReceiverView {
                name: "ops".to_owned(),
                kind: ReceiverKind::Webhook,
                urls: Vec::new(),
                has_secret: true,
                locked: None,
                created_at: 0,
                created_by: "ada".to_owned(),
                last_ok_at,
                last_fault_at,
                last_fault: None,
                waiting: 0,
                dead,
            };
            let last = last_delivery(&receiver, &[]);
            (last.state, last.at)
        };
        assert_eq!(last(Some(5), Some(3), 1), (DeliveryState::Delivered, 5));
        assert_eq!(last(Some(5), Some(7), 1), (DeliveryState::Dead, 7));
        assert_eq!(last(None, None, 0), (DeliveryState::Nothing, 0));
    }
}
