"""Outcome of a produce request: results per partition, and the answer."""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.answers import Answers, Messages, respond
from barnabas.node.broker.produce.codec import (
    ACKS_ALL,
    NO_CHECKS,
    Checks,
    ParsedProduce,
    PartitionAnswer,
    ProducePartition,
)
from barnabas.node.broker.produce.waits import ProduceWait
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import AppendResult
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.node.log.stepped_check import LONG_SIZE_BYTES_MIN, header_to_check, is_long
from barnabas.node.log.validator import Rejection
from barnabas.node.net.connection import Reply
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    CODEC_MASK,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_MASK,
    Codec,
)
from barnabas.protocol.well_known import INTERNAL_TOPICS

ADMIN_CLIENT_ID = "__admin_client"
ATTRIBUTES_AT = 22
"""The position of the byte of a batch's attributes that contains all defined ones."""
ZSTD_FROM_VERSION: Final = 7
"""Consumers of the clients that produce in older versions cannot read it (KIP-110)."""
UNDER_WAY: Final = AppendTerms()
"""Of a batch whose transaction has begun in its partition."""

SchemaVerdicts = Mapping[tuple[str | Uuid, int], Rejection | None]
"""Of partitions whose topic validates schemas: why nothing may be appended, or None."""
NONE_CHECKED: Final[SchemaVerdicts] = MappingProxyType({})
UNCHECKED: Final = Rejection(
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "the schemas of the records cannot be checked now: the schema registry does not answer",
)
"""Clients try again after it. What Confluent Server answers is not documented."""

telemetry = logging.getLogger(__name__)


