//! Values by name, in the order in which they were declared.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};

/// A list of names and values; an object in JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named(Vec::new())
    }
}

impl<T> Named<T> {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(one, _)| one == name).map(|(_, value)| value)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Names and values in order, the values to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut T)> {
        self.0.iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value whose name `path` begins with, up to a dot or the end, and what follows the dot. Names may hold dots; the
    /// longest that fits is meant.
    pub fn split<'a>(&self, path: &'a str) -> Option<(&T, &'a str)> {
        let fits = self.0.iter().filter_map(|(name, value)| {
            let rest = path.strip_prefix(name.as_str())?;
            let rest = if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }?;
            Some((name.len(), value, rest))
        });
        fits.max_by_key(|(length, _, _)| *length).map(|(_, value, rest)| (value, rest))
    }
}

impl<T> FromIterator<(String, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(items: I) -> Self {
        Named(items.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    list.push(entry);
                }
                Ok(Named(list))
            }
        }

        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn schema_name() -> Cow<'static, str> {
        BTreeMap::<String, T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_dots() {
        let named: Named<u8> = [("a".into(), 1), ("a.b".into(), 2)].into_iter().collect();
        assert_eq!(named.split("a.b.c"), Some((&2, "c")));
        assert_eq!(named.split("a.bc"), Some((&1, "bc")));
        assert_eq!(named.split("a"), Some((&1, "")));
        assert_eq!(named.split("ab"), None);
    }

    #[test]
    fn the_order_survives_json() {
        let named: Named<u8> = [("z".into(), 1), ("a".into(), 2)].into_iter().collect();
        let text = serde_json::to_string(&named).unwrap();
        assert_eq!(text, r#"{"z":1,"a":2}"#);
        assert_eq!(serde_json::from_str::<Named<u8>>(&text).unwrap(), named);
    }
}
