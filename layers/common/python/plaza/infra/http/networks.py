"""The networks of IP addresses."""

from __future__ import annotations

import ipaddress


def network_of(address: str) -> str:
    """Return the network of one customer of a provider: an IPv4 address, or a /64 of IPv6."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip) >> 64 << 64, 64)))


def site_of(address: str) -> str:
    """Return the network that many users may share: an IPv4 address, or a /48 of IPv6."""
    network = network_of(address)
    if not network.endswith("/64"):
        return network
    return str(ipaddress.ip_network(network).supernet(new_prefix=48))
