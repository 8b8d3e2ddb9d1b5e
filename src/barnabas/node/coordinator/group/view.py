"""A group's view of the cluster: topics, their partitions and racks, and groups' settings.

One `GroupMetadata` serves all shards of a node. It always holds the newest image; a group remembers
which topics it last looked at, so changes need no notification.
"""

import hashlib
from collections.abc import Iterable

from barnabas.base.ids import Uuid
from barnabas.node.metadata.image import ConfigResourceType, MetadataImage, TopicImage, TopicsImage

HASH_MAGIC = b"\x00"


class GroupMetadata:
    """The newest image as groups need it."""

    __slots__ = ("_hashes", "image", "new_topics_version")

    def __init__(self, image: MetadataImage | None = None) -> None:
        self.image = image if image is not None else MetadataImage()
        self.new_topics_version = self.image.offset
        """The version of the metadata in which a topic was last created."""
        self._hashes: dict[str, tuple[TopicImage, int]] = {}

    def update(self, image: MetadataImage, *, has_new_topics: bool) -> None:
        """A newer image is there."""
        self.image = image
        if has_new_topics or self.new_topics_version < 0:
            self.new_topics_version = image.offset

    @property
    def topics(self) -> TopicsImage:
        """All topics; another object as soon as anything about them has changed."""
        return self.image.topics

    @property
    def version(self) -> int:
        """The version of the metadata: the offset of its last record."""
        return self.image.offset

    def topic_ids(self, names: Iterable[str]) -> frozenset[Uuid]:
        """The ids of those topics that exist."""
        by_name = self.topics.by_name
        return frozenset(by_name[name].id for name in names if name in by_name)

    def partition_count(self, topic_id: Uuid) -> int:
        """The number of partitions of a topic; 0 if it does not exist."""
        topic = self.topics.by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def named_partition_count(self, name: str) -> int | None:
        """The number of partitions of the topic with that name; None if it does not exist."""
        topic = self.topics.by_name.get(name)
        return None if topic is None else len(topic.partitions)

    def topic_id(self, name: str) -> Uuid | None:
        """The id of the topic of that name; None where there is no such topic."""
        topic = self.topics.by_name.get(name)
        return None if topic is None else topic.id

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The name of a topic that exists."""
        topic = self.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def subscription_hash(self, names: Iterable[str]) -> int:
        """One number for all that an assignment depends on; 0 where no topic exists.

        It changes with ids, numbers of partitions and racks. Only its changes matter: where a
        group comes from another coordinator, a different way to count costs one group epoch.
        """
        by_name = self.topics.by_name
        known = sorted(name for name in names if name in by_name)
        if not known:
            return 0
        digest = hashlib.blake2b(digest_size=8)
        for name in known:
            digest.update(self._topic_hash(by_name[name]).to_bytes(8, "big", signed=True))
        return int.from_bytes(digest.digest(), "big", signed=True)

    def group_setting(self, group_id: str, key: str) -> int | None:
        """A number that was set for the group; None if nothing was."""
        text = self.image.configs.for_resource(ConfigResourceType.GROUP, group_id).get(key)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def _topic_hash(self, topic: TopicImage) -> int:
        known = self._hashes.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        digest = hashlib.blake2b(HASH_MAGIC, digest_size=8)
        digest.update(topic.id)
        digest.update(topic.name.encode("utf-8", "surrogatepass"))
        digest.update(len(topic.partitions).to_bytes(4, "big"))
        brokers = self.image.brokers
        for index, partition in topic.partitions.items():
            racks = sorted(
                broker.rack
                for replica in partition.replicas
                if (broker := brokers.get(replica)) is not None and broker.rack
            )
            if racks:
                digest.update(index.to_bytes(4, "big"))
                digest.update("\x00".join(racks).encode("utf-8", "surrogatepass"))
        value = int.from_bytes(digest.digest(), "big", signed=True)
        self._hashes[topic.name] = (topic, value)
        if len(self._hashes) > 2 * len(self.topics.by_name) + 64:
            self._hashes = {
                name: kept for name, kept in self._hashes.items() if name in self.topics.by_name
            }
        return value
