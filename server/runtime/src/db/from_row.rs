//! Rows of tables as structs.

/// A struct whose fields are columns of the same names. Not sqlx's derive: see `migrations`.
#[macro_export]
macro_rules! from_row {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident {
        $($field_visible:vis $field:ident: $kind:ty,)+
    }) => {
        $(#[$attribute])*
        $visible struct $name {
            $($field_visible $field: $kind,)+
        }

        impl<'r, R: ::sqlx::Row> ::sqlx::FromRow<'r, R> for $name
        where
            &'static str: ::sqlx::ColumnIndex<R>,
            $($kind: ::sqlx::Decode<'r, R::Database> + ::sqlx::Type<R::Database>,)+
        {
            fn from_row(row: &'r R) -> ::sqlx::Result<Self> {
                Ok(Self { $($field: row.try_get(stringify!($field))?,)+ })
            }
        }
    };
}
pub use crate::from_row;
