"""Which broker leads which partition, by the metadata that was read last."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from barnabas.kafka.wire import Brokers, Connection
from barnabas.protocol.apis import METADATA
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic


class TryAgainError(Exception):
    """Not now: a topic or a leader is not there yet, or a broker asks for another try."""


class Leaders:
    """Those of the topics that a producer writes to."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._leaders: dict[str, dict[int, int]] = {}
        self._addresses: dict[int, tuple[str, int]] = {}

    def forget(self) -> None:
        """Ask again next time."""
        self._leaders, self._addresses = {}, {}

    def learn(self, topics: Collection[str]) -> dict[str, ErrorCode]:
        """Ask for topics, if one is not known. Returns those that cannot be written to.

        Brokers may create a topic that does not exist. Raises WireError, AccessError.
        """
        if self._leaders.keys() >= set(topics):
            return {}
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])
        answer: Any = self._brokers.any().call(METADATA, request)
        self.forget()
        self._addresses = {one.node_id: (one.host, one.port) for one in answer.brokers}
        refused: dict[str, ErrorCode] = {}
        for topic in answer.topics:
            error = ErrorCode.of(topic.error_code)
            if error == ErrorCode.NONE:
                found = {one.partition_index: one.leader_id for one in topic.partitions}
                self._leaders[topic.name] = found
            elif not error.retriable:
                refused[topic.name] = error
        return refused

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has. Raises TryAgainError."""
        if not self._leaders.get(topic):
            raise TryAgainError
        return len(self._leaders[topic])

    def of(self, place: tuple[str, int]) -> int:
        """Return the node that leads a partition. Raises TryAgainError."""
        leader = self._leaders.get(place[0], {}).get(place[1], -1)
        if leader not in self._addresses:
            raise TryAgainError
        return leader

    def connection(self, node_id: int) -> Connection:
        """Return the connection to a node. Raises WireError, AccessError."""
        return self._brokers.at(*self._addresses[node_id])
