"""Finds the broker for a request: the coordinator of a group or transaction, a partition's leader.

Either may move in between: these functions look it up and ask again until the timeout of their
`WireAdmin`. They raise AdminError.

`wire.Coordinators` asks by address, remembers coordinators and raises what a writer handles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.kafka.wire_admin import (
    MOVED_CODES,
    AbsentError,
    LeaderlessError,
    RefusedError,
    UnsupportedError,
    WireAdmin,
)
from barnabas.protocol.errors import EncodeError, ErrorCode
from barnabas.protocol.messages.groups import Coordinator, FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.schema import Message

GROUP, TRANSACTION = 0, 1
"""Kinds of keys, as FindCoordinator numbers them."""
RETRIED: Final = MOVED_CODES | {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.LEADER_NOT_AVAILABLE,
}
"""Answers that mean: another broker decides, or soon this one will."""
PLACES_MAX: Final = 5_000
"""The most partitions that one request of `ask_leaders` names."""
Codes = Callable[[Any], Iterable[int]]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition, as brokers describe it."""

    topic: str
    index: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def key(self) -> TopicPartition:
        """Its topic and number."""
        return TopicPartition(self.topic, self.index)


class Asked(Protocol):
    """A cluster that answers requests."""

    def ask(self, request: Message) -> Any:
        """Return the answer of any broker."""


def partitions(admin: Asked, topics: Sequence[str] | None = None) -> list[PartitionState]:
    """All partitions, or those of `topics`. Raises AdminError, for unknown topics too."""
    asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    response = admin.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    found = []
    for topic in sorted(response.topics, key=lambda topic: topic.name or ""):
        if topic.error_code != ErrorCode.NONE:
            raise RefusedError(topic.error_code, None, topic.name or "")
        for part in sorted(topic.partitions, key=lambda part: part.partition_index):
            replicas, isr = tuple(part.replica_nodes), tuple(part.isr_nodes)
            found.append(
                PartitionState(topic.name, part.partition_index, part.leader_id, replicas, isr)
            )
    return found


def ask_broker(admin: WireAdmin, request: Message, broker: int | None = None) -> Any:
    """As `WireAdmin.ask`; UnsupportedError too if the broker is too old for what is asked."""
    try:
        return admin.ask(request, broker)
    except EncodeError as error:
        raise _too_old(error) from error


def ask_coordinator(
    admin: WireAdmin, key: str, kind: int, request: Message, codes: Codes
) -> tuple[int, Any]:
    """The broker that coordinates `key`, and its answer. Raises AdminError.

    `codes` takes the error codes from the answer; those that pass are not returned in time.
    """

    def once() -> tuple[int, Any]:
        find = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        found = ask_broker(admin, find).coordinators[0]
        if found.error_code != ErrorCode.NONE:
            return found.node_id, found
        return found.node_id, ask_broker(admin, request, found.node_id)

    def told(answer: tuple[int, Any]) -> Iterable[int]:
        found = answer[1]
        return [found.error_code] if isinstance(found, Coordinator) else codes(found)

    broker, answer = _retry(admin, once, told)
    if isinstance(answer, Coordinator):
        raise RefusedError(answer.error_code, answer.error_message, key)
    return broker, answer


def ask_leader(
    admin: WireAdmin, place: TopicPartition, request: Callable[[], Message], codes: Codes
) -> Any:
    """The answer of a partition's leader. Raises AdminError, for unknown partitions too."""
    return _retry(admin, lambda: ask_broker(admin, request(), leader_of(admin, place)), codes)


def leader_of(admin: WireAdmin, place: TopicPartition) -> int:
    """The broker that leads a partition. Raises AdminError."""
    for state in partitions(admin, [place.topic]):
        if state.key == place:
            if state.leader < 0:
                raise LeaderlessError(f"{place} has no leader")
            return state.leader
    raise AbsentError(f"there is no partition {place}")


def ask_leaders(
    admin: WireAdmin,
    by_broker: Mapping[int, Sequence[TopicPartition]],
    request: Callable[[Sequence[TopicPartition]], Message],
    parts: Callable[[Any], Iterable[tuple[TopicPartition, Any]]],
) -> dict[TopicPartition, Any]:
    """The answers of brokers about many partitions; each broker is asked about several at once.

    `parts` takes each partition's part of an answer, with an `error_code`. Partitions that have
    moved are asked for again, after one look at the metadata of all of them, until time is up:
    then their part has that error. Raises AdminError.
    """
    deadline = time.monotonic() + admin.timeout_s
    found: dict[TopicPartition, Any] = {}
    asked = {broker: list(places) for broker, places in by_broker.items()}
    while True:
        for batch in _batches(asked):
            requests = [(broker, request(places)) for broker, places in batch.items()]
            for answer in ask_together(admin, requests):
                found.update(parts(answer))
        moved = [place for place, part in found.items() if part.error_code in RETRIED]
        if not moved or time.monotonic() > deadline:
            return found
        admin.pause()
        asked = _led(admin, moved)


def _batches(
    asked: Mapping[int, Sequence[TopicPartition]],
) -> Iterable[dict[int, Sequence[TopicPartition]]]:
    most = max((len(places) for places in asked.values()), default=0)
    for start in range(0, most, PLACES_MAX):
        cut = {broker: places[start : start + PLACES_MAX] for broker, places in asked.items()}
        yield {broker: places for broker, places in cut.items() if places}


def _led(admin: WireAdmin, places: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Partitions by their leaders; those without one are left out, and looked for again."""
    wanted = set(places)
    by_broker: dict[int, list[TopicPartition]] = {}
    for state in partitions(admin, sorted({place.topic for place in wanted})):
        if state.key in wanted and state.leader >= 0:
            by_broker.setdefault(state.leader, []).append(state.key)
    return by_broker


def ask_all(admin: WireAdmin, request: Message, codes: Codes) -> list[tuple[int, Any]]:
    """The answer of each live broker. Raises AdminError where one does not answer."""

    def once() -> list[tuple[int, Any]]:
        brokers = admin.describe().live
        requests = [(broker, request) for broker in brokers]
        return list(zip(brokers, ask_together(admin, requests), strict=True))

    return _retry(admin, once, lambda found: (code for _, one in found for code in codes(one)))


def ask_together(admin: WireAdmin, requests: Sequence[tuple[int, Message]]) -> list[Any]:
    """The answers of brokers that are asked at the same time. Raises AdminError."""
    answers = admin.ask_each(requests)
    for answer in answers:
        if isinstance(answer, EncodeError):
            raise _too_old(answer) from answer
        if isinstance(answer, Exception):
            raise answer
    return answers


def _too_old(error: EncodeError) -> UnsupportedError:
    return UnsupportedError(f"the brokers are too old for this: {error}")


def _retry(
    admin: WireAdmin, once: Callable[[], Answer], codes: Callable[[Answer], Iterable[int]]
) -> Answer:
    deadline = time.monotonic() + admin.timeout_s
    while True:
        answer = once()
        if RETRIED.isdisjoint(codes(answer)) or time.monotonic() > deadline:
            return answer
        admin.pause()
