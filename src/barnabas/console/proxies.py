"""Trusted proxies in front of the console: the client's address and scheme from their headers.

A proxy adds the address that it was asked from to the end of `x-forwarded-for`, and puts the scheme
into `x-forwarded-proto`. Anybody can send both headers, so they count only if they come from an
address of `console.trusted.proxies`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.base.errors import ConfigError

if TYPE_CHECKING:
    from starlette.requests import Request

PROXIES: Final = "console.trusted.proxies"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Proxies:
    """The networks of trusted proxies."""

    networks: Sequence[Network] = ()

    def address(self, request: Request) -> str:
        """Where a request comes from: the last address that is not a trusted proxy's."""
        address = request.client.host if request.client is not None else ""
        told = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        for one in reversed([text.strip() for text in told if text.strip()]):
            if not self._trusts(address) or _parsed(one) is None:
                break
            address = one
        return address

    def is_secure(self, request: Request) -> bool:
        """Return True if the browser uses https, to the console or to a trusted proxy."""
        if request.url.scheme == "https":
            return True
        if not self._trusts(request.client.host if request.client is not None else ""):
            return False
        schemes = ",".join(request.headers.getlist("x-forwarded-proto")).split(",")
        return schemes[-1].strip().lower() == "https"

    def _trusts(self, address: str) -> bool:
        found = _parsed(address)
        return found is not None and any(found in network for network in self.networks)


def proxies_of(text: str) -> Proxies:
    """The value of the setting: addresses and networks, with commas between. Raises ConfigError."""
    networks: list[Network] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        try:
            networks.append(ipaddress.ip_network(part))
        except ValueError:
            message = f"{part!r} is not an address or a network such as 10.0.0.0/8"
            raise ConfigError(PROXIES, message) from None
    return Proxies(tuple(networks))


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found if mapped is None else mapped
