//! Objects as they came over the wire, so that what is carried from plane to plane loses nothing that this program does not know.
//!
//! Only the metadata is decoded. The rest stays text, which is also several times smaller than a tree of values.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use compute_api::compute::{WorkloadDeployment, WorkloadDeploymentSpec};
use compute_core::propagation;
use compute_core::referenced_data::Source;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// An object of kind `K` with everything that it has. These are all top-level fields of the kinds that are carried.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "")]
pub(super) struct Raw<K> {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
    spec: Option<Box<RawValue>>,
    status: Option<Box<RawValue>>,
    data: Option<Box<RawValue>>,
    binary_data: Option<Box<RawValue>>,
    immutable: Option<Box<RawValue>>,
    #[serde(rename = "type")]
    type_: Option<Box<RawValue>>,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource<DynamicType = ()>> Raw<K> {
    /// The whole object.
    pub(super) fn to_value(&self) -> serde_json::Result<Value> {
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), K::api_version(&()).into());
        object.insert("kind".to_owned(), K::kind(&()).into());
        object.insert("metadata".to_owned(), serde_json::to_value(&self.metadata)?);
        let fields = [
            ("spec", &self.spec),
            ("status", &self.status),
            ("data", &self.data),
            ("binaryData", &self.binary_data),
            ("immutable", &self.immutable),
            ("type", &self.type_),
        ];
        for (name, text) in fields {
            if let Some(text) = text {
                object.insert(name.to_owned(), serde_json::from_str(text.get())?);
            }
        }
        Ok(Value::Object(object))
    }
}

impl Raw<WorkloadDeployment> {
    /// What follows the deployment to its cluster. Nothing if its template cannot be read: that is for others to say.
    pub(super) fn dependencies(&self) -> Vec<Source> {
        // Most templates name no data, and that shows without reading them: every field that could has one of these in its name.
        let text = self.spec.as_deref().map_or("", RawValue::get);
        if !text.contains("onfigMap") && !text.contains("ecret") {
            return Vec::new();
        }
        let Ok(spec) = serde_json::from_str::<WorkloadDeploymentSpec>(text) else { return Vec::new() };
        let deployment = WorkloadDeployment { spec, ..WorkloadDeployment::default() };
        propagation::dependencies(&deployment).into_iter().collect()
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Raw<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Its name and no more: the object may be a Secret.
impl<K: Resource<DynamicType = ()>> fmt::Debug for Raw<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meta = &self.metadata;
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        write!(f, "{} {namespace}/{}", K::kind(&()), meta.name.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use compute_api::k8s::Secret;
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_lost_and_no_value_is_shown() {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a", "namespace": "b" },
            "data": { "key": "dmFsdWU=" }, "immutable": true, "type": "Opaque",
        });
        let raw: Raw<Secret> = serde_json::from_str(&object.to_string()).unwrap();
        assert_eq!(raw.to_value().unwrap(), object);
        assert_eq!(format!("{raw:?}"), "Secret b/a");
    }

    #[test]
    fn a_deployment_names_what_follows_it() {
        let read = |spec: Value| {
            let object = json!({ "metadata": { "name": "a" }, "spec": spec, "status": { "new": 1 } });
            serde_json::from_str::<Raw<WorkloadDeployment>>(&object.to_string()).unwrap()
        };
        let container =
            json!({ "name": "app", "image": "i", "envFrom": [{ "configMapRef": { "name": "c" } }] });
        let spec = json!({ "template": { "spec": { "runtime": { "sandbox": {
            "containers": [container], "imagePullSecrets": [{ "name": "s" }],
        } } } } });
        let expected = [Source::ConfigMap("c".to_owned()), Source::Secret("s".to_owned())];
        assert_eq!(read(spec).dependencies(), expected);
        let plain = read(json!({ "future": { "field": [1] } }));
        assert_eq!(plain.dependencies(), []);
        let value = plain.to_value().unwrap();
        assert_eq!((&value["spec"]["future"]["field"], &value["status"]["new"]), (&json!([1]), &json!(1)));
    }
}
