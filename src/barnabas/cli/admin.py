"""Requests of Kafka's Admin API that the client library has no call for.

Sent over our own protocol client, to any Kafka cluster: reassignments, elections, the quorum and
its voters, unregistering, log directories. Brokers are found through DescribeCluster as a client
finds them; brokers hand on what the controller decides. With `controllers=True` the addresses are
those of controllers (`--bootstrap-controller`), and requests go to the active one (KIP-919).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from barnabas import __version__
from barnabas.base.clock import SystemClock
from barnabas.base.config.values import parse_host_port
from barnabas.base.tls.words import TlsError
from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.cli.login import dialing_for, refusal
from barnabas.node.net.client import Peer, UnsupportedByPeerError
from barnabas.node.net.login import LoginError
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.errors import EncodeError, ErrorCode
from barnabas.protocol.messages.connections import ApiVersionsRequest
from barnabas.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.schema import Message

CLIENT_ID = "barnabas-cli"
BROKERS, CONTROLLERS = 1, 2
"""Kinds of endpoints, as DescribeCluster numbers them."""
RETRY_S = 0.25
MOVED_CODES = frozenset(
    {ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION}
    | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_CONTROLLER_ID}
)
"""Answers that mean: another node decides, or soon one will. Asked again until time is up."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker as DescribeCluster tells it, or a controller."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """A cluster and its brokers by id; fenced ones too, where the cluster can tell them."""

    cluster_id: str
    controller_id: int
    brokers: Mapping[int, BrokerInfo]

    @property
    def live(self) -> list[int]:
        """Ids of the brokers that are not fenced."""
        return [broker.id for broker in self.brokers.values() if not broker.is_fenced]

    @property
    def fenced(self) -> list[int]:
        """Ids of the brokers that are down, or not up yet."""
        return [broker.id for broker in self.brokers.values() if broker.is_fenced]


