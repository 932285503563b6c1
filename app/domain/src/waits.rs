//! Waits over all backends: which owner waits for which other owner, and the cycles among them.
//!
//! [`graph`] joins owners of different backends by [`identity`] rules only; [`cycles`] finds the
//! deadlocks; [`view`] is what a reader may see of them. Nothing here reads a backend.

pub mod cycles;
pub mod graph;
pub mod identity;
pub mod observed;
pub mod page;
pub mod releases;
pub mod view;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::names::OwnerId;

crate::wire_enum! {
    /// A field that a backend reports of an owner, by which an identity rule recognizes it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum IdentityField {
        /// The owner as stored with the lock.
        Owner = "owner",
        /// `application_name` of a Postgres session.
        ApplicationName = "application_name",
        /// Address of the client of a Postgres session.
        ClientAddress = "client_address",
        /// Role of a Postgres session.
        User = "user",
        /// Id of an etcd lease, or of a ZooKeeper session.
        Session = "session",
    }
}

/// Longest value of a field that is kept, in bytes: a longer one matches no rule.
pub const FIELD_BYTES_MAX: usize = 512;

/// A holder or waiter as one backend identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitParty {
    /// Unique inside the backend: process id with its start, session, lease, owner id.
    pub id: Box<str>,
    pub owner: OwnerId,
    pub fields: Vec<(IdentityField, Box<str>)>,
}

impl WaitParty {
    /// Empty and overlong values are left out: they identify nothing.
    pub fn new<'f>(
        id: impl Into<Box<str>>,
        owner: OwnerId,
        fields: impl IntoIterator<Item = (IdentityField, Option<&'f str>)>,
    ) -> Self {
        let fits = |text: &&str| (1..=FIELD_BYTES_MAX).contains(&text.len());
        let fields = fields
            .into_iter()
            .filter_map(|(field, text)| Some((field, text.filter(fits)?.into())))
            .collect();
        Self {
            id: id.into(),
            owner,
            fields,
        }
    }

    pub fn field(&self, field: IdentityField) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(name, _)| *name == field).map(|(_, text)| &**text)
    }
}
