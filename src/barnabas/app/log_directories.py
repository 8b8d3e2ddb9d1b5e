"""A broker's log directories: the controller learns what lies where, what failed, what is cordoned.

The controller needs to know which directory holds which replica, to move leaderships when one of
them fails (KIP-858); new replicas go to none that is cordoned, and to no broker all of whose
directories are (KIP-1066).
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.protocol.errors import ErrorCode

telemetry = logging.getLogger(__name__)


class LogDirectories:
    """The directories of one broker."""

    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        replicas: ReplicaManager,
        metadata: MetadataNode,
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """`start` runs work beside everything else."""
        self._node_id = node_id
        self._logs = logs
        self._replicas = replicas
        self._metadata = metadata
        self._start = start
        replicas.moves.assign = self._assign

    # -- where replicas lie

    def image_changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        """Follow one change of the image; the replicas have followed it."""
        if delta.topics and len(self._logs.log_dirs) > 1:
            self._start(self.say(image))

    def opened(self) -> None:
        """Partitions came to be after the image that places them was applied."""
        if len(self._logs.log_dirs) > 1 and not self._replicas.has_waiting:
            self._start(self.say(self._metadata.image))

    async def say(self, image: MetadataImage) -> None:
        """Tell the controller where replicas lie that it believes elsewhere."""
        ids = self._logs.directory_ids
        misplaced: dict[Uuid, dict[Uuid, list[int]]] = {}
        for partition in self._replicas:
            name, index = partition.topic_partition
            known = image.topics.partition(name, index)
            directory_id = ids.get(self._replicas.moves.directory_of(partition))
            if known is None or directory_id is None or self._node_id not in known.replicas:
                continue
            place = known.replicas.index(self._node_id)
            if place < len(known.directories) and known.directories[place] != directory_id:
                by_topic = misplaced.setdefault(directory_id, {})
                by_topic.setdefault(partition.topic_id, []).append(index)
        if misplaced:
            await self._metadata.assign_directories(misplaced)

    async def _assign(self, directory_id: Uuid, topic_id: Uuid, index: int) -> ErrorCode:
        """Tell the controller of one replica; what it says to that."""
        response = await self._metadata.assign_directories({directory_id: {topic_id: [index]}})
        if response.error_code != ErrorCode.NONE:
            return ErrorCode.of(response.error_code)
        return ErrorCode.of(response.directories[0].topics[0].partitions[0].error_code)

    # -- what failed

    def failed(self, directory: str) -> None:
        """A directory went offline."""
        self._replicas.directory_failed(directory)
        directory_id = self._logs.directory_ids.get(directory)
        if directory_id is not None and self._metadata.broker_epoch >= 0:
            self._start(self._metadata.directories_failed([directory_id]))

    async def say_failed(self) -> None:
        """Tell the controller what failed before this broker was registered with it."""
        ids = self._logs.directory_ids
        failed = [path for path in self._logs.log_dirs if path in self._logs.offline_dirs]
        known = [ids[path] for path in failed if path in ids]
        if known:
            await self._metadata.directories_failed(known)

    # -- what is cordoned

    def configure(self, config: NodeConfig) -> None:
        """Follow `cordoned.log.dirs`: reported to the controller at once, or when the broker
        joins."""
        cordoned = config.cordoned_log_dirs
        if cordoned == self._logs.cordoned_dirs:
            return
        names = ", ".join(cordoned) or "none"
        telemetry.info("cordoned log directories: %s", names)
        self._logs.cordoned_dirs = cordoned
        ids = self._logs.directory_ids
        lifecycle = self._metadata.lifecycle
        lifecycle.cordoned_log_dirs = [ids[path] for path in cordoned if path in ids]
        if lifecycle.has_joined:
            self._start(lifecycle.beat())
