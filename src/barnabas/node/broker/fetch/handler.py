"""Fetch (key 1), versions 4-18: KIP-74, 98, 227, 320, 392, 516, 595, 903, 951.

A fetch that finds less than `min_bytes` waits on its partitions and looks again when one of them
advances, until `max_wait_ms` is over. Records leave as the log gives them: slices of what was
appended lately, or ranges of a file. What is remote comes later, and the fetch waits for it: it
has no records of its other partitions before, or the remote ones might never get their turn.

Consumers need READ on each topic, followers CLUSTER_ACTION on the cluster. Who waits already when
a right is taken away is served once more, as in Kafka; the next request is checked again.

Left out here: the high watermark that a follower may send since v18 (KIP-1166), which serves the
quorum. Other followers learn of a new one within NEWS_DELAY_MS, with or without records.
"""

import logging
from collections.abc import Sequence

from barnabas.base.clock import Timer
from barnabas.base.network import Part
from barnabas.node.broker.authorization import current_grants
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.current_leader import addresses
from barnabas.node.broker.fetch.codec import (
    FLEXIBLE_FROM,
    NO_REPLICA,
    TOPIC_ID_FROM,
    FetchAnswer,
    encode_fetch,
)
from barnabas.node.broker.fetch.reading import WAIT_MIN_MS, Reader, replica_of
from barnabas.node.broker.fetch.sessions import FetchSession, FetchTarget, PartitionKey
from barnabas.node.broker.grants import Grants
from barnabas.node.broker.responses import frame_response, respond_instead
from barnabas.node.broker.services import BrokerServices
from barnabas.node.broker.throttling import fetch_bytes_max
from barnabas.node.net.connection import Reply
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.records.batch import NO_OFFSET
from barnabas.protocol.well_known import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION

NEWS_DELAY_MS = 10
"""A follower hears of a new high watermark with the next records, or after this long without."""

telemetry = logging.getLogger(__name__)


def handle_fetch(
    services: BrokerServices, context: RequestContext, frame: bytearray, position: int
) -> Sequence[Part] | Reply:
    """Read what is there, or wait for it; raises DecodeError for a malformed request."""
    version = context.api_version
    request, _ = decode_at(FetchRequest, version, frame, position)
    grants = current_grants(services, context)
    session = _session(services, request, version, grants)
    if isinstance(session, ErrorCode):
        context.failed(session)
        parts = encode_fetch(version, session, 0, [])
        return frame_response(context.correlation_id, version >= FLEXIBLE_FROM, parts)
    session.check_again(grants)
    context.connection.is_follower = session.is_follower
    is_full = request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH)
    fetch = Fetch(services, context, request, session, is_full)
    fetch.look(is_first=True)
    if fetch.is_satisfied():
        return fetch.respond()
    return fetch.wait()


def _session(
    services: BrokerServices, request: FetchRequest, version: int, grants: Grants | None
) -> FetchSession | ErrorCode:
    """Open or resume the session that the request names, or make one for it alone.

    Nobody opens one as a follower, in the place of consumers, who may not be one.
    """
    sessions = services.fetch_sessions
    by_id = version >= TOPIC_ID_FROM
    now_ms = services.clock.monotonic_ms()
    session: FetchSession | ErrorCode | None = None
    if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        is_follower = replica_of(request, version)[0] >= 0
        if request.session_id:
            sessions.remove(request.session_id)
        if request.session_epoch == INITIAL_EPOCH and (
            not is_follower or grants is None or grants.may_act_for_cluster()
        ):
            session = sessions.create(by_id, now_ms, is_follower=is_follower)
        if session is None:
            session = FetchSession(NO_SESSION, by_id, now_ms, is_follower=is_follower)
    else:
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
            entry.log_start_offset,
        )
        for topic in request.topics
        for entry in topic.partitions
    ]


def _failure(request: FetchRequest, version: int) -> FetchResponse:
    """UNKNOWN_SERVER_ERROR for all of a request; before v13 for each partition too, as in Kafka."""
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    named = request.topics if version < TOPIC_ID_FROM else ()
    return FetchResponse(
        error_code=failed,
        session_id=request.session_id,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(
                        partition_index=entry.partition,
                        error_code=failed,
                        high_watermark=NO_OFFSET,
                        records=b"",
                    )
                    for entry in topic.partitions
                ],
            )
            for topic in named
        ],
    )


