//! What runs: containers, machines, sizes, ports and networks.

use super::*;

const LABEL: &str =
    "must be a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends";

#[test]
fn the_runtime() {
    each(
        &good(),
        &[
            (
                "$/runtime/resources/instanceType",
                Value::Null,
                "$.runtime.resources.instanceType",
                "Required value: name an instance type, such as \"datumcloud/d1-standard-2\"",
            ),
            (
                "$/runtime/resources",
                Value::Null,
                "$.runtime.resources.instanceType",
                "Required value: name an instance type, such as \"datumcloud/d1-standard-2\"",
            ),
            (
                "$/runtime/resources/instanceType",
                json!("d1-standard-2"),
                "$.runtime.resources.instanceType",
                "Unsupported value: \"d1-standard-2\": supported values: \"datumcloud/d1-standard-2\"",
            ),
            (
                "$/runtime/resources/requests/cpu",
                json!("lots"),
                "$.runtime.resources.requests[cpu]",
                "Invalid value: \"lots\": \"lots\" is not a quantity such as 2, 500m or 2Gi",
            ),
            (
                "$/runtime/resources/requests/memory",
                json!("-1Gi"),
                "$.runtime.resources.requests[memory]",
                "Invalid value: \"-1Gi\": must not be negative",
            ),
            (
                "$/runtime/sandbox/containers/1/resources",
                json!({ "limits": { "cpu": "" } }),
                "$.runtime.sandbox.containers[1].resources.limits[cpu]",
                "Invalid value: \"\": \"\" is not a quantity such as 2, 500m or 2Gi",
            ),
            (
                "$/runtime/sandbox/containers/1/resources",
                json!({ "requests": { "cpu": -1 } }),
                "$.runtime.sandbox.containers[1].resources.requests[cpu]",
                "Invalid value: \"-1\": must not be negative",
            ),
        ],
    );
}

#[test]
fn no_runtime_at_all() {
    let mut bad = good();
    set(&mut bad, "$/runtime/sandbox", &Value::Null);
    set(&mut bad, "$/volumes", &Value::Null);
    let expected = [(
        "spec.template.spec.runtime".to_owned(),
        "Required value: one of sandbox and virtualMachine is needed".to_owned(),
    )];
    assert_eq!(faults(&bad, None), expected);
}

#[test]
fn both_runtimes() {
    let bad = with(
        with(machine(), "$/runtime/sandbox", &json!({ "containers": [{ "name": "a", "image": "b" }] })),
        "/spec/paused",
        &json!(false),
    );
    let expected = [(
        "spec.template.spec.runtime.virtualMachine".to_owned(),
        "Forbidden: sandbox is set, too; exactly one of sandbox and virtualMachine may be".to_owned(),
    )];
    assert_eq!(faults(&bad, None), expected);
}

#[test]
fn containers() {
    let name = |bad: &str| format!("Invalid value: {bad:?}: {LABEL}");
    let c1 = "$.runtime.sandbox.containers[1].name";
    each(
        &good(),
        &[
            (
                "$/runtime/sandbox/containers/1/name",
                Value::Null,
                c1,
                "Required value: a container needs a name",
            ),
            ("$/runtime/sandbox/containers/1/name", json!("Side"), c1, leak(name("Side"))),
            ("$/runtime/sandbox/containers/1/name", json!("a.b"), c1, leak(name("a.b"))),
            ("$/runtime/sandbox/containers/1/name", json!("-a"), c1, leak(name("-a"))),
            ("$/runtime/sandbox/containers/1/name", json!("a_b"), c1, leak(name("a_b"))),
            ("$/runtime/sandbox/containers/1/name", json!("a".repeat(64)), c1, leak(name(&"a".repeat(64)))),
            (
                "$/runtime/sandbox/containers/1/name",
                json!("app"),
                c1,
                "Duplicate value: \"app\": each container needs a name of its own",
            ),
            (
                "$/runtime/sandbox/containers/1/image",
                Value::Null,
                "$.runtime.sandbox.containers[1].image",
                "Required value: a container needs an image",
            ),
            (
                "$/runtime/sandbox/containers/1/image",
                json!(""),
                "$.runtime.sandbox.containers[1].image",
                "Required value: a container needs an image",
            ),
            (
                "$/runtime/sandbox/containers/1/image",
                json!("  "),
                "$.runtime.sandbox.containers[1].image",
                "Required value: a container needs an image",
            ),
            (
                "$/runtime/sandbox/imagePullSecrets/0/name",
                json!(""),
                "$.runtime.sandbox.imagePullSecrets[0].name",
                "Required value: name the Secret",
            ),
            (
                "$/runtime/sandbox/imagePullSecrets/0/name",
                json!("hidden"),
                "$.runtime.sandbox.imagePullSecrets[0].name",
                "Forbidden: you may not read Secret \"hidden\"; ask for permission to \"get\" it",
            ),
        ],
    );
    let mut none = good();
    set(&mut none, "$/runtime/sandbox/containers", &json!([]));
    set(&mut none, "$/volumes", &json!([]));
    let expected = [(
        "spec.template.spec.runtime.sandbox.containers".to_owned(),
        "Required value: at least one container is needed".to_owned(),
    )];
    assert_eq!(faults(&none, None), expected);
}

