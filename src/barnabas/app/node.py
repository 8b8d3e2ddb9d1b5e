"""A node put together: the composition root.

`Node.open` recovers log directories and binds listeners (so that ports are known); `start` joins
the metadata quorum and has each role take part in the cluster. Stop goes the other way. Both roles
stand on the node's metadata, which is started before them and stopped when they have left.
"""

import asyncio
import logging
import os
from collections.abc import Iterator, Sequence
from random import Random, SystemRandom
from typing import Protocol

from barnabas.app.authorization import Authorization
from barnabas.app.broker_role import BrokerRole
from barnabas.app.controller_role import ControllerRole
from barnabas.app.listening import ListenerCertificates
from barnabas.app.logins import Gates
from barnabas.app.metrics.access import LISTENER_KEY
from barnabas.app.quotas import ListenerQuotas, busy_clock
from barnabas.app.tracing import RequestTracer, open_tracer
from barnabas.base.clock import Clock, SystemClock
from barnabas.base.descriptors import DescriptorReserve
from barnabas.base.disk import Disk
from barnabas.base.ending import Step, give_up, take_all
from barnabas.base.local_disk import LocalDisk
from barnabas.base.network import Network
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.file_cache import files_to_come
from barnabas.node.metadata.broker_lifecycle import UnreportedDirectoryError
from barnabas.node.metadata.image import Endpoint
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.metadata.storage_format import log_directories
from barnabas.node.net.request_times import RequestTimes
from barnabas.node.net.request_trace import Tracer
from barnabas.node.net.server import Server
from barnabas.node.net.tcp import TcpNetwork
from barnabas.node.security.quotas.client_quotas import Figure

LOCK_FILE = ".lock"

telemetry = logging.getLogger(__name__)


class Role(Protocol):
    """A role of a node in its cluster. It is complete once created, with its listeners bound."""

    server: Server
    quotas: ListenerQuotas
    certificates: ListenerCertificates
    gates: Gates

    def trace_by(self, tracer: Tracer) -> None:
        """Have requests traced from now on."""

    async def start(self) -> None:
        """Take part; the node's metadata has been started."""

    async def leave(self) -> None:
        """Take part no more; the metadata is stopped next."""

    async def close(self) -> None:
        """Let go of everything; `leave` has been called, and the metadata is stopped."""

    async def abandon(self) -> None:
        """As `close`, of a role that did not start, or not to the end."""


