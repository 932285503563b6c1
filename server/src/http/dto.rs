//! JSON as the API's contract has it. Null fields are named in `unknown` or `absent`; times are RFC 3339 in UTC.
//!
//! These types exist for the wire alone: nothing but handlers makes them, nothing reads them back.

pub mod alerts;
pub mod audit;
pub mod backend;
pub mod cluster;
pub mod lock;
pub mod lock_detail;
pub mod page;
pub mod prefix;
pub mod receivers;
pub mod unlock;
pub mod users;

use std::collections::BTreeMap;

use domain::reported::Reported;

/// Gathers why fields are null.
#[derive(Debug, Default)]
struct Missing {
    unknown: BTreeMap<String, String>,
    absent: BTreeMap<String, String>,
}

impl Missing {
    /// The value, or null with its reason kept under the field's name.
    fn take<T>(&mut self, field: &str, known: Reported<T>) -> Option<T> {
        match known {
            Reported::Value(value) => Some(value),
            Reported::Unknown(why) => {
                self.unknown.insert(field.to_owned(), why.into_owned());
                None
            }
            Reported::NotApplicable(why) => {
                self.absent.insert(field.to_owned(), why.into_owned());
                None
            }
        }
    }
}
