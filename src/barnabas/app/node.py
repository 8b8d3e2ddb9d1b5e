"""A node put together: the composition root.

Start, in this order: log directories are recovered, listeners bound (so that ports are known), the
node joins the metadata quorum, its broker is registered, partitions and groups are taken up, and
only then is the first client accepted. Stop goes the other way and ends with the clean-shutdown
marker. What only one of the two roles needs is left out where the node does not play it.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine, Sequence
from random import Random, SystemRandom
from typing import Any

from barnabas.app.background import Background
from barnabas.app.housekeeping import keep_coordinators, keep_logs
from barnabas.app.listening import CannotListenError, follow_connection_limits, server_limits
from barnabas.app.log_directories import LogDirectories
from barnabas.app.shares import make_shares
from barnabas.app.transactions import make_transactions
from barnabas.base.clock import Clock, SystemClock
from barnabas.base.config.node import NodeConfig
from barnabas.base.disk import Disk
from barnabas.base.local_disk import LocalDisk
from barnabas.base.network import Network
from barnabas.broker.apis.topics.auto_create import create_topics
from barnabas.broker.controller.handlers import CONTROLLER_ROUTES, ControllerServices
from barnabas.broker.dispatch import Dispatcher
from barnabas.broker.fetch.sessions import FetchSessionCache
from barnabas.broker.handlers import ROUTES
from barnabas.broker.recently_fenced import RecentlyFencedBrokers
from barnabas.broker.services import BrokerServices
from barnabas.coordinator.group.service import GroupCoordinator
from barnabas.coordinator.internal_topic import InternalTopic
from barnabas.coordinator.share.service import SHARE_GROUP_STATE, ShareCoordinator
from barnabas.coordinator.transaction.service import TRANSACTION_STATE, TransactionCoordinator
from barnabas.log.compaction.compactor import Compactor, Worker
from barnabas.log.compaction.inline_worker import InlineWorker
from barnabas.log.compaction.process_worker import ProcessWorker
from barnabas.log.compaction.settings import CompactionSettings
from barnabas.log.config import LogConfig
from barnabas.log.manager import LogManager
from barnabas.metadata.broker_lifecycle import UnreportedDirectoryError
from barnabas.metadata.broker_peers import BrokerPeers
from barnabas.metadata.image import Endpoint, MetadataImage
from barnabas.metadata.node import MetadataNode
from barnabas.metadata.replay import ImageDelta
from barnabas.net.server import Server
from barnabas.net.tcp import TcpNetwork
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.share.partitions import SharePartitions
from barnabas.share.settings import ShareSettings

CONSUMER_OFFSETS = "__consumer_offsets"
COORDINATED = frozenset({CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE})
"""Topics whose leaders coordinate something."""
LOCK_FILE = ".lock"
SECURITY_PROTOCOL_NUMBERS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

telemetry = logging.getLogger(__name__)


class Node:
    """One node of a cluster."""

    def __init__(
        self,
        config: NodeConfig,
        disk: Disk | None = None,
        clock: Clock | None = None,
        network: Network | None = None,
        random: Random | None = None,
    ) -> None:
        self.config = config
        self._disk = disk if disk is not None else LocalDisk()
        self._clock = clock if clock is not None else SystemClock()
        self._network = network if network is not None else TcpNetwork()
        self._random = random if random is not None else SystemRandom()
        self._background = Background(self._clock)
        self._ports: dict[str, int] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._is_joined = False
        self._has_started = False
        self._dispatcher: Dispatcher[BrokerServices] | None = None
        self._server: Server | None = None
        self._controller_dispatcher: Dispatcher[ControllerServices] | None = None
        self._controller_server: Server | None = None
        self.compactor: Compactor | None = None
        """None where `log.cleaner.enable` is false, and until the node serves."""
        self.failed: asyncio.Event = asyncio.Event()
        """Set when the node cannot go on: its metadata log failed, or a directory of which no
        controller hears. `failure` says why.
        """
        self.failure: Exception | None = None

    async def start(self) -> None:
        """Start and serve. Raises what says why it cannot (one line each, see `cli.errors`)."""
        config = self.config
        roles = config.process_roles
        self._lock_directories()
        self.metadata = MetadataNode(
            config=config,
            disk=self._disk,
            clock=self._clock,
            random=self._random,
            network=self._network,
            on_failure=self._cannot_go_on,
        )
        self.metadata.open()
        if "broker" in roles:
            self._load_logs()
            self._make_broker()
        if "controller" in roles:
            self._make_controller()
        try:
            await self._serve()
        except BaseException:
            await self._abandon()
            raise
        self._has_started = True

    async def _serve(self) -> None:
        await self.metadata.start()
        follow_connection_limits(self.metadata, self._controller_server, self._server)
        if self._controller_server is not None:
            self._controller_server.start()
        if self._server is not None:
            await self._join()
            self._is_joined = True
            self._server.start()
            self._schedule()

    async def _abandon(self) -> None:
        """Let go of everything: the node cannot start, or is stopped before it has."""
        for server in (self._server, self._controller_server):
            if server is not None:
                server.close()
        await self.metadata.stop()
        if self._server is not None:
            await self.replicas.close()
            self._close_logs()

    def _close_logs(self) -> None:
        """Close the logs; a broker that was not registered leaves the epoch of its last end."""
        epoch = self.metadata.broker_epoch
        self.logs.shutdown(epoch if epoch >= 0 else self._clean_broker_epoch())

    def _load_logs(self) -> None:
        """Recover the logs, before anything waits for this node."""
        config = self.config
        # What was set for single topics is not known yet; `ReplicaManager.load` brings it.
        self.logs = LogManager(
            self._disk,
            config.log_dirs,
            self._clock,
            self._topic_log_config(self.metadata.image, ""),
            random=self._random,
            on_directory_offline=self._directory_offline,
            producer_id_expiration_ms=config.int("producer.id.expiration.ms"),
        )
        self.logs.load()

    def _make_broker(self) -> None:
        """What serves clients, with its listeners bound."""
        config = self.config
        self.replicas = ReplicaManager(
            config.node_id,
            self.logs,
            self._topic_log_config,
            clock=self._clock,
            random=self._random,
            config=config,
            network=self._network,
            ask_controller=self.metadata.handle,
            broker_epoch=lambda: self.metadata.broker_epoch,
        )
        self.directories = LogDirectories(
            config.node_id, self.logs, self.replicas, self.metadata, self._start
        )
        offsets_topic = InternalTopic(CONSUMER_OFFSETS, self.replicas, self._clock)
        self.groups = GroupCoordinator(config, self._clock, self._random, offsets_topic)
        peers = BrokerPeers(
            config, self._network, self._clock, self._random, lambda: self.metadata.image
        )
        parts = make_transactions(
            config,
            self._clock,
            peers,
            lambda: self.metadata.image,
            self.replicas,
            self.groups,
            lambda: self._services.allocate_producer_id(),
        )
        self.transactions, self.verifier = parts.coordinator, parts.verifier
        self.shares = make_shares(
            config,
            self._clock,
            peers,
            lambda: self.metadata.image,
            self.replicas,
            self.groups,
            source=self._random,
            create_topic=lambda: create_topics(self._services, [SHARE_GROUP_STATE]),
        )
        self.share_partitions = SharePartitions(
            self._clock,
            self.replicas,
            self.shares.persister,
            ShareSettings(config, lambda: self.metadata.image),
        )
        self.recently_fenced = RecentlyFencedBrokers(
            self._clock, config.int("broker.session.timeout.ms")
        )
        services = self._services = BrokerServices(
            config=config,
            clock=self._clock,
            random=self._random,
            node_id=config.node_id,
            cluster_id=self.metadata.cluster_id,
            metadata=self.metadata,
            replicas=self.replicas,
            logs=self.logs,
            groups=self.groups,
            transactions=self.transactions,
            verifier=self.verifier,
            marker_writer=parts.marker_writer,
            shares=self.shares.coordinator,
            persister=self.shares.persister,
            share_groups=self.shares.groups,
            share_partitions=self.share_partitions,
            recently_fenced=self.recently_fenced,
            fetch_sessions=FetchSessionCache(
                config.int("max.incremental.fetch.session.cache.slots"),
                lambda: self._random.getrandbits(31),
            ),
            fetch_max_bytes=config.int("fetch.max.bytes"),
        )
        self._dispatcher = Dispatcher(services, ROUTES)
        self._server = Server(
            self._network, self._clock, self._dispatcher, server_limits(self.config)
        )
        self._bind(self._server, is_controller=False)

    def _make_controller(self) -> None:
        """What serves the quorum, brokers and admin tools, with its listeners bound."""
        services = ControllerServices(
            clock=self._clock,
            random=self._random,
            cluster_id=self.metadata.cluster_id,
            metadata=self.metadata,
        )
        self._controller_dispatcher = Dispatcher(services, CONTROLLER_ROUTES)
        self._controller_server = Server(
            self._network,
            self._clock,
            self._controller_dispatcher,
            server_limits(self.config),
            requests_overlap=True,
        )
        self._bind(self._controller_server, is_controller=True)

    def _lock_directories(self) -> None:
        """See that no other node uses the directories. Raises DirectoryInUseError."""
        for directory in dict.fromkeys((*self.config.log_dirs, self.config.metadata_log_dir)):
            if self._disk.is_dir(directory):
                try:
                    self._disk.lock(os.path.join(directory, LOCK_FILE))
                except OSError as error:
                    telemetry.error("%s cannot be locked: %s", directory, error)

    def _bind(self, server: Server, *, is_controller: bool) -> None:
        """Bind the listeners of one role."""
        for listener in self.config.listeners:
            if (listener.name in self.config.controller_listener_names) == is_controller:
                try:
                    port = server.listen(listener.name, listener.host, listener.port)
                except OSError as error:
                    raise CannotListenError(listener, error) from error
                self._ports[listener.name] = port

    async def _join(self) -> None:
        """Take up the cluster's state and become part of it."""
        await self.metadata.register_broker(
            self.advertised_endpoints(), previous_broker_epoch=self._clean_broker_epoch()
        )
        self.directories.cordon(self.metadata.image)
        self.replicas.load(self.metadata.image)
        self.replicas.start()
        self.groups.image_changed(self.metadata.image, has_new_topics=True)
        self.recently_fenced.load(self.metadata.image)
        self.metadata.add_listener(self._image_changed)
        await self.replicas.opened()
        self.replicas.on_opened = self._partitions_opened
        await self.directories.say(self.metadata.image)  # the only one may be a new one, too
        await self.directories.say_failed()
        await self.metadata.unfence_broker()
        self._image_changed_partitions(self.metadata.image)

    def _clean_broker_epoch(self) -> int:
        """The epoch in which every log directory was closed cleanly, or -1 (KIP-966)."""
        epochs = self.logs.previous_broker_epochs
        if set(epochs) != set(self.logs.log_dirs) or len(set(epochs.values())) != 1:
            return -1
        return next(iter(epochs.values()))

    def advertised_endpoints(self) -> dict[str, Endpoint]:
        """What clients are told, with the machine's name and bound ports filled in."""
        return {
            listener.name: Endpoint(
                listener.host or socket.getfqdn(),
                listener.port or self._ports[listener.name],
                SECURITY_PROTOCOL_NUMBERS[listener.security_protocol],
            )
            for listener in self.config.advertised_listeners
        }

    def bound_port(self, listener_name: str) -> int:
        """The port that a listener is bound to."""
        return self._ports[listener_name]

    def _schedule(self) -> None:
        config, background = self.config, self._background
        keep_logs(background, config, self._clock, self.logs)
        shares = self.shares.coordinator
        keep_coordinators(background, config, self.groups, self.transactions, shares, self._start)
        if config.bool("log.cleaner.enable"):
            self._start_compaction()

    def _start_compaction(self) -> None:
        is_local = isinstance(self._disk, LocalDisk)
        worker: Worker = ProcessWorker() if is_local else InlineWorker(self._disk, self._clock)
        self.compactor = Compactor(
            self.logs,
            self._clock,
            worker,
            self._compaction_settings,
            checkpoint=self.logs.save_cleaned,
        )
        self.compactor.start()

    def _compaction_settings(self) -> CompactionSettings:
        config = self.metadata.effective.broker(self.metadata.image.configs)
        return CompactionSettings.from_config(config)

    # -- configuration of topics

    def _topic_log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        return LogConfig.from_topic_values(self.metadata.effective.topic(image.configs, topic))

    # -- what happens meanwhile

    def _image_changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        self.recently_fenced.image_changed(delta)
        self.replicas.apply(delta, image)
        self.share_partitions.image_changed(delta, image)
        self.directories.image_changed(delta, image)
        has_new_topics = any(topic.created for topic in delta.topics.values())
        self.groups.image_changed(image, has_new_topics=has_new_topics)
        deleted = [topic.name for topic in delta.topics_deleted.values()]
        if deleted:
            self.groups.on_topics_deleted(deleted)
            self.shares.coordinator.on_topics_deleted(delta.topics_deleted)
            self.shares.groups.on_topics_deleted(delta.topics_deleted)
        if any(topic.name in COORDINATED for topic in delta.topics.values()):
            self._image_changed_partitions(image)

    def _partitions_opened(self, partitions: Sequence[Partition]) -> None:
        """Partitions whose turn came after the image that places them was applied."""
        image = self.metadata.image
        self.directories.opened()
        if any(partition.topic_partition.topic in COORDINATED for partition in partitions):
            self._image_changed_partitions(image)

    def _image_changed_partitions(self, image: MetadataImage) -> None:
        """Load what every partition coordinates that this node leads now."""
        coordinators: dict[str, GroupCoordinator | TransactionCoordinator | ShareCoordinator] = {
            CONSUMER_OFFSETS: self.groups,
            TRANSACTION_STATE: self.transactions,
            SHARE_GROUP_STATE: self.shares.coordinator,
        }
        for name, coordinator in coordinators.items():
            topic = image.topics.by_name.get(name)
            if topic is None:
                continue
            coordinator.partition_count = len(topic.partitions)
            for index, partition in topic.partitions.items():
                if self.replicas.is_waiting(topic.id, index):
                    coordinator.unload(index)  # until it is opened, if it is led here then
                elif partition.leader == self.config.node_id:
                    coordinator.load(index, partition.leader_epoch)
                else:
                    coordinator.unload(index)

    def _directory_offline(self, directory: str) -> None:
        if not self._is_joined:
            return  # found while loading, before anybody could wait for it
        self.directories.failed(directory)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else; `stop` waits for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            telemetry.error("work in the background failed", exc_info=task.exception())

    def _cannot_go_on(self, error: Exception) -> None:
        self.failure = error
        if isinstance(error, UnreportedDirectoryError):
            telemetry.critical("this node must end: %s", error)
        elif self._has_started:
            telemetry.critical("the metadata log failed, so this node must end: %s", error)
        self.failed.set()

    async def stop(self) -> None:
        """Give leaderships away, refuse new work, finish what is under way, flush and close."""
        self._background.close()
        if self.compactor is not None:
            await self.compactor.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._is_joined:
            await self.metadata.controlled_shutdown()
        if self._server is not None and self._dispatcher is not None:
            self._server.close()
            await self._dispatcher.close()
            await self.verifier.close()
            await self.share_partitions.close()
            await self.shares.close()
            await self._services.close()
            await self.transactions.close()
            await self.groups.close()
            await self.replicas.close()
        if self._controller_server is not None:
            self._controller_server.close_listeners()
        await self.metadata.stop()
        if self._controller_server is not None and self._controller_dispatcher is not None:
            self._controller_server.close()
            await self._controller_dispatcher.close()
        if self._server is not None:
            await self.logs.complete()
            self._close_logs()
        if isinstance(self._disk, LocalDisk):
            self._disk.close()
