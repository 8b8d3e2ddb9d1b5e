"""Whether anything listens at bootstrap addresses: asked first, since client libraries retry."""

import socket
from typing import Final

from barnabas.base.config.values import parse_host_port

PROBE_TIMEOUT_S: Final = 3.0


class UnreachableError(Exception):
    """No bootstrap address accepts a connection; the message says why, for each address."""


def first_reachable(bootstrap_servers: str, timeout_s: float = PROBE_TIMEOUT_S) -> tuple[str, int]:
    """Connect to each address in turn; return host and port of the first that accepts.

    An address may begin with a protocol (`SSL://`). Raises UnreachableError if none accepts.
    """
    reasons = []
    for text in bootstrap_servers.split(","):
        address = text.strip()
        host_port = parse_host_port(address.rpartition("://")[2])
        reason = "not host:port" if host_port is None else _why_not(host_port, timeout_s)
        if host_port is not None and reason is None:
            return host_port
        reasons.append(f"{address} ({reason})")
    raise UnreachableError(f"no broker answers at {', '.join(reasons)}")


def _why_not(host_port: tuple[str, int], timeout_s: float) -> str | None:
    try:
        with socket.create_connection(host_port, timeout=timeout_s):
            return None
    except socket.gaierror:
        return "unknown host name"
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return (error.strerror or str(error)).lower()
