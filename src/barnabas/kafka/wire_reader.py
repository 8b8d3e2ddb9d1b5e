"""Ranges of partitions over our own connections, as the batches that brokers send.

A caller asks for a range of existing offsets (`read`), or for what many partitions have now behind
given offsets (`poll`). The reader has no group and no position, and does not decode records: it
fetches whole batches, and follows partitions to new leaders. It skips offsets that retention has
deleted, with a warning.

Fetches name topics, so they are of version 12 at most: later ones have topic ids.
Source: Kafka's Fetcher and FetchCollector; KafkaDataConsumer of Spark's connector for Kafka.
"""

from __future__ import annotations

import logging
import random
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.base.backoff import ExponentialBackoff, Pauses
from barnabas.base.disk import Buffer
from barnabas.kafka.bearer_login import client_access
from barnabas.kafka.wire import AccessError, Brokers, Leaders, TryAgainError, WireError
from barnabas.protocol.apis import FETCH, LIST_OFFSETS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    PartitionData,
)
from barnabas.protocol.records.batch import CorruptBatchError, iterate_headers
from barnabas.protocol.well_known import EARLIEST, LATEST

PATIENCE_SECONDS: Final = 120.0
"""A range that does not go on for so long fails. As long as Spark's connector waits by default."""
FETCH_SIZE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Of one answer; a first batch that is longer comes whole."""
FETCH_SIZE_BYTES_MIN: Final = 64 * 1024
_RECORD_SIZE_BYTES: Final = 1024
"""What a record of a range may take: a short range does not need a long answer."""
_ANSWER_SIZE_BYTES_MAX: Final = 2**31 - 1
_WAIT_MS_MAX: Final = 500
POLL_SIZE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of one answer to `poll`: its caller runs all of it before the next."""
POLLED_SIZE_BYTES_MAX: Final = 1024 * 1024
"""Of a partition in it."""
_SILENT_SECONDS: Final = 0.2
_SILENT_SECONDS_MAX: Final = 10.0
"""`poll` leaves a partition without a leader out for so long: longer each time."""
_TIMEOUTS_APART: Final = 3.0
"""A node that did not answer is not polled for so many times the time that it was waited for: all
others had to wait, too."""
_GOLDEN: Final = 0.618034
_FETCH_VERSION_MAX: Final = 12
_NO_SESSION_EPOCH: Final = -1
_BACKOFF_FIRST_MS: Final = 20
_BACKOFF_MAX_MS: Final = 1_000
_log = logging.getLogger(__name__)
Place = tuple[str, int]
"""A topic and a partition."""


class ReadError(Exception):
    """A range cannot be read."""


@dataclass(slots=True)
class Fetched:
    """Whole batches, perhaps followed by a part of another.

    `first`: the offset that was asked for. Records before it, with which its batch may begin, are
    not wanted. `aborted`: transactions among them that readers do not see; None if all are seen.
    """

    first: int
    batches: Buffer
    aborted: Sequence[AbortedTransaction] | None


@dataclass(slots=True)
class Polled:
    """Batches of a partition from an offset on. `next`: the offset after the last of them.

    `end`: the offset after the last record that the reader may see. Records between the two did
    not fit into the answer.
    """

    next: int
    end: int
    fetched: list[Fetched] = field(default_factory=list)


