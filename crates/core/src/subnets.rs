//! Which addresses a subnet gets: the first that are free in the pool of its network.
//!
//! # Guarantees
//!
//! What is given lies in the pool and overlaps nothing that is taken. The same takers give the same answer, in whatever order they come.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use compute_api::networking::{IPV6, SubnetClaimSpec, SubnetSpec};

/// A range of addresses of a power of two, in one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cidr {
    /// The first address.
    pub first: IpAddr,
    /// How many leading bits all addresses share.
    pub prefix: u8,
}

/// What subnets of a family are taken from.
struct Pool {
    whole: Cidr,
    /// The size of a subnet that asks for none.
    usual: u8,
    /// The smallest subnet that leaves room for anything.
    smallest: u8,
}

/// Private, and away from the lower half of 10/8, which people use at home and in clusters.
const POOL_V4: Pool = Pool {
    whole: Cidr { first: IpAddr::V4(Ipv4Addr::new(10, 128, 0, 0)), prefix: 9 },
    usual: 20,
    smallest: 29,
};

/// A unique local prefix: `fd`, and the five letters of "datum" as its global id.
const POOL_V6: Pool = Pool {
    whole: Cidr { first: IpAddr::V6(Ipv6Addr::new(0xfd64, 0x6174, 0x756d, 0, 0, 0, 0, 0)), prefix: 48 },
    usual: 64,
    smallest: 64,
};

/// Why a claim gets no subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The pool has no room of that size. A retry helps once something is released.
    #[error("the network has no room for a subnet of size /{0}")]
    Exhausted(u8),
    /// The size is not one that subnets have. No retry helps.
    #[error("/{0} is not the size of a subnet")]
    InvalidSize(i64),
    /// The first address that is wanted does not begin such a subnet in the pool. No retry helps.
    #[error("{0:?} does not begin a subnet of that size in the network's addresses")]
    InvalidStart(String),
    /// What is wanted is taken. A retry helps once it is released.
    #[error("the addresses from {0} on are taken")]
    Taken(IpAddr),
}

impl Refusal {
    /// The reason, in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Exhausted(_) => "AddressesExhausted",
            Self::InvalidSize(_) | Self::InvalidStart(_) => "InvalidRequest",
            Self::Taken(_) => "AddressesDenied",
        }
    }
}

impl Cidr {
    /// The addresses of a subnet. `None` if it has none that make sense.
    pub fn of(subnet: &SubnetSpec) -> Option<Self> {
        let first: IpAddr = subnet.start_address.parse().ok()?;
        let prefix = u8::try_from(subnet.prefix_length).ok()?;
        (prefix <= bits(&first)).then(|| Self { first, prefix }.aligned())
    }

    /// Whether the two have an address in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let prefix = self.prefix.min(other.prefix);
        self.first.is_ipv4() == other.first.is_ipv4()
            && (Self { prefix, ..*self }).aligned().first == (Self { prefix, ..*other }).aligned().first
    }

    fn aligned(self) -> Self {
        let number = number(&self.first) & !(self.size() - 1);
        Self { first: address(number, self.first.is_ipv4()), ..self }
    }

    /// How many addresses it has. A whole family does not occur.
    fn size(&self) -> u128 {
        1u128 << u32::from(bits(&self.first) - self.prefix).min(127)
    }

    fn contains(&self, other: &Self) -> bool {
        other.prefix >= self.prefix && self.overlaps(other)
    }
}

/// The subnet for a claim, when these are taken in its network.
///
/// # Errors
///
/// If there is none.
pub fn allocate(claim: &SubnetClaimSpec, taken: impl IntoIterator<Item = Cidr>) -> Result<Cidr, Refusal> {
    let pool = if claim.ip_family == IPV6 { POOL_V6 } else { POOL_V4 };
    let size = claim.prefix_length.unwrap_or(i64::from(pool.usual));
    let prefix = u8::try_from(size)
        .ok()
        .filter(|prefix| (pool.whole.prefix..=pool.smallest).contains(prefix))
        .ok_or(Refusal::InvalidSize(size))?;
    let mut taken: Vec<Cidr> = taken.into_iter().filter(|one| pool.whole.overlaps(one)).collect();
    if let Some(text) = claim.start_address.as_deref().filter(|text| !text.is_empty()) {
        return at(text, prefix, &pool, &taken);
    }
    taken.sort_unstable();
    let is_v4 = pool.whole.first.is_ipv4();
    let end = number(&pool.whole.first) + pool.whole.size();
    let mut free = Cidr { first: pool.whole.first, prefix };
    let step = free.size();
    // Both go upwards, so each that is taken is passed once.
    for one in taken {
        if one.overlaps(&free) {
            let after = number(&one.first) + one.size();
            let next = after.next_multiple_of(step);
            if next + step > end {
                return Err(Refusal::Exhausted(prefix));
            }
            free.first = address(next, is_v4);
        }
    }
    Ok(free)
}

