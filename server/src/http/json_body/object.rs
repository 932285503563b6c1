//! Objects, stricter than serde reads them: a struct from an object and nothing else, not from an array of its values in order;
//! a map without repeated members, of which serde would keep the last.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

/// For `deserialize_with`: an array of objects.
pub(in crate::http) fn objects<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(value)| value).collect())
}

/// For `deserialize_with`, together with `default`: an object of strings, absent or null.
pub(in crate::http) fn optional_strings<'de, D>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let strings = Option::<Strings>::deserialize(deserializer)?;
    Ok(strings.map(|Strings(strings)| strings))
}

struct Strings(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StringsVisitor)
    }
}

struct StringsVisitor;

impl<'de> Visitor<'de> for StringsVisitor {
    type Value = Strings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Strings, A::Error> {
        let mut strings = BTreeMap::new();
        while let Some((name, value)) = members.next_entry::<String, String>()? {
            match strings.entry(name) {
                Entry::Vacant(entry) => entry.insert(value),
                Entry::Occupied(_) => return Err(A::Error::custom(REPEATED)),
            };
        }
        Ok(Strings(strings))
    }
}

/// Error of a map, whose names are not known to be free of secrets.
pub(super) const REPEATED: &str = "a member is repeated";
