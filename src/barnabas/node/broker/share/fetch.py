"""ShareFetch (key 78), versions 1-2: KIP-932, 1206, 1222.

A member of a share group gets records that nobody else holds, and acknowledges others with the
same request. A fetch for which there is too little waits on its share partitions; those who wait
longest are served first. Records leave as the log gives them.

Members must be allowed to read the group, and each topic; that is asked when a request arrives.

Left out here: quotas.
"""

import logging
from collections.abc import Container, Sequence

from barnabas.base.clock import Timer
from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.current_leader import HINTED, addresses, current_leader
from barnabas.node.broker.responses import frame_response, respond_instead
from barnabas.node.broker.services import BrokerServices
from barnabas.node.broker.share.fetch_codec import ShareAnswer, encode_share_fetch
from barnabas.node.broker.share.requests import (
    RENEWALS_FROM,
    AckOutcome,
    acknowledge,
    count_acknowledgements,
    readable_topics,
    request_error,
)
from barnabas.node.broker.throttling import fetch_bytes_max
from barnabas.node.net.connection import Reply
from barnabas.node.share.core.states import AcquireMode
from barnabas.node.share.sessions import PartitionId, SessionKey, ShareSession
from barnabas.node.share.share_partition_host import HostedSharePartition, ShareRead
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.protocol.well_known import FINAL_EPOCH, INITIAL_EPOCH

telemetry = logging.getLogger(__name__)


def handle_share_fetch(
    services: BrokerServices, context: RequestContext, frame: bytearray, position: int
) -> Sequence[Part] | Reply:
    """Deliver what there is, or wait for it; raises DecodeError for a malformed request."""
    request, _ = decode_at(ShareFetchRequest, context.api_version, frame, position)
    error = request_error(services, context, request.group_id, request.member_id)
    if not error and _is_greedy_renewal(request, context.api_version):
        error = ErrorCode.INVALID_REQUEST
    if error:
        return _refuse(context, error)
    session = _session(services, context, request)
    if session is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        return _refuse_later(services, context, request.max_wait_ms, session)
    if isinstance(session, ErrorCode):
        return _refuse(context, session)
    if request.share_acquire_mode not in tuple(AcquireMode):
        return _refuse(context, ErrorCode.UNKNOWN_SERVER_ERROR)
    return ShareFetch(services, context, request, session).start()


def _is_greedy_renewal(request: ShareFetchRequest, version: int) -> bool:
    """Return whether a request that renews locks asks for records too, which it may not."""
    return (
        version >= RENEWALS_FROM
        and request.is_renew_ack
        and bool(
            request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms
        )
    )


def _refuse(context: RequestContext, error: ErrorCode) -> list[Part]:
    return frame_response(context.correlation_id, True, encode_share_fetch(error, 0))


def _refuse_later(
    services: BrokerServices, context: RequestContext, delay_ms: int, error: ErrorCode
) -> Reply:
    """Answer after a pause, so that clients without a session do not ask all the time."""
    reply = Reply()
    timer = services.clock.call_later(
        max(0, delay_ms), lambda: reply.complete(_refuse(context, error))
    )
    reply.on_abandon = timer.cancel
    return reply


def _session(
    services: BrokerServices, context: RequestContext, request: ShareFetchRequest
) -> ShareSession | ErrorCode:
    """Open, go on with or end the session of the member."""
    assert request.group_id is not None
    assert request.member_id is not None
    key = SessionKey(request.group_id, request.member_id)
    sessions = services.share_partitions.sessions
    by_id = services.image.topics.by_id
    named = [
        ((topic.topic_id, entry.partition_index), None if image is None else image.name)
        for topic in request.topics
        for image in (by_id.get(topic.topic_id),)
        for entry in topic.partitions
    ]
    if request.share_session_epoch == INITIAL_EPOCH:
        if _has_acknowledgements(request):
            return ErrorCode.INVALID_REQUEST
        opened = sessions.open(key, named, context.connection)
        context.connection.when_closed(services.share_partitions.connection_lost)
        return opened
    session = sessions.resume(key, request.share_session_epoch)
    if isinstance(session, ShareSession) and request.share_session_epoch != FINAL_EPOCH:
        forgotten = [
            (entry.topic_id, index)
            for entry in request.forgotten_topics_data
            for index in entry.partitions
        ]
        session.update(named, forgotten)
    return session


def _has_acknowledgements(request: ShareFetchRequest) -> bool:
    return any(
        entry.acknowledgement_batches for topic in request.topics for entry in topic.partitions
    )


