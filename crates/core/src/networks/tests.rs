//! From nothing to a subnet, one step after the other, and what is said on the way.

use compute_api::networking::{
    NetworkBindingStatus, NetworkContextReference, NetworkContextStatus, SubnetClaimStatus, SubnetStatus,
};

use super::*;
use crate::fixtures::{condition, deployment, leaving, stored};

#[derive(Default)]
struct World {
    bindings: Vec<NetworkBinding>,
    contexts: Vec<NetworkContext>,
    claims: Vec<SubnetClaim>,
    subnets: Vec<Subnet>,
}

impl World {
    fn plan(&self, deployment: &WorkloadDeployment) -> Plan {
        let observed = Observed {
            bindings: self.bindings.iter().collect(),
            contexts: self.contexts.iter().collect(),
            claims: self.claims.iter().collect(),
            subnets: self.subnets.iter().collect(),
        };
        decide(deployment, Some(&location()), &observed)
    }

    fn apply(&mut self, plan: Plan) {
        for step in plan.create {
            match step {
                Create::Binding(binding) => self.bindings.push(*binding),
                Create::SubnetClaim(claim) => self.claims.push(*claim),
            }
        }
    }
}

fn location() -> LocationReference {
    LocationReference { name: "dfw-1".to_owned(), namespace: None }
}

fn ready() -> Vec<Condition> {
    vec![condition(CONDITION_READY, Status::True, "Ready", "")]
}

fn bind(binding: &mut NetworkBinding) {
    binding.status = Some(NetworkBindingStatus {
        conditions: ready(),
        network_context_ref: Some(NetworkContextReference {
            name: "default-dfw".to_owned(),
            namespace: "ns".to_owned(),
        }),
    });
}

#[test]
fn each_step_follows_the_one_before() {
    let mut of = deployment(1);
    let twice = of.spec.template.spec.network_interfaces[0].clone();
    of.spec.template.spec.network_interfaces.push(twice);
    let mut world = World::default();

    let plan = world.plan(&of);
    let names: Vec<_> = plan
        .create
        .iter()
        .map(|step| match step {
            Create::Binding(binding) => meta::name(&binding.metadata),
            Create::SubnetClaim(claim) => meta::name(&claim.metadata),
        })
        .collect();
    assert_eq!(names, ["web-main-dfw-net-0", "web-main-dfw-net-1"]);
    assert_eq!(plan.condition.reason, c::NETWORK_PROVISIONING);
    world.apply(plan);
    assert_eq!(meta::controller_uid(&world.bindings[0].metadata), Some("deployment-uid"));
    assert_eq!(world.bindings[0].spec.location.name, "dfw-1");
    assert!(world.plan(&of).create.is_empty());

    world.bindings.iter_mut().for_each(bind);
    assert!(world.plan(&of).create.is_empty());
    let mut context =
        NetworkContext { metadata: stored("ns", "default-dfw", "context-uid"), ..Default::default() };
    context.status = Some(NetworkContextStatus { conditions: ready(), ipam: None });
    world.contexts.push(context);
    let plan = world.plan(&of);
    assert_eq!(plan.create.len(), 1, "the claim is shared");
    world.apply(plan);
    let claim = &mut world.claims[0];
    assert_eq!(meta::name(&claim.metadata), "default-dfw-0");
    assert_eq!(meta::controller_uid(&claim.metadata), Some("context-uid"));
    assert_eq!((&*claim.spec.subnet_class, &*claim.spec.ip_family), ("private", "IPv4"));
    claim.status = Some(SubnetClaimStatus {
        conditions: ready(),
        subnet_ref: Some("default-dfw-0".into()),
        ..SubnetClaimStatus::default()
    });
    let waiting = world.plan(&of);
    assert!(waiting.create.is_empty() && !waiting.is_ready());

    let mut subnet = Subnet { metadata: stored("ns", "default-dfw-0", "subnet-uid"), ..Default::default() };
    subnet.status = Some(SubnetStatus { conditions: ready(), ..SubnetStatus::default() });
    world.subnets.push(subnet);
    let done = world.plan(&of);
    assert!(done.is_ready() && done.create.is_empty());
    assert_eq!(done.condition.reason, c::DATA_READY);
}

