//! Rows of built-in kinds and of custom resources, and the tables around them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{IncludeObject, Printer};
use crate::registry::definition::{Columns, Definition, GroupVersion, Names, PrinterColumn};

const CREATED: &str = "2025-06-01T11:55:00Z";

fn now() -> Timestamp {
    "2025-06-01T12:00:00Z".parse().unwrap()
}

fn definition(group: &str, kind: &str, columns: Columns) -> Definition {
    Definition {
        kept: true,
        gv: GroupVersion { group: group.to_owned(), version: "v1".to_owned() },
        names: Names { kind: kind.to_owned(), ..Names::default() },
        namespaced: true,
        schema: Arc::default(),
        openapi: Value::Null,
        openapi_components: Arc::new(Map::new()),
        columns,
        status: false,
        scale: None,
        selectable_fields: Vec::new(),
        built_in: true,
        warning: None,
    }
}

fn built_in(group: &str, kind: &str) -> Printer {
    Printer::for_definition(&definition(group, kind, Columns::BuiltIn))
}

fn column(name: &str, type_: &str, json_path: &str) -> PrinterColumn {
    PrinterColumn {
        name: name.to_owned(),
        type_: type_.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: json_path.to_owned(),
    }
}

fn named(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object().cloned().unwrap_or_default();
    object["metadata"] = json!({"name": "x", "creationTimestamp": CREATED});
    object["metadata"].as_object_mut().unwrap().extend(metadata);
    object
}

/// `(heading, priority)` of every column.
fn headings(printer: &Printer) -> Vec<(String, i64)> {
    let columns = printer.definitions.as_array().unwrap();
    columns
        .iter()
        .map(|column| (column["name"].as_str().unwrap().to_owned(), column["priority"].as_i64().unwrap()))
        .collect()
}

#[test]
fn built_in_kinds_print_what_people_know_them_by() {
    let cases: &[(&str, &str, Value, Value)] = &[
        ("", "Namespace", json!({"status": {"phase": "Active"}}), json!(["x", "Active", "5m"])),
        (
            "",
            "ConfigMap",
            json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": ""}}),
            json!(["x", 3, "5m"]),
        ),
        ("", "Secret", json!({"type": "Opaque", "data": {"a": "MQ=="}}), json!(["x", "Opaque", 1, "5m"])),
        ("", "ServiceAccount", json!({"secrets": [{"name": "t"}]}), json!(["x", 1, "5m"])),
        ("", "ServiceAccount", json!({}), json!(["x", 0, "5m"])),
        ("coordination.k8s.io", "Lease", json!({"spec": {"holderIdentity": "me"}}), json!(["x", "me", "5m"])),
        ("coordination.k8s.io", "Lease", json!({}), json!(["x", "", "5m"])),
        ("apiextensions.k8s.io", "CustomResourceDefinition", json!({}), json!(["x", CREATED])),
        ("rbac.authorization.k8s.io", "ClusterRole", json!({}), json!(["x", CREATED])),
        ("rbac.authorization.k8s.io", "Role", json!({}), json!(["x", CREATED])),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({
                "roleRef": {"kind": "Role", "name": "reader"},
                "subjects": [
                    {"kind": "User", "name": "ann"},
                    {"kind": "User", "name": "bob"},
                    {"kind": "Group", "name": "ops"},
                    {"kind": "ServiceAccount", "namespace": "d", "name": "sa"},
                ],
            }),
            json!(["x", "Role/reader", "5m", "ann, bob", "ops", "d/sa"]),
        ),
        ("apps", "Deployment", json!({}), json!(["x", "5m"])),
    ];
    for (group, kind, object, expected) in cases {
        let printer = built_in(group, kind);
        let cells = printer.cells(&named(object.clone()), now());
        assert_eq!(Value::Array(cells), *expected, "{kind}");
        assert_eq!(headings(&printer).len(), expected.as_array().unwrap().len(), "{kind}");
    }
}

