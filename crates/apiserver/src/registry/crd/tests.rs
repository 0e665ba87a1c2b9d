//! What CRDs compile into, every fault with its exact place, and what the server fills in.

use serde_json::{Value, json};

use super::*;
use crate::registry::definition::Columns;

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "description": "A widget.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "color": {"type": "string", "description": "Its color."},
                                    "replicas": {"type": "integer"},
                                    "tags": {"type": "array", "items": {"type": "string"}},
                                },
                            },
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "additionalPrinterColumns": [
                        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                    ],
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                },
                {
                    "name": "v1alpha1",
                    "served": true,
                    "storage": false,
                    "deprecated": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                },
                {
                    "name": "v1alpha0",
                    "served": false,
                    "storage": false,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                },
            ],
        },
    })
}

#[test]
fn a_crd_compiles_into_one_definition_per_served_version() {
    let definitions = compile(&crd()).unwrap();
    assert_eq!(definitions.served.len(), 2);
    let [v1, alpha] = &definitions.served[..] else { unreachable!() };
    assert_eq!(v1.gv.to_string(), "shop.example.com/v1");
    assert_eq!(v1.names.list_kind, "WidgetList");
    assert_eq!(v1.names.singular, "widget");
    assert_eq!(v1.names.short_names, ["wd"]);
    assert!(v1.namespaced && v1.status && !v1.built_in);
    let scale = v1.scale.as_ref().unwrap();
    assert_eq!(scale.spec_replicas, ["spec", "replicas"]);
    assert_eq!(scale.status_replicas, ["status", "replicas"]);
    assert_eq!(scale.selector.as_ref().unwrap(), &["status", "selector"]);
    assert_eq!(v1.selectable_fields, ["spec.color"]);
    let Columns::Custom(columns) = &v1.columns else { panic!("custom columns") };
    assert_eq!(columns.len(), 2);
    assert_eq!(columns[0].priority, 1);
    assert_eq!(v1.warning, None);

    assert_eq!(alpha.warning.as_deref(), Some("shop.example.com/v1alpha1 Widget is deprecated"));
    assert!(!alpha.status && alpha.scale.is_none());
    assert_eq!(storage_version(&crd()), "v1");

    let root = &v1.openapi;
    assert_eq!(root["description"], "A widget.");
    assert_eq!(root["properties"]["spec"]["properties"]["color"]["description"], "Its color.");
    assert_eq!(
        root["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let gvk = json!([{"group": "shop.example.com", "version": "v1", "kind": "Widget"}]);
    assert_eq!(root["x-kubernetes-group-version-kind"], gvk);
}

#[test]
fn every_fault_is_told_at_its_place() {
    const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
        alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
        validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    // (pointer, new value or null to remove, errors)
    let cases: &[(&str, Value, &[&str])] = &[
        (
            "/metadata/name",
            json!("widgets.other.com"),
            &[
                r#"metadata.name: Invalid value: "widgets.other.com": must be spec.names.plural+"."+spec.group"#,
            ],
        ),
        (
            "/spec/scope",
            json!("Global"),
            &[r#"spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced""#],
        ),
        ("/spec/scope", json!(null), &["spec.scope: Required value"]),
        ("/spec/names/kind", json!(null), &["spec.names.kind: Required value"]),
        (
            "/spec/names/kind",
            json!("Wid_get"),
            &[&format!(
                r#"spec.names.kind: Invalid value: "Wid_get": may have mixed case, but should otherwise match: {LABEL}"#
            )],
        ),
        (
            "/spec/names/listKind",
            json!("Widget"),
            &[r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#],
        ),
        (
            "/spec/names/shortNames/0",
            json!("WD"),
            &[&format!(r#"spec.names.shortNames[0]: Invalid value: "WD": {LABEL}"#)],
        ),
        (
            "/spec/names/singular",
            json!("-w"),
            &[&format!(r#"spec.names.singular: Invalid value: "-w": {LABEL}"#)],
        ),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            &["spec.preserveUnknownFields: Invalid value: true: must be false"],
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook", "webhook": {}}),
            &[
                r#"spec.conversion.strategy: Unsupported value: "Webhook": conversion webhooks are not supported by this server: supported values: "None""#,
            ],
        ),
        (
            "/spec/conversion",
            json!({"strategy": "None", "webhook": {}}),
            &["spec.conversion.webhook: Forbidden: should not be set when strategy is not set to Webhook"],
        ),
        ("/spec/versions", json!([]), &["spec.versions: Required value: must have at least one version"]),
        (
            "/spec/versions/1/storage",
            json!(true),
            &[
                r#"spec.versions: Invalid value: "array": must have exactly one version marked as storage version"#,
            ],
        ),
        (
            "/spec/versions/0/storage",
            json!(false),
            &[
                r#"spec.versions: Invalid value: "array": must have exactly one version marked as storage version"#,
            ],
        ),
        (
            "/spec/versions/1/name",
            json!("v1"),
            &[r#"spec.versions: Invalid value: "array": must contain unique version names"#],
        ),
        (
            "/spec/versions/1/name",
            json!("1v"),
            &[&format!(r#"spec.versions[1].name: Invalid value: "1v": {LABEL}"#)],
        ),
        (
            "/spec/versions/1/schema",
            json!(null),
            &["spec.versions[1].schema.openAPIV3Schema: Required value: schemas are required"],
        ),
        (
            "/spec/versions/0/deprecationWarning",
            json!("soon gone"),
            &[
                r#"spec.versions[0].deprecationWarning: Invalid value: "soon gone": can only be set for deprecated versions"#,
            ],
        ),
        (
            "/spec/versions/0/additionalPrinterColumns/0/jsonPath",
            json!("spec.color"),
            &[
                r#"spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: "spec.color": must be a simple json path starting with ."#,
            ],
        ),
        (
            "/spec/versions/0/additionalPrinterColumns/1/type",
            json!("text"),
            &[
                r#"spec.versions[0].additionalPrinterColumns[1].type: Invalid value: "text": must be one of boolean,date,integer,number,string"#,
            ],
        ),
        (
            "/spec/versions/0/additionalPrinterColumns/1",
            json!({"format": "hex"}),
            &[
                "spec.versions[0].additionalPrinterColumns[1].name: Required value",
                "spec.versions[0].additionalPrinterColumns[1].type: Required value: must be one of boolean,date,integer,number,string",
                r#"spec.versions[0].additionalPrinterColumns[1].format: Invalid value: "hex": must be one of byte,date,date-time,double,float,int32,int64,password"#,
                "spec.versions[0].additionalPrinterColumns[1].jsonPath: Required value",
            ],
        ),
        (
            "/spec/versions/0/subresources/scale/specReplicasPath",
            json!(".status.replicas"),
            &[
                r#"spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".status.replicas": should be a json path under .spec"#,
            ],
        ),
        (
            "/spec/versions/0/subresources/scale/specReplicasPath",
            json!(".spec.list[0]"),
            &[
                r#"spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".spec.list[0]": must be a json path of plain fields in the dot notation"#,
            ],
        ),
        (
            "/spec/versions/0/subresources/scale/statusReplicasPath",
            json!(null),
            &["spec.versions[0].subresources.scale.statusReplicasPath: Required value"],
        ),
        (
            "/spec/versions/0/subresources/scale/labelSelectorPath",
            json!(".metadata.labels"),
            &[
                r#"spec.versions[0].subresources.scale.labelSelectorPath: Invalid value: ".metadata.labels": should be a json path under either .spec or .status"#,
            ],
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([
                {"jsonPath": ".spec.missing"}, {"jsonPath": ".spec.tags"}, {"jsonPath": ".spec.tags[0]"},
                {"jsonPath": ".metadata.name"}, {"jsonPath": ".spec.color"}, {"jsonPath": ".spec.color"}, {},
            ]),
            &[
                r#"spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".spec.missing": is an invalid path: does not refer to a valid field"#,
                r#"spec.versions[0].selectableFields[1].jsonPath: Invalid value: ".spec.tags": is an invalid path: must be a field of type string, boolean or integer"#,
                r#"spec.versions[0].selectableFields[2].jsonPath: Invalid value: ".spec.tags[0]": must be a json path of plain fields in the dot notation"#,
                r#"spec.versions[0].selectableFields[3].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata"#,
                r#"spec.versions[0].selectableFields[5].jsonPath: Duplicate value: ".spec.color""#,
                "spec.versions[0].selectableFields[6].jsonPath: Required value",
            ],
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut crd = crd();
        set(&mut crd, pointer, value);
        let found: Vec<String> = compile(&crd).expect_err(pointer).iter().map(ToString::to_string).collect();
        assert_eq!(found, *expected, "{pointer} = {value}");
    }
}

#[test]
fn groups_are_domains() {
    let with_group = |group: &str| {
        let mut crd = crd();
        crd["spec"]["group"] = json!(group);
        crd["metadata"]["name"] = json!(format!("widgets.{group}"));
        crd
    };
    let faults = |crd: &Value| {
        compile(crd).err().map(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(
        faults(&with_group("shop")).unwrap(),
        [r#"spec.group: Invalid value: "shop": should be a domain with at least one dot"#]
    );
    assert!(
        faults(&with_group("Shop.com")).unwrap()[0]
            .contains("a lowercase RFC 1123 subdomain must consist of")
    );
    assert_eq!(faults(&with_group("")).unwrap(), ["spec.group: Required value"]);

    let mut protected = with_group("gateway.networking.k8s.io");
    let found = compile(&protected).unwrap_err();
    assert_eq!(found[0].path, "metadata.annotations[api-approved.kubernetes.io]");
    assert_eq!(found[0].type_, FieldErrorType::Required);
    for (approval, fine) in [("https://example.com/1", true), ("unapproved, a test", true), ("yes", false)] {
        protected["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": approval});
        assert_eq!(validate_metadata(&protected).is_empty(), fine, "{approval}");
    }
}

#[test]
fn faults_of_a_schema_are_told_below_its_version() {
    let mut crd = crd();
    set(
        &mut crd,
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas",
        &json!({"description": "untyped"}),
    );
    let errors = compile(&crd).unwrap_err();
    assert!(!errors.is_empty());
    for error in errors {
        assert!(
            error.path.starts_with("spec.versions[0].schema.openAPIV3Schema.properties[spec]"),
            "{error}"
        );
    }
}

#[test]
fn malformed_crds_are_refused_without_a_panic() {
    for crd in [
        json!(null),
        json!({}),
        json!({"spec": 1}),
        json!({"spec": {"versions": {}, "names": [], "conversion": 1}}),
    ] {
        assert!(compile(&crd).is_err());
        let mut crd = crd;
        defaulted(&mut crd);
        accepted_names_status(&crd, "2025-06-01T12:00:00Z");
        assert_eq!(storage_version(&crd), "");
    }
    for pointer in [
        "/spec/versions/0",
        "/spec/versions/0/subresources",
        "/spec/names/kind",
        "/spec/versions/0/selectableFields/0",
    ] {
        for value in [json!(7), json!("x"), json!([]), json!([1])] {
            let mut crd = crd();
            set(&mut crd, pointer, &value);
            let _ = compile(&crd);
        }
    }
}

#[test]
fn what_an_author_leaves_out_is_filled_in() {
    let mut given = crd();
    defaulted(&mut given);
    assert_eq!(given["spec"]["names"]["singular"], "widget");
    assert_eq!(given["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(given["spec"]["conversion"], json!({"strategy": "None"}));

    let mut own = crd();
    own["spec"]["names"]["singular"] = json!("gadget");
    own["spec"]["names"]["listKind"] = json!("Widgets");
    own["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let before = own.clone();
    defaulted(&mut own);
    assert_eq!(own, before);
}

#[test]
fn the_status_says_that_the_kind_is_served() {
    let mut crd = crd();
    defaulted(&mut crd);
    let status = accepted_names_status(&crd, "2025-06-01T12:00:00Z");
    assert_eq!(status["acceptedNames"], crd["spec"]["names"]);
    assert_eq!(status["storedVersions"], json!(["v1"]));
    assert_eq!(
        status["conditions"],
        json!([
            {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found",
             "lastTransitionTime": "2025-06-01T12:00:00Z"},
            {"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
             "message": "the initial names have been accepted", "lastTransitionTime": "2025-06-01T12:00:00Z"},
        ])
    );

    crd["status"] = status.clone();
    assert_eq!(
        accepted_names_status(&crd, "2025-06-02T12:00:00Z"),
        status,
        "nothing changes the second time"
    );

    crd["spec"]["versions"][0]["storage"] = json!(false);
    crd["spec"]["versions"][1]["storage"] = json!(true);
    crd["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "Terminating", "status": "False"}));
    crd["status"]["conditions"][1]["status"] = json!("False");
    let later = accepted_names_status(&crd, "2025-06-02T12:00:00Z");
    assert_eq!(later["storedVersions"], json!(["v1", "v1alpha1"]));
    assert_eq!(later["conditions"][0]["lastTransitionTime"], "2025-06-01T12:00:00Z");
    assert_eq!(later["conditions"][1]["lastTransitionTime"], "2025-06-02T12:00:00Z");
    assert_eq!(later["conditions"][2]["type"], "Terminating");
}

#[test]
fn fingerprints_follow_content() {
    let text = r#"{"b": [1, 2.5, "x"], "a": {"k": null, "l": true}}"#;
    let turned = r#"{"a": {"l": true, "k": null}, "b": [1, 2.5, "x"]}"#;
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(fingerprint(&parse(text)), fingerprint(&parse(turned)));
    let values = [
        json!([]),
        json!({}),
        json!([[]]),
        json!("1"),
        json!(1),
        json!(null),
        json!(["ab", "c"]),
        json!(["a", "bc"]),
    ];
    let keys: BTreeSet<[u8; 32]> = values.iter().map(fingerprint).collect();
    assert_eq!(keys.len(), values.len());
}

/// Sets what a JSON pointer points to; `null` removes it.
fn set(target: &mut Value, pointer: &str, value: &Value) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match target.pointer_mut(parent).unwrap() {
        Value::Object(members) if value.is_null() => drop(members.remove(last)),
        Value::Object(members) => drop(members.insert(last.to_owned(), value.clone())),
        Value::Array(entries) => entries[last.parse::<usize>().unwrap()] = value.clone(),
        other => panic!("{other} has no members"),
    }
}
