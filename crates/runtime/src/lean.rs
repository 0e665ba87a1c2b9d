//! Objects without `managedFields`. A server sends them with every object; they are often the larger part of it, and hardly anybody looks at them, so they
//! are skipped while they are read instead of being built and thrown away.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::CowStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

/// An object, decoded without its `managedFields`.
pub(crate) struct Lean<K>(pub(crate) K);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Lean<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        K::deserialize(At { level: Level::Object, inner: from }).map(Self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
}

/// Something that reads one level of an object: a deserializer, a visitor or the seed of a value.
struct At<T> {
    level: Level,
    inner: T,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for At<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(At { level: self.level, inner: visitor })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(At { level: self.level, inner: visitor })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, fields, At { level: self.level, inner: visitor })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for At<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Map { level: self.level, map, in_metadata: false })
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(At { level: self.level, inner: from })
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<V::Value, E> {
        self.inner.visit_bool(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<V::Value, E> {
        self.inner.visit_i64(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<V::Value, E> {
        self.inner.visit_u64(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        self.inner.visit_f64(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<V::Value, E> {
        self.inner.visit_str(value)
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<V::Value, E> {
        self.inner.visit_borrowed_str(value)
    }

    fn visit_string<E: Error>(self, value: String) -> Result<V::Value, E> {
        self.inner.visit_string(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(seq)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for At<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(At { level: self.level, inner: from })
    }
}

/// The entries of one level.
struct Map<A> {
    level: Level,
    map: A,
    /// The value that comes next is the object's metadata.
    in_metadata: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Map<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(Key(key)) = self.map.next_key()? {
            if self.level == Level::Metadata && key == "managedFields" {
                self.map.next_value::<IgnoredAny>()?;
                continue;
            }
            self.in_metadata = self.level == Level::Object && key == "metadata";
            return seed.deserialize(CowStrDeserializer::new(key)).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.in_metadata {
            true => self.map.next_value_seed(At { level: Level::Metadata, inner: seed }),
            false => self.map.next_value_seed(seed),
        }
    }
}

/// A key, not copied if it need not be.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        from.deserialize_str(Keys)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use compute_api::compute::Workload;
    use compute_api::kube::api::{DynamicObject, PartialObjectMeta};
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};

    use super::Lean;

    fn object(more: &Value) -> Value {
        let mut all = json!({
            "metadata": {
                "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "labels": { "managedFields": "kept" },
                "managedFields": [{ "manager": "m", "operation": "Apply", "fieldsV1": { "f:metadata": { "f:name": {} } } }],
                "finalizers": ["one"], "ownerReferences": [{ "apiVersion": "v1", "kind": "K", "name": "n", "uid": "o" }],
            },
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    }

    fn same_but_for_managed_fields<K: DeserializeOwned + Serialize>(sent: &Value) {
        let text = sent.to_string();
        let mut whole = serde_json::to_value(serde_json::from_str::<K>(&text).unwrap()).unwrap();
        let removed = whole["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert!(removed.is_some());
        let Lean(lean) = serde_json::from_str::<Lean<K>>(&text).unwrap();
        assert_eq!(serde_json::to_value(lean).unwrap(), whole);
        let Lean(lean) = serde_json::from_reader::<_, Lean<K>>(text.as_bytes()).unwrap();
        assert_eq!(serde_json::to_value(lean).unwrap(), whole);
    }

    #[test]
    fn nothing_else_is_lost() {
        let template = json!({ "metadata": { "annotations": { "x": "y" } }, "spec": { "runtime": {}, "networkInterfaces": [] } });
        same_but_for_managed_fields::<Workload>(&object(&json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
            "spec": { "template": template, "placements": [] }, "status": { "replicas": 2 },
        })));
        let data = json!({ "metadata": "a key", "managedFields": "another" });
        let map =
            object(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": data, "immutable": true }));
        same_but_for_managed_fields::<ConfigMap>(&map);
        same_but_for_managed_fields::<PartialObjectMeta<ConfigMap>>(&map);
        same_but_for_managed_fields::<DynamicObject>(&map);
    }

    #[test]
    fn what_is_wrong_is_still_an_error() {
        for text in [
            "[]",
            "7",
            r#"{"metadata":7}"#,
            r#"{"metadata":{"name":7}}"#,
            r#"{"metadata":{"managedFields":[}}"#,
        ] {
            assert!(serde_json::from_str::<Lean<ConfigMap>>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn metadata_may_be_missing_or_null() {
        #[derive(Deserialize)]
        struct Loose {
            metadata: Option<Inner>,
        }
        #[derive(Deserialize)]
        struct Inner {
            name: String,
        }
        let read = |text| serde_json::from_str::<Lean<Loose>>(text).unwrap().0.metadata.map(|meta| meta.name);
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"metadata":null}"#), None);
        assert_eq!(read(r#"{"metadata":{"managedFields":[],"name":"a"}}"#), Some("a".to_owned()));
    }
}
