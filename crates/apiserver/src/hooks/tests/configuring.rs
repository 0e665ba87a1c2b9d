//! What is wrong with a configuration, field by field.

use proptest::prelude::*;

use super::*;

/// A good webhook without a server behind it.
fn good() -> Value {
    json!({
        "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://hooks.example.com/a"},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
    })
}

fn errors(webhooks: &[Value]) -> Vec<String> {
    let object = configuration("test", webhooks);
    match Configuration::compile(ConfigurationKind::Mutating, &object) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn defaults() {
    let compiled =
        Configuration::compile(ConfigurationKind::Mutating, &configuration("test", &[good()])).unwrap();
    let [webhook] = compiled.webhooks() else { panic!("one webhook") };
    assert_eq!((compiled.name(), webhook.name()), ("test", "a.example.com"));
    assert_eq!(webhook.policy(), Policy::default());
    assert!(webhook.equivalent);
    let full = with(
        good(),
        json!({
            "failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 30, "sideEffects": "NoneOnDryRun",
            "reinvocationPolicy": "IfNeeded", "admissionReviewVersions": ["v1beta1", "v1"],
        }),
    );
    let compiled =
        Configuration::compile(ConfigurationKind::Mutating, &configuration("test", &[full])).unwrap();
    let expected = Policy {
        failure: FailurePolicy::Ignore,
        timeout: Duration::from_secs(30),
        reinvocation: Reinvocation::IfNeeded,
        side_effects: SideEffects::NoneOnDryRun,
    };
    assert_eq!(compiled.webhooks()[0].policy(), expected);
    assert!(!compiled.webhooks()[0].equivalent);
    assert!(Configuration::compile(ConfigurationKind::Validating, &json!({})).unwrap().webhooks().is_empty());
}

#[test]
fn bad_fields_are_told_by_path() {
    let long: Vec<Value> = (0..65).map(|i| json!({"name": format!("c{i}"), "expression": "true"})).collect();
    let url = |url: &str| json!({"clientConfig": {"url": url}});
    let service = |service: Value| json!({"clientConfig": {"service": service}});
    let w = "webhooks[0]";
    for (fields, expected) in [
        (json!({"name": ""}), format!("{w}.name: Required value")),
        (json!({"name": null}), format!("{w}.name: Required value")),
        (
            json!({"name": "a.b"}),
            format!(
                "{w}.name: Invalid value: \"a.b\": should be a domain with at least three segments separated by dots"
            ),
        ),
        (
            json!({"name": "A.b.c"}),
            format!("{w}.name: Invalid value: \"A.b.c\": a lowercase RFC 1123 subdomain"),
        ),
        (
            json!({"failurePolicy": "Maybe"}),
            format!(
                "{w}.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\""
            ),
        ),
        (
            json!({"matchPolicy": "x"}),
            format!("{w}.matchPolicy: Unsupported value: \"x\": supported values: \"Equivalent\", \"Exact\""),
        ),
        (
            json!({"sideEffects": null}),
            format!("{w}.sideEffects: Required value: must specify one of None, NoneOnDryRun"),
        ),
        (
            json!({"sideEffects": "Some"}),
            format!(
                "{w}.sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\""
            ),
        ),
        (
            json!({"reinvocationPolicy": "Always"}),
            format!(
                "{w}.reinvocationPolicy: Unsupported value: \"Always\": supported values: \"IfNeeded\", \"Never\""
            ),
        ),
        (
            json!({"timeoutSeconds": 0}),
            format!(
                "{w}.timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds"
            ),
        ),
        (json!({"timeoutSeconds": 31}), format!("{w}.timeoutSeconds: Invalid value: 31: ")),
        (json!({"admissionReviewVersions": []}), format!("{w}.admissionReviewVersions: Required value")),
        (
            json!({"admissionReviewVersions": ["v1beta1"]}),
            format!("{w}.admissionReviewVersions: Invalid value: \"array\": must include at least one of v1"),
        ),
        (
            json!({"admissionReviewVersions": ["v1", "v1"]}),
            format!("{w}.admissionReviewVersions[1]: Invalid value: \"v1\": duplicate version"),
        ),
        (
            json!({"admissionReviewVersions": ["v1", "1"]}),
            format!("{w}.admissionReviewVersions[1]: Invalid value: \"1\""),
        ),
        (
            json!({"clientConfig": null}),
            format!("{w}.clientConfig: Required value: exactly one of url or service is required"),
        ),
        (
            json!({"clientConfig": {"url": "https://a", "service": {"name": "a", "namespace": "b"}}}),
            format!("{w}.clientConfig: Required value: exactly one of url or service is required"),
        ),
        (
            url("http://a/"),
            format!("{w}.clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme"),
        ),
        (url("a.example.com:443"), format!("{w}.clientConfig.url: Invalid value: \"\": 'https' is the only")),
        (url("https:///path"), format!("{w}.clientConfig.url: Required value: url must be a valid URL")),
        (
            url("https://me:pw@a/"),
            format!("{w}.clientConfig.url: Invalid value: \"<user information>\": user information"),
        ),
        (
            url("https://a/#x"),
            format!("{w}.clientConfig.url: Invalid value: \"x\": fragments are not permitted"),
        ),
        (
            url("https://a/?x=y"),
            format!("{w}.clientConfig.url: Invalid value: \"x=y\": query parameters are not"),
        ),
        (
            service(json!({"name": "a"})),
            format!("{w}.clientConfig.service.namespace: Required value: service namespace"),
        ),
        (
            service(json!({"namespace": "a"})),
            format!("{w}.clientConfig.service.name: Required value: service name"),
        ),
        (
            service(json!({"namespace": "a", "name": "b", "port": 0})),
            format!(
                "{w}.clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535"
            ),
        ),
        (
            service(json!({"namespace": "a", "name": "b", "path": "c"})),
            format!("{w}.clientConfig.service.path: Invalid value: \"c\": must start with a '/'"),
        ),
        (
            service(json!({"namespace": "a", "name": "b", "path": "//c"})),
            format!("{w}.clientConfig.service.path: Invalid value: \"//c\": segment[0] may not be empty"),
        ),
        (
            json!({"clientConfig": {"url": "https://a", "caBundle": "?"}}),
            format!(
                "{w}.clientConfig.caBundle: Invalid value: \"<CA bundle>\": unable to load root certificates: "
            ),
        ),
        (
            json!({"clientConfig": {"url": "https://a", "caBundle": "bm9uZQ=="}}),
            format!(
                "{w}.clientConfig.caBundle: Invalid value: \"<CA bundle>\": unable to load root certificates: "
            ),
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"a b": "c"}}}),
            format!("{w}.namespaceSelector.matchLabels: Invalid value: \"a b\": name part must consist of"),
        ),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            format!("{w}.objectSelector.matchExpressions[0].values: Required value: must be specified when"),
        ),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}),
            format!("{w}.objectSelector.matchExpressions[0].values: Forbidden: may not be specified when"),
        ),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
            format!(
                "{w}.objectSelector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector"
            ),
        ),
        (
            json!({"matchConditions": long}),
            format!("{w}.matchConditions: Too many: 65: must have at most 64 items"),
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "nothing > 1"}]}),
            format!(
                "{w}.matchConditions[0].expression: Invalid value: \"nothing > 1\": compilation failed: "
            ),
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "'text'"}]}),
            format!(
                "{w}.matchConditions[0].expression: Invalid value: \"'text'\": compilation failed: must evaluate to bool"
            ),
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": " "}]}),
            format!("{w}.matchConditions[0].expression: Required value"),
        ),
        (
            json!({"matchConditions": [{"expression": "true"}]}),
            format!("{w}.matchConditions[0].name: Required value"),
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]}),
            format!("{w}.matchConditions[1].name: Duplicate value: \"a\""),
        ),
        (json!({"rules": "all"}), format!("{w}: Invalid value: \"object\": invalid type: string")),
    ] {
        let found = errors(&[with(good(), fields.clone())]);
        assert_eq!(found.len(), 1, "{fields}: {found:?}");
        assert!(found[0].starts_with(&expected), "{fields}:\n{}\n{expected}", found[0]);
    }
    let two = errors(&[good(), good()]);
    assert_eq!(two, ["webhooks[1].name: Duplicate value: \"a.example.com\""]);
}

