//! Tests of the schemas of built-in kinds, made from the real ones.

use k8s_openapi::api::{coordination, core, events, rbac};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::*;
use crate::schema::{defaults, prune, validate};

/// The components of the kinds that the server knows.
fn components() -> Map<String, Value> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    macro_rules! add {
        ($($kind:ty),* $(,)?) => { $(generator.subschema_for::<$kind>();)* };
    }
    add!(
        core::v1::ConfigMap,
        core::v1::Event,
        core::v1::Namespace,
        core::v1::Node,
        core::v1::Pod,
        core::v1::Secret,
        core::v1::Service,
        core::v1::ServiceAccount,
        coordination::v1::Lease,
        events::v1::Event,
        rbac::v1::ClusterRole,
        rbac::v1::ClusterRoleBinding,
        rbac::v1::Role,
        rbac::v1::RoleBinding,
        apiextensions::v1::CustomResourceDefinition,
    );
    generator.take_definitions(true)
}

fn kind(name: &str) -> Arc<Schema> {
    compile(&components(), name)
}

fn at<'s>(schema: &'s Schema, path: &str) -> &'s Schema {
    path.split('.').fold(schema, |schema, step| match step {
        "[]" => schema.items.as_deref().unwrap_or_else(|| panic!("{path}: no items")),
        name => schema.child(name).unwrap_or_else(|| panic!("{path}: no {name}")),
    })
}

#[test]
fn the_table_speaks_of_what_exists() {
    let components = components();
    let known = |short: &str| components.keys().find(|name| name.ends_with(&format!(".{short}")));
    let mut seen = 0;
    for (component, field) in merge::all() {
        // Kinds that the server does not have are not generated here.
        let Some(name) = known(component) else { continue };
        seen += 1;
        if let Some(field) = field {
            assert!(components[name]["properties"].get(field).is_some(), "{component} has no {field}");
        }
    }
    assert!(seen > 50, "only {seen} of the table were checked");
}

#[test]
fn lists_and_maps_merge_as_kubernetes_merges_them() {
    let pod = kind("io.k8s.api.core.v1.Pod");
    for (path, keys, patch) in [
        ("spec.containers", vec!["name"], "name"),
        ("spec.initContainers", vec!["name"], "name"),
        ("spec.volumes", vec!["name"], "name"),
        ("spec.containers.[].ports", vec!["containerPort", "protocol"], "containerPort"),
        ("spec.containers.[].env", vec!["name"], "name"),
        ("spec.ephemeralContainers.[].volumeMounts", vec!["mountPath"], "mountPath"),
        ("spec.topologySpreadConstraints", vec!["topologyKey", "whenUnsatisfiable"], "topologyKey"),
        ("spec.hostAliases", vec!["ip"], "ip"),
        ("status.conditions", vec!["type"], "type"),
        ("status.podIPs", vec!["ip"], "ip"),
        ("metadata.ownerReferences", vec!["uid"], "uid"),
    ] {
        let list = at(&pod, path);
        assert_eq!(list.list_type, ListType::Map(keys.into_iter().map(str::to_owned).collect()), "{path}");
        assert_eq!(list.patch_strategy, Some(PatchStrategy::MergeByKey(patch.to_owned())), "{path}");
        assert!(!list.unique_entries, "{path}");
    }
    for path in [
        "spec.tolerations",
        "spec.containers.[].command",
        "spec.containers.[].envFrom",
        "spec.readinessGates",
    ] {
        assert_eq!(
            (&at(&pod, path).list_type, &at(&pod, path).patch_strategy),
            (&ListType::Atomic, &None),
            "{path}"
        );
    }
    assert_eq!(at(&pod, "metadata.finalizers").list_type, ListType::Set);
    assert_eq!(at(&pod, "metadata.finalizers").patch_strategy, Some(PatchStrategy::MergeSet));
    for path in [
        "spec.nodeSelector",
        "spec.imagePullSecrets.[]",
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.[].labelSelector",
        "spec.containers.[].env.[].valueFrom.secretKeyRef",
    ] {
        assert!(at(&pod, path).map_atomic, "{path}");
    }
    assert!(!at(&pod, "metadata.labels").map_atomic);
    let service = kind("io.k8s.api.core.v1.Service");
    assert_eq!(at(&service, "spec.ports").patch_strategy, Some(PatchStrategy::MergeByKey("port".to_owned())));
    assert!(at(&service, "spec.selector").map_atomic);
    let binding = kind("io.k8s.api.rbac.v1.RoleBinding");
    assert_eq!(at(&binding, "subjects").list_type, ListType::Atomic);
    assert!(at(&binding, "roleRef").map_atomic && at(&binding, "subjects.[]").map_atomic);
    assert!(at(&kind("io.k8s.api.core.v1.Event"), "involvedObject").map_atomic);
}

