//! Decoding that forgives: of a spec that is not there, and of conditions that others wrote badly.
//!
//! One bad part must not hide the rest of an object. What is wrong with it is for admission, or for a
//! controller that looks at the part, to say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The conditions in a list that can be read. What is no list, or no condition, is left out.
pub(crate) fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let Value::Array(entries) = Value::deserialize(deserializer)? else { return Ok(Vec::new()) };
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// Makes specs decode to their default where an object has none.
///
/// Most schemas do not require a spec, but `kube` generates a root type whose field `spec` is not optional.
/// serde asks such a field to decode itself from "nothing", and only a type that decodes as an option has an
/// answer to that. So the derived code is kept as inherent functions (`serde(remote = "Self")`) and wrapped.
macro_rules! optional_spec {
    ($($spec:ty),+ $(,)?) => {$(
        impl<'de> ::serde::Deserialize<'de> for $spec {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Present($spec);
                impl<'de> ::serde::Deserialize<'de> for Present {
                    fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        <$spec>::deserialize(deserializer).map(Self)
                    }
                }
                let present = <Option<Present> as ::serde::Deserialize>::deserialize(deserializer)?;
                Ok(present.map_or_else(Self::default, |Present(spec)| spec))
            }
        }

        impl ::serde::Serialize for $spec {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$spec>::serialize(self, serializer)
            }
        }
    )+};
}
pub(crate) use optional_spec;
