"""Fetch (key 1), versions 4-18: KIP-74, 98, 227, 320, 392, 516, 903, 951.

A fetch that finds less than `min_bytes` waits on its partitions and looks again when one of them
advances, until `max_wait_ms` is over. Records leave as the log gives them: slices of what was
appended lately, or ranges of a file.

Left out here: fetching by followers and from followers, which need a second replica.
"""

import logging
from collections.abc import Iterable, Sequence

from barnabas.base.clock import Timer
from barnabas.base.network import Part
from barnabas.broker.context import RequestContext
from barnabas.broker.fetch_codec import FLEXIBLE_FROM, TOPIC_ID_FROM, FetchAnswer, encode_fetch
from barnabas.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    FetchTarget,
    PartitionKey,
)
from barnabas.broker.responses import frame_response
from barnabas.broker.services import BrokerServices
from barnabas.log.errors import LogDirFailure
from barnabas.net.connection import Reply
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.replication.partition import Partition

READ_COMMITTED = 1

telemetry = logging.getLogger(__name__)


def handle(
    services: BrokerServices, context: RequestContext, frame: bytearray, position: int
) -> Sequence[Part] | Reply:
    """Read what is there, or wait for it; raises DecodeError for a malformed request."""
    version = context.api_version
    request, _ = decode_at(FetchRequest, version, frame, position)
    by_id = version >= TOPIC_ID_FROM
    session = _session(services, request, by_id)
    if isinstance(session, ErrorCode):
        parts = encode_fetch(version, session, 0, [])
        return frame_response(context.correlation_id, version >= FLEXIBLE_FROM, parts)
    is_full = request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH)
    targets: Iterable[FetchTarget] = (
        session.targets.values() if session is not None else _targets(request, by_id)
    )
    fetch = Fetch(services, context, request, session, list(targets), is_full)
    answers = fetch.read()
    if fetch.is_satisfied(answers):
        return fetch.respond(answers)
    return fetch.wait()


def _session(
    services: BrokerServices, request: FetchRequest, by_id: bool
) -> FetchSession | ErrorCode | None:
    """Open, resume or close the session that the request names; None: served without one."""
    sessions = services.fetch_sessions
    now_ms = services.clock.monotonic_ms()
    if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        if request.session_id:
            sessions.remove(request.session_id)
        if request.session_epoch == FINAL_EPOCH:
            return None
        return sessions.create(_targets(request, by_id), by_id, now_ms)
    session = sessions.resume(request.session_id, request.session_epoch, by_id, now_ms)
    if isinstance(session, FetchSession):
        forgotten: list[PartitionKey] = [
            (entry.topic_id if by_id else entry.topic, index)
            for entry in request.forgotten_topics_data
            for index in entry.partitions
        ]
        session.update(_targets(request, by_id), forgotten)
    return session


def _targets(request: FetchRequest, by_id: bool) -> list[FetchTarget]:
    return [
        FetchTarget(
            topic.topic_id if by_id else topic.topic,
            entry.partition,
            entry.fetch_offset,
            entry.partition_max_bytes,
            entry.current_leader_epoch,
            entry.last_fetched_epoch,
        )
        for topic in request.topics
        for entry in topic.partitions
    ]


