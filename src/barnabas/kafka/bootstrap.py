"""A check that brokers answer at bootstrap addresses, since client libraries retry silently.

The question is ApiVersions, which brokers answer before a login. Clients with TLS ask it over TLS,
with their own certificate and trust: a node logs plain text, and handshakes that fail. Others ask
in plain text; a listener with TLS answers that with an alert, or closes the connection. A broker
that answers at all counts as reachable; the connection that comes next reports a refusal.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Final

from barnabas.base.config.values import parse_host_port
from barnabas.base.errors import ConfigError

if TYPE_CHECKING:
    import ssl

    from barnabas.kafka.security import Security

PROBE_TIMEOUT_S: Final = 3.0
API_VERSIONS_REQUEST: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions version 0 without a client id, with its size in front."""


class UnreachableError(Exception):
    """No bootstrap address answers; the message says why, for each address."""


def first_reachable(
    bootstrap_servers: str,
    timeout_s: float = PROBE_TIMEOUT_S,
    security: Security | None = None,
) -> tuple[str, int]:
    """Ask each address in turn; return host and port of the first that answers.

    `security` is the client's, plain text by default; an address may begin with its own protocol
    (`SSL://`). `timeout_s` limits each step with each address: connection, handshake, answer.
    Raises UnreachableError if none answers.
    """
    reasons = []
    for text in bootstrap_servers.split(","):
        address = text.strip()
        protocol, _, name = address.rpartition("://")
        host_port = parse_host_port(name)
        has_tls = protocol.upper().endswith("SSL") or (
            not protocol and security is not None and security.has_tls
        )
        context = _context(security) if has_tls else None
        reason = "not host:port" if host_port is None else _why_not(host_port, timeout_s, context)
        if host_port is not None and reason is None:
            return host_port
        reasons.append(f"{address} ({reason})")
    raise UnreachableError(f"no broker answers at {', '.join(reasons)}")


def _context(security: Security | None) -> ssl.SSLContext:
    """Return the client's own TLS, or one that accepts every broker if that cannot be made here.

    librdkafka may read more kinds of files, and reports the wrong ones.
    """
    from barnabas.base.tls.contexts import client_context

    if security is not None and security.has_tls:
        try:
            return security.tls()
        except ConfigError:
            pass
    return client_context(checks_certificate=False)


def _why_not(
    host_port: tuple[str, int], timeout_s: float, context: ssl.SSLContext | None
) -> str | None:
    lacks = "no answer"
    try:
        with socket.create_connection(host_port, timeout=timeout_s) as stream:
            lacks = "connected, but no answer"
            if context is None:
                _ask(stream)
                return None
            lacks = "connected, but no answer to the TLS handshake"
            with context.wrap_socket(stream, server_hostname=host_port[0]) as secured:
                lacks = "connected by TLS, but no answer"
                _ask(secured)
            return None
    except socket.gaierror:
        return "unknown host name"
    except TimeoutError:
        return lacks
    except OSError as error:
        if lacks != "no answer":
            return None  # it closed the connection, or refuses us
        return (error.strerror or str(error)).lower()


def _ask(stream: socket.socket) -> None:
    stream.sendall(API_VERSIONS_REQUEST)
    stream.recv(1)
