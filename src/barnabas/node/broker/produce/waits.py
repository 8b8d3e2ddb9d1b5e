"""Produce requests whose records are appended and which wait to be answered."""

from struct import Struct

from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.answers import Answers, Messages, respond
from barnabas.node.broker.produce.codec import ACKS_ALL, PartitionAnswer
from barnabas.node.broker.produce.fast_path import Shape
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.partition_log import AppendResult
from barnabas.node.net.connection import Connection, Reply
from barnabas.node.net.request_trace import OpenSpan, RequestTrace
from barnabas.node.replication.partition import Partition
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode

_VERSION_AND_CORRELATION = Struct(">hi")


def verdict(acks: int, partition: Partition, error: ErrorCode) -> ErrorCode:
    """Return the error code of the answer. Too few in-sync replicas at the commit is one."""
    if not error and acks == ACKS_ALL and partition.has_too_few_replicas:
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return error


def repeated_context(connection: Connection, frame: bytearray) -> RequestContext:
    """The context of a request whose header was not read."""
    version, correlation_id = _VERSION_AND_CORRELATION.unpack_from(frame, 2)
    principal = client_state(connection).principal
    return RequestContext(ApiKey.PRODUCE, version, correlation_id, None, connection, principal)


class RepeatedWait:
    """A request like the one before it: its answer is ready, if all goes well."""

    __slots__ = (
        "_connection",
        "_reply",
        "_response",
        "_services",
        "_shape",
        "_timer",
        "_version_and_correlation",
    )

    def __init__(
        self,
        services: BrokerServices,
        connection: Connection,
        shape: Shape,
        frame: bytearray,
        result: AppendResult,
    ) -> None:
        self._services = services
        self._connection = connection
        self._shape = shape
        self._response = shape.respond(frame, result.first_offset, result.log_append_time_ms)
        self._version_and_correlation = _VERSION_AND_CORRELATION.unpack_from(frame, 2)
        self._reply = Reply()

    def start(self, end_offset: int) -> Reply:
        """Begin to wait for the commit of everything before `end_offset`."""
        shape = self._shape
        self._timer = self._services.clock.call_later(max(shape.timeout_ms, 0), self._expire)
        if shape.acks == ACKS_ALL:
            shape.partition.when_committed(end_offset, self)
        else:
            shape.partition.when_stored(end_offset, self)
        return self._reply

    def __call__(self, error: ErrorCode) -> None:
        self._timer.cancel()
        shape = self._shape
        if not error and not shape.partition.has_too_few_replicas:
            self._reply.complete((self._response,))
            return
        error = verdict(shape.acks, shape.partition, error)
        if not error:
            self._reply.complete((self._response,))
            return
        version, correlation_id = self._version_and_correlation
        principal = client_state(self._connection).principal
        context = RequestContext(
            ApiKey.PRODUCE, version, correlation_id, None, self._connection, principal
        )
        answers: Answers = [(shape.topic, [PartitionAnswer(shape.index, error, -1, -1, -1)])]
        self._reply.complete(respond(self._services, context, answers, {}))

    def _expire(self) -> None:
        self._shape.partition.forget_commit_waiter(self)
        self(ErrorCode.REQUEST_TIMED_OUT)


class ProduceWait:
    """A request to be answered whose records are appended but not yet committed."""

    __slots__ = (
        "_answers",
        "_context",
        "_messages",
        "_pending",
        "_reply",
        "_services",
        "_timer",
        "acks",
    )

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        acks: int,
        reply: Reply | None = None,
    ) -> None:
        """`reply` is the one to complete, if there is one."""
        self._services = services
        self._context = context
        self.acks = acks
        self._pending: dict[PendingCommit, None] = {}
        self._reply = Reply() if reply is None else reply

    def add(self, partition: Partition, end_offset: int, answers: list[PartitionAnswer]) -> None:
        """Wait for `partition` to commit up to `end_offset`; its answer comes next in `answers`."""
        self._pending[PendingCommit(self, partition, end_offset, answers)] = None

    def start(self, answers: Answers, messages: Messages, timeout_ms: int) -> Reply:
        """Begin to wait; the reply is completed by the last commit or by the time-out."""
        self._answers = answers
        self._messages = messages
        self._timer = self._services.clock.call_later(max(timeout_ms, 0), self._expire)
        if self._context.trace is not None:
            self._note_waits(self._context.trace)
        for pending in list(self._pending):
            if self.acks == ACKS_ALL:
                pending.partition.when_committed(pending.end_offset, pending)
            else:
                pending.partition.when_stored(pending.end_offset, pending)
        return self._reply

    def _note_waits(self, trace: RequestTrace) -> None:
        name = "wait for replicas" if self.acks == ACKS_ALL else "wait for flush"
        for pending in self._pending:
            topic, index = pending.partition.topic_partition
            attributes: dict[str, str | int | bool] = {
                "messaging.destination.name": topic,
                "messaging.destination.partition.id": str(index),
                "barnabas.end_offset": pending.end_offset,
                "barnabas.in_sync_replicas": pending.partition.isr_size,
            }
            pending.span = trace.begin(name, **attributes)

    def settled(self, pending: "PendingCommit") -> None:
        """One partition has its answer."""
        del self._pending[pending]
        if not self._pending:
            self._timer.cancel()
            self._reply.complete(
                respond(self._services, self._context, self._answers, self._messages)
            )

    def _expire(self) -> None:
        for pending in list(self._pending):
            pending.partition.forget_commit_waiter(pending)
            pending(ErrorCode.REQUEST_TIMED_OUT)


class PendingCommit:
    """One partition of a `ProduceWait`; called when its fate is known."""

    __slots__ = ("_answers", "_position", "_wait", "end_offset", "partition", "span")

    def __init__(
        self,
        wait: ProduceWait,
        partition: Partition,
        end_offset: int,
        answers: list[PartitionAnswer],
    ) -> None:
        self._wait = wait
        self.partition = partition
        self.end_offset = end_offset
        self._answers = answers
        self._position = len(answers)
        self.span: OpenSpan | None = None
        """Its wait, where the request is traced."""

    def __call__(self, error: ErrorCode) -> None:
        error = verdict(self._wait.acks, self.partition, error)
        if self.span is not None:
            self.span.end(error.name if error else None)
        if error:
            index = self._answers[self._position].partition
            self._answers[self._position] = PartitionAnswer(index, error, -1, -1, -1)
        self._wait.settled(self)
