"""IP addresses as text, in one form each so that they can be compared."""

import ipaddress


def normal_address(text: str) -> str | None:
    """Return an address in its shortest form, without a zone; None if `text` is not an address.

    An IPv4 address mapped into IPv6 becomes IPv4 again: sockets for both report clients that way.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a listener on that host."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