#[test]
fn a_failure_is_told_verbatim() {
    let of = deployment(1);
    let mut world = World::default();
    world.apply(world.plan(&of));
    let mut say = |reason: &str| {
        world.bindings[0].status = Some(NetworkBindingStatus {
            conditions: vec![condition(CONDITION_READY, Status::False, reason, "no addresses are left")],
            network_context_ref: None,
        });
        world.plan(&of).condition
    };
    assert_eq!(say("NetworkContextNotReady").reason, c::NETWORK_PROVISIONING);
    let failed = say("NetworkFailedToCreate");
    assert_eq!((&*failed.reason, &*failed.message), (c::NETWORK_FAILED_TO_CREATE, "no addresses are left"));
}

#[test]
fn without_a_location_nothing_is_asked_for() {
    let plan = decide(&deployment(1), None, &Observed::default());
    assert!(plan.create.is_empty());
    assert_eq!(plan.condition.reason, c::NETWORK_PROVISIONING);
    assert!(plan.condition.message.contains("location of city DFW"));
}

#[test]
fn what_is_on_its_way_out_is_awaited() {
    let of = deployment(1);
    assert!(World::default().plan(&leaving(of.clone())).create.is_empty());
    let mut world = World::default();
    world.apply(world.plan(&of));
    bind(&mut world.bindings[0]);
    world.bindings[0] = leaving(world.bindings[0].clone());
    assert!(world.plan(&of).create.is_empty() && !world.plan(&of).is_ready());
    world.bindings[0].metadata.owner_references = None;
    assert!(world.plan(&of).condition.message.contains("must go first"));
}

#[test]
fn what_is_bound_stays_set_up_when_the_location_is_not_known_any_more() {
    let deployment = deployment(1);
    let location = LocationReference { name: "dfw".to_owned(), ..LocationReference::default() };
    let Some(Create::Binding(binding)) =
        decide(&deployment, Some(&location), &Observed::default()).create.pop()
    else {
        panic!("a binding is asked for first")
    };
    let without = Observed { bindings: vec![&binding], ..Observed::default() };
    let plan = decide(&deployment, None, &without);
    assert!(plan.create.is_empty());
    assert_eq!(plan.condition, decide(&deployment, Some(&location), &without).condition);
}

#[test]
fn another_network_takes_the_place_of_the_one_before() {
    let mut of = deployment(1);
    let mut world = World::default();
    world.apply(world.plan(&of));
    world.bindings[0].metadata.uid = Some("old".to_owned());
    bind(&mut world.bindings[0]);
    assert!(world.plan(&of).delete.is_empty());
    // The binding's namespace is what a reference without one means.
    of.spec.template.spec.network_interfaces[0].network.namespace = Some("ns".to_owned());
    assert!(world.plan(&of).delete.is_empty());

    of.spec.template.spec.network_interfaces[0].network.name = "other".to_owned();
    let plan = world.plan(&of);
    assert_eq!(plan.delete, [Delete { name: "web-main-dfw-net-0".to_owned(), uid: "old".to_owned() }]);
    assert!(plan.create.is_empty() && !plan.is_ready(), "it is awaited");
    assert_eq!(plan.condition.reason, c::NETWORK_PROVISIONING);
    let observed = Observed { bindings: vec![&world.bindings[0]], ..Observed::default() };
    let nowhere = decide(&of, None, &observed);
    assert!(nowhere.delete.is_empty() && !nowhere.is_ready(), "it could not be asked for again");
    assert!(world.plan(&leaving(of.clone())).delete.is_empty());

    world.bindings[0] = leaving(world.bindings[0].clone());
    let plan = world.plan(&of);
    assert!(plan.delete.is_empty() && plan.create.is_empty() && !plan.is_ready());
    world.bindings.clear();
    let Some(Create::Binding(new)) = world.plan(&of).create.pop() else { panic!("it is asked for") };
    assert_eq!(new.spec.network.name, "other");
}

#[test]
fn bindings_of_interfaces_that_are_no_more_go() {
    let mut of = deployment(1);
    let twice = of.spec.template.spec.network_interfaces[0].clone();
    of.spec.template.spec.network_interfaces.push(twice);
    let mut world = World::default();
    world.apply(world.plan(&of));
    world.bindings[1].metadata.uid = Some("second".to_owned());
    of.spec.template.spec.network_interfaces.pop();
    let second = Delete { name: "web-main-dfw-net-1".to_owned(), uid: "second".to_owned() };
    assert_eq!(world.plan(&of).delete, [second]);
    world.bindings[1].metadata.owner_references = None;
    assert!(world.plan(&of).delete.is_empty(), "it is somebody else's");
}
