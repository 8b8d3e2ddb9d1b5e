"""Clients that do more than their quotas allow are held up (KIP-13, 55, 124, 219, 599).

Each answer leaves at once and says for how long the client should ask nothing; for so long this
node reads nothing more from its connection. What counts: the size of produce requests, of the
answers to fetches of consumers and share consumers, and the time that handling a request keeps the
node's loop, in percent of it. The longer of two waits holds.
A consumer above its quota gets an empty answer, since it can fetch the same records later.

None of this runs, and no request pays for it, while no client of the cluster has a quota.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Final, Protocol

from barnabas.base.clock import Clock
from barnabas.base.network import Part
from barnabas.node.broker.authorization import may
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.responses import respond
from barnabas.node.broker.route import Answer
from barnabas.node.net.connection import Connection, Reply
from barnabas.node.security.authorizer import Authorizer
from barnabas.node.security.quotas.client_quotas import PERCENT_PER_NS, ClientQuotas
from barnabas.node.security.quotas.sensors import Sensor
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.frames import CORRELATION_END

EXEMPT: Final = frozenset(
    {
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.ENVELOPE,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
"""Requests between nodes. Their time is counted separately from that of clients, unless the sender
lacks the right: then it is a client's."""
EXEMPT_AT_CONTROLLER: Final = EXEMPT | {ApiKey.FETCH}
"""There only nodes fetch: the metadata."""
MUTATIONS: Final = frozenset({ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS})
"""The controller says how long their senders should wait."""
THROTTLE_FIELD: Final = "throttle_time_ms"
WAIT_MAX_MS: Final = 2**31 - 1
_INT32 = Struct(">i")
_VERSION_AND_CORRELATION = Struct(">hi")


class Dispatch(Protocol):
    """Answers a request that is measured."""

    def __call__(
        self, connection: Connection, frame: bytearray, *, is_measured: bool
    ) -> Answer: ...


@dataclass(slots=True)
class _Request:
    """The state of a request until its answer is known."""

    context: RequestContext
    size_bytes: int
    busy_ns: int = 0


class Throttling:
    """Holds clients to their quotas on one node's listeners."""

    def __init__(
        self,
        quotas: ClientQuotas,
        clock: Clock,
        clock_ns: Callable[[], int],
        authorizer: Authorizer,
        exempt: Collection[ApiKey] = EXEMPT,
    ) -> None:
        """`clock_ns` is fine enough to measure single requests. `exempt` is what nodes ask."""
        self.quotas = quotas
        self._exempt = exempt
        self._clock = clock
        self.clock_ns = clock_ns
        self.authorizer = authorizer

    def answer(self, dispatch: Dispatch, connection: Connection, frame: bytearray) -> Answer:
        """As `dispatch`, with the throttle time in the answer and the connection held up."""
        state = client_state(connection)
        state.fetch_throttle_ms = 0
        request = _Request(_context(connection, frame), len(frame))
        started_ns = self.clock_ns()
        answer = dispatch(connection, frame, is_measured=True)
        request.busy_ns = self.clock_ns() - started_ns
        if isinstance(answer, Reply):
            reply = answer

            def charge(parts: Sequence[Part]) -> Sequence[Part]:
                request.busy_ns += reply.busy_ns
                return self._charge(request, parts)

            reply.change(charge)
            return reply
        return self._charge(request, answer)

    def fetched(self, context: RequestContext, size_bytes: int, *, is_follower: bool) -> bool:
        """Count what a fetch is to be answered with; False: the answer must be empty instead."""
        state = client_state(context.connection)
        if is_follower:
            state.fetch_throttle_ms = None
            return True
        now_ms = self._clock.monotonic_ms()
        quota = self.quotas.of(context.principal.name, context.client_id or "", now_ms)
        wait_ms = 0
        if quota.fetch is not None:
            wait_ms = quota.fetch.spend(size_bytes, now_ms)
        if wait_ms or (quota.request is not None and quota.request.excess_ms(now_ms)):
            if quota.fetch is not None:
                quota.fetch.give_back(size_bytes, now_ms)
            state.fetch_throttle_ms = wait_ms
            return False
        return True

    def bytes_in_window(self, context: RequestContext) -> int | None:
        """The bytes that a consumer may fetch at once; None: there is no limit."""
        now_ms = self._clock.monotonic_ms()
        quota = self.quotas.of(context.principal.name, context.client_id or "", now_ms)
        return None if quota.fetch is None else int(self.quotas.bytes_in_window(quota.fetch.limit))

    def _is_node(self, context: RequestContext) -> bool:
        cluster, action = ResourceType.CLUSTER, Operation.CLUSTER_ACTION
        return may(self, context, action, cluster, logs_denial=False, logs_grant=False)

    def _charge(self, request: _Request, parts: Sequence[Part]) -> Sequence[Part]:
        """Count what a request took; returns its answer with the time to wait in it."""
        context, quotas = request.context, self.quotas
        key, now_ms = context.api_key, self._clock.monotonic_ms()
        state = client_state(context.connection)
        quota = quotas.of(context.principal.name, context.client_id or "", now_ms)
        sensor: Sensor | None = None
        wait_ms = 0
        if key == ApiKey.PRODUCE:
            sensor = quota.produce
            if quota.produce is not None:
                wait_ms = quota.produce.spend(request.size_bytes, now_ms)
        elif key == ApiKey.FETCH:
            sensor, wait_ms = quota.fetch, state.fetch_throttle_ms or 0
        elif key == ApiKey.SHARE_FETCH:
            sensor = quota.fetch
            if quota.fetch is not None:
                wait_ms = quota.fetch.spend(sum(map(len, parts)), now_ms)
        elif key in MUTATIONS and parts:
            wait_ms = _told(context, parts)
        is_of_nodes = key in self._exempt or state.fetch_throttle_ms is None
        is_exempt = not parts or (is_of_nodes and self._is_node(context))
        state.fetch_throttle_ms = 0
        if is_exempt:
            quotas.exempt(request.busy_ns, now_ms)
        elif quota.request is not None:
            request_ms = quota.request.spend(request.busy_ns * PERCENT_PER_NS, now_ms)
            if request_ms > wait_ms:
                sensor, wait_ms = quota.request, request_ms
        if not wait_ms:
            return parts
        wait_ms = min(wait_ms, WAIT_MAX_MS)
        if sensor is not None:
            sensor.throttled(wait_ms, now_ms)
        context.connection.mute(self._clock, wait_ms)
        return with_throttle_time(context, parts, wait_ms) if parts else parts


