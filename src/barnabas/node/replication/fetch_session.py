"""A follower's side of a fetch session (KIP-227): only what changed is asked again.

The leader remembers each partition's position, so a request names those whose position has moved,
are new or are to be forgotten: what a fetch costs depends on what happens, not on how many
partitions there are. Source: Kafka's FetchSessionHandler.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from barnabas.protocol.well_known import INITIAL_EPOCH, NO_SESSION, epoch_after

PartitionKey = tuple[Uuid, int]


class FetchPosition(NamedTuple):
    """A follower's request for one partition."""

    topic: str
    fetch_offset: int
    last_fetched_epoch: int
    current_leader_epoch: int
    log_start_offset: int


class FollowerSession:
    """This follower's positions, as one leader knows them."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.known: dict[PartitionKey, FetchPosition] = {}
        """The positions sent to the leader, including the request under way."""
        self._forgotten: dict[PartitionKey, str] = {}
        self._withdrawn: dict[PartitionKey, FetchPosition] = {}
        """Partitions forgotten since the last request, as that request had them."""
        self.unheard: dict[PartitionKey, None] = {}
        """Partitions whose answer was dropped after they had been forgotten.

        The leader repeats nothing that it has told its session, so it must forget them before they
        are named again: the next request does not name them.
        """

    @property
    def is_full(self) -> bool:
        """True if the next request must name every partition."""
        return self.epoch == INITIAL_EPOCH

    def forget(self, key: PartitionKey) -> None:
        """Have the leader leave a partition out from the next request on."""
        position = self.known.pop(key, None)
        if position is not None:
            self._forgotten[key] = position.topic
            self._withdrawn[key] = position

    def drop(self, key: PartitionKey, leader_epoch: int) -> None:
        """Leave an answer for a partition unread that was forgotten and is followed again.

        In another leader epoch the leader repeats all by itself.
        """
        asked = self._withdrawn.get(key)
        if asked is not None and asked.current_leader_epoch == leader_epoch:
            self.unheard[key] = None

    def has_news(self, changed: Iterable[PartitionKey]) -> bool:
        """Return whether the next request would name anything."""
        return self.is_full or bool(self._forgotten) or any(True for _ in changed)

    def fill(
        self,
        request: FetchRequest,
        positions: dict[PartitionKey, FetchPosition],
        partition_max_bytes: int,
    ) -> None:
        """Put session and positions into `request`.

        `positions` has every partition if the session `is_full`, else those that changed, without
        those that are `unheard`.
        """
        request.session_id = self.session_id
        request.session_epoch = self.epoch
        self._withdrawn.clear()
        self.unheard.clear()
        if self.is_full:
            self.known.clear()
            self._forgotten.clear()
        topics: dict[Uuid, FetchTopic] = {}
        for key, position in positions.items():
            topic_id, index = key
            self.known[key] = position
            self._forgotten.pop(key, None)
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic=position.topic, topic_id=topic_id)
                request.topics.append(topic)
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=position.current_leader_epoch,
                    fetch_offset=position.fetch_offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=partition_max_bytes,
                )
            )
        gone: dict[Uuid, ForgottenTopic] = {}
        for (topic_id, index), name in self._forgotten.items():
            entry = gone.get(topic_id)
            if entry is None:
                entry = gone[topic_id] = ForgottenTopic(topic=name, topic_id=topic_id)
                request.forgotten_topics_data.append(entry)
            entry.partitions.append(index)
        self._forgotten.clear()

    def answered(self, response: FetchResponse) -> bool:
        """Take note of a response; False if it has no data and everything must be requested
        again."""
        error = response.error_code
        if error:
            if error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
            self.epoch = INITIAL_EPOCH
            return False
        self.session_id = response.session_id
        if response.session_id == NO_SESSION:
            self.epoch = INITIAL_EPOCH
        else:
            self.epoch = epoch_after(self.epoch)
        return True

    def lost(self) -> None:
        """The connection is gone, and what the leader has been told is not known."""
        self.epoch = INITIAL_EPOCH
