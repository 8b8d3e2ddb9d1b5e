"""A check that brokers answer at bootstrap addresses, since client libraries retry silently.

The question is ApiVersions in plain text, which brokers answer before a login. A listener with TLS
answers it with an alert, or closes the connection: what answers at all counts as reachable. Where
TLS is known to be spoken, to connect is enough: a node logs plain text that it gets there.
"""

import socket
import struct
from typing import Final

from barnabas.base.config.values import parse_host_port

PROBE_TIMEOUT_S: Final = 3.0
API_VERSIONS_REQUEST: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions version 0 without a client id, with its size in front."""


class UnreachableError(Exception):
    """No bootstrap address answers; the message says why, for each address."""


def first_reachable(
    bootstrap_servers: str, timeout_s: float = PROBE_TIMEOUT_S, protocol: str = "PLAINTEXT"
) -> tuple[str, int]:
    """Ask each address in turn; return host and port of the first that answers.

    `protocol` is that of `security.protocol`; an address may begin with its own (`SSL://`).
    `timeout_s` is for each address, once for the connection and once for the answer.
    Raises UnreachableError if none answers.
    """
    reasons = []
    for text in bootstrap_servers.split(","):
        address = text.strip()
        own_protocol, _, name = address.rpartition("://")
        host_port = parse_host_port(name)
        has_tls = (own_protocol or protocol).upper().endswith("SSL")
        reason = "not host:port" if host_port is None else _why_not(host_port, timeout_s, has_tls)
        if host_port is not None and reason is None:
            return host_port
        reasons.append(f"{address} ({reason})")
    raise UnreachableError(f"no broker answers at {', '.join(reasons)}")


def _why_not(host_port: tuple[str, int], timeout_s: float, has_tls: bool) -> str | None:
    is_connected = False
    try:
        with socket.create_connection(host_port, timeout=timeout_s) as stream:
            is_connected = True
            if has_tls:
                return None
            stream.sendall(API_VERSIONS_REQUEST)
            stream.recv(1)
            return None
    except socket.gaierror:
        return "unknown host name"
    except TimeoutError:
        return "connected, but no answer" if is_connected else "no answer"
    except OSError as error:
        if is_connected:
            return None  # it closed the connection, as some do where TLS is expected
        return (error.strerror or str(error)).lower()
