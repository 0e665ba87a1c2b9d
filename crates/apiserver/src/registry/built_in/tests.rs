//! The built-in kinds are those of Kubernetes, with one shared set of components.

use super::*;

fn find(group: &str, kind: &str) -> Arc<Definition> {
    let found = definitions().into_iter().find(|def| def.gv.group == group && def.names.kind == kind);
    found.unwrap_or_else(|| panic!("{group}/{kind} is not there"))
}

#[test]
fn names_and_scopes_are_those_of_kubernetes() {
    let table: Vec<String> = definitions()
        .iter()
        .map(|def| {
            format!(
                "{} {} {} {} [{}] [{}] {} {}",
                def.gv,
                def.names.kind,
                def.names.plural,
                def.names.singular,
                def.names.short_names.join(","),
                def.names.categories.join(","),
                if def.namespaced { "namespaced" } else { "cluster" },
                if def.status { "status" } else { "-" },
            )
        })
        .collect();
    let expected = [
        "v1 Namespace namespaces namespace [ns] [] cluster status",
        "v1 ConfigMap configmaps configmap [cm] [] namespaced -",
        "v1 Secret secrets secret [] [] namespaced -",
        "v1 Event events event [ev] [] namespaced -",
        "v1 ServiceAccount serviceaccounts serviceaccount [sa] [] namespaced -",
        "v1 Pod pods pod [po] [all] namespaced status",
        "v1 Node nodes node [no] [] cluster status",
        "v1 Service services service [svc] [all] namespaced status",
        "events.k8s.io/v1 Event events event [ev] [] namespaced -",
        "coordination.k8s.io/v1 Lease leases lease [] [] namespaced -",
        "apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions customresourcedefinition [crd,crds] [api-extensions] cluster status",
        "rbac.authorization.k8s.io/v1 Role roles role [] [] namespaced -",
        "rbac.authorization.k8s.io/v1 RoleBinding rolebindings rolebinding [] [] namespaced -",
        "rbac.authorization.k8s.io/v1 ClusterRole clusterroles clusterrole [] [] cluster -",
        "rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings clusterrolebinding [] [] cluster -",
        "authentication.k8s.io/v1 SelfSubjectReview selfsubjectreviews selfsubjectreview [] [] cluster -",
        "authentication.k8s.io/v1 TokenReview tokenreviews tokenreview [] [] cluster -",
        "authorization.k8s.io/v1 SubjectAccessReview subjectaccessreviews subjectaccessreview [] [] cluster -",
        "authorization.k8s.io/v1 SelfSubjectAccessReview selfsubjectaccessreviews selfsubjectaccessreview [] [] cluster -",
        "authorization.k8s.io/v1 SelfSubjectRulesReview selfsubjectrulesreviews selfsubjectrulesreview [] [] cluster -",
        "authorization.k8s.io/v1 LocalSubjectAccessReview localsubjectaccessreviews localsubjectaccessreview [] [] namespaced -",
        "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations mutatingwebhookconfiguration [] [api-extensions] cluster -",
        "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations validatingwebhookconfiguration [] [api-extensions] cluster -",
    ];
    assert_eq!(table, expected);
}

#[test]
fn components_are_shared_and_named_after_the_types() {
    let (pod, lease) = (find("", "Pod"), find("coordination.k8s.io", "Lease"));
    assert!(Arc::ptr_eq(&pod.openapi_components, &lease.openapi_components));
    assert_eq!(pod.openapi["x-kubernetes-group-version-kind"][0]["kind"], "Pod");
    assert_eq!(pod.openapi_components["io.k8s.api.core.v1.Pod"], pod.openapi);
    let crd = find("apiextensions.k8s.io", "CustomResourceDefinition");
    assert_eq!(crd.openapi["x-kubernetes-group-version-kind"][0]["group"], "apiextensions.k8s.io");
    for name in ["ObjectMeta", "ListMeta", "Status", "DeleteOptions", "Patch"] {
        assert!(components().contains_key(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}")), "{name}");
    }
    assert!(components().contains_key("io.k8s.api.autoscaling.v1.Scale"));
}

#[test]
fn references_keep_their_descriptions() {
    let spec = &find("", "Pod").openapi["properties"]["spec"];
    assert_eq!(spec["allOf"][0]["$ref"], "#/components/schemas/io.k8s.api.core.v1.PodSpec");
    assert!(spec["description"].as_str().unwrap().starts_with("Specification of the desired behavior"));
    let quantity = &components()["io.k8s.apimachinery.pkg.api.resource.Quantity"];
    assert_eq!(quantity["oneOf"][0]["type"], "string");
    let port = &components()["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(port["format"], "int-or-string");
}

#[test]
fn patch_extensions_come_from_the_schemas() {
    let components = components();
    let containers = &components["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], serde_json::json!(["name"]));
}
