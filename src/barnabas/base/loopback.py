"""Addresses that only this machine can reach."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a listener there is reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
