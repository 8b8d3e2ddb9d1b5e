"""Checks before an HTTP server answers: the host a request is for, and the page that sends it.

Web pages may send requests to any address that their reader's machine reaches. A page of another
origin says so in `Origin`, or its browser does in `Sec-Fetch-Site` where images, links and forms
send none. A page whose host name was pointed at this machine after it was loaded
(DNS rebinding) is of the same origin as far as browsers know, but its name is in `Host`: a server
that listens on loopback alone answers to addresses and to `localhost`, not to names.
"""

import base64
import binascii
import enum
import ipaddress
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from barnabas.base.addresses import is_loopback

_OTHER_SITES = (b"cross-site", b"same-site")


class Refusal(enum.Enum):
    """Why a request does not reach the product, with a text for the client."""

    OTHER_HOST = "The request is for another host"
    OTHER_ORIGIN = "Requests of other origins are not allowed"
    NO_LOGIN = "Unauthorized"
    NO_RIGHT = "Forbidden"
    NO_METHOD = "Method not allowed"
    SLOW_BODY = "The request did not arrive in time"
    LARGE_BODIES = "The server has too many large requests"
    TOO_MANY_REQUESTS = "The server has too many requests"
    NOT_READY = "The server is not ready"


def only_loopback(hosts: Iterable[str]) -> bool:
    """Return whether all listeners are on loopback."""
    return all(is_loopback(host) for host in hosts)


def is_meant_for_loopback(host_header: bytes, names: Collection[str] = ()) -> bool:
    """Whether a request may be for a server on loopback: by address, `localhost` or `names`."""
    try:
        host = urlsplit(f"//{host_header.decode('latin-1')}").hostname or ""
    except ValueError:
        return False
    if not host_header or host in names or host == "localhost" or host.endswith(".localhost"):
        return True  # without a name no page can have sent it
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def may_ask(
    origin: bytes | None, site: bytes | None, host_header: bytes, origins: Collection[str] = ()
) -> bool:
    """Return whether a request comes from no page, from a page of this server or of `origins`.

    `site` is what the browser says in `Sec-Fetch-Site`; no other client has it.
    """
    if "*" in origins or (origin is not None and origin.decode("latin-1") in origins):
        return True
    return site not in _OTHER_SITES and is_of_own_page(origin, host_header)


def is_of_own_page(origin: bytes | None, host_header: bytes) -> bool:
    """Return whether no page sends a request, or a page of this very server."""
    if origin is None:
        return True
    try:
        page = urlsplit(origin.decode("latin-1")).netloc.lower()
    except ValueError:
        return False
    return page == host_header.decode("latin-1").lower()


def basic_credentials(values: Collection[bytes]) -> tuple[str, str] | None:
    """Name and password of a request's `Authorization` headers; None without just one."""
    if len(values) != 1:
        return None
    method, _, encoded = next(iter(values)).partition(b" ")
    if method.lower() != b"basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    name, colon, password = text.partition(":")
    return (name, password) if colon else None
