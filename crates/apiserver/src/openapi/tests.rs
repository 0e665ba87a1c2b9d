//! Documents are complete, and say what clients look for in them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::registry::{built_in, crd};
use crate::schema::{ListType, PatchStrategy, Schema};

fn workload() -> Vec<Arc<Definition>> {
    crd::compile(&json!({
        "metadata": {"name": "workloads.compute.datumapis.com"},
        "spec": {
            "group": "compute.datumapis.com",
            "scope": "Namespaced",
            "names": {"plural": "workloads", "kind": "Workload"},
            "versions": [{
                "name": "v1alpha",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "A workload.",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "description": "What is wanted.",
                            "properties": {
                                "replicas": {"type": "integer"},
                                "placements": {
                                    "type": "array",
                                    "description": "Where it runs.",
                                    "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["name"],
                                    "items": {
                                        "type": "object",
                                        "required": ["name"],
                                        "properties": {"name": {"type": "string", "description": "Its name."}},
                                    },
                                },
                                "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
                            },
                        },
                        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                    },
                }},
            }],
        },
    }))
    .unwrap()
    .served
}

fn gv(group: &str, version: &str) -> GroupVersion {
    GroupVersion { group: group.to_owned(), version: version.to_owned() }
}

/// A document for every group and version that the tests serve.
fn documents() -> Vec<(GroupVersion, Value)> {
    let mut all = built_in::definitions();
    all.extend(workload());
    let versions: BTreeSet<GroupVersion> = all.iter().map(|definition| definition.gv.clone()).collect();
    versions
        .into_iter()
        .map(|gv| {
            let definitions: Vec<_> = all.iter().filter(|definition| definition.gv == gv).cloned().collect();
            let document = document(&gv, &definitions);
            (gv, document)
        })
        .collect()
}

#[test]
fn no_reference_dangles_and_no_component_is_idle() {
    let documents = documents();
    assert_eq!(documents.len(), 9);
    for (gv, document) in documents {
        let components = document["components"]["schemas"].as_object().unwrap();
        let mut referred = BTreeSet::new();
        each_reference(&document, &mut |name| {
            referred.insert(name.to_owned());
        });
        let present: BTreeSet<String> = components.keys().cloned().collect();
        assert_eq!(referred, present, "{gv}");
        for (name, component) in components {
            assert!(component.get("description").is_some(), "{gv}: {name} is made up: {component}");
        }
        assert_eq!(
            document.to_string().matches("#/").count(),
            document.to_string().matches(REFERENCE).count()
        );
    }
}

#[test]
fn the_index_points_to_the_documents() {
    let index = index(&[(gv("", "v1"), 255), (gv("apps.example.com", "v2"), u64::MAX)]);
    assert_eq!(
        index,
        json!({"paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=00000000000000FF"},
            "apis/apps.example.com/v2": {"serverRelativeURL": "/openapi/v3/apis/apps.example.com/v2?hash=FFFFFFFFFFFFFFFF"},
        }})
    );
}

#[test]
fn hashes_follow_what_is_served() {
    let all = built_in::definitions();
    let mut turned = all.clone();
    turned.reverse();
    assert_eq!(hash(&all), hash(&turned));
    assert_ne!(hash(&all), hash(&all[1..]));
    assert_eq!(hash(&workload()), hash(&workload()));
}

#[test]
fn paths_tell_what_may_be_asked() {
    let definitions = workload();
    let document = document(&definitions[0].gv, &definitions);
    let paths = document["paths"].as_object().unwrap();
    let base = "/apis/compute.datumapis.com/v1alpha";
    let table: Vec<(String, Vec<String>)> = paths
        .iter()
        .map(|(path, item)| {
            let operations = item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters");
            let actions = operations.map(|(method, operation)| {
                format!("{method} {}", operation["x-kubernetes-action"].as_str().unwrap())
            });
            (path.strip_prefix(base).unwrap().to_owned(), actions.collect())
        })
        .collect();
    let expected: Vec<(&str, &[&str])> = vec![
        ("/namespaces/{namespace}/workloads", &["delete deletecollection", "get list", "post post"]),
        ("/namespaces/{namespace}/workloads/{name}", &["delete delete", "get get", "patch patch", "put put"]),
        ("/namespaces/{namespace}/workloads/{name}/scale", &["get get", "patch patch", "put put"]),
        ("/namespaces/{namespace}/workloads/{name}/status", &["get get", "patch patch", "put put"]),
        ("/workloads", &["get list"]),
    ];
    let expected: Vec<(String, Vec<String>)> = expected
        .into_iter()
        .map(|(path, actions)| (path.to_owned(), actions.iter().map(|action| (*action).to_owned()).collect()))
        .collect();
    assert_eq!(table, expected);

    let item = &paths[&format!("{base}/namespaces/{{namespace}}/workloads/{{name}}")];
    let patch = &item["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "compute.datumapis.com", "version": "v1alpha", "kind": "Workload"})
    );
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let types: Vec<&String> = patch["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(
        types,
        ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    );
    assert_eq!(patch["operationId"], "patchComputeDatumapisComV1alphaNamespacedWorkload");
    assert_eq!(patch["tags"], json!(["computeDatumapisCom_v1alpha"]));
    let scale = &paths[&format!("{base}/namespaces/{{namespace}}/workloads/{{name}}/scale")]["get"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "Scale");
}