class WireReader:
    """Reads ranges, and polls partitions. Belongs to one thread."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        is_committed_only: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
        fetch_size_bytes_max: int = FETCH_SIZE_BYTES_MAX,
        brokers: Brokers | None = None,
    ) -> None:
        """`settings` are librdkafka's. Raises ConfigError for a login that is not supported.

        `brokers`: those to ask, in place of the cluster that `settings` name.
        """
        if brokers is None:
            access = replace(client_access(settings), answer_size_bytes_max=_ANSWER_SIZE_BYTES_MAX)
            brokers = Brokers(access)
        self._brokers = brokers
        self._leaders = Leaders(self._brokers, creates_topics=False)
        self._topics: set[str] = set()
        self._is_committed_only = is_committed_only
        self._patience_seconds = patience_seconds
        self._size_max = fetch_size_bytes_max
        self._backoff = ExponentialBackoff(_BACKOFF_FIRST_MS, _BACKOFF_MAX_MS, random.Random())
        self._silent: Pauses[Place] = Pauses(_SILENT_SECONDS, _SILENT_SECONDS_MAX)
        """Partitions that could not be polled."""
        self._is_moved = False
        """True if the next poll has to ask who leads."""
        self._polls = 0
        self._throttled: dict[int, float] = {}
        """Until when nodes are not polled, as they have asked for."""
        self._unanswered: dict[int, float] = {}
        """Until when nodes are not polled, as they did not answer."""

    def close(self) -> None:
        """Close the connections; the next range opens what it needs."""
        self._brokers.close()

    def read(self, topic: str, partition: int, first: int, until: int) -> Iterator[Fetched]:
        """Fetch the batches with offsets from `first` on, before `until`.

        Raises ReadError.
        """
        place = topic, partition
        offset, failures = first, 0
        deadline = time.monotonic() + self._patience_seconds
        while offset < until:
            problem = "no records came"
            try:
                answer, throttled_s = self._fetch(place, offset, until)
                deadline += throttled_s
                error = ErrorCode.of(answer.error_code)
                if error == ErrorCode.OFFSET_OUT_OF_RANGE:
                    offset = self._after_loss(place, offset, until)
                    problem = error.message
                elif error != ErrorCode.NONE:
                    if not error.retriable:
                        raise ReadError(_told(place, offset, f"{error.name}: {error.message}"))
                    problem = f"{error.name}: {error.message}"
                elif answer.records:
                    reached = _end_of(answer.records, offset)
                    if reached > offset:
                        aborted = answer.aborted_transactions or ()
                        seen = aborted if self._is_committed_only else None
                        yield Fetched(offset, answer.records, seen)
                        offset, failures = reached, 0
                        deadline = time.monotonic() + self._patience_seconds
                        continue
            except (AccessError, CorruptBatchError) as error:
                raise ReadError(_told(place, offset, str(error))) from error
            except TryAgainError:
                problem = "the partition has no leader"
            except WireError as error:
                self._brokers.close()
                problem = str(error)
            if offset >= until:
                return
            self._leaders.forget()  # a node that lags, or is cut off, answers without an error
            pause = self._backoff.after(failures) / 1000
            failures += 1
            if time.monotonic() + pause > deadline:
                offset = self._given_up(place, offset, until, problem)
                continue
            time.sleep(pause)

    def poll(
        self,
        offsets: Mapping[Place, int],
        wait_ms: int,
        last: Collection[Place] = (),
        size_bytes_max: int = POLL_SIZE_BYTES_MAX,
    ) -> tuple[dict[Place, Polled], dict[Place, ReadError]]:
        """Fetch what partitions have from these offsets on, and why some cannot be read at all.

        A partition whose records did not fit into an answer is in the result, without them.

        If nothing is there, waits up to `wait_ms`, in steps where several nodes lead. Partitions in
        `last` are asked after all others: records of the others come with those in `last` that were
        acknowledged before they were sent, unless they are too many. Partitions without a leader,
        or whose leader does not answer, are left out and asked again later. So are those of a node
        that throttles this client; if it leads some in `last`, no node is asked until it may be.
        """
        found: dict[Place, Polled] = {}
        errors: dict[Place, ReadError] = {}
        nodes = self._by_leader(offsets, errors)
        now_s = time.monotonic()
        for node in [node for node in nodes if self._throttled.get(node, now_s) > now_s]:
            if any(place in last for place in nodes.pop(node)):
                return found, errors
        for node in [node for node in nodes if self._unanswered.get(node, now_s) > now_s]:
            self._leave_out(nodes.pop(node), f"node {node}, its leader, did not answer")
        wait_ms = min(wait_ms // max(1, len(nodes)), _WAIT_MS_MAX)
        is_full = False
        for node, places in nodes.items():
            asked = {place: offsets[place] for place in places}
            size = self._poll_node(node, asked, wait_ms, last, size_bytes_max, (found, errors))
            # The partitions at its end may have found no room.
            is_full = is_full or size >= size_bytes_max // 2
            if found:
                wait_ms = 0
        if (len(nodes) > 1 or is_full) and any(place not in last for place in found):
            for node, places in nodes.items():
                behind = {
                    place: found[place].next if place in found else offsets[place]
                    for place in places
                    if place in last and place not in self._silent and place not in errors
                }
                if behind:
                    time.sleep(max(0.0, self._throttled.get(node, 0.0) - time.monotonic()))
                self._poll_node(node, behind, 0, last, size_bytes_max, (found, errors))
        return found, errors

    def _by_leader(
        self, places: Iterable[Place], errors: dict[Place, ReadError]
    ) -> dict[int, list[Place]]:
        """The partitions to be polled now, by the node that leads them."""
        now_s = time.monotonic()
        nodes: dict[int, list[Place]] = defaultdict(list)
        asked = [place for place in places if self._silent.is_over(place, now_s)]
        self._topics.update(topic for topic, _ in asked)
        if self._is_moved:
            self._is_moved = False
            self._leaders.forget()
        try:
            refused = self._leaders.learn(self._topics)
        except AccessError as error:
            errors.update({(topic, number): ReadError(str(error)) for topic, number in asked})
            return {}
        except WireError as error:
            self._brokers.close()
            self._leave_out(asked, str(error))
            return {}
        # One that was deleted would be asked for with each poll.
        self._topics.intersection_update(self._leaders.topics)
        for topic, number in asked:
            if topic in refused:
                why = refused[topic]
                text = f"cannot read topic {topic}: {why.name}: {why.message}"
                errors[topic, number] = ReadError(text)
                continue
            try:
                nodes[self._leaders.of((topic, number))].append((topic, number))
            except TryAgainError:
                self._leave_out([(topic, number)], "it has no leader")
        return nodes

    def _poll_node(
        self,
        node: int,
        offsets: Mapping[Place, int],
        wait_ms: int,
        last: Collection[Place],
        size_bytes_max: int,
        answers: tuple[dict[Place, Polled], dict[Place, ReadError]],
    ) -> int:
        """Add what a node has of the partitions that it leads; returns how many bytes."""
        if not offsets:
            return 0
        found, errors = answers
        self._polls += 1
        places = list(offsets)
        # An answer that is full has nothing of the partitions at its end. The first is never the
        # same for long, also if each second poll is of these partitions.
        at = int(self._polls * _GOLDEN % 1 * len(places))
        places = sorted(places[at:] + places[:at], key=lambda place: place in last)
        topics: dict[str, list[FetchPartition]] = defaultdict(list)
        for topic, number in places:
            topics[topic].append(
                FetchPartition(
                    partition=number,
                    fetch_offset=offsets[topic, number],
                    partition_max_bytes=POLLED_SIZE_BYTES_MAX,
                )
            )
        asked = [FetchTopic(topic=topic, partitions=of) for topic, of in topics.items()]
        began_s = time.monotonic()
        try:
            answer = self._ask(self._connection_to(node), asked, wait_ms, size_bytes_max)
        except (WireError, AccessError) as error:
            self._brokers.close()
            # They may have another leader by then.
            self._leave_out(places, str(error))
            now_s = time.monotonic()
            self._unanswered[node] = now_s + _TIMEOUTS_APART * (now_s - began_s)
            return 0
        if answer.throttle_time_ms > 0:
            throttled_s = min(answer.throttle_time_ms / 1000, self._patience_seconds)
            self._throttled[node] = time.monotonic() + throttled_s
        size = 0
        for topic_answer in answer.responses:
            for one in topic_answer.partitions:
                place = topic_answer.topic, one.partition_index
                if place in offsets:
                    size += len(one.records or b"")
                    try:
                        self._take(place, offsets[place], one, found)
                    except CorruptBatchError as corrupt:
                        errors[place] = ReadError(_told(place, offsets[place], str(corrupt)))
                    except ReadError as refusal:
                        errors[place] = refusal
        return size

    def _take(
        self, place: Place, offset: int, answer: PartitionData, found: dict[Place, Polled]
    ) -> None:
        """Add an answer for a partition. Raises CorruptBatchError, ReadError."""
        error = ErrorCode.of(answer.error_code)
        if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            # Its metadata may be readable all the same, so nothing else would say that.
            raise ReadError(_told(place, offset, f"{error.name}: {error.message}"))
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            try:
                earliest = self._offset(place, EARLIEST)
            except (WireError, TryAgainError, AccessError, ReadError) as problem:
                self._leave_out([place], str(problem) or "it has no leader")
                return
            if earliest > offset:
                _warn_of_loss(place, offset, earliest)
                # What was fetched before stays. Nothing says yet whether there are more records.
                polled = found.setdefault(place, Polled(earliest, earliest + 1))
                polled.next, polled.end = earliest, earliest + 1
            else:
                self._leave_out([place], f"it has no offset {offset}")
        elif error != ErrorCode.NONE:
            self._leave_out([place], f"{error.name}: {error.message}")
        else:
            self._silent.succeeded(place)
            end = answer.last_stable_offset if self._is_committed_only else answer.high_watermark
            reached = _end_of(answer.records, offset) if answer.records else offset
            if reached > offset or end > offset:
                polled = found.setdefault(place, Polled(offset, end))
                polled.end = max(reached, end)
                if reached > offset:
                    aborted = answer.aborted_transactions or ()
                    seen = aborted if self._is_committed_only else None
                    polled.fetched.append(Fetched(offset, answer.records or b"", seen))
                    polled.next = reached

    def _leave_out(self, places: Iterable[Place], why: str) -> None:
        """Poll these again later."""
        self._is_moved = True
        for place in places:
            pause_s, failures = self._silent.failed(place, time.monotonic())
            if failures:  # leaders move: once is not worth a line
                _log.warning("%s-%d is asked again in %.1f s: %s", *place, pause_s, why)

    def _fetch(self, place: Place, offset: int, until: int) -> tuple[PartitionData, float]:
        """One answer, and how many seconds of it the broker has us wait.

        Raises WireError, TryAgainError, AccessError, ReadError.
        """
        topic, partition = place
        size_max = max(FETCH_SIZE_BYTES_MIN, (until - offset) * _RECORD_SIZE_BYTES)
        size_max = min(self._size_max, size_max)
        asked = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=size_max
        )
        topics = [FetchTopic(topic=topic, partitions=[asked])]
        answer = self._ask(self._connection(place), topics, _WAIT_MS_MAX, size_max)
        for topic_answer in answer.responses:
            for one in topic_answer.partitions:
                if (topic_answer.topic, one.partition_index) == place:
                    throttled_s = 0.0
                    if not one.records and answer.throttle_time_ms > 0:
                        throttled_s = min(answer.throttle_time_ms / 1000, self._patience_seconds)
                        time.sleep(throttled_s)
                    return one, throttled_s
        raise WireError("the broker did not answer for the partition")

    def _ask(
        self, connection: Any, topics: list[FetchTopic], wait_ms: int, size_bytes_max: int
    ) -> FetchResponse:
        """A node's answer to a fetch. Raises WireError."""
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=size_bytes_max,
            isolation_level=int(self._is_committed_only),
            session_epoch=_NO_SESSION_EPOCH,
            topics=topics,
        )
        answer: FetchResponse = connection.call(FETCH, request, _FETCH_VERSION_MAX)
        error = ErrorCode.of(answer.error_code)
        if error != ErrorCode.NONE:
            raise WireError(f"the broker refused a fetch: {error.name}")
        return answer

    def _connection(self, place: Place) -> Any:
        """The connection to a partition's leader. Raises as `_fetch` does."""
        self._topics.add(place[0])
        refused = self._leaders.learn(self._topics)
        # One that was deleted would be asked for with each fetch.
        self._topics.intersection_update((*self._leaders.topics, place[0]))
        if place[0] in refused:
            error = refused[place[0]]
            raise ReadError(f"cannot read topic {place[0]}: {error.name}: {error.message}")
        return self._connection_to(self._leaders.of(place))

    def _connection_to(self, node: int) -> Any:
        """The connection to a node. Raises WireError, AccessError."""
        connection = self._leaders.connection(node)
        if connection.is_over:  # brokers close what is idle
            self._brokers.close()
            connection = self._leaders.connection(node)
        return connection

    def _after_loss(self, place: Place, offset: int, until: int) -> int:
        """Return where to continue if an offset does not exist. Raises as `_fetch` does.

        Source: InternalKafkaConsumer.getEarliestAvailableOffsetBetween.
        """
        self._leaders.forget()  # one that led before has fewer records
        earliest, latest = self._offset(place, EARLIEST), self._offset(place, LATEST)
        if offset >= latest or earliest >= until:
            _warn_of_loss(place, offset, until)
            return until
        if earliest > offset:
            _warn_of_loss(place, offset, earliest)
            return earliest
        return offset

    def _given_up(self, place: Place, offset: int, until: int, problem: str) -> int:
        """`until` if the partition ends before `offset` now. Raises ReadError."""
        text = _told(place, offset, f"timed out after {self._patience_seconds:g} s: {problem}")
        try:
            latest = self._offset(place, LATEST)
        except (WireError, TryAgainError, AccessError) as error:
            raise ReadError(text) from error
        if offset < latest:
            raise ReadError(text)
        _warn_of_loss(place, offset, until)
        return until

    def _offset(self, place: Place, kind: int) -> int:
        """The offset at an end of a partition. Raises as `_fetch` does."""
        topic, partition = place
        asked = ListOffsetsPartition(partition_index=partition, timestamp=kind)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._is_committed_only),
            topics=[ListOffsetsTopic(name=topic, partitions=[asked])],
        )
        answer = self._connection(place).call(LIST_OFFSETS, request)
        (one,) = answer.topics[0].partitions
        error = ErrorCode.of(one.error_code)
        if error.retriable:
            raise TryAgainError
        if error != ErrorCode.NONE:
            raise ReadError(f"cannot read {topic}-{partition}: {error.name}: {error.message}")
        return int(one.offset)


def _end_of(batches: Buffer, offset: int) -> int:
    """The offset behind the whole batches. Raises CorruptBatchError."""
    for _, header in iterate_headers(batches, allow_partial_tail=True):
        offset = max(offset, header.next_offset)
    return offset


def _told(place: Place, offset: int, why: str) -> str:
    return f"cannot read {place[0]}-{place[1]} at offset {offset}: {why}"


def _warn_of_loss(place: Place, first: int, until: int) -> None:
    _log.warning(
        "%s-%d no longer has offsets %d to %d: retention has deleted them, or the topic was "
        "deleted or cut off. They are skipped",
        *place,
        first,
        until - 1,
    )
