//! Which addresses are public, and what a client that may reach only those connects to.

use std::time::Duration;

use charter_actors::{ClientOptions, NOT_PUBLIC, http_client, is_public};

#[test]
fn addresses_inside_are_not_public() {
    for inside in [
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
    ] {
        assert!(!is_public(inside.parse().unwrap()), "{inside}");
    }
}

#[test]
fn other_addresses_are_public() {
    for public in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "168.63.129.17",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2606:4700::1111",
        "2a00:1450::1",
        "64:ff9b::808:808",
        "3ffe:ffff::1",
    ] {
        assert!(is_public(public.parse().unwrap()), "{public}");
    }
}

#[test]
fn a_client_for_public_addresses_connects_to_no_other() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = ClientOptions { public_only: true, request: Some(Duration::from_secs(5)), ..Default::default() };
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f000001", "2130706433", "127.1", "0"] {
        let error = http_client(options).get(format!("http://{host}:{port}/")).call().unwrap_err();
        let text = error.to_string();
        // Ways to write an address that the system does not know are names that do not exist.
        let unknown = text.contains("lookup") || text.contains("host not found") || text.contains("uri");
        assert!(text.contains(NOT_PUBLIC) || (unknown && !host.contains("127.0.0.1")), "{host}: {text}");
    }
    assert!(listener.accept().is_err(), "nobody has connected");
}
