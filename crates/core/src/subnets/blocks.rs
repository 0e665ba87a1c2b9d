//! The addresses that each location has to itself, of every network.
//!
//! One register, kept by the platform in one object, says which location has which block. A location that is not in it gets the first
//! block that nobody has; it keeps it for good, also while it is away, so that nothing it may still have given out is given by another.
//!
//! # Guarantees
//!
//! - No two locations have an address in common, whoever asks when: a register is replaced only as it was read.
//! - A register that was lost is made again from what cells know: a block that a location is known to have is neither changed nor given
//!   to another.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use ipnet::{Ipv4Net, Ipv6Net};

use super::{WHOLE_V4, WHOLE_V6};

/// On a Location in a cell: the addresses that it gives out of, as [`Blocks`] writes them.
pub const ADDRESSES: &str = "networking.datumapis.com/addresses";

/// The size of a location's block: 128 locations, with room for 16 subnets of the usual size in each network and location.
const BLOCK_V4: u8 = 16;
/// 256 locations of 256 subnets each.
const BLOCK_V6: u8 = 56;

/// What subnets are taken from: a range of each family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blocks {
    /// IPv4 addresses.
    pub v4: Ipv4Net,
    /// IPv6 addresses.
    pub v6: Ipv6Net,
}

impl Blocks {
    /// All addresses that networks have: for a cell whose networks are nowhere else.
    pub const WHOLE: Self = Self { v4: WHOLE_V4, v6: WHOLE_V6 };

    /// Whether the two have an address in common.
    pub fn overlap(&self, other: &Self) -> bool {
        self.v4.contains(&other.v4)
            || other.v4.contains(&self.v4)
            || self.v6.contains(&other.v6)
            || other.v6.contains(&self.v6)
    }

    /// All blocks that there are, in order.
    fn all() -> impl Iterator<Item = Self> {
        let v4 = WHOLE_V4.subnets(BLOCK_V4).ok();
        let v6 = WHOLE_V6.subnets(BLOCK_V6).ok();
        v4.into_iter().flatten().zip(v6.into_iter().flatten()).map(|(v4, v6)| Self { v4, v6 })
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.v4, self.v6)
    }
}

/// The text is not one of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a range of IPv4 addresses, a comma and a range of IPv6 addresses")]
pub struct NotBlocks;

impl FromStr for Blocks {
    type Err = NotBlocks;

    fn from_str(text: &str) -> Result<Self, NotBlocks> {
        let (v4, v6) = text.split_once(',').ok_or(NotBlocks)?;
        let (v4, v6): (Ipv4Net, Ipv6Net) =
            (v4.trim().parse().map_err(|_| NotBlocks)?, v6.trim().parse().map_err(|_| NotBlocks)?);
        Ok(Self { v4: v4.trunc(), v6: v6.trunc() })
    }
}

/// Which location has which block, by name.
pub type Register = BTreeMap<String, String>;

/// What a location has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// What the register says.
    Recorded(Blocks),
    /// This, once the register says so.
    New(Blocks),
}

/// Why a location has no block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoBlock {
    /// Every block is some location's. A retry helps once an entry is taken out of the register.
    #[error(
        "all blocks of addresses are taken; take those of locations that are no more out of the register"
    )]
    Exhausted,
    /// The register has something else there. A retry helps once it is mended.
    #[error("the register says {0:?}, which is no block of addresses; mend the entry")]
    Unreadable(String),
    /// The register gives two locations the same addresses. A retry helps once it is mended.
    #[error("the register gives location {0} some of the same addresses; mend one of the entries")]
    Shared(String),
}

/// The block of a location. `known` is what cells know of any location, by name: this one and others.
///
/// # Errors
///
/// If it has none, and cannot get one.
pub fn assign(
    location: &str,
    register: &Register,
    known: &BTreeMap<String, Blocks>,
) -> Result<Assigned, NoBlock> {
    let others = || {
        let recorded = register.iter().filter_map(|(name, text)| Some((name, text.parse::<Blocks>().ok()?)));
        let known = known.iter().filter(|(name, _)| !is_recorded(register, name));
        recorded.chain(known.map(|(name, held)| (name, *held))).filter(|(name, _)| *name != location)
    };
    let clash = |blocks: &Blocks| others().find(|(_, other)| other.overlap(blocks)).map(|(name, _)| name);
    match register.get(location).map(|text| (text, text.parse::<Blocks>())) {
        Some((_, Ok(recorded))) => match clash(&recorded) {
            None => return Ok(Assigned::Recorded(recorded)),
            Some(other) => return Err(NoBlock::Shared(other.clone())),
        },
        Some((text, Err(_))) if !known.contains_key(location) => {
            return Err(NoBlock::Unreadable(text.clone()));
        }
        Some(_) | None => {}
    }
    match known.get(location) {
        Some(held) if clash(held).is_none() => Ok(Assigned::New(*held)),
        _ => {
            Blocks::all().find(|blocks| clash(blocks).is_none()).map(Assigned::New).ok_or(NoBlock::Exhausted)
        }
    }
}

fn is_recorded(register: &Register, location: &str) -> bool {
    register.get(location).is_some_and(|text| text.parse::<Blocks>().is_ok())
}