class Fetch:
    """One fetch request while it is served, perhaps more than once."""

    __slots__ = (
        "_context",
        "_is_full",
        "_partitions",
        "_reply",
        "_request",
        "_services",
        "_session",
        "_targets",
        "_timer",
    )

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        request: FetchRequest,
        session: FetchSession | None,
        targets: list[FetchTarget],
        is_full: bool,
    ) -> None:
        self._services = services
        self._context = context
        self._request = request
        self._session = session
        self._targets = targets
        self._is_full = is_full
        self._partitions: list[Partition] = []
        self._reply: Reply | None = None
        self._timer: Timer | None = None

    def read(self) -> list[FetchAnswer]:
        """Read every partition, in order, within the request's limits."""
        left_bytes = min(self._request.max_bytes, self._services.fetch_max_bytes)
        committed_only = self._request.isolation_level == READ_COMMITTED
        answers: list[FetchAnswer] = []
        any_data = False
        for target in self._targets:
            answer = self._read_one(target, left_bytes, committed_only, not any_data)
            answers.append(answer)
            if answer.size_bytes:
                any_data = True
                left_bytes = max(0, left_bytes - answer.size_bytes)
        return answers

    def _read_one(
        self, target: FetchTarget, left_bytes: int, committed_only: bool, min_one_batch: bool
    ) -> FetchAnswer:
        topic, index = target.topic, target.index
        replicas = self._services.replicas
        found = (
            replicas.find_by_id(topic, index)
            if isinstance(topic, bytes)
            else replicas.find(topic, index)
        )
        if not isinstance(found, Partition):
            return _failure(target, found)
        error = found.check_epoch(target.current_leader_epoch)
        if not found.is_leader:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if error:
            return _failure(target, error)
        if self._reply is None:
            self._partitions.append(found)
        log = found.log
        high_watermark = found.high_watermark
        stable = found.last_stable_offset
        offset = target.fetch_offset
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return _failure(target, ErrorCode.OFFSET_OUT_OF_RANGE)
        max_offset = stable if committed_only else high_watermark
        size_max_bytes = min(left_bytes, target.size_max_bytes)
        parts: list[Part] = []
        size_bytes = 0
        aborted: list[tuple[int, int]] | None = [] if committed_only else None
        if offset < max_offset and (size_max_bytes > 0 or min_one_batch):
            try:
                result = log.read(
                    offset, size_max_bytes, max_offset=max_offset, min_one_batch=min_one_batch
                )
                if committed_only and result.size_bytes:
                    aborted = [
                        (entry.producer_id, entry.first_offset)
                        for entry in log.aborted_transactions(offset, result.next_offset)
                    ]
            except LogDirFailure:
                return _failure(target, ErrorCode.KAFKA_STORAGE_ERROR)
            if result.error:
                return _failure(target, result.error)
            parts, size_bytes = result.parts, result.size_bytes
        return FetchAnswer(
            topic,
            index,
            ErrorCode.NONE,
            high_watermark,
            stable,
            log.log_start_offset,
            aborted,
            parts,
            size_bytes,
        )

    def is_satisfied(self, answers: list[FetchAnswer]) -> bool:
        """Whether to answer now: enough bytes, an error, nothing to wait for, or no time."""
        if self._request.max_wait_ms <= 0 or not answers:
            return True
        size_bytes = 0
        for answer in answers:
            if answer.error:
                return True
            size_bytes += answer.size_bytes
        request = self._request
        return size_bytes >= min(
            request.min_bytes, request.max_bytes, self._services.fetch_max_bytes
        )

    def wait(self) -> Reply:
        """Look again whenever a partition advances, and at the latest when the time is up."""
        self._reply = Reply()
        self._reply.on_abandon = self._leave
        for partition in self._partitions:
            partition.read_waiters.add(self)
        self._timer = self._services.clock.call_later(self._request.max_wait_ms, self._finish)
        return self._reply

    def partition_advanced(self) -> None:
        """Part of ReadWaiter."""
        self._look_again(is_last=False)

    def _finish(self) -> None:
        self._look_again(is_last=True)

    def _look_again(self, *, is_last: bool) -> None:
        reply = self._reply
        if reply is None:
            return
        try:
            answers = self.read()
            if not (is_last or self.is_satisfied(answers)):
                return
            parts = self.respond(answers)
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and others are served
            telemetry.exception("closing %s: a fetch failed", self._context.client_host)
            self._leave()
            reply.fail()
            return
        self._leave()
        reply.complete(parts)

    def _leave(self) -> None:
        self._reply = None
        if self._timer is not None:
            self._timer.cancel()
        for partition in self._partitions:
            partition.read_waiters.discard(self)

    def respond(self, answers: list[FetchAnswer]) -> list[Part]:
        """The response's parts; in a session only what changed is told."""
        session_id = 0
        if self._session is not None:
            session_id = self._session.session_id
            answers = self._changes(self._session, answers)
        version = self._context.api_version
        parts = encode_fetch(version, ErrorCode.NONE, session_id, answers)
        return frame_response(self._context.correlation_id, version >= FLEXIBLE_FROM, parts)

    def _changes(self, session: FetchSession, answers: list[FetchAnswer]) -> list[FetchAnswer]:
        told: list[FetchAnswer] = []
        for target, answer in zip(self._targets, answers, strict=True):
            if (
                self._is_full
                or answer.size_bytes
                or answer.error
                or answer.high_watermark != target.high_watermark_sent
                or answer.log_start_offset != target.log_start_offset_sent
            ):
                # After an error everything is to be told anew.
                target.high_watermark_sent = -1 if answer.error else answer.high_watermark
                target.log_start_offset_sent = -1 if answer.error else answer.log_start_offset
                told.append(answer)
        session.served((answer.topic, answer.partition) for answer in answers if answer.size_bytes)
        return told


def _failure(target: FetchTarget, error: ErrorCode) -> FetchAnswer:
    return FetchAnswer(target.topic, target.index, error, -1, -1, -1, None, [], 0)