class ShareFetch:
    """One request while it is served. A ShareWaiter of its share partitions while it waits."""

    __slots__ = (
        "_ack_outcomes",
        "_acks_left",
        "_answers",
        "_asked",
        "_context",
        "_hosted",
        "_is_fetched",
        "_key",
        "_max_bytes",
        "_min_bytes",
        "_readable",
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
        request: ShareFetchRequest,
        session: ShareSession,
    ) -> None:
        self._services = services
        self._context = context
        self._request = request
        self._session = session
        self._key = session.key
        self._max_bytes = fetch_bytes_max(services, context, request.max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._hosted: dict[PartitionId, HostedSharePartition] = {}
        self._answers: dict[PartitionId, ShareAnswer] = {}
        self._asked: dict[PartitionId, str] = {}
        """The partitions that records are wanted of, and their topics."""
        self._ack_outcomes: dict[PartitionId, AckOutcome] = {}
        self._acks_left = 0
        self._is_fetched = False
        self._readable: Container[str] = ()
        self._reply: Reply | None = None
        self._timer: Timer | None = None

    # -- from request to answer

    def start(self) -> Sequence[Part] | Reply:
        """Take the acknowledgements, look for records, and answer or wait."""
        request = self._request
        in_session = (partition.topic for partition in self._session.partitions.values())
        self._readable = readable_topics(self._services, self._context, request.topics, in_session)
        if _has_acknowledgements(request):
            self._acknowledge()
        is_final = request.share_session_epoch == FINAL_EPOCH
        is_renewal = request.is_renew_ack and self._context.api_version >= RENEWALS_FROM
        if is_final or is_renewal:
            self._is_fetched = True
        else:
            self._open()
            self._look(is_last=request.max_wait_ms <= 0)
        if self._is_fetched and not self._acks_left:
            return self._respond()
        self._reply = Reply()
        self._reply.on_abandon = self._leave
        if not self._is_fetched:
            for hosted in self._hosted.values():
                hosted.wait(self)
            self._timer = self._services.clock.call_later(request.max_wait_ms, self._time_is_up)
        return self._reply

    def look_again(self) -> None:
        """Part of ShareWaiter."""
        self._go_on(is_last=False)

    def _time_is_up(self) -> None:
        self._timer = None
        self._go_on(is_last=True)

    def _go_on(self, *, is_last: bool) -> None:
        """Look again; answer if that was the last that was missing."""
        reply = self._reply
        if reply is None or reply.is_done:
            return
        try:
            if not self._is_fetched and self._look(is_last=is_last):
                self._stop_waiting()
            if not self._is_fetched or self._acks_left:
                return
            parts = self._respond()
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and others are served
            telemetry.exception("closing %s: a share fetch failed", self._context.client_host)
            self._leave()
            reply.fail()
            return
        self._leave()
        reply.complete(parts)

    def _stop_waiting(self) -> None:
        for hosted in self._hosted.values():
            hosted.leave(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        self._reply = None
        self._stop_waiting()

    # -- acknowledgements

    def _acknowledge(self) -> None:
        outcomes = acknowledge(
            self._services,
            *self._key,
            self._request.topics,
            version=self._context.api_version,
            is_renewal=self._request.is_renew_ack,
            readable=self._readable,
        )
        self._acks_left = len(outcomes)
        for key, outcome in outcomes.items():
            if isinstance(outcome, AckOutcome):
                self._acknowledged(key, outcome)
            else:
                outcome.then(
                    lambda error, key=key: self._acknowledged(key, AckOutcome(error))  # type: ignore[misc]  # mypy cannot infer a default
                )

    def _acknowledged(self, key: PartitionId, outcome: AckOutcome) -> None:
        self._ack_outcomes[key] = outcome
        self._acks_left -= 1
        if not self._acks_left and self._is_fetched:
            self._go_on(is_last=False)

    # -- records

    def _open(self) -> None:
        """Find the share partitions of the session, another one first in each request."""
        services = self._services
        request = self._request
        keys = list(self._session.partitions)
        wanted: list[PartitionId] = []
        for key in keys:
            topic_id, index = key
            topic = services.image.topics.by_id.get(topic_id)
            name = self._session.partitions[key].topic
            if name is None:
                self._answers[key] = ShareAnswer(index, ErrorCode.UNKNOWN_TOPIC_ID)
            elif name not in self._readable:
                self._answers[key] = ShareAnswer(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif topic is None or index not in topic.partitions:
                self._answers[key] = ShareAnswer(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                wanted.append(key)
        if not wanted or not request.max_records or not self._max_bytes:
            self._is_fetched = True
            return
        if request.share_session_epoch >= 1:
            turn = request.share_session_epoch % len(wanted)
            wanted = wanted[turn:] + wanted[:turn]
        for key in wanted:
            self._asked[key] = self._session.partitions[key].topic or ""
            hosted = services.share_partitions.open(self._key.group_id, *key)
            if isinstance(hosted, ErrorCode):
                self._answers[key] = ShareAnswer(key[1], hosted)
            else:
                self._hosted[key] = hosted
        if not self._hosted:
            self._is_fetched = True

    def _look(self, *, is_last: bool) -> bool:
        """Read what can be acquired, and acquire it if that is enough, or the time is up.

        Returns whether no more is to be waited for.
        """
        if self._is_fetched:
            return True
        self._drop_closed()
        if not self._hosted:
            self._is_fetched = True
            return True
        reads = self._read()
        if (
            is_last
            or any(read.error for read in reads.values())
            or (reads and sum(read.size_bytes for read in reads.values()) >= self._min_bytes)
        ):
            self._deliver(reads)
            self._is_fetched = True
        return self._is_fetched

    def _drop_closed(self) -> None:
        for key, hosted in list(self._hosted.items()):
            if hosted.is_closed:
                hosted.leave(self)
                del self._hosted[key]
                answer = self._answers[key] = ShareAnswer(key[1], hosted.error)
                answer.message = hosted.error_message

    def _read(self) -> dict[PartitionId, ShareRead]:
        """The records to acquire, with an equal share of the bytes for each partition."""
        ready = [
            (key, hosted)
            for key, hosted in self._hosted.items()
            if hosted.machine is not None and hosted.machine.can_acquire(hosted.limits)
        ]
        reads: dict[PartitionId, ShareRead] = {}
        if not ready:
            return reads
        share_bytes, rest_bytes = divmod(self._max_bytes, len(ready))
        left_bytes = self._max_bytes
        any_data = False
        for turn, (key, hosted) in enumerate(ready):
            max_bytes = min(left_bytes, share_bytes + (rest_bytes if turn == 0 else 0))
            read = hosted.read(max_bytes, min_one_batch=not any_data)
            if read is not None:
                reads[key] = read
                any_data = any_data or read.size_bytes > 0
                left_bytes = max(0, left_bytes - read.size_bytes)
        return reads

    def _deliver(self, reads: dict[PartitionId, ShareRead]) -> None:
        request = self._request
        left = request.max_records
        mode = AcquireMode(request.share_acquire_mode)
        for key, read in reads.items():
            hosted = self._hosted[key]
            delivery = hosted.deliver(read, self._key.member_id, mode, request.batch_size, left)
            answer = self._answers[key] = ShareAnswer(key[1], delivery.error)
            answer.parts = delivery.parts
            answer.size_bytes = delivery.size_bytes
            answer.acquired = delivery.acquired
            left -= delivery.record_count

    # -- the answer

    def _count(self) -> None:
        """Count the request: it fails for a topic with an error in one of its partitions."""
        if self._asked:
            answers = self._answers
            told = [
                (topic, answers[key].error if key in answers else ErrorCode.NONE)
                for key, topic in self._asked.items()
            ]
            self._services.replicas.context.traffic.shared(told, fetched=True)
        if self._ack_outcomes:
            count_acknowledgements(self._services, self._ack_outcomes)

    def _respond(self) -> list[Part]:
        self._count()
        services = self._services
        topics = self._told()
        for (topic_id, index), outcome in self._ack_outcomes.items():
            answers = topics.setdefault(topic_id, [])
            answer = next((known for known in answers if known.index == index), None)
            if answer is None:
                answer = ShareAnswer(index)
                answers.append(answer)
            answer.ack_error = outcome.error
            answer.ack_message = outcome.message
        leaders: list[int] = []
        for topic_id, answers in topics.items():
            for answer in answers:
                if answer.error in HINTED:
                    answer.leader = current_leader(services, topic_id, answer.index)
                    leaders.append(answer.leader[0])
        if self._request.share_session_epoch == FINAL_EPOCH:
            services.share_partitions.release_session(self._key)
        limits = services.share_partitions.settings.of(self._key.group_id).limits
        endpoints = addresses(services, leaders, self._context.listener_name)
        try:
            parts = encode_share_fetch(
                ErrorCode.NONE, limits.lock_duration_ms, topics.items(), endpoints
            )
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and the client told
            failure = ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            return respond_instead(self._context, failure)
        return frame_response(self._context.correlation_id, True, parts)

    def _told(self) -> dict[Uuid, list[ShareAnswer]]:
        """The answer for a member's partitions: all at first, later what is new."""
        tells_all = self._request.share_session_epoch == INITIAL_EPOCH
        topics: dict[Uuid, list[ShareAnswer]] = {}
        for key, answer in self._answers.items():
            if tells_all or self._session.is_worth_telling(key, answer.error, answer.size_bytes):
                topics.setdefault(key[0], []).append(answer)
                if answer.size_bytes:
                    self._hosted[key].partition.traffic.bytes_out += answer.size_bytes
        return topics
