"""The metadata of a running node: its log, its image, and the controller that changes it.

A request is decided against an image that includes what is appended but not committed; its
records go to the log, are replayed at once into that image, and when the quorum has committed
them, listeners get the change and then the requester its response. Decisions do not wait for
each other's fsync: those that are taken while one is under way share the next.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.base.disk import Disk
from barnabas.base.ids import Uuid
from barnabas.metadata.bootstrap import read_bootstrap
from barnabas.metadata.controller.activation import activation_records
from barnabas.metadata.controller.decision import ControllerState
from barnabas.metadata.controller.handlers import DECIDE
from barnabas.metadata.controller.refusals import refuse
from barnabas.metadata.describe_quorum import describe_quorum
from barnabas.metadata.directories import NodeDirectories, load_directories
from barnabas.metadata.effective_config import EffectiveConfig
from barnabas.metadata.features import KRAFT_VERSION, check_finalized
from barnabas.metadata.ids import RandomSource, random_uuid
from barnabas.metadata.image import Endpoint, MetadataImage
from barnabas.metadata.loader import RecordBatch
from barnabas.metadata.metadata_log import (
    controller_endpoints,
    local_voter,
    open_metadata_log,
    static_voters,
)
from barnabas.metadata.publisher import ImageListener, ImagePublisher
from barnabas.metadata.records import MetadataRecord, encode_record
from barnabas.metadata.registration import (
    broker_registration,
    controller_registration,
    recovery_report,
)
from barnabas.metadata.snapshotter import Snapshotter
from barnabas.metadata.storage_format import metadata_directory
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.raft.node import NotLeaderError, RaftNode

RECORDS_PER_BATCH_MAX = 10_000
"""A decision that need not be atomic is appended in batches of this size."""
ANONYMOUS = "User:ANONYMOUS"


class MetadataNode:
    """One per node. `start` before anything else; `stop` at last."""

    def __init__(
        self,
        *,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        random: RandomSource,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`on_failure` is called once if the metadata log fails: the node must then end."""
        self._config = config
        self.effective = EffectiveConfig(config)
        """This node's configuration with what the image sets over it."""
        self._disk = disk
        self._clock = clock
        self._random = random
        self._on_failure = on_failure
        self._incarnation_id = random_uuid(random)
        self._publisher = ImagePublisher("")
        self._raft: RaftNode | None = None
        self._directories: NodeDirectories | None = None
        self._snapshotter: Snapshotter | None = None
        self._producer_ids: range = range(0)
        self._producer_id_lock = asyncio.Lock()
        self._broker_epoch = -1

    # -- what this node knows

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self._publisher.image

    @property
    def directories(self) -> NodeDirectories:
        """The node's log directories and their ids."""
        assert self._directories is not None, "the metadata was not started"
        return self._directories

    @property
    def cluster_id(self) -> str:
        """The cluster this node's directories belong to."""
        return self.directories.cluster_id

    @property
    def raft(self) -> RaftNode:
        """The replica of the metadata log."""
        assert self._raft is not None, "the metadata was not started"
        return self._raft

    @property
    def controller_id(self) -> int:
        """The active controller, or -1."""
        return self.raft.leader_id

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration, or -1."""
        return self._broker_epoch

    @property
    def finalized_features(self) -> dict[str, int]:
        """Finalized feature levels, kraft.version (which the quorum keeps) among them."""
        levels = dict(self.image.features)
        if self.raft.kraft_version > 0:
            levels[KRAFT_VERSION] = self.raft.kraft_version
        return levels

    def add_listener(self, listener: ImageListener) -> None:
        """Have `listener(delta, image)` called with each committed change from now on."""
        self._publisher.add_listener(listener)

    # -- life

    async def start(self) -> None:
        """Load the metadata log, become active controller, and register as one.

        Raises MetaPropertiesError, MetadataLogError, BootstrapError, UnsupportedFeatureError or
        DecodeError where the directories cannot be used, saying why, and OSError.
        """
        self._directories = load_directories(self._disk, self._config, self._random)
        directory = metadata_directory(self._config)
        self._publisher = ImagePublisher(self._directories.cluster_id)
        log = open_metadata_log(self._disk, self._clock, self._config, directory)
        self._raft = RaftNode(
            disk=self._disk,
            clock=self._clock,
            log=log,
            directory=log.directory,
            local=local_voter(self._config, self._directories.ids[directory]),
            static_voters=static_voters(self._config),
            listener=self._publisher,
            on_failure=self._on_failure,
        )
        await self._raft.start()
        check_finalized(self.image.features)
        self._snapshotter = Snapshotter(
            self._raft, self._publisher, self._clock, self._config, self._publisher.loaded_bytes
        )
        await self._activate(directory)

    async def _activate(self, directory: str) -> None:
        """Write what a new controller must, and say who it is."""
        records = activation_records(
            self._state(),
            read_bootstrap(self._disk, directory),
            self._publisher.transaction_offset,
        )
        if records:
            await self.raft.wait_committed(self._append(records))
        if self.image.metadata_version.has_controller_registration:
            request = controller_registration(
                controller_id=self._config.node_id,
                incarnation_id=self._incarnation_id,
                listeners=controller_endpoints(self._config),
            )
            response = await self.handle(request)
            assert response.error_code == ErrorCode.NONE, response

    async def register_broker(
        self, listeners: Mapping[str, Endpoint], *, previous_broker_epoch: int = -1
    ) -> int:
        """Register this node as a broker, fenced, and return its epoch.

        `listeners` are the advertised ones. `previous_broker_epoch` is that of the last
        incarnation if it ended cleanly (its `.kafka_cleanshutdown` says so); otherwise what it
        was in sync with no longer counts (KIP-966). Raises RegistrationError.
        """
        response = await self.handle(
            broker_registration(
                broker_id=self._config.node_id,
                cluster_id=self.cluster_id,
                incarnation_id=self._incarnation_id,
                listeners=listeners,
                rack=self._config.string_or_none("broker.rack"),
                log_dirs=self._log_dirs(),
                previous_broker_epoch=previous_broker_epoch,
            )
        )
        if response.error_code != ErrorCode.NONE:
            raise RegistrationError(ErrorCode.of(response.error_code))
        self._broker_epoch = response.broker_epoch
        return self._broker_epoch

    async def unfence_broker(self) -> None:
        """Let this broker take part: it joins ISRs and leads what it can."""
        await self._heartbeat()
        assert not self.image.brokers[self._config.node_id].fenced
        report = recovery_report(self.image, self._config.node_id, self._broker_epoch)
        if report is not None:
            await self.handle(report)

    async def controlled_shutdown(self) -> None:
        """Give this broker's leaderships away, as far as others can take them, and fence it.

        After it no partition is led here. Harmless when the broker was never registered.
        """
        if self._broker_epoch < 0:
            return
        response = await self._heartbeat(want_shut_down=True)
        if not response.should_shut_down:
            response = await self._heartbeat(want_shut_down=True)

    async def directories_failed(self, directory_ids: list[Uuid]) -> None:
        """Tell the controller that log directories of this broker went offline."""
        await self._heartbeat(offline_log_dirs=directory_ids)

    async def assign_directories(self, placed: Mapping[Uuid, Mapping[Uuid, Sequence[int]]]) -> None:
        """Tell the controller which directory holds which replicas of this broker.

        `placed` has partitions by topic id by directory id. Only a broker with several
        directories need say so; with one it is known.
        """
        await self.handle(
            AssignReplicasToDirsRequest(
                broker_id=self._config.node_id,
                broker_epoch=self._broker_epoch,
                directories=[
                    AssignReplicasToDirsRequestDirectoryData(
                        id=directory,
                        topics=[
                            AssignReplicasToDirsRequestTopicData(
                                topic_id=topic_id,
                                partitions=[
                                    AssignReplicasToDirsRequestPartitionData(partition_index=index)
                                    for index in indexes
                                ],
                            )
                            for topic_id, indexes in topics.items()
                        ],
                    )
                    for directory, topics in placed.items()
                ],
            )
        )

    async def _heartbeat(
        self, *, want_shut_down: bool = False, offline_log_dirs: list[Uuid] | None = None
    ) -> Any:
        return await self.handle(
            BrokerHeartbeatRequest(
                broker_id=self._config.node_id,
                broker_epoch=self._broker_epoch,
                current_metadata_offset=self.image.offset,
                want_fence=False,
                want_shut_down=want_shut_down,
                offline_log_dirs=offline_log_dirs or [],
                cordoned_log_dirs=[],
            )
        )

    def _log_dirs(self) -> list[Uuid]:
        """The ids of the directories that hold partitions (a metadata.log.dir may not)."""
        ids = self.directories.ids
        return [ids[path] for path in dict.fromkeys(self._config.log_dirs) if path in ids]

    async def stop(self) -> None:
        """Finish what is under way and close the metadata log."""
        if self._snapshotter is not None:
            await self._snapshotter.stop()
        if self._raft is not None:
            await self._raft.stop()

    # -- requests

    async def handle(
        self, request: Any, *, principal: str = ANONYMOUS, deadline_ms: int | None = None
    ) -> Any:
        """Decide a controller request and return its response once it is committed.

        `deadline_ms` is how long the requester waits: a response that says REQUEST_TIMED_OUT
        then may be for a change that still happens, as in Kafka. A node that is not the active
        controller answers NOT_CONTROLLER. Raises the failure of the metadata log.
        """
        if isinstance(request, DescribeQuorumRequest):
            return describe_quorum(self.raft, request, self._clock.now_ms())
        try:
            decision = DECIDE[type(request)](self._state(), request)
            if decision.records:
                last_offset = self._append(decision.records, is_atomic=decision.is_atomic)
            else:
                # What it was decided on may itself be uncommitted.
                last_offset = self.raft.log_end_offset - 1
            async with asyncio.timeout(None if deadline_ms is None else deadline_ms / 1000):
                await self.raft.wait_committed(last_offset)
        except NotLeaderError:
            return refuse(request, ErrorCode.NOT_CONTROLLER)
        except TimeoutError:
            return refuse(request, ErrorCode.REQUEST_TIMED_OUT)
        return decision.response

    async def allocate_producer_id(self) -> int:
        """A producer id that was never given before. Raises RegistrationError if there is none."""
        async with self._producer_id_lock:
            if not self._producer_ids:
                response = await self.handle(
                    AllocateProducerIdsRequest(
                        broker_id=self._config.node_id, broker_epoch=self._broker_epoch
                    )
                )
                if response.error_code != ErrorCode.NONE:
                    raise RegistrationError(ErrorCode.of(response.error_code))
                start = response.producer_id_start
                self._producer_ids = range(start, start + response.producer_id_len)
            producer_id = self._producer_ids[0]
            self._producer_ids = self._producer_ids[1:]
            return producer_id

    def _state(self) -> ControllerState:
        return ControllerState(
            image=self._publisher.latest,
            effective=self.effective,
            node_id=self._config.node_id,
            random=self._random,
            next_offset=self.raft.log_end_offset,
        )

    def _append(self, records: list[MetadataRecord], *, is_atomic: bool = True) -> int:
        """Append and replay a decision's records; returns the offset of the last."""
        size = len(records) if is_atomic else RECORDS_PER_BATCH_MAX
        iterator = iter(records)
        last_offset = -1
        while batch := list(islice(iterator, size)):
            values = [encode_record(record) for record in batch]
            appended = self.raft.append(values)
            self._publisher.appended(
                RecordBatch(appended.base_offset, self.raft.epoch, self._clock.now_ms(), batch)
            )
            last_offset = appended.last_offset
            if self._snapshotter is not None:
                self._snapshotter.appended(sum(map(len, values)))
        return last_offset


class RegistrationError(Exception):
    """The controller refused this broker; `code` says why."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(f"the controller refused this broker: {code.name}, {code.message}")
        self.code = code
