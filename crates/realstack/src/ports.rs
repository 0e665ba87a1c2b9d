//! Ports for servers that come and go under one address.
//!
//! A port that the system picks for listening may be picked again as the near end of somebody's connection while its server is down.
//! So ports come from below the range that connections are made from.

use std::net::{Ipv4Addr, TcpListener};

use crate::Error;

/// Where Linux begins to take ports for outgoing connections is 32768; this range ends well before.
const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;

/// As many different ports as asked for, on which nothing listens now. `seed` says where to begin to look, so that two stacks that start at
/// the same time are unlikely to meet.
pub(crate) fn free(wanted: usize, seed: u16) -> Result<Vec<u16>, Error> {
    let span = LAST - FIRST + 1;
    // All are held until the last is found: none is given out twice.
    let mut held = Vec::new();
    for offset in 0..span {
        if held.len() == wanted {
            break;
        }
        let port = FIRST + (seed % span + offset) % span;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            held.push((port, listener));
        }
    }
    if held.len() < wanted {
        return Err(Error::NoPorts { wanted, first: FIRST, last: LAST });
    }
    Ok(held.into_iter().map(|(port, _)| port).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_differ_are_free_and_stay_in_range() {
        let ports = free(20, u16::MAX).unwrap();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 20);
        assert!(ports.iter().all(|port| (FIRST..=LAST).contains(port)));
    }

    #[test]
    fn a_port_that_is_taken_is_passed_over() {
        let taken = free(1, 77).unwrap()[0];
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, taken)).unwrap();
        assert!(!free(3, taken - FIRST).unwrap().contains(&taken));
    }
}
