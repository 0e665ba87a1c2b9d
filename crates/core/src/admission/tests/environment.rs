//! Environment variables and where they come from.

use super::{containers::leak, *};

const NAME: &str = "must be the name of a variable: letters, digits, '_', '-' and '.', not starting with a digit or with '..'";
const OBJECT: &str = "must be the name of an object: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends";
const KEY: &str = "must be a key of a ConfigMap or Secret: at most 253 letters, digits, '-', '_' and '.', and not '.' or '..'";

fn invalid(value: &str, rule: &str) -> &'static str {
    leak(format!("Invalid value: {value:?}: {rule}"))
}

#[test]
fn names() {
    let path = "$.runtime.sandbox.containers[0].env[0].name";
    let pointer = "$/runtime/sandbox/containers/0/env/0/name";
    each(
        &good(),
        &[
            (pointer, json!(""), path, "Required value: a variable needs a name"),
            (pointer, json!("1A"), path, invalid("1A", NAME)),
            (pointer, json!("A=B"), path, invalid("A=B", NAME)),
            (pointer, json!("A B"), path, invalid("A B", NAME)),
            (pointer, json!("..A"), path, invalid("..A", NAME)),
            (pointer, json!("Ä"), path, invalid("Ä", NAME)),
        ],
    );
    each(
        &good(),
        &[(
            "$/runtime/sandbox/containers/0/env/2/name",
            json!("MODE"),
            "$.runtime.sandbox.containers[0].env[2].name",
            "Duplicate value: \"MODE\": each variable can be set once",
        )],
    );
}

#[test]
fn values() {
    let path = |rest: &str| leak(format!("$.runtime.sandbox.containers[0].env[1].valueFrom{rest}"));
    let pointer = |rest: &str| leak(format!("$/runtime/sandbox/containers/0/env/1{rest}"));
    let one = "one of configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef";
    each(
        &good(),
        &[
            (
                pointer("/value"),
                json!("x"),
                path(""),
                "Forbidden: value is set, too; only one of value and valueFrom may be",
            ),
            (pointer("/valueFrom"), json!({}), path(""), leak(format!("Required value: {one} is needed"))),
            (
                pointer("/valueFrom/fieldRef"),
                json!({ "fieldPath": "metadata.name" }),
                path(""),
                leak(format!("Forbidden: only {one} may be set")),
            ),
            (
                pointer("/valueFrom/configMapKeyRef/name"),
                json!(""),
                path(".configMapKeyRef.name"),
                "Required value: name the ConfigMap",
            ),
            (
                pointer("/valueFrom/configMapKeyRef/name"),
                json!("A"),
                path(".configMapKeyRef.name"),
                invalid("A", OBJECT),
            ),
            (
                pointer("/valueFrom/configMapKeyRef/key"),
                Value::Null,
                path(".configMapKeyRef.key"),
                "Required value: name the key",
            ),
            (
                pointer("/valueFrom/configMapKeyRef/key"),
                json!("a/b"),
                path(".configMapKeyRef.key"),
                invalid("a/b", KEY),
            ),
            (
                pointer("/valueFrom/configMapKeyRef/name"),
                json!("hidden"),
                path(".configMapKeyRef.name"),
                "Forbidden: you may not read ConfigMap \"hidden\"; ask for permission to \"get\" it",
            ),
            (
                pointer("/valueFrom"),
                json!({ "secretKeyRef": { "name": "", "key": "k" } }),
                path(".secretKeyRef.name"),
                "Required value: name the Secret",
            ),
            (
                pointer("/valueFrom"),
                json!({ "secretKeyRef": { "name": "tokens", "key": ".." } }),
                path(".secretKeyRef.key"),
                invalid("..", KEY),
            ),
            (
                pointer("/valueFrom"),
                json!({ "secretKeyRef": { "name": "hidden", "key": "k", "optional": true } }),
                path(".secretKeyRef.name"),
                "Forbidden: you may not read Secret \"hidden\"; ask for permission to \"get\" it",
            ),
            (
                pointer("/valueFrom"),
                json!({ "fieldRef": {} }),
                path(".fieldRef.fieldPath"),
                "Required value: name the field, such as metadata.name",
            ),
            (
                pointer("/valueFrom"),
                json!({ "resourceFieldRef": {} }),
                path(".resourceFieldRef.resource"),
                "Required value: name the resource, such as limits.cpu",
            ),
        ],
    );
}

#[test]
fn whole_sources() {
    let path = |rest: &str| leak(format!("$.runtime.sandbox.containers[0].envFrom[0]{rest}"));
    let pointer = |rest: &str| leak(format!("$/runtime/sandbox/containers/0/envFrom/0{rest}"));
    each(
        &good(),
        &[
            (pointer("/prefix"), json!("1_"), path(".prefix"), invalid("1_", NAME)),
            (
                pointer("/configMapRef"),
                Value::Null,
                path(""),
                "Required value: one of configMapRef and secretRef is needed",
            ),
            (
                pointer("/secretRef"),
                json!({ "name": "tokens" }),
                path(""),
                "Forbidden: only one of configMapRef and secretRef may be set",
            ),
            (
                pointer("/configMapRef/name"),
                json!(""),
                path(".configMapRef.name"),
                "Required value: name the ConfigMap",
            ),
            (
                pointer("/configMapRef/name"),
                json!("hidden"),
                path(".configMapRef.name"),
                "Forbidden: you may not read ConfigMap \"hidden\"; ask for permission to \"get\" it",
            ),
            (
                pointer(""),
                json!({ "secretRef": { "name": "x_y" } }),
                path(".secretRef.name"),
                invalid("x_y", OBJECT),
            ),
            (
                pointer(""),
                json!({ "secretRef": { "name": "hidden" } }),
                path(".secretRef.name"),
                "Forbidden: you may not read Secret \"hidden\"; ask for permission to \"get\" it",
            ),
        ],
    );
}