#[test]
fn operation_names_are_those_of_kubernetes_and_unique() {
    let mut seen = BTreeSet::new();
    for (_, document) in documents() {
        for item in document["paths"].as_object().unwrap().values() {
            let ids =
                item.as_object().unwrap().values().filter_map(|operation| operation["operationId"].as_str());
            for id in ids {
                assert!(seen.insert(id.to_owned()), "{id} stands twice");
            }
        }
    }
    for id in [
        "listCoreV1PodForAllNamespaces",
        "listCoreV1NamespacedPod",
        "deleteCoreV1CollectionNamespacedPod",
        "readCoreV1NamespacedPodStatus",
        "patchCoreV1Namespace",
        "createCoordinationV1NamespacedLease",
        "replaceApiextensionsV1CustomResourceDefinitionStatus",
    ] {
        assert!(seen.contains(id), "{id} is missing");
    }
}

#[test]
fn built_in_kinds_take_strategic_merge_patches() {
    let (_, core) = documents().into_iter().find(|(gv, _)| gv.group.is_empty()).unwrap();
    let patch = &core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_some());
    assert!(core["paths"].get("/api/v1/namespaces/{name}").is_some());
}

#[test]
fn custom_resources_are_complete_objects() {
    let definitions = workload();
    let document = document(&definitions[0].gv, &definitions);
    let schemas = &document["components"]["schemas"];
    let workload = &schemas["com.datumapis.compute.v1alpha.Workload"];
    assert_eq!(workload["description"], "A workload.");
    assert_eq!(workload["properties"]["spec"]["properties"]["placements"]["description"], "Where it runs.");
    assert_eq!(workload["properties"]["kind"]["type"], "string");
    let template = &workload["properties"]["spec"]["properties"]["template"]["properties"];
    assert_eq!(template["apiVersion"]["type"], "string");
    let list = &schemas["com.datumapis.compute.v1alpha.WorkloadList"];
    assert_eq!(
        list["properties"]["items"]["items"]["$ref"],
        "#/components/schemas/com.datumapis.compute.v1alpha.Workload"
    );
    assert_eq!(list["x-kubernetes-group-version-kind"][0]["kind"], "WorkloadList");
}

#[test]
fn components_are_decorated_from_schemas() {
    let mut components = json!({
        "Root": {"type": "object", "properties": {
            "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
            "names": {"type": "array", "items": {"type": "string"}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "one": {"description": "x", "allOf": [{"$ref": "#/components/schemas/Whole"}]},
            "map": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        }},
        "Part": {"type": "object", "properties": {"self": {"$ref": "#/components/schemas/Part"}, "tags": {"type": "array"}}},
        "Whole": {"type": "object"},
    });
    let set = Arc::new(Schema {
        list_type: ListType::Set,
        patch_strategy: Some(PatchStrategy::MergeSet),
        ..Schema::default()
    });
    let part = Schema {
        properties: [("tags".to_owned(), set.clone()), ("self".to_owned(), Arc::new(Schema::default()))]
            .into(),
        ..Schema::default()
    };
    let parts = Schema {
        list_type: ListType::Map(vec!["id".to_owned()]),
        patch_strategy: Some(PatchStrategy::MergeByKey("id".to_owned())),
        items: Some(Arc::new(part)),
        ..Schema::default()
    };
    let root = Schema {
        properties: [
            ("parts".to_owned(), Arc::new(parts)),
            ("names".to_owned(), set.clone()),
            ("plain".to_owned(), Arc::new(Schema::default())),
            ("one".to_owned(), Arc::new(Schema { map_atomic: true, ..Schema::default() })),
            ("map".to_owned(), Arc::new(Schema { additional_properties: Some(set), ..Schema::default() })),
        ]
        .into(),
        ..Schema::default()
    };
    decorate(components.as_object_mut().unwrap(), "Root", &root);
    let properties = &components["Root"]["properties"];
    assert_eq!(properties["parts"]["x-kubernetes-list-map-keys"], json!(["id"]));
    assert_eq!(properties["parts"]["x-kubernetes-patch-merge-key"], "id");
    assert_eq!(properties["parts"]["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(properties["names"]["x-kubernetes-list-type"], "set");
    assert_eq!(properties["names"]["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(properties["names"].get("x-kubernetes-patch-merge-key"), None);
    assert_eq!(properties["plain"]["x-kubernetes-list-type"], "atomic");
    assert_eq!(properties["plain"].get("x-kubernetes-patch-strategy"), None);
    assert_eq!(properties["map"]["additionalProperties"]["x-kubernetes-list-type"], "set");
    assert_eq!(components["Whole"]["x-kubernetes-map-type"], "atomic");
    assert_eq!(components["Part"]["properties"]["tags"]["x-kubernetes-list-type"], "set");
}
