//! Which addresses are public: those that a request which somebody else has asked for may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 that are not public: the special-purpose registry of IANA, and the address under
/// which machines of Azure reach their host. Each with the length of its prefix.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The range of IPv6 that is public, and ranges in it that are not: special purposes (with Teredo),
/// documentation, 6to4, documentation.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The prefix under which a network without IPv4 reaches IPv4 (RFC 6052), 96 bits long.
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);

/// Whether an address is public: not of this machine, of a private network, of a link, reserved, or
/// one of those in disguise.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|(range, length)| in_v4(address, *range, *length)),
        IpAddr::V6(address) if in_v6(address, NAT64, 96) => {
            let [.., a, b, c, d] = address.octets();
            is_public(Ipv4Addr::new(a, b, c, d).into())
        }
        IpAddr::V6(address) => {
            let (range, length) = PUBLIC_V6;
            let excepted = NOT_PUBLIC_V6.iter().any(|(range, length)| in_v6(address, *range, *length));
            in_v6(address, range, length) && !excepted
        }
    }
}

fn in_v4(address: Ipv4Addr, range: Ipv4Addr, length: u32) -> bool {
    let different = u32::from(address) ^ u32::from(range);
    different.leading_zeros() >= length
}

fn in_v6(address: Ipv6Addr, range: Ipv6Addr, length: u32) -> bool {
    let different = u128::from(address) ^ u128::from(range);
    different.leading_zeros() >= length
}