class Outcome:
    """The outcome of a request, partition by partition."""

    __slots__ = (
        "_acks",
        "_answers",
        "_checks",
        "_context",
        "_messages",
        "_reply",
        "_services",
        "_topic",
        "_topic_answers",
        "_verdicts",
        "_wait",
        "has_errors",
    )

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        acks: int,
        reply: Reply | None = None,
        verdicts: SchemaVerdicts = NONE_CHECKED,
        checks: Checks = NO_CHECKS,
    ) -> None:
        """`reply` is to be completed in the end, where the client waits for it already."""
        self._verdicts = verdicts
        self._checks = checks
        self._services = services
        self._context = context
        self._acks = acks
        self._reply = reply
        self._answers: Answers = []
        self._messages: Messages = {}
        self._wait: ProduceWait | None = None
        self._topic: str | Uuid = ""
        self._topic_answers: list[PartitionAnswer] = []
        self.has_errors = False

    def begin(self, topic: str | Uuid) -> None:
        """The partitions that follow are of `topic`."""
        self._topic = topic
        self._topic_answers = []
        self._answers.append((topic, self._topic_answers))

    def append(
        self,
        partition: Partition,
        index: int,
        records: memoryview,
        now_ms: int,
        terms: AppendTerms | None = None,
    ) -> None:
        """Append one partition's records and note what became of them.

        Transactional ones need `terms`: nobody would ever end a transaction of no known id.
        """
        if partition.log.config.schema_validation is not None:
            refused = self._verdicts.get((self._topic, index), UNCHECKED)
            if refused is not None:
                result = AppendResult(
                    refused.error, message=refused.message, record_errors=refused.record_errors
                )
                self.take(partition, index, result)
                return
        if terms is None and is_transactional(records):
            self.refuse(index, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return
        if self._context.api_version < ZSTD_FROM_VERSION and _is_zstd(records):
            self.refuse(index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            return
        checked = None
        if self._checks or is_compressed(records) or len(records) > LONG_SIZE_BYTES_MIN:
            rejection = self._checks.get((self._topic, index))
            if isinstance(rejection, Rejection):
                result = AppendResult(
                    rejection.error,
                    message=rejection.message,
                    record_errors=rejection.record_errors,
                )
                self.take(partition, index, result)
                return
            if (
                rejection is None
                and (is_compressed(records) or is_long(records, partition.log.config, now_ms))
                and header_to_check(records, partition.log.config, now_ms) is not None
            ):
                # It became the leader after the records were to be checked.
                self.refuse(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                return
            checked = rejection
        trace = self._context.trace
        span = None if trace is None else trace.begin("log append", **_where(partition))
        try:
            result = partition.append(records, now_ms, terms=terms, checked=checked)
        except LogDirFailure as failure:
            if span is not None:
                span.end(ErrorCode.KAFKA_STORAGE_ERROR.name)
            telemetry.error("cannot append to %s: %s", partition.topic_partition, failure)
            self.refuse(index, ErrorCode.KAFKA_STORAGE_ERROR)
            return
        if span is not None:
            error = ErrorCode.of(result.error).name if result.error else None
            offset = {"messaging.kafka.offset": result.first_offset}
            span.end(error, **offset, **{"messaging.message.body.size": len(records)})
        self.take(partition, index, result)

    def refuse(self, index: int, error: ErrorCode, message: str | None = None) -> None:
        """Note that nothing was appended, and perhaps why."""
        self.has_errors = True
        self._context.failed(error)
        if message is not None:
            self._messages[self._topic, index] = AppendResult(error, message=message)
        self._topic_answers.append(PartitionAnswer(index, error, -1, -1, -1))

    def take(self, partition: Partition, index: int, result: AppendResult) -> None:
        """Note what an append returned."""
        if result.error:
            if result.message or result.record_errors:
                self._messages[self._topic, index] = result
            self.refuse(index, result.error)
            return
        end_offset = result.last_offset + 1
        if (
            self._acks
            and partition.high_watermark < end_offset
            and (self._acks == ACKS_ALL or partition.stored_offset < end_offset)
        ):
            if self._wait is None:
                self._wait = ProduceWait(self._services, self._context, self._acks, self._reply)
            self._wait.add(partition, end_offset, self._topic_answers)
        self._topic_answers.append(
            PartitionAnswer(
                index,
                result.error,
                result.first_offset,
                result.log_append_time_ms,
                partition.log.log_start_offset,
            )
        )

    def finish(self, timeout_ms: int) -> Sequence[Part] | Reply:
        """The answer, or the wait for it."""
        if self._acks == 0:
            if self.has_errors:
                _close_unanswered(self._context, self._answers)
            return ()
        if self._wait is not None:
            return self._wait.start(self._answers, self._messages, timeout_ms)
        return respond(self._services, self._context, self._answers, self._messages)


def _where(partition: Partition) -> dict[str, str | int | bool]:
    """A partition as spans name it."""
    topic, index = partition.topic_partition
    return {"messaging.destination.name": topic, "messaging.destination.partition.id": str(index)}


def find_partition(
    services: BrokerServices,
    context: RequestContext,
    request: ParsedProduce,
    topic: str | Uuid,
    entry: ProducePartition,
    by_id: bool,
) -> Partition | ErrorCode:
    """The partition that shall take the records, or why it must not."""
    if request.refused and topic in request.refused:
        return request.refused[topic]
    if not -1 <= request.acks <= 1:
        return ErrorCode.INVALID_REQUIRED_ACKS
    if by_id:
        assert isinstance(topic, bytes)
        partition = services.replicas.find_by_id(topic, entry.partition)
    else:
        assert isinstance(topic, str)
        partition = services.replicas.find(topic, entry.partition)
    if not isinstance(partition, Partition):
        return partition
    if partition.topic_partition.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if entry.start < 0 or entry.start == entry.end:
        return ErrorCode.INVALID_RECORD
    if request.acks == ACKS_ALL and partition.is_under_min_isr:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return partition


def is_transactional(records: memoryview) -> bool:
    """Return whether a batch is part of a transaction."""
    return len(records) > ATTRIBUTES_AT and records[ATTRIBUTES_AT] & TRANSACTIONAL_MASK != 0


def is_compressed(records: memoryview) -> bool:
    """Return whether a batch has a codec."""
    return len(records) > ATTRIBUTES_AT and records[ATTRIBUTES_AT] & CODEC_MASK != 0


def _is_zstd(records: memoryview) -> bool:
    return (
        len(records) > ATTRIBUTES_AT
        and records[MAGIC_POSITION] == MAGIC
        and records[ATTRIBUTES_AT] & CODEC_MASK == Codec.ZSTD
    )


def _close_unanswered(context: RequestContext, answers: Answers) -> None:
    """Without answers, closing the connection is how the producer learns of a failure."""
    for topic, topic_answers in answers:
        for answer in topic_answers:
            if answer.error:
                host, error = context.client_host, answer.error.name
                telemetry.info("closing %s: acks=0 and %s for %r", host, error, topic)
                context.connection.close()
                return