class NodeFailure:
    """Why a node must stop, once it must."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.cause: Exception | None = None
        self.is_starting = True
        """True if `start` has not returned: who called it says why the node ends."""

    def must_end(self, error: Exception) -> None:
        """The node cannot go on."""
        self.cause = error
        if isinstance(error, UnreportedDirectoryError):
            telemetry.critical("this node must stop: %s", error)
        elif not self.is_starting:
            telemetry.critical("the metadata log failed, so this node must stop: %s", error)
        self.happened.set()


class Node:
    """One node of a cluster: `open`, then `start`, and `stop` at last."""

    def __init__(
        self,
        *,
        config: NodeConfig,
        own_disk: LocalDisk | None,
        metadata: MetadataNode,
        controller: ControllerRole | None,
        broker: BrokerRole | None,
        authorization: Authorization,
        failure: NodeFailure,
        clock: Clock,
        times: RequestTimes | None = None,
        tracer: RequestTracer | None = None,
    ) -> None:
        """Use `open`. `own_disk` is the disk where nobody else closes it."""
        self.clock = clock
        self.times = times
        """The requests, counted where the node shows its metrics or traces them."""
        self.config = config
        self.metadata = metadata
        self._own_disk = own_disk
        self._controller = controller
        self._broker = broker
        self._authorization = authorization
        self._failure = failure
        self._roles: Sequence[Role] = [role for role in (controller, broker) if role is not None]
        """In the order in which they start."""
        self._tracer = tracer
        if tracer is not None:
            for role in self._roles:
                role.trace_by(tracer)

    @classmethod
    async def open(
        cls,
        config: NodeConfig,
        disk: Disk | None = None,
        clock: Clock | None = None,
        network: Network | None = None,
        random: Random | None = None,
        *,
        is_durable: bool = True,
    ) -> "Node":
        """A node on its directories, recovered, with its listeners bound.

        With `is_durable` false nothing is forced to the disk (`LocalDisk`).

        Raises what says why it cannot be (one line each, see `cli.errors`), and then holds
        nothing but the lock of its directories, which goes with a `disk` that was given.
        """
        own_disk: LocalDisk | None = None
        if disk is None:
            disk = own_disk = LocalDisk(is_durable=is_durable)
        clock = clock if clock is not None else SystemClock()
        if network is None:
            network = TcpNetwork(DescriptorReserve(files_to_come))
        random = random if random is not None else SystemRandom()
        failure = NodeFailure()
        times: RequestTimes | None = None
        tracer: RequestTracer | None = None
        metadata: MetadataNode | None = None
        authorization: Authorization | None = None
        broker: BrokerRole | None = None
        controller: ControllerRole | None = None
        try:
            lock_directories(disk, config)
            tracer = open_tracer(config, busy_clock(clock), SystemRandom())
            if tracer is not None or config.get_str_or_none(LISTENER_KEY):
                times = RequestTimes(busy_clock(clock))
            metadata = MetadataNode.open(
                config=config,
                disk=disk,
                clock=clock,
                random=random,
                network=network,
                on_failure=failure.must_end,
            )
            authorization = Authorization(config, clock, metadata)
            if "broker" in config.process_roles:
                broker = await BrokerRole.open(
                    config=config,
                    disk=disk,
                    clock=clock,
                    network=network,
                    random=random,
                    metadata=metadata,
                    authorizer=authorization.authorizer,
                    times=times,
                )
            if "controller" in config.process_roles:
                controller = ControllerRole(
                    config=config,
                    clock=clock,
                    network=network,
                    random=random,
                    metadata=metadata,
                    authorizer=authorization.authorizer,
                    times=times,
                )
        except BaseException:
            steps: list[Step] = []
            if metadata is not None:
                steps.append(metadata.stop)
            if broker is not None:
                steps.append(broker.abandon)
            if authorization is not None:
                steps.append(authorization.close)
            if tracer is not None:
                steps.append(tracer.close)
            if own_disk is not None:
                steps.append(own_disk.close)
            await give_up(*steps)
            raise
        return cls(
            config=config,
            own_disk=own_disk,
            metadata=metadata,
            controller=controller,
            broker=broker,
            authorization=authorization,
            failure=failure,
            clock=clock,
            times=times,
            tracer=tracer,
        )

    @property
    def controller(self) -> ControllerRole:
        """The controller's part; only of a node that plays it."""
        assert self._controller is not None, "this node is not a controller"
        return self._controller

    @property
    def broker(self) -> BrokerRole:
        """The broker's part; only of a node that plays it."""
        assert self._broker is not None, "this node is not a broker"
        return self._broker

    @property
    def failed(self) -> asyncio.Event:
        """Set when the node cannot go on: its metadata log failed, or a directory of which no
        controller hears. `failure` says why.
        """
        return self._failure.happened

    @property
    def failure(self) -> Exception | None:
        """Why the node cannot go on."""
        return self._failure.cause

    def bound_port(self, listener_name: str) -> int:
        """The port that a listener is bound to. Raises KeyError."""
        for role in self._roles:
            if listener_name in role.server.ports:
                return role.server.ports[listener_name]
        raise KeyError(listener_name)

    def figures(self) -> Iterator[Figure]:
        """The node's current figures, under the names of Kafka's metrics."""
        for role in self._roles:
            yield from role.quotas.figures()
            yield from role.gates.figures()
            for listener, seconds in role.certificates.seconds_left().items():
                tags = {"listener": listener}
                yield Figure("ssl-certificate", tags, "expiry-seconds", seconds)

    def not_ready(self) -> str | None:
        """Why it cannot serve clients now; None if it can."""
        if self.failure is not None:
            return f"the node must stop: {self.failure}"
        if self._failure.is_starting:
            return "the node is starting"
        if self._broker is None:
            return None
        known = self.metadata.image.brokers.get(self.config.node_id)
        return "the broker is fenced" if known is None or known.fenced else None

    @property
    def roles(self) -> Sequence[Role]:
        """The parts that it plays."""
        return self._roles

    @property
    def played_broker(self) -> BrokerRole | None:
        """The broker's part; None of a node that plays none."""
        return self._broker

    def advertised_endpoints(self) -> dict[str, Endpoint]:
        """The advertised endpoints, with the machine's name and bound ports filled in."""
        return {} if self._broker is None else self._broker.advertised_endpoints()

    async def start(self) -> None:
        """Join the cluster and serve.

        Raises what says why it cannot, and then has let go of everything but the lock, which
        goes with a disk that was given to `open`.
        """
        try:
            await self.metadata.start()
            for role in self._roles:
                await role.start()
        except BaseException:
            await self._abandon()
            raise
        self._failure.is_starting = False

    async def _abandon(self) -> None:
        """Let go of everything: the node cannot start, or is stopped before it has."""
        steps: list[Step] = [role.server.close for role in self._roles]
        steps.append(self.metadata.stop)
        steps.extend(role.abandon for role in self._roles)
        await give_up(*steps, *self._last_steps())

    async def stop(self) -> None:
        """Give leaderships away, refuse new work, finish what is under way, flush and close.

        Raises the first error of a part, when all else is closed.
        """
        steps: list[Step] = [role.leave for role in reversed(self._roles)]
        steps.append(self.metadata.stop)
        steps.extend(role.close for role in self._roles)
        await take_all(*steps, *self._last_steps())

    def _last_steps(self) -> list[Step]:
        """Close what roles and metadata used until now."""
        steps: list[Step] = [self._authorization.close]
        if self._tracer is not None:
            steps.append(self._tracer.close)
        if self._own_disk is not None:
            steps.append(self._own_disk.close)
        return steps


def lock_directories(disk: Disk, config: NodeConfig) -> None:
    """See that no other node uses the directories. Raises DirectoryInUseError."""
    for directory in log_directories(config):
        if disk.is_dir(directory):
            try:
                disk.lock(os.path.join(directory, LOCK_FILE))
            except OSError as error:
                telemetry.error("%s cannot be locked: %s", directory, error)
