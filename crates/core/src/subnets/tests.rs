//! Nothing is given twice: not to two locations, not to two subnets, not to two instances.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::networking::IPV4;
use proptest::prelude::*;

use super::blocks::{Assigned, NoBlock, Register, assign};
use super::*;

fn claim(family: &str, prefix_length: Option<i64>, start: Option<&str>) -> SubnetClaimSpec {
    SubnetClaimSpec {
        ip_family: family.to_owned(),
        prefix_length,
        start_address: start.map(str::to_owned),
        ..SubnetClaimSpec::default()
    }
}

fn cidr(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn of_whole(claim: &SubnetClaimSpec, taken: impl IntoIterator<Item = IpNet>) -> Result<IpNet, Refusal> {
    allocate(claim, &Blocks::WHOLE, taken)
}

#[test]
fn the_first_free_one_is_given() {
    let usual = claim(IPV4, None, None);
    assert_eq!(of_whole(&usual, []), Ok(cidr("10.128.0.0/20")));
    let taken = [cidr("10.128.16.0/20"), cidr("10.128.0.0/20"), cidr("10.128.48.0/28")];
    assert_eq!(of_whole(&usual, taken), Ok(cidr("10.128.32.0/20")));
    assert_eq!(of_whole(&claim(IPV4, Some(19), None), taken), Ok(cidr("10.128.64.0/19")));
    assert_eq!(of_whole(&claim(IPV6, None, None), taken), Ok(cidr("fd64:6174:756d::/64")));
    let large = [cidr("10.0.0.0/8")];
    assert_eq!(of_whole(&usual, large), Err(Refusal::Exhausted(20)));
    assert_eq!(of_whole(&usual, [cidr("192.168.0.0/16")]), Ok(cidr("10.128.0.0/20")));
}

#[test]
fn what_is_wanted_is_given_or_refused() {
    let wanted = claim(IPV4, Some(24), Some("10.200.1.0"));
    assert_eq!(of_whole(&wanted, []), Ok(cidr("10.200.1.0/24")));
    let refused = of_whole(&wanted, [cidr("10.200.0.0/16")]);
    assert_eq!(refused, Err(Refusal::Taken("10.200.1.0".parse().unwrap())));
    for start in ["10.1.0.0", "10.200.1.1", "fd64::", "x"] {
        let refused = of_whole(&claim(IPV4, Some(24), Some(start)), []);
        assert_eq!(refused, Err(Refusal::InvalidStart(start.to_owned())));
    }
    for size in [-1, 8, 30, 300] {
        assert_eq!(of_whole(&claim(IPV4, Some(size), None), []), Err(Refusal::InvalidSize(size)));
    }
}

#[test]
fn the_whole_can_be_given() {
    let mut taken = Vec::new();
    for _ in 0..2048 {
        taken.push(of_whole(&claim(IPV4, None, None), taken.iter().copied()).unwrap());
    }
    assert_eq!(of_whole(&claim(IPV4, None, None), taken.clone()), Err(Refusal::Exhausted(20)));
    let freed = taken.remove(77);
    assert_eq!(of_whole(&claim(IPV4, None, None), taken), Ok(freed), "what is released is given again");
}

/// The blocks of so many locations, in the order in which they come.
fn register(locations: usize) -> Register {
    let mut register = Register::new();
    for n in 0..locations {
        let name = format!("l{n}");
        match assign(&name, &register, &BTreeMap::new()).unwrap() {
            Assigned::New(blocks) => register.insert(name, blocks.to_string()),
            Assigned::Recorded(_) => panic!("{name} is new"),
        };
    }
    register
}

#[test]
fn every_location_has_a_block_to_itself_for_good() {
    let all = register(128);
    let blocks: Vec<Blocks> = all.values().map(|text| text.parse().unwrap()).collect();
    for (n, one) in blocks.iter().enumerate() {
        assert!(blocks[n + 1..].iter().all(|other| !one.overlap(other)), "{one}");
        assert!(Blocks::WHOLE.v4.contains(&one.v4) && Blocks::WHOLE.v6.contains(&one.v6));
        assert_eq!(one.to_string().parse(), Ok(*one));
    }
    assert_eq!(all["l0"], "10.128.0.0/16,fd64:6174:756d::/56");
    let again = assign("l7", &all, &BTreeMap::new());
    assert_eq!(again, Ok(Assigned::Recorded(all["l7"].parse().unwrap())));
    assert_eq!(assign("more", &all, &BTreeMap::new()), Err(NoBlock::Exhausted));
    let mut fewer = all;
    let freed: Blocks = fewer.remove("l5").unwrap().parse().unwrap();
    assert_eq!(assign("more", &fewer, &BTreeMap::new()), Ok(Assigned::New(freed)));
}

#[test]
fn what_cells_know_outlives_a_register_that_is_lost() {
    let all = register(3);
    let known: BTreeMap<String, Blocks> =
        all.iter().map(|(name, text)| (name.clone(), text.parse().unwrap())).collect();
    let none = Register::new();
    assert_eq!(assign("l2", &none, &known), Ok(Assigned::New(known["l2"])));
    let Ok(Assigned::New(fresh)) = assign("new", &none, &known) else { panic!("it is new") };
    assert!(known.values().all(|held| !held.overlap(&fresh)));
    // The register decides where the two differ.
    let mut other = all;
    other.insert("l2".to_owned(), "10.200.0.0/16,fd64:6174:756d:6300::/56".to_owned());
    assert!(matches!(assign("l2", &other, &known), Ok(Assigned::Recorded(held)) if held != known["l2"]));
}

#[test]
fn a_register_that_makes_no_sense_gives_nothing() {
    let mut odd = register(2);
    odd.insert("l0".to_owned(), "everything".to_owned());
    assert_eq!(assign("l0", &odd, &BTreeMap::new()), Err(NoBlock::Unreadable("everything".to_owned())));
    odd.insert("l0".to_owned(), odd["l1"].clone());
    assert_eq!(assign("l0", &odd, &BTreeMap::new()), Err(NoBlock::Shared("l1".to_owned())));
    for text in ["", ",", "10.0.0.0/8", "10.0.0.0/33,fd00::/8", "fd00::/8,10.0.0.0/8"] {
        assert!(text.parse::<Blocks>().is_err(), "{text}");
    }
}

#[test]
fn subnets_of_two_locations_never_overlap() {
    let all = register(2);
    let mut given = Vec::new();
    for text in all.values() {
        let blocks: Blocks = text.parse().unwrap();
        let mut here = Vec::new();
        for _ in 0..16 {
            here.push(allocate(&claim(IPV4, None, None), &blocks, here.iter().copied()).unwrap());
        }
        assert_eq!(allocate(&claim(IPV4, None, None), &blocks, here.clone()), Err(Refusal::Exhausted(20)));
        assert_eq!(allocate(&claim(IPV4, Some(15), None), &blocks, []), Err(Refusal::InvalidSize(15)));
        here.push(allocate(&claim(IPV6, None, None), &blocks, []).unwrap());
        given.push(here);
    }
    assert!(given[0].iter().all(|one| given[1].iter().all(|other| !overlap(one, other))));
}

#[test]
fn a_subnet_has_addresses_for_so_many_and_no_more() {
    let subnet = cidr("10.128.0.0/29");
    assert_eq!(hosts::room(&subnet), 5);
    let mut taken = BTreeSet::new();
    for _ in 0..5 {
        let given = hosts::pick(&subnet, 3, |address| taken.contains(address)).unwrap();
        assert!(taken.insert(given));
    }
    let texts: Vec<_> = taken.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["10.128.0.2", "10.128.0.3", "10.128.0.4", "10.128.0.5", "10.128.0.6"]);
    assert_eq!(hosts::pick(&subnet, 3, |address| taken.contains(address)), None);
    assert_eq!(hosts::pick(&cidr("10.0.0.0/31"), 0, |_| false), None);
    let sixth = hosts::pick(&cidr("fd64::/64"), u64::MAX, |_| false).unwrap();
    assert!(cidr("fd64::/64").contains(&sixth));
}