#[test]
fn components_are_shared() {
    let components = components();
    let mut compiler = Compiler::new(&components);
    let pod = compiler.component("io.k8s.api.core.v1.Pod");
    let spec = compiler.component("io.k8s.api.core.v1.PodSpec");
    assert!(Arc::ptr_eq(&pod.properties["spec"], &spec));
    assert!(Arc::ptr_eq(&pod.properties["metadata"], &meta::object_meta()));
}

#[test]
fn recursion_is_open() {
    let crd = kind("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition");
    let schema = at(&crd, "spec.versions.[].schema.openAPIV3Schema");
    assert!(schema.preserve_unknown_fields && schema.type_.is_none());
    let looped = json!({"A": {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}, "n": {"type": "integer"}}}});
    let looped = compile(looped.as_object().expect("an object"), "A");
    assert!(at(&looped, "a").preserve_unknown_fields);
    assert!(compile(&Map::new(), "missing").preserve_unknown_fields);
}

#[test]
fn a_pod_goes_through() {
    let pod = kind("io.k8s.api.core.v1.Pod");
    let mut value = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": null, "labels": {"a": "b"}, "oops": 1},
        "spec": {
            "containers": [{
                "name": "c", "image": "i", "ports": [{"containerPort": 80}], "foo": 1,
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
                "resources": {"limits": {"cpu": 0.5, "memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
            }],
        },
        "status": {"startTime": "2024-01-01T00:00:00Z"},
    });
    assert_eq!(prune::prune(&pod, &mut value), ["metadata.oops", "spec.containers[0].foo"]);
    defaults::apply(&pod, &mut value);
    assert_eq!(value["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
    assert_eq!(value["metadata"].get("creationTimestamp"), None);
    assert_eq!(validate::validate(&pod, &value, None), []);
    value["spec"]["containers"][0]["resources"]["limits"] = json!({"cpu": "lots", "memory": true});
    value["spec"]["containers"][0]["livenessProbe"]["httpGet"]["port"] = json!(1.5);
    value["spec"]["priority"] = json!(3_000_000_000_u32);
    let errors: Vec<String> =
        validate::validate(&pod, &value, None).iter().map(|error| error.path.clone()).collect();
    assert_eq!(
        errors,
        [
            "spec.containers[0].livenessProbe.httpGet.port",
            "spec.containers[0].resources.limits.cpu",
            "spec.containers[0].resources.limits.memory",
            "spec.priority",
        ]
    );
}

#[test]
fn our_metadata_is_that_of_the_generated_types() {
    let components = components();
    for (name, ours) in [
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", meta::object_meta()),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference", {
            Arc::clone(meta::object_meta().properties["ownerReferences"].items.as_ref().expect("items"))
        }),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry", {
            Arc::clone(meta::object_meta().properties["managedFields"].items.as_ref().expect("items"))
        }),
    ] {
        let theirs: Vec<&String> =
            components[name]["properties"].as_object().expect("properties").keys().collect();
        assert_eq!(ours.properties.keys().collect::<Vec<_>>(), theirs, "{name}");
    }
}

#[test]
fn secrets_hold_base64() {
    let secret = kind("io.k8s.api.core.v1.Secret");
    assert_eq!(validate::validate(&secret, &json!({"data": {"a": "YWJj"}}), None), []);
    assert_eq!(validate::validate(&secret, &json!({"data": {"a": "not base64"}}), None).len(), 1);
}