class FetchServices(Protocol):
    """The broker's services, as far as they limit what a fetch brings."""

    fetch_max_bytes: int
    throttling: Throttling | None


def fetch_bytes_max(
    services: FetchServices, context: RequestContext, asked_bytes: int, is_follower: bool = False
) -> int:
    """The bytes that a fetch may return; with more, a consumer would have to wait every time."""
    limit_bytes = min(asked_bytes, services.fetch_max_bytes)
    if services.throttling is None or is_follower:
        return limit_bytes
    in_window = services.throttling.bytes_in_window(context)
    return limit_bytes if in_window is None else min(limit_bytes, in_window)


def _context(connection: Connection, frame: bytearray) -> RequestContext:
    """Return the context of a request, for its quota. A frame without a whole header has none: its
    connection is closed.
    """
    state = client_state(connection)
    header_end = min(len(frame), CORRELATION_END)
    key = int.from_bytes(frame[:2], "big", signed=True)
    if header_end < CORRELATION_END:
        return RequestContext(key, 0, 0, None, connection, state.principal)
    version, correlation_id = _VERSION_AND_CORRELATION.unpack_from(frame, 2)
    size = int.from_bytes(frame[8:10], "big", signed=True)
    client_id = frame[10 : 10 + size].decode(errors="replace") if size > 0 else None
    return RequestContext(key, version, correlation_id, client_id, connection, state.principal)


def with_throttle_time(
    context: RequestContext, parts: Sequence[Part], throttle_ms: int
) -> Sequence[Part]:
    """The frame of an answer, with another throttle time; as it was where it can tell none."""
    key, version = context.api_key, context.api_version
    api = APIS[ApiKey(key)]
    if not api.min_version <= version <= api.max_version:
        return parts  # what is said about versions that are not served
    position = _throttle_position(key, version)
    if position is not None:
        head, rest = _split(parts, position + 4)
        _INT32.pack_into(head, position, throttle_ms)
        return [head, *rest]
    if THROTTLE_FIELD not in _fields(key, version):
        return parts
    frame = b"".join(parts)  # type: ignore[arg-type]  # only answers to fetches have parts of files
    start = 9 if api.response_header_version(version) > 0 else 8
    response, _ = decode_at(api.response, version, frame, start)
    response.throttle_time_ms = throttle_ms
    return respond(context, response)


def _told(context: RequestContext, parts: Sequence[Part]) -> int:
    """The throttle time that an answer says already."""
    position = _throttle_position(context.api_key, context.api_version)
    if position is None:
        return 0
    head, _ = _split(parts, position + 4)
    told_ms: int = _INT32.unpack_from(head, position)[0]
    return told_ms


def _split(parts: Sequence[Part], size_bytes: int) -> tuple[bytearray, Sequence[Part]]:
    """The first parts joined, as many as it takes for `size_bytes`, and the rest."""
    head = bytearray()
    for number, part in enumerate(parts):
        if len(head) >= size_bytes:
            return head, parts[number:]
        head += part  # type: ignore[arg-type]  # what comes before records is in memory
    return head, ()


@cache
def _fields(key: int, version: int) -> list[str]:
    """The names of what a response has in a version, in their order."""
    fields = APIS[ApiKey(key)].response.SCHEMA.fields
    return [field.name for field in fields if field.versions.covers(version)]


@cache
def _throttle_position(key: int, version: int) -> int | None:
    """The position of the throttle time in an answer's frame, if it comes first in the body."""
    if _fields(key, version)[:1] != [THROTTLE_FIELD]:
        return None
    return 9 if APIS[ApiKey(key)].response_header_version(version) > 0 else 8
