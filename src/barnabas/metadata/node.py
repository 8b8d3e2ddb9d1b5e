"""The metadata of a running node: its replica of the log, its image, and a way to the controller.

Every node keeps the metadata log, as a voter of the quorum or as an observer, and applies what is
committed to its image. Requests that change metadata go to the active controller, wherever that
is: `handle` decides them here while this node leads the quorum, and passes them on otherwise.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.base.disk import Disk
from barnabas.base.ids import Uuid
from barnabas.base.network import Network
from barnabas.log.errors import LogDirFailure
from barnabas.metadata.active_controller import ActiveController
from barnabas.metadata.bootstrap import read_bootstrap
from barnabas.metadata.broker_lifecycle import BrokerLifecycle, RegistrationError
from barnabas.metadata.controller.refusals import refuse
from barnabas.metadata.controller_channel import ANONYMOUS, QUORUM_REQUESTS, ControllerChannel
from barnabas.metadata.directories import NodeDirectories, load_directories
from barnabas.metadata.effective_config import EffectiveConfig
from barnabas.metadata.features import KRAFT_VERSION, check_finalized
from barnabas.metadata.ids import RandomSource, random_uuid
from barnabas.metadata.image import Endpoint, MetadataImage
from barnabas.metadata.membership import Membership
from barnabas.metadata.metadata_log import (
    bootstrap_servers,
    controller_endpoints,
    known_controllers,
    local_voter,
    open_metadata_log,
    static_voters,
)
from barnabas.metadata.peers import ControllerPeers
from barnabas.metadata.publisher import ImageListener, ImagePublisher
from barnabas.metadata.registration import (
    controller_registration,
    directory_assignment,
    recovery_report,
)
from barnabas.metadata.snapshotter import Snapshotter
from barnabas.metadata.storage_format import metadata_directory
from barnabas.protocol.apis import APIS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.schema import Message
from barnabas.raft.interfaces import NotLeaderError
from barnabas.raft.node import RaftNode
from barnabas.raft.recovery import LogBatch
from barnabas.raft.settings import RaftSettings
from barnabas.raft.snapshot_files import Snapshot, SnapshotId

__all__ = ["ANONYMOUS", "MetadataNode", "RegistrationError"]

FORWARD_TIMEOUT_MS = 60_000
"""How long a request that sets no time of its own looks for a controller, as in Kafka."""
REGISTRATION_RETRY_MS = 500
_API_OF = {api.request: api for api in APIS.values()}

telemetry = logging.getLogger(__name__)


class MetadataNode:
    """One per node. `start` before anything else; `stop` at last."""

    def __init__(
        self,
        *,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        random: RandomSource,
        network: Network,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`on_failure` is called if the metadata log fails, or no controller hears that another
        log directory has: the node must then end.
        """
        self._config = config
        self.effective = EffectiveConfig(config)
        """This node's configuration with what the image sets over it."""
        self._disk = disk
        self._clock = clock
        self._random = random
        self._network = network
        self._on_failure = on_failure
        self.incarnation_id = random_uuid(random)
        self._publisher = ImagePublisher("")
        self._raft: RaftNode | None = None
        self._controller: ActiveController | None = None
        self._channel: ControllerChannel | None = None
        self._lifecycle: BrokerLifecycle | None = None
        self._directories: NodeDirectories | None = None
        self._snapshotter: Snapshotter | None = None
        self._producer_ids: range = range(0)
        self._producer_id_lock = asyncio.Lock()
        self._conditions: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []
        self._registering: asyncio.Task[None] | None = None
        self._is_stopped = False

    # -- what this node knows

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self._publisher.image

    @property
    def directories(self) -> NodeDirectories:
        """The node's log directories and their ids."""
        assert self._directories is not None, "the metadata was not opened"
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
    def controller(self) -> ActiveController | None:
        """This node's controller, active or not; None on a node without that role."""
        return self._controller

    @property
    def lifecycle(self) -> BrokerLifecycle:
        """This broker as the controller sees it."""
        assert self._lifecycle is not None, "the metadata was not started"
        return self._lifecycle

    @property
    def controller_id(self) -> int:
        """The active controller, or -1."""
        return self.raft.leader_id

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration, or -1."""
        return -1 if self._lifecycle is None else self._lifecycle.epoch

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

    async def wait_for(self, condition: Callable[[MetadataImage], bool]) -> None:
        """Return once the committed image fulfils `condition`."""
        if not condition(self.image):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._conditions.append((condition, waiter))
            await waiter

    def _published(self) -> None:
        if not self._conditions:
            return
        left = []
        for condition, waiter in self._conditions:
            if waiter.done():
                continue
            if condition(self.image):
                waiter.set_result(None)
            else:
                left.append((condition, waiter))
        self._conditions = left

    # -- life

    def open(self) -> None:
        """Read whose directories these are; `start` does it where it was not done before.

        Raises MetaPropertiesError where they cannot be used, saying why, and OSError.
        """
        self._directories = load_directories(self._disk, self._config, self._random)

    async def start(self) -> None:
        """Load the metadata log and take part in its quorum.

        A sole voter is the active controller when this returns. Raises MetadataLogError,
        BootstrapError, UnsupportedFeatureError or DecodeError where the log cannot be used,
        saying why, and OSError.
        """
        if self._directories is None:
            self.open()
        directory = metadata_directory(self._config)
        is_controller = "controller" in self._config.process_roles
        self._publisher = ImagePublisher(self.cluster_id)
        self._publisher.add_listener(lambda *_: self._published())
        self._membership = Membership(
            self.cluster_id, self._config.node_id, is_controller, known_controllers(self._config)
        )
        log = open_metadata_log(self._disk, self._clock, self._config, directory)
        self._peers = ControllerPeers(
            self._config, self._network, self._clock, self._random, self._check_response
        )
        raft = self._raft = RaftNode(
            disk=self._disk,
            clock=self._clock,
            random=self._random,
            log=log,
            directory=log.directory,
            cluster_id=self.cluster_id,
            local=local_voter(self._config, self.directories.ids[directory]),
            is_controller=is_controller,
            static_voters=static_voters(self._config),
            bootstrap=bootstrap_servers(self._config),
            settings=RaftSettings.from_config(self._config),
            transport=self._peers,
            listener=self,
            on_failure=self._on_failure,
        )
        if is_controller:
            self._controller = ActiveController(
                config=self._config,
                effective=self.effective,
                raft=raft,
                publisher=self._publisher,
                bootstrap=lambda: read_bootstrap(self._disk, directory),
                clock=self._clock,
                random=self._random,
                network=self._network,
                incarnation_id=self.incarnation_id,
                on_appended=self._note_appended,
                on_failure=self._on_failure,
            )
        self._channel = ControllerChannel(
            self._config, self._clock, self._random, raft, self._peers
        )
        if "broker" in self._config.process_roles:
            self._lifecycle = BrokerLifecycle(
                config=self._config,
                clock=self._clock,
                controller=self,
                cluster_id=self.cluster_id,
                incarnation_id=self.incarnation_id,
                log_dirs=self._log_dirs(),
                image=lambda: self.image,
                wait_for=self.wait_for,
                on_failure=self._on_failure,
            )
        await raft.start()
        if raft.is_leader and self._controller is not None and not self._controller.is_active:
            self.leader_changed(raft.leader_id, raft.epoch)
        check_finalized(self.image.features)
        self._snapshotter = Snapshotter(
            raft, self._publisher, self._clock, self._config, self._publisher.loaded_bytes
        )
        self._publisher.on_applied = self._note_appended
        if self._controller is not None:
            if self._controller.is_active:
                await raft.wait_committed(raft.log_end_offset - 1)
            self._registering = asyncio.ensure_future(self._register_controller())
            if self._controller.is_active:
                await self._registering

    def _note_appended(self, size_bytes: int) -> None:
        if self._snapshotter is not None:
            self._snapshotter.appended(size_bytes)

    def _check_response(self, host: str, port: int, response: object) -> None:
        error = self._membership.contradiction(host, port, response)
        if error is not None:
            self.raft.fail(error)

    # -- RaftListener

    def load_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        self._publisher.load_snapshot(snapshot_id, snapshot)

    def apply(self, batches: list[LogBatch]) -> None:
        self._publisher.apply(batches)

    def committed(self, high_watermark: int) -> None:
        self._publisher.committed(high_watermark)

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        controller = self._controller
        if controller is not None:
            if leader_id == self._config.node_id:
                controller.activate()
            else:
                controller.deactivate()
        if self._channel is not None:
            self._channel.leader_changed()

    async def _register_controller(self) -> None:
        """Say who this controller is and what it can run (KIP-919)."""
        await self.wait_for(lambda image: not image.is_empty)
        if not self.image.metadata_version.has_controller_registration:
            return
        request = controller_registration(
            controller_id=self._config.node_id,
            incarnation_id=self.incarnation_id,
            listeners=controller_endpoints(self._config),
        )
        while True:
            response = await self.handle(request)
            if response.error_code == ErrorCode.NONE:
                return
            name = ErrorCode.of(response.error_code).name
            telemetry.error("this controller cannot be registered: %s", name)
            if response.error_code != ErrorCode.REQUEST_TIMED_OUT:
                return

    # -- the broker's own requests

    async def register_broker(
        self, listeners: Mapping[str, Endpoint], *, previous_broker_epoch: int = -1
    ) -> int:
        """Register this node as a broker, fenced, and return its epoch.

        `listeners` are the advertised ones. `previous_broker_epoch` is that of the last
        incarnation if it ended cleanly (its `.kafka_cleanshutdown` says so); otherwise what it
        was in sync with no longer counts (KIP-966). Raises RegistrationError.
        """
        return await self.lifecycle.register(listeners, previous_broker_epoch)

    async def unfence_broker(self) -> None:
        """Let this broker take part: it joins ISRs and leads what it can."""
        await self.lifecycle.unfence()
        report = recovery_report(self.image, self._config.node_id, self.broker_epoch)
        if report is not None:
            await self.handle(report)

    async def controlled_shutdown(self) -> None:
        """Give this broker's leaderships away, as far as others can take them, and fence it.

        After it no partition is led here. Harmless when the broker was never registered, and when
        the metadata log has failed: then nobody can be told.
        """
        if self._lifecycle is not None and self.raft.failure is None:
            await self._lifecycle.shut_down()

    async def directories_failed(self, directory_ids: list[Uuid]) -> None:
        """Tell the controller that log directories of this broker went offline."""
        await self.lifecycle.directories_failed(directory_ids)

    async def assign_directories(self, placed: Mapping[Uuid, Mapping[Uuid, Sequence[int]]]) -> Any:
        """Tell the controller which directory holds which replicas of this broker.

        `placed` has partitions by topic id by directory id; the answer goes by the same. A broker
        with one directory need say so only when that is another one than before.
        """
        return await self.handle(
            directory_assignment(self._config.node_id, self.broker_epoch, placed)
        )

    def _log_dirs(self) -> list[Uuid]:
        """The ids of the directories that hold partitions (a metadata.log.dir may not)."""
        ids = self.directories.ids
        return [ids[path] for path in dict.fromkeys(self._config.log_dirs) if path in ids]

    async def allocate_producer_id(self) -> int:
        """A producer id that was never given before. Raises RegistrationError if there is none."""
        async with self._producer_id_lock:
            if not self._producer_ids:
                response = await self.handle(
                    AllocateProducerIdsRequest(
                        broker_id=self._config.node_id, broker_epoch=self.broker_epoch
                    )
                )
                if response.error_code != ErrorCode.NONE:
                    raise RegistrationError(ErrorCode.of(response.error_code))
                start = response.producer_id_start
                self._producer_ids = range(start, start + response.producer_id_len)
            producer_id = self._producer_ids[0]
            self._producer_ids = self._producer_ids[1:]
            return producer_id

    async def stop(self) -> None:
        """Finish what is under way, leave the quorum and close the metadata log."""
        self._is_stopped = True
        if self._channel is not None:
            self._channel.leader_changed()  # who still looks for a controller looks no more
        if self._registering is not None:
            self._registering.cancel()
            await asyncio.wait([self._registering])
        if self._lifecycle is not None:
            await self._lifecycle.close()
        if self._controller is not None:
            await self._controller.close()
        if self._snapshotter is not None:
            await self._snapshotter.stop()
        if self._raft is not None:
            try:
                await self._raft.stop()
            except LogDirFailure as failure:
                telemetry.error("the metadata log was not closed cleanly: %s", failure)
            self._peers.close()

    # -- requests

    async def handle(
        self,
        request: Message,
        *,
        principal: str = ANONYMOUS,
        client_address: str = "",
        api_version: int | None = None,
        deadline_ms: int | None = None,
    ) -> Any:
        """The active controller's response to a request, once its records are committed.

        `api_version` is the one that `request` came in, where it came from a client.

        Without a controller it waits for one, for `deadline_ms` or a minute, and then answers
        REQUEST_TIMED_OUT; so it does when the commit takes longer, and the change may still
        happen, as in Kafka. Raises the failure of the metadata log.
        """
        limit_ms = FORWARD_TIMEOUT_MS if deadline_ms is None else deadline_ms
        end_ms = self._clock.monotonic_ms() + limit_ms
        assert self._channel is not None, "the metadata was not started"
        call = self._channel.call(request, api_version, principal, client_address)
        while not self._is_stopped:
            left_ms = max(end_ms - self._clock.monotonic_ms(), 1)
            if self._controller is not None and self._controller.is_active:
                try:
                    return await self.decide_here(request, deadline_ms=left_ms)
                except NotLeaderError:
                    pass  # deposed meanwhile: ask the next one
                except TimeoutError:
                    return refuse(request, ErrorCode.REQUEST_TIMED_OUT)
            else:
                response = await self._channel.ask(call, left_ms)
                if response is not None:
                    return response
            left_ms = end_ms - self._clock.monotonic_ms()
            if left_ms <= 0 or not await self._channel.wait_to_retry(call, left_ms):
                return refuse(request, ErrorCode.REQUEST_TIMED_OUT)
        return refuse(request, ErrorCode.NOT_CONTROLLER)

    async def decide_here(self, request: Message, *, deadline_ms: int | None = None) -> Any:
        """As `handle`, but only while this node is the active controller.

        Raises NotLeaderError otherwise, and TimeoutError.
        """
        if type(request) in QUORUM_REQUESTS:
            api = _API_OF[type(request)]
            return await self.raft.handle(request, api.max_stable_version)
        if self._controller is None:
            raise NotLeaderError
        return await self._controller.handle(request, deadline_ms)
