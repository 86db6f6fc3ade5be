//! Values that know where they stand, and that a wrong neighbour does not take down.
//!
//! serde stops at the first error of a table. A [`Field`] never fails: a value of another type is
//! kept as "there, but wrong", and a [`Table`] sets unknown keys aside. So one reading of a runbook
//! yields every problem, while the types in [`super::document`] stay plain declarations.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData, ops::Range};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, Visitor},
    forward_to_deserialize_any,
};
use toml::Spanned;

/// What a type is called when something else stands in its place.
pub(super) trait Named {
    /// `a string`, `a table`, ...
    const NAME: &'static str;
}

impl Named for String {
    const NAME: &'static str = "a string";
}

impl Named for bool {
    const NAME: &'static str = "`true` or `false`";
}

impl Named for usize {
    const NAME: &'static str = "a whole number, 0 or more";
}

impl<T> Named for Vec<T> {
    const NAME: &'static str = "an array";
}

impl<T> Named for BTreeMap<String, T> {
    const NAME: &'static str = "a table";
}

impl<T> Named for Table<T> {
    const NAME: &'static str = "a table";
}

/// A value and its place; none where it has the wrong type.
#[derive(Clone, Debug)]
pub(super) struct Field<T> {
    /// Bytes of the text.
    pub(super) span: Range<usize>,
    /// The value, if it has the right type.
    pub(super) value: Option<T>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Swallows the error of a wrong type: its place is all that is needed to report it.
        struct Lenient<T>(Option<T>);
        impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self(T::deserialize(deserializer).ok()))
            }
        }
        let spanned = Spanned::<Lenient<T>>::deserialize(deserializer)?;
        Ok(Self { span: spanned.span(), value: spanned.into_inner().0 })
    }
}

/// In the schema a field is its value.
impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A table with the keys that its type does not know set aside.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    /// The keys that are known.
    pub(super) body: T,
    /// The keys that are not, with their places.
    pub(super) unknown: Vec<(Range<usize>, String)>,
    /// The keys there are.
    pub(super) keys: &'static [&'static str],
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut unknown = Vec::new();
        let mut keys: &'static [&'static str] = &[];
        let body = T::deserialize(Sifter { inner: deserializer, unknown: &mut unknown, keys: &mut keys })?;
        Ok(Self { body, unknown, keys })
    }
}

/// In the schema a table is its type.
impl<T: JsonSchema> JsonSchema for Table<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Hands a derived struct only the keys it declares, and keeps the others.
struct Sifter<'a, D> {
    inner: D,
    unknown: &'a mut Vec<(Range<usize>, String)>,
    keys: &'a mut &'static [&'static str],
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Sifter<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        keys: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        *self.keys = keys;
        self.inner.deserialize_map(SiftedTable { visitor, unknown: self.unknown, keys, lifetime: PhantomData })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct SiftedTable<'a, 'de, V> {
    visitor: V,
    unknown: &'a mut Vec<(Range<usize>, String)>,
    keys: &'static [&'static str],
    lifetime: PhantomData<&'de ()>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for SiftedTable<'_, 'de, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let sifted = SiftedKeys { inner, unknown: self.unknown, keys: self.keys };
        // A derived visitor asks for the keys itself; the wrapper only answers for those it declares.
        self.visitor.visit_map(sifted)
    }
}

struct SiftedKeys<'a, A> {
    inner: A,
    unknown: &'a mut Vec<(Range<usize>, String)>,
    keys: &'static [&'static str],
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for SiftedKeys<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.inner.next_key::<Spanned<String>>()? {
            if self.keys.contains(&key.get_ref().as_str()) {
                return seed.deserialize(key.into_inner().into_deserializer()).map(Some);
            }
            self.inner.next_value::<IgnoredAny>()?;
            self.unknown.push((key.span(), key.into_inner()));
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}