class Admin:
    """A cluster to send requests to. Use it in a `with` block; of no use in a running loop."""

    def __init__(self, connection: Connection, *, controllers: bool = False) -> None:
        """Raises CliError where the client configuration asks for what is not spoken here."""
        self._config = connection.config
        self._dialing = dialing_for(connection.config)
        self.timeout_s = connection.timeout_s
        self.controllers = controllers
        named = (part.strip() for part in connection.bootstrap_servers.split(","))
        self._addresses = [address for address in named if address]
        if not self._addresses:
            raise CliError("no address is given", ExitCode.USAGE, "write host:port")
        self._runner = asyncio.Runner()
        self._peers: dict[tuple[str, int], Peer] = {}
        self._silent: set[tuple[str, int]] = set()
        """Addresses that did not answer the last time: others are asked before them."""
        self._cluster: ClusterInfo | None = None

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for peer in self._peers.values():
            peer.close()
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end on this object's event loop."""
        return self._runner.run(work)

    def pause(self, seconds: float) -> None:
        """Wait while connections stay alive."""
        self.run(asyncio.sleep(seconds))

    # -- asking

    def ask(self, request: Message, broker: int | None = None) -> Any:
        """The answer of `broker`, or of any that answers. Raises CliError."""
        return self.run(self.send(request, broker))

    async def send(self, request: Message, broker: int | None = None) -> Any:
        """As `ask`, for use in `run`."""
        if broker is None and self.controllers:
            broker = await self._active_controller()
        if broker is None:
            return await self._send_to_any(request)
        cluster = self._cluster or await self._describe(self._kind)
        known = cluster.brokers.get(broker)
        if known is None:
            raise CliError(f"there is no node {broker} in this cluster", ExitCode.NOT_FOUND)
        try:
            return await self._send_to(known.host, known.port, request)
        except UnsupportedByPeerError as error:
            raise CliError(f"node {broker}: {error}") from error
        except OSError as error:
            raise self._unreached(error, f"node {broker}") from error

    def _unreached(self, error: OSError, where: str) -> CliError:
        known = refusal(error, where, self._config)
        return known or CliError(f"{where}: {_reason(error)}", ExitCode.UNREACHABLE)

    async def _active_controller(self) -> int:
        """The controller that leads; waits while there is none. Raises CliError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_s
        while True:
            found = await self._describe(CONTROLLERS)
            if found.controller_id in found.brokers:
                return found.controller_id
            if loop.time() > deadline:
                raise CliError("no controller is active", ExitCode.UNREACHABLE)
            await asyncio.sleep(RETRY_S)

    def serves(self, host: str, port: int, api: int) -> bool | None:
        """Whether who answers there serves an API; None where nobody does."""
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        try:
            response = self.run(self._send_to(host, port, request))
        except OSError:
            return None
        return any(entry.api_key == api for entry in response.api_keys)

    def unanswering(self) -> list[BrokerInfo]:
        """The nodes of the kind that is asked which do not answer now. Raises CliError."""
        known = list(self.info().brokers.values())

        async def ask() -> list[Any]:
            request = DescribeClusterRequest(endpoint_type=self._kind)
            asked = [self._send_to(node.host, node.port, request) for node in known]
            return await asyncio.gather(*asked, return_exceptions=True)

        answers = zip(known, self.run(ask()), strict=True)
        return [node for node, answer in answers if isinstance(answer, OSError)]

    @property
    def _kind(self) -> int:
        return CONTROLLERS if self.controllers else BROKERS

    async def _send_to_any(self, request: Message) -> Any:
        """Ask the bootstrap addresses in turn, then the brokers that were learnt of."""
        addresses = [_host_port(address) for address in self._addresses]
        if self._cluster is not None:
            addresses += [(known.host, known.port) for known in self._cluster.brokers.values()]
        reasons: list[str] = []
        refusals: list[CliError | None] = []
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.timeout_s
        for host, port in sorted(dict.fromkeys(addresses), key=self._silent.__contains__):
            # One that hangs may take all the time there is: another is asked even then.
            if len(reasons) > 1 and clock() > deadline:
                break
            try:
                response = await self._send_to(host, port, request)
                self._silent.discard((host, port))
                return response
            except UnsupportedByPeerError as error:
                raise CliError(str(error)) from error
            except (LoginError, TlsError) as error:
                raise self._unreached(error, f"{host}:{port}") from error
            except OSError as error:
                self._silent.add((host, port))
                refusals.append(refusal(error, f"{host}:{port}", self._config))
                reasons.append(f"{host}:{port} ({_reason(error)})")
        if refusals and refusals[0] is not None and all(refusals):
            raise refusals[0]  # the settings are wrong, for one node as for the next
        option = "--bootstrap-controller" if self.controllers else "--bootstrap-servers"
        raise CliError(
            f"no node answers at {', '.join(reasons)}",
            ExitCode.UNREACHABLE,
            f"give the address with {option}",
        )

    async def _send_to(self, host: str, port: int, request: Message) -> Any:
        peer = self._peers.get((host, port))
        if peer is None:
            peer = Peer(
                TcpNetwork(),
                SystemClock(),
                host,
                port,
                client_id=CLIENT_ID,
                request_timeout_ms=int(self.timeout_s * 1000),
                connect_timeout_ms=int(min(self.timeout_s, 5) * 1000),
                dialing=self._dialing,
            )
            self._peers[host, port] = peer
        return await peer.send(request)

    def decide(self, request: Message, what: str = "") -> Any:
        """The answer to what the active controller decides; it may change in between.

        `request`'s response has a top-level error. Raises CliError for that.
        """
        return self.run(self._decide(request, what))

    async def _decide(self, request: Message, what: str) -> Any:
        response = await self._retry(request, lambda answer: [answer.error_code])
        if response.error_code != ErrorCode.NONE:
            message = getattr(response, "error_message", None)
            error = from_code(response.error_code, message, what)
            if error.code is ExitCode.UNREACHABLE:
                error.hint = "no controller decided it: barnabas quorum status tells more"
            raise error
        return response

    def retry(self, request: Message, codes: Callable[[Any], Iterable[int]]) -> Any:
        """The answer to what the active controller decides, with an error for each part of it.

        `codes` takes those from the answer. It is asked again while another node decides.
        """
        return self.run(self._retry(request, codes))

    async def _retry(self, request: Message, codes: Callable[[Any], Iterable[int]]) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_s
        while True:
            response = await self.send(request)
            if MOVED_CODES.isdisjoint(codes(response)) or loop.time() > deadline:
                return response
            await asyncio.sleep(RETRY_S)

    # -- the cluster

    def cluster(self) -> ClusterInfo:
        """The brokers there are now, fenced ones included. Raises CliError."""
        return self.run(self._describe(BROKERS))

    def info(self) -> ClusterInfo:
        """The nodes of the kind that is asked: brokers, or controllers. Raises CliError."""
        return self.run(self._describe(self._kind))

    async def _describe(self, kind: int) -> ClusterInfo:
        request = DescribeClusterRequest(endpoint_type=kind, include_fenced_brokers=kind == BROKERS)
        try:
            response = await self._send_to_any(request)
        except EncodeError:
            # Before Kafka 4.0 nobody could be asked for fenced brokers.
            response = await self._send_to_any(DescribeClusterRequest())
        if response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            raise CliError(
                "this is a broker's listener where a controller's is needed, or vice versa",
                hint="brokers with --bootstrap-servers, controllers with --bootstrap-controller",
            )
        if response.error_code != ErrorCode.NONE:
            raise from_code(response.error_code, response.error_message)
        self._cluster = _cluster_info(response)
        return self._cluster


def _cluster_info(response: DescribeClusterResponse) -> ClusterInfo:
    brokers = {
        broker.broker_id: BrokerInfo(
            broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced
        )
        for broker in sorted(response.brokers, key=lambda broker: broker.broker_id)
    }
    return ClusterInfo(response.cluster_id, response.controller_id, brokers)


def _host_port(address: str) -> tuple[str, int]:
    pair = parse_host_port(address.rpartition("://")[2])
    if pair is None:
        raise CliError(f"{address} is not host:port", ExitCode.UNREACHABLE)
    return pair


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return "no answer"
    return (error.strerror or str(error)).lower()