#[test]
fn events_print_alike_in_both_groups() {
    let core = json!({
        "type": "Warning", "reason": "BackOff", "message": " failed \n", "count": 4,
        "firstTimestamp": "2025-06-01T11:00:00Z", "lastTimestamp": "2025-06-01T11:59:30Z",
        "involvedObject": {"kind": "Pod", "name": "web-0", "fieldPath": "spec.containers{app}"},
        "source": {"component": "kubelet", "host": "n1"},
    });
    let expected = json!([
        "30s",
        "Warning",
        "BackOff",
        "pod/web-0",
        "spec.containers{app}",
        "kubelet, n1",
        "failed",
        "60m",
        4,
        "x"
    ]);
    assert_eq!(Value::Array(built_in("", "Event").cells(&named(core), now())), expected);

    let new = json!({
        "type": "Normal", "reason": "Made", "note": "done", "eventTime": "2025-06-01T11:00:00.000001Z",
        "regarding": {"kind": "Node"}, "reportingController": "c/x", "reportingInstance": "c-0",
        "series": {"count": 7, "lastObservedTime": "2025-06-01T11:59:00.000000Z"},
    });
    let expected = json!(["60s", "Normal", "Made", "node", "", "c/x, c-0", "done", "59m", 7, "x"]);
    assert_eq!(Value::Array(built_in("events.k8s.io", "Event").cells(&named(new), now())), expected);

    let single = json!({"eventTime": "2025-06-01T11:58:00Z", "reportingComponent": "c"});
    let expected = json!(["2m", "", "", "", "", "c", "", "2m", 1, "x"]);
    assert_eq!(Value::Array(built_in("", "Event").cells(&named(single), now())), expected);

    let printer = built_in("", "Event");
    let shown: Vec<_> =
        headings(&printer).into_iter().filter(|(_, priority)| *priority == 0).map(|(name, _)| name).collect();
    assert_eq!(shown, ["Last Seen", "Type", "Reason", "Object", "Message"]);
}

