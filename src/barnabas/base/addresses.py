"""IP addresses as text, each in one form: what is compared must not be written in two ways."""

import ipaddress


def normal_address(text: str) -> str | None:
    """An address in its shortest form, without a zone; None for what is no address.

    One of IPv4 within IPv6 is that of IPv4: so a socket that takes both names its clients.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
