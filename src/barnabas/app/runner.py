"""A node in the foreground: started, watched, and stopped by a signal."""

import asyncio
import gc
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.app.listening import CannotListenError
from barnabas.app.metrics.access import LISTENER_KEY, metrics_access
from barnabas.app.node import Node
from barnabas.base.addresses import is_loopback
from barnabas.base.descriptors import raise_limit
from barnabas.base.ending import stop_on_signals
from barnabas.base.errors import ShownError
from barnabas.base.event_loop import new_event_loop
from barnabas.node.config.listeners import ListenerConfig
from barnabas.node.config.node_config import NodeConfig

if TYPE_CHECKING:
    from barnabas.app.metrics.collecting import NodeFigures
    from barnabas.app.metrics.endpoint import MetricsEndpoint

EXIT_FAILED = 1


class StartError(ShownError):
    """A reason why a node cannot start, in one line."""


telemetry = logging.getLogger(__name__)


Ready = Callable[[Node, str | None], None]
"""Called with a node that serves, and the URL of its metrics, if it shows any."""


def run_node(config: NodeConfig, on_ready: Ready | None = None) -> int:
    """Run until SIGTERM, SIGINT or SIGHUP; returns the exit code, 0 after a clean shutdown.

    A second signal ends the process at once, except SIGHUP, which a closed terminal may send
    twice. Raises what keeps the node from starting.
    """
    raise_limit()
    for warning in config.warnings:
        telemetry.warning("%s", warning)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_serve(config, on_ready))


async def _serve(config: NodeConfig, on_ready: Ready | None) -> int:
    stopping = asyncio.Event()
    stop_on_signals(stopping, "second signal: the node ends at once, without a clean shutdown")
    watched: list[NodeFigures] = []
    metrics = _show_metrics(config, watched)
    try:
        node = await _open(config)
        if metrics is not None:
            watched.append(_figures_of(node))
            watched[0].start()
        url = None if metrics is None else metrics.url
        return await _run(config, node, stopping, on_ready, url)
    finally:
        for figures in watched:
            figures.close()
        if metrics is not None:
            await asyncio.to_thread(metrics.close)


async def _run(
    config: NodeConfig,
    node: Node,
    stopping: asyncio.Event,
    on_ready: Ready | None,
    metrics_url: str | None,
) -> int:
    starting = asyncio.create_task(node.start())
    stop = asyncio.create_task(stopping.wait())
    fail = asyncio.create_task(node.failed.wait())
    # A node of a cluster waits for its quorum, for as long as it takes.
    await asyncio.wait((starting, stop, fail), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    fail.cancel()
    if not starting.done():
        if stopping.is_set():
            telemetry.info("node %d was stopped before it started", config.node_id)
        starting.cancel()
        await asyncio.wait((starting,))
        if node.failure is not None:
            raise node.failure
        return 0
    await starting
    # What was imported and loaded lives on: without this each full collection would walk it all,
    # and delay a request by tens of milliseconds.
    gc.collect()
    gc.freeze()
    telemetry.info("node %d serves %s", config.node_id, ", ".join(map(str, bound_listeners(node))))
    if on_ready is not None:
        on_ready(node, metrics_url)
    check = asyncio.create_task(_say_unreachable(node))
    waits = [asyncio.create_task(event.wait()) for event in (stopping, node.failed)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in (*waits, check):
        task.cancel()
    await asyncio.gather(*waits, check, return_exceptions=True)
    telemetry.info("node %d stops", config.node_id)
    await node.stop()
    telemetry.info("node %d has stopped", config.node_id)
    return EXIT_FAILED if node.failed.is_set() else 0


async def _open(config: NodeConfig) -> Node:
    try:
        return await Node.open(config)
    except CannotListenError as error:
        raise StartError(str(error)) from error


def _figures_of(node: Node) -> "NodeFigures":
    from barnabas.app.metrics.collecting import NodeFigures  # for those who ask

    return NodeFigures(node)


def _show_metrics(config: NodeConfig, watched: list["NodeFigures"]) -> "MetricsEndpoint | None":
    """Show the figures that will be in `watched`, if the configuration says so."""
    access = metrics_access(config)
    if access is None:
        return None
    # An HTTP server, for those who ask.
    from barnabas.app.metrics.endpoint import MetricsEndpoint
    from barnabas.web.listening import CannotListenError as CannotShowError

    where = config.get_str(LISTENER_KEY)
    try:
        metrics = MetricsEndpoint.open(config, access, lambda: watched[0] if watched else None)
    except CannotShowError as error:
        raise StartError(f"cannot show metrics at {where}: {error.why}") from error
    telemetry.info("metrics are at %s", metrics.url)
    return metrics


async def _say_unreachable(node: Node) -> None:
    advertised = advertised_listeners(node)
    for problem in await advertised_problems(advertised, node.config.listeners):
        telemetry.warning("%s", problem)


def bound_listeners(node: Node) -> list[ListenerConfig]:
    """The listeners for clients, with the ports they are bound to."""
    return [
        replace(listener, port=node.bound_port(listener.name))
        for listener in node.config.broker_listeners
    ]


def advertised_listeners(node: Node) -> list[ListenerConfig]:
    """The advertised addresses, with host names and ports filled in."""
    endpoints = node.advertised_endpoints()
    return [
        replace(listener, host=endpoints[listener.name].host, port=endpoints[listener.name].port)
        for listener in node.config.advertised_listeners
    ]


# Check that advertised addresses lead to this node.
#
# A client connects first to a bootstrap address and then to what the broker advertises. Where the
# second cannot be reached, clients hang without a word: the commonest fault in setting up a broker.


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
