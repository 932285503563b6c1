//! A configured lease table: name, preset, and columns by role. Not yet compared with the
//! database; see `catalog`.

use domain::duration::millis;
use domain::names::Source;
use domain::safety::{Safety, SafetyClass};

use super::ident::{self, Name};
use super::preset::{self, Preset};
use crate::BackendError;
use config::postgres::{LeaseTableConfig, LeaseTableRelease, TimeUnit};

domain::wire_enum! {
    /// Role of a column.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Role {
        Resource = "resource",
        Owner = "owner",
        LeaseId = "lease_id",
        FencingToken = "fencing_token",
        ExpiresAt = "expires_at",
        CreatedAt = "created_at",
        UpdatedAt = "updated_at",
        /// Time of the last heartbeat, in place of `updated_at`.
        Heartbeat = "heartbeat",
        /// A flag: false, 0, an empty text or NULL is free.
        Locked = "locked",
    }
}

impl Role {
    pub(super) const fn is_time(self) -> bool {
        matches!(
            self,
            Self::ExpiresAt | Self::CreatedAt | Self::UpdatedAt | Self::Heartbeat
        )
    }
}

/// One `[[backend.lease_table]]`.
#[derive(Debug, Clone)]
pub(super) struct LeaseTable {
    pub(super) source: Source,
    pub(super) schema: Name,
    pub(super) name: Name,
    pub(super) preset: &'static Preset,
    /// Columns by role; a role without a column is absent.
    pub(super) columns: Vec<(Role, Name)>,
    /// Condition of rows that are locks, in place of the preset's.
    pub(super) held_when: Option<String>,
    /// Unit of times that are numbers.
    pub(super) unit: Option<TimeUnit>,
    pub(super) notify: Option<String>,
    pub(super) release: Option<LeaseTableRelease>,
    /// A row without expiry is not renewing after this long without a heartbeat, in
    /// milliseconds.
    pub(super) stale_after_ms: Option<i64>,
}

impl LeaseTable {
    pub(super) fn read(config: &LeaseTableConfig) -> Result<Self, BackendError> {
        let (schema, name) = ident::table(&config.table).ok_or_else(|| BackendError::Misconfigured {
            detail: format!("`table = {:?}` is not the name of a table", config.table),
            remedy: "Write `table` as \"schema.table\", with names that hold dots in double quotes."
                .to_owned(),
        })?;
        let source = Source::parse(&format!("table:{}.{}", schema.text, name.text)).map_err(|_| {
            BackendError::Misconfigured {
                detail: format!(
                    "the table name {:?} is too long or has control characters",
                    config.table
                ),
                remedy: "Show a view with a shorter name instead.".to_owned(),
            }
        })?;
        let preset = preset::find(config.preset);
        let columns = columns(config, preset)?;
        Ok(Self {
            source,
            schema,
            name,
            preset,
            columns,
            held_when: config.held_when.clone(),
            unit: config.expires_unit.or(preset.unit),
            notify: config.notify.clone(),
            release: config.release,
            stale_after_ms: config.stale_after.or(preset.stale_after).map(millis),
        })
    }

    /// As configured.
    pub(super) fn quoted_name(&self) -> String {
        format!("{}.{}", self.schema.text, self.name.text)
    }

    pub(super) fn column(&self, role: Role) -> Option<&Name> {
        self.columns
            .iter()
            .find(|(column_role, _)| *column_role == role)
            .map(|(_, name)| name)
    }

    /// The column that each heartbeat sets.
    pub(super) fn sign_of_life(&self) -> Role {
        match self.column(Role::Heartbeat) {
            Some(_) => Role::Heartbeat,
            None => Role::UpdatedAt,
        }
    }

    pub(super) fn no_token(&self) -> String {
        format!("{} issues no fencing tokens", self.preset.title)
    }

    pub(super) fn safety(&self) -> Safety {
        if self.column(Role::FencingToken).is_some() {
            Safety {
                class: SafetyClass::Correctness,
                why: "one database, rising token".into(),
            }
        } else {
            Safety {
                class: SafetyClass::Efficiency,
                why: self.no_token().into(),
            }
        }
    }
}

fn columns(config: &LeaseTableConfig, preset: &Preset) -> Result<Vec<(Role, Name)>, BackendError> {
    if let Some(stranger) = config.columns.keys().find(|key| Role::parse(key).is_none()) {
        let nearest = ident::nearest(stranger, Role::ALL.map(Role::as_str));
        return Err(BackendError::Misconfigured {
            detail: format!("`columns` of table {} has no entry {stranger:?}", config.table),
            remedy: nearest.map_or_else(
                || format!("Its entries are: {}.", Role::ALL.map(Role::as_str).join(", ")),
                |near| format!("Did you mean {near:?}?"),
            ),
        });
    }
    let column = |role: Role| {
        let name = config
            .columns
            .get(role.as_str())
            .map_or(preset.column(role), String::as_str);
        (!name.is_empty()).then(|| (role, Name::new(name)))
    };
    let columns: Vec<_> = Role::ALL.into_iter().filter_map(column).collect();
    if columns.iter().any(|(role, _)| *role == Role::Resource) {
        Ok(columns)
    } else {
        Err(BackendError::Misconfigured {
            detail: format!("table {} needs a column for the resource", config.table),
            remedy: "Name it: `columns = { resource = \"…\" }`.".to_owned(),
        })
    }
}
