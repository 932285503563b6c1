//! Fields of the silence form: matchers, length, comment. Read from a form or from the URL that
//! starts a silence.

use domain::alerts::LABELS;
use domain::alerts::limits::MATCHERS_MAX;

use crate::links;

pub const PATH: &str = "/alerts/silences/new";
/// Path that the form is sent to.
pub const ACTION: &str = "/alerts/silences";

/// Lengths to pick: value of the field, label. The last is typed.
pub const LENGTHS: [(&str, &str); 4] = [
    ("30m", "30 min"),
    ("2h", "2 h"),
    (UNTIL_NINE, "until 09:00"),
    (OWN, "custom…"),
];
pub const UNTIL_NINE: &str = "until9";
pub const OWN: &str = "own";

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// 09:00 UTC of a day: the value of [`NINE`] without a script.
pub const NINE_UTC_MS: i64 = 9 * 60 * MINUTE_MS;
/// Field of a moment of 09:00 of the reader.
pub const NINE: &str = "nine";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SilenceFields {
    /// Label and value.
    pub matchers: Vec<(String, String)>,
    /// A value of [`LENGTHS`].
    pub length: String,
    /// Typed length.
    pub own: String,
    pub comment: String,
    /// The next 09:00 of the reader when the page was opened, in milliseconds since 1970.
    pub nine: i64,
}

/// Names of the fields of one matcher.
pub fn matcher_names(index: usize) -> (String, String) {
    (format!("label{}", index + 1), format!("value{}", index + 1))
}

impl SilenceFields {
    /// From the fields of the form. A form without a picked length has a typed one.
    pub fn from_fields(fields: &[(String, String)]) -> Self {
        let find = |name: &str| {
            let found = fields.iter().find(|(field, _)| field == name);
            found.map_or("", |(_, value)| value.trim())
        };
        let matchers = (0..MATCHERS_MAX).filter_map(|index| {
            let (label, value) = matcher_names(index);
            let (label, value) = (find(&label), find(&value));
            (!label.is_empty() || !value.is_empty()).then(|| (label.to_owned(), value.to_owned()))
        });
        Self {
            matchers: matchers.collect(),
            length: match find("length") {
                "" => OWN.to_owned(),
                length => length.to_owned(),
            },
            own: find("lasts").to_owned(),
            comment: find("comment").to_owned(),
            nine: find(NINE).parse().unwrap_or(NINE_UTC_MS),
        }
    }

    /// From a query string: fields of the form, or `label=value` for each matcher.
    pub fn from_search(search: &str) -> Self {
        let pairs = links::pairs(search);
        if pairs.iter().any(|(name, _)| name == "label1") {
            return Self::from_fields(&pairs);
        }
        let is_matcher =
            |(name, value): &&(String, String)| LABELS.contains(&name.as_str()) && !value.is_empty();
        let matchers = pairs.iter().filter(is_matcher).take(MATCHERS_MAX);
        let comment = pairs.iter().find(|(name, _)| name == "comment");
        Self {
            matchers: matchers.cloned().collect(),
            length: "2h".to_owned(),
            nine: NINE_UTC_MS,
            comment: comment.map(|(_, value)| value.clone()).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The fields as a query string.
    pub fn to_search(&self) -> String {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (index, (label, value)) in self.matchers.iter().enumerate() {
            let (label_name, value_name) = matcher_names(index);
            pairs.push((label_name, label.clone()));
            pairs.push((value_name, value.clone()));
        }
        links::with_query("", pairs)
    }

    /// The length as a silence reads it. `now` is milliseconds since 1970.
    pub fn lasts(&self, now: i64) -> String {
        match self.length.as_str() {
            UNTIL_NINE => format!("{}ms", until_nine(now, self.nine)),
            OWN => self.own.clone(),
            length => length.to_owned(),
        }
    }
}

/// Milliseconds until `nine`, at least a minute. If `nine` has passed or is more than a day away, until the next moment of the
/// same hour. On a day with a change of clocks the result may be up to an hour longer than a day.
pub fn until_nine(now: i64, nine: i64) -> i64 {
    let left = nine.saturating_sub(now);
    if (MINUTE_MS..=DAY_MS + HOUR_MS).contains(&left) {
        return left;
    }
    let left = left.rem_euclid(DAY_MS);
    if left < MINUTE_MS { left + DAY_MS } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_from_the_url_of_an_alert_or_from_the_form() {
        let url = SilenceFields::from_search("?rule=long_held&backend=cache&other=1&comment=a+drill");
        let field = |label: &str, value: &str| (label.to_owned(), value.to_owned());
        assert_eq!(
            url.matchers,
            [field("rule", "long_held"), field("backend", "cache")]
        );
        assert_eq!((url.length.as_str(), url.comment.as_str()), ("2h", "a drill"));
        assert_eq!(
            SilenceFields::from_search(&url.to_search()).matchers,
            url.matchers
        );
        let fields = SilenceFields::from_fields(&[field("label1", "rule"), field("lasts", "3d")]);
        assert_eq!(fields.lasts(0), "3d");
    }

    #[test]
    fn a_silence_until_nine_ends_at_the_next_nine_of_the_reader() {
        // UTC, without a script.
        assert_eq!(until_nine(0, NINE_UTC_MS), 9 * HOUR_MS);
        assert_eq!(until_nine(9 * HOUR_MS, NINE_UTC_MS), DAY_MS);
        assert_eq!(until_nine(10 * HOUR_MS, NINE_UTC_MS), 23 * HOUR_MS);
        assert_eq!(until_nine(400 * DAY_MS, NINE_UTC_MS), 9 * HOUR_MS);
        // Two hours ahead of UTC; on a page that was opened before 09:00.
        assert_eq!(until_nine(0, 7 * HOUR_MS), 7 * HOUR_MS);
        assert_eq!(until_nine(8 * HOUR_MS, 7 * HOUR_MS), 23 * HOUR_MS);
        assert!(until_nine(i64::MAX, i64::MIN) >= MINUTE_MS);
    }

    #[test]
    fn a_silence_until_nine_may_last_25_hours() {
        // 2026-10-24 09:30 in Berlin, UTC+2; the next day has 25 hours.
        let now = 1_792_827_000_000;
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let nine = (now + DAY_MS + HOUR_MS / 2).to_string();
        let fields = SilenceFields::from_fields(&[field("length", UNTIL_NINE), field(NINE, &nine)]);
        assert_eq!(fields.lasts(now), format!("{}ms", DAY_MS + HOUR_MS / 2));
    }
}