#[test]
fn a_subnet_that_makes_no_sense_has_no_addresses() {
    let subnet = |start: &str, prefix_length| SubnetSpec {
        start_address: start.to_owned(),
        prefix_length,
        ..SubnetSpec::default()
    };
    assert_eq!(addresses_of(&subnet("10.1.2.3", 16)), Some(cidr("10.1.0.0/16")));
    for odd in [subnet("", 16), subnet("10.0.0.0", 33), subnet("10.0.0.0", -1), subnet("x", 8)] {
        assert_eq!(addresses_of(&odd), None);
    }
}

proptest! {
    #[test]
    fn nothing_overlaps_whatever_the_sizes(sizes in proptest::collection::vec(11i64..=29, 1..60)) {
        let mut taken: Vec<IpNet> = Vec::new();
        for size in sizes {
            let asked = claim(IPV4, Some(size), None);
            let given = of_whole(&asked, taken.iter().copied());
            prop_assert_eq!(&given, &of_whole(&asked, taken.iter().rev().copied()));
            let Ok(given) = given else { continue };
            prop_assert!(IpNet::V4(WHOLE_V4).contains(&given));
            prop_assert!(taken.iter().all(|one| !overlap(one, &given)));
            taken.push(given);
        }
    }

    #[test]
    fn addresses_are_of_the_subnet_and_free(prefix in 20u8..=30, seeds in proptest::collection::vec(any::<u64>(), 1..40)) {
        let subnet = IpNet::new("10.128.16.0".parse().unwrap(), prefix).unwrap().trunc();
        let mut taken = BTreeSet::new();
        for seed in seeds {
            let given = hosts::pick(&subnet, seed, |address| taken.contains(address));
            match given {
                Some(given) => {
                    prop_assert!(subnet.contains(&given) && taken.insert(given));
                }
                None => prop_assert_eq!(taken.len() as u128, hosts::room(&subnet)),
            }
        }
    }
}
