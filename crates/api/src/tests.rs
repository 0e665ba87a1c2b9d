//! Pins what other software depends on: where every kind is served.

use kube::Resource;

use crate::{compute::*, karmada::*, milo::*, networking::*, quota::*};

fn pin<K: Resource<DynamicType = ()>>(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    namespaced: bool,
) {
    assert_eq!((&*K::group(&()), &*K::version(&()), &*K::kind(&())), (group, version, kind));
    assert_eq!(K::plural(&()), plural, "{kind}");
    let base = format!("/apis/{group}/{version}");
    assert_eq!(K::url_path(&(), None), format!("{base}/{plural}"));
    if namespaced {
        assert_eq!(K::url_path(&(), Some("ns")), format!("{base}/namespaces/ns/{plural}"));
    }
    let definitions = crate::crds::ours().into_iter().chain(crate::crds::foreign());
    let definition = definitions
        .into_iter()
        .find(|definition| definition.spec.group == group && definition.spec.names.kind == kind)
        .unwrap_or_else(|| panic!("{kind} has no definition"));
    assert_eq!(definition.metadata.name.as_deref(), Some(&*format!("{plural}.{group}")));
    assert_eq!(definition.spec.scope, if namespaced { "Namespaced" } else { "Cluster" }, "{kind}");
    assert_eq!(definition.spec.names.plural, plural);
    assert_eq!(definition.spec.names.singular.as_deref(), Some(&*kind.to_lowercase()));
    assert_eq!(definition.spec.names.list_kind.as_deref(), Some(&*format!("{kind}List")));
    let versions: Vec<_> = definition.spec.versions.iter().map(|v| (&*v.name, v.served, v.storage)).collect();
    assert_eq!(versions, [(version, true, true)]);
}

#[test]
fn every_kind_is_where_it_is_expected() {
    let compute = ("compute.datumapis.com", "v1alpha");
    pin::<Workload>(compute.0, compute.1, "Workload", "workloads", true);
    pin::<WorkloadDeployment>(compute.0, compute.1, "WorkloadDeployment", "workloaddeployments", true);
    pin::<Instance>(compute.0, compute.1, "Instance", "instances", true);

    let net = ("networking.datumapis.com", "v1alpha");
    pin::<Location>(net.0, net.1, "Location", "locations", false);
    pin::<LocationBinding>(net.0, net.1, "LocationBinding", "locationbindings", false);
    pin::<Network>(net.0, net.1, "Network", "networks", true);
    pin::<NetworkBinding>(net.0, net.1, "NetworkBinding", "networkbindings", true);
    pin::<NetworkContext>(net.0, net.1, "NetworkContext", "networkcontexts", true);
    pin::<SubnetClaim>(net.0, net.1, "SubnetClaim", "subnetclaims", true);
    pin::<Subnet>(net.0, net.1, "Subnet", "subnets", true);

    let quota = ("quota.miloapis.com", "v1alpha1");
    pin::<ResourceClaim>(quota.0, quota.1, "ResourceClaim", "resourceclaims", true);
    pin::<ResourceGrant>(quota.0, quota.1, "ResourceGrant", "resourcegrants", true);
    pin::<AllowanceBucket>(quota.0, quota.1, "AllowanceBucket", "allowancebuckets", true);
    pin::<ResourceRegistration>(quota.0, quota.1, "ResourceRegistration", "resourceregistrations", false);

    pin::<Project>("resourcemanager.miloapis.com", "v1alpha1", "Project", "projects", false);
    let infrastructure = "infrastructure.miloapis.com";
    pin::<ProjectControlPlane>(
        infrastructure,
        "v1alpha1",
        "ProjectControlPlane",
        "projectcontrolplanes",
        false,
    );
    pin::<ServiceEntitlement>(
        "services.miloapis.com",
        "v1alpha1",
        "ServiceEntitlement",
        "serviceentitlements",
        false,
    );
    pin::<ServiceConfiguration>(
        "services.miloapis.com",
        "v1alpha1",
        "ServiceConfiguration",
        "serviceconfigurations",
        false,
    );

    pin::<PropagationPolicy>(
        "policy.karmada.io",
        "v1alpha1",
        "PropagationPolicy",
        "propagationpolicies",
        true,
    );
    pin::<Cluster>("cluster.karmada.io", "v1alpha1", "Cluster", "clusters", false);
    let interpreter = ("ResourceInterpreterCustomization", "resourceinterpretercustomizations");
    pin::<ResourceInterpreterCustomization>(
        "config.karmada.io",
        "v1alpha1",
        interpreter.0,
        interpreter.1,
        false,
    );
}

#[test]
fn malformed_objects_of_others_decode() {
    let claim: ResourceClaim = serde_json::from_str(
        r#"{"metadata": {"name": "c"}, "status": {"conditions": [
            {"type": "Granted"}, 7, null,
            {"type": "Granted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "extra": 1}
        ], "allocations": [{}], "later": {}}}"#,
    )
    .unwrap();
    let status = claim.status.unwrap();
    assert!(crate::conditions::is_true(&status.conditions, CONDITION_GRANTED));
    assert_eq!(status.allocations.len(), 1);

    for empty in [
        r#"{"metadata": {}}"#,
        r#"{"metadata": {}, "spec": null}"#,
        r#"{"metadata": {}, "spec": {}, "status": {"conditions": null}}"#,
        r#"{"metadata": {}, "spec": {}, "status": {"conditions": "?"}}"#,
    ] {
        assert!(serde_json::from_str::<Project>(empty).is_ok());
        assert!(serde_json::from_str::<LocationBinding>(empty).is_ok());
        assert!(serde_json::from_str::<NetworkContext>(empty).is_ok());
        assert!(serde_json::from_str::<ResourceRegistration>(empty).is_ok());
        assert!(serde_json::from_str::<Cluster>(empty).is_ok());
    }
}
