//! IP addresses and networks for the `ip()` and `cidr()` functions and the `cidr` format.

use std::net::IpAddr;

/// An address.
pub type Ip = IpAddr;

/// Parses an address. Zones and IPv4 addresses mapped into IPv6 are refused.
pub fn parse_ip(text: &str) -> Option<Ip> {
    match text.parse().ok()? {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => None,
        address => Some(address),
    }
}

/// Whether the address is neither special nor limited to a link.
pub fn is_global_unicast(ip: Ip) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(address) if address.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local(ip))
}

/// Whether the address is a link-local unicast address.
pub fn is_link_local(ip: Ip) -> bool {
    match ip {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Whether the address is a link-local multicast address.
pub fn is_link_local_multicast(ip: Ip) -> bool {
    match ip {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

/// An address with the length of its network prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address as given; bits beyond the prefix may be set.
    pub address: Ip,
    /// The length of the prefix.
    pub prefix: u8,
}

impl Cidr {
    /// Parses `address/prefix`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address = parse_ip(address)?;
        let plain =
            prefix.bytes().all(|b| b.is_ascii_digit()) && (prefix.len() == 1 || !prefix.starts_with('0'));
        let prefix = if plain { prefix.parse().ok()? } else { return None };
        (prefix <= width(address)).then_some(Self { address, prefix })
    }

    /// Whether the network has this address.
    pub fn contains(self, ip: Ip) -> bool {
        width(self.address) == width(ip) && masked(self.address, self.prefix) == masked(ip, self.prefix)
    }

    /// Whether the network has all of the other.
    pub fn contains_network(self, other: Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    /// The network with the bits beyond the prefix cleared.
    pub fn masked(self) -> Self {
        let bits = masked(self.address, self.prefix);
        let address = match self.address {
            // The bits of an IPv4 address fill the lower half of the number.
            IpAddr::V4(_) => IpAddr::V4((bits as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(bits.into()),
        };
        Self { address, ..self }
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn width(ip: Ip) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn masked(ip: Ip, prefix: u8) -> u128 {
    let bits = match ip {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let beyond = u32::from(width(ip) - prefix);
    if beyond == 128 { 0 } else { bits >> beyond << beyond }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_what_they_should() {
        let network = Cidr::parse("10.1.2.3/8").unwrap();
        assert!(network.contains(parse_ip("10.255.0.1").unwrap()));
        assert!(!network.contains(parse_ip("11.0.0.1").unwrap()));
        assert!(!network.contains(parse_ip("::1").unwrap()));
        assert!(network.contains_network(Cidr::parse("10.5.0.0/16").unwrap()));
        assert!(!network.contains_network(Cidr::parse("10.0.0.0/7").unwrap()));
        assert_eq!(network.masked().to_string(), "10.0.0.0/8");
        assert_eq!(Cidr::parse("::1/0").unwrap().masked().to_string(), "::/0");
        for text in
            ["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/08", "10.0.0.0/+8", "::ffff:1.2.3.4/96", "/8"]
        {
            assert_eq!(Cidr::parse(text), None, "{text}");
        }
    }
}