fn at(text: &str, prefix: u8, pool: &Pool, taken: &[Cidr]) -> Result<Cidr, Refusal> {
    let invalid = || Refusal::InvalidStart(text.to_owned());
    let first: IpAddr = text.parse().map_err(|_| invalid())?;
    let wanted = Cidr { first, prefix };
    if prefix > bits(&first) || wanted.aligned() != wanted || !pool.whole.contains(&wanted) {
        return Err(invalid());
    }
    if taken.iter().any(|one| one.overlaps(&wanted)) { Err(Refusal::Taken(first)) } else { Ok(wanted) }
}

fn bits(address: &IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: &IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn address(number: u128, is_v4: bool) -> IpAddr {
    if is_v4 {
        // Numbers of this family come from its own addresses and stay within its pool.
        IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX)))
    } else {
        IpAddr::V6(Ipv6Addr::from_bits(number))
    }
}

#[cfg(test)]
mod tests {
    use compute_api::networking::IPV4;
    use proptest::prelude::*;

    use super::*;

    fn claim(family: &str, prefix_length: Option<i64>, start: Option<&str>) -> SubnetClaimSpec {
        SubnetClaimSpec {
            ip_family: family.to_owned(),
            prefix_length,
            start_address: start.map(str::to_owned),
            ..SubnetClaimSpec::default()
        }
    }

    fn cidr(first: &str, prefix: u8) -> Cidr {
        Cidr { first: first.parse().unwrap(), prefix }
    }

    #[test]
    fn the_first_free_one_is_given() {
        let usual = claim(IPV4, None, None);
        assert_eq!(allocate(&usual, []), Ok(cidr("10.128.0.0", 20)));
        let taken = [cidr("10.128.16.0", 20), cidr("10.128.0.0", 20), cidr("10.128.48.0", 28)];
        assert_eq!(allocate(&usual, taken), Ok(cidr("10.128.32.0", 20)));
        assert_eq!(allocate(&claim(IPV4, Some(19), None), taken), Ok(cidr("10.128.64.0", 19)));
        assert_eq!(allocate(&claim(IPV6, None, None), taken), Ok(cidr("fd64:6174:756d::", 64)));
        let large = [cidr("10.0.0.0", 8)];
        assert_eq!(allocate(&usual, large), Err(Refusal::Exhausted(20)));
        assert_eq!(allocate(&usual, [cidr("192.168.0.0", 16)]), Ok(cidr("10.128.0.0", 20)));
    }

    #[test]
    fn what_is_wanted_is_given_or_refused() {
        let wanted = claim(IPV4, Some(24), Some("10.200.1.0"));
        assert_eq!(allocate(&wanted, []), Ok(cidr("10.200.1.0", 24)));
        let refused = allocate(&wanted, [cidr("10.200.0.0", 16)]);
        assert_eq!(refused, Err(Refusal::Taken("10.200.1.0".parse().unwrap())));
        for (prefix, start) in [(24, "10.1.0.0"), (24, "10.200.1.1"), (24, "fd64::"), (24, "x")] {
            let refused = allocate(&claim(IPV4, Some(prefix), Some(start)), []);
            assert_eq!(refused, Err(Refusal::InvalidStart(start.to_owned())));
        }
        for size in [-1, 8, 30, 300] {
            assert_eq!(allocate(&claim(IPV4, Some(size), None), []), Err(Refusal::InvalidSize(size)));
        }
    }

    #[test]
    fn the_whole_pool_can_be_given() {
        let mut taken = Vec::new();
        for _ in 0..2048 {
            taken.push(allocate(&claim(IPV4, None, None), taken.iter().copied()).unwrap());
        }
        assert_eq!(allocate(&claim(IPV4, None, None), taken.clone()), Err(Refusal::Exhausted(20)));
        let freed = taken.remove(77);
        assert_eq!(allocate(&claim(IPV4, None, None), taken), Ok(freed), "what is released is given again");
    }

    proptest! {
        #[test]
        fn nothing_overlaps_whatever_the_sizes(sizes in proptest::collection::vec(11i64..=29, 1..60)) {
            let mut taken: Vec<Cidr> = Vec::new();
            for size in sizes {
                let asked = claim(IPV4, Some(size), None);
                let given = allocate(&asked, taken.iter().copied());
                prop_assert_eq!(&given, &allocate(&asked, taken.iter().rev().copied()));
                let Ok(given) = given else { continue };
                prop_assert!(POOL_V4.whole.contains(&given));
                prop_assert!(taken.iter().all(|one| !one.overlaps(&given)));
                taken.push(given);
            }
        }
    }
}
