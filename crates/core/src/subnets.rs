//! Addresses of networks: which each location has to itself ([`blocks`]), which of them a subnet gets, and which of a subnet's an instance
//! gets ([`hosts`]).
//!
//! A network spans cities, and its subnets are given out in each city without asking the others. They never overlap because each location
//! gives out of a block of its own, which the platform sets aside once.
//!
//! # Guarantees
//!
//! What is given lies in the block and overlaps nothing that is taken. The same takers give the same answer, in whatever order they come.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use compute_api::networking::{IPV6, SubnetClaimSpec, SubnetSpec};
pub use ipnet::IpNet;
use ipnet::{Ipv4Net, Ipv6Net};

pub mod blocks;
pub mod hosts;
pub use blocks::Blocks;

/// All addresses of a network: private, and away from the lower half of 10/8, which people use at home and in clusters.
const WHOLE_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 128, 0, 0), 9);
/// A unique local prefix: `fd`, and the five letters of "datum" as its global id.
const WHOLE_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xfd64, 0x6174, 0x756d, 0, 0, 0, 0, 0), 48);

/// The size of a subnet that asks for none.
const USUAL_V4: u8 = 20;
/// The smallest subnet that leaves room for anything.
const SMALLEST_V4: u8 = 29;
/// The one size that IPv6 subnets have.
const USUAL_V6: u8 = 64;

/// Why a claim gets no subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The block has no room of that size. A retry helps once something is released.
    #[error(
        "the network has no room for a subnet of size /{0} in this location; delete subnets of it that are not needed"
    )]
    Exhausted(u8),
    /// The size is not one that subnets have. No retry helps.
    #[error("/{0} is not the size of a subnet here; ask for another")]
    InvalidSize(i64),
    /// The first address that is wanted does not begin such a subnet in the block. No retry helps.
    #[error(
        "{0:?} does not begin a subnet of that size in the network's addresses in this location; ask for another"
    )]
    InvalidStart(String),
    /// What is wanted is taken. A retry helps once it is released.
    #[error("the addresses from {0} on are taken; ask for others, or delete the subnet that has them")]
    Taken(IpAddr),
    /// Nobody has set addresses aside for the location yet. A retry helps once the platform has.
    #[error("location {0} has no addresses of its own yet; the platform gives them to it")]
    NoBlock(String),
}

impl Refusal {
    /// The reason, in one word.
    pub fn reason(&self) -> &'static str {
        use compute_api::conditions::platform as reasons;
        match self {
            Self::Exhausted(_) => reasons::ADDRESSES_EXHAUSTED,
            Self::InvalidSize(_) | Self::InvalidStart(_) => reasons::INVALID_REQUEST,
            Self::Taken(_) => reasons::ADDRESSES_DENIED,
            Self::NoBlock(_) => reasons::ADDRESSES_PENDING,
        }
    }
}

/// The addresses of a subnet. `None` if it has none that make sense.
pub fn addresses_of(subnet: &SubnetSpec) -> Option<IpNet> {
    let first: IpAddr = subnet.start_address.parse().ok()?;
    let prefix = u8::try_from(subnet.prefix_length).ok()?;
    IpNet::new(first, prefix).ok().map(|net| net.trunc())
}

/// Whether the two have an address in common.
pub fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

/// The subnet for a claim out of a location's blocks, when these are taken in its network.
///
/// # Errors
///
/// If there is none.
pub fn allocate(
    claim: &SubnetClaimSpec,
    blocks: &Blocks,
    taken: impl IntoIterator<Item = IpNet>,
) -> Result<IpNet, Refusal> {
    let (block, usual, smallest) = match claim.ip_family == IPV6 {
        true => (IpNet::V6(blocks.v6), USUAL_V6, USUAL_V6),
        false => (IpNet::V4(blocks.v4), USUAL_V4, SMALLEST_V4),
    };
    let size = claim.prefix_length.unwrap_or(i64::from(usual));
    let prefix = u8::try_from(size)
        .ok()
        .filter(|prefix| (block.prefix_len()..=smallest).contains(prefix))
        .ok_or(Refusal::InvalidSize(size))?;
    let mut taken: Vec<IpNet> = taken.into_iter().filter(|one| overlap(one, &block)).collect();
    if let Some(text) = claim.start_address.as_deref().filter(|text| !text.is_empty()) {
        return at(text, prefix, &block, &taken);
    }
    taken.sort_unstable_by_key(|one| (number(one.network()), one.prefix_len()));
    let end = number(block.network()) + size_of(&block);
    let mut free = number(block.network());
    let step = 1u128 << (block.max_prefix_len() - prefix);
    // Both go upwards, so each that is taken is passed once.
    for one in taken {
        let (first, after) = (number(one.network()), number(one.network()) + size_of(&one));
        if first < free + step && free < after {
            free = after.next_multiple_of(step);
        }
    }
    let given = if free + step > end { None } else { net(free, prefix, &block) };
    given.ok_or(Refusal::Exhausted(prefix))
}

fn at(text: &str, prefix: u8, block: &IpNet, taken: &[IpNet]) -> Result<IpNet, Refusal> {
    let invalid = || Refusal::InvalidStart(text.to_owned());
    let first: IpAddr = text.parse().map_err(|_| invalid())?;
    let wanted = IpNet::new(first, prefix).map_err(|_| invalid())?;
    if wanted.trunc() != wanted || !block.contains(&wanted) {
        return Err(invalid());
    }
    if taken.iter().any(|one| overlap(one, &wanted)) { Err(Refusal::Taken(first)) } else { Ok(wanted) }
}

/// How many addresses it has. A whole family does not occur.
fn size_of(net: &IpNet) -> u128 {
    1u128 << (net.max_prefix_len() - net.prefix_len()).min(127)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The address of that number in the family of `like`.
fn address(number: u128, like: &IpNet) -> Option<IpAddr> {
    match like {
        IpNet::V4(_) => u32::try_from(number).ok().map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
        IpNet::V6(_) => Some(IpAddr::V6(Ipv6Addr::from_bits(number))),
    }
}

fn net(first: u128, prefix: u8, like: &IpNet) -> Option<IpNet> {
    IpNet::new(address(first, like)?, prefix).ok()
}

#[cfg(test)]
mod tests;
