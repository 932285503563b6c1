//! A column of a lease table: the roles that it may have, and its SQL as text, as a moment or as a flag.

use super::ident::quoted;
use super::table::Role;
use config::postgres::TimeUnit;

/// Seconds since 1970 of the years 1 and 9999: numbers outside are infinite.
const YEAR_1_S: i64 = -62_135_596_800;
const YEAR_9999_S: i64 = 253_370_764_800;

/// A column of a found table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) type_shown: String,
    /// The type's own name, or that of a domain's base type: `timestamptz`, `int8`, …
    pub(super) type_base: String,
    /// One letter, as in `pg_type.typcategory`.
    pub(super) category: String,
    pub(super) may_read: bool,
    /// A unique index covers this column alone.
    pub(super) is_unique: bool,
    /// NULL may be written to it: it has no NOT NULL and is not generated.
    pub(super) may_be_null: bool,
}

impl Column {
    pub(super) fn is_text(&self) -> bool {
        matches!(self.type_base.as_str(), "text" | "varchar")
    }

    /// A type that can identify a lock or owner: a text, a number or an address.
    fn is_name(&self) -> bool {
        matches!(self.category.as_str(), "S" | "N" | "E" | "I") || self.type_base == "uuid"
    }

    fn is_bytes(&self) -> bool {
        self.type_base == "bytea"
    }

    fn is_number(&self) -> bool {
        self.category == "N"
    }

    fn is_timestamp(&self) -> bool {
        matches!(self.type_base.as_str(), "timestamptz" | "timestamp")
    }

    /// A time that is a number: its unit must be known.
    pub(super) fn needs_unit(&self, role: Role) -> bool {
        role.is_time() && !self.is_timestamp()
    }

    /// What the role needs, if the column is not of that kind.
    pub(super) fn check_role(&self, role: Role) -> Result<(), &'static str> {
        let (is_suitable, required) = match role {
            Role::Resource => (self.is_name(), "text, a number or a uuid"),
            Role::Owner | Role::LeaseId => (
                self.is_name() || self.is_bytes(),
                "text, a number, a uuid or bytes",
            ),
            Role::FencingToken => (
                matches!(self.category.as_str(), "S" | "N"),
                "an integer, numeric or text",
            ),
            Role::ExpiresAt | Role::CreatedAt | Role::UpdatedAt | Role::Heartbeat => {
                (self.is_timestamp() || self.is_number(), "a timestamp or a number")
            }
            Role::Locked => (true, "any type"),
        };
        if is_suitable { Ok(()) } else { Err(required) }
    }

    pub(super) fn quoted(&self) -> String {
        quoted(&self.name)
    }

    /// As text; bytes in hexadecimal.
    pub(super) fn text(&self) -> String {
        if self.is_bytes() {
            format!("('0x' || encode({}, 'hex'))", self.quoted())
        } else {
            format!("{}::text", self.quoted())
        }
    }

    /// As a moment. A timestamp without a zone is UTC, as ShedLock writes it.
    pub(super) fn instant(&self, unit: Option<TimeUnit>) -> String {
        let name = self.quoted();
        if self.type_base == "timestamptz" {
            return name;
        }
        if self.is_timestamp() {
            return format!("({name} AT TIME ZONE 'UTC')");
        }
        let units_per_second = per_second(unit);
        format!(
            "(CASE WHEN {name} >= {max} THEN timestamptz 'infinity' WHEN {name} < {min} THEN timestamptz '-infinity' \
             ELSE to_timestamp({name}::float8 / {units_per_second}) END)",
            max = YEAR_9999_S * units_per_second,
            min = YEAR_1_S * units_per_second,
        )
    }

    /// The server's clock as a value of this column.
    pub(super) fn now(&self, unit: Option<TimeUnit>) -> String {
        if self.type_base == "timestamptz" {
            return "clock_timestamp()".to_owned();
        }
        if self.is_timestamp() {
            return "(clock_timestamp() AT TIME ZONE 'UTC')".to_owned();
        }
        let units_per_second = per_second(unit);
        // Rounded down: it is over when it is written.
        format!(
            "floor(date_part('epoch', clock_timestamp()) * {units_per_second})::{}",
            self.type_base
        )
    }

    /// Whether a flag is set.
    pub(super) fn is_raised(&self) -> String {
        let name = self.quoted();
        match self.category.as_str() {
            "B" => format!("{name} IS TRUE"),
            "N" => format!("{name} <> 0"),
            "S" => format!("lower({name}::text) NOT IN ('', '0', 'f', 'false', 'n', 'no', 'off')"),
            _ => format!("{name} IS NOT NULL"),
        }
    }

    /// The value of a flag that is not set; `None` if it cannot be written.
    pub(super) fn unset_flag_value(&self) -> Option<&'static str> {
        match self.category.as_str() {
            "B" => Some("false"),
            "N" => Some("0"),
            _ if self.may_be_null => Some("NULL"),
            "S" => Some("''"),
            _ => None,
        }
    }
}

const fn per_second(unit: Option<TimeUnit>) -> i64 {
    match unit {
        Some(TimeUnit::Milliseconds) => 1_000,
        Some(TimeUnit::Seconds) | None => 1,
    }
}
