"""Produce (key 0), versions 3-13: KIP-98, 226, 360, 467, 516, 890, 951.

Each batch is validated, gets its offsets in place and goes to the log as the slice of the frame
that it is. Partitions that the sender may not write are refused before (`authorized.py`). `acks=0`
is never
answered (a failure closes the connection, as in Kafka), `acks=1` when this replica has stored the
records (Kafka's leader waits for an fsync too where `flush.messages` asks for it), `acks=all` when
the high watermark has passed them. Compressed and long batches are checked first
(`decompressed.py`); if a topic validates schemas, as Confluent Server can, `checked.py` comes next.
"""

from collections.abc import Sequence

from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.authorized import refuse_unauthorized
from barnabas.node.broker.produce.checked import CheckedProduce
from barnabas.node.broker.produce.codec import (
    TOPIC_ID_FROM,
    ParsedProduce,
    parse_produce,
    without_repetitions,
)
from barnabas.node.broker.produce.decompressed import DecompressedProduce, may_take_long
from barnabas.node.broker.produce.outcome import (
    NONE_CHECKED,
    Outcome,
    SchemaVerdicts,
    find_partition,
)
from barnabas.node.broker.produce.repeated import learn
from barnabas.node.broker.produce.transactional import TransactionalProduce
from barnabas.node.broker.services import BrokerServices
from barnabas.node.net.connection import Reply
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode


def handle_produce(
    services: BrokerServices, context: RequestContext, frame: bytearray, position: int
) -> Sequence[Part] | Reply:
    """Append what the request holds; raises DecodeError for a malformed one."""
    request = without_repetitions(parse_produce(frame, position, context.api_version))
    if services.authorizer.is_enabled:
        request = refuse_unauthorized(services, context, request, frame)
    if may_take_long(request, frame):
        return DecompressedProduce(services, context, request, frame, _go_on).start()
    return _go_on(services, context, request, frame)


def _go_on(
    services: BrokerServices,
    context: RequestContext,
    request: ParsedProduce,
    frame: bytearray,
    reply: Reply | None = None,
) -> Sequence[Part] | Reply:
    if services.schemas.is_needed:
        return CheckedProduce(services, context, request, frame, _append, reply).start()
    return _append(services, context, request, frame, reply=reply)


def _append(
    services: BrokerServices,
    context: RequestContext,
    request: ParsedProduce,
    frame: bytearray,
    verdicts: SchemaVerdicts = NONE_CHECKED,
    reply: Reply | None = None,
) -> Sequence[Part] | Reply:
    """Append what may be appended; `reply` is for a request that has waited."""
    view = memoryview(frame)
    by_id = context.api_version >= TOPIC_ID_FROM
    if request.transactional_id is not None:
        return TransactionalProduce(services, context, request, view, verdicts, reply).start()
    now_ms = services.clock.now_ms()
    outcome = Outcome(services, context, request.acks, reply, verdicts, request.checks)
    partition: Partition | ErrorCode = ErrorCode.NONE
    for topic, partitions in request.topics:
        outcome.begin(topic)
        for entry in partitions:
            partition = find_partition(services, context, request, topic, entry, by_id)
            if isinstance(partition, Partition):
                outcome.append(partition, entry.partition, view[entry.start : entry.end], now_ms)
            else:
                outcome.refuse(entry.partition, partition)
    if isinstance(partition, Partition) and not outcome.has_errors:
        learn(services, context, frame, request, partition)
    return outcome.finish(request.timeout_ms)
