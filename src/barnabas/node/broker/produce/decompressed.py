"""Produce requests with compressed or long batches.

Before anything of the request is appended, the records of these batches are decompressed and
checked, usually at once. A batch that decompresses to much is checked in steps, while the request
waits; so do the connection's later requests, so that records are appended in the order in which
they arrived. Then the request continues like any other: the append checks whether this node still
leads the partition, and the producer's last sequence. `decompression.py` has the limits.
"""

import logging
from collections.abc import Callable, Sequence

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.codec import TOPIC_ID_FROM, ParsedProduce
from barnabas.node.broker.produce.decompression import request_limit
from barnabas.node.broker.produce.outcome import ATTRIBUTES_AT, find_partition, is_compressed
from barnabas.node.broker.schemas.named_schemas import NamedSchemas
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.config import LogConfig
from barnabas.node.log.stepped_check import (
    CheckedBatch,
    check_in_steps,
    header_to_check,
    is_long,
    may_be_long,
)
from barnabas.node.log.validator import Rejection
from barnabas.node.net.connection import Reply
from barnabas.node.replication.partition import Partition
from barnabas.protocol.records.batch import CODEC_MASK, BatchHeader
from barnabas.protocol.records.compression import DECOMPRESSED_SIZE_BYTES_MAX
from barnabas.protocol.records.decompressing import Budget

GoOn = Callable[
    [BrokerServices, RequestContext, ParsedProduce, bytearray, Reply | None],
    Sequence[Part] | Reply,
]
Place = tuple[str | Uuid, int]
"""Topic and partition, as the request names them."""

telemetry = logging.getLogger(__name__)


def may_take_long(request: ParsedProduce, frame: bytearray) -> bool:
    """Return whether a batch of the request has a codec, or is large enough to be a long one."""
    for _, partitions in request.topics:
        for _, start, end in partitions:
            if end - start > ATTRIBUTES_AT and (
                frame[start + ATTRIBUTES_AT] & CODEC_MASK or may_be_long(frame, start, end)
            ):
                return True
    return False


class DecompressedProduce:
    """One such request, from its arrival until its records are checked."""

    __slots__ = (
        "_checks",
        "_context",
        "_frame",
        "_go_on",
        "_named",
        "_request",
        "_services",
        "_waiting",
    )

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        request: ParsedProduce,
        frame: bytearray,
        go_on: GoOn,
    ) -> None:
        """`go_on` is how the request goes on."""
        self._services = services
        self._context = context
        self._request = request
        self._frame = frame
        self._go_on = go_on
        self._checks: dict[Place, CheckedBatch | Rejection] = {}
        self._named: dict[Place, NamedSchemas] = {}
        self._waiting: list[tuple[Place, memoryview, BatchHeader, LogConfig]] = []

    def start(self) -> Sequence[Part] | Reply:
        """Go on at once if all batches are small and good."""
        self._check_at_once()
        if not self._waiting:
            return self._with_checks(None)
        self._context.connection.stand()
        reply = Reply()
        self._services.start(self._answer(reply))
        return reply

    def _check_at_once(self) -> None:
        services, request = self._services, self._request
        now_ms = services.clock.now_ms()
        by_id = self._context.api_version >= TOPIC_ID_FROM
        view = memoryview(self._frame)
        for topic, partitions in request.topics:
            for entry in partitions:
                partition = find_partition(services, self._context, request, topic, entry, by_id)
                if not isinstance(partition, Partition):
                    continue
                batch, config = view[entry.start : entry.end], partition.log.config
                if not is_compressed(batch) and not is_long(batch, config, now_ms):
                    continue
                header = header_to_check(batch, config, now_ms)
                if header is None:
                    continue
                place = topic, entry.partition
                if services.decompression.check_at_once(batch, header, config, now_ms):
                    self._checks[place] = CheckedBatch(config)
                else:
                    self._waiting.append((place, batch, header, config))

    async def _answer(self, reply: Reply) -> None:
        connection = self._context.connection
        try:
            await self._check_in_steps()
            if connection.is_closed:
                return  # its client tries again, perhaps has already: this must not come after that
            parts = self._with_checks(reply)
            if not isinstance(parts, Reply):
                reply.complete(parts)
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
            telemetry.exception("checking the records of a produce request failed")
            reply.fail()
        finally:
            connection.go_on()

    async def _check_in_steps(self) -> None:
        services, connection = self._services, self._context.connection
        left_bytes = request_limit(len(self._frame))
        for place, batch, header, config in self._waiting:
            budget = Budget(min(left_bytes, DECOMPRESSED_SIZE_BYTES_MAX))
            before = budget.left_bytes
            validation = config.schema_validation
            named = None if validation is None else NamedSchemas(validation)
            steps = check_in_steps(batch, header, config, services.clock.now_ms(), budget, named)
            result = await services.decompression.check(
                steps, services.clock, lambda: not connection.is_closed
            )
            if result is None:
                return
            left_bytes -= before - max(budget.left_bytes, 0)
            self._checks[place] = result
            if named is not None:
                self._named[place] = named

    def _with_checks(self, reply: Reply | None) -> Sequence[Part] | Reply:
        request = self._request._replace(checks=self._checks, named=self._named)
        return self._go_on(self._services, self._context, request, self._frame, reply)