class Fetch:
    """One fetch request while it is served, perhaps after several looks."""

    __slots__ = (
        "_answers",
        "_context",
        "_is_full",
        "_is_hurried",
        "_is_overdue",
        "_max_bytes",
        "_reader",
        "_reply",
        "_request",
        "_services",
        "_session",
        "_timer",
    )

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        request: FetchRequest,
        session: FetchSession,
        is_full: bool,
    ) -> None:
        self._services = services
        self._context = context
        self._request = request
        self._session = session
        self._is_full = is_full
        self._reader = Reader.of(services, context, request, session)
        self._answers: dict[FetchTarget, FetchAnswer] = {}
        self._max_bytes = fetch_bytes_max(services, context, request.max_bytes, session.is_follower)
        self._reply: Reply | None = None
        self._timer: Timer | None = None
        self._is_hurried = False
        self._is_overdue = False
        """True if it waits for remote records alone: its own time is over."""

    def look(self, *, is_first: bool) -> None:
        """Read every partition that is ready, in order, within the request's limits."""
        session, answers = self._session, self._answers
        left_bytes = self._max_bytes
        any_data = False
        for target in list(session.ready):
            answer = self._reader.read(
                target, left_bytes, min_one_batch=not any_data, is_first_look=is_first
            )
            if answer.size_bytes:
                any_data = True
                left_bytes = max(0, left_bytes - answer.size_bytes)
            elif not answer.error and not self._has_more(target, answer):
                del session.ready[target]
            answers[target] = answer
        if is_first and session.is_follower and self._reader.may_follow:
            session.source.last_fetch_ms = self._services.clock.monotonic_ms()

    def _has_more(self, target: FetchTarget, answer: FetchAnswer) -> bool:
        """Return whether to look again at a partition that gave nothing and does not advance."""
        if answer.diverging is not None or answer.preferred_replica != NO_REPLICA:
            return True
        partition = target.partition
        assert partition is not None
        if self._reader.to_log_end:
            return target.fetch_offset < partition.log.log_end_offset
        if self._reader.committed_only:
            return target.fetch_offset < answer.last_stable_offset
        return target.fetch_offset < answer.high_watermark

    def is_satisfied(self) -> bool:
        """Return whether to answer now: enough bytes, an error, nothing to wait for, or no time."""
        request = self._request
        awaits_remote = self._reader.late is not None and self._awaits_remote()
        if (request.max_wait_ms <= 0 and not awaits_remote) or not self._session.targets:
            return True
        size_bytes = 0
        for answer in self._answers.values():
            if (
                answer.error
                or answer.diverging is not None
                or answer.preferred_replica != NO_REPLICA
            ):
                return True
            size_bytes += answer.size_bytes
        return not awaits_remote and size_bytes >= min(request.min_bytes, self._max_bytes)

    def _awaits_remote(self) -> bool:
        late = self._reader.late
        if late is None:
            return False
        late.waiter = self
        return late.are_pending

    def wait(self) -> Reply:
        """Look again whenever a partition advances, and at the latest when the time is up."""
        self._reply = Reply()
        self._reply.on_abandon = self._leave
        self._session.waiting = self
        self._timer = self._services.clock.call_later(self._request.max_wait_ms, self._finish)
        if self._session.is_follower:
            replicas = self._services.replicas
            replicas.waking.park(self._reader.replica_id, self._context.client_id, self)
            if replicas.is_expected(self._reader.replica_id):
                self.hurry()
            else:
                self._maybe_hurry()
        return self._reply

    def look_again(self) -> None:
        """Part of WaitingFetch."""
        self._look_again(is_last=self._is_overdue and not self._awaits_remote())

    def _finish(self) -> None:
        left_ms = WAIT_MIN_MS - self._request.max_wait_ms
        if left_ms > 0 and not self._is_overdue and self._awaits_remote():
            self._is_overdue = True
            self._timer = self._services.clock.call_later(left_ms, self._finish)
            return
        self._look_again(is_last=True)

    def _look_again(self, *, is_last: bool) -> None:
        reply = self._reply
        if reply is None:
            return
        try:
            self.look(is_first=False)
            if not (is_last or self.is_satisfied()):
                self._maybe_hurry()
                return
            parts = self.respond()
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and others are served
            telemetry.exception("closing %s: a fetch failed", self._context.client_host)
            self._leave()
            reply.fail()
            return
        self._leave()
        reply.complete(parts)

    def _maybe_hurry(self) -> None:
        """Let a follower not wait long that has no records to come, but news."""
        if self._session.is_follower and any(
            self._is_news(target, answer) for target, answer in self._answers.items()
        ):
            self.hurry()

    def hurry(self) -> None:
        """Part of ParkedFetch: answer after NEWS_DELAY_MS at the latest."""
        if not self._is_hurried:
            self._is_hurried = True
            if self._timer is not None and self._request.max_wait_ms > NEWS_DELAY_MS:
                self._timer.cancel()
                self._timer = self._services.clock.call_later(NEWS_DELAY_MS, self._finish)

    def _leave(self) -> None:
        self._reply = None
        if self._reader.late is not None:
            self._reader.late.abandon()
        if self._timer is not None:
            self._timer.cancel()
        if self._session.waiting is self:
            self._session.waiting = None
        if self._session.is_follower:
            waking = self._services.replicas.waking
            waking.unpark(self._reader.replica_id, self._context.client_id, self)
        if self._session.session_id == NO_SESSION:
            self._session.close()

    def respond(self) -> list[Part]:
        """The response's parts; a session gets only the changes."""
        session = self._session
        told: list[tuple[FetchTarget, FetchAnswer]] = []
        targets = session.targets.values() if self._is_full else self._answers
        for target in targets:
            answer = self._answers.get(target)
            if answer is not None and (self._is_full or self._is_worth_telling(target, answer)):
                told.append((target, answer))
        if self._reader.late is not None:
            self._reader.late.abandon()
        parts = self._encode([answer for _, answer in told])
        throttling = self._services.throttling
        if throttling is not None and not throttling.fetched(
            self._context, sum(map(len, parts)), is_follower=session.is_follower
        ):
            parts = self._respond_without_records()
        else:
            self._told(told)
        if session.session_id == NO_SESSION:
            session.close()
        return parts

    def _told(self, told: list[tuple[FetchTarget, FetchAnswer]]) -> None:
        """Remember what the client has been sent."""
        sent: list[FetchTarget] = []
        for target, answer in told:
            # After an error or a divergence everything must be sent again, since the client
            # discarded it.
            is_taken = not answer.error and answer.diverging is None
            if answer.error:
                self._context.failed(answer.error)
            target.high_watermark_sent = answer.high_watermark if is_taken else -1
            target.log_start_offset_sent = answer.log_start_offset if is_taken else -1
            if answer.size_bytes:
                sent.append(target)
                self._reader.sent(target, answer.size_bytes)
        self._session.served(sent)

    def _encode(self, told: list[FetchAnswer]) -> list[Part]:
        endpoints = addresses(
            self._services,
            [answer.current_leader[0] for answer in told if answer.current_leader is not None],
            self._context.listener_name,
        )
        version, session_id = self._context.api_version, self._session.session_id
        try:
            parts = encode_fetch(version, ErrorCode.NONE, session_id, told, endpoints)
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and the client told
            return respond_instead(self._context, _failure(self._request, version))
        return frame_response(self._context.correlation_id, version >= FLEXIBLE_FROM, parts)

    def _respond_without_records(self) -> list[Part]:
        """Answer a consumer that must wait with no records, and without the session that it asked
        for.

        The next response contains what this one should have.
        """
        session = self._session
        session_id = session.session_id
        if self._is_full:
            self._services.fetch_sessions.remove(session_id)
            session_id = NO_SESSION
        else:
            session.ready.update(dict.fromkeys(self._answers))
        version = self._context.api_version
        parts = encode_fetch(version, ErrorCode.NONE, session_id, [])
        return frame_response(self._context.correlation_id, version >= FLEXIBLE_FROM, parts)

    def _is_worth_telling(self, target: FetchTarget, answer: FetchAnswer) -> bool:
        return (
            answer.size_bytes > 0
            or answer.error != ErrorCode.NONE
            or answer.diverging is not None
            or answer.preferred_replica != NO_REPLICA
            or self._is_news(target, answer)
        )

    def _is_news(self, target: FetchTarget, answer: FetchAnswer) -> bool:
        """Return whether a client in a session does not know what is said of the log."""
        return not answer.error and (
            answer.high_watermark != target.high_watermark_sent
            or answer.log_start_offset != target.log_start_offset_sent
        )