#[test]
fn ports() {
    let of = |field: &str| leak(format!("$.runtime.sandbox.containers[0].ports[1].{field}"));
    each(
        &good(),
        &[
            (
                "$/runtime/sandbox/containers/0/ports/1/name",
                json!(""),
                of("name"),
                "Required value: a port needs a name",
            ),
            (
                "$/runtime/sandbox/containers/0/ports/1/name",
                json!("HTTPS"),
                of("name"),
                leak(format!("Invalid value: \"HTTPS\": {LABEL}")),
            ),
            (
                "$/runtime/sandbox/containers/0/ports/1/name",
                json!("http"),
                of("name"),
                "Duplicate value: \"http\": each port needs a name of its own",
            ),
            (
                "$/runtime/sandbox/containers/0/ports/1/port",
                Value::Null,
                of("port"),
                "Invalid value: 0: must be between 1 and 65535",
            ),
            (
                "$/runtime/sandbox/containers/0/ports/1/port",
                json!(0),
                of("port"),
                "Invalid value: 0: must be between 1 and 65535",
            ),
            (
                "$/runtime/sandbox/containers/0/ports/1/port",
                json!(-1),
                of("port"),
                "Invalid value: -1: must be between 1 and 65535",
            ),
            (
                "$/runtime/sandbox/containers/0/ports/1/port",
                json!(65536),
                of("port"),
                "Invalid value: 65536: must be between 1 and 65535",
            ),
            (
                "$/runtime/sandbox/containers/0/ports/1/protocol",
                json!("tcp"),
                of("protocol"),
                "Unsupported value: \"tcp\": supported values: \"TCP\", \"UDP\", \"SCTP\"",
            ),
        ],
    );
    each(
        &machine(),
        &[
            (
                "$/runtime/virtualMachine/ports/0/port",
                json!(70_000),
                "$.runtime.virtualMachine.ports[0].port",
                "Invalid value: 70000: must be between 1 and 65535",
            ),
            (
                "$/runtime/virtualMachine/ports/-",
                json!({ "name": "ssh", "port": 23 }),
                "$.runtime.virtualMachine.ports[1].name",
                "Duplicate value: \"ssh\": each port needs a name of its own",
            ),
        ],
    );
}

#[test]
fn machines() {
    let boots = "a virtual machine boots from its first volume, so this must be a disk with disk.template.spec.populator.image";
    each(
        &machine(),
        &[
            (
                "$/runtime/virtualMachine/volumeAttachments",
                json!([{ "name": "data" }, { "name": "boot" }]),
                "$.runtime.virtualMachine.volumeAttachments[0].name",
                leak(format!("Invalid value: \"data\": {boots}")),
            ),
            (
                "$/runtime/virtualMachine/volumeAttachments/1/mountPath",
                json!("data"),
                "$.runtime.virtualMachine.volumeAttachments[1].mountPath",
                "Invalid value: \"data\": must be an absolute path, such as /data",
            ),
            (
                "$/runtime/virtualMachine/volumeAttachments/-",
                json!({ "name": "nope" }),
                "$.runtime.virtualMachine.volumeAttachments[2].name",
                "Not found: \"nope\": no volume of this name is in spec.template.spec.volumes",
            ),
            (
                "$/volumes/0/disk/template/spec/populator/image/name",
                json!(""),
                "$.volumes[0].disk.template.spec.populator.image.name",
                "Required value: name the image",
            ),
        ],
    );
    let mut bad = machine();
    set(&mut bad, "$/runtime/virtualMachine/volumeAttachments", &json!([]));
    set(&mut bad, "$/volumes", &json!([]));
    let expected = [(
        "spec.template.spec.runtime.virtualMachine.volumeAttachments".to_owned(),
        "Required value: a virtual machine boots from its first volume; attach one".to_owned(),
    )];
    assert_eq!(faults(&bad, None), expected);
    let bad = with(machine(), "$/volumes/0", &json!({ "name": "boot", "configMap": { "name": "settings" } }));
    let expected = [(
        "spec.template.spec.runtime.virtualMachine.volumeAttachments[0].name".to_owned(),
        format!("Invalid value: \"boot\": {boots}"),
    )];
    assert_eq!(faults(&bad, None), expected);
}

#[test]
fn networks() {
    let of = |field: &str| leak(format!("$.networkInterfaces[0].network.{field}"));
    each(
        &good(),
        &[
            (
                "$/networkInterfaces",
                Value::Null,
                "$.networkInterfaces",
                "Required value: at least one network interface is needed",
            ),
            (
                "$/networkInterfaces",
                json!([]),
                "$.networkInterfaces",
                "Required value: at least one network interface is needed",
            ),
            ("$/networkInterfaces/0/network/name", json!(""), of("name"), "Required value: name the network"),
            ("$/networkInterfaces/0/network", Value::Null, of("name"), "Required value: name the network"),
            (
                "$/networkInterfaces/0/network/name",
                json!("../secrets/x"),
                of("name"),
                "Invalid value: \"../secrets/x\": must be the name of an object: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
            ),
            (
                "$/networkInterfaces/0/network/namespace",
                json!("other"),
                of("namespace"),
                "Invalid value: \"other\": must be empty or the namespace of the workload, \"default\"",
            ),
            (
                "$/networkInterfaces/0/network/name",
                json!("missing"),
                of("name"),
                "Not found: \"missing\": there is no network of this name in namespace \"default\"",
            ),
            (
                "$/networkInterfaces/0/network/name",
                json!("closed"),
                of("name"),
                "Forbidden: you may not use network \"closed\"; ask for permission to \"use\" it",
            ),
        ],
    );
}

/// A message made in a test, for a table of literals.
pub(super) fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}
