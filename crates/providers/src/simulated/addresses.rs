//! Addresses of simulated instances: out of the subnets that their interfaces are in.
//!
//! # Guarantees
//!
//! - No two instances on a network have the same address, also when a network was set up anew while old instances still run.
//! - An instance keeps those that its status has, if no other has them, until it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use compute_api::compute::{Instance, InterfaceAssignments};
use compute_core::meta;
use compute_core::subnets::hosts;

use crate::subnets::Subnets;

/// A network, by namespace and name.
type Network = (String, String);

/// An address that an instance has on a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    network: Network,
    address: IpAddr,
}

impl Assigned {
    /// As a status says it.
    pub(super) fn assignment(&self) -> InterfaceAssignments {
        InterfaceAssignments { network_ip: Some(self.address.to_string()), external_ip: None }
    }
}

/// Why an instance has no addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// A subnet is not known yet.
    Subnet,
    /// A subnet has no address left: what to tell people.
    Address(String),
}

/// Addresses that are taken, by network.
#[derive(Default)]
pub(super) struct Addresses(BTreeMap<Network, BTreeSet<IpAddr>>);

impl Addresses {
    /// Takes the addresses that the status of an instance has. Empty unless it has one for each interface, which nobody else has.
    pub(super) fn keep(&mut self, instance: &Instance) -> Vec<Assigned> {
        let stored = instance.status.as_ref().map_or(&[][..], |status| &status.network_interfaces);
        let mut kept = Vec::new();
        for (interface, status) in stored.iter().enumerate().take(instance.spec.network_interfaces.len()) {
            let address =
                status.assignments.as_ref().and_then(|given| given.network_ip.as_deref()?.parse().ok());
            let taken = address.and_then(|address| self.take(network_of(instance, interface), address));
            kept.extend(taken);
        }
        if kept.len() != instance.spec.network_interfaces.len() {
            self.release(&std::mem::take(&mut kept));
        }
        kept
    }

    /// Addresses for an instance, one for each interface, or none.
    pub(super) fn assign(
        &mut self,
        instance: &Instance,
        uid: &str,
        subnets: &Subnets,
    ) -> Result<Vec<Assigned>, Missing> {
        let mut given = Vec::new();
        for interface in 0..instance.spec.network_interfaces.len() {
            match self.assign_one(instance, interface, uid, subnets) {
                Ok(one) => given.push(one),
                Err(missing) => {
                    self.release(&given);
                    return Err(missing);
                }
            }
        }
        Ok(given)
    }

    fn assign_one(
        &mut self,
        instance: &Instance,
        interface: usize,
        uid: &str,
        subnets: &Subnets,
    ) -> Result<Assigned, Missing> {
        let subnet = subnets.find(instance, interface).ok_or(Missing::Subnet)?;
        let network = network_of(instance, interface);
        let taken = self.0.get(&network);
        let is_taken = |address: &IpAddr| taken.is_some_and(|taken| taken.contains(address));
        let free = hosts::pick(&subnet, place(uid, interface), is_taken);
        free.and_then(|address| self.take(network.clone(), address)).ok_or_else(|| {
            let (name, room) = (&network.1, hosts::room(&subnet));
            Missing::Address(format!(
                "Network {name} has no free address here: all {room} of {subnet} are taken. Delete instances on it, or use another network"
            ))
        })
    }

    fn take(&mut self, network: Network, address: IpAddr) -> Option<Assigned> {
        self.0.entry(network.clone()).or_default().insert(address).then_some(Assigned { network, address })
    }

    /// Gives addresses back.
    pub(super) fn release(&mut self, given: &[Assigned]) {
        for Assigned { network, address } in given {
            if let Some(taken) = self.0.get_mut(network) {
                taken.remove(address);
                if taken.is_empty() {
                    self.0.remove(network);
                }
            }
        }
    }
}

fn network_of(instance: &Instance, interface: usize) -> Network {
    let network = instance.spec.network_interfaces.get(interface).map(|one| one.network.name.clone());
    (meta::namespace(&instance.metadata).to_owned(), network.unwrap_or_default())
}

/// FNV-1a: it need not be strong, only the same everywhere.
fn place(uid: &str, interface: usize) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    interface.to_le_bytes().into_iter().fold(hash, step)
}

#[cfg(test)]
mod tests {
    use compute_api::compute::{InstanceInterfaceStatus, InstanceStatus, NetworkInterface};

    use super::*;

    fn instance(interfaces: usize) -> Instance {
        let mut instance = Instance::default();
        instance.spec.network_interfaces = vec![NetworkInterface::default(); interfaces];
        instance
    }

    fn with_status(given: &[Assigned]) -> Instance {
        let interface = |one: &Assigned| InstanceInterfaceStatus { assignments: Some(one.assignment()) };
        let mut instance = instance(given.len());
        instance.status = Some(InstanceStatus {
            network_interfaces: given.iter().map(interface).collect(),
            ..InstanceStatus::default()
        });
        instance
    }

    #[test]
    fn no_two_have_the_same() {
        let (mut addresses, subnets) = (Addresses::default(), Subnets::none());
        let mut seen = BTreeSet::new();
        for n in 0..10_000 {
            for given in addresses.assign(&instance(2), &format!("uid-{n}"), &subnets).unwrap() {
                assert!(seen.insert(given.address));
            }
        }
        assert_eq!(seen.len(), 20_000);
    }

    #[test]
    fn an_instance_keeps_its_own_and_gives_it_back() {
        let (mut addresses, subnets) = (Addresses::default(), Subnets::none());
        let given = addresses.assign(&instance(1), "a", &subnets).unwrap();
        let stored = with_status(&given);
        assert_eq!(Addresses::default().keep(&stored), given, "kept over a restart");
        assert_eq!(addresses.keep(&stored), [], "another has it");
        addresses.release(&given);
        assert_eq!(addresses.assign(&instance(1), "a", &subnets), Ok(given));
    }

    #[test]
    fn one_that_cannot_have_all_has_none() {
        let subnets = Subnets::one("10.0.0.0/29".parse().unwrap());
        let mut addresses = Addresses::default();
        let first = addresses.assign(&instance(4), "a", &subnets).unwrap();
        let Err(Missing::Address(said)) = addresses.assign(&instance(2), "b", &subnets) else {
            panic!("one of five is left")
        };
        assert!(said.contains("all 5 of 10.0.0.0/29 are taken"), "{said}");
        let last = addresses.assign(&instance(1), "c", &subnets).unwrap();
        addresses.release(&first);
        assert_eq!(addresses.assign(&instance(4), "d", &subnets).unwrap().len(), 4);
        addresses.release(&last);
    }

    #[test]
    fn networks_do_not_share_addresses() {
        let subnets = Subnets::one("10.0.0.0/30".parse().unwrap());
        let mut addresses = Addresses::default();
        for network in ["a", "b"] {
            let mut one = instance(1);
            one.spec.network_interfaces[0].network.name = network.to_owned();
            assert_eq!(addresses.assign(&one, network, &subnets).unwrap().len(), 1);
            assert!(addresses.assign(&one, "more", &subnets).is_err());
        }
    }
}
