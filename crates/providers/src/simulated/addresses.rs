//! Addresses of simulated instances: from the range that is set aside for benchmarks (RFC 2544), so that nobody takes them for real.
//!
//! # Guarantees
//!
//! No two instances of the process have the same address. An instance keeps those that its status has, if no other has them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use compute_api::compute::{Instance, InterfaceAssignments};

const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// Addresses of a /15.
const SIZE: u32 = 1 << 17;

/// Addresses that are taken.
#[derive(Default)]
pub(super) struct Addresses(BTreeSet<u32>);

impl Addresses {
    /// Addresses for an instance, one for each interface; fewer when all are taken.
    pub(super) fn assign(&mut self, instance: &Instance, uid: &str) -> Vec<InterfaceAssignments> {
        let stored = instance.status.as_ref().map_or(&[][..], |status| &status.network_interfaces);
        let count = instance.spec.network_interfaces.len();
        let assign = |index: usize| {
            let kept = stored.get(index).and_then(|one| one.assignments.as_ref()?.network_ip.as_deref());
            let kept = kept.and_then(|text| text.parse().ok()).and_then(offset);
            let taken = kept.filter(|offset| self.0.insert(*offset)).or_else(|| self.take(uid, index))?;
            let network_ip = Some(Ipv4Addr::from(FIRST + taken).to_string());
            Some(InterfaceAssignments { network_ip, external_ip: None })
        };
        (0..count).map_while(assign).collect()
    }

    /// Gives addresses back.
    pub(super) fn release(&mut self, addresses: &[InterfaceAssignments]) {
        for given in addresses.iter().filter_map(|one| one.network_ip.as_deref()?.parse().ok()) {
            if let Some(offset) = offset(given) {
                self.0.remove(&offset);
            }
        }
    }

    /// The next free one from a place that only the instance decides.
    fn take(&mut self, uid: &str, index: usize) -> Option<u32> {
        let start = place(uid, index) % SIZE;
        let free = (0..SIZE).map(|step| (start + step) % SIZE).find(|offset| {
            // The first and last of each 256 look like networks and broadcasts.
            !matches!(offset % 256, 0 | 255) && !self.0.contains(offset)
        })?;
        self.0.insert(free);
        Some(free)
    }
}

fn offset(address: Ipv4Addr) -> Option<u32> {
    u32::from(address).checked_sub(FIRST).filter(|offset| *offset < SIZE)
}

/// FNV-1a: it need not be strong, only the same everywhere.
fn place(uid: &str, index: usize) -> u32 {
    let start = 0x811c_9dc5u32;
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = uid.bytes().fold(start, step);
    index.to_le_bytes().into_iter().fold(hash, step)
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

    #[test]
    fn no_two_have_the_same() {
        let mut addresses = Addresses::default();
        let mut seen = BTreeSet::new();
        for n in 0..10_000 {
            for given in addresses.assign(&instance(2), &format!("uid-{n}")) {
                assert!(seen.insert(given.network_ip.unwrap()));
            }
        }
        assert_eq!(seen.len(), 20_000);
    }

    #[test]
    fn an_instance_keeps_its_own_and_gives_it_back() {
        let mut addresses = Addresses::default();
        let given = addresses.assign(&instance(1), "a");
        let mut stored = instance(1);
        stored.status = Some(InstanceStatus {
            network_interfaces: vec![InstanceInterfaceStatus { assignments: Some(given[0].clone()) }],
            ..InstanceStatus::default()
        });
        assert_eq!(Addresses::default().assign(&stored, "b"), given, "kept over a restart");
        assert_ne!(addresses.assign(&stored, "b"), given, "another has it");
        addresses.release(&given);
        assert_eq!(addresses.assign(&instance(1), "a"), given);
    }
}
