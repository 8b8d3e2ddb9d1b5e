"""Produce requests on a node where topics validate schemas.

The request's batches are checked before anything of it is appended. Mostly all their schemas are
known, and it goes on at once. Otherwise the registry is asked; the request waits, and the
connection's later produce requests wait behind it, so that records are appended in the
order in which they came. What the registry does not answer in time is refused with an error that
clients try again after: it is never let through.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.codec import TOPIC_ID_FROM, ParsedProduce
from barnabas.node.broker.produce.outcome import (
    UNCHECKED,
    SchemaVerdicts,
    find_partition,
    is_compressed,
)
from barnabas.node.broker.schemas.checks import UNKNOWN_MAX, check_batch, judge_named
from barnabas.node.broker.schemas.registry import Claim
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.stepped_check import CheckedBatch, is_long
from barnabas.node.log.validator import Rejection
from barnabas.node.net.connection import Reply
from barnabas.node.replication.partition import Partition

WAIT_SHARE: Final = 0.75
"""Of the request's time-out: some clients give up at its end, and must have the answer by then."""

Place = tuple[str | Uuid, int]
"""Topic and partition, as the request names them."""
Append = Callable[
    [BrokerServices, RequestContext, ParsedProduce, bytearray, SchemaVerdicts, Reply | None],
    Sequence[Part] | Reply,
]

telemetry = logging.getLogger(__name__)


class CheckedProduce:
    """One such request, from its arrival until it is appended or refused."""

    __slots__ = ("_append", "_context", "_frame", "_reply", "_request", "_services")

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        request: ParsedProduce,
        frame: bytearray,
        append: Append,
        reply: Reply | None = None,
    ) -> None:
        """`append` is how the request goes on; `reply` is for a request that has waited."""
        self._services = services
        self._context = context
        self._request = request
        self._frame = frame
        self._append = append
        self._reply = reply

    def start(self) -> Sequence[Part] | Reply:
        """Go on at once if nobody need be asked, and no request before still waits."""
        state = client_state(self._context.connection)
        before = state.checked_produce
        if before is None or before.done():
            state.checked_produce = before = None
            verdicts, unknown = self._check()
            if not unknown:
                return self._go_on(verdicts)
        self._reply = self._reply or Reply()
        state.repeated = None  # what repeats an earlier request must wait, too
        state.checked_produce = self._services.start(self._answer(self._reply, before))
        return self._reply

    async def _answer(self, reply: Reply, before: "asyncio.Future[None] | None") -> None:
        timeout_ms = max(self._request.timeout_ms, 0) * WAIT_SHARE
        deadline_ms = self._services.clock.monotonic_ms() + int(timeout_ms)
        try:
            if before is not None:
                await asyncio.wait([before])
            verdicts = await self._learn(deadline_ms)
            if self._context.connection.is_closed:
                return  # its client tries again, perhaps has already: this must not come after that
            parts = self._go_on(verdicts)
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
            telemetry.exception("checking the schemas of a produce request failed")
            reply.fail()
            return
        if not isinstance(parts, Reply):
            reply.complete(parts)

    async def _learn(self, deadline_ms: int) -> SchemaVerdicts:
        """The verdicts, by the deadline: what is not known then is refused."""
        services = self._services
        while True:
            verdicts, unknown = self._check()
            if not unknown or self._context.connection.is_closed:
                return verdicts
            if services.schemas.is_closed or services.clock.monotonic_ms() >= deadline_ms:
                return {**verdicts, **dict.fromkeys(unknown, UNCHECKED)}
            claims = {claim: None for asked in unknown.values() for claim in asked}
            await services.schemas.learn([*claims][:UNKNOWN_MAX], deadline_ms)

    def _check(self) -> tuple[dict[Place, Rejection | None], dict[Place, list[Claim]]]:
        """Verdicts on what is known, and what must be asked for the others."""
        services, context, request = self._services, self._context, self._request
        by_id = context.api_version >= TOPIC_ID_FROM
        view = memoryview(self._frame)
        now_ms = services.clock.now_ms()
        verdicts: dict[Place, Rejection | None] = {}
        unknown: dict[Place, list[Claim]] = {}
        for topic, partitions in request.topics:
            for entry in partitions:
                partition = find_partition(services, context, request, topic, entry, by_id)
                if not isinstance(partition, Partition):
                    continue
                validation = partition.log.config.schema_validation
                if validation is None:
                    continue
                name = partition.topic_partition.topic
                place = topic, entry.partition
                batch = view[entry.start : entry.end]
                check, named = request.checks.get(place), request.named.get(place)
                result: Rejection | list[Claim] | None = None
                if named is not None and isinstance(check, CheckedBatch):
                    result = judge_named(services.schemas, name, validation, named)
                elif isinstance(check, CheckedBatch) or (
                    check is None
                    and not is_compressed(batch)
                    and not is_long(batch, partition.log.config, now_ms)
                ):
                    result = check_batch(services.schemas, name, validation, batch)
                # Otherwise it is refused at the append, for what the check found, too.
                if isinstance(result, list):
                    unknown[place] = result
                else:
                    verdicts[place] = result
        return verdicts, unknown

    def _go_on(self, verdicts: SchemaVerdicts) -> Sequence[Part] | Reply:
        return self._append(
            self._services, self._context, self._request, self._frame, verdicts, self._reply
        )
