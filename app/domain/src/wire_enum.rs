//! [`wire_enum!`](crate::wire_enum): enums whose variants have stable names in JSON, URLs,
//! stores and the command line.
//!
//! A macro instead of `strum`: names are written out, so that renaming a variant cannot change
//! the wire format, without a dependency in the wasm. Enums that carry data write their
//! `as_str` by hand.

/// For code that is generic over such enums.
pub trait WireEnum: Copy + 'static {
    const VARIANTS: &'static [Self];

    fn wire(self) -> &'static str;

    fn from_wire(wire: &str) -> Option<Self>;
}

/// Declares an enum without data. Each variant is followed by its wire name. Adds `ALL` in
/// order of declaration, `as_str` and `parse`.
#[macro_export]
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $wire:literal,)+
        }
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            $vis const ALL: [Self; [$($wire),+].len()] = [$(Self::$variant),+];

            /// The wire name.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $wire,)+
                }
            }

            /// From the wire name, which is compared exactly.
            $vis fn parse(wire: &str) -> Option<Self> {
                match wire {
                    $($wire => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl $crate::wire_enum::WireEnum for $name {
            const VARIANTS: &'static [Self] = &Self::ALL;

            fn wire(self) -> &'static str {
                self.as_str()
            }

            fn from_wire(wire: &str) -> Option<Self> {
                Self::parse(wire)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    crate::wire_enum! {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Color {
            /// A variant may have a comment.
            Red = "red",
            DarkBlue = "dark_blue",
        }
    }

    #[test]
    fn each_variant_parses_from_its_wire_name() {
        assert_eq!(Color::ALL, [Color::Red, Color::DarkBlue]);
        for color in Color::ALL {
            assert_eq!(Color::parse(color.as_str()), Some(color));
        }
        assert_eq!(Color::parse("Red"), None);
    }
}