#[test]
fn bad_rules_are_told_by_path() {
    let rule = |fields: Value| json!({"rules": [with(good()["rules"][0].clone(), fields)]});
    let r = "webhooks[0].rules[0]";
    for (fields, expected) in [
        (json!({"operations": []}), format!("{r}.operations: Required value")),
        (
            json!({"operations": ["*", "CREATE"]}),
            format!(
                "{r}.operations: Invalid value: \"array\": if '*' is present, must not specify other operations"
            ),
        ),
        (
            json!({"operations": ["create"]}),
            format!(
                "{r}.operations[0]: Unsupported value: \"create\": supported values: \
                 \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\""
            ),
        ),
        (json!({"apiGroups": null}), format!("{r}.apiGroups: Required value")),
        (
            json!({"apiGroups": ["*", "a"]}),
            format!(
                "{r}.apiGroups: Invalid value: \"array\": if '*' is present, must not specify other API groups"
            ),
        ),
        (json!({"apiVersions": [""]}), format!("{r}.apiVersions[0]: Required value")),
        (json!({"resources": []}), format!("{r}.resources: Required value")),
        (json!({"resources": [""]}), format!("{r}.resources[0]: Required value")),
        (
            json!({"resources": ["pods/*", "pods/status"]}),
            format!(
                "{r}.resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status"
            ),
        ),
        (
            json!({"resources": ["*/status", "pods/status"]}),
            format!(
                "{r}.resources[1]: Invalid value: \"pods/status\": if '*/status' is present, must not specify"
            ),
        ),
        (
            json!({"resources": ["*/*", "pods"]}),
            format!(
                "{r}.resources: Invalid value: \"array\": if '*/*' is present, must not specify other resources"
            ),
        ),
        (
            json!({"resources": ["*", "pods"]}),
            format!(
                "{r}.resources: Invalid value: \"array\": if '*' is present, must not specify other resources without"
            ),
        ),
        (
            json!({"scope": "All"}),
            format!(
                "{r}.scope: Unsupported value: \"All\": supported values: \"*\", \"Cluster\", \"Namespaced\""
            ),
        ),
    ] {
        let found = errors(&[with(good(), rule(fields.clone()))]);
        assert_eq!(found.len(), 1, "{fields}: {found:?}");
        assert!(found[0].starts_with(&expected), "{fields}:\n{}\n{expected}", found[0]);
    }
    for resources in [json!(["*", "pods/status"]), json!(["pods", "pods/status"]), json!(["*/*"])] {
        assert_eq!(errors(&[with(good(), rule(json!({"resources": resources})))]), Vec::<String>::new());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z*/.:#?@ ]{0,12}".prop_map(Value::from),
        Just(json!("https://[::1]:1/x")),
    ];
    let names = [
        "url",
        "service",
        "caBundle",
        "name",
        "namespace",
        "path",
        "port",
        "matchLabels",
        "matchExpressions",
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let name = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    /// Whatever is written, the answer is a compiled webhook or errors below its path.
    #[test]
    fn anything_may_be_written(field in 0usize..12, value in any_json()) {
        let fields = [
            "name", "clientConfig", "rules", "failurePolicy", "matchPolicy", "namespaceSelector",
            "objectSelector", "sideEffects", "timeoutSeconds", "admissionReviewVersions", "matchConditions",
            "reinvocationPolicy",
        ];
        let webhook = with(good(), json!({fields[field]: value}));
        for error in errors(&[webhook]) {
            prop_assert!(error.starts_with("webhooks[0]"), "{}", error);
        }
    }
}
