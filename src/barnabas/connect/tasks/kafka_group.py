"""A sink task as a member of the group `connect-<connector>`: which partitions are its, how far.

The member itself reads nothing: its partitions are paused, and what there is to read is asked for
as offsets, so that executors can read it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from barnabas.connect.config.values import names
from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.base import TopicPartition as Place
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.transport import GroupListener
from barnabas.java.regex import JavaPattern, compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError

CALL_TIMEOUT_SECONDS: Final = 60.0
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_METADATA_MAX_AGE_MS: Final = 300_000
_SOON_SECONDS: Final = 5.0
_log = logging.getLogger(__name__)


class KafkaGroup:
    """The membership of one task."""

    def __init__(
        self, settings: Mapping[str, Any], connector: Settings, listener: GroupListener
    ) -> None:
        self._topics, self._pattern = _subscription(connector)
        self._listener = listener
        self._reset = str(settings.get("auto.offset.reset", "earliest"))
        self._refresh_seconds = (
            float(settings.get("metadata.max.age.ms", _METADATA_MAX_AGE_MS)) / 1000
        )
        self._next_refresh = 0.0
        self._positions: dict[Place, int | None] = {}
        self._new: list[Place] = []
        """Ours, but it is not known yet how far they are."""
        self._silent: frozenset[Place] = frozenset()
        """Whose leader did not answer when it was asked last."""
        self._is_cooperative = "cooperative" in str(
            settings.get("partition.assignment.strategy", "cooperative-sticky")
        )
        self._errors: list[BaseException] = []
        self._fatal: KafkaError | None = None
        own = dict(settings)
        if self._reset not in ("earliest", "latest", "error"):
            own["auto.offset.reset"] = "earliest"
        self._consumer = Consumer({**own, "error_cb": self._on_error})
        self._subscribed: frozenset[str] = frozenset()
        if self._topics:
            self._subscribe(frozenset(self._topics))

    @property
    def partitions(self) -> Sequence[Place]:
        """Return those that are ours."""
        return tuple(self._positions)

    def poll(self, seconds: float) -> None:
        """Take part in the group for so long."""
        if self._pattern is not None and time.monotonic() >= self._next_refresh:
            self._refresh()
        message = self._consumer.poll(seconds)
        if self._errors:
            raise self._errors.pop(0)
        if self._fatal is not None:
            raise ConnectError(f"the consumer group failed: {self._fatal.str()}")
        error = None if message is None else message.error()
        if error is not None and error.code() in _REFUSED:
            raise ConnectError(f"cannot read: {error.str()}")
        if self._new:
            self._open()

    def ranges(self) -> Sequence[SinkRange]:
        """Return what there is to read, of each partition with anything."""
        if not self._positions:
            return ()
        ends = self._asked(self._positions, OFFSET_END)
        moved = [place for place, end in ends.items() if self._positions[place] != end]
        if not moved:
            return ()
        offsets = []
        for place, low in self._asked(moved, OFFSET_BEGINNING).items():
            start, high = self._positions[place], ends[place]
            if start is None or start < low or start > high:
                start = self._begin(place, low, high, start)
                self._positions[place] = start
            if start < high:
                offsets.append(SinkRange(*place, start, high))
        return offsets

    def _asked(self, places: Iterable[Place], which: int) -> Mapping[Place, int]:
        """Ask for the first or the last offset of partitions: a request to each of their leaders.

        Raises RetriableError, ConnectError.
        """
        asked = [TopicPartition(*place, which) for place in places]
        try:
            at_time = self._consumer.offsets_for_times(asked, CALL_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise _failed("cannot ask for offsets", error.args[0]) from error
        silent = {(one.topic, one.partition): one.error for one in at_time if one.error is not None}
        for (topic, partition), reason in silent.items():
            failed = _failed(f"cannot ask for offsets of {topic}-{partition}", reason)
            if len(silent) == len(at_time) or not isinstance(failed, RetriableError):
                raise failed
            if (topic, partition) not in self._silent:
                _log.warning("%s; the other partitions continue", failed)
        answered = {(one.topic, one.partition): one.offset for one in at_time if one.error is None}
        self._silent = self._silent - answered.keys() | silent.keys()
        return answered

    def advance(self, ranges: Sequence[SinkRange]) -> None:
        """So much is written: go on behind it."""
        for one in ranges:
            if (one.topic, one.partition) in self._positions:
                self._positions[one.topic, one.partition] = one.end

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit offsets of the group."""
        if not offsets:
            return
        try:
            done = self._consumer.commit(
                offsets=[TopicPartition(*place, offset) for place, offset in offsets.items()],
                asynchronous=False,
            )
        except KafkaException as error:
            raise _failed("cannot commit offsets", error.args[0]) from error
        for one in done:  # librdkafka raises only where it is so of all
            if one.error is not None:
                what = f"cannot commit the offset of {one.topic}-{one.partition}"
                raise _failed(what, one.error)

    def close(self) -> None:
        """Leave the group; what goes wrong with partitions that are given up for that is logged."""
        if not self._positions and not self._new:
            # librdkafka (2.16) does not tell the group that a member without partitions closes, if
            # it is a cooperative one: all others would wait until its session is over.
            self._consumer.unsubscribe()
        self._consumer.close()
        for error in self._errors:
            _log.warning("leaving the group: %s", error, exc_info=error)

    def _begin(self, place: Place, low: int, high: int, position: int | None) -> int:
        """Return where to start without an offset, or with one that the topic no longer has."""
        if self._reset == "latest":
            return high
        if self._reset == "error":
            what = "no offset is committed" if position is None else f"offset {position} is gone"
            raise ConnectError(f"{what} for {place[0]}-{place[1]}, and auto.offset.reset is none")
        return low

    def _subscribe(self, topics: frozenset[str]) -> None:
        self._subscribed = topics
        self._consumer.subscribe(
            sorted(topics),
            on_assign=self._guarded(self._assigned),
            on_revoke=self._guarded(self._revoked),
            on_lost=self._guarded(self._lost),
        )

    def _refresh(self) -> None:
        """Look which topics match; after one that failed or found none, another is soon taken."""
        assert self._pattern is not None
        self._next_refresh = time.monotonic() + min(_SOON_SECONDS, self._refresh_seconds)
        try:
            known = self._consumer.list_topics(timeout=CALL_TIMEOUT_SECONDS).topics
        except KafkaException as error:
            raise _failed("cannot list topics", error.args[0]) from error
        topics = frozenset(
            topic for topic in known if topic not in _INTERNAL and self._pattern.matches(topic)
        )
        if topics:
            self._next_refresh = time.monotonic() + self._refresh_seconds
        if topics != self._subscribed and topics:
            self._subscribe(topics)

    def _guarded(self, react: Callable[[list[TopicPartition]], None]) -> Any:
        """An exception of a callback ends the task after `poll`."""

        def call(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            try:
                react(partitions)
            except KafkaException as error:
                self._errors.append(ConnectError(f"cannot take partitions: {error.args[0].str()}"))
            except BaseException as error:  # noqa: BLE001  # it is raised behind `poll`
                self._errors.append(error)

        return call

    def _assigned(self, partitions: list[TopicPartition]) -> None:
        if self._is_cooperative:
            self._consumer.incremental_assign(partitions)
        else:
            self._consumer.assign(partitions)
        if not partitions:
            return
        self._consumer.pause(partitions)
        self._new += [(one.topic, one.partition) for one in partitions]

    def _open(self) -> None:
        """Ask how far new partitions are; where that fails they stay new, and the next poll asks.

        Raises RetriableError, ConnectError.
        """
        asked = [TopicPartition(*place) for place in self._new]
        try:
            committed = self._consumer.committed(asked, CALL_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise _failed("cannot read committed offsets", error.args[0]) from error
        positions: dict[Place, int | None] = {}
        for one in committed:
            if one.error is not None:
                raise _failed("cannot read committed offsets", one.error)
            is_committed = one.offset is not None and one.offset >= 0
            positions[one.topic, one.partition] = one.offset if is_committed else None
        self._new.clear()
        self._positions |= positions
        self._positions |= self._listener.assigned(list(positions)) or {}

    def _revoked(self, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, is_lost=False)

    def _lost(self, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, is_lost=True)

    def _give_up(self, partitions: list[TopicPartition], *, is_lost: bool) -> None:
        given_up = {(one.topic, one.partition) for one in partitions}
        self._new = [place for place in self._new if place not in given_up]
        places = [place for place in self._positions if place in given_up]
        try:
            if places:
                self._listener.revoked(places, is_lost=is_lost)
        finally:
            for place in places:
                self._positions.pop(place, None)
            if self._is_cooperative:
                self._consumer.incremental_unassign(partitions)
            else:
                self._consumer.unassign()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._AUTHENTICATION:
            self._fatal = error


_REFUSED: Final = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)


def _subscription(connector: Settings) -> tuple[list[str], JavaPattern | None]:
    """Topics or a pattern, as SinkConnectorConfig.validate wants them. Raises ConfigError."""
    topics, pattern = names(connector.get("topics", "")), connector.get("topics.regex", "")
    if topics and pattern:
        raise ConfigError("topics and topics.regex are mutually exclusive options")
    if not topics and not pattern:
        raise ConfigError("Must configure one of topics or topics.regex")
    try:
        return topics, compile_java(pattern) if pattern else None
    except PatternError as error:
        raise ConfigError(f"topics.regex: {error}") from error


def _failed(what: str, reason: KafkaError) -> ConnectError:
    text = f"{what}: {reason.str()}"
    is_lasting = reason.fatal() or reason.code() in _REFUSED
    return ConnectError(text) if is_lasting else RetriableError(text)
