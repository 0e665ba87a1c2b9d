//! Addresses of instances in a subnet.

use std::net::IpAddr;

use super::{IpNet, address, number, size_of};

/// Addresses at the beginning of a subnet that no instance gets: the subnet's own, and its gateway's.
const RESERVED: u128 = 2;

/// How many instances a subnet has addresses for.
pub fn room(subnet: &IpNet) -> u128 {
    // The last address means all of them.
    size_of(subnet).saturating_sub(RESERVED + 1)
}

/// A free address of a subnet: the first from a place that `seed` decides, so that one that was just released is seldom given again, and
/// the same instance mostly gets the same. `None` if all are taken.
pub fn pick(subnet: &IpNet, seed: u64, is_taken: impl Fn(&IpAddr) -> bool) -> Option<IpAddr> {
    let room = room(subnet);
    if room == 0 {
        return None;
    }
    let (first, start) = (number(subnet.network()) + RESERVED, u128::from(seed) % room);
    (0..room)
        .filter_map(|step| address(first + (start + step) % room, subnet))
        .find(|address| !is_taken(address))
}
