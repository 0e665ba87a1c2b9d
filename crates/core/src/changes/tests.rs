//! Every change has words, and what means the same has none.

use serde_json::{Value, json};

use super::*;

fn spec(change: impl FnOnce(&mut Value)) -> WorkloadSpec {
    let mut value = json!({
        "template": { "spec": {
            "runtime": {
                "resources": { "instanceType": "datumcloud/d1-standard-2" },
                "sandbox": { "containers": [{
                    "name": "web", "image": "ghcr.io/example/web:1.4.1",
                    "env": [{ "name": "MODE", "value": "a" }],
                    "ports": [{ "name": "http", "port": 80 }],
                }] },
            },
            "networkInterfaces": [{ "network": { "name": "default" } }],
        } },
        "placements": [
            { "name": "main", "cityCodes": ["DFW", "IAD"], "scaleSettings": { "minReplicas": 2 } },
        ],
    });
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

fn words(change: impl FnOnce(&mut Value)) -> Vec<String> {
    between(&spec(|_| {}), &spec(change)).iter().map(ToString::to_string).collect()
}

fn add(list: &mut Value, entry: Value) {
    list.as_array_mut().unwrap().push(entry);
}

fn container(value: &mut Value) -> &mut Value {
    &mut value["template"]["spec"]["runtime"]["sandbox"]["containers"][0]
}

#[test]
fn nothing_is_said_of_what_means_the_same() {
    assert_eq!(words(|_| {}), [""; 0]);
    assert_eq!(words(|spec| spec["paused"] = json!(false)), [""; 0]);
    assert_eq!(words(|spec| spec["template"]["metadata"] = json!({ "labels": {} })), [""; 0]);
}

#[test]
fn images_of_one_repository_differ_in_their_tags() {
    assert_eq!(
        words(|spec| container(spec)["image"] = json!("ghcr.io/example/web:1.4.2")),
        ["image 1.4.1 → 1.4.2"]
    );
    assert_eq!(
        words(|spec| container(spec)["image"] = json!("ghcr.io/example/api:1.4.1")),
        ["image ghcr.io/example/web:1.4.1 → ghcr.io/example/api:1.4.1"]
    );
    assert_eq!(
        words(|spec| container(spec)["image"] = json!("localhost:5000/web")),
        ["image ghcr.io/example/web:1.4.1 → localhost:5000/web"]
    );
}

#[test]
fn the_same_change_of_several_cities_is_said_once() {
    assert_eq!(
        words(|spec| spec["placements"][0]["scaleSettings"] = json!({ "minReplicas": 3, "maxReplicas": 5 })),
        ["DFW, IAD min 2 → 3", "DFW, IAD max none → 5"]
    );
    assert_eq!(
        words(|spec| spec["placements"][0]["cityCodes"] = json!(["DFW", "LHR", "SIN"])),
        ["LHR, SIN added (min 2)", "IAD removed"]
    );
    assert_eq!(
        words(|spec| spec["placements"][0]["cityCodes"] = json!(["dfw", "IAD"])),
        ["other settings changed"]
    );
    assert_eq!(
        words(|spec| {
            add(
                &mut spec["placements"],
                json!({ "name": "edge", "cityCodes": ["LHR"], "scaleSettings": { "minReplicas": 1 } }),
            );
            spec["placements"][0]["scaleSettings"]["instanceManagementPolicy"] = json!("Parallel");
        }),
        ["main/DFW, main/IAD start one at a time → all at once", "edge/LHR added (min 1)"]
    );
}

#[test]
fn values_of_variables_are_not_said() {
    let said = words(|spec| {
        container(spec)["env"] =
            json!([{ "name": "MODE", "value": "secret" }, { "name": "TOKEN", "value": "x" }]);
    });
    assert_eq!(said, ["env MODE changed", "env TOKEN added"]);
    assert_eq!(words(|spec| container(spec)["env"] = json!([])), ["env MODE removed"]);
}

#[test]
fn everything_else_has_words_too() {
    let said = words(|spec| {
        container(spec)["ports"] =
            json!([{ "name": "http", "port": 8080 }, { "name": "dns", "port": 53, "protocol": "UDP" }]);
        container(spec)["args"] = json!(["--fast"]);
        container(spec)["resources"] = json!({ "limits": { "cpu": "500m" } });
        spec["template"]["spec"]["networkInterfaces"][0]["network"]["name"] = json!("inner");
        spec["template"]["spec"]["volumes"] = json!([{ "name": "data", "configMap": { "name": "x" } }]);
        spec["template"]["metadata"] = json!({
            "labels": { "tier": "front" },
            "annotations": { "compute.datumapis.com/restartedAt": "2026-05-01T11:00:00Z", "compute.datumapis.com/ssh-keys": "a:b" },
        });
        spec["paused"] = json!(true);
    });
    assert_eq!(
        said,
        [
            "arguments the image's → --fast",
            "port dns added (53/UDP)",
            "port http 80 → 8080",
            "limit cpu none → 500m",
            "network default → inner",
            "volume data added",
            "label tier added",
            "restart",
            "ssh keys changed",
            "rollout paused",
        ]
    );
}

#[test]
fn a_second_container_is_named() {
    let said = words(|spec| {
        container(spec)["image"] = json!("ghcr.io/example/web:2");
        add(
            &mut spec["template"]["spec"]["runtime"]["sandbox"]["containers"],
            json!({ "name": "side", "image": "side:1" }),
        );
    });
    assert_eq!(said, ["container side added (side:1)", "web image 1.4.1 → 2"]);
}

#[test]
fn a_restart_alone_is_no_change_of_what_is_asked_for() {
    let restarted = spec(|spec| {
        spec["template"]["metadata"] =
            json!({ "annotations": { "compute.datumapis.com/restartedAt": "2026-05-01T11:00:00Z" } });
    });
    assert!(same_but_restart(&spec(|_| {}), &restarted) && !same(&spec(|_| {}), &restarted));
    assert!(!same_but_restart(&spec(|_| {}), &spec(|spec| container(spec)["image"] = json!("x"))));
}
