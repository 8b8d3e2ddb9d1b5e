"""Administration requests that librdkafka does not offer, to any Kafka cluster.

`WireAdmin` finds brokers through DescribeCluster, as clients do; brokers forward requests that the
controller decides. With `controllers=True` the addresses are those of controllers, and requests go
to the active one (KIP-919). It raises AdminError, which each product reports in its own way.

`wire.Brokers` only keeps connections by address, for writers. `WireAdmin` finds brokers by id, sees
fenced ones, asks several at a time, and asks silent nodes last.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final

from barnabas.kafka.wire import Access, AccessError, Connection, UnservedError, WireError
from barnabas.protocol.apis import API_OF
from barnabas.protocol.errors import EncodeError, ErrorCode
from barnabas.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.schema import Message

BROKERS, CONTROLLERS = 1, 2
"""Kinds of endpoints, as DescribeCluster numbers them."""
RETRY_S: Final = 0.25
MOVED_CODES: Final = frozenset(
    {ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION}
    | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_CONTROLLER_ID}
)
"""Answers that mean: another node decides, or soon one will. Asked again until time is up."""


class AdminError(Exception):
    """The cluster does not answer, or not to this request."""


class NodeError(AdminError):
    """One node cannot be reached, or denies access."""

    def __init__(self, where: str, cause: WireError | AccessError) -> None:
        super().__init__(f"{where}: {cause}")
        self.where = where
        """Its address, or its id as `node 3`."""
        self.cause = cause


class NoNodeError(AdminError):
    """No node answers. `failures` are those of all that were asked."""

    def __init__(self, failures: Sequence[NodeError]) -> None:
        reasons = ", ".join(f"{failure.where} ({failure.cause.reason})" for failure in failures)
        super().__init__(f"no node answers at {reasons}")
        self.failures = failures


class UnsupportedError(AdminError):
    """The node does not support the request."""


class AbsentError(AdminError):
    """The cluster does not have the requested resource."""


class AbsentNodeError(AbsentError):
    """The cluster has no node of this id."""


class LeaderlessError(AdminError):
    """A partition has no leader."""


class SenselessError(AdminError):
    """The request is invalid for any cluster."""


class NoControllerError(AdminError):
    """No controller has become active in time."""


class EndpointError(AdminError):
    """The address is a broker's, but a controller's is needed, or vice versa."""


class RefusedError(AdminError):
    """The cluster refuses a request; `what` names the thing that it is about."""

    def __init__(self, code: int, message: str | None, what: str = "") -> None:
        super().__init__(message or ErrorCode.of(code).message)
        self.code = code
        self.message = message
        self.what = what


class DecisionError(RefusedError):
    """The active controller refuses, or did not decide in time."""


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker, as DescribeCluster returns it, or a controller."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """A cluster and its brokers by id, with the fenced ones if the cluster lists them."""

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


class WireAdmin:
    """A cluster to send requests to, from one thread. Close it."""

    def __init__(self, access: Access, *, controllers: bool = False) -> None:
        """Raises AccessError where an address is none."""
        self._access = access
        self._addresses = access.addresses()
        self.timeout_s = access.timeout_seconds
        self.controllers = controllers
        self._connections: dict[tuple[str, int], Connection] = {}
        """Those that nobody uses now."""
        self._silent: set[tuple[str, int]] = set()
        """Addresses that did not answer the last time: others are asked before them."""
        self._cluster: ClusterInfo | None = None

    def close(self) -> None:
        """Close all connections."""
        while self._connections:
            self._connections.popitem()[1].close()

    # -- asking

    def ask(self, request: Message, broker: int | None = None) -> Any:
        """Return the answer of `broker`, or of any that answers.

        Raises AdminError, and EncodeError for a request that the node's versions cannot express.
        """
        if broker is None and self.controllers:
            broker = self._active_controller()
        if broker is None:
            return self._ask_any(request)
        known = (self._cluster or self.describe(self.kind)).brokers.get(broker)
        if known is None:  # it may have joined since
            known = self.describe(self.kind).brokers.get(broker)
        if known is None:
            raise AbsentNodeError(f"there is no node {broker} in this cluster")
        return self._ask_at(f"node {broker}", known.host, known.port, request)

    def ask_each(self, requests: Sequence[tuple[int, Message]]) -> list[Any]:
        """Ask brokers at the same time; in place of an answer may be what `ask` raises."""
        if self._cluster is None:
            self.describe(self.kind)
        answers: list[Any] = [None] * len(requests)

        def ask(number: int, broker: int, request: Message) -> None:
            try:
                answers[number] = self.ask(request, broker)
            except Exception as error:  # noqa: BLE001  the caller gets it
                answers[number] = error

        threads = [
            Thread(target=ask, args=(number, broker, request), daemon=True)
            for number, (broker, request) in enumerate(requests)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def decide(self, request: Message, what: str = "") -> Any:
        """Return the answer to what the active controller decides; it may change in between.

        The answer has a top-level error. Raises DecisionError for that, about `what`.
        """
        response = self.retry(request, lambda answer: [answer.error_code])
        if response.error_code != ErrorCode.NONE:
            message = getattr(response, "error_message", None)
            raise DecisionError(response.error_code, message, what)
        return response

    def retry(self, request: Message, codes: Callable[[Any], Iterable[int]]) -> Any:
        """Return the answer to what the active controller decides, with errors for each part of it.

        `codes` takes those from the answer. It is asked again while another node decides.
        """
        deadline = time.monotonic() + self.timeout_s
        while True:
            response = self.ask(request)
            if MOVED_CODES.isdisjoint(codes(response)) or time.monotonic() > deadline:
                return response
            self.pause()

    def pause(self) -> None:
        """Wait before another try."""
        time.sleep(RETRY_S)

    def _active_controller(self) -> int:
        """Return the controller that leads; waits until there is one."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            described = self.describe(CONTROLLERS)
            if described.controller_id in described.brokers:
                return described.controller_id
            if time.monotonic() > deadline:
                raise NoControllerError("no controller is active")
            self.pause()

    def _ask_any(self, request: Message) -> Any:
        """Ask the bootstrap addresses in turn, then the brokers that were learnt of."""
        addresses = list(self._addresses)
        if self._cluster is not None:
            addresses += [(known.host, known.port) for known in self._cluster.brokers.values()]
        failures: list[NodeError] = []
        deadline = time.monotonic() + self.timeout_s
        for host, port in sorted(dict.fromkeys(addresses), key=self._silent.__contains__):
            # One that hangs may take all the time there is: another is asked even then.
            if len(failures) > 1 and time.monotonic() > deadline:
                break
            try:
                response = self._ask_at("", host, port, request)
            except NodeError as error:
                if error.cause.is_final:
                    raise
                self._silent.add((host, port))
                failures.append(error)
            else:
                self._silent.discard((host, port))
                return response
        raise NoNodeError(failures)

    def _ask_at(self, name: str, host: str, port: int, request: Message) -> Any:
        where = name or f"{host}:{port}"
        connection = self._connections.pop((host, port), None)
        is_whole = False
        try:
            if connection is None or connection.is_over:
                if connection is not None:
                    connection.close()
                connection = Connection(self._access, host, port)
            answer = connection.call(API_OF[type(request)], request)
            is_whole = True
            return answer
        except UnservedError as error:
            is_whole = True
            raise UnsupportedError(f"{name}: {error}" if name else str(error)) from error
        except EncodeError:
            is_whole = True
            raise
        except (WireError, AccessError) as error:
            raise NodeError(where, error) from error
        finally:
            if connection is not None:
                if is_whole:
                    self._keep((host, port), connection)
                else:
                    connection.close()

    def _keep(self, address: tuple[str, int], connection: Connection) -> None:
        """Use a connection again, unless another thread has kept one to that address."""
        if self._connections.setdefault(address, connection) is not connection:
            connection.close()

    # -- the cluster

    @property
    def kind(self) -> int:
        """The kind of nodes that is asked."""
        return CONTROLLERS if self.controllers else BROKERS

    def serves(self, host: str, port: int, api: int) -> bool | None:
        """Return whether the node at an address serves an API; None if none answers."""
        try:
            with contextlib.closing(Connection(self._access, host, port)) as connection:
                return connection.serves(api)
        except (WireError, AccessError):
            return None

    def unanswering(self) -> list[BrokerInfo]:
        """Return the nodes of the kind that is asked which do not answer now."""
        known = list(self.describe(self.kind).brokers.values())
        request = DescribeClusterRequest(endpoint_type=self.kind)
        answers = zip(known, self.ask_each([(node.id, request) for node in known]), strict=True)
        return [node for node, answer in answers if isinstance(answer, NodeError)]

    def describe(self, kind: int = BROKERS) -> ClusterInfo:
        """Return the nodes of a kind that there are now, fenced brokers included."""
        request = DescribeClusterRequest(endpoint_type=kind, include_fenced_brokers=kind == BROKERS)
        try:
            response = self._ask_any(request)
        except EncodeError:
            # Before Kafka 4.0 nobody could be asked for fenced brokers.
            response = self._ask_any(DescribeClusterRequest())
        if response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            raise EndpointError(
                "this is a broker's listener where a controller's is needed, or vice versa"
            )
        if response.error_code != ErrorCode.NONE:
            raise RefusedError(response.error_code, response.error_message)
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
