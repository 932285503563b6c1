//! Pages of `/v1/alerts`. A cursor is the place of the last alert in the order of the list.

use std::cmp::Reverse;

use domain::alerts::AlertSeverity;
use domain::lease::ValidationError;
use domain::limits::{PAGE_BYTES_MAX, PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX};

use crate::alerts::{AlertPosition, OpenAlert, path};

/// Query of one page.
pub(super) struct PageQuery {
    limit: usize,
    after: Option<AlertPosition>,
}

impl PageQuery {
    /// # Errors
    /// Names the first field that is invalid or unknown.
    pub(super) fn parse(query: &str) -> Result<Self, ValidationError> {
        let mut page = Self {
            limit: PAGE_ROWS_DEFAULT as usize,
            after: None,
        };
        for (field, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*field {
                "limit" => page.limit = limit(&value)?,
                "cursor" => page.after = Some(cursor(&value)?),
                _ => {
                    return Err(ValidationError::new(
                        &*field,
                        "is not a parameter; allowed are limit and cursor",
                    ));
                }
            }
        }
        Ok(page)
    }

    /// The alerts of this page, at least one, and the cursor of the next page, if there is one.
    pub(super) fn take(&self, open: Vec<OpenAlert>) -> (Vec<OpenAlert>, Option<String>) {
        let is_after = |open: &OpenAlert| self.after.is_none_or(|after| open.position() > after);
        let mut rest = open.into_iter().filter(is_after).peekable();
        let (mut alerts, mut bytes) = (Vec::new(), 0);
        while let Some(next) = rest.peek() {
            bytes += size_of_texts(next);
            if !alerts.is_empty() && (alerts.len() == self.limit || bytes > PAGE_BYTES_MAX) {
                break;
            }
            alerts.extend(rest.next());
        }
        let has_more = rest.peek().is_some();
        let next_cursor = alerts.last().filter(|_| has_more).map(cursor_after);
        (alerts, next_cursor)
    }
}

/// Bytes of the texts that are as long as the name of the lock or of its owner.
fn size_of_texts(open: &OpenAlert) -> usize {
    let labels = open.labels.values().map(String::len).sum::<usize>();
    labels + open.kept.alert.why.len() + path(&open.kept.alert.subject).len()
}

fn cursor_after(last: &OpenAlert) -> String {
    let (is_pending, severity, Reverse(since), id) = last.position();
    format!("{}.{}.{since}.{id}", u8::from(is_pending), severity.as_str())
}

fn limit(value: &str) -> Result<usize, ValidationError> {
    let number = value.parse::<u32>().ok();
    let number = number.filter(|number| (1..=PAGE_ROWS_MAX).contains(number));
    let number = number.map(|number| number as usize);
    number.ok_or_else(|| ValidationError::new("limit", format!("must be 1 to {PAGE_ROWS_MAX}")))
}

fn cursor(value: &str) -> Result<AlertPosition, ValidationError> {
    let parts: Vec<&str> = value.split('.').collect();
    let position = match parts[..] {
        [phase @ ("0" | "1"), severity, since, id] => AlertSeverity::parse(severity)
            .zip(since.parse().ok())
            .zip(id.parse().ok())
            .map(|((severity, since), id)| (phase == "1", severity, Reverse(since), id)),
        _ => None,
    };
    position.ok_or_else(|| {
        ValidationError::new(
            "cursor",
            "is not a cursor of this API; use `nextCursor` of the previous page",
        )
    })
}