#[test]
fn pods_tell_their_state_in_one_word() {
    let ready = json!({"type": "Ready", "status": "True"});
    // (ready, status, restarts) of pods with one container and one init container
    let cases: &[(&str, Value, [&str; 3])] = &[
        ("no status yet", json!({"status": {}}), ["0/1", "", "0"]),
        ("pending", json!({"status": {"phase": "Pending"}}), ["0/1", "Pending", "0"]),
        ("own reason", json!({"status": {"phase": "Failed", "reason": "Evicted"}}), ["0/1", "Evicted", "0"]),
        (
            "gated",
            json!({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}),
            ["0/1", "SchedulingGated", "0"],
        ),
        (
            "running",
            json!({"status": {"phase": "Running", "containerStatuses": [{"ready": true, "restartCount": 2, "state": {"running": {}}}]}}),
            ["1/1", "Running", "2"],
        ),
        (
            "restarted",
            json!({"status": {"phase": "Running", "containerStatuses": [{"ready": true, "restartCount": 2, "state": {"running": {}},
                "lastState": {"terminated": {"finishedAt": "2025-06-01T11:57:00Z"}}}]}}),
            ["1/1", "Running", "2 (3m ago)"],
        ),
        (
            "crash loop",
            json!({"status": {"phase": "Running", "containerStatuses": [{"restartCount": 0, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}),
            ["0/1", "CrashLoopBackOff", "0"],
        ),
        (
            "completed",
            json!({"status": {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]}}),
            ["0/1", "Completed", "0"],
        ),
        (
            "error",
            json!({"status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1}}}]}}),
            ["0/1", "Error", "0"],
        ),
        (
            "exit code",
            json!({"status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}}),
            ["0/1", "ExitCode:3", "0"],
        ),
        (
            "signal",
            json!({"status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9, "exitCode": 137}}}]}}),
            ["0/1", "Signal:9", "0"],
        ),
        (
            "one done, one running and ready",
            json!({"status": {"phase": "Running", "conditions": [ready], "containerStatuses": [
                {"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}, {"ready": true, "state": {"running": {}}}]}}),
            ["1/1", "Running", "0"],
        ),
        (
            "one done, one running, not ready",
            json!({"status": {"phase": "Running", "containerStatuses": [
                {"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}, {"ready": true, "state": {"running": {}}}]}}),
            ["1/1", "NotReady", "0"],
        ),
        (
            "first init running",
            json!({"status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}],
                "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]}}),
            ["0/1", "Init:0/1", "0"],
        ),
        (
            "init waits",
            json!({"status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}),
            ["0/1", "Init:CrashLoopBackOff", "3"],
        ),
        (
            "init failed",
            json!({"status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"reason": "Error", "exitCode": 2}}}]}}),
            ["0/1", "Init:Error", "0"],
        ),
        (
            "init exit code",
            json!({"status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 2}}}]}}),
            ["0/1", "Init:ExitCode:2", "0"],
        ),
        (
            "init done",
            json!({"status": {"phase": "Running", "initContainerStatuses": [{"name": "i", "restartCount": 5, "state": {"terminated": {"exitCode": 0}}}],
                "containerStatuses": [{"ready": true, "restartCount": 1, "state": {"running": {}}}]}}),
            ["1/1", "Running", "1"],
        ),
        (
            "terminating",
            json!({"metadata": {"deletionTimestamp": CREATED}, "status": {"phase": "Running"}}),
            ["0/1", "Terminating", "0"],
        ),
        (
            "over before it was deleted",
            json!({"metadata": {"deletionTimestamp": CREATED}, "status": {"phase": "Succeeded"}}),
            ["0/1", "Succeeded", "0"],
        ),
        (
            "node lost",
            json!({"metadata": {"deletionTimestamp": CREATED}, "status": {"phase": "Running", "reason": "NodeLost"}}),
            ["0/1", "Unknown", "0"],
        ),
    ];
    let printer = built_in("", "Pod");
    for (what, pod, expected) in cases {
        let mut pod = named(pod.clone());
        pod["spec"] = json!({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]});
        let cells = printer.cells(&pod, now());
        assert_eq!(cells[1..4], expected.map(Value::from), "{what}");
        assert_eq!(cells[4], "5m", "{what}");
    }
}

#[test]
fn sidecars_count_as_containers() {
    let pod = named(json!({
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c"}],
            "initContainers": [{"name": "s", "restartPolicy": "Always"}],
            "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}],
        },
        "status": {
            "phase": "Running",
            "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}],
            "initContainerStatuses": [{"name": "s", "started": true, "ready": true, "restartCount": 1, "state": {"running": {}}}],
            "containerStatuses": [{"name": "c", "ready": true, "restartCount": 2, "state": {"running": {}}}],
        },
    }));
    let expected = json!(["x", "2/2", "Running", "3", "5m", "10.0.0.1", "n1", "<none>", "1/2"]);
    assert_eq!(Value::Array(built_in("", "Pod").cells(&pod, now())), expected);
}

#[test]
fn nodes_tell_status_roles_and_addresses() {
    let node = named(json!({
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/edge": "", "kubernetes.io/role": "old"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}],
            "nodeInfo": {"kubeletVersion": "v1.35.0", "osImage": "Debian", "kernelVersion": "6.1", "containerRuntimeVersion": "containerd://2"},
        },
    }));
    let expected = json!([
        "x",
        "Ready,SchedulingDisabled",
        "edge,old,worker",
        "5m",
        "v1.35.0",
        "10.0.0.2",
        "<none>",
        "Debian",
        "6.1",
        "containerd://2"
    ]);
    let printer = built_in("", "Node");
    assert_eq!(Value::Array(printer.cells(&node, now())), expected);
    let bare = json!([
        "x",
        "Unknown",
        "<none>",
        "5m",
        "",
        "<none>",
        "<none>",
        "<unknown>",
        "<unknown>",
        "<unknown>"
    ]);
    assert_eq!(Value::Array(printer.cells(&named(json!({})), now())), bare);
    let lost = named(json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}));
    assert_eq!(printer.cells(&lost, now())[1], "NotReady");
}

#[test]
fn services_tell_addresses_and_ports() {
    let cases: &[(Value, Value)] = &[
        (
            json!({"spec": {"type": "ClusterIP", "clusterIP": "10.1.0.1", "clusterIPs": ["10.1.0.1"], "selector": {"b": "2", "a": "1"},
                "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}}),
            json!(["x", "ClusterIP", "10.1.0.1", "<none>", "80/TCP,53/UDP", "5m", "a=1,b=2"]),
        ),
        (
            json!({"spec": {"type": "NodePort", "clusterIP": "10.1.0.1", "externalIPs": ["1.1.1.1", "2.2.2.2"], "ports": [{"port": 80, "nodePort": 30080}]}}),
            json!(["x", "NodePort", "10.1.0.1", "1.1.1.1,2.2.2.2", "80:30080/TCP", "5m", "<none>"]),
        ),
        (
            json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.1.0.1"}}),
            json!(["x", "LoadBalancer", "10.1.0.1", "<pending>", "<none>", "5m", "<none>"]),
        ),
        (
            json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.1.0.1", "externalIPs": ["3.3.3.3"]},
                "status": {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "a.example"}]}}}),
            json!(["x", "LoadBalancer", "10.1.0.1", "9.9.9.9,a.example,3.3.3.3", "<none>", "5m", "<none>"]),
        ),
        (
            json!({"spec": {"type": "ExternalName", "externalName": "db.example"}}),
            json!(["x", "ExternalName", "<none>", "db.example", "<none>", "5m", "<none>"]),
        ),
        (
            json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}}),
            json!(["x", "ClusterIP", "None", "<none>", "<none>", "5m", "<none>"]),
        ),
    ];
    let printer = built_in("", "Service");
    for (service, expected) in cases {
        assert_eq!(Value::Array(printer.cells(&named(service.clone()), now())), *expected);
    }
}

#[test]
fn custom_columns_show_values_of_their_type() {
    let object = named(json!({
        "spec": {"text": "a", "flag": true, "count": 3, "share": 2.75, "whole": 4.0, "list": ["a", "<b>"], "map": {"k": 1}, "none": null,
                 "big": 1e21, "small": 0.00001, "when": "2025-06-01T11:00:00Z", "never": "", "wrong": "soon"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "Second"}]},
    }));
    let cases = [
        ("string", ".spec.text", json!("a")),
        ("string", ".spec.flag", json!("true")),
        ("string", ".spec.count", json!("3")),
        ("string", ".spec.share", json!("2.75")),
        ("string", ".spec.whole", json!("4")),
        ("string", ".spec.big", json!("1e+21")),
        ("string", ".spec.small", json!("1e-05")),
        ("string", ".spec.list", json!(r#"["a","\u003cb\u003e"]"#)),
        ("string", ".spec.map", json!(r#"{"k":1}"#)),
        ("string", ".spec.none", json!("<no value>")),
        ("string", ".spec.missing", json!(null)),
        ("string", ".spec.list[*]", json!("a")),
        ("string", ".spec.list[7]", json!(null)),
        ("string", ".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
        ("integer", ".spec.count", json!(3)),
        ("integer", ".spec.share", json!(2)),
        ("integer", ".spec.text", json!(null)),
        ("number", ".spec.share", json!(2.75)),
        ("number", ".spec.whole", json!(4)),
        ("boolean", ".spec.flag", json!(true)),
        ("boolean", ".spec.text", json!(null)),
        ("date", ".metadata.creationTimestamp", json!("5m")),
        ("date", ".spec.when", json!("60m")),
        ("date", ".spec.never", json!("<unknown>")),
        ("date", ".spec.wrong", json!("<invalid>")),
        ("date", ".spec.missing", json!(null)),
        ("date", ".spec.count", json!(null)),
        ("string", ".spec[", json!(null)),
    ];
    for (type_, path, expected) in cases {
        let columns = Columns::Custom(vec![column("C", type_, path)]);
        let printer = Printer::for_definition(&definition("g.io", "Thing", columns));
        assert_eq!(printer.cells(&object, now()), [json!("x"), expected], "{type_} {path}");
    }
}

#[test]
fn a_table_is_complete() {
    let mut ready = column("Ready", "string", ".status.ready");
    ready.priority = 1;
    ready.format = "byte".to_owned();
    let printer = Printer::for_definition(&definition("g.io", "Thing", Columns::Custom(vec![ready])));
    let object = named(json!({"apiVersion": "g.io/v1", "kind": "Thing", "status": {"ready": "yes"}}));
    let row = printer.row(&object, IncludeObject::Metadata, now());
    let table = printer.table(json!({"resourceVersion": "7"}), vec![row], true);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(table["metadata"]["resourceVersion"], "7");
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
    assert_eq!(
        table["columnDefinitions"][1],
        json!({"name": "Ready", "type": "string", "format": "byte", "priority": 1,
            "description": "Custom resource definition column (in JSONPath format): .status.ready"})
    );
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
    assert_eq!(table["rows"], json!([{"cells": ["x", "yes"], "object": partial}]));

    assert_eq!(printer.row(&object, IncludeObject::None, now())["object"], Value::Null);
    assert_eq!(printer.row(&object, IncludeObject::Object, now())["object"], object);
    assert_eq!(printer.table(json!({}), vec![], false)["columnDefinitions"], Value::Null);

    let bare = Printer::for_definition(&definition("g.io", "Thing", Columns::Custom(vec![])));
    assert_eq!(headings(&bare), [("Name".to_owned(), 0), ("Age".to_owned(), 0)]);
    assert_eq!(bare.cells(&object, now()), [json!("x"), json!("5m")]);
}

#[test]
fn pods_that_are_over_are_marked() {
    let printer = built_in("", "Pod");
    let over = printer.row(&named(json!({"status": {"phase": "Failed"}})), IncludeObject::None, now());
    assert_eq!(over["conditions"][0]["reason"], "Failed");
    let running = printer.row(&named(json!({"status": {"phase": "Running"}})), IncludeObject::None, now());
    assert_eq!(running.get("conditions"), None);
}

#[test]
fn include_object_is_read_from_the_query() {
    assert_eq!(IncludeObject::from_query(None), Some(IncludeObject::Metadata));
    assert_eq!(IncludeObject::from_query(Some("None")), Some(IncludeObject::None));
    assert_eq!(IncludeObject::from_query(Some("Object")), Some(IncludeObject::Object));
    assert_eq!(IncludeObject::from_query(Some("all")), None);
}
