"""Check that advertised addresses lead to this node.

A client connects first to a bootstrap address and then to what the broker advertises. Where the
second cannot be reached, clients hang without a word: the commonest fault in setting up a broker.
"""

import asyncio
import socket

from barnabas.base.loopback import is_loopback
from barnabas.node.config.listeners import ListenerConfig

CONNECT_TIMEOUT_S = 2.0


async def unreachable_reason(host: str, port: int) -> str | None:
    """Resolve and connect as a client does; None when it works, else why not."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return f"no answer within {CONNECT_TIMEOUT_S:g} s"
    except socket.gaierror:
        return "unknown host name"
    except ConnectionRefusedError:
        return "the connection is refused"
    except OSError as error:
        return error.strerror or str(error)
    writer.close()
    await writer.wait_closed()
    return None


async def advertised_problems(
    listeners: list[ListenerConfig], bound: list[ListenerConfig]
) -> list[str]:
    """One line for each advertised address that clients cannot use; ports already filled in."""
    bound_hosts = {listener.name: listener.host for listener in bound}
    problems = []
    for listener in listeners:
        reason = await unreachable_reason(listener.host, listener.port)
        if reason is not None:
            problems.append(
                f"clients are told to connect to {listener}, which this machine itself cannot "
                f"reach ({reason}): set advertised.listeners to an address that clients reach"
            )
        elif is_loopback(listener.host) and not is_loopback(
            bound_hosts.get(listener.name) or "0.0.0.0"
        ):
            problems.append(
                f"clients are told to connect to {listener}, which only this machine can reach: "
                "set advertised.listeners if other machines must connect"
            )
    return problems
