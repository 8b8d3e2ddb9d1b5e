"""The metadata of a running node: its replica of the log, its image, and a way to the controller.

Every node keeps the metadata log, as a voter of the quorum or as an observer, and applies what is
committed to its image. Requests that change metadata go to the active controller, wherever that
is: `handle` decides them here while this node leads the quorum, and passes them on otherwise.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from barnabas.base.clock import Clock
from barnabas.base.disk import Disk
from barnabas.base.ending import take_all
from barnabas.base.ids import Uuid
from barnabas.base.network import Network
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import TLS_KEYS
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.metadata.active_controller import ActiveController
from barnabas.node.metadata.asker import (
    OWN,
    Asker,
    MutationQuotas,
    NoMutationQuotas,
    RequestChecks,
    Unchecked,
)
from barnabas.node.metadata.bootstrap import read_bootstrap
from barnabas.node.metadata.broker_lifecycle import BrokerLifecycle, RegistrationError
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.node.metadata.controller_channel import (
    QUORUM_REQUESTS,
    ControllerCall,
    ControllerChannel,
)
from barnabas.node.metadata.directories import NodeDirectories, load_directories
from barnabas.node.metadata.dynamic_config import ConfigCallback, DynamicConfig
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.ids import RandomSource, random_uuid
from barnabas.node.metadata.image import Endpoint, MetadataImage
from barnabas.node.metadata.membership import Membership
from barnabas.node.metadata.metadata_log import (
    bootstrap_servers,
    controller_endpoints,
    known_controllers,
    local_voter,
    open_metadata_log,
    static_voters,
)
from barnabas.node.metadata.peers import ControllerPeers
from barnabas.node.metadata.publisher import ImageListener, ImagePublisher
from barnabas.node.metadata.registration import (
    controller_registration,
    directory_assignment,
    recovery_report,
)
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.metadata.scram_credentials import ScramCredentials
from barnabas.node.metadata.snapshotter import Snapshotter
from barnabas.node.raft.interfaces import NotLeaderError
from barnabas.node.raft.node import RaftNode
from barnabas.node.raft.recovery import LogBatch
from barnabas.node.raft.settings import RaftSettings
from barnabas.node.raft.snapshot_files import Snapshot, SnapshotId
from barnabas.protocol.apis import API_OF
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import KRAFT_VERSION, check_finalized
from barnabas.protocol.messages.transactions import AllocateProducerIdsRequest
from barnabas.protocol.schema import Message

__all__ = ["MetadataNode", "RegistrationError"]

FORWARD_TIMEOUT_MS = 60_000
"""The default time for which a request looks for a controller, as in Kafka."""

telemetry = logging.getLogger(__name__)


class MetadataNode:
    """One per node. `open` makes it; `start` before anything else; `stop` at last, started or not.

    Nothing is known of the cluster but its id before `start`.
    """

    def __init__(
        self,
        *,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        random: RandomSource,
        network: Network,
        directories: NodeDirectories,
        log: PartitionLog,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """Use `open`. `log` is the metadata log, in one of `directories`."""
        self._config = config
        self._disk = disk
        self._clock = clock
        self.directories = directories
        """The node's log directories and their ids."""
        self.effective = EffectiveConfig(config)
        """This node's configuration with what the image sets over it."""
        self.scram = ScramCredentials(config, lambda: self.image)
        """By which SCRAM logins are decided."""
        self.incarnation_id = random_uuid(random)
        directory = config.metadata_log_dir
        is_controller = "controller" in config.process_roles
        self._membership = Membership(
            self.cluster_id, config.node_id, is_controller, known_controllers(config)
        )
        self._publisher = ImagePublisher(self.cluster_id, self._note_appended)
        self._publisher.add_listener(self._changed)
        self._listeners: list[ImageListener] = []
        self._dynamic_config = DynamicConfig(self.effective)
        self._peers = ControllerPeers(config, network, clock, random, self._check_response)
        self._dynamic_config.on_config(TLS_KEYS, self._peers.follow)
        self.raft = RaftNode(
            disk=disk,
            clock=clock,
            random=random,
            log=log,
            directory=log.directory,
            cluster_id=self.cluster_id,
            local=local_voter(config, directories.ids[directory]),
            is_controller=is_controller,
            static_voters=static_voters(config),
            bootstrap=bootstrap_servers(config),
            settings=RaftSettings.from_config(config),
            transport=self._peers,
            listener=self,
            on_failure=on_failure,
        )
        """The replica of the metadata log."""
        self._snapshotter = Snapshotter(self.raft, self._publisher, clock, config)
        self.controller: ActiveController | None = None
        """This node's controller, active or not; None on a node without that role."""
        if is_controller:
            self.controller = ActiveController(
                config=config,
                effective=self.effective,
                raft=self.raft,
                publisher=self._publisher,
                bootstrap=lambda: read_bootstrap(disk, directory),
                clock=clock,
                random=random,
                network=network,
                incarnation_id=self.incarnation_id,
                on_appended=self._note_appended,
                on_failure=on_failure,
            )
        self._channel = ControllerChannel(config, clock, random, self.raft, self._peers)
        self.lifecycle = BrokerLifecycle(
            config=config,
            clock=clock,
            controller=self,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            log_dirs=self._log_dirs(),
            image=lambda: self.image,
            wait_for=self.wait_for,
            on_failure=on_failure,
        )
        """This broker as the controller sees it: never registered on a node without that role."""
        self.checks: RequestChecks = Unchecked()
        """Checks of what clients and other nodes may ask of the controller."""
        self.mutation_quotas: MutationQuotas = NoMutationQuotas()
        """Limits on the partitions that clients create and delete."""
        self._refused_by: set[tuple[str, int]] = set()
        self._producer_ids: range = range(0)
        self._producer_id_lock = asyncio.Lock()
        self._conditions: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    @classmethod
    def open(
        cls,
        *,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        random: RandomSource,
        network: Network,
        on_failure: Callable[[Exception], None],
    ) -> "MetadataNode":
        """Read whose directories these are, and open the metadata log.

        `on_failure` is called if the metadata log fails, or no controller hears that another
        log directory has: the node must then end. Raises MetaPropertiesError or MetadataLogError
        where the directories cannot be used, saying why, and OSError.
        """
        directories = load_directories(disk, config, random)
        return cls(
            config=config,
            disk=disk,
            clock=clock,
            random=random,
            network=network,
            directories=directories,
            log=open_metadata_log(disk, clock, config, config.metadata_log_dir),
            on_failure=on_failure,
        )

    # -- what this node knows

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self._publisher.image

    @property
    def cluster_id(self) -> str:
        """The cluster this node's directories belong to."""
        return self.directories.cluster_id

    @property
    def controller_id(self) -> int:
        """The active controller, or -1."""
        return self.raft.leader_id

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration, or -1."""
        return self.lifecycle.epoch

    @property
    def finalized_features(self) -> dict[str, int]:
        """Finalized feature levels, kraft.version (which the quorum keeps) among them."""
        levels = dict(self.image.features)
        if self.raft.kraft_version > 0:
            levels[KRAFT_VERSION] = self.raft.kraft_version
        return levels

    def add_listener(self, listener: ImageListener) -> None:
        """Have `listener(delta, image)` called with each committed change from now on."""
        self._listeners.append(listener)

    def on_config(self, keys: Collection[str], callback: ConfigCallback) -> None:
        """Call `callback(config)` now, and whenever the value of one of the broker `keys` changes.

        All listeners have been called with the change by then. See `DynamicConfig.on_config`.
        """
        self._dynamic_config.on_config(keys, callback)

    async def wait_for(self, condition: Callable[[MetadataImage], bool]) -> None:
        """Return once the committed image fulfils `condition`."""
        if not condition(self.image):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._conditions.append((condition, waiter))
            await waiter

    def _changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        self._wake_waiters()
        for listener in self._listeners:
            listener(delta, image)
        self._dynamic_config.image_changed(delta, image)

    def _wake_waiters(self) -> None:
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

    async def start(self) -> None:
        """Load the metadata log and take part in its quorum.

        A sole voter is the active controller when this returns. Raises MetadataLogError,
        BootstrapError, UnsupportedFeatureError or DecodeError where the log cannot be used,
        saying why, and OSError.
        """
        raft, controller = self.raft, self.controller
        await raft.start()
        self.scram.recovered(raft.recovered_batches, self._disk, self._config.metadata_log_dir)
        if raft.is_leader and controller is not None and not controller.is_active:
            self.leader_changed(raft.leader_id, raft.epoch)
        check_finalized(self.image.features)
        self._snapshotter.start(self._publisher.loaded_bytes)
        if controller is not None:
            if controller.is_active:
                await raft.wait_committed(raft.log_end_offset - 1)
            registering = asyncio.ensure_future(self._register_controller())
            self._tasks.add(registering)
            if controller.is_active:
                await registering

    def _note_appended(self, size_bytes: int) -> None:
        self._snapshotter.appended(size_bytes)

    def _check_response(self, host: str, port: int, response: object) -> None:
        error = self._membership.contradiction(host, port, response)
        if error is not None:
            self.raft.fail(error)
        if getattr(response, "error_code", 0) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self._note_refused(host, port)
        else:
            self._refused_by.discard((host, port))

    def _note_refused(self, host: str, port: int) -> None:
        """Say once that a controller does not take this node for one of its cluster."""
        if (host, port) not in self._refused_by:
            self._refused_by.add((host, port))
            telemetry.error(
                "the controller at %s:%d refuses this node's requests "
                "(CLUSTER_AUTHORIZATION_FAILED). There, super.users must hold this node's "
                "principal, or an ACL must allow it ClusterAction on the cluster; over PLAINTEXT "
                "it is User:ANONYMOUS",
                host,
                port,
            )

    # -- RaftListener

    def load_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        self._publisher.load_snapshot(snapshot_id, snapshot)

    def apply(self, batches: list[LogBatch]) -> None:
        self._publisher.apply(batches)

    def committed(self, high_watermark: int) -> None:
        self._publisher.committed(high_watermark)

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        controller = self.controller
        if controller is not None:
            if leader_id == self._config.node_id:
                controller.activate()
            else:
                controller.deactivate()
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
            telemetry.error("cannot register this controller: %s", name)
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
        if self.raft.failure is None:
            await self.lifecycle.shut_down()

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
        """A producer id that was never given before. Raises RegistrationError if none is left."""
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
        """Finish what is under way, leave the quorum and close the metadata log.

        Raises the first error of a part, when all else is closed.
        """
        self._is_stopped = True
        self._channel.leader_changed()  # who still looks for a controller looks no more
        await take_all(
            self._end_tasks,
            self.lifecycle.close,
            *(() if self.controller is None else (self.controller.close,)),
            self._snapshotter.stop,
            self._stop_raft,
            self._peers.close,
        )

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _stop_raft(self) -> None:
        try:
            await self.raft.stop()
        except LogDirFailure as failure:
            telemetry.error("the metadata log was not closed cleanly: %s", failure)

    # -- requests

    async def handle(
        self,
        request: Message,
        *,
        asker: Asker = OWN,
        api_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """The active controller's response to a request, once its records are committed.

        `api_version` is the one that `request` came in, where it came from a client: then `asker`
        is that client.

        Without a controller it waits for one, for `timeout_ms` or a minute, and then answers
        REQUEST_TIMED_OUT; so it does when the commit takes longer, and the change may still
        happen, as in Kafka. Raises the failure of the metadata log.
        """
        limit_ms = FORWARD_TIMEOUT_MS if timeout_ms is None else timeout_ms
        end_ms = self._clock.monotonic_ms() + limit_ms
        call = ControllerCall(request, api_version, asker)
        while not self._is_stopped:
            left_ms = max(end_ms - self._clock.monotonic_ms(), 1)
            if self.controller is not None and self.controller.is_active:
                try:
                    return await self.decide_here(request, asker=asker, timeout_ms=left_ms)
                except NotLeaderError:
                    pass  # deposed: ask the next one
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

    async def decide_here(
        self,
        request: Message,
        *,
        asker: Asker,
        timeout_ms: int | None = None,
    ) -> Any:
        """As `handle`, but only while this node is the active controller.

        Every request that the controller or the quorum decides comes through here, with who asked
        for it, whichever node that was: this is where it is checked whether they may.

        Raises NotLeaderError otherwise, and TimeoutError.
        """
        controller = self.controller
        if type(request) in QUORUM_REQUESTS:
            api = API_OF[type(request)]
            image = self.image

            async def decide(left: Message) -> Any:
                return await self.raft.handle(left, api.max_stable_version)
        else:
            if controller is None or not controller.is_active:
                raise NotLeaderError
            image = self._publisher.latest

            async def decide(left: Message) -> Any:
                mutations = self.mutation_quotas.mutations_of(asker, left)
                response = await controller.handle(
                    left, timeout_ms, requester=asker.principal, mutations=mutations
                )
                if mutations.throttle_ms:
                    response.throttle_time_ms = mutations.throttle_ms
                return response

        if asker.is_own:
            return await decide(request)
        return await self.checks.decide(asker, request, image, decide)
